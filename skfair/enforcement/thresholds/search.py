"""The most accurate threshold over rows that lie elsewhere: scores are counted in many bins.

Rates and accuracy are exact at every edge between two bins, and the best edge is taken, by the same
kernel as for rows that are here. Few rows have a bin for each distinct score, so that the result is
that of sorting all scores. Of many, a bin holds about one in 16,000 (more where cells are very
many), and a threshold inside a bin is never taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.enforcement.thresholds.scan import RateTable, Threshold, threshold_at
from skfair.groups.kinds import RowBlock
from skfair.problems.erm.in_blocks import LinearScores, PartitionedERM, Task, pieces_of

if TYPE_CHECKING:
    from skfair._kernels.thresholds import SortedRows

# Most bins (four times as many take three times the time on 300,000 rows), and bins times cells
# (16 MB of each block).
N_BINS, MAX_CELLS = 1 << 14, 1 << 21


class Bins(NamedTuple):
    """What lies in each bin, from low scores to high ones."""

    n: NDArray[np.int64]  # (n_bins,): number of rows
    # (n_bins,): their scores; inf and -inf in an empty bin
    lowest: FloatArray
    highest: FloatArray
    gains: FloatArray  # (n_bins,): change of the accuracy if the rows turn positive
    steps: list[FloatArray]  # (n_cells, n_bins): for each constraint, change of its cell means


class ThresholdSearch:
    """Finds thresholds for the constraints of a problem; prepared once, used for many scores."""

    def __init__(self, problem: PartitionedERM) -> None:
        self._problem = problem
        self._table = RateTable(problem.rules)
        nobody = LinearScores(np.zeros(problem.model.n_features), -1.0)
        refused = problem.decide(nobody)
        self._start_means = [refused.means[k] for k in self._table.which]
        self._accuracy_without = refused.right
        n_cells = sum(rule.n_cells for rule in self._table.rules)
        self._n_bins = int(np.clip(MAX_CELLS // max(n_cells, 1), 64, N_BINS))

    def __call__(self, scores: LinearScores, min_gap: float) -> Threshold:
        """Return the most accurate shift within the limits, else the one that misses least."""
        visit = self._problem.pass_over
        step = max(1, self._problem.n_samples // N_BINS)
        edges = np.unique(visit(_sample, scores, step, combine=np.concatenate))[:-1]
        if edges.size >= self._n_bins:
            edges = edges[np.linspace(0, edges.size - 1, self._n_bins - 1).astype(np.int64)]
        bins = visit(_fill, scores, edges, combine=_merged)
        some = np.flatnonzero(bins.n)[::-1]
        rows = self._entries(bins, some, min_gap)
        cut = self._table.scan(rows, self._start_means, self._accuracy_without)
        depth = rows.order.size // some.size
        highest, lowest = (np.repeat(ends[some], depth) for ends in (bins.highest, bins.lowest))
        return threshold_at(cut, highest, lowest, min_gap)

    def _entries(self, bins: Bins, some: NDArray[np.int64], min_gap: float) -> SortedRows:
        """Return one entry per cell of some bins, between which no threshold may lie."""
        from skfair._kernels.thresholds import SortedRows

        rules = self._table.rules
        depth = max((rule.n_cells for rule in rules), default=1)
        gains, can_cut = np.zeros((some.size, depth)), np.zeros((some.size, depth), bool)
        gains[:, 0] = bins.gains[some]
        can_cut[:-1, -1] = bins.lowest[some[:-1]] - bins.highest[some[1:]] > min_gap
        cells = np.zeros((len(rules), some.size, depth), np.int64)
        steps = np.zeros(cells.shape)
        for k, rule in enumerate(rules):
            cells[k, :, : rule.n_cells] = np.arange(rule.n_cells)
            steps[k, :, : rule.n_cells] = bins.steps[k][:, some].T
        shape = len(rules), gains.size
        return SortedRows(
            np.arange(gains.size),
            can_cut.ravel()[:-1],
            gains.ravel(),
            cells.reshape(shape),
            steps.reshape(shape),
        )


def _sample(block: RowBlock, task: Task, scores: LinearScores, step: int) -> FloatArray:
    scores_of_pieces = [piece.scores(scores, step) for piece in pieces_of(block, task)]
    return np.concatenate([np.empty(0), *scores_of_pieces])


def _fill(block: RowBlock, task: Task, scores: LinearScores, edges: FloatArray) -> Bins:
    """Count the rows of a block in bins; a score equal to an edge lies below it."""
    n_bins, n_rules = edges.size + 1, len(task.n_cells)
    values, gains = [np.empty(0)], [np.empty(0)]
    cells, steps = [np.empty((n_rules, 0), np.int64)], [np.empty((n_rules, 0))]
    for piece in pieces_of(block, task):
        values.append(piece.scores(scores))
        gains.append(piece.loss_weights * piece.targets)
        refused = np.full(values[-1].size, -1.0)
        cells.append(np.empty((n_rules, refused.size), np.int64))
        steps.append(np.empty((n_rules, refused.size)))
        for k, rule in enumerate(piece.rules):
            cells[-1][k] = rule.cells
            step = rule.moment.strict(-refused) - rule.moment.strict(refused)
            steps[-1][k] = rule.row_weights * step
    of_row = np.searchsorted(edges, np.concatenate(values))
    lowest, highest = np.full(n_bins, np.inf), np.full(n_bins, -np.inf)
    np.minimum.at(lowest, of_row, np.concatenate(values))
    np.maximum.at(highest, of_row, np.concatenate(values))
    of_cells = zip(task.n_cells, np.hstack(cells), np.hstack(steps), strict=True)
    sums = [np.bincount(own * n_bins + of_row, step, n * n_bins) for n, own, step in of_cells]
    return Bins(
        np.bincount(of_row, minlength=n_bins),
        lowest,
        highest,
        np.bincount(of_row, np.concatenate(gains), n_bins).astype(np.float64),
        [of_rule.astype(np.float64).reshape(-1, n_bins) for of_rule in sums],
    )


def _merged(parts: list[Bins]) -> Bins:
    """Put the bins of several blocks together."""
    n, lowest, highest, gains, steps = zip(*parts, strict=True)
    return Bins(
        np.sum(n, axis=0),
        np.minimum.reduce(lowest),
        np.maximum.reduce(highest),
        np.sum(gains, axis=0),
        [np.sum(of_parts, axis=0) for of_parts in zip(*steps, strict=True)],
    )
