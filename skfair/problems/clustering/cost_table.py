"""What each row pays in each cluster, and the sums over rows that the price method needs.

A solver never sees a row. It asks a table for sums at given prices and for short lists of the
cheapest moves between clusters. Here the rows are in memory and visited in blocks that fit into the
cache; where they are elsewhere, the same methods run on pieces of them and the results are added up
(``problems/clustering/in_blocks.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.problems.clustering.counts import GroupedRows

Block = tuple[slice, NDArray[Any]]

# How many entries the lists of cheapest moves may have in all, and how many per list.
_LIST_BUDGET, _SHORTEST_LIST, _LONGEST_LIST = 1 << 20, 4, 24


class Moves:
    """The cheapest moves of rows, by (cluster, target, cell), in order of cost.

    Attributes
    ----------
    row, cost : ndarray of shape (n_clusters, n_clusters, n_cells, n_kept)
        Number of the row, and what its move costs per unit of weight.
    size : ndarray of shape (n_clusters, n_clusters, n_cells)
        Number of entries of each list.
    labels, weights : ndarray
        Clusters and weights by the number of the row; whoever moves rows changes ``labels``.
    """

    def __init__(
        self, rows: GroupedRows, n_kept: int, labels: IntArray, weights: FloatArray
    ) -> None:
        shape = (rows.n_clusters, rows.n_clusters, rows.n_cells)
        self.row = np.empty((*shape, n_kept), np.int64)
        self.cost = np.empty((*shape, n_kept))
        self.size = np.zeros(shape, np.int64)
        self.labels, self.weights = labels, weights

    @property
    def is_listed(self) -> BoolArray:
        """Which entries of ``row`` and ``cost`` are filled."""
        return np.asarray(np.arange(self.row.shape[3]) < self.size[..., None])

    def apply(self) -> None:
        """Write changed labels back; in memory they are the labels themselves."""


class CostTable(ABC):
    """What rows pay in each cluster."""

    def __init__(self, rows: GroupedRows) -> None:
        self.rows = rows

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield (rows, costs of these rows in all clusters)."""

    def soft_counts(self, price: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """Return the sum of soft minima of cost plus price, and the soft counts by cell."""
        from skfair._kernels.prices import soft_assign

        cells, weights = self.rows.cells, self.rows.weights
        value, counts = 0.0, self._no_counts()
        for part, block in self.blocks():
            value += soft_assign(block, price, cells[part], weights[part], temperature, counts)
        return value, counts

    def mean_nearest(self) -> float:
        """Return the mean cost of the cheapest clusters: the unit of prices."""
        nearest = sum(
            float(self.rows.weights[part] @ block.min(axis=1)) for part, block in self.blocks()
        )
        return nearest / self.rows.total_weight

    def nearest(self) -> IntArray:
        """Return the cheapest cluster of each row."""
        return np.concatenate([block.argmin(axis=1) for _, block in self.blocks()])

    def assigned(self, price: FloatArray) -> tuple[Any, FloatArray, float]:
        """Return labels of least cost plus price, their counts by cell, and the sum of minima."""
        from skfair._kernels.prices import hard_assign

        cells, weights = self.rows.cells, self.rows.weights
        value, counts = 0.0, self._no_counts()
        labels = np.empty(cells.size, np.int64)
        for part, block in self.blocks():
            value += hard_assign(block, price, cells[part], weights[part], labels[part], counts)
        return labels, counts, value

    def cheapest_moves(self, labels: Any, n_kept: int | None = None) -> Moves:
        """List the cheapest moves away from the labels."""
        moves = Moves(self.rows, n_kept or self.list_length(), labels, self.rows.weights)
        self.list_moves(labels, moves)
        return moves

    def list_length(self, shortest: int = _SHORTEST_LIST, longest: int = _LONGEST_LIST) -> int:
        """Return how many moves a list may keep so that all lists together stay small."""
        n_lists = self.rows.n_clusters**2 * self.rows.n_cells
        return int(np.clip(_LIST_BUDGET // n_lists, shortest, longest))

    def list_moves(self, labels: IntArray, moves: Moves, start: int = 0) -> None:
        """Enter moves into lists; the first row has the number ``start``."""
        from skfair._kernels.prices import cheapest_moves

        rows = self.rows
        for part, block in self.blocks():
            cheapest_moves(
                block,
                labels[part],
                rows.cells[part],
                rows.weights[part],
                start + part.start,
                moves.row,
                moves.cost,
                moves.size,
            )

    def cost(self, labels: Any) -> float:
        """Return the mean of what the rows pay in their clusters."""
        total = 0.0
        for part, block in self.blocks():
            own = np.take_along_axis(block, labels[part, None], axis=1)[:, 0]
            total += float(self.rows.weights[part] @ own)
        return total / self.rows.total_weight

    def _no_counts(self) -> FloatArray:
        return np.zeros((self.rows.n_clusters, self.rows.n_cells))


class CostedRows(GroupedRows, ABC):
    """Grouped rows that pay a cost to join a cluster; the target of a table sets the costs."""

    @abstractmethod
    def distances(self, target: NDArray[Any]) -> CostTable:
        """Return what each row pays in each cluster."""

    def target_of(self, rows: IntArray, target: NDArray[Any]) -> NDArray[Any]:
        """Return what ``distances`` of the problem on some of the rows takes."""
        return target


class CostProblem(CostedRows):
    """Rows that pay a given cost, (n_samples, n_clusters), to join a cluster."""

    def distances(self, target: NDArray[Any]) -> Costs:
        """Return the costs in the form in which solvers read distances."""
        return Costs(self, target)

    def target_of(self, rows: IntArray, target: NDArray[Any]) -> NDArray[Any]:
        """Return the costs of some of the rows."""
        return np.asarray(target[rows])


class Costs(CostTable):
    """A table of costs that looks like distances to a solver.

    Rows are shifted so that the cheapest cluster of each costs the same positive amount, the mean
    of what the others cost more: solvers take the mean of the cheapest as their unit.
    """

    def __init__(self, rows: GroupedRows, costs: NDArray[Any]) -> None:
        super().__init__(rows)
        above = np.ascontiguousarray(costs - costs.min(axis=1, keepdims=True))
        above += above.mean() or 1.0
        self._above = above

    def blocks(self) -> Iterator[Block]:
        """Yield (rows, costs of these rows in all clusters)."""
        yield slice(0, self._above.shape[0]), self._above
