"""The most accurate threshold of very many scores in memory: bins first, then few rows near it.

Branch and bound as for rows that lie elsewhere (:mod:`skfair.enforcement.thresholds.search`), with
the result of sorting all scores: only those in bins that may hold the best threshold are sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.enforcement.thresholds.scan import RateTable, Threshold, ThresholdScan, threshold_at
from skfair.enforcement.thresholds.search import (
    MAX_CELLS,
    N_SAMPLED,
    N_SPLIT,
    Bins,
    Inside,
    ThresholdSearch,
    merged_bins,
    no_rows,
)
from skfair.problems.erm.in_blocks import PartitionedERM
from skfair.problems.erm.in_memory import ConstrainedERM
from skfair.problems.erm.problem import RuledProblem
from skfair.utils.threads import over_blocks

# From so many scores on they are put into bins.
_MANY = 25_000
# The share of scores beyond each end of the range of the bins.
_TAIL = 0.002
# Parts of the rows whose counts are kept apart, and rows that are read at a time.
_PARTS, _BLOCK_ROWS = 12, 1 << 14
Places = NDArray[np.int32]  # the bin of each row


class ThresholdBins(ThresholdSearch):
    """Scans thresholds for given constraints and targets; prepared once, used for many scores."""

    def __init__(
        self,
        rules: Sequence[BoundConstraint],  # constraints on rates only
        targets: FloatArray,  # (n_samples,): -1 and 1
        weights: FloatArray,  # (n_samples,): weights of the rows in the accuracy; they add up to 1
    ) -> None:
        self._table, self._targets, self._weights = RateTable(rules), targets, weights
        self._start_means = [_means_of_refusing(rule) for rule in self._table.rules]
        self._accuracy_without = float(weights @ (targets < 0))
        self._n_cells = [rule.n_cells for rule in self._table.rules]
        self._n_bins = int(np.clip(MAX_CELLS // max(sum(self._n_cells), 1), 64, N_SPLIT))

    def __call__(self, scores: FloatArray, min_gap: float) -> Threshold:  # type: ignore[override]
        """Return the most accurate shift within the limits, else the one that misses least."""
        seen = scores[:: max(1, scores.size // N_SAMPLED)]
        low, high = np.quantile(seen, [_TAIL, 1 - _TAIL])
        is_spread = high - low > 1e-12 * max(abs(low), abs(high), 1e-100)
        per_unit = (self._n_bins - 2) / (high - low) if is_spread else 0.0
        of_row = np.empty(scores.size, np.int32)
        bins = self._filled(scores, low, per_unit, of_row)
        is_open = self._may_hold_better(bins, min_gap)
        inside = self._inside(scores, of_row, np.flatnonzero(is_open[of_row]))
        rows, highest, lowest = self._assembled(bins, is_open, inside, min_gap)
        cut = self._table.scan(rows, self._start_means, self._accuracy_without)
        return threshold_at(cut, highest, lowest, min_gap)

    def _filled(self, scores: FloatArray, low: float, per_unit: float, of_row: Places) -> Bins:
        """Write the bin of each row to ``of_row`` and count what lies in each bin."""
        from skfair._kernels.thresholds import add_signed, count_in_bins

        def of_part(first: int, end: int) -> Bins:
            bins = no_rows(self._n_bins, self._n_cells)
            for start in range(first, end, _BLOCK_ROWS):
                part = slice(start, min(start + _BLOCK_ROWS, end))
                own = of_row[part]
                count_in_bins(scores[part], low, per_unit, own, bins.n, bins.lowest, bins.highest)
                gains = self._weights[part] * self._targets[part]
                first_step = (np.zeros(own.size, np.int64), gains)
                add_signed(own, *first_step, bins.gains[None], bins.losses[None])
                for k, (cells, steps) in enumerate(self._steps(part)):
                    add_signed(own, cells, steps, bins.rises[k], bins.falls[k])
            return bins

        n = scores.size
        return merged_bins(over_blocks(of_part, n, max(_BLOCK_ROWS, -(-n // _PARTS))))

    def _steps(self, rows: slice | IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield, for each constraint, the cells of some rows and how their means change by each."""
        for rule in self._table.rules:
            weights, moment = rule.row_weights[rows], rule.moment.on_rows(rows)
            refused = np.full(weights.size, -1.0)
            yield rule.cells[rows], weights * (moment.strict(-refused) - moment.strict(refused))

    def _inside(self, scores: FloatArray, of_row: Places, rows: IntArray) -> Inside:
        """Return the rows of open bins."""
        steps = list(self._steps(rows))
        shape = (len(steps), rows.size)
        return Inside(
            of_row[rows].astype(np.int64),
            scores[rows],
            self._weights[rows] * self._targets[rows],
            np.array([cells for cells, _ in steps], np.int64).reshape(shape),
            np.array([steps for _, steps in steps], np.float64).reshape(shape),
        )


def _means_of_refusing(rule: BoundConstraint) -> FloatArray:
    """Return the cell means of a constraint where nobody is predicted positive."""

    def of_block(start: int, stop: int) -> FloatArray:
        return rule.strict_sums(np.full(stop - start, -1.0), slice(start, stop))

    parts = over_blocks(of_block, rule.cells.size, _BLOCK_ROWS)
    return np.asarray(sum(parts, start=np.zeros(rule.n_cells)))


def make_scan(problem: RuledProblem) -> ThresholdSearch | ThresholdScan | ThresholdBins:
    """Return what scans the thresholds of a problem, wherever its rows are."""
    if isinstance(problem, PartitionedERM):
        return ThresholdSearch(problem)
    assert isinstance(problem, ConstrainedERM)
    of_size = ThresholdScan if problem.targets.size < _MANY else ThresholdBins
    return of_size(problem.rules, problem.targets, problem.everything.loss_weights)
