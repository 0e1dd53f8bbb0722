"""The most accurate threshold over rows that lie elsewhere: scores in bins, then finer bins.

Rates and accuracy are exact at every edge between two bins. Inside a bin they are limited: no
threshold there is more accurate than the edge above it plus the gains of the bin, and every rate
lies between what the bin can make of it. A bin that may hold a better threshold than the best edge
is divided: each of its scores gets a bin of its own. The best edge is then what sorting all scores
would find, after four passes.

Where very many rows lie in such bins (of millions of rows, if the disparity hardly changes with the
threshold), the best edge counts: it is then less accurate than the best threshold by at most the
share of one bin, one in several thousand of all rows.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.enforcement.strict_evaluation import RateTable, Threshold, shift_at
from skfair.groups.kinds import RowBlock
from skfair.groups.score_bins import bincount
from skfair.problems.erm.in_blocks import LinearScores, PartitionedERM, Piece, Task, pieces_of
from skfair.utils.rounding import ROUNDING

if TYPE_CHECKING:
    from skfair._kernels.thresholds import SortedRows

# Most bins (fewer where there are many cells), and rows that get bins of their own.
N_BINS, MAX_CELLS = 4096, 1_000_000
MAX_DIVIDED = 100_000


class Bins(NamedTuple):
    """What lies in each bin, from low scores to high ones."""

    n: NDArray[np.int64]  # (n_bins,): number of rows
    # (n_bins,): their scores; inf and -inf in an empty bin
    lowest: FloatArray
    highest: FloatArray
    # Changes if the rows turn positive, by those that lower and by those that raise it:
    gains: FloatArray  # (2, n_bins): of the accuracy
    steps: list[FloatArray]  # (2, n_cells, n_bins): for each constraint, of its cell means


class ThresholdSearch:
    """Finds thresholds for the constraints of a problem; prepared once, used for many scores."""

    def __init__(self, problem: PartitionedERM) -> None:
        self._problem = problem
        self._table = RateTable(problem.constraints)
        nobody = LinearScores(np.zeros(problem.model.n_features), -1.0)
        refused = problem.decide(nobody)
        self._start_means = [refused.means[k] for k in self._table.which]
        self._accuracy_without = refused.right
        n_cells = sum(constraint.n_cells for constraint in self._table.bounds)
        self._n_bins = int(np.clip(MAX_CELLS // max(n_cells, 1), 64, N_BINS))

    def __call__(self, scores: LinearScores, min_gap: float) -> Threshold:
        """Return the most accurate shift within the limits, else the one that misses least."""
        visit = self._problem.pass_over
        step = max(1, self._problem.n_samples // (4 * N_BINS))  # some four scores for each bin
        sampled = visit(_scores, scores, step, combine=np.concatenate)
        edges = np.unique(np.quantile(sampled, np.linspace(0, 1, self._n_bins + 1)[1:-1]))
        bins = visit(_fill, scores, edges, combine=_merged)
        is_open = self._may_hold_better(bins, min_gap)
        if 0 < bins.n[is_open].sum() <= MAX_DIVIDED:
            inside = visit(_inside, scores, edges, is_open, combine=np.concatenate)
            bins = visit(_fill, scores, np.union1d(edges, inside), combine=_merged)
        some = np.flatnonzero(bins.n)[::-1]
        rows = self._entries(bins, some, min_gap)
        n_above, verdict = self._table.scan(rows, self._start_means, self._accuracy_without)
        depth = rows.order.size // some.size
        highest, lowest = (np.repeat(ends[some], depth) for ends in (bins.highest, bins.lowest))
        shift = shift_at(n_above, highest, lowest, min_gap)
        return Threshold(shift, verdict, n_above in (0, highest.size))

    def _may_hold_better(self, bins: Bins, min_gap: float) -> NDArray[np.bool_]:
        """Return which bins may hold a better threshold than the best edge."""
        # Entry b of what is ``_from_above``: the bins from b on are positive; the last one: none.
        accuracy = self._accuracy_without + _from_above(bins.gains.sum(axis=0))
        excess = np.full(accuracy.size, -np.inf)
        least_inside = np.full(bins.n.size, -np.inf)
        constraints = zip(self._table.bounds, self._start_means, strict=True)
        for (constraint, start), (falls, rises), limit in zip(
            constraints, bins.steps, self._table.limits, strict=True
        ):
            means = start[:, None] + _from_above(falls + rises)
            inside = means[:, 1:] + falls, means[:, 1:] + rises
            excess = np.maximum(excess, constraint.least_disparity(means, means) - limit)
            least_inside = np.maximum(least_inside, constraint.least_disparity(*inside) - limit)
        above = np.append(np.minimum.accumulate(bins.lowest[::-1])[::-1], np.inf)
        below = np.append(-np.inf, np.maximum.accumulate(bins.highest))
        can_cut, can_be_divided = above - below > min_gap, bins.highest > bins.lowest
        is_feasible = can_cut & (excess <= 0)
        if not is_feasible.any():
            return np.asarray(can_be_divided & (least_inside <= excess[can_cut].min() + ROUNDING))
        best = accuracy[is_feasible].max()
        at = np.flatnonzero(is_feasible & (accuracy >= best - ROUNDING)).max()
        # Of equally accurate thresholds the highest is taken.
        needed = best + np.where(np.arange(bins.n.size) >= at, -ROUNDING, ROUNDING)
        can_be_better = (least_inside <= 0) & (accuracy[1:] + bins.gains[1] > needed)
        return np.asarray(can_be_divided & can_be_better)

    def _entries(self, bins: Bins, some: NDArray[np.int64], min_gap: float) -> SortedRows:
        """Return one entry per cell of some bins, between which no threshold may lie."""
        from skfair._kernels.thresholds import SortedRows

        constraints = self._table.bounds
        depth = max((constraint.n_cells for constraint in constraints), default=1)
        gains, can_cut = np.zeros((some.size, depth)), np.zeros((some.size, depth), bool)
        gains[:, 0] = bins.gains.sum(axis=0)[some]
        can_cut[:-1, -1] = bins.lowest[some[:-1]] - bins.highest[some[1:]] > min_gap
        cells = np.zeros((len(constraints), some.size, depth), np.int64)
        steps = np.zeros(cells.shape)
        for k, constraint in enumerate(constraints):
            cells[k, :, : constraint.n_cells] = np.arange(constraint.n_cells)
            steps[k, :, : constraint.n_cells] = bins.steps[k].sum(axis=0)[:, some].T
        order, cuts, shape = np.arange(gains.size), can_cut.ravel()[:-1], (len(cells), gains.size)
        flat = gains.ravel()
        return SortedRows(order, cuts, flat, cells.reshape(shape), steps.reshape(shape))


def _from_above(values: FloatArray) -> FloatArray:
    """Return sums over the bins from each one on, and 0 at the end."""
    sums = np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([sums, np.zeros((*values.shape[:-1], 1))], axis=-1)


def _scores(block: RowBlock, task: Task, scores: LinearScores, step: int = 1) -> FloatArray:
    """Return the scores, or one of ``step`` in each piece of the block."""
    parts = [piece.scores(scores, step) for piece in pieces_of(block, task)]
    return np.concatenate([np.empty(0), *parts])


def _inside(
    block: RowBlock, task: Task, scores: LinearScores, edges: FloatArray, is_open: NDArray[np.bool_]
) -> FloatArray:
    """Return the different scores in some of the bins."""
    values = _scores(block, task, scores)
    return np.unique(values[is_open[np.searchsorted(edges, values)]])


def _fill(block: RowBlock, task: Task, scores: LinearScores, edges: FloatArray) -> Bins:
    """Count the rows of a block in bins; a score equal to an edge lies below it."""
    n_bins = edges.size + 1
    rows = Piece(block, slice(None), task)  # all of them: its X is not looked at
    refused = np.full(block.n_rows, -1.0)
    values = _scores(block, task, scores)
    of_row = np.searchsorted(edges, values)
    lowest, highest = np.full(n_bins, np.inf), np.full(n_bins, -np.inf)
    np.minimum.at(lowest, of_row, values)
    np.maximum.at(highest, of_row, values)

    def by_sign(places: NDArray[np.int64], changes: FloatArray, *shape: int) -> FloatArray:
        """Add up negative and positive changes."""
        signs = np.minimum(changes, 0.0), np.maximum(changes, 0.0)
        return np.stack([bincount(places, own, prod(shape)).reshape(shape) for own in signs])

    steps = []
    for (moment, cells, weights), n_cells in zip(rows.constraints, task.n_cells, strict=True):
        step = weights * (moment.strict(-refused) - moment.strict(refused))
        steps.append(by_sign(cells * n_bins + of_row, step, n_cells, n_bins))
    gains = by_sign(of_row, rows.loss_weights * rows.targets, n_bins)
    return Bins(np.bincount(of_row, minlength=n_bins), lowest, highest, gains, steps)


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
