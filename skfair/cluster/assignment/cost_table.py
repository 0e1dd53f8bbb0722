"""Costs of rows in clusters, and the sums over rows that the price method needs.

``by_prices.py`` and ``placement.py`` do not read rows. They ask a :class:`CostTable` for sums at
given prices (``soft_counts`` in the search for prices, ``assigned`` at its end) and for short lists
of the cheapest moves between clusters (``near_moves``, ``cheapest_moves``: :class:`Moves`). Rows
are visited in blocks that fit into the cache. If points are in partitions, the same methods run
there (``kmeans/points_in_partitions.py``).

A problem (:class:`CostedRows`) makes its table: ``distances(target)``. For points the target is
centres (``points.py``). For :class:`CostProblem` it is the costs themselves, from
:class:`FairAssignment` and spectral clustering. A price is an array (n_cells, n_clusters) that is
added to the costs of the rows of a cell, which are the rows of the same groups.
"""

from __future__ import annotations

import copy
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.cluster.assignment.counts import GroupedRows
from skfair.utils.partition_tasks import add
from skfair.utils.pieces import NUMBERS, piece_rows
from skfair.utils.threads import BLOCK, added, over_blocks, starts_of_blocks

R = TypeVar("R")
# What ``CostTable.soft_counts`` returns: value, counts and curvature.
SoftCounts = tuple[float, FloatArray, FloatArray]

# The largest number of entries of a list of cheapest moves. With 8 the costs are the same (140 fits
# of 2 to 40 groups), but labels that are far from their limits are not repaired.
_LONGEST_LIST = 24
# The lists that are tried first (``near_moves``) are shorter by this factor, because only a tenth
# of the entries is used. With short lists first, 20,000 rows of 16 groups take 0.74 of the
# time, at the same labels, and 200,000 lists of one move (100 clusters, 20 groups) take 0.7 of the
# time of lists of five.
_LONGER = 6


class Moves:
    """The cheapest moves of rows, in order of cost: a list for each (cluster, target, cell).

    Each list holds at most ``n_kept`` rows of the cell that are in the cluster, and by how much
    their cost is higher in the target.
    """

    def __init__(self, rows: GroupedRows, n_kept: int) -> None:
        shape = (rows.n_clusters, rows.n_clusters, rows.n_cells)
        # Row, cost (n_clusters, n_clusters, n_cells, n_kept): number of the row, and what its move
        # costs per unit of weight
        self.row = np.empty((*shape, n_kept), np.int64)
        self.cost = np.empty((*shape, n_kept))
        # (n_clusters, n_clusters, n_cells): number of entries of each list
        self.size = np.zeros(shape, np.int64)

    @property
    def n_kept(self) -> int:
        """The largest number of entries of a list."""
        return self.row.shape[3]

    @property
    def is_listed(self) -> BoolArray:
        """Which entries of ``row`` and ``cost`` are filled."""
        return np.asarray(np.arange(self.n_kept) < self.size[..., None])

    def empty_twin(self) -> Moves:
        """Return empty lists of the same shape, for another thread to fill."""
        twin = copy.copy(self)
        twin.row, twin.cost = np.empty_like(self.row), np.empty_like(self.cost)
        twin.size = np.zeros_like(self.size)
        return twin

    def take(self, other: Moves) -> None:
        """Merge other lists into these and keep the cheapest moves, the first row if costs tie."""
        cost, row = (
            np.concatenate([mine, theirs], axis=3)
            for mine, theirs in ((self.cost, other.cost), (self.row, other.row))
        )
        cost[~np.concatenate([self.is_listed, other.is_listed], axis=3)] = np.inf
        order = np.lexsort((row, cost))[..., : self.n_kept]
        self.cost[:] = np.take_along_axis(cost, order, axis=3)
        self.row[:] = np.take_along_axis(row, order, axis=3)
        np.minimum(self.size + other.size, self.n_kept, out=self.size)


class CostTable(ABC):
    """The costs of rows in each cluster. A subclass writes ``costs``."""

    step: int  # rows per block, which one thread computes at a time
    unit = 1.0  # typical cost of a row, in which gains are compared
    surplus = 0.0  # mean cost minus true mean cost; not 0 in a table that shifts costs (``Costs``)

    def __init__(self, rows: GroupedRows) -> None:
        self.rows = rows
        self.step = piece_rows(rows.cells.size, rows.n_clusters)

    @abstractmethod
    def costs(self, rows: slice) -> NDArray[Any]:
        """Return what some rows pay in all clusters."""

    def each(self, function: Callable[[slice, NDArray[Any]], R]) -> list[R]:
        """Return ``function(rows, costs)`` for each block, computed by threads.

        Without rows there is one empty block.
        """

        def of_block(start: int, stop: int) -> R:
            rows = slice(start, stop)
            return function(rows, self.costs(rows))

        return over_blocks(of_block, self.rows.cells.size, self.step) or [of_block(0, 0)]

    def soft_counts(self, price: FloatArray, temperature: float) -> SoftCounts:
        """Return the sum of soft minima of cost plus price, the soft counts and their curvature.

        The soft minimum of a row, ``-T log sum_k exp(-v_k / T)`` with v_k cost plus price, is
        weighted with the weight of the row. Its derivatives by the prices are the shares of the row
        in the clusters, and the soft counts (n_clusters, n_cells) are their sums. The curvature
        (n_cells, n_clusters, n_clusters) is minus the derivatives of the counts of a cell by its
        prices, times the temperature.
        """
        from skfair.cluster.assignment._kernels.prices import soft_assign

        cells, weights, n_clusters = self.rows.cells, self.rows.weights, self.rows.n_clusters

        def of_block(part: slice, costs: NDArray[Any]) -> SoftCounts:
            counts = self.rows.no_counts()
            scratch = np.empty(n_clusters), np.empty(n_clusters, np.int64)
            curvature = np.zeros((self.rows.n_cells, n_clusters, n_clusters))
            arguments = costs, price, cells[part], weights[part], temperature
            return soft_assign(*arguments, *scratch, counts, curvature), counts, curvature

        total: SoftCounts = add(self.each(of_block))
        return total

    def mean_nearest(self) -> float:
        """Return the mean cost of the cheapest clusters: the unit of prices in ``by_prices.py``."""
        no_price = np.zeros((self.rows.n_cells, self.rows.n_clusters))
        return CostTable.assigned(self, no_price)[2] / self.rows.total_weight

    def own_costs(self, labels: IntArray) -> NDArray[Any]:
        """Return the cost of each row in its cluster."""
        return np.concatenate(
            self.each(lambda part, costs: costs[np.arange(len(costs)), labels[part]])
        )

    def nearest(self) -> IntArray:
        """Return the cheapest cluster of each row."""
        return np.concatenate(self.each(lambda part, costs: costs.argmin(axis=1)))

    def assigned(self, price: FloatArray) -> tuple[NDArray[np.int32], FloatArray, float]:
        """Return labels of least cost plus price, their counts by cell, and the sum of minima."""
        labels, _, _, counts, paid = self.told_apart(price, -np.inf)  # -inf: all rows get labels
        return labels, counts, paid + float((counts.T * price).sum())

    def told_apart(
        self, price: FloatArray, reach: float
    ) -> tuple[NDArray[np.int32], IntArray, FloatArray, FloatArray, float]:
        """Give labels to the rows that are cheaper in one cluster than in all others by ``reach``.

        All other rows are near a tie. Returns ``(labels, number, costs, counts, paid)``. ``labels``
        (n_samples,) are not set for rows near a tie. ``number`` (n_near,) and ``costs`` (n_near,
        n_clusters) are the numbers and costs of these. ``counts`` by cluster and cell and ``paid``,
        the sum of costs without prices, are for the rows with labels.
        """
        from skfair.cluster.assignment._kernels.prices import tell_apart

        cells, weights = self.rows.cells, self.rows.weights
        labels = np.empty(cells.size, np.int32)

        def of_block(part: slice, costs: NDArray[Any]) -> tuple[Any, ...]:
            counts = self.rows.no_counts()
            near = np.empty(costs.shape[0] if reach > 0 else 0, np.int64)
            arguments = costs, price, cells[part], weights[part], reach
            n_near, paid = tell_apart(*arguments, labels[part], near, counts)
            return near[:n_near] + part.start, costs[near[:n_near]], counts, paid

        numbers, costs, counts, paid = zip(*self.each(of_block), strict=True)
        near = np.concatenate(numbers), np.concatenate(costs)
        return labels, *near, np.sum(counts, axis=0), sum(paid)

    def cheapest_moves(self, labels: IntArray, n_kept: int | None = None) -> Moves:
        """List the cheapest moves of all rows; if ``n_kept`` is None, it is ``list_length``."""
        moves = Moves(self.rows, n_kept or self.list_length())
        self.list_moves(labels, moves)
        return moves

    def near_moves(self, labels: IntArray) -> Moves:
        """List the moves that are tried first, because they take less time to find.

        Here the lists are shorter. In a ``LargeTable`` they contain only rows near a tie.
        """
        return self.cheapest_moves(labels, self.short_length())

    def list_length(self, longest: int = _LONGEST_LIST) -> int:
        """Return how many moves a list may keep so that all lists together need little memory."""
        n_lists = self.rows.n_clusters**2 * self.rows.n_cells
        return int(np.clip(4 * NUMBERS // n_lists, 1, longest))

    def short_length(self) -> int:
        """Return how many moves the lists of ``near_moves`` keep."""
        return max(1, self.list_length() // _LONGER)

    def list_moves(self, labels: IntArray, moves: Moves) -> None:
        """Enter the moves of all rows into ``moves``.

        Each thread fills lists of its own, which are merged at the end. The result does not depend
        on which thread saw which rows. Merging takes a millisecond, so few rows are left to the
        thread that calls.
        """
        from skfair.cluster.assignment._kernels.moves import cheapest_moves

        rows, me = self.rows, threading.get_ident()
        lists = {me: moves}

        def of_block(part: slice, costs: NDArray[Any]) -> None:
            thread = threading.get_ident()
            if thread not in lists:
                lists[thread] = moves.empty_twin()
            own, cells, weights = lists[thread], rows.cells[part], rows.weights[part]
            lists_of_thread = own.row, own.cost, own.size
            cheapest_moves(costs, labels[part], cells, weights, part.start, *lists_of_thread)

        if rows.cells.size <= BLOCK:
            starts = starts_of_blocks(rows.cells.size, self.step)  # their costs may be kept
            for start in starts:
                part = slice(start, min(start + starts.step, rows.cells.size))
                of_block(part, self.costs(part))
            return
        self.each(of_block)
        for thread, other in lists.items():
            if thread != me:
                moves.take(other)

    def cost(self, labels: IntArray) -> float:
        """Return the mean cost of the rows in their clusters."""
        weights = self.rows.weights

        def of_block(part: slice, costs: NDArray[Any]) -> float:
            return float(weights[part] @ costs[np.arange(len(costs)), labels[part]])

        return sum(self.each(of_block)) / self.rows.total_weight


class CostedRows(GroupedRows, ABC):
    """Grouped rows with a cost in each cluster, which depends on a ``target`` such as centres."""

    @abstractmethod
    def distances(self, target: NDArray[Any]) -> CostTable:
        """Return the table of the costs of each row in each cluster."""

    def target_of(self, rows: IntArray, target: NDArray[Any]) -> NDArray[Any]:
        """Return the target for the problem on some of the rows; centres stay the same."""
        return target


class CostProblem(CostedRows):
    """Rows whose costs are given. The target holds them, (n_samples, n_clusters)."""

    def distances(self, target: NDArray[Any]) -> Costs:
        """Return the table of these costs."""
        return Costs(self, target)

    def target_of(self, rows: IntArray, target: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(target[rows])


class GivenCosts(CostTable):
    """A table of given costs without a shift, for the few rows of ``NearTies``."""

    def __init__(self, rows: GroupedRows, costs: NDArray[Any]) -> None:
        super().__init__(rows)
        self._costs = costs

    def costs(self, rows: slice) -> NDArray[Any]:
        """Return the costs of some rows in all clusters, (n_rows, n_clusters)."""
        return self._costs[rows]


class Costs(GivenCosts):
    """A table of costs of any sign, shifted so that they can be treated like distances.

    The unit of the search for prices is the mean cost of the cheapest clusters, so this mean must
    be positive. A constant is added to the costs of each row, which changes no labels. After that
    the cheapest cluster of every row costs ``unit``, the mean over rows and clusters of the cost
    minus the row's lowest cost.
    """

    def __init__(self, rows: GroupedRows, costs: NDArray[Any]) -> None:
        super().__init__(rows, above := np.empty(costs.shape))

        def of_block(start: int, stop: int) -> FloatArray:
            cheapest = costs[start:stop].min(axis=1)
            own = np.subtract(costs[start:stop], cheapest[:, None], out=above[start:stop])
            return np.array([own.sum(), rows.weights[start:stop] @ cheapest])

        def lift(start: int, stop: int) -> None:
            above[start:stop] += self.unit

        total, paid = added(of_block, len(above), np.zeros(2)).tolist()
        self.unit = total / above.size or 1.0
        # A negative true mean cost does not say how much can be gained, so 0 replaces it.
        self.surplus = self.unit - max(paid / rows.total_weight, 0.0)
        over_blocks(lift, len(above))
