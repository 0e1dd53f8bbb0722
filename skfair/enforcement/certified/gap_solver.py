r"""Offsets at which the gaps between group rates have wanted values, for all folds at once.

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
squares of the missed gaps, in units of their standard errors, plus a ridge penalty of x. The point
of a fold is found without the rows of the fold, so all arrays have one line per fold.

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
    """The gaps that cost nothing: those within ``half`` of ``centre``, (n_folds, n_gaps) each."""

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
    # True if the paths of all folds begin with few selected rows, False if they begin with few
    # refused rows, None if all steps are to select the same share
    from_few: bool | None
    folds: IntArray  # (n_samples,): fold of each row; the path of a fold is found without its rows
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
    """Finds points with wanted gaps; ``points`` have the shape (n_folds, n_gaps + 1)."""

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
        n, n_folds = int(place.max()) + 1, self.totals.shape[0]
        size = np.bincount(place)

        def mean(values: FloatArray) -> FloatArray:
            """Return the mean over the rows that a distinct row stands for, (n,)."""
            return np.asarray(np.bincount(place, values) / size)

        def without_folds(values: FloatArray) -> FloatArray:
            """Return the same sums, each without the rows of one fold, (n_folds, n)."""
            sums = np.bincount(place + rows.folds * n, values, n * n_folds).reshape(n_folds, n)
            return np.asarray(sums.sum(axis=0) - sums)

        directions = np.asarray(rows.shares @ self.features.T)
        self.gains = mean(rows.gains)
        self.directions = np.stack([*map(mean, directions.T), np.ones(n)])  # (n_gaps + 1, n)
        effects = rows.rates.counted[1].toarray() * rows.rates.weights
        by_rate = np.stack([without_folds(of_rate) for of_rate in effects], axis=1)
        by_gap = self.contrasts @ (by_rate / self.divisors[:, :, None])
        share = without_folds(rows.rates.weights)
        self.by_rate = by_rate  # (n_folds, n_rates, n)
        self.weights = share / share.sum(axis=1, keepdims=True)  # (n_folds, n)
        # (n_folds, n_gaps + 1, n): what selecting a row adds to the gaps and to the selected share
        self.effects = np.concatenate([by_gap, self.weights[:, None]], axis=1)
        self.nothing = np.zeros((n_folds, len(self.directions)))  # the point without offsets

    def _read_rates(self, rates: RowRates, is_selected: BoolArray) -> None:
        """Set the rates if nobody is selected, the rates without offsets, and the errors of gaps.

        ``is_selected`` (n_samples,) are the decisions without offsets.
        """
        folds = self.rows.folds
        outside = folds[:, None] != np.arange(int(folds.max()) + 1)
        weights = rates.weights[:, None] * outside  # (n_samples, n_folds): 0 for rows of the fold
        self.totals = np.asarray(rates.members @ weights).T  # (n_folds, n_rates)
        self.divisors = np.where(self.totals > 0, self.totals, 1.0)
        self.nobody = nobody = np.asarray(rates.counted[0] @ weights).T / self.divisors
        changed = np.asarray(rates.counted[1] @ (weights * is_selected[:, None])).T
        self.free = nobody + changed / self.divisors  # (n_folds, n_rates): rates without offsets
        self.fixed = nobody @ self.contrasts.T  # (n_folds, n_gaps): gaps if nobody is selected
        # The number of rows of each rate, as independent rows of equal weight.
        n_counted = np.count_nonzero(rates.weights)
        n_rows = self.totals.mean(axis=0) * n_counted / max(float(rates.weights.sum()), 1e-300)
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
            part, total = self.free[:, peers.rates], self.totals[:, peers.rates]
            rates[:, peers.rates] = _squeezed(part, total, gap * _allowed(peers, part, total))
        gaps = np.asarray(rates @ self.contrasts.T)
        return Window(gaps, np.zeros_like(gaps))

    def window(self, points: FloatArray, slack: FloatArray | float) -> Window:
        """Return the gaps that are ``slack`` standard errors below their limits.

        Standard errors are those at the rates of ``points``. If they leave no room, the gaps are 0.
        For two rates, the window holds all gaps that are small enough, of either sign. More rates
        are moved into an interval of that length, as in :meth:`targets`.
        """
        variances = self._variances(self.rates(points))
        margin = np.asarray(slack) * np.sqrt(variances @ np.abs(self.contrasts).T)
        centre, half = np.zeros((2, *margin.shape))
        first = 0
        for peers in self.rows.rates.compared:
            gaps = slice(first, first + peers.rates.size - 1)
            first = gaps.stop
            part, total = self.free[:, peers.rates], self.totals[:, peers.rates]
            widest = margin[:, gaps].max(axis=1, keepdims=True)
            length = np.maximum(_allowed(peers, part, total) - widest, 0.0)
            if peers.rates.size == 2:
                half[:, gaps] = length
            else:
                moved = _squeezed(part, total, length)
                centre[:, gaps] = moved @ self.contrasts[gaps][:, peers.rates].T
        return Window(centre, half)

    def is_free(self, window: Window) -> BoolArray:
        """Whether the decisions without offsets have gaps inside the window, (n_folds,)."""
        missed = np.abs(window.centre - self.free @ self.contrasts.T) - window.half
        return np.asarray(missed.max(axis=1, initial=0.0) < ROUNDING)

    def rates(self, points: FloatArray) -> FloatArray:
        """Return the rates outside each fold, counted on hard decisions, (n_folds, n_rates)."""
        selected = (self._margins(points) > 0).astype(np.float64)
        reached = (self.by_rate @ selected[:, :, None])[:, :, 0]
        return np.asarray(reached / self.divisors + self.nobody)

    def slack(self, points: FloatArray) -> FloatArray:
        """Return by how many standard errors the gaps are below their limits, (n_folds,).

        It is the smallest such number of all pairs of rates, counted on hard decisions.
        """
        rates, least = self.rates(points), np.full(len(points), np.inf)
        variances = self._variances(rates)
        for peers in self.rows.rates.compared:
            part, errors = rates[:, peers.rates], variances[:, peers.rates]
            i, j = np.triu_indices(peers.rates.size, k=1)
            allowed = _allowed(peers, part, self.totals[:, peers.rates])
            spare = (allowed - np.abs(part[:, i] - part[:, j])) / np.sqrt(
                errors[:, i] + errors[:, j]
            )
            least = np.minimum(least, spare.min(axis=1))
        return least

    def _variances(self, rates: FloatArray) -> FloatArray:
        """Return the variances of estimated rates, (n_folds, n_rates)."""
        inner = np.clip(rates, _LOWEST, 1 - _LOWEST)
        return np.asarray(inner * (1 - inner) / self.n_rows)

    def offsets(self, points: FloatArray) -> FloatArray:
        """Return the offset of the second decision for each feature, (n_folds, n_features)."""
        of_features = points[:, :-1] @ self.features
        of_features[:, self.rows.everyone] += points[:, -1:]
        return np.asarray(of_features)

    def selection_rates(self, points: FloatArray) -> FloatArray:
        """Return the share of the rows outside each fold that is selected, (n_folds,)."""
        return np.asarray((self.weights * (self._margins(points) > 0)).sum(axis=1))

    def solve(
        self,
        start: FloatArray,
        window: Window,
        share: FloatArray | None,
        temperatures: tuple[float, ...],
        folds: BoolArray | None = None,
    ) -> FloatArray:
        """Return points with gaps in the window, by Gauss-Newton steps on soft decisions.

        Missed gaps are measured in standard errors and multipliers in units of a prior, so a small
        miss is not repaired at the price of huge offsets. ``share`` (n_folds,) is the wanted share
        of selected rows. If it is None, the offset of all rows stays as it is. ``folds`` (n_folds,)
        says which points move; if it is None, all do.

        Soft decisions can close gaps by leaving many rows undecided, as for equalized odds if no
        thresholds close the gaps. The hard decisions then have large gaps. So if the hard decisions
        miss clearly less at another point that was tried, that point is returned.
        """
        from skfair._kernels.path_points import WANTED, points_of_sums

        n_gaps = self.errors.size
        wanted = np.zeros((len(start), n_gaps + (share is not None)), WANTED)
        gaps = wanted[:, :n_gaps]
        gaps["target"], gaps["error"] = window.centre - self.fixed, self.errors
        gaps["tolerance"] = window.half
        is_alone = share is not None and not self.has_several
        gaps["ridge"] = (_PRIOR_ALONE if is_alone else _PRIOR) ** -2
        if share is not None:
            # A share that is missed by 0.001 costs as much as a gap missed by a standard error.
            wanted["target"][:, -1], wanted["error"][:, -1] = share, 1e-3
        points, warmth = start.copy(), np.array(temperatures)
        some = np.arange(len(start)) if folds is None else np.flatnonzero(folds)
        rows = self.gains, self.directions, self.effects
        # Another point is returned if its hard decisions are better by 1, in squares of missed
        # gaps.
        points_of_sums(*rows, wanted, warmth, 1.0, points, some)
        return points

    def misses(self, points: FloatArray, window: Window, share: FloatArray) -> FloatArray:
        """Return how much the hard decisions miss the window and the wanted share, (n_folds,).

        It is the sum of squares of missed gaps, in standard errors, and of the missed share, in
        units of ``_NEAR`` times the rarer decision.
        """
        selected = (self._margins(points) > 0).astype(np.float64)
        reached = (self.effects @ selected[:, :, None])[:, :, 0]
        outside = np.abs(reached[:, :-1] + self.fixed - window.centre) - window.half
        missed_gaps = np.maximum(outside, 0.0) / self.errors
        rarer = np.maximum(np.minimum(share, 1 - share), ROUNDING)  # 0 if all get the same decision
        missed_share = (reached[:, -1] - share) / (_NEAR * rarer)
        return np.asarray((missed_gaps**2).sum(axis=1) + missed_share**2)

    def _margins(self, points: FloatArray) -> FloatArray:
        """Return the margin of each distinct row, (n_folds, n)."""
        return np.asarray(self.gains - points @ self.directions)


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


def _allowed(peers: Peers, rates: FloatArray, total: FloatArray) -> FloatArray:
    """Return the largest gap that the constraint allows, (n_folds, 1).

    For a limit on ratios it is the limit times the mean rate of the set.
    """
    if not peers.is_ratio:
        return np.full((len(rates), 1), peers.limit)
    mass = np.maximum(total.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(peers.limit * (rates * total).sum(axis=1, keepdims=True) / mass)


def _squeezed(rates: FloatArray, total: FloatArray, length: FloatArray) -> FloatArray:
    """Return the rates of each fold, clipped to an interval of this length.

    The interval is the one of least squared change among those that begin or end at a rate, or
    have the mean rate in their middle. Rates that fit into such an interval stay as they are.
    """
    mass = np.maximum(total.sum(axis=1, keepdims=True), 1e-300)
    mean = (rates * total).sum(axis=1, keepdims=True) / mass
    lows = np.concatenate([rates, rates - length, mean - length / 2], axis=1)[:, :, None]
    moved = np.clip(rates[:, None], lows, lows + length[:, None])
    distance = ((moved - rates[:, None]) ** 2 * total[:, None]).sum(axis=2)
    nearest = moved[np.arange(len(rates)), distance.argmin(axis=1)]
    return np.where(np.ptp(rates, axis=1)[:, None] <= length, rates, nearest)
