"""The most accurate threshold that keeps strict rates within their bounds: exact, O(n log n).

A shift of all scores changes who is predicted positive only where it passes a score, so the rates
of all groups at every threshold follow from one sorted pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.comparisons import first_of
from skfair.utils.rounding import ROUNDING

if TYPE_CHECKING:  # kernels are imported when something is fitted
    from skfair._kernels.thresholds import SortedRows


class Threshold(NamedTuple):
    """A shift of the scores and what it gives."""

    shift: float  # what is added to every score
    accuracy: float  # weighted share of right predictions
    is_feasible: bool  # whether all constraints are satisfied
    is_constant: bool  # whether all rows get the same prediction
    excess: float  # largest disparity minus its bound


class Cut(NamedTuple):
    """The best place found: entries above it, and what it gives."""

    n_above: int
    accuracy: float
    is_feasible: bool
    excess: float
    missed: float = 0.0  # by how much limits are missed, in all, where that is fined


class RateTable:
    """Rules on rates as the kernel reads them."""

    def __init__(self, rules: Sequence[BoundConstraint]) -> None:
        from skfair._kernels.thresholds import RuleArrays

        self.which = [k for k, rule in enumerate(rules) if rule.blocks.size]
        self.rules = [rules[k] for k in self.which]
        self.bounds = np.array([rule.max_disparity + ROUNDING for rule in self.rules])
        sums = [_tracked(rule) for rule in self.rules]
        self._sums = [matrix for matrix, _ in sums]
        n_cells = max((rule.n_cells for rule in self.rules), default=0)
        indptr = np.zeros((len(self.rules), n_cells + 1), np.int64)
        owners, shares = [np.empty(0, np.int64)], [np.empty(0)]
        used = 0
        for k, matrix in enumerate(self._sums):
            columns = sparse.csc_array(matrix)
            indptr[k, : columns.indptr.size] = columns.indptr + used
            used += columns.indices.size
            owners.append(columns.indices.astype(np.int64))
            shares.append(columns.data)
        comparisons = [rule.comparison for rule in self.rules]
        self._arrays = RuleArrays(
            indptr=indptr,
            owners=np.concatenate(owners),
            shares=np.concatenate(shares),
            starts=_starts(matrix.shape[0] for matrix in self._sums),
            first=np.concatenate([np.empty(0, np.int64), *(first for _, first in sums)]),
            first_starts=_starts(first.size for _, first in sums),
            codes=np.array([comparison.code for comparison in comparisons], dtype=np.int64),
            against_overall=np.array(
                [comparison.against_overall for comparison in comparisons], dtype=bool
            ),
            are_quotients=np.array([r.quotients is not None for r in self.rules], dtype=bool),
            bounds=self.bounds,
        )

    def steps_of_rows(self, n: int) -> tuple[IntArray, FloatArray, list[FloatArray]]:
        """Return what each of ``n`` rows changes if it is selected, and what is there before.

        That is, by constraint, the cell of each row, the change of its mean, and the cell means
        with nobody selected.
        """
        cells = np.zeros((len(self.rules), n), np.int64)
        steps = np.zeros((len(self.rules), n))
        start_means = []
        for k, rule in enumerate(self.rules):
            refused, chosen = (rule.moment.strict(np.full(n, s)) for s in (-1.0, 1.0))
            cells[k] = rule.cells
            steps[k] = rule.row_weights * (chosen - refused)
            start_means.append(rule.means(refused))
        return cells, steps, start_means

    def scan(
        self,
        rows: SortedRows,
        start_means: Sequence[FloatArray],
        accuracy: float,
        fine: float | None = None,
    ) -> Cut:
        """Find the best cut; cell means and accuracy are those with nobody predicted positive.

        With a fine it is that of the largest accuracy minus the fine of each unit of missed limits.
        """
        from skfair._kernels.thresholds import BestThreshold, scan_thresholds, scan_with_fines

        arguments = rows, self._arrays, self._sums_of(start_means), accuracy
        if fine is not None:
            n_above, missed, excess = scan_with_fines(*arguments, fine)
            return Cut(int(n_above), float("nan"), excess <= 0, float(excess), float(missed))
        # A kernel that made it itself would run Python code, and die of an interrupt there.
        best = BestThreshold(*scan_thresholds(*arguments))
        if best.n_above >= 0:
            return Cut(int(best.n_above), float(best.accuracy), True, float(best.excess))
        return Cut(int(best.n_nearest), float("nan"), False, float(best.least_excess))

    def _sums_of(self, means: Sequence[FloatArray]) -> FloatArray:
        """Return the sums of all constraints, given their cell means."""
        sums = [matrix @ of_rule for matrix, of_rule in zip(self._sums, means, strict=True)]
        return np.concatenate([*sums, np.empty(0)])


def _tracked(rule: BoundConstraint) -> tuple[sparse.csr_array, IntArray]:
    """Return what makes sums of a constraint of cell means, and where its blocks start and end."""
    blocks, first = rule.blocks, first_of(rule.blocks)
    order = np.arange(blocks.size)
    if rule.comparison.against_overall:  # the overall rate stands last in its block
        both = np.concatenate([blocks, blocks[first]])
        order = np.argsort(both, kind="stable")
        blocks = both[order]

    def listed(rates: sparse.csr_array, overall: sparse.csr_array) -> sparse.csr_array:
        return sparse.csr_array(sparse.vstack([rates, overall[first]], format="csr")[order])

    ends = np.append(first_of(blocks), blocks.size)
    if rule.quotients is None:
        return listed(rule.rates, rule.overall), ends
    rates, overall = rule.quotients
    parts = [listed(rates.sums, overall.sums), listed(rates.totals, overall.totals)]
    return sparse.csr_array(sparse.vstack(parts)), ends


def _starts(sizes: Iterable[int]) -> IntArray:
    """Return where parts of given sizes start, and the end of the last one."""
    return np.cumsum([0, *sizes])


class ThresholdScan:
    """Scans thresholds for given constraints and targets; prepared once, used for many scores."""

    def __init__(
        self,
        rules: Sequence[BoundConstraint],  # constraints on rates only
        targets: FloatArray,  # (n_samples,): -1 and 1
        weights: FloatArray,  # (n_samples,): weights of the rows in the accuracy; they add up to 1
    ) -> None:
        self._table = RateTable(rules)
        self._gains = weights * targets
        self._accuracy_without = float(weights @ (targets < 0))
        self._cells, self._steps, self._start_means = self._table.steps_of_rows(targets.size)

    def __call__(self, scores: FloatArray, min_gap: float) -> Threshold:
        """Return the most accurate shift within the limits, else the one that misses least.

        Only thresholds with a gap of more than ``min_gap`` around them are used, so that rounding
        elsewhere cannot move a row across.
        """
        from skfair._kernels.thresholds import SortedRows

        order = np.argsort(-scores, kind="stable")
        ordered = scores[order]
        can_cut = ordered[:-1] - ordered[1:] > min_gap
        sorted_arrays = (
            np.take(array, order, axis=-1) for array in (self._gains, self._cells, self._steps)
        )
        rows = SortedRows(np.arange(scores.size), can_cut, *sorted_arrays)
        cut = self._table.scan(rows, self._start_means, self._accuracy_without)
        return threshold_at(cut, ordered, ordered, min_gap)


def threshold_at(cut: Cut, highest: FloatArray, lowest: FloatArray, min_gap: float) -> Threshold:
    """Return the shift of a cut, given the highest and lowest score of each sorted entry."""
    n_above = cut.n_above
    above = lowest[n_above - 1] if n_above else np.inf
    below = highest[n_above] if n_above < highest.size else -np.inf
    return Threshold(
        shift=_shift_between(float(above), float(below), min_gap),
        accuracy=cut.accuracy,
        is_feasible=cut.is_feasible,
        is_constant=n_above in (0, highest.size),
        excess=cut.excess,
    )


def _shift_between(above: float, below: float, gap: float) -> float:
    """Return a shift that puts 0 between two neighbouring scores.

    The middle of the gap, but no shift at all where 0 already lies well inside it.
    """
    if above > 0.5 * gap and below < -0.5 * gap:
        return 0.0
    if np.isinf(above):
        return -below - 1.0
    if np.isinf(below):
        return -above + 1.0
    return -0.5 * (above + below)
