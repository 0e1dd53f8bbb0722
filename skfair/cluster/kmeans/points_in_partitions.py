"""The clustering problem on points that stay in the partitions of a Dask collection.

``kmeans/rows.py`` makes this problem of large Dask collections. Cells, weights and labels are
arrays of the process that fits, which computes with them as for points in memory. A question about
the points themselves (sums of clusters, distances) is sent to all partitions by ``ask``. In each
partition, :func:`_answer` makes an ordinary problem of its rows, with the units and the precision
of the whole, and calls the ordinary method. The answers are then put together here. If the points
of a few rows are needed, such as a sample, they are fetched (``subset``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.cluster.assignment.cost_table import CostTable, Moves
from skfair.cluster.assignment.counts import Constraints, GroupedRows
from skfair.cluster.assignment.points import (
    Distances,
    RepresentationProblem,
    Spread,
    Units,
    units_of,
)
from skfair.groups.encoding import GroupEncoding
from skfair.utils.partition_tasks import add
from skfair.utils.partitioned_rows import PartitionedRows


class PointsInPartitions(RepresentationProblem):
    """Points in partitions, their cells, and the constraints that each cluster has to satisfy."""

    X: PartitionedRows  # type: ignore[assignment]

    def __init__(
        self,
        X: PartitionedRows,
        groups: GroupEncoding,
        constraints: Constraints,
        n_clusters: int,
        weights: FloatArray | None = None,
    ) -> None:
        super().__init__(X, groups, constraints, n_clusters, weights)  # type: ignore[arg-type]
        # Partitions get these attributes of the whole problem. Their own arrays are in _Points.
        names = "n_clusters", "membership", "total_weight", "units", "is_large"
        self._whole = {name: getattr(self, name) for name in names}
        self._whole |= {"n_whole": self.n_samples, "step_of_whole": self.step, "_scaled": None}
        columns = self.cells, self.weights, np.arange(self.n_samples)
        self._points = X.then(_keep, *columns, whole=self._whole, dtype=X.dtype)

    def _measured(self) -> Units:
        parts = self.X.each(_spreads, self.weights, step=self.step)
        return units_of([spread for part in parts for spread in part])

    def _lengths(self) -> NDArray[Any]:
        return np.zeros(0)  # the partitions keep the lengths of their rows

    def ask(
        self,
        method: Callable[..., Any],
        *columns: NDArray[Any],
        centers: FloatArray | None = None,
        **arguments: Any,
    ) -> list[Any]:
        """Return the results of a method in all partitions, in their order.

        With ``centers`` it is a method of :class:`Distances`, the table of distances to them, and
        otherwise of the problem. ``columns`` have a number per row, and each partition gets its
        part.
        """
        question = {"method": method, "centers": centers, "arguments": arguments}
        return self._points.each(_answer, *columns, whole=self._whole, **question)

    def subset(self, rows: IntArray) -> RepresentationProblem:  # type: ignore[override]
        """Return the problem on some of the points, in memory."""
        part = RepresentationProblem.__new__(RepresentationProblem)
        vars(part).update(vars(GroupedRows.subset(self, rows)), X=self.X.taken(rows))
        part.norms = part._lengths()
        return part

    def scaled(self, rows: Any) -> NDArray[Any]:
        """Fetch rows and return them scaled. Only a few rows should be asked for."""
        return self.subset(np.arange(self.n_samples)[rows]).scaled(slice(None))

    def sums(self, labels: IntArray) -> tuple[FloatArray, FloatArray, float]:
        """Return sum (scaled) and weight of each cluster, and the sum of squared norms."""
        sums, mass, squares = add(self.ask(RepresentationProblem.sums, labels))
        return sums, mass, squares

    def distances(self, target: NDArray[Any]) -> DistancesInPartitions:
        """Return the squared distances to centres (in scaled units)."""
        return DistancesInPartitions(self, target)


class DistancesInPartitions(Distances):
    """Squared distances of points in partitions to given centres."""

    rows: PointsInPartitions

    def __init__(self, problem: PointsInPartitions, centers: NDArray[Any]) -> None:
        super().__init__(problem, centers)
        self._ask = partial(problem.ask, centers=centers)

    def own_costs(self, labels: IntArray) -> NDArray[Any]:
        """Return what each row pays in its cluster."""
        own: NDArray[Any] = np.concatenate(self._ask(CostTable.own_costs, labels))
        return own

    def cost(self, labels: IntArray) -> float:
        """Return the mean of what the rows pay in their clusters.

        Each partition divides by the total weight of the whole, so the parts add up to the mean.
        """
        return float(sum(self._ask(CostTable.cost, labels)))

    def told_apart(
        self, price: FloatArray, reach: float
    ) -> tuple[NDArray[np.int32], IntArray, FloatArray, FloatArray, float]:
        """Give labels to the rows that are cheaper in one cluster than in all others by ``reach``.

        See :meth:`CostTable.told_apart`.
        """
        answers = self._ask(CostTable.told_apart, price=price, reach=reach)
        labels, numbers, costs, counts, paid = zip(*answers, strict=True)
        starts = self.rows.X.starts
        number = [own + start for own, start in zip(numbers, starts, strict=True)]
        near = np.concatenate(number), np.concatenate(costs)
        return np.concatenate(labels), *near, np.sum(counts, axis=0), sum(paid)

    def list_moves(self, labels: IntArray, moves: Moves) -> None:
        """Merge the lists of all partitions into ``moves``, with row numbers of the whole."""
        answers = self._ask(CostTable.cheapest_moves, labels, n_kept=moves.n_kept)
        for part, start in zip(answers, self.rows.X.starts, strict=True):
            part.row += start
            moves.take(part)


class _DistancesOfPart(Distances):
    """Distances of the points of a partition, bit for bit the same as for points in memory."""

    rows: Any  # a problem from ``_Points.problem``, which has attributes of the whole problem

    def __init__(self, part: Any, centers: NDArray[Any]) -> None:
        super().__init__(part, centers)
        self.step = part.step_of_whole

    def _write_products(self, rows: slice, out: NDArray[Any]) -> NDArray[Any]:
        """Write -2 times the products of rows and centres; return the rows' squared lengths.

        The rounding of a product of matrices depends on the number of rows and on their places in
        it. So the rows are put at the places that they have in a block of the whole, among zeros.
        """
        part, scaled = self.rows, self.rows.scaled(rows)
        first, stop = part.first + rows.start, part.first + rows.stop
        for start in range(first - first % self.step, stop, self.step):
            piece = np.zeros((min(self.step, part.n_whole - start), scaled.shape[1]), out.dtype)
            i, j = max(first, start), min(stop, start + len(piece))
            piece[i - start : j - start] = scaled[i - first : j - first]
            out[i - first : j - first] = (piece @ self._minus_two)[i - start : j - start]
        return np.asarray(part.norms[rows])


class _Points(NamedTuple):
    """The arrays of a partition. They stay in the process that holds the partition."""

    X: NDArray[Any]
    cells: IntArray
    weights: FloatArray
    norms: NDArray[Any]
    first: int  # number of its first row

    def problem(self, whole: dict[str, Any]) -> RepresentationProblem:
        """Return the problem on these rows, without the checks and measures of its ``__init__``."""
        part = RepresentationProblem.__new__(RepresentationProblem)
        vars(part).update(self._asdict(), **whole)
        return part


def _keep(
    X: NDArray[Any],
    cells: IntArray,
    weights: FloatArray,
    numbers: IntArray,
    *,
    whole: dict[str, Any],
    dtype: Any,
) -> _Points:
    """Return the arrays that a partition keeps; ``numbers`` are the numbers of its rows."""
    first = int(numbers[0]) if numbers.size else 0
    points = _Points(X.astype(dtype, copy=False), cells, weights, np.zeros(0), first)
    return points._replace(norms=points.problem(whole)._lengths())


def _spreads(X: NDArray[Any], weights: FloatArray, *, step: int) -> list[Spread]:
    """Return the measures of a partition, block by block."""
    return [Spread.of(X[i : i + step], weights[i : i + step]) for i in range(0, len(X), step)]


def _answer(
    points: _Points,
    *columns: NDArray[Any],
    whole: dict[str, Any],
    method: Callable[..., Any],
    centers: FloatArray | None,
    arguments: dict[str, Any],
) -> Any:
    """Call a method in a partition, see ``PointsInPartitions.ask``."""
    part = points.problem(whole)
    asked = part if centers is None else _DistancesOfPart(part, centers)
    return method(asked, *columns, **arguments)
