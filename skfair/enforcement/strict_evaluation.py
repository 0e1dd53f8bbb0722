"""Strict evaluation of decisions: their utility, and by how much they exceed the limits.

Smooth problems only lead near a solution. Whether limits are satisfied is counted on the rows, both
for trained models and for decisions of any model. With several classes a constraint on selection is
satisfied for each class against the rest. One on right predictions (accuracy parity) is a single
constraint for all classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.comparisons import first_of
from skfair.utils.rounding import ROUNDING

if TYPE_CHECKING:  # kernels are imported when something is fitted
    from skfair._kernels.thresholds import SortedRows

# With this many rows the utility that is expected counts as much as that of the true classes: the
# decisions that are best for the true classes of few rows are in part best for the noise in them.
_EQUAL_WEIGHT = 6_000
# Stands for the true class of each row, where a constraint counts decisions for it as selection.
TRUE_CLASS = -1


@dataclass(frozen=True)
class ClassConstraint:
    """A constraint, and the decision that it counts as selection: a class or ``TRUE_CLASS``."""

    bound: BoundConstraint
    counted: int

    @cached_property
    def effects(self) -> tuple[FloatArray, FloatArray]:
        """The utility of each row if it is refused, and the gain of selecting it, (n_samples,).

        This is the one place that says what a decision does to the rates of a constraint.
        """
        n, moment = self.bound.cells.size, self.bound.moment
        refused, chosen = (moment.strict(np.full(n, sign)) for sign in (-1.0, 1.0))
        return refused, chosen - refused

    @property
    def limits_something(self) -> bool:
        """Whether there are two rates or more to compare, or a cap, which a single rate has."""
        n_rates = np.bincount(self.bound.compared_sets).max(initial=0)
        return bool(n_rates > 1 or (n_rates and self.bound.comparison.is_cap))


@dataclass(frozen=True)
class Verdict:
    """How good a solution is, and by how much it exceeds the limits at most."""

    merit: float = 0.0
    excess: float = 0.0
    penalty: float | None = None  # for violated limits, where these are weighed against merit

    @property
    def is_feasible(self) -> bool:
        return self.excess <= ROUNDING

    @property
    def rank(self) -> tuple[float, float]:
        """The key by which the best is least: the excess over limits, then minus the merit."""
        return 0.0 if self.is_feasible else self.excess, -self.merit

    def is_better_than(self, other: Verdict) -> bool:
        """Whether this one is to be preferred: satisfied limits first, then merit.

        Where violated limits are penalised, the larger merit minus penalty is preferred.
        """
        if self.penalty is not None and other.penalty is not None:
            return self.merit - self.penalty > other.merit - other.penalty + ROUNDING
        if self.is_feasible and other.is_feasible:
            return self.merit > other.merit + ROUNDING
        return self.excess < other.excess - ROUNDING and not other.is_feasible


def excesses(constraints: Sequence[BoundConstraint], means: Sequence[FloatArray]) -> FloatArray:
    """Return by how much each disparity, given cell means, exceeds its limit beyond rounding."""
    pairs = zip(constraints, means, strict=True)
    return np.array([c.disparity_of_means(m) - (c.max_disparity + ROUNDING) for c, m in pairs])


@dataclass(frozen=True)
class Threshold:
    """A shift of the scores and what it gives."""

    shift: float  # what is added to every score
    verdict: Verdict
    is_constant: bool  # whether all rows get the same prediction


@dataclass(frozen=True)
class Decisions:
    """The decision of each row, the cell means of each constraint, and the verdict."""

    predicted: IntArray
    means: Sequence[FloatArray]
    verdict: Verdict


@dataclass(frozen=True)
class LineScan:
    """The best cutoff along a line."""

    n_above: int  # entries above it
    verdict: Verdict
    entries: SortedRows  # the rows that it may pass, and what changes if it does
    means: list[FloatArray]  # cell means if it passes none

    @property
    def above(self) -> IntArray:
        return self.entries.order[: self.n_above]

    def means_there(self) -> list[FloatArray]:
        """Return the cell means at the cutoff."""
        above, constraints = self.above, zip(self.entries.cells, self.entries.steps, strict=True)
        return [
            mean + np.bincount(cells[above], steps[above], mean.size)
            for mean, (cells, steps) in zip(self.means, constraints, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class StrictRates:
    """Constraints on rates, and what the decision about each row adds to their cell means."""

    constraints: Sequence[ClassConstraint]
    classes: IntArray  # (n_samples,): number of the true class of each row
    # (n_constraints,): the decision that each constraint counts as selection
    selecting: IntArray
    cells: IntArray  # (n_constraints, n_samples): the cell of each row in each constraint
    steps: FloatArray  # (n_constraints, n_samples): what selecting the row adds to its mean
    starts: Sequence[FloatArray]  # cell means of each constraint if nobody is selected

    @classmethod
    def of(cls, constraints: Sequence[ClassConstraint], classes: IntArray) -> StrictRates:
        """Return the rates that constraints compare; those without rates are left out."""
        limiting = [limited for limited in constraints if limited.bound.compared_sets.size]
        counted = [limited.counted for limited in limiting]
        shape = len(limiting), classes.size
        cells, steps = np.zeros(shape, np.int64), np.zeros(shape)
        for k, limited in enumerate(limiting):
            cells[k] = limited.bound.cells
            steps[k] = limited.bound.row_weights * limited.effects[1]
        starts = [limited.bound.means(limited.effects[0]) for limited in limiting]
        return cls(limiting, classes, np.array(counted, dtype=np.int64), cells, steps, starts)

    @property
    def bounds(self) -> list[BoundConstraint]:
        """The constraints on the rows, whatever decision they count."""
        return [limited.bound for limited in self.constraints]

    @cached_property
    def table(self) -> RateTable:
        """The constraints as the kernels read them."""
        return RateTable(self.bounds)

    def means(self, predicted: IntArray) -> list[FloatArray]:
        """Return the cell means of each constraint."""
        chosen = [self.classes if label < 0 else label for label in self.selecting.tolist()]
        every = zip(chosen, self.starts, self.cells, self.steps, strict=True)
        return [
            start + np.bincount(cells, steps * (predicted == label), start.size)
            for label, start, cells, steps in every
        ]

    def disparities(self, predicted: IntArray) -> list[float]:
        means = self.means(predicted)
        return [bound.disparity_of_means(m) for bound, m in zip(self.bounds, means, strict=True)]

    def added(self, k: int, combinations: sparse.csr_array, rows: IntArray) -> FloatArray:
        """Return what selecting some rows adds to combinations of the cell means of a constraint.

        The combinations are (n_combinations, n_cells), the result (n_combinations, n_rows).
        """
        return np.asarray(combinations.toarray()[:, self.cells[k][rows]] * self.steps[k][rows])

    def scaled(self, share: float, *, keep_caps: bool = False) -> StrictRates:
        """Return the rates with a share of the limits, or of those between groups only."""
        bounds = [b if keep_caps and b.comparison.is_cap else b.scaled(share) for b in self.bounds]
        constraints = [replace(c, bound=b) for c, b in zip(self.constraints, bounds, strict=True)]
        return replace(self, constraints=constraints)


@dataclass(frozen=True, eq=False)
class StrictEvaluation:
    """Evaluates decisions on the rows. Other utilities, limits and penalties: ``replace``."""

    rates: StrictRates
    weights: FloatArray  # (n_samples,): weights of the rows; they add up to 1
    # As how many rows they count: weights that are whole numbers count as this many rows each
    n_rows: float
    # (n_classes, n_classes): utility of deciding for a class (column), given the true one (row):
    # from 0 to 1
    utility: FloatArray
    # (n_samples, n_classes): probabilities of the classes, where the utility that they let expect
    # counts as well. Rates, and so the limits, are always those of the true classes
    chances: FloatArray | None = None
    penalty: float | None = None  # for exceeding a limit by 1, instead of that limits come first

    @classmethod
    def of(
        cls,
        constraints: Sequence[ClassConstraint],
        classes: IntArray,  # (n_samples,): number of the true class of each row
        weights: FloatArray,  # (n_samples,)
        utility: FloatArray,
    ) -> StrictEvaluation:
        """Return the evaluation of decisions about rows, in classes and with weights."""
        n = float(np.count_nonzero(weights) if np.any(weights % 1) else weights.sum())
        return cls(StrictRates.of(constraints, classes), weights / weights.sum(), n, utility)

    @classmethod
    def of_scores(
        cls, constraints: Sequence[BoundConstraint], targets: FloatArray, weights: FloatArray
    ) -> StrictEvaluation:
        selecting = [ClassConstraint(bound, 1) for bound in constraints]
        return cls.of(selecting, (targets > 0).astype(np.int64), weights, np.eye(2))

    @property
    def n_classes(self) -> int:
        return int(self.utility.shape[0])

    @property
    def _share_expected(self) -> float:
        """How much probabilities count, where they do; the true classes count for the rest."""
        return _EQUAL_WEIGHT / (_EQUAL_WEIGHT + self.n_rows)

    @cached_property
    def class_shares(self) -> FloatArray:
        """In which shares each row counts for each class, (n_samples, n_classes)."""
        counted = np.eye(self.n_classes)[self.rates.classes]
        if self.chances is None:
            return counted
        return np.asarray(counted + self._share_expected * (self.chances - counted))

    @cached_property
    def values(self) -> FloatArray:
        """The utility of each decision about each row, (n_samples, n_classes)."""
        values = self.utility[self.rates.classes]
        if self.chances is None:
            return values
        expected = self.chances @ self.utility
        return np.asarray(values + self._share_expected * (expected - values))

    def utility_of(self, predicted: IntArray) -> float:
        return float(self.weights @ self.values[np.arange(predicted.size), predicted])

    def __call__(self, predicted: IntArray) -> Verdict:
        """Return the verdict on the decision of every row."""
        return self.verdict(self.rates.means(predicted), self.utility_of(predicted))

    def verdict(self, means: Sequence[FloatArray], utility: float) -> Verdict:
        over = excesses(self.rates.bounds, means)
        penalty = None if self.penalty is None else self.penalty * np.maximum(over, 0.0).sum()
        return Verdict(utility, float(over.max(initial=-np.inf)), penalty)

    def threshold(self, scores: FloatArray, min_gap: float) -> Threshold:
        """Return the most accurate shift of scores within the limits, or the least violated one.

        Only thresholds with a gap of more than ``min_gap`` around them are used, so that rounding
        elsewhere cannot move a row across.
        """
        nobody = np.zeros(scores.size, np.int64)
        refused = Decisions(nobody, self.rates.starts, Verdict(self.utility_of(nobody)))
        best = self.scan(np.arange(scores.size), 1, nobody, scores, refused, min_gap)
        ordered = scores[best.entries.order]
        shift = shift_at(best.n_above, ordered, ordered, min_gap)
        return Threshold(shift, best.verdict, best.n_above in (0, scores.size))

    def scan(
        self,
        rows: IntArray,  # whose decision depends on the cutoff
        label: int,  # the class that rows above it get
        others: IntArray,  # the class that these rows get otherwise
        points: FloatArray,  # a row is above the cutoff if its value here is
        now: Decisions,  # of all rows before
        min_gap: float | None = None,  # around the cutoff; None for that of rounding
    ) -> LineScan:
        """Find the best cutoff above which rows get a class."""
        from skfair._kernels.thresholds import SortedRows

        order = np.argsort(-points)
        ordered = points[order]
        gaps = ordered[:-1] - ordered[1:]
        least = ROUNDING * (1.0 + np.abs(ordered[1:])) if min_gap is None else min_gap
        rates, before, means = self.rates, now.predicted[rows], []
        weights, of_others = self.weights[rows], self.values[rows, others]
        gains = weights * (self.values[rows, label] - of_others)
        # Summed row by row: searches without the group follow the last digit to other decisions.
        changed = np.cumsum(weights * (of_others - self.values[rows, before]))
        utility = now.verdict.merit + float(changed[-1] if rows.size else 0.0)
        cells, steps = (np.take(of_rows, rows, axis=1) for of_rows in (rates.cells, rates.steps))
        for k, (selecting, mean) in enumerate(zip(rates.selecting, now.means, strict=True)):
            chosen = rates.classes[rows] if selecting == TRUE_CLASS else selecting
            added = steps[k] * (others == chosen)
            changes = added - steps[k] * (before == chosen)
            means.append(mean + np.bincount(cells[k], changes, mean.size))
            steps[k] = steps[k] * (label == chosen) - added
        entries = SortedRows(order, gaps > least, gains, cells, steps)
        return LineScan(*rates.table.scan(entries, means, utility, self.penalty), entries, means)


def cuts_of(
    strict: StrictEvaluation, rows: IntArray, scores: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return rows by falling score, how many are above each cut between them, and its utility.

    The utility is what the second of two classes adds to that of the first for the rows above.
    """
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    ordered = scores[rows]
    is_cut = np.ones(rows.size + 1, dtype=bool)
    is_cut[1:-1] = ordered[:-1] - ordered[1:] > ROUNDING
    n_above = np.flatnonzero(is_cut)
    gains = strict.weights[rows] * (strict.values[rows, 1] - strict.values[rows, 0])
    return rows, n_above, np.concatenate([[0.0], np.cumsum(gains)])[n_above]


class RateTable:
    """Constraints on rates as the kernel reads them."""

    def __init__(self, bounds: Sequence[BoundConstraint]) -> None:
        from skfair._kernels.thresholds import ConstraintArrays

        sums = [_tracked(bound) for bound in bounds]
        self._sums = [matrix for matrix, _ in sums]
        n_cells = max((bound.n_cells for bound in bounds), default=0)
        indptr = np.zeros((len(bounds), n_cells + 1), np.int64)
        owners, shares = [np.empty(0, np.int64)], [np.empty(0)]
        used = 0
        for k, matrix in enumerate(self._sums):
            columns = sparse.csc_array(matrix)
            indptr[k, : columns.indptr.size] = columns.indptr + used
            used += columns.indices.size
            owners.append(columns.indices.astype(np.int64))
            shares.append(columns.data)
        comparisons = [bound.comparison for bound in bounds]
        self._arrays = ConstraintArrays(
            indptr=indptr,
            owners=np.concatenate(owners),
            shares=np.concatenate(shares),
            starts=np.cumsum([0, *(matrix.shape[0] for matrix in self._sums)]),
            first=np.concatenate([np.empty(0, np.int64), *(first for _, first in sums)]),
            first_starts=np.cumsum([0, *(first.size for _, first in sums)]),
            codes=np.array([comparison.code for comparison in comparisons], dtype=np.int64),
            against_overall=np.array([each.against_overall for each in comparisons], dtype=bool),
            are_quotients=np.array([bound.quotients is not None for bound in bounds], dtype=bool),
            bounds=np.array([bound.max_disparity + ROUNDING for bound in bounds]),
        )

    def scan(
        self,
        rows: SortedRows,
        start_means: Sequence[FloatArray],
        accuracy: float,
        penalty: float | None,
    ) -> tuple[int, Verdict]:
        """Return how many entries are above the best cut, and the verdict on it.

        Cell means and accuracy are those with nobody predicted positive. With a penalty for each
        unit of violated limits, the best cut has the largest merit minus penalty.
        """
        from skfair._kernels.thresholds import BestThreshold, scan_thresholds, scan_with_penalty

        sums = [matrix @ means for matrix, means in zip(self._sums, start_means, strict=True)]
        arguments = rows, self._arrays, np.concatenate([*sums, np.empty(0)]), accuracy
        cost = None
        if penalty is not None:
            n_above, missed, excess = scan_with_penalty(*arguments, penalty)
            cost = penalty * float(missed)
        else:
            # A kernel that made it itself would run Python code, and die of an interrupt there.
            best = BestThreshold(*scan_thresholds(*arguments))
            n_above, excess = best.n_above, best.excess
            if n_above < 0:
                n_above, excess = best.n_nearest, best.least_excess
        merit = accuracy + float(rows.gains[rows.order[:n_above]].sum())
        return int(n_above), Verdict(merit, float(excess), cost)


def _tracked(bound: BoundConstraint) -> tuple[sparse.csr_array, IntArray]:
    """Return what makes sums of a constraint of cell means, and where its sets start and end."""
    sets, first = bound.compared_sets, first_of(bound.compared_sets)
    order = np.arange(sets.size)
    if bound.comparison.against_overall:  # the overall rate stands last in its set
        both = np.concatenate([sets, sets[first]])
        order = np.argsort(both, kind="stable")
        sets = both[order]

    def listed(rates: sparse.csr_array, overall: sparse.csr_array) -> sparse.csr_array:
        return sparse.csr_array(sparse.vstack([rates, overall[first]], format="csr")[order])

    ends = np.append(first_of(sets), sets.size)
    if bound.quotients is None:
        return listed(bound.rates, bound.overall), ends
    rates, overall = bound.quotients
    parts = [listed(rates.sums, overall.sums), listed(rates.totals, overall.totals)]
    return sparse.csr_array(sparse.vstack(parts)), ends


def shift_at(n_above: int, highest: FloatArray, lowest: FloatArray, min_gap: float) -> float:
    """Return a shift that puts 0 between two neighbours of sorted entries, and these around it.

    The middle of the gap, but no shift at all where 0 already lies well inside it.
    """
    above = float(lowest[n_above - 1]) if n_above else np.inf
    below = float(highest[n_above]) if n_above < highest.size else -np.inf
    if above > 0.5 * min_gap and below < -0.5 * min_gap:
        return 0.0
    if np.isinf(above):
        return -below - 1.0
    if np.isinf(below):
        return -above + 1.0
    return -0.5 * (above + below)
