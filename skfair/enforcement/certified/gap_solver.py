r"""Offsets at which the gaps between group rates have wanted values.

:mod:`skfair.enforcement.certified.offset_path` makes a :class:`GapSolver` of the rows. It asks for
the wanted gaps (:meth:`GapSolver.targets` or :meth:`GapSolver.window`), then for a *point* at which
the gaps are there (:meth:`GapSolver.solve`), and for the offsets of that point.

Decisions are *soft* while points are searched: numbers between 0 and 1 that rise with the margin of
the row. *Hard* decisions are 0 or 1.

A *gap* is the rate of a group minus the rate of the largest group that it is compared with. A point
x has one multiplier x_j for each gap j, and last an offset x_0 that all rows pay. Row i gains the
utility g_i if it is selected. It is selected if its margin

.. math:: g_i - \sum_j x_j d_{ij} - x_0

is positive. Here d_ij is what selecting the row is expected to add to gap j, in units of the
largest such effect. The kernel in ``skfair/_kernels/path_points.py`` minimises over x the sum of
squares of the missed gaps, in units of their standard errors, plus a ridge penalty of x.

Four forms of a smooth dual problem were no better in 120 fits on Adult, COMPAS and Bank. Of the
fits with equalized odds that both methods certify, those without the groups gained 0.008 to 0.011
of accuracy by the dual, and those with the groups lost 0.002 to 0.007. 3 to 8 fits lost their
certificate and 3 to 5 won one, at 1.2 to 1.7 times the CPU.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.enforcement.certified.walk import Peers, RowRates
from skfair.enforcement.decisions.shares import Shares
from skfair.utils.rounding import ROUNDING

# Multipliers may be about this large: the ridge penalty is the square of x / _PRIOR. They are in
# units of utility, so an offset of 1 outweighs a certain gain. _PRIOR_ALONE is for groups with one
# rate each if a share of selected rows is asked for. Near rates of 0 and 1, where errors are small,
# only large offsets close such gaps. If groups have several rates, large offsets would leave many
# rows undecided.
_PRIOR, _PRIOR_ALONE = 2.0, 6.0
# In :meth:`GapSolver.misses`, a point misses the wanted share of selected rows by one unit if this
# part of the rarer decision is missing.
_NEAR = 0.2
# Rates that are nearer to 0 or 1 than this get the standard error of a rate of this size.
_LOWEST = 0.02


class Window(NamedTuple):
    """The gaps that cost nothing: those within ``half`` of ``centre``, (n_gaps,) each."""

    centre: FloatArray
    half: FloatArray


class PathRows(NamedTuple):
    """The rows that paths are found on, for two classes of decisions.

    A *feature* is a group with a stratum and a true class, as in ``decisions/shares.py``.
    """

    rates: RowRates  # rates of the constraints
    # (n_samples,): expected utility of the second decision minus that of the first one
    gains: FloatArray
    shares: Shares  # (n_samples, n_features): probability of each feature
    kinds: IntArray  # (n_samples,): stratum and true class of each row, as one number
    n_kinds: int
    # Features of the groups of one attribute. Each row is in one of these groups, so an offset that
    # all these features have is an offset for all rows
    everyone: IntArray
    # True if the path begins with few selected rows, False if it begins with few refused rows, None
    # if all steps are to select the same share
    from_few: bool | None
    # (n_samples,): rows with the same number have nearly the same gain, and the same shares; None
    # if all rows differ
    alike: IntArray | None
    # Expected square of the difference of utility whose mean is ``gains``, (n_samples,) or one
    # number; it is 1 for accuracy
    squares: FloatArray | float = 1.0
    # The distances from limits that points should have are set for a confidence of 0.95. This
    # number of standard errors is added to them
    surer: float = 0.0

    def directions(self) -> FloatArray:
        """Return what selecting rows with a feature adds to a rate, (n_rates, n_features).

        It is the mean change of the rows with the feature, per unit of the rate's weight.
        """
        rates, n_features = self.rates, self.shares.shape[1]
        directions = np.zeros((rates.groups.size, n_features))
        total, step = rates.totals(), rates.counted[1].toarray()
        for r, group in enumerate(rates.groups.tolist()):
            rows = rates.members.indices[rates.members.indptr[r] : rates.members.indptr[r + 1]]
            w = rates.weights[rows]
            mass = np.bincount(self.kinds[rows], w, self.n_kinds)
            change = np.bincount(self.kinds[rows], w * step[r, rows], self.n_kinds)
            columns = group * self.n_kinds + np.arange(self.n_kinds)
            mean = change / np.where(mass > 0, mass, 1.0)
            directions[r, columns] = mean / (total[r] if total[r] > 0 else 1.0)
        return directions


class GapSolver:
    """Finds points with wanted gaps; a ``point`` has the shape (n_gaps + 1,)."""

    def __init__(self, rows: PathRows) -> None:
        self.rows = rows
        self.contrasts = _contrasts(rows.rates)  # (n_gaps, n_rates): gaps = contrasts @ rates
        # Whether some group has several rates
        self.has_several = np.unique(rows.rates.groups).size < rows.rates.groups.size
        self._read_rates(rows.rates, rows.gains > 0)
        features = self.contrasts @ rows.directions()
        scale = np.abs(features).max(axis=1, initial=ROUNDING)
        self.features = features / np.maximum(scale, ROUNDING)[:, None]  # (n_gaps, n_features)
        # From here on n is the number of distinct rows. Each stands for all rows that equal it.
        alike = np.arange(rows.gains.size) if rows.alike is None else rows.alike
        place = (np.cumsum(np.bincount(alike) > 0) - 1)[alike]  # the distinct row of each row
        n, size = int(place.max()) + 1, np.bincount(place)

        def mean(values: FloatArray) -> FloatArray:
            """Return the mean over the rows that a distinct row stands for, (n,)."""
            return np.asarray(np.bincount(place, values) / size)

        directions = np.asarray(rows.shares @ self.features.T)
        self.gains = mean(rows.gains)
        self.directions = np.stack([*map(mean, directions.T), np.ones(n)])  # (n_gaps + 1, n)
        effects = rows.rates.counted[1].toarray() * rows.rates.weights
        # (n_rates, n): what selecting a row adds to the hits of the rates
        self.by_rate = np.stack([np.bincount(place, of_rate, n) for of_rate in effects])
        by_gap = self.contrasts @ (self.by_rate / self.divisors[:, None])
        weights = np.bincount(place, rows.rates.weights, n)
        self.weights = weights / weights.sum()  # (n,)
        # (n_gaps + 1, n): what selecting a row adds to the gaps and to the selected share
        self.effects = np.vstack([by_gap, self.weights])
        self.nothing = np.zeros(len(self.directions))  # the point without offsets

    def _read_rates(self, rates: RowRates, is_selected: BoolArray) -> None:
        """Set the rates if nobody is selected, the rates without offsets, and the errors of gaps.

        ``is_selected`` (n_samples,) are the decisions without offsets.
        """
        weights = rates.weights
        self.totals = rates.totals()  # (n_rates,)
        self.divisors = np.where(self.totals > 0, self.totals, 1.0)
        self.nobody = np.asarray(rates.counted[0] @ weights) / self.divisors
        changed = np.asarray(rates.counted[1] @ (weights * is_selected))
        self.free = self.nobody + changed / self.divisors  # (n_rates,): rates without offsets
        self.fixed = self.contrasts @ self.nobody  # (n_gaps,): gaps if nobody is selected
        # The number of rows of each rate, as independent rows of equal weight.
        n_counted = np.count_nonzero(weights)
        n_rows = self.totals * n_counted / max(float(weights.sum()), 1e-300)
        if rates.units is not None:  # rows that belong together count as fewer independent ones
            both = replace(rates, units=None), rates
            apart, together = (own.shares_and_sizes(is_selected[:, None])[1][:, 0] for own in both)
            n_rows *= together / np.maximum(apart, 1.0)
        self.n_rows = np.maximum(n_rows, 1.0)
        variances = 0.25 / self.n_rows  # variances of rates of 1/2, which are the largest
        self.errors = np.sqrt(np.abs(self.contrasts) @ variances)  # (n_gaps,)

    def targets(self, gap: float) -> Window:
        """Return gaps of at most ``gap`` times the limit, as a window of single points.

        The rates of each compared set are moved into an interval of this length. The rates without
        offsets are changed as little as possible.
        """
        rates = self.free.copy()
        for peers in self.rows.rates.compared:
            part, total = self.free[peers.rates], self.totals[peers.rates]
            rates[peers.rates] = _squeezed(part, total, gap * _allowed(peers, part, total))
        gaps = self.contrasts @ rates
        return Window(gaps, np.zeros_like(gaps))

    def window(self, point: FloatArray, slack: float) -> Window:
        """Return the gaps that are ``slack`` standard errors below their limits.

        Standard errors are those at the rates of ``point``. If they leave no room, the gaps are 0.
        For two rates, the window holds all gaps that are small enough, of either sign. More rates
        are moved into an interval of that length, as in :meth:`targets`.
        """
        variances = self._variances(self.rates(point))
        margin = slack * np.sqrt(np.abs(self.contrasts) @ variances)
        centre, half = np.zeros((2, margin.size))
        first = 0
        for peers in self.rows.rates.compared:
            gaps = slice(first, first + peers.rates.size - 1)
            first = gaps.stop
            part, total = self.free[peers.rates], self.totals[peers.rates]
            length = max(_allowed(peers, part, total) - float(margin[gaps].max()), 0.0)
            if peers.rates.size == 2:
                half[gaps] = length
            else:
                centre[gaps] = self.contrasts[gaps][:, peers.rates] @ _squeezed(part, total, length)
        return Window(centre, half)

    def is_free(self, window: Window) -> bool:
        """Whether the decisions without offsets have gaps inside the window."""
        missed = np.abs(window.centre - self.contrasts @ self.free) - window.half
        return bool(missed.max(initial=0.0) < ROUNDING)

    def rates(self, point: FloatArray) -> FloatArray:
        """Return the rates, counted on hard decisions, (n_rates,)."""
        return np.asarray(self.by_rate @ self._selected(point) / self.divisors + self.nobody)

    def slack(self, point: FloatArray) -> float:
        """Return by how many standard errors the gaps are below their limits.

        It is the smallest such number of all pairs of rates, counted on hard decisions.
        """
        rates, least = self.rates(point), np.inf
        variances = self._variances(rates)
        for peers in self.rows.rates.compared:
            part, errors = rates[peers.rates], variances[peers.rates]
            i, j = np.triu_indices(peers.rates.size, k=1)
            allowed = _allowed(peers, part, self.totals[peers.rates])
            spare = (allowed - np.abs(part[i] - part[j])) / np.sqrt(errors[i] + errors[j])
            least = min(least, float(spare.min()))
        return least

    def _variances(self, rates: FloatArray) -> FloatArray:
        """Return the variances of estimated rates, (n_rates,)."""
        inner = np.clip(rates, _LOWEST, 1 - _LOWEST)
        return np.asarray(inner * (1 - inner) / self.n_rows)

    def offsets(self, point: FloatArray) -> FloatArray:
        """Return the offset of the second decision for each feature, (n_features,)."""
        of_features = np.asarray(point[:-1] @ self.features)
        of_features[self.rows.everyone] += point[-1]
        return of_features

    def selection_rate(self, point: FloatArray) -> float:
        """Return the share of the rows that is selected."""
        return float(self.weights @ self._selected(point))

    def solve(
        self,
        start: FloatArray,
        window: Window,
        share: float | None,
        temperatures: tuple[float, ...],
    ) -> FloatArray:
        """Return a point with gaps in the window, by Gauss-Newton steps on soft decisions.

        Missed gaps are measured in standard errors and multipliers in units of a prior, so a small
        miss is not repaired at the price of huge offsets. ``share`` is the wanted share of selected
        rows. If it is None, the offset of all rows stays as it is.

        Soft decisions can close gaps by leaving many rows undecided, as for equalized odds if no
        thresholds close the gaps. The hard decisions then have large gaps. So if the hard decisions
        miss clearly less at another point that was tried, that point is returned.
        """
        from skfair._kernels.path_points import WANTED, point_of_sums

        n_gaps = self.errors.size
        wanted = np.zeros(n_gaps + (share is not None), WANTED)
        gaps = wanted[:n_gaps]
        gaps["target"], gaps["error"] = window.centre - self.fixed, self.errors
        gaps["tolerance"] = window.half
        is_alone = share is not None and not self.has_several
        gaps["ridge"] = (_PRIOR_ALONE if is_alone else _PRIOR) ** -2
        if share is not None:
            # A share that is missed by 0.001 costs as much as a gap missed by a standard error.
            wanted["target"][-1], wanted["error"][-1] = share, 1e-3
        point, rows = start.copy(), (self.gains, self.directions, self.effects)
        # Another point is returned if its hard decisions are better by 1, in squares of missed
        # gaps.
        point_of_sums(*rows, wanted, np.array(temperatures), 1.0, point)
        return point

    def misses(self, point: FloatArray, window: Window, share: float) -> float:
        """Return how much the hard decisions miss the window and the wanted share.

        It is the sum of squares of missed gaps, in standard errors, and of the missed share, in
        units of ``_NEAR`` times the rarer decision.
        """
        reached = self.effects @ self._selected(point)
        outside = np.abs(reached[:-1] + self.fixed - window.centre) - window.half
        missed_gaps = np.maximum(outside, 0.0) / self.errors
        rarer = max(min(share, 1 - share), ROUNDING)  # 0 if all get the same decision
        missed_share = (reached[-1] - share) / (_NEAR * rarer)
        return float((missed_gaps**2).sum() + missed_share**2)

    def _selected(self, point: FloatArray) -> FloatArray:
        """Return the hard decision about each distinct row, (n,)."""
        return (self.gains - point @ self.directions > 0).astype(np.float64)


def _contrasts(rates: RowRates) -> FloatArray:
    """Return the matrix (n_gaps, n_rates) that turns rates into gaps.

    Each line is 1 for a rate of a compared set, and -1 for the rate of its largest group.
    """
    total, contrasts = rates.totals(), []
    for peers in rates.compared:
        first = peers.rates[np.argmax(total[peers.rates])]
        for rate in peers.rates[peers.rates != first].tolist():
            contrast = np.zeros(total.size)
            contrast[rate], contrast[first] = 1.0, -1.0
            contrasts.append(contrast)
    return np.array(contrasts).reshape(-1, total.size)


def _allowed(peers: Peers, rates: FloatArray, total: FloatArray) -> float:
    """Return the largest gap that the constraint allows.

    For a limit on ratios it is the limit times the mean rate of the set.
    """
    if not peers.is_ratio:
        return peers.limit
    return float(peers.limit * (rates @ total) / max(float(total.sum()), 1e-300))


def _squeezed(rates: FloatArray, total: FloatArray, length: float) -> FloatArray:
    """Return the rates, clipped to an interval of this length.

    The interval is the one of least squared change among those that begin or end at a rate, or
    have the mean rate in their middle. Rates that fit into such an interval stay as they are.
    """
    if np.ptp(rates) <= length:
        return rates
    mean = float(rates @ total) / max(float(total.sum()), 1e-300)
    lows = np.concatenate([rates, rates - length, [mean - length / 2]])[:, None]
    moved = np.clip(rates, lows, lows + length)
    return np.asarray(moved[((moved - rates) ** 2 @ total).argmin()])
