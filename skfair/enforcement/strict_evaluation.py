"""Strict evaluation of decisions: their utility, and by how much they exceed the limits.

Smooth problems only lead near a solution. Whether limits are satisfied is counted on the rows here,
for trained scores (``skfair/enforcement/erm``) and for decisions of any model
(``skfair/enforcement/decisions``). Rates of groups are made of *cell means*. A cell is the part of
the rows over which a constraint averages, for example the positives of a group. The classes follow
from what a caller makes to what it gets:

- :class:`ClassConstraint`: a constraint, and which decision it counts as selection. With several
  classes, a constraint on selection becomes one for each class against the rest. A constraint on
  correct predictions (accuracy parity) stays a single one for all classes.
- :class:`StrictRates`: what each decision adds to the cell means of all constraints.
- :class:`StrictEvaluation`: adds the utility of decisions. Called with the decision of every row,
  it returns a :class:`Verdict`. :meth:`~StrictEvaluation.scan` finds the best cutoff along a line
  of decisions, and :meth:`~StrictEvaluation.threshold` the best shift of scores.
- :class:`RateTable`: the constraints as arrays for the kernels that scan cutoffs.
- :func:`cuts_of` and :func:`shift_at`: cuts between sorted scores, and the shift for a cut.

To *select* a row is to take the decision that a constraint counts, and to *refuse* it is any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.comparisons import first_of
from skfair.utils.rounding import ROUNDING

if TYPE_CHECKING:  # kernels are imported when something is fitted
    from skfair._kernels.thresholds import SortedRows

# Decisions that are best for the true classes of few rows are in part best for the noise in them.
# So the utility that is expected by probabilities has the weight _EQUAL_WEIGHT / (_EQUAL_WEIGHT +
# n_rows), and the utility for the true classes the rest: half each with this many rows. With a
# third of this number, another seed changes twice as many group-aware decisions under demographic
# parity. Expected utility alone costs 0.006 of accuracy at limits of 0.002 on COMPAS.
_EQUAL_WEIGHT = 20_000
# Stands in the place of a class if a constraint counts decisions for the true class of each row.
TRUE_CLASS = -1


@dataclass(frozen=True)
class ClassConstraint:
    """A constraint, and the decision that it counts as selection: a class or ``TRUE_CLASS``."""

    bound: BoundConstraint
    counted: int

    @cached_property
    def effects(self) -> tuple[FloatArray, FloatArray]:
        """The moment of each row if it is refused, and its change if it is selected, (n_samples,).

        The moment is the number that cells average, such as 1 for selected rows and 0 for others.
        Nothing else says what a decision does to the rates of a constraint.
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

    merit: float = 0.0  # larger is better: utility, accuracy or minus a loss
    excess: float = 0.0  # the largest disparity minus its limit; -inf without constraints
    # Cost of the violated limits, if violations are weighed against merit; None if satisfied limits
    # come first
    penalty: float | None = None

    @property
    def is_feasible(self) -> bool:
        """Whether all limits are satisfied, up to rounding."""
        return self.excess <= ROUNDING

    @property
    def rank(self) -> tuple[float, float]:
        """The key by which the best verdict sorts first: excess over limits, then minus the merit.

        The penalty plays no part in it.
        """
        return 0.0 if self.is_feasible else self.excess, -self.merit

    def is_better_than(self, other: Verdict) -> bool:
        """Whether this one is to be preferred: satisfied limits first, then merit.

        If both have a penalty, the one with the larger merit minus penalty is preferred.
        """
        if self.penalty is not None and other.penalty is not None:
            return self.merit - self.penalty > other.merit - other.penalty + ROUNDING
        if self.is_feasible and other.is_feasible:
            return self.merit > other.merit + ROUNDING
        return self.excess < other.excess - ROUNDING and not other.is_feasible


def excesses(constraints: Sequence[BoundConstraint], means: Sequence[FloatArray]) -> FloatArray:
    """Return each disparity, given cell means, minus its limit and the allowance for rounding."""
    pairs = zip(constraints, means, strict=True)
    return np.array([c.disparity_of_means(m) - (c.max_disparity + ROUNDING) for c, m in pairs])


@dataclass(frozen=True)
class Threshold:
    """A shift of the scores, and the verdict on the decisions by the sign of shifted scores."""

    shift: float  # number that is added to every score
    verdict: Verdict
    is_constant: bool  # whether all rows get the same prediction


@dataclass(frozen=True)
class Decisions:
    """Decisions about all rows, with the sums that further scans start from."""

    predicted: IntArray  # (n_samples,): number of the class that each row gets
    means: Sequence[FloatArray]  # cell means of each constraint
    verdict: Verdict


@dataclass(frozen=True)
class LineScan:
    """The best cutoff along a line, which is found by :meth:`StrictEvaluation.scan`."""

    n_above: int  # number of rows above the cutoff
    verdict: Verdict  # verdict on the decisions at the cutoff
    entries: SortedRows  # the scanned rows, and what changes when the cutoff passes each of them
    means: list[FloatArray]  # cell means of each constraint if no row is above the cutoff

    @property
    def above(self) -> IntArray:
        """The rows above the cutoff, as places among the scanned rows."""
        return self.entries.order[: self.n_above]

    def means_there(self) -> list[FloatArray]:
        """Return the cell means of each constraint at the cutoff."""
        above, constraints = self.above, zip(self.entries.cells, self.entries.steps, strict=True)
        return [
            mean + np.bincount(cells[above], steps[above], mean.size)
            for mean, (cells, steps) in zip(self.means, constraints, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class StrictRates:
    """Constraints on rates, and what selecting each row adds to their cell means."""

    constraints: Sequence[ClassConstraint]
    classes: IntArray  # (n_samples,): number of the true class of each row
    # (n_constraints,): the class whose decision each constraint counts as selection, or TRUE_CLASS
    selecting: IntArray
    cells: IntArray  # (n_constraints, n_samples): the cell of each row in each constraint
    # (n_constraints, n_samples): what selecting the row adds to the mean of its cell
    steps: FloatArray
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
        """The constraints on the rows, without the decisions that they count."""
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
        """Return the disparity that each constraint limits."""
        means = self.means(predicted)
        return [bound.disparity_of_means(m) for bound, m in zip(self.bounds, means, strict=True)]

    def added(self, k: int, combinations: sparse.csr_array, rows: IntArray) -> FloatArray:
        """Return what selecting each of ``rows`` adds to combinations of the means of constraint k.

        Each line of ``combinations``, (n_combinations, n_cells), is one, for example the rate of a
        group. The result has the shape (n_combinations, n_rows).
        """
        return np.asarray(combinations.toarray()[:, self.cells[k][rows]] * self.steps[k][rows])

    def scaled(self, share: float, *, keep_caps: bool = False) -> StrictRates:
        """Return the rates with all limits multiplied by a share, or with caps left as they are."""
        bounds = [b if keep_caps and b.comparison.is_cap else b.scaled(share) for b in self.bounds]
        constraints = [replace(c, bound=b) for c, b in zip(self.constraints, bounds, strict=True)]
        return replace(self, constraints=constraints)


@dataclass(frozen=True, eq=False)
class StrictEvaluation:
    """Evaluates decisions on the rows.

    Callers use :func:`dataclasses.replace` to get an evaluation with another utility, other limits,
    or a penalty.
    """

    rates: StrictRates
    weights: FloatArray  # (n_samples,): weights of the rows; they add up to 1
    # Number of rows that the weights stand for: their sum if all are whole numbers, which then
    # count copies of rows; otherwise the number of rows of positive weight
    n_rows: float
    # (n_classes, n_classes), from 0 to 1: utility of deciding for a class (column), given the true
    # one (row)
    utility: FloatArray
    # (n_samples, n_classes): probabilities of the classes. If given, utility is a weighted mean of
    # the utility for the true class and the utility expected by the probabilities. If None, it is
    # the utility for the true class. Rates, and so the limits, always count the true classes
    chances: FloatArray | None = None
    # Cost of exceeding a limit by 1. If None, satisfied limits come first
    penalty: float | None = None
    # (n_samples, n_classes): added to the utility of each decision, so that a search prefers
    # decisions near given ones; None for the utility alone
    favoured: FloatArray | None = None

    @classmethod
    def of(
        cls,
        constraints: Sequence[ClassConstraint],
        classes: IntArray,  # (n_samples,): number of the true class of each row
        weights: FloatArray,  # (n_samples,)
        utility: FloatArray,
    ) -> StrictEvaluation:
        """Return the evaluation of decisions for one of several classes."""
        n = float(np.count_nonzero(weights) if np.any(weights % 1) else weights.sum())
        return cls(StrictRates.of(constraints, classes), weights / weights.sum(), n, utility)

    @classmethod
    def of_scores(
        cls, constraints: Sequence[BoundConstraint], targets: FloatArray, weights: FloatArray
    ) -> StrictEvaluation:
        """Return the evaluation of binary predictions by accuracy, which selects the class 1."""
        selecting = [ClassConstraint(bound, 1) for bound in constraints]
        return cls.of(selecting, (targets > 0).astype(np.int64), weights, np.eye(2))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.utility.shape[0])

    @property
    def _share_expected(self) -> float:
        """The weight of probabilities in the utility; the true classes have the rest of 1."""
        return _EQUAL_WEIGHT / (_EQUAL_WEIGHT + self.n_rows)

    @cached_property
    def class_shares(self) -> FloatArray:
        """The share of each row that counts as each true class, (n_samples, n_classes)."""
        counted = np.eye(self.n_classes)[self.rates.classes]
        if self.chances is None:
            return counted
        return np.asarray(counted + self._share_expected * (self.chances - counted))

    @cached_property
    def values(self) -> FloatArray:
        """The utility of each decision about each row, (n_samples, n_classes)."""
        values = self.utility[self.rates.classes]
        if self.chances is not None:
            expected = self.chances @ self.utility
            values = np.asarray(values + self._share_expected * (expected - values))
        return values if self.favoured is None else values + self.favoured

    @cached_property
    def _value_columns(self) -> FloatArray:
        """``values`` by class, (n_classes, n_samples), in the order in which scans read them."""
        return np.ascontiguousarray(self.values.T)

    def utility_of(self, predicted: IntArray) -> float:
        """Return the mean utility of the decision about every row."""
        return float(self.weights @ self.values[np.arange(predicted.size), predicted])

    def __call__(self, predicted: IntArray) -> Verdict:
        """Return the verdict on the decision of every row."""
        return self.verdict(self.rates.means(predicted), self.utility_of(predicted))

    def verdict(self, means: Sequence[FloatArray], utility: float) -> Verdict:
        """Return the verdict on decisions with these cell means and this utility."""
        over = excesses(self.rates.bounds, means)
        penalty = None if self.penalty is None else self.penalty * np.maximum(over, 0.0).sum()
        return Verdict(utility, float(over.max(initial=-np.inf)), penalty)

    def threshold(self, scores: FloatArray, min_gap: float) -> Threshold:
        """Return the shift of scores that is best within the limits, or that violates them least.

        A row is selected if its shifted score is above 0. Only thresholds between scores more than
        ``min_gap`` apart are used, so that rounding elsewhere cannot move a row across.
        """
        nobody = np.zeros(scores.size, np.int64)
        refused = Decisions(nobody, self.rates.starts, Verdict(self.utility_of(nobody)))
        best = self.scan(np.arange(scores.size), 1, nobody, scores, refused, min_gap)
        ordered = scores[best.entries.order]
        shift = shift_at(best.n_above, ordered, ordered, min_gap)
        return Threshold(shift, best.verdict, best.n_above in (0, scores.size))

    def scan(
        self,
        rows: IntArray,  # (n,): rows whose decision depends on the cutoff, in rising order
        label: int,  # the class that a row gets if its point is above the cutoff
        others: IntArray,  # (n,): the class that each row gets if its point is below the cutoff
        points: FloatArray,  # (n,): the number of each row that is compared with the cutoff
        now: Decisions,  # the present decisions about all rows; rows that are not scanned keep them
        # A cutoff may only lie between points that are further apart than this. If None, they must
        # be further apart than rounding may change
        min_gap: float | None = None,
    ) -> LineScan:
        """Find the best cutoff above which rows get the class ``label``.

        The cell means and the utility are first taken to the state with no row above the cutoff.
        The kernel then lets the cutoff fall from row to row.
        """
        from skfair._kernels.thresholds import SortedRows

        order = np.argsort(-points)
        ordered = points[order]
        gaps = ordered[:-1] - ordered[1:]
        least = ROUNDING * (1.0 + np.abs(ordered[1:])) if min_gap is None else min_gap
        rates, means = self.rates, []
        is_all = rows.size == self.weights.size

        def of_rows(of_all: NDArray[Any]) -> NDArray[Any]:
            return of_all if is_all else np.take(of_all, rows, axis=-1)

        before, weights = of_rows(now.predicted), of_rows(self.weights)
        of_class = of_rows(self._value_columns)
        below: Any = others
        if self.n_classes == 2:  # one number for all rows, in place of an array, saves time
            below = np.int64(1 - label)
            of_below = of_class[below]
            of_before = np.where(before == label, of_class[label], of_below)
        else:
            places = np.arange(rows.size)
            of_below, of_before = of_class[others, places], of_class[before, places]
        gains = weights * (of_class[label] - of_below)
        # Summed row by row, not by a product: the last digit of this sum decides which decisions
        # searches without the group find.
        changed = np.cumsum(weights * (of_below - of_before))
        utility = now.verdict.merit + float(changed[-1] if rows.size else 0.0)
        cells, single = of_rows(rates.cells), of_rows(rates.steps)
        steps = np.empty_like(single)
        for k, (selecting, mean) in enumerate(zip(rates.selecting, now.means, strict=True)):
            # A row is selected if its decision is the ``chosen`` class.
            chosen = of_rows(rates.classes) if selecting == TRUE_CLASS else selecting
            added = single[k] * (below == chosen)
            changes = added - single[k] * (before == chosen)
            means.append(mean + np.bincount(cells[k], changes, mean.size))
            steps[k] = single[k] * (label == chosen) - added
        entries = SortedRows(order, gaps > least, gains, cells, steps)
        return LineScan(*rates.table.scan(entries, means, utility, self.penalty), entries, means)


def cuts_of(
    strict: StrictEvaluation, rows: IntArray, scores: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return rows by falling score, the number of them above each cut, and the gain of each cut.

    The gain is what the rows above the cut add to the utility if they get the second of two classes
    instead of the first. There is no cut between scores that are equal up to rounding.
    """
    rows = rows[np.argsort(-scores[rows], kind="stable")]
    ordered = scores[rows]
    is_cut = np.ones(rows.size + 1, dtype=bool)
    is_cut[1:-1] = ordered[:-1] - ordered[1:] > ROUNDING
    n_above = np.flatnonzero(is_cut)
    gains = strict.weights[rows] * (strict.values[rows, 1] - strict.values[rows, 0])
    return rows, n_above, np.concatenate([[0.0], np.cumsum(gains)])[n_above]


class RateTable:
    """Constraints on rates in the arrays of ``skfair/_kernels/thresholds.py``.

    The kernel keeps one running sum per rate (two if rates are quotients). ``indptr``, ``owners``
    and ``shares`` are a sparse matrix by columns: a cell's column lists the sums that it enters.
    """

    def __init__(self, bounds: Sequence[BoundConstraint]) -> None:
        from skfair._kernels.thresholds import ConstraintArrays

        sums = [_tracked(bound) for bound in bounds]
        self._sums = [matrix for matrix, _ in sums]
        n_cells = max((bound.n_cells for bound in bounds), default=0)
        indptr = np.zeros((len(bounds), n_cells + 1), np.int64)
        owners, shares = [np.empty(0, np.int64)], [np.empty(0)]
        used = 0  # number of entries of the constraints before
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

        ``start_means`` and ``accuracy`` are the cell means and the merit with no entry above the
        cut. If ``penalty`` is None, the best cut is the one of largest merit within the limits, or
        the one that violates them least if none is within. Otherwise the best cut has the largest
        merit minus penalty times violation.
        """
        from skfair._kernels.thresholds import BestThreshold, scan_thresholds, scan_with_penalty

        sums = [matrix @ means for matrix, means in zip(self._sums, start_means, strict=True)]
        arguments = rows, self._arrays, np.concatenate([*sums, np.empty(0)]), accuracy
        cost = None
        if penalty is not None:
            n_above, missed, excess = scan_with_penalty(*arguments, penalty)
            cost = penalty * float(missed)
        else:
            # The named tuple is made here: a kernel that makes one runs Python code, and dies if it
            # is interrupted there.
            best = BestThreshold(*scan_thresholds(*arguments))
            n_above, excess = best.n_above, best.excess
            if n_above < 0:  # no cut is within the limits
                n_above, excess = best.n_nearest, best.least_excess
        merit = accuracy + float(rows.gains[rows.order[:n_above]].sum())
        return int(n_above), Verdict(merit, float(excess), cost)


def _tracked(bound: BoundConstraint) -> tuple[sparse.csr_array, IntArray]:
    """Return the matrix that makes running sums of the cell means, and where compared sets start.

    Its lines are the rates of each compared set, followed by the overall rate of the set if rates
    are compared with it. If rates are quotients, the lines of their totals follow after all lines
    of their sums. The second array has the first line of each set, and the end of the last one.
    """
    sets, first = bound.compared_sets, first_of(bound.compared_sets)
    order = np.arange(sets.size)
    if bound.comparison.against_overall:
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
    """Return the shift after which the first ``n_above`` of sorted entries are above 0.

    Entries are in falling order, and each stands for scores from ``lowest`` to ``highest``. The
    shift moves the middle of the gap to 0, unless 0 already lies well inside the gap: then there is
    no shift. If all or no entries are to be above 0, the nearest one is moved to 1 or -1.
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
