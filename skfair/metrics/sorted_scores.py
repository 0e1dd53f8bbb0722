"""The scores of each group in descending order: what every score metric is computed from.

Sorting within the groups is all the O(n log n) work; comparing two groups is a merge
(:mod:`skfair._kernels.sorted_pairs`).

The *rank* of a threshold in a group is the share of the group that scores above it (Definition 4.1
of partial_fairness_idca). Row ``i`` owns the rank mass between the rank of its score and the rank
just below it; tied rows own the mass of their block together.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.utils.threads import BLOCK, for_groups, over_blocks


class SortedScores:
    """Rows sorted by cell, and by descending score within each cell.

    Cell ``c`` occupies the positions ``starts[c]:starts[c + 1]``. ``order`` is the row at each
    position (None without weights, when the rows need not be told apart), ``mass`` the share of
    its cell's weight that it carries, and ``rank`` the share at or above it: the rank just below
    the position. At the end of a block of ties it is the rank just below their score.
    """

    def __init__(
        self,
        scores: FloatArray,  # (n_samples,): the scores
        codes: IntArray,  # (n_samples,): the cell (group, or group and class) of each row
        n_cells: int,  # the number of cells; a cell may be empty
        weights: FloatArray | None = None,  # (n_samples,): sample weights
        *,
        keep_order: bool = False,
    ) -> None:
        # numba is imported here, on first use, because importing it costs half a second.
        from skfair._kernels.sorted_pairs import counting_sort

        sizes = np.bincount(codes, minlength=n_cells)
        self.starts = np.concatenate(([0], np.cumsum(sizes)))
        order = np.empty(codes.size, np.int64)
        counting_sort(codes, self.starts, order)
        self.scores = scores[order]
        self.order = order if keep_order or weights is not None else None
        self._each(self._sort)
        if weights is None:
            self.totals: FloatArray = sizes.astype(np.float64)
            self.mass = np.repeat(1 / np.maximum(self.totals, 1), sizes)
        else:
            self.totals = np.bincount(codes, weights=weights, minlength=n_cells).astype(float)
            safe = np.where(self.totals > 0, self.totals, 1.0)
            self.mass = weights[order] / np.repeat(safe, sizes)
        self.rank = np.empty(codes.size)
        self._each(self._count if weights is None else self._add_up)

    def _each(self, function: Callable[[slice], None]) -> None:
        """Call a function for the positions of each cell that has rows; threads share them."""
        cells = [slice(i, j) for i, j in itertools.pairwise(self.starts.tolist()) if j > i]
        for_groups(function, cells, self.scores.size)

    def _sort(self, group: slice) -> None:
        """Sort the rows of a cell."""
        if self.order is None:  # values alone are several times faster to sort than an index
            self.scores[group] = -np.sort(-self.scores[group])
            return
        within = np.argsort(-self.scores[group], kind="stable")
        self.order[group] = self.order[group][within]
        self.scores[group] = self.scores[group][within]

    def _count(self, group: slice) -> None:
        """Rank the rows of a cell by exact quotients: no rounding adds up."""
        n = group.stop - group.start
        self.rank[group] = np.arange(1, n + 1) / n

    def _add_up(self, group: slice) -> None:
        """Rank the rows of a cell by their mass."""
        total = self.mass[group].cumsum()
        self.rank[group] = np.minimum(total / total[-1] if total[-1] else total, 1.0)

    def largest_gaps(self, level: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
        """Compare step functions of the threshold: largest difference per pair of cells."""
        from skfair._kernels.sorted_pairs import largest_gaps

        out = np.empty(first.size)

        def of_pairs(i: int, j: int) -> None:
            largest_gaps(self.scores, level, self.starts, first[i:j], second[i:j], out[i:j])

        # Pairs of few rows take less time than to call the kernel for each.
        n_parts = 1 if self.scores.size < BLOCK else 64
        over_blocks(of_pairs, first.size, -(-first.size // n_parts) or 1)
        return out

    def areas_between(self, level: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
        """Compare step functions of the threshold: area between them per pair of cells."""
        from skfair._kernels.sorted_pairs import areas_between

        out = np.empty(first.size)
        areas_between(self.scores, level, self.starts, first, second, out)
        return out

    def win_rates(
        self, mass: FloatArray, first: IntArray, second: IntArray, tie_value: float
    ) -> FloatArray:
        """Return P(score of the first cell > score of the second), ties counted ``tie_value``."""
        from skfair._kernels.sorted_pairs import win_rates

        out = np.empty(first.size)
        win_rates(self.scores, mass, self.starts, first, second, tie_value, out)
        return out

    def cell_of_position(self) -> IntArray:
        """Return the cell of each position."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))

    def ends_block(self, cells: IntArray) -> NDArray[np.bool_]:
        """Whether each position is the last of its block of ties."""
        is_last = np.ones(self.scores.size, bool)
        is_last[:-1] = (self.scores[1:] != self.scores[:-1]) | (cells[1:] != cells[:-1])
        return is_last

    def shared_mass(self, level: FloatArray, cells: IntArray) -> FloatArray:
        """Split the rise of ``level`` over each block of ties in proportion to the rows' mass.

        ``level`` is a non-decreasing function of the rank, evaluated at each position; its rise
        over a block is the part of the block's mass that lies inside a percentile interval.
        """
        is_last = self.ends_block(cells)
        block: IntArray = np.cumsum(is_last) - is_last
        rise = np.diff(level[is_last], prepend=0.0)
        block_cell = cells[is_last]
        new_cell = np.ones(block_cell.size, bool)
        new_cell[1:] = block_cell[1:] != block_cell[:-1]
        rise[new_cell] = level[is_last][new_cell]
        block_mass = np.bincount(block, weights=self.mass)
        with np.errstate(invalid="ignore"):
            density = np.where(block_mass > 0, rise / block_mass, 0.0)
        return np.asarray(self.mass * density[block])
