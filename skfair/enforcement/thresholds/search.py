"""The most accurate threshold over rows that lie elsewhere: branch and bound on bins of scores.

Scores are counted in bins, so rates and accuracy are exact at every edge between two bins. Inside a
bin they are limited: no threshold there is more accurate than the edge above it plus the gains of
the bin, and every rate lies between what the bin can make of it. Bins that cannot hold a better
threshold than the best edge are closed; the others are split, until few rows are left in them.
These are fetched (their scores, not the rows) and scanned together with the closed bins, by the
same kernel as rows that are here. The result is that of sorting all scores, after a few passes.

Where very many rows stay in open bins (of millions of rows, if the disparity hardly changes with
the threshold), the best edge counts: it is then less accurate than the best threshold by at most
the share of one bin, one in several thousand of those rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
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

# Bins of the first pass, and about how many new ones of each pass that splits some of them (fewer
# where there are many cells); rows that are looked at to choose the first ones, rows that are
# fetched, and passes that split.
N_BINS, N_SPLIT, MAX_CELLS = 1024, 4096, 1 << 20
N_SAMPLED = 1 << 14
MAX_FETCHED = 100_000
MAX_PASSES = 3

T = TypeVar("T", bound=np.generic)


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
        self._n_split = int(np.clip(MAX_CELLS // max(n_cells, 1), 64, N_SPLIT))
        self._n_bins = min(N_BINS, self._n_split)

    def __call__(self, scores: LinearScores, min_gap: float) -> Threshold:
        """Return the most accurate shift within the limits, else the one that misses least."""
        visit = self._problem.pass_over
        step = max(1, self._problem.n_samples // N_SAMPLED)
        sampled = visit(_sample, scores, step, combine=np.concatenate)
        edges = np.unique(np.quantile(sampled, np.linspace(0, 1, self._n_bins + 1)[1:-1]))
        bins = visit(_fill, scores, edges, None, combine=merged_bins)
        is_open = self._may_hold_better(bins, min_gap)
        for _ in range(MAX_PASSES):
            if bins.n[is_open].sum() <= MAX_FETCHED or is_open.sum() > self._n_split:
                break
            split = _Split(edges, is_open, _ends(bins, is_open, self._n_split))
            if split.finer.size == edges.size:
                break
            inside = visit(_fill, scores, split.finer, split, combine=merged_bins)
            bins, edges = split.merged(bins, inside), split.finer
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


def _ends(bins: Bins, is_open: NDArray[np.bool_], n_bins: int) -> FloatArray:
    """Return edges that split the open bins, the more rows the finer."""
    n_open = bins.n[is_open].sum()
    edges = [np.empty(0)]
    for b in np.flatnonzero(is_open):
        n_parts = 1 + int(np.ceil(n_bins * bins.n[b] / n_open))
        edges.append(np.linspace(bins.lowest[b], bins.highest[b], n_parts + 1)[1:-1])
    return np.concatenate(edges)


class _Split:
    """Open bins and what they are split into: only their rows are counted again."""

    def __init__(
        self,
        edges: FloatArray,  # edges of the old bins
        is_open: NDArray[np.bool_],  # which of them are split
        ends: FloatArray,  # new edges inside these
    ) -> None:
        self.edges, self.is_open = edges, is_open
        self.finer = np.union1d(edges, ends)
        # The last new bin of each old one.
        last = np.append(np.searchsorted(self.finer, edges), self.finer.size)
        self._closed = np.flatnonzero(~is_open)
        self._new_of_closed = last[self._closed]
        self.is_new = np.ones(self.finer.size + 1, bool)
        self.is_new[self._new_of_closed] = False
        self.place = np.cumsum(self.is_new) - 1

    @property
    def n_new(self) -> int:
        """Number of new bins."""
        return int(self.place[-1]) + 1

    def merged(self, old: Bins, inside: Bins) -> Bins:
        """Return all bins: the closed ones as they were, and the new ones."""

        def put(closed: NDArray[T], new: NDArray[T]) -> NDArray[T]:
            values = np.empty((*closed.shape[:-1], self.finer.size + 1), closed.dtype)
            values[..., self._new_of_closed] = closed[..., self._closed]
            values[..., self.is_new] = new
            return values

        return Bins(
            put(old.n, inside.n),
            put(old.lowest, inside.lowest),
            put(old.highest, inside.highest),
            put(old.gains, inside.gains),
            put(old.losses, inside.losses),
            [put(*pair) for pair in zip(old.rises, inside.rises, strict=True)],
            [put(*pair) for pair in zip(old.falls, inside.falls, strict=True)],
        )


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


def _open_rows(values: FloatArray, edges: FloatArray, is_open: NDArray[np.bool_]) -> IntArray:
    """Return the rows whose scores lie in open bins; most lie outside of them all."""
    bins = np.flatnonzero(is_open)
    if not bins.size:
        return bins
    low, high = np.append(-np.inf, edges)[bins[0]], np.append(edges, np.inf)[bins[-1]]
    near = np.flatnonzero((values > low) & (values <= high))
    return near[is_open[np.searchsorted(edges, values[near])]]


def no_rows(n_bins: int, n_cells: list[int]) -> Bins:
    """Return bins without rows."""
    return Bins(
        np.zeros(n_bins, np.int64),
        np.full(n_bins, np.inf),
        np.full(n_bins, -np.inf),
        np.zeros(n_bins),
        np.zeros(n_bins),
        [np.zeros((n, n_bins)) for n in n_cells],
        [np.zeros((n, n_bins)) for n in n_cells],
    )


def _fill(
    block: RowBlock,
    task: Task,
    scores: LinearScores,
    edges: FloatArray,
    split: _Split | None,
) -> Bins:
    """Count the rows of a block in bins, or in the new ones of a split.

    A score equal to an edge lies below it.
    """
    n_bins = edges.size + 1 if split is None else split.n_new
    bins = no_rows(n_bins, task.n_cells)
    for piece in pieces_of(block, task):
        values = piece.scores(scores)
        if split is not None:
            rows = _open_rows(values, split.edges, split.is_open)
            values, piece = values[rows], piece.only(rows)
        if not values.size:
            continue
        of_row = np.searchsorted(edges, values)
        if split is not None:
            of_row = split.place[of_row]
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


def merged_bins(parts: list[Bins]) -> Bins:
    """Put the bins of several blocks together."""
    return Bins(
        sum((part.n for part in parts[1:]), parts[0].n),
        np.minimum.reduce([part.lowest for part in parts]),
        np.maximum.reduce([part.highest for part in parts]),
        sum((part.gains for part in parts[1:]), parts[0].gains),
        sum((part.losses for part in parts[1:]), parts[0].losses),
        [
            sum(of_parts[1:], of_parts[0])
            for of_parts in zip(*(part.rises for part in parts), strict=True)
        ],
        [
            sum(of_parts[1:], of_parts[0])
            for of_parts in zip(*(part.falls for part in parts), strict=True)
        ],
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
        rows = _open_rows(values, edges, is_open)
        if not rows.size:
            continue
        some = piece.only(rows)
        inside.append(
            Inside(
                np.searchsorted(edges, values[rows]),
                values[rows],
                some.loss_weights * some.targets,
                np.array([rule.cells for rule in some.rules], np.int64).reshape(n_rules, rows.size),
                np.array(list(_steps(some)), np.float64).reshape(n_rules, rows.size),
            )
        )
    return _joined(inside)


def _joined(parts: list[Inside]) -> Inside:
    return Inside(*(np.concatenate(of_field, axis=-1) for of_field in zip(*parts, strict=True)))
