"""Random rows of cells: equally many of each, in proportion to their weights."""

from __future__ import annotations

import numpy as np

from skfair._typing import FloatArray, IntArray


class CellSampler:
    """Draws rows of every cell in proportion to their weights, with replacement."""

    def __init__(self, cells: IntArray, weights: FloatArray, n_cells: int) -> None:
        counted = np.flatnonzero(weights > 0)
        self._order = counted[np.argsort(cells[counted], kind="stable")]
        self.sizes = np.bincount(cells[counted], minlength=n_cells)  # rows of each cell
        self._first = np.concatenate([[0], np.cumsum(self.sizes)[:-1]])
        ordered = weights[self._order]
        is_even = np.array_equal(ordered, np.repeat(ordered[self._first], self.sizes))
        self._running = None if is_even else np.cumsum(ordered)

    def __call__(
        self, rng: np.random.RandomState, per_cell: int, cells: IntArray | None = None
    ) -> IntArray:
        """Return equally many rows of all cells, or of those that are listed."""
        first = self._first if cells is None else self._first[cells]
        sizes = self.sizes if cells is None else self.sizes[cells]
        marks = rng.random_sample((sizes.size, per_cell))
        if self._running is None:
            places = first[:, None] + (marks * sizes[:, None]).astype(np.int64)
            return np.asarray(self._order[places.ravel()])
        last = first + sizes - 1
        below = np.where(first > 0, self._running[first - 1], 0.0)
        marks = below[:, None] + marks * (self._running[last] - below)[:, None]
        drawn = np.searchsorted(self._running, marks.ravel(), side="right")
        drawn = np.clip(drawn, np.repeat(first, per_cell), np.repeat(last, per_cell))
        return np.asarray(self._order[drawn])

    def standing_in(self, rng: np.random.RandomState, n_rows: int) -> tuple[IntArray, FloatArray]:
        """Return about ``n_rows`` rows, at least one of each cell, and what each stands for.

        With equal weights: sums over rows times factors are unbiased estimates of sums over all.
        """
        n_each = max(1, n_rows // self.sizes.size)
        return self(rng, n_each), np.repeat(self.sizes / n_each, n_each)
