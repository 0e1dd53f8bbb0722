"""Search for offsets whose decisions satisfy the limits, as counted on the rows.

The estimators make an :class:`OffsetSearch` of the rows, the limits and the shares of the rows in
features (``shares.py``). :func:`skfair.enforcement.decisions.search.search_decisions` calls its
method :meth:`OffsetSearch.search`, which returns the best :class:`Candidate` found:

1. Soft offsets satisfy the constraints in expectation (``dual.py``).
2. Counted values differ from expected ones, because a row gets one whole decision and probabilities
   are not exact. So in each *round* the bounds are moved by this difference, and solved again.
3. Exact line searches (``lines.py``) improve the best result of the rounds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.special import softmax

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.dual import SoftRows, solve_dual
from skfair.enforcement.decisions.lines import (
    MOST_SORTED,
    NEAR,
    Candidate,
    common_lines,
    decided,
    exchange,
)
from skfair.enforcement.decisions.rows import Features, LinearRows, linear_rows
from skfair.enforcement.decisions.shares import Shares, by_column, margins, with_ties_broken
from skfair.enforcement.decisions.smooth import MARGINS, STAGES, SmoothRows
from skfair.enforcement.rounds import DAMPING, MAX_ROUNDS, PATIENCE, moved_bounds
from skfair.enforcement.strict_evaluation import StrictEvaluation

# Soft offsets are found at these temperatures in turn. At the last one nearly all decisions are
# hard.
TEMPERATURES = (0.05, 0.01, 0.002)
# Soft offsets are found on samples of the rows: of about FEW rows first, and of about SAMPLE rows
# at the last temperature.
SAMPLE, FEW = 10_000, 4_000
# Up to this number, soft offsets are found on all rows.
MOST_EXACT = 12_500
# Largest number of iterations of the dual: FIRST_STEPS at each temperature, STEPS in each round.
FIRST_STEPS, STEPS = 40, 15
# Bounds are made tighter by at most this much in a round.
_LARGEST_MARGIN = 0.004
# Utility of agreeing with the soft decisions, as a share of the range of the utility. With other
# folds soft decisions change for 0.1% to 5% of the people, and the best ones within the limits as
# counted for 5% to 28%. With twice this share, limits on COMPAS cost 0.003 more accuracy in 4 of 56
# cells of the frontier, and a tenth fewer decisions change. Half of it changes a fifth more.
_NEARNESS = 0.15
# Decisions are near the soft ones if at most this share of them differs. The smooth search changes
# 1% to 15% at limits above chance, and 34% at most. Where it fails, 40% to 50% may differ.
_NEAR = 0.35
# Cost of the last line searches, at most, in numbers of evaluated rows.
SEARCHED_ROWS = 1e6


@dataclass
class OffsetSearch:
    """Searches the best offsets for fixed rows, limits and shares.

    Attributes
    ----------
    strict : StrictEvaluation
        Constraints, classes and weights.
    features : Features
        How features are numbered.
    kinds : ndarray of shape (n_samples,)
        Stratum and true class of each row, as one number.
    values : ndarray of shape (n_samples, n_classes)
        Expected utility of each decision.
    shares : Shares
        What rows are expected to add to rates.
    rng : RandomState
        Draws the sample.
    tie_weight : float, default=0.0
        Weight of the term v log v that was added to the expected utility v in ``values``.
    start : tuple, default=None
        Linear constraints, sampled rows and multipliers of another search, from which this one
        starts. If None, it starts from multipliers of 0 at the highest temperature.
    """

    strict: StrictEvaluation
    features: Features
    kinds: IntArray
    values: FloatArray
    shares: Shares
    rng: np.random.RandomState
    tie_weight: float = 0.0
    start: tuple[LinearRows, SoftRows, FloatArray] | None = None

    def candidate(self, offsets: FloatArray) -> Candidate:
        return Candidate(self.strict, self.values, self.shares, offsets, self._columns)

    @cached_property
    def _columns(self) -> FloatArray | sparse.csc_array:
        return by_column(self.shares)

    @cached_property
    def free(self) -> Candidate:
        """The decisions without constraints."""
        return self.candidate(np.zeros((self.features.size, self.strict.n_classes)))

    def simple(self) -> list[Candidate]:
        """Return the decisions without constraints, and for each class, that class for all rows."""
        # An offset of -``far`` outweighs all differences of utility.
        shape, far = self.free.offsets.shape, 1.0 + float(np.ptp(self.values))
        constants = [np.zeros(shape) for _ in range(shape[1])]
        for label, constant in enumerate(constants):
            constant[self.features.of(self.features.everyone), label] = -far
        return [self.free, *map(self.candidate, constants)]

    def one_threshold(self) -> Candidate:
        """Return the decisions without constraints, moved along the lines of all rows."""
        best = self.candidate(self.free.offsets)
        for label, which in common_lines(self.strict, self.features):
            best.exchange(label, which, self.kinds.size)
        return best

    def exchange(self, best: Candidate) -> Candidate:
        """Return the candidate after searches along all lines."""
        n_sweeps = 1 if self.start is not None and self.kinds.size > SAMPLE else 2
        return exchange(best, self.features, n_sweeps=n_sweeps, max_rows=SEARCHED_ROWS)

    def with_ties_broken(self, weight: float) -> OffsetSearch:
        """Return a search with v log v added to v, which starts at the multipliers of this one."""
        rows, data, multipliers = self._soft
        data = SoftRows(with_ties_broken(data.values, weight), data.shares, data.weights)
        values = with_ties_broken(self.values, weight)
        return replace(self, values=values, tie_weight=weight, start=(rows, data, multipliers))

    def under(self, strict: StrictEvaluation) -> OffsetSearch:
        """Return a search under other limits, which starts at the multipliers of this one."""
        other = replace(self, strict=strict)
        if other.free.verdict.is_feasible:
            return other
        _, data, multipliers = self._soft
        return replace(other, start=(other._rows_near(other.free, data), data, multipliers))

    def near_soft(self) -> OffsetSearch:
        """Return a search that prefers decisions near the soft ones to equally good other ones.

        Where there is no smooth search (``smooth.py``), the search is returned as it is. With more
        than MOST_EXACT rows decisions hold still anyway, and the smooth search takes longer.
        """
        has_quotients = any(bound.quotients is not None for bound in self.strict.rates.bounds)
        is_free = self.free.verdict.is_feasible
        if is_free or has_quotients or self.strict.n_classes > 2 or self._is_sampled:
            return self
        bonus = _NEARNESS * float(np.ptp(self.strict.utility))
        favoured = bonus * np.eye(self.strict.n_classes)[self.soft().predicted]
        return replace(self, strict=replace(self.strict, favoured=favoured), start=self._soft)

    def is_near_soft(self, candidate: Candidate) -> bool:
        """Whether the search prefers decisions near the soft ones, and has found them.

        They satisfy the limits.
        """
        if self.strict.favoured is None or not candidate.verdict.is_feasible:
            return False
        is_other = candidate.predicted != self.soft().predicted
        return float(self.strict.weights @ is_other) <= _NEAR

    @property
    def _is_sampled(self) -> bool:
        """Whether soft offsets are found on a sample of the rows."""
        return self.kinds.size > MOST_EXACT

    def soft(self) -> Candidate:
        """Return the decisions at soft offsets, which nearly satisfy the limits."""
        rows, _, multipliers = self._soft
        return self.candidate(self._offsets(rows, multipliers))

    def lost(self, candidate: Candidate) -> float:
        """Return the expected utility of soft decisions minus the one of the candidate."""
        data = self._soft[1]
        chosen = decided(margins(data.values, data.shares, candidate.offsets))
        return self.outlook() - float(data.weights @ data.values[np.arange(chosen.size), chosen])

    def outlook(self) -> float:
        """Return the expected utility of soft decisions."""
        rows, data, multipliers = self._soft
        of_classes = margins(data.values, data.shares, self._offsets(rows, multipliers))
        chances = softmax(of_classes / TEMPERATURES[-1], axis=1)
        return float(data.weights @ (chances * data.values).sum(axis=1))

    @cached_property
    def _soft(self) -> tuple[LinearRows, SoftRows, FloatArray]:
        """Constraints near free decisions, sampled rows, and the multipliers of soft decisions."""
        if self.start is not None:
            rows, data, multipliers = self.start
            return rows, data, solve_dual(data, rows, multipliers, TEMPERATURES[-1], STEPS)
        few, data = self._samples()
        rows = self._rows_near(self.free, data)
        multipliers = np.zeros(rows.upper.size)
        for temperature, some in zip(TEMPERATURES, (few, few, data), strict=True):
            multipliers = solve_dual(some, rows, multipliers, temperature, FIRST_STEPS)
        return rows, data, multipliers

    def search(self) -> Candidate:
        """Return the best offsets of all rounds and of the line searches after them."""
        best = self.free
        if best.verdict.is_feasible:
            return best
        rows, data, multipliers = self._soft
        if self.strict.favoured is not None:
            near = self.exchange(self._smoothed(rows, multipliers))
            if near.verdict.is_feasible:
                return near
        # Bounds move by ``shift``, the difference of counted and expected values, and inside by
        # ``margin``. n_idle counts rounds that satisfy the limits without being better.
        shift, margin, n_idle = np.zeros(rows.upper.size), 0.0, 0
        is_sampled = data.weights.size < self.kinds.size
        for n_done in range(MAX_ROUNDS):
            candidate = self.candidate(self._offsets(rows, multipliers))
            missed, excess = self._missed(rows, candidate, data), candidate.verdict.excess
            for label, which in common_lines(self.strict, self.features):
                candidate.exchange(label, which, NEAR if best.verdict.is_feasible else MOST_SORTED)
            n_idle += candidate.verdict.is_feasible
            if candidate.verdict.is_better_than(best.verdict):
                best, n_idle = candidate, 0
            is_settled = n_done > 2 and np.abs(missed - shift).max(initial=0.0) < 1e-3
            # Without a sample (few rows) all rounds are made, because late ones may gain much.
            is_idle = is_sampled and n_idle == PATIENCE
            is_last = n_done + 1 == MAX_ROUNDS
            if is_last or (best.verdict.is_feasible and (is_settled or is_idle)):
                break
            shift += DAMPING * (missed - shift)
            excess = max(excess, candidate.verdict.excess)
            if n_done > 0 and excess > 0:
                margin += min(1.1 * excess, _LARGEST_MARGIN)
            if any(bound.quotients is not None for bound in self.strict.rates.bounds):
                rows = self._rows_near(candidate, data)  # quotients are linear only near decisions
            lower, upper = moved_bounds(rows.lower, rows.upper, shift, margin)
            tighter = rows._replace(lower=lower, upper=upper)
            multipliers = solve_dual(data, tighter, multipliers, TEMPERATURES[-1], STEPS)
        return self.exchange(best)

    def _smoothed(self, rows: LinearRows, multipliers: FloatArray) -> Candidate:
        """Return decisions near the soft ones, which mostly satisfy the limits as counted.

        The limits are made tighter until they do. Where decisions violate them, the offset that all
        rows share is searched first, which meets a selection rate exactly.
        """
        smooth = SmoothRows(self.strict, self.values, self.shares)
        middle = np.full(smooth.n_centers, 0.5)
        point = np.concatenate([self._offsets(rows, multipliers)[:, 1], middle])
        best = self.free
        for margin in MARGINS:
            for temperature, steepness in STAGES[-1:] if margin else STAGES:
                point = smooth.moved(point, temperature, steepness, margin)
            second = point[: self.features.size]
            trial = self.candidate(np.column_stack([np.zeros_like(second), second]))
            for label, which in common_lines(self.strict, self.features):
                if not trial.verdict.is_feasible:
                    trial.exchange(label, which, self.kinds.size)
            if trial.verdict.is_better_than(best.verdict):
                best = trial
            if best.verdict.is_feasible:
                break
        return best

    def _samples(self) -> tuple[SoftRows, SoftRows]:
        """Return two samples of the rows, of FEW and of SAMPLE rows, or all rows if there are few.

        They are stratified by kind, and by the cells (groups, or classes within groups) of the
        constraint with the most cells.
        """
        data = SoftRows(self.values, self.shares, self.strict.weights)
        cells = max(self.strict.rates.cells, key=lambda cells: cells.max())
        strata = cells * self.features.n_kinds + self.kinds
        if self._is_sampled:
            data, strata = data.sample(SAMPLE, strata, self.rng)
        if strata.size > 1.25 * FEW:
            return data.sample(FEW, strata, self.rng)[0], data
        return data, data

    def _rows_near(self, candidate: Candidate, data: SoftRows) -> LinearRows:
        """Return the constraints as linear inequalities, near the decisions of a candidate.

        Weights of features are expected ones if groups are known (shares are then sparse), and
        counted ones if groups are estimated.
        """
        is_estimated = isinstance(self.shares, np.ndarray)
        means, totals = candidate.decisions.means, None if is_estimated else data.totals
        return linear_rows(self.strict, self.features, self.kinds, means, totals)

    def _offsets(self, rows: LinearRows, multipliers: FloatArray) -> FloatArray:
        """Return the offsets of multipliers, minus the offset of the first class.

        A number added to the offsets of all classes changes no decision.
        """
        shape = self.features.size, self.strict.n_classes
        offsets: FloatArray = np.asarray(rows.matrix.T @ multipliers).reshape(shape)
        return offsets - offsets[:, :1]

    def _missed(self, rows: LinearRows, candidate: Candidate, data: SoftRows) -> FloatArray:
        """Return the counted minus the expected value of each linear row."""
        _, table = data.soft_table(candidate.offsets, TEMPERATURES[-1])
        pairs = zip(self.strict.rates.bounds, candidate.decisions.means, strict=True)
        strict = np.concatenate([bound.row_values(means) for bound, means in pairs])
        return np.asarray(strict - rows.fixed - rows.matrix @ table.ravel())
