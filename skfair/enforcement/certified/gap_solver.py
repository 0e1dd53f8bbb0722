"""Offsets at which gaps between rates are what is wanted: for the paths of all folds at once.

They are points of least squares of missed gaps. Four forms of the smooth dual in their place were
no better in all: where both certify (of 120 fits on Adult, COMPAS and Bank), equalized odds gained
.008 to .011 of accuracy without the groups and lost .002 to .007 with them, 3 to 8 fits lost their
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

# Multipliers are in units of utility: an offset of 1 decides against certainty. If groups have one
# rate each, large offsets close gaps when shrinking, where rates are near 0 or 1 and errors small.
# With several, large offsets would leave many rows undecided.
_PRIOR, _PRIOR_ALONE = 2.0, 6.0
# Part of the rarer decisions that may be missing at the first step without harm.
_NEAR = 0.2
# Rates nearer to 0 or 1 have the standard error of this one.
_LOWEST = 0.02


class Window(NamedTuple):
    """Where gaps cost nothing, both of shape (n_folds, n_gaps)."""

    centre: FloatArray
    half: FloatArray


class PathRows(NamedTuple):
    """Rows that paths are found on."""

    rates: RowRates  # rates of the constraints
    # (n_samples,): expected utility of the second decision minus that of the first one
    gains: FloatArray
    shares: Shares  # what rows are expected to add to rates, by feature
    kinds: IntArray  # (n_samples,): stratum and true class of each row, as one number
    n_kinds: int
    everyone: IntArray  # features of the groups of one attribute: the offsets of all rows
    # Whether few rows are selected at the beginning, not few refused. It is the same in
    # every fold, and None if all steps are to select the same share
    from_few: bool | None
    folds: IntArray  # (n_samples,): fold of each row: the path of a fold is found without these
    # (n_samples,): rows with the same number have nearly the same gain and the same shares; None if
    # all differ
    alike: IntArray | None
    squares: FloatArray | float = 1.0  # expected squares of the same utility; 1 of accuracy
    # Standard errors that gaps have to be below their limits more than at a confidence of 0.95
    surer: float = 0.0

    def directions(self) -> FloatArray:
        """Return what selecting a row with a feature adds to a rate, (n_rates, n_features)."""
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
    """Finds the offsets at which the gaps between rates are what is wanted, for all folds at once.

    The gaps of a set are those of its rates to its largest group. A point is multipliers of the
    gaps, then what all rows pay; there is one for each fold.
    """

    def __init__(self, rows: PathRows) -> None:
        self.rows = rows
        self.contrasts = _contrasts(rows.rates)
        self.has_several = np.unique(rows.rates.groups).size < rows.rates.groups.size
        self._read_rates(rows.rates, rows.gains > 0)
        features = self.contrasts @ rows.directions()
        scale = np.abs(features).max(axis=1, initial=ROUNDING)
        self.features = features / np.maximum(scale, ROUNDING)[:, None]  # (n_gaps, n_features)
        # From here on, equal rows are one row.
        alike = np.arange(rows.gains.size) if rows.alike is None else rows.alike
        place = (np.cumsum(np.bincount(alike) > 0) - 1)[alike]
        n, n_folds = int(place.max()) + 1, self.totals.shape[0]
        size = np.bincount(place)

        def mean(values: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(place, values) / size)

        def without_folds(values: FloatArray) -> FloatArray:
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
        # (n_folds, n_gaps + 1, n)
        self.effects = np.concatenate([by_gap, self.weights[:, None]], axis=1)
        self.nothing = np.zeros((n_folds, len(self.directions)))

    def _read_rates(self, rates: RowRates, is_selected: BoolArray) -> None:
        """Take the rates of nobody and of free decisions, and the standard errors of gaps."""
        folds = self.rows.folds
        outside = folds[:, None] != np.arange(int(folds.max()) + 1)
        weights = rates.weights[:, None] * outside
        self.totals = np.asarray(rates.members @ weights).T  # (n_folds, n_rates)
        self.divisors = np.where(self.totals > 0, self.totals, 1.0)
        self.nobody = nobody = np.asarray(rates.counted[0] @ weights).T / self.divisors
        changed = np.asarray(rates.counted[1] @ (weights * is_selected[:, None])).T
        self.free = nobody + changed / self.divisors
        self.fixed = nobody @ self.contrasts.T  # (n_folds, n_gaps)
        n_counted = np.count_nonzero(rates.weights)  # others have no group, or no weight
        n_rows = self.totals.mean(axis=0) * n_counted / max(float(rates.weights.sum()), 1e-300)
        if rates.units is not None:  # what rows are worth that belong together
            apart = replace(rates, units=None), rates
            rows, worth = (own.shares_and_sizes(is_selected[:, None])[1][:, 0] for own in apart)
            n_rows *= worth / np.maximum(rows, 1.0)
        self.n_rows = np.maximum(n_rows, 1.0)
        variances = 0.25 / self.n_rows
        self.errors = np.sqrt(np.abs(self.contrasts) @ variances)  # (n_gaps,)

    def targets(self, gap: float) -> Window:
        """Return the gaps if the rates of each set are moved into a window, as little as can be.

        The window's length is ``gap`` times the limit.
        """
        rates = self.free.copy()
        for peers in self.rows.rates.compared:
            part, total = self.free[:, peers.rates], self.totals[:, peers.rates]
            rates[:, peers.rates] = _squeezed(part, total, gap * _allowed(peers, part, total))
        gaps = np.asarray(rates @ self.contrasts.T)
        return Window(gaps, np.zeros_like(gaps))

    def window(self, points: FloatArray, slack: FloatArray | float) -> Window:
        """Return the gaps that are below the limits by this many standard errors, or none.

        Of two rates that is all gaps of either sign. More rates are moved into a window.
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
        """Whether the free decisions of each fold have gaps inside."""
        missed = np.abs(window.centre - self.free @ self.contrasts.T) - window.half
        return np.asarray(missed.max(axis=1, initial=0.0) < ROUNDING)

    def rates(self, points: FloatArray) -> FloatArray:
        """Return the rates of decided rows of the other folds, (n_folds, n_rates)."""
        selected = (self._margins(points) > 0).astype(np.float64)
        reached = (self.by_rate @ selected[:, :, None])[:, :, 0]
        return np.asarray(reached / self.divisors + self.nobody)

    def slack(self, points: FloatArray) -> FloatArray:
        """Return by how many standard errors the gaps of decided rows are below their limits."""
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
        inner = np.clip(rates, _LOWEST, 1 - _LOWEST)
        return np.asarray(inner * (1 - inner) / self.n_rows)

    def offsets(self, points: FloatArray) -> FloatArray:
        of_rows = points[:, :-1] @ self.features
        of_rows[:, self.rows.everyone] += points[:, -1:]
        return np.asarray(of_rows)

    def selection_rates(self, points: FloatArray) -> FloatArray:
        return np.asarray((self.weights * (self._margins(points) > 0)).sum(axis=1))

    def solve(
        self,
        start: FloatArray,
        window: Window,
        share: FloatArray | None,
        temperatures: tuple[float, ...],
        folds: BoolArray | None = None,
    ) -> FloatArray:
        """Return points with gaps inside, as far as they are worth it: Gauss-Newton, soft.

        Minimised are the missed gaps in units of their standard errors, and the multipliers in
        units of a prior: what is noise, or takes huge offsets, is not chased. If no share of
        selected rows is asked for, what all rows pay stays as it is. Soft decisions can close
        gaps by leaving many rows undecided (those of equalized odds, where no thresholds do),
        and the decided rows have large gaps then. So the point at which decided rows miss
        least is returned if it is clearly better. Points of other than these ``folds`` stay.
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
            wanted["target"][:, -1], wanted["error"][:, -1] = share, 1e-3
        points, warmth = start.copy(), np.array(temperatures)
        some = np.arange(len(start)) if folds is None else np.flatnonzero(folds)
        rows = self.gains, self.directions, self.effects
        # Decided rows have to be better by 1, in squares of missed gaps, to replace a point.
        points_of_sums(*rows, wanted, warmth, 1.0, points, some)
        return points

    def misses(self, points: FloatArray, window: Window, share: FloatArray) -> FloatArray:
        """Return how much decided rows of the other folds miss: sums of squares of ratios."""
        selected = (self._margins(points) > 0).astype(np.float64)
        reached = (self.effects @ selected[:, :, None])[:, :, 0]
        outside = np.abs(reached[:, :-1] + self.fixed - window.centre) - window.half
        missed_gaps = np.maximum(outside, 0.0) / self.errors
        rarer = np.maximum(np.minimum(share, 1 - share), ROUNDING)  # 0 if all get the same decision
        missed_share = (reached[:, -1] - share) / (_NEAR * rarer)
        return np.asarray((missed_gaps**2).sum(axis=1) + missed_share**2)

    def _margins(self, points: FloatArray) -> FloatArray:
        return np.asarray(self.gains - points @ self.directions)


def _contrasts(rates: RowRates) -> FloatArray:
    """Return what makes gaps of rates, shape (n_gaps, n_rates)."""
    total, contrasts = rates.totals(), []
    for peers in rates.compared:
        first = peers.rates[np.argmax(total[peers.rates])]
        for rate in peers.rates[peers.rates != first].tolist():
            contrast = np.zeros(total.size)
            contrast[rate], contrast[first] = 1.0, -1.0
            contrasts.append(contrast)
    return np.array(contrasts).reshape(-1, total.size)


def _allowed(peers: Peers, rates: FloatArray, total: FloatArray) -> FloatArray:
    """Return the largest gap that the constraint allows, (n_folds, 1)."""
    if not peers.is_ratio:
        return np.full((len(rates), 1), peers.limit)
    mass = np.maximum(total.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(peers.limit * (rates * total).sum(axis=1, keepdims=True) / mass)


def _squeezed(rates: FloatArray, total: FloatArray, length: FloatArray) -> FloatArray:
    """Return the rates of each fold, moved into the window that is nearest to them."""
    mass = np.maximum(total.sum(axis=1, keepdims=True), 1e-300)
    mean = (rates * total).sum(axis=1, keepdims=True) / mass
    lows = np.concatenate([rates, rates - length, mean - length / 2], axis=1)[:, :, None]
    moved = np.clip(rates[:, None], lows, lows + length[:, None])
    distance = ((moved - rates[:, None]) ** 2 * total[:, None]).sum(axis=2)
    nearest = moved[np.arange(len(rates)), distance.argmin(axis=1)]
    return np.where(np.ptp(rates, axis=1)[:, None] <= length, rates, nearest)
