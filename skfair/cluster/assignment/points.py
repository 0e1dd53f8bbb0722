"""Points to be clustered under constraints: rows, units, distances.

``kmeans/rows.py`` makes a :class:`RepresentationProblem` of the rows of a fit. Solvers ask it for
distances to centres (a table of costs, ``cost_table.py``), for means of clusters, and for samples.
``SparsePoints`` and ``PointsInPartitions`` in ``kmeans`` are the same for other kinds of rows.

All of them compute in *scaled* coordinates: ``(x - mean) / scale``, with the mean and the spread of
the data (:class:`Units`), so that neither far offsets nor tiny or huge scales cost digits. Centres
are scaled, too, until ``kmeans/results.py`` turns them back. X itself is kept by reference; scaled
rows are kept for small problems, and otherwise computed block by block.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray, Seed
from skfair.cluster.assignment.cost_table import CostedRows
from skfair.cluster.assignment.counts import Constraints
from skfair.cluster.assignment.near_ties import LargeTable
from skfair.groups.encoding import GroupEncoding
from skfair.utils.pieces import piece_rows
from skfair.utils.threads import over_blocks

R = TypeVar("R")

# If rows times features, or rows times clusters, are more than this, single precision is used.
_LARGE = 1 << 20
# If rows times clusters are more than this, distances are recomputed block by block in each pass
# instead of kept. This many take 16 MB in single precision.
_MAX_KEPT = 1 << 22
_LARGEST = float(np.finfo(np.float64).max)
# The largest scaled coordinate: the square of a much larger one would overflow.
_FARTHEST = 1e100


class Units(NamedTuple):
    """Origin and unit of the scaled coordinates: the mean becomes 0, the total variance 1."""

    mean: FloatArray  # (n_features,)
    scale: float  # root of the mean squared distance from the mean; 1 if that is 0

    @property
    def squared(self) -> float:
        """The square of the unit, cut off at the range of floats."""
        return min(float(self.scale) * float(self.scale), _LARGEST)

    def inwards(self, points: NDArray[Any]) -> FloatArray:
        """Return points of the data in scaled coordinates, in double precision."""
        with np.errstate(over="ignore"):
            own = (points.astype(np.float64) - self.mean) / self.scale
        return np.clip(own, -_FARTHEST, _FARTHEST)

    def outwards(self, points: NDArray[Any]) -> FloatArray:
        """Return scaled points in units of the data."""
        return np.asarray(points, dtype=np.float64) * self.scale + self.mean

    def squared_outwards(self, values: FloatArray) -> FloatArray:
        """Return squared scaled lengths in units of the data, cut off at the range of floats."""
        with np.errstate(over="ignore"):
            return np.clip(values * self.squared, -_LARGEST, _LARGEST)


class Spread(NamedTuple):
    """Mean and sum of squared deviations of a part of the rows. ``units_of`` combines the parts.

    Both are in units of the largest magnitude, because squares of 1e200 overflow and squares of
    1e-200 vanish. Rows without weight do not count.
    """

    unit: float  # largest absolute number of the rows; 1 if all are 0
    weight: float  # total weight
    mean: FloatArray  # (n_features,), divided by ``unit``
    squares: float  # weighted sum of squared distances from the mean, divided by ``unit ** 2``

    @classmethod
    def of(cls, X: NDArray[Any], weights: FloatArray) -> Spread:
        """Measure some points."""
        if not weights.all():
            X, weights = X[weights > 0], weights[weights > 0]
        unit = float(np.abs(X).max(initial=0.0)) or 1.0
        part = X.astype(np.float64) / unit
        weight = float(weights.sum())
        mean = weights @ part / (weight or 1.0)
        part -= mean
        return cls(unit, weight, mean, float(weights @ squared_norms(part)))


def units_of(spreads: list[Spread]) -> Units:
    """Return the units of all rows, given the measures of their parts.

    Chan's formula adds the spread of the means of the parts to the spread within them. Only twelve
    digits are kept, so that units do not depend on the order in which rows are summed. The search
    for prices would turn differences in the last digits into larger ones.
    """
    unit = max(part.unit for part in spreads)
    weights = np.array([part.weight for part in spreads])
    means = np.array([part.mean * (part.unit / unit) for part in spreads])
    weight = float(weights.sum())
    mean = weights @ means / (weight or 1.0)
    within = sum(part.squares * (part.unit / unit) ** 2 for part in spreads)
    squares = within + float(weights @ squared_norms(means - mean))
    spread = float(f"{np.sqrt(squares / weight):.12g}")
    if spread > 0:
        step = 1e-12 * spread
        mean = np.round(mean / step) * step
    return Units(mean * unit, spread * unit or 1.0)


class RepresentationProblem(CostedRows):
    """Points, their cells, and the constraints that each cluster has to satisfy."""

    def __init__(
        self,
        X: NDArray[Any],  # (n_samples, n_features): the points; kept by reference
        # See :class:`GroupedRows`
        groups: GroupEncoding,
        constraints: Constraints,
        n_clusters: int,
        weights: FloatArray | None = None,
        before: FloatArray | None = None,
        # Origin and unit of the scaled coordinates; if None, mean and spread of the points. New
        # rows of a fit get the units of the fit
        units: Units | None = None,
    ) -> None:
        super().__init__(groups, constraints, n_clusters, weights, before)
        self.X = X
        self.is_large = self.n_samples * max(n_clusters, X.shape[1]) > _LARGE
        self.units = self._measured() if units is None else units
        self._scaled: NDArray[Any] | None = None  # all scaled rows, if the problem is small
        if isinstance(X, np.ndarray) and not self.is_large:
            self._scaled = self.scaled(slice(None))
        self.norms = self._lengths()

    def _measured(self) -> Units:
        """Find the mean and the spread of the data without copying them."""
        return units_of(self.each(lambda rows: Spread.of(self.X[rows], self.weights[rows])))

    def _lengths(self) -> NDArray[Any]:
        """Return the squared lengths of all scaled rows."""
        dtype = np.float32 if self.is_large else np.float64
        return np.concatenate([np.empty(0, dtype), *self.each(self.lengths)], dtype=dtype)

    @property
    def masses(self) -> FloatArray:
        """Weights of the rows divided by their sum, at any scale of the weights."""
        masses = self.weights / self.weights.max()
        return np.asarray(masses / masses.sum())

    @property
    def step(self) -> int:
        """Number of rows in a block that fits into the cache; zeros of sparse rows do not count."""
        n_rows, n_columns = self.X.shape
        width = getattr(self.X, "nnz", n_rows * n_columns) / max(n_rows, 1)
        return piece_rows(n_rows, max(self.n_clusters, width))

    def each(self, function: Callable[[slice], R]) -> list[R]:
        """Return ``function(rows)`` for each slice of rows, on the threads that are allowed."""
        return over_blocks(
            lambda start, stop: function(slice(start, stop)), self.X.shape[0], self.step
        )

    def lengths(self, rows: slice) -> NDArray[Any]:
        """Return the squared lengths of some scaled rows."""
        return squared_norms(self.scaled(rows))

    def scaled(self, rows: Any) -> NDArray[Any]:
        """Return rows of X relative to the mean and in units of the spread."""
        if self._scaled is not None:
            return np.asarray(self._scaled[rows])
        from skfair.cluster.assignment._kernels.prices import scaled_rows

        dtype = np.float32 if self.is_large or self.X.dtype == np.float32 else np.float64
        block, own = self.X[rows], self.X.dtype
        part = np.empty(block.shape, dtype)
        unit = max(self.units.scale, float(np.finfo(own).tiny))  # so that 1 / unit is finite
        scaled_rows(block, self.units.mean.astype(own), own.type(1 / unit), part)
        # Rows of weight 0 may lie so far out that their squares overflow, and inf * 0 is NaN.
        if (idle := self.weights[rows] == 0).any():
            part[idle] = part[idle].clip(-1e12, 1e12)
        return part

    def start_points(self, rng: np.random.RandomState) -> NDArray[Any]:
        """Return the points for the first plain k-means; only ``SparsePoints`` needs ``rng``."""
        return self.scaled(slice(None))

    def in_full_precision(self, rows: Any) -> FloatArray:
        """Return scaled rows in double precision, whatever X has."""
        return self.units.inwards(self.X[rows])

    def subset(self, rows: IntArray) -> Self:
        """Return the problem on some of the points, with the same cells, units and constraints."""
        part = super().subset(rows)
        part.X, part.norms, part._scaled = self.X[rows], self.norms[rows], None
        return part

    def sample(self, n_rows: int, random_state: Seed) -> RepresentationProblem:
        """Return the problem on a random sample, or this problem if it has no more rows."""
        return self if self.n_samples <= n_rows else self.sampled(n_rows, random_state)[1]

    def distances(self, target: NDArray[Any]) -> Distances:
        """Return the squared distances to centres (in scaled units)."""
        return Distances(self, target)

    def sums(self, labels: IntArray) -> tuple[FloatArray, FloatArray, float]:
        """Return the sum of scaled rows (n_clusters, n_features) and the weight of each cluster.

        The third number is the weighted sum of the squared norms of all rows.
        """
        from skfair.cluster.assignment._kernels.prices import cluster_sums

        def of_block(rows: slice) -> tuple[FloatArray, FloatArray, float]:
            scaled, weights = self.scaled(rows), self.weights[rows]
            sums, mass = np.zeros((self.n_clusters, self.X.shape[1])), np.zeros(self.n_clusters)
            cluster_sums(scaled, labels[rows], weights, sums, mass)
            return sums, mass, float(np.dot(weights, self.norms[rows]))

        sums, mass = np.zeros((self.n_clusters, self.X.shape[1])), np.zeros(self.n_clusters)
        squares = 0.0
        for part in self.each(of_block):
            sums, mass, squares = sums + part[0], mass + part[1], squares + part[2]
        return sums, mass, squares

    def means(self, labels: IntArray) -> tuple[FloatArray, FloatArray, float]:
        """Return the means (scaled) and weights of the clusters, and the mean squared distance.

        An empty cluster has mean 0.
        """
        sums, mass, squares = self.sums(labels)
        means = sums / np.where(mass > 0, mass, 1.0)[:, None]
        inner = float(mass @ np.einsum("ij,ij->i", means, means))
        # The difference may be slightly below 0 by rounding.
        return means, mass, max(0.0, (squares - inner) / self.total_weight)

    def reseeded_means(self, labels: IntArray, centers: FloatArray, empty: IntArray) -> FloatArray:
        """Return the means; each cluster in ``empty`` gets a row that is far from its centre."""
        seeds = self.farthest_points(labels, centers, empty.size)[1] if empty.size else 0.0
        means = self.means(labels)[0]
        means[empty] = seeds
        return means

    def farthest_points(
        self, labels: IntArray, centers: FloatArray, n_points: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the ``n_points`` largest squared distances to own centres, and these scaled rows.

        Rows without weight are left out.
        """
        cost = self.distances(centers).own_costs(labels)
        cost *= self.weights > 0
        rows = largest(cost, n_points)
        return cost[rows], self.scaled(rows)


class Distances(LargeTable):
    """Squared distances of all points to given centres, kept or recomputed in blocks."""

    rows: RepresentationProblem

    def __init__(self, problem: RepresentationProblem, centers: NDArray[Any]) -> None:
        super().__init__(problem)
        dtype = np.float32 if problem.is_large else np.float64
        self._minus_two = np.ascontiguousarray(-2 * centers.T, dtype=dtype)
        self._norms = np.einsum("ij,ij->i", centers, centers).astype(dtype)
        # ``soft_counts`` allocates n_cells * n_clusters^2 numbers of curvature for each block. A
        # block has at least five times as many distances.
        self.step = max(problem.step, 5 * problem.n_cells * problem.n_clusters)
        # Distances of each block, by its first row and the row after its last one
        self._kept: dict[tuple[int, int], NDArray[Any]] = {}
        self._is_kept = problem.X.shape[0] * problem.n_clusters <= _MAX_KEPT

    def costs(self, rows: slice) -> NDArray[Any]:
        """Return the squared distances of a block of rows, ``-2 x c + |c|^2 + |x|^2``.

        They are kept for the next pass if all of them take little memory.
        """
        kept = self._kept.get((rows.start, rows.stop))
        if kept is not None:
            return kept
        from skfair.cluster.assignment._kernels.prices import complete_distances

        norms = self._norms
        costs = np.empty((rows.stop - rows.start, norms.size), norms.dtype)
        complete_distances(costs, norms, self._write_products(rows, costs))
        if self._is_kept:
            self._kept[rows.start, rows.stop] = costs
        return costs

    def _write_products(self, rows: slice, out: NDArray[Any]) -> NDArray[Any]:
        """Write -2 times the products of rows and centres; return the rows' squared lengths."""
        scaled = self.rows.scaled(rows)
        np.matmul(scaled.astype(out.dtype, copy=False), self._minus_two, out=out)
        return self.rows.norms[rows]


def squared_distances(block: FloatArray, centers: FloatArray) -> FloatArray:
    """Return the squared distances of rows to centres in the same units, (n_rows, n_centers)."""
    distances = block @ (-2 * centers.T)
    distances += squared_norms(block)[:, None]
    distances += squared_norms(centers)
    return np.maximum(distances, 0.0, out=distances)


def squared_norms(points: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(np.einsum("ij,ij->i", points, points))


def largest(values: NDArray[Any], n_wanted: int) -> IntArray:
    """Return the positions of the largest values, in falling order; ties keep their order."""
    places = np.arange(values.size)
    if values.size > n_wanted:
        places = np.sort(np.argpartition(values, -n_wanted)[-n_wanted:])
    return np.asarray(places[np.argsort(-values[places], kind="stable")])
