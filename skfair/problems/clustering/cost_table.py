"""What each row pays in each cluster, and the sums over rows that the price method needs.

A solver never sees a row. It asks a table for sums at given prices and for short lists of the
cheapest moves between clusters. Here the rows are in memory and visited in blocks that fit into the
cache; where they are elsewhere, the same methods run on pieces of them and the results are added up
(``problems/clustering/in_blocks.py``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.utils.factorize import IntArray

if TYPE_CHECKING:
    from skfair.problems.clustering.representation import (
        CostProblem,
        GroupedRows,
        RepresentationProblem,
    )

Block = tuple[slice, NDArray[Any]]

# Distances of more numbers than this are recomputed block by block instead of kept: 8 MB.
_MAX_KEPT = 1 << 20


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
        self, problem: GroupedRows, n_kept: int, labels: IntArray, weights: FloatArray
    ) -> None:
        shape = (problem.n_clusters, problem.n_clusters, problem.n_cells)
        self.row = np.empty((*shape, n_kept), np.int64)
        self.cost = np.empty((*shape, n_kept))
        self.size = np.zeros(shape, np.int64)
        self.labels, self.weights = labels, weights

    @property
    def is_listed(self) -> NDArray[np.bool_]:
        """Which entries of ``row`` and ``cost`` are filled."""
        return np.asarray(np.arange(self.row.shape[3]) < self.size[..., None])

    def apply(self, labels: Any) -> None:
        """Write changed labels back; in memory they are the labels themselves."""


class CostTable(ABC):
    """What the rows of a problem pay in each cluster."""

    def __init__(self, problem: GroupedRows) -> None:
        self.problem = problem

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield (rows, costs of these rows in all clusters)."""

    def soft_counts(self, price: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        """Return the sum of soft minima of cost plus price, and the soft counts by cell."""
        from skfair._kernels.prices import soft_assign

        problem, value, counts = self.problem, 0.0, self._no_counts()
        for rows, block in self.blocks():
            value += soft_assign(
                block, price, problem.cells[rows], problem.weights[rows], temperature, counts
            )
        return value, counts

    def mean_nearest(self) -> float:
        """Return the mean cost of the cheapest clusters: the unit of prices."""
        nearest = sum(
            float(self.problem.weights[rows] @ block.min(axis=1)) for rows, block in self.blocks()
        )
        return nearest / self.problem.total_weight

    def assigned(self, price: FloatArray) -> tuple[Any, FloatArray, float]:
        """Return labels of least cost plus price, their counts by cell, and the sum of minima."""
        from skfair._kernels.prices import hard_assign

        problem, value, counts = self.problem, 0.0, self._no_counts()
        labels = np.empty(problem.cells.size, np.int64)
        for rows, block in self.blocks():
            value += hard_assign(
                block, price, problem.cells[rows], problem.weights[rows], labels[rows], counts
            )
        return labels, counts, value

    def cheapest_moves(self, labels: Any, n_kept: int) -> Moves:
        """List the cheapest moves away from the labels."""
        moves = Moves(self.problem, n_kept, labels, self.problem.weights)
        self.list_moves(labels, moves)
        return moves

    def list_moves(self, labels: IntArray, moves: Moves, start: int = 0) -> None:
        """Enter moves into lists; the first row has the number ``start``."""
        from skfair._kernels.prices import cheapest_moves

        problem = self.problem
        for rows, block in self.blocks():
            cheapest_moves(
                block,
                labels[rows],
                problem.cells[rows],
                problem.weights[rows],
                start + rows.start,
                moves.row,
                moves.cost,
                moves.size,
            )

    def cost(self, labels: Any) -> float:
        """Return the mean of what the rows pay in their clusters."""
        total = sum(
            float(self.problem.weights[rows] @ own) for rows, own in self._own_costs(labels)
        )
        return total / self.problem.total_weight

    def _own_costs(self, labels: IntArray) -> Iterator[Block]:
        for rows, block in self.blocks():
            yield rows, np.take_along_axis(block, labels[rows, None], axis=1)[:, 0]

    def _no_counts(self) -> FloatArray:
        return np.zeros((self.problem.n_clusters, self.problem.n_cells))


class Distances(CostTable):
    """Squared distances of all points to given centres, kept or recomputed in blocks."""

    problem: RepresentationProblem

    def __init__(self, problem: RepresentationProblem, centers: NDArray[Any]) -> None:
        super().__init__(problem)
        dtype = np.float32 if problem.is_large else np.float64
        self._minus_two = np.ascontiguousarray(-2 * centers.T, dtype=dtype)
        self._norms = np.einsum("ij,ij->i", centers, centers).astype(dtype)
        self._kept: list[Block] | None = None
        if not are_many(problem.X.shape[0] * problem.n_clusters):
            self._kept = list(self._computed())

    def blocks(self) -> Iterator[Block]:
        """Yield (rows, distances of these rows to all centres)."""
        yield from self._computed() if self._kept is None else self._kept

    def farthest(self, labels: Any, n_points: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the largest weighted distances to own centres, and the (scaled) points."""
        own = np.concatenate(
            [block * self.problem.weights[rows] for rows, block in self._own_costs(labels)]
        )
        rows = largest(own, n_points)
        return own[rows], self.problem.scaled(rows)

    def _computed(self) -> Iterator[Block]:
        problem = self.problem
        for rows in problem.row_slices():
            scaled = problem.scaled(rows)
            shape, dtype = (scaled.shape[0], self._norms.size), self._norms.dtype
            block = problem.room("distances", shape, dtype, is_new=False)
            np.matmul(scaled.astype(dtype, copy=False), self._minus_two, out=block)
            block += self._norms
            block += problem.norms_of(rows, scaled)[:, None]
            # Rounding may leave a point that sits on its centre at -1e-17.
            np.maximum(block, 0, out=block)
            yield rows, block


class Costs(CostTable):
    """A table of costs that looks like :class:`Distances` to a solver.

    Rows are shifted so that the cheapest cluster of each costs the same positive amount, the mean
    of what the others cost more: solvers take the mean of the cheapest as their unit.
    """

    def __init__(self, problem: CostProblem, costs: NDArray[Any]) -> None:
        super().__init__(problem)
        above = np.ascontiguousarray(costs - costs.min(axis=1, keepdims=True))
        above += above.mean() or 1.0
        self._above = above

    def blocks(self) -> Iterator[Block]:
        """Yield (rows, costs of these rows in all clusters)."""
        yield slice(0, self._above.shape[0]), self._above


def are_many(n_numbers: int) -> bool:
    """Whether numbers are too many to be kept in double precision."""
    return n_numbers > _MAX_KEPT


def largest(values: NDArray[Any], n_wanted: int) -> IntArray:
    """Return where the largest values are, in falling order; the first of equal ones first."""
    found = np.arange(values.size)
    if values.size > n_wanted:
        found = np.sort(np.argpartition(values, -n_wanted)[-n_wanted:])
    return np.asarray(found[np.argsort(-values[found], kind="stable")])
