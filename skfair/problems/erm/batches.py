"""Random batches of rows for stochastic solvers: some for the loss, equally many for each cell.

A cell holds the rows over which a constraint averages, such as the positives of a group.
:meth:`skfair.problems.erm.problem.ConstrainedERM.draw` makes a :class:`BatchSampler` of its
constraints and weights, and calls it for each batch. It returns a ``Batch``: the numbers of the
drawn rows, and the weights that they have in the mean loss and in the cell means of each
constraint. A :class:`CellSampler` draws the rows of the cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.problems.protocol import Batch


class BatchSampler:
    """Draws batches.

    Rows are drawn with replacement in proportion to their weights, so a batch is an unbiased sample
    of the mean loss and of every cell mean. The rows that are drawn for the cells of a constraint
    may already be as good a (stratified) sample for the loss as ``n_loss`` rows. Then no further
    rows are drawn for the loss.
    """

    def __init__(
        self,
        constraints: Sequence[BoundConstraint],
        loss_weights: FloatArray,  # (n_samples,): weights of the rows in the mean loss
    ) -> None:
        one_cell = np.zeros(loss_weights.size, np.int64)
        self._for_loss = CellSampler(one_cell, loss_weights, 1)
        self._for_cells = [CellSampler(r.cells, r.row_weights, r.n_cells) for r in constraints]
        self._masses = [_masses(constraint, loss_weights) for constraint in constraints]

    def __call__(
        self,
        rng: np.random.RandomState,
        n_loss: int,
        n_per_cell: int,
        cells: Sequence[IntArray] | None = None,
    ) -> Batch:
        """Return a batch with ``n_per_cell`` rows of each cell, and ``n_loss`` rows for the loss.

        ``cells`` lists the wanted cells of each constraint; if it is None, all are wanted.
        """
        stand_in = self._stand_in(n_loss, n_per_cell) if cells is None else None
        n_own = n_loss if stand_in is None else 0
        wanted = [None] * len(self._for_cells) if cells is None else cells
        draws = zip(self._for_cells, wanted, strict=True)
        # The rows of the loss come first, then those of each constraint, cell by cell.
        parts = [self._for_loss(rng, n_own), *(draw(rng, n_per_cell, some) for draw, some in draws)]
        rows = np.concatenate(parts)
        loss_weights, cell_weights = np.zeros(rows.size), []
        loss_weights[:n_own] = 1 / max(n_own, 1)
        for k, (start, stop) in enumerate(pairwise(np.cumsum([part.size for part in parts]))):
            weights = np.zeros(rows.size)
            weights[start:stop] = 1 / max(n_per_cell, 1)
            cell_weights.append(weights)
            masses = self._masses[k]
            if k == stand_in and masses is not None:
                loss_weights[start:stop] = np.repeat(masses / n_per_cell, n_per_cell)
        return Batch(rows, loss_weights, cell_weights)

    def _stand_in(self, n_loss: int, n_per_cell: int) -> int | None:
        """Return the number of a constraint whose rows serve for the loss as well, or None.

        With n rows of each cell, and cells of masses p_c, the mean loss has about the variance that
        it has with n / sum p_c^2 rows drawn from all rows. This number must be at least ``n_loss``.
        """
        for k, masses in enumerate(self._masses):
            if masses is not None and n_loss and n_per_cell / (masses @ masses) >= n_loss:
                return k
        return None


def _masses(constraint: BoundConstraint, loss_weights: FloatArray) -> FloatArray | None:
    """Return the weight of each cell in the loss; None if rows of cells cannot stand for the loss.

    They can if the weights in each cell are proportional to the weights in the loss, and every row
    of positive weight is in some cell.
    """
    masses = np.bincount(constraint.cells, loss_weights, constraint.n_cells).astype(np.float64)
    by_constraint = masses[constraint.cells] * constraint.row_weights
    return masses if np.allclose(by_constraint, loss_weights, rtol=1e-9, atol=0.0) else None


class CellSampler:
    """Draws rows of every cell in proportion to their weights, with replacement.

    ``cells`` and ``weights`` (n_samples,) are the cell of each row and its weight. Rows are sorted
    by cell, so that the rows of a cell follow each other. If weights are equal within each cell, a
    random place in the cell is drawn. Otherwise a random point of the running sum of weights is
    drawn, and the row whose weight covers this point.
    """

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
        """Return ``per_cell`` rows of each listed cell, or of all cells if ``cells`` is None."""
        first = self._first if cells is None else self._first[cells]
        sizes = self.sizes if cells is None else self.sizes[cells]
        marks = rng.random_sample((sizes.size, per_cell))
        if self._running is None:
            places = first[:, None] + (marks * sizes[:, None]).astype(np.int64)
            return np.asarray(self._order[places.ravel()])
        # ``marks`` become points of the running sum inside each cell. Rounding may put a point just
        # outside its cell, which is why the drawn places are clipped.
        last = first + sizes - 1
        below = np.where(first > 0, self._running[first - 1], 0.0)  # the sum before the cell
        marks = below[:, None] + marks * (self._running[last] - below)[:, None]
        drawn = np.searchsorted(self._running, marks.ravel(), side="right")
        drawn = np.clip(drawn, np.repeat(first, per_cell), np.repeat(last, per_cell))
        return np.asarray(self._order[drawn])
