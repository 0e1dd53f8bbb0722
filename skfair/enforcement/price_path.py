"""Paths of prices for two classes, from certainly fair to free: of each fold, without its rows.

Leg 1 begins with the same decision for nearly everybody and makes the other one more and more
often, with prices at which no gap is left. Leg 2 decides all of them, and lets the gaps grow up to
the limits and a little beyond. How good a path is decides how much accuracy a certificate costs,
not whether it holds: other rows judge it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import special

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.enforcement.certify import Block, RowRates, likely_p_values
from skfair.enforcement.decisions.shares import Shares

# Decisions are soft while prices are searched; the last temperature decides nearly all rows.
TEMPERATURES = (0.1, 0.03, 0.01)
# Where many scores are nearly the same, decided rows need lower ones: if so much is still missed.
_FINER, _COARSE = (0.003, 0.001), 0.25
# Leg 1: how many of the rarer decisions are made. Leg 2: gaps in units of their limits.
SHARES = (0.03, 0.05, 0.07, 0.1, 0.14, 0.19, 0.26, 0.35, 0.46, 0.58, 0.7, 0.84)
GAPS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
# Steps between two neighbours of leg 2.
_BETWEEN = 3
# Multipliers are in units of worth: a price of 1 decides against certainty. If groups have one rate
# each, large prices close gaps in leg 1, where rates are near 0 or 1 and errors small. If they
# have several, large prices would leave many rows undecided.
_PRIOR, _PRIOR_ALONE, _PRIOR_SEVERAL = 2.0, 6.0, 1.0
# Squares of missed gaps by which decided rows are clearly better at another point.
_CLEARER = 1.0
# Part of the rarer decisions that may be missing at the first step without harm.
_NEAR = 0.2
# Expected worth by which one end of leg 1 is better than the other.
_CLEARLY = 0.005
# Rows of one cell whose probabilities differ by less are treated as one.
_WIDTH = 2e-3


class PathRows(NamedTuple):
    """Rows that paths are found on.

    Attributes
    ----------
    rates : RowRates
        Rates of the rules.
    gains : ndarray of shape (n_samples,)
        Expected worth of the second decision minus that of the first one.
    shares : Shares
        What rows are expected to add to rates, by feature.
    kinds : ndarray of shape (n_samples,)
        Stratum and true class of each row, as one number.
    n_kinds : int
        How many there are.
    everyone : ndarray
        Features of the groups of one attribute: the offsets of all rows.
    from_few : bool
        Whether few rows are selected at the beginning, not few refused; in every fold alike.
    folds : ndarray of shape (n_samples,)
        Fold of each row: the path of a fold is found without these.
    alike : ndarray of shape (n_samples,) or None
        Rows with the same number have nearly the same gain and the same shares; None if all differ.
    """

    rates: RowRates
    gains: FloatArray
    shares: Shares
    kinds: IntArray
    n_kinds: int
    everyone: IntArray
    from_few: bool
    folds: IntArray
    alike: IntArray | None

    def directions(self) -> FloatArray:
        """Return what selecting a row with a feature adds to a rate, (n_rates, n_features)."""
        rates, n_features = self.rates, self.shares.shape[1]
        found = np.zeros((len(rates.names), n_features))
        total, step = rates.totals(), rates.counted[1]
        for r, group in enumerate(rates.groups.tolist()):
            rows = rates.members.indices[rates.members.indptr[r] : rates.members.indptr[r + 1]]
            w = rates.weights[rows]
            mass = np.bincount(self.kinds[rows], w, self.n_kinds)
            effect = step[[r]].toarray().ravel()[rows]
            change = np.bincount(self.kinds[rows], w * effect, self.n_kinds)
            columns = group * self.n_kinds + np.arange(self.n_kinds)
            mean = change / np.where(mass > 0, mass, 1.0)
            found[r, columns] = mean / (total[r] if total[r] > 0 else 1.0)
        return found


def near_rows(cells: IntArray, chances: FloatArray) -> IntArray:
    """Return numbers that rows share if they are in the same cell, with nearly the same chance."""
    n_steps = int(1 / _WIDTH) + 1
    return cells * n_steps + (chances / _WIDTH).astype(np.int64)


def price_paths(rows: PathRows) -> FloatArray:
    """Return the prices of the second decision, shape (n_folds, n_steps, n_features).

    The last step is free if the decisions without prices have gaps below the limits.
    """
    solver = _GapSolver(rows)
    no_gaps = solver.wanted(0.0)
    second: list[FloatArray] = []
    start = solver.nothing
    for gap in GAPS[::-1]:  # from small prices to large ones: nearest to the free decisions
        temperatures = TEMPERATURES if not second else TEMPERATURES[-1:]
        gaps = solver.wanted(gap)
        start = solver.solve(start, gaps, None, temperatures)
        prices = solver.prices(start)
        prices[solver.are_free(gaps)] = 0.0  # gaps are below the limits without prices
        second.append(prices)
    first: list[FloatArray] = []
    if _can_shrink(rows.rates):
        full, found = solver.selection_rates(start), solver.nothing.copy()
        for share in SHARES:
            wanted = share * full if rows.from_few else 1 - share * (1 - full)
            if not first:  # no prices but one for all
                found[:, -1] = [
                    np.quantile(rows.gains[rows.folds != k], 1 - one)
                    for k, one in enumerate(wanted)
                ]
            found = solver.solve(found, no_gaps, wanted, TEMPERATURES[-1:])
            # Decisions that are far from all rows of a group are too sharp to tell where these
            # lie. Later steps begin at the first one, so there both ways are tried.
            finer, softer = (_FINER, _COARSE), (TEMPERATURES, _CLEARER if first else 0.0)
            missed = solver.misses(found, no_gaps, wanted)
            for way, most in (finer, softer) if first else (softer, finer):
                if missed.max() > most:
                    other = solver.solve(found, no_gaps, wanted, way, missed > most)
                    missed_now = solver.misses(other, no_gaps, wanted)
                    found = np.where((missed_now < missed)[:, None], other, found)
                    missed = np.minimum(missed, missed_now)
            first.append(solver.prices(found))
    return np.stack([*first, *_between(second[::-1], _BETWEEN)], axis=1)


def starts_with_few(rates: RowRates, gains: FloatArray, is_rare: bool, confidence: float) -> bool:
    """Return whether leg 1 begins with few selected people, not with few refused ones.

    Rates near 0 and 1 have the smallest standard errors. So if the second decision is the rarer
    one, a walk that begins with few selected people may yet end at a true positive rate of one
    half, and one from the other end may not. The end is taken from which the expected worth of the
    last certified step is clearly larger; in doubt that of the rarer decision.

    The choice sees all rows, but it does not choose steps that look fair. It uses the numbers of
    rows, expected worth and the pooled rates of groups under a common threshold. If groups have
    equal rates, a pooled rate is uncorrelated with each difference of rates: the covariance of
    (n_1 r_1 + n_2 r_2) / n with r_1 - r_2 is r (1 - r) / n - r (1 - r) / n. If their rates differ
    by the limit, a little correlation is left.

    Parameters
    ----------
    rates : RowRates
        Rates of the rules.
    gains : ndarray of shape (n_samples,)
        Expected worth of the second decision minus that of the first one.
    is_rare : bool
        Whether the second class is the rarer one.
    confidence : float
        How sure the limits are to hold.

    Returns
    -------
    few : bool
        Whether few are selected at the beginning.
    """
    if not _can_shrink(rates):
        return is_rare
    full = float(rates.weights @ (gains > 0))
    shares = np.array([0.0, *SHARES, 1.0])
    worth: list[float] = []
    for wanted in (shares * full, 1 - shares * (1 - full)):
        selected = gains[:, None] > np.quantile(gains, 1 - wanted)
        likely = special.ndtri(1 - confidence) - special.ndtri(likely_p_values(rates, selected))
        reached = np.minimum.accumulate(special.ndtr(likely[1:]))  # all steps before pass, too
        gained = (rates.weights * gains) @ selected
        constant = max(0.0, float(rates.weights @ gains))
        before = np.append(constant, gained[1:-1])
        worth.append(constant + float(reached @ (gained[1:] - before)))
    few, many = worth
    return bool(few > many - _CLEARLY if is_rare else few > many + _CLEARLY)


def full_step(rates: RowRates) -> int:
    """Return the number of the first step of leg 2: everybody is decided, at no gap."""
    return len(SHARES) if _can_shrink(rates) else 0


def _can_shrink(rates: RowRates) -> bool:
    """Whether decisions get fairer, and can be shown to be, if nearly nobody is selected."""
    if any(block.is_ratio for block in rates.blocks):
        return False
    share = rates.of(np.zeros(rates.weights.size, dtype=bool))
    return all(np.ptp(share[block.rates]) < 1e-12 for block in rates.blocks)


def _between(nodes: list[FloatArray], n: int) -> list[FloatArray]:
    """Return the nodes with steps between them on straight lines."""
    steps = [
        left + (right - left) * part / n for left, right in pairwise(nodes) for part in range(n)
    ]
    return [*steps, nodes[-1]]


class _GapSolver:
    """Finds the prices at which the gaps between rates are what is wanted, for all folds at once.

    The gaps of a block are those of its rates to its largest group. A point is multipliers of the
    gaps, then what all rows pay; there is one for each fold.
    """

    def __init__(self, rows: PathRows) -> None:
        self.rows = rows
        self.contrasts = _contrasts(rows.rates)
        self.has_several = np.unique(rows.rates.groups).size < rows.rates.groups.size
        self._read_rates(rows.rates, rows.gains > 0)
        features = self.contrasts @ rows.directions()
        scale = np.abs(features).max(axis=1, initial=1e-12)
        self.features = features / np.maximum(scale, 1e-12)[:, None]  # (n_gaps, n_features)
        # From here on, rows that are alike are one.
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
        both = np.column_stack([mean(rows.gains), *map(mean, directions.T), np.ones(n)])
        self.gains = both[:, 0].copy()
        self.directions = both[:, 1:].copy()  # (n, n_gaps + 1)
        effects = rows.rates.counted[1].toarray() * rows.rates.weights
        by_rate = np.stack([without_folds(one) for one in effects], axis=2)
        by_gap = (by_rate / self.divisors[:, None]) @ self.contrasts.T
        share = without_folds(rows.rates.weights)
        self.weights = share / share.sum(axis=1, keepdims=True)  # (n_folds, n)
        both = np.concatenate([by_gap, self.weights[:, :, None]], axis=2)
        self.effects = both  # (n_folds, n, n_gaps + 1)
        self.nothing = np.zeros((n_folds, self.directions.shape[1]))

    def _read_rates(self, rates: RowRates, is_selected: BoolArray) -> None:
        """Take the rates of nobody and of free decisions, and the standard errors of gaps."""
        folds = self.rows.folds
        outside = folds[:, None] != np.arange(int(folds.max()) + 1)
        weights = rates.weights[:, None] * outside
        self.totals = np.asarray(rates.members @ weights).T  # (n_folds, n_rates)
        self.divisors = np.where(self.totals > 0, self.totals, 1.0)
        nobody = np.asarray(rates.counted[0] @ weights).T / self.divisors
        changed = np.asarray(rates.counted[1] @ (weights * is_selected[:, None])).T
        self.free = nobody + changed / self.divisors
        self.fixed = nobody @ self.contrasts.T  # (n_folds, n_gaps)
        n_rows = self.totals.mean(axis=0) * folds.size / max(float(rates.weights.sum()), 1e-300)
        variances = 0.25 / np.maximum(n_rows, 1.0)
        self.errors = np.sqrt(np.abs(self.contrasts) @ variances)  # (n_gaps,)

    def wanted(self, gap: float) -> FloatArray:
        """Return the gaps if the rates of each block are moved into a window, as little as can be.

        The window's length is ``gap`` times the limit.
        """
        rates = self.free.copy()
        for block in self.rows.rates.blocks:
            part = self.free[:, block.rates]
            rates[:, block.rates] = _squeezed(block, part, self.totals[:, block.rates], gap)
        return rates @ self.contrasts.T

    def are_free(self, gaps: FloatArray) -> BoolArray:
        """Whether the free decisions of each fold have these gaps."""
        missed = np.abs(gaps - self.free @ self.contrasts.T)
        return np.asarray(missed.max(axis=1, initial=0.0) < 1e-12)

    def prices(self, points: FloatArray) -> FloatArray:
        """Return the prices of the features."""
        found = points[:, :-1] @ self.features
        found[:, self.rows.everyone] += points[:, -1:]
        return np.asarray(found)

    def selection_rates(self, points: FloatArray) -> FloatArray:
        """Return the share of the rows that are selected."""
        return np.asarray((self.weights * (self._margins(points) > 0)).sum(axis=1))

    def solve(
        self,
        start: FloatArray,
        gaps: FloatArray,
        share: FloatArray | None,
        temperatures: tuple[float, ...],
        folds: BoolArray | None = None,
    ) -> FloatArray:
        """Return the points with these gaps, as far as they are worth it: Gauss-Newton, soft.

        Minimised are the missed gaps in units of their standard errors, and the multipliers in
        units of a prior: what is noise, or takes huge prices, is not chased. If no share of
        selected rows is asked for, what all rows pay stays as it is. Soft decisions can close
        gaps by leaving many rows undecided (those of equalized odds, where no thresholds do),
        and the decided rows have large gaps then. So the point at which decided rows miss
        least is returned if it is clearly better. Points of other than these ``folds`` stay.
        """
        from skfair._kernels.path_points import point_of_sums

        n_gaps = gaps.shape[1]
        wanted = np.zeros((len(start), 3, n_gaps + (share is not None)))
        wanted[:, :2, :n_gaps] = np.stack([gaps - self.fixed, self.errors + 0 * gaps], axis=1)
        wanted[:, 2, :n_gaps] = _PRIOR**-2
        if share is not None:
            wanted[:, 0, -1], wanted[:, 1, -1] = share, 1e-3
            wanted[:, 2, :n_gaps] = (_PRIOR_SEVERAL if self.has_several else _PRIOR_ALONE) ** -2
        found, warmth = start.copy(), np.array(temperatures)
        for k in range(len(start)):
            if folds is None or folds[k]:
                rows = self.gains, self.directions, self.effects[k]
                point_of_sums(*rows, wanted[k], warmth, _CLEARER, found[k])
        return found

    def misses(self, points: FloatArray, gaps: FloatArray, share: FloatArray) -> FloatArray:
        """Return how much decided rows of the other folds miss: sums of squares of ratios."""
        selected = (self._margins(points) > 0).astype(np.float64)
        reached = (selected[:, None, :] @ self.effects)[:, 0]
        missed_gaps = (reached[:, :-1] + self.fixed - gaps) / self.errors
        missed_share = (reached[:, -1] - share) / (_NEAR * np.minimum(share, 1 - share))
        return np.asarray((missed_gaps**2).sum(axis=1) + missed_share**2)

    def _margins(self, points: FloatArray) -> FloatArray:
        return np.asarray(self.gains - points @ self.directions.T)


def _contrasts(rates: RowRates) -> FloatArray:
    """Return what makes gaps of rates, shape (n_gaps, n_rates)."""
    total, found = rates.totals(), []
    for block in rates.blocks:
        first = block.rates[np.argmax(total[block.rates])]
        for rate in block.rates[block.rates != first].tolist():
            one = np.zeros(total.size)
            one[rate], one[first] = 1.0, -1.0
            found.append(one)
    return np.array(found).reshape(-1, total.size)


def _squeezed(block: Block, rates: FloatArray, total: FloatArray, gap: float) -> FloatArray:
    """Return the rates of each fold, moved into the window that is nearest to them."""
    mass = np.maximum(total.sum(axis=1, keepdims=True), 1e-300)
    mean = (rates * total).sum(axis=1, keepdims=True) / mass
    length = gap * block.limit * (mean if block.is_ratio else np.ones_like(mean))
    lows = np.concatenate([rates, rates - length, mean - length / 2], axis=1)[:, :, None]
    moved = np.clip(rates[:, None], lows, lows + length[:, None])
    distance = ((moved - rates[:, None]) ** 2 * total[:, None]).sum(axis=2)
    nearest = moved[np.arange(len(rates)), distance.argmin(axis=1)]
    return np.where(np.ptp(rates, axis=1)[:, None] <= length, rates, nearest)
