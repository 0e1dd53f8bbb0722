"""The most accurate threshold over rows that lie elsewhere: bins of scores, then few rows.

Scores are counted in bins, so rates and accuracy are exact at every edge between two bins. Inside a
bin they are limited: no threshold there is more accurate than the edge above it plus the gains of
the bin, and every rate lies between what the bin can make of it. Bins that cannot hold a better
threshold than the best edge are closed. The rows of the others are fetched (their scores, not the
rows) and scanned together with the closed bins, by the same kernel as rows that are here. The
result is that of sorting all scores, after three passes.

Where very many rows lie in open bins (of millions of rows, if the disparity hardly changes with
the threshold), the best edge counts: it is then less accurate than the best threshold by at most
the share of one bin, one in several thousand of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.enforcement.thresholds.scan import RateTable, Threshold, threshold_at
from skfair.groups.kinds import RowBlock
from skfair.problems.erm.in_blocks import (
    LinearScores,
    PartitionedERM,
    Piece,
    Task,
    pieces_of,
)
from skfair.utils.rounding import ROUNDING

if TYPE_CHECKING:
    from skfair._kernels.thresholds import SortedRows

# Most bins (fewer where there are many cells), rows that are looked at to choose them, and rows
# that are fetched.
N_BINS, MAX_CELLS = 4096, 1 << 20
N_SAMPLED = 1 << 14
MAX_FETCHED = 100_000


class Bins(NamedTuple):
    """What lies in each bin, from low scores to high ones."""

    n: NDArray[np.int64]  # (n_bins,): number of rows
    # (n_bins,): their scores; inf and -inf in an empty bin
    lowest: FloatArray
    highest: FloatArray
    # (n_bins,): change of the accuracy by rows that gain, and by rows that lose, when they
    # turn positive
    gains: FloatArray
    losses: FloatArray
    # (n_cells, n_bins): for each constraint, how far its cell means rise and fall by them
    rises: list[FloatArray]
    falls: list[FloatArray]


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
        step = max(1, self._problem.n_samples // N_SAMPLED)
        sampled = visit(_sample, scores, step, combine=np.concatenate)
        edges = np.unique(np.quantile(sampled, np.linspace(0, 1, self._n_bins + 1)[1:-1]))
        bins = visit(_fill, scores, edges, combine=_merged)
        is_open = self._may_hold_better(bins, min_gap)
        if bins.n[is_open].sum() > MAX_FETCHED:
            is_open[:] = False
        fetched = visit(_fetch, scores, edges, is_open, combine=_joined)
        rows, highest, lowest = self._assembled(bins, is_open, fetched, min_gap)
        cut = self._table.scan(rows, self._start_means, self._accuracy_without)
        return threshold_at(cut, highest, lowest, min_gap)

    def _may_hold_better(self, bins: Bins, min_gap: float) -> NDArray[np.bool_]:
        """Return which bins may hold a better threshold than the best edge."""
        # Entry b of what is ``from_above``: the bins from b on are positive; the last one: none.
        change = _from_above(bins.gains + bins.losses)
        accuracy = self._accuracy_without + change
        excess = np.full(accuracy.size, -np.inf)
        least_inside = np.full(bins.n.size, -np.inf)
        for k, (rule, start) in enumerate(zip(self._table.rules, self._start_means, strict=True)):
            rises, falls = bins.rises[k], bins.falls[k]
            means = start[:, None] + _from_above(rises + falls)
            bound = self._table.bounds[k]
            excess = np.maximum(excess, rule.least_disparity(means, means) - bound)
            above = means[:, 1:]
            inside = rule.least_disparity(above + falls, above + rises)
            least_inside = np.maximum(least_inside, inside - bound)
        can_cut = _gaps(bins) > min_gap
        is_kept = can_cut & (excess <= 0)
        can_be_split = (bins.n > 1) & (bins.highest > bins.lowest)
        if not is_kept.any():
            return np.asarray(can_be_split & (least_inside <= excess[can_cut].min() + ROUNDING))
        best = accuracy[is_kept].max()
        at = np.flatnonzero(is_kept & (accuracy >= best - ROUNDING)).max()
        at_most = accuracy[1:] + bins.gains
        # Of equally accurate thresholds the highest is taken.
        needed = np.where(np.arange(bins.n.size) >= at, best - ROUNDING, best + ROUNDING)
        return np.asarray(can_be_split & (least_inside <= 0) & (at_most > needed))

    def _assembled(
        self, bins: Bins, is_open: NDArray[np.bool_], inside: Inside, min_gap: float
    ) -> tuple[SortedRows, FloatArray, FloatArray]:
        """Put fetched rows and closed bins into one list, from the highest score down.

        A closed bin becomes one entry per cell, between which no threshold may lie.
        """
        from skfair._kernels.thresholds import SortedRows

        closed = np.flatnonzero((bins.n > 0) & ~is_open)
        n_rules = len(self._table.rules)
        depth = max((rule.n_cells for rule in self._table.rules), default=1)
        shape = (closed.size, depth)
        steps = np.zeros((n_rules, *shape))
        for k, rule in enumerate(self._table.rules):
            steps[k, :, : rule.n_cells] = (bins.rises[k] + bins.falls[k])[:, closed].T
        cells = np.broadcast_to(np.arange(depth), (n_rules, *shape)).copy()
        for k, rule in enumerate(self._table.rules):
            cells[k, :, rule.n_cells :] = 0
        gains = np.zeros(shape)
        gains[:, 0] = (bins.gains + bins.losses)[closed]

        def listed(of_bins: FloatArray, of_rows: FloatArray) -> FloatArray:
            return np.concatenate([np.repeat(of_bins[closed], depth), of_rows])

        owner = np.concatenate([np.repeat(closed, depth), inside.bins])
        highest = listed(bins.highest, inside.scores)
        lowest = listed(bins.lowest, inside.scores)
        order = np.lexsort((-highest, -owner))
        highest, lowest, owner = highest[order], lowest[order], owner[order]
        is_inside = (owner[1:] == owner[:-1]) & ~is_open[owner[1:]]
        both_cells = np.concatenate([cells.reshape(n_rules, gains.size), inside.cells], axis=1)
        both_steps = np.concatenate([steps.reshape(n_rules, gains.size), inside.steps], axis=1)
        rows = SortedRows(
            np.arange(order.size),
            (lowest[:-1] - highest[1:] > min_gap) & ~is_inside,
            np.concatenate([gains.ravel(), inside.gains])[order],
            np.take(both_cells, order, axis=1),  # [:, order] is in another order of memory:
            np.take(both_steps, order, axis=1),  # the kernel would be compiled once more
        )
        return rows, highest, lowest


def _from_above(values: FloatArray) -> FloatArray:
    """Return sums over the bins from each one on, and 0 at the end."""
    sums = np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
    return np.concatenate([sums, np.zeros((*values.shape[:-1], 1))], axis=-1)


def _gaps(bins: Bins) -> FloatArray:
    """Return the gap between the scores of bins from b on and those below; inf at the ends."""
    above = np.append(np.minimum.accumulate(bins.lowest[::-1])[::-1], np.inf)
    below = np.append(-np.inf, np.maximum.accumulate(bins.highest))
    return np.asarray(above - below)


class Inside(NamedTuple):
    """The rows of open bins."""

    bins: NDArray[np.int64]
    scores: FloatArray
    gains: FloatArray
    cells: NDArray[np.int64]  # (n_rules, n)
    steps: FloatArray  # (n_rules, n)


def _sample(block: RowBlock, task: Task, scores: LinearScores, step: int) -> FloatArray:
    scores_of_pieces = [piece.scores(scores, step) for piece in pieces_of(block, task)]
    return np.concatenate([np.empty(0), *scores_of_pieces])


def _steps(piece: Piece) -> Iterator[FloatArray]:
    """Yield, for each constraint, how the mean of its cell changes when a row turns positive."""
    refused = np.full(piece.targets.size, -1.0)
    for rule in piece.rules:
        yield rule.row_weights * (rule.moment.strict(-refused) - rule.moment.strict(refused))


def _fill(block: RowBlock, task: Task, scores: LinearScores, edges: FloatArray) -> Bins:
    """Count the rows of a block in bins; a score equal to an edge lies below it."""
    n_bins = edges.size + 1
    bins = Bins(
        np.zeros(n_bins, np.int64),
        np.full(n_bins, np.inf),
        np.full(n_bins, -np.inf),
        np.zeros(n_bins),
        np.zeros(n_bins),
        [np.zeros((n, n_bins)) for n in task.n_cells],
        [np.zeros((n, n_bins)) for n in task.n_cells],
    )
    for piece in pieces_of(block, task):
        values = piece.scores(scores)
        of_row = np.searchsorted(edges, values)
        bins.n[:] += np.bincount(of_row, minlength=n_bins)
        np.minimum.at(bins.lowest, of_row, values)
        np.maximum.at(bins.highest, of_row, values)
        gains = piece.loss_weights * piece.targets
        bins.gains[:] += np.bincount(of_row, np.maximum(gains, 0), n_bins)
        bins.losses[:] += np.bincount(of_row, np.minimum(gains, 0), n_bins)
        for k, step in enumerate(_steps(piece)):
            joint = piece.rules[k].cells * n_bins + of_row
            for sums, part in (
                (bins.rises[k], np.maximum(step, 0)),
                (bins.falls[k], np.minimum(step, 0)),
            ):
                if part.any():
                    sums += np.bincount(joint, part, sums.size).reshape(sums.shape)
    return bins


def _merged(parts: list[Bins]) -> Bins:
    """Put the bins of several blocks together."""
    n, lowest, highest, gains, losses, rises, falls = zip(*parts, strict=True)
    return Bins(
        np.sum(n, axis=0),
        np.minimum.reduce(lowest),
        np.maximum.reduce(highest),
        np.sum(gains, axis=0),
        np.sum(losses, axis=0),
        [np.sum(of_parts, axis=0) for of_parts in zip(*rises, strict=True)],
        [np.sum(of_parts, axis=0) for of_parts in zip(*falls, strict=True)],
    )


def _fetch(
    block: RowBlock,
    task: Task,
    scores: LinearScores,
    edges: FloatArray,
    is_open: NDArray[np.bool_],
) -> Inside:
    """Return scores, gains and cells of the rows in open bins."""
    n_rules = len(task.n_cells)
    inside = [
        Inside(
            np.empty(0, np.int64),
            np.empty(0),
            np.empty(0),
            np.empty((n_rules, 0), np.int64),
            np.empty((n_rules, 0)),
        )
    ]
    for piece in pieces_of(block, task):
        values = piece.scores(scores)
        of_row = np.searchsorted(edges, values)
        rows = np.flatnonzero(is_open[of_row])
        some = piece.only(rows)
        shape = (n_rules, rows.size)
        inside.append(
            Inside(
                of_row[rows],
                values[rows],
                some.loss_weights * some.targets,
                np.array([rule.cells for rule in some.rules], np.int64).reshape(shape),
                np.array(list(_steps(some)), np.float64).reshape(shape),
            )
        )
    return _joined(inside)


def _joined(parts: list[Inside]) -> Inside:
    return Inside(*(np.concatenate(of_field, axis=-1) for of_field in zip(*parts, strict=True)))
