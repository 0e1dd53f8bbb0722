"""The clustering problem on points that live elsewhere, in blocks.

Every question of a solver is a sum over points, or a short list of the cheapest moves. Here it
goes to the blocks. Each block is cut into pieces that fit into the cache, a piece is an ordinary
problem in memory (with the units, cells and precision of the whole) that answers with the ordinary
methods, and the answers are added up. So the mathematics is written once, and nothing of the length
of the points is held at once, apart from the blocks.

Labels are not held either. They are a recipe, a few numbers from which a block makes its own: the
cheapest clusters at given centres and prices, and the few points that were moved by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.groups.kinds import RowBlock, Training
from skfair.problems.clustering.cost_table import Moves, SoftCounts
from skfair.problems.clustering.counts import Constraints
from skfair.problems.clustering.points import Distances, RepresentationProblem, Spread, largest
from skfair.utils.partition_tasks import add
from skfair.utils.partitions import KEPT_BYTES
from skfair.utils.pieces import NUMBERS


class Tally(NamedTuple):
    """What is counted of labels in one pass."""

    value: float  # sum of least distance plus price
    counts: FloatArray  # (n_clusters, n_cells)
    sums: FloatArray  # (n_clusters, n_features), of scaled points
    mass: FloatArray  # (n_clusters,)
    squares: float  # sum of squared norms
    cost: float  # mean squared distance to the centres


@dataclass
class Labels:
    """How to make the labels of any block."""

    # A point joins the cluster where distance plus price is least,
    centers: FloatArray
    price: FloatArray
    # ... but these rows (numbered over all blocks, rising) are in these clusters
    rows: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    clusters: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    tally: Tally | None = None  # what was counted of these labels

    def move(self, rows: IntArray, clusters: IntArray) -> None:
        """Put rows into clusters."""
        stays = ~np.isin(self.rows, rows)
        rows = np.concatenate([self.rows[stays], rows])
        order = np.argsort(rows)
        self.clusters = np.concatenate([self.clusters[stays], clusters])[order]
        self.rows, self.tally = rows[order], None


class PartitionedProblem(RepresentationProblem):
    """Points in blocks, their cells, and the constraints that each cluster has to satisfy.

    ``X`` has no rows; ``cells`` and ``weights`` are those of the kinds of rows.
    """

    has_rows_here = False

    def __init__(
        self,
        training: Training,  # the blocks and the table of kinds
        constraints: Constraints,  # constraints in terms of groups
        n_clusters: int,  # number of clusters
    ) -> None:
        self._training = training
        spread = training.rows.total(_spread, combine=Spread.merged)
        super().__init__(
            np.zeros((0, training.n_features), training.dtype),
            training.groups,
            constraints,
            n_clusters,
            training.weights,
            units=spread.units(),
            first=training.first,
        )
        self.largest_weight = training.person

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self._training.n_samples

    @property
    def row_weight(self) -> float:
        """The weight of all rows that have one, whose counts are whole; 0 if weights differ."""
        return self.largest_weight if self._training.least == self.largest_weight else 0.0

    def subset(self, rows: IntArray) -> RepresentationProblem:  # type: ignore[override]
        """Return the problem on some of the points (numbers must rise), gathered in memory."""
        starts = np.cumsum([0, *self._training.sizes])
        cuts = pairwise(np.searchsorted(rows, starts).tolist())
        each = [rows[i:j] - start for (i, j), start in zip(cuts, starts[:-1], strict=True)]
        parts = self._training.rows.collect(_take, each=each)
        X, kind, weights = (np.concatenate([part[i] for part in parts]) for i in range(3))
        X = np.ascontiguousarray(X, dtype=self.X.dtype)
        part = self._frame().piece.with_rows(X, self.cells[kind], weights)
        part.constraints = self.constraints
        part._share_slack(self)
        return part

    def distances(self, target: NDArray[Any]) -> PartitionedDistances:
        """Return the squared distances to centres (in scaled units)."""
        return PartitionedDistances(self, target)

    def counts(self, labels: Labels) -> FloatArray:
        """Return the weight of the rows by cluster and cell."""
        return self.tally(labels).counts.copy()

    def sums(self, labels: Labels) -> tuple[FloatArray, FloatArray, float]:
        """Return sum (scaled) and weight of each cluster, and the sum of squared norms."""
        tally = self.tally(labels)
        return tally.sums, tally.mass, tally.squares

    def farthest_points(
        self, labels: Labels, centers: FloatArray, n_points: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the largest distances to own centres of rows with weight, and their points."""
        farthest: _FarPoints = self.total(
            _farthest, centers, n_points, labels=labels, combine=_FarPoints.merged
        )
        return farthest.cost, farthest.points

    def tally(self, labels: Labels) -> Tally:
        """Count everything that may be asked of labels, once."""
        if labels.tally is None:
            labels.tally = self.total(_tally, labels=labels)
        return labels.tally

    def label_rows(self, labels: Labels) -> Any:
        """Return labels as a Dask array, made where the rows are and kept there."""
        made = self._training.rows.then(
            _make_labels, self._frame(labels), each=self._moved_rows(labels)
        )
        is_small = self.n_samples * np.dtype(np.int32).itemsize <= KEPT_BYTES
        made = made if is_small else made.keep()
        array = made.to_array(_same, dtype=np.int32, sizes=self._training.sizes)
        return array.persist() if is_small else array

    def total(
        self,
        function: Callable[..., Any],
        *shared: Any,
        labels: Labels | None = None,
        combine: Callable[[list[Any]], Any] | None = None,
    ) -> Any:
        """Add up ``function(block, frame, *shared[, moved])`` over the blocks."""
        return self._training.rows.total(
            function, self._frame(labels), *shared, each=self._moved_rows(labels), combine=combine
        )

    def _frame(self, labels: Labels | None = None) -> _Frame:
        """Return what every block has to know."""
        piece = RepresentationProblem.__new__(RepresentationProblem)
        own = "X", "n_clusters", "membership", "total_weight", "largest_weight", "units", "is_large"
        vars(piece).update({name: getattr(self, name) for name in own}, buffers=None)
        assigned = () if labels is None else (labels.centers, labels.price)
        return _Frame(piece, self.cells, *assigned)

    def _moved_rows(self, labels: Labels | None) -> list[_Moved] | None:
        """Return which rows of each block were moved by hand; None if there are no such rows."""
        if labels is None or not labels.rows.size:
            return None
        cuts = np.searchsorted(labels.rows, np.cumsum([0, *self._training.sizes])).tolist()
        return [_Moved(labels.rows[i:j], labels.clusters[i:j]) for i, j in pairwise(cuts)]


class PartitionedDistances(Distances):
    """Squared distances of points in blocks to given centres: sums over the blocks."""

    rows: PartitionedProblem

    def __init__(self, problem: PartitionedProblem, centers: NDArray[Any]) -> None:
        self.rows = problem
        self._centers = np.asarray(centers, dtype=np.float64)

    def soft_counts(self, price: FloatArray, temperature: float) -> SoftCounts:
        """Return the sum of soft minima of cost plus price, the soft counts and their curvature."""
        arguments = price, temperature
        total: SoftCounts = self.rows.total(_ask, self._centers, Distances.soft_counts, arguments)
        return total

    def mean_nearest(self) -> float:
        """Return the mean distance to the nearest centres: the unit of prices."""
        return float(self.rows.total(_ask, self._centers, Distances.mean_nearest, ()))

    def assigned(self, price: FloatArray) -> tuple[Labels, FloatArray, float]:
        """Return labels of least cost plus price, their counts by cell, and the sum of minima."""
        labels = Labels(self._centers, price)
        tally = self.rows.tally(labels)
        return labels, tally.counts.copy(), tally.value

    def cheapest_moves(self, labels: Labels, n_kept: int | None = None) -> ListedMoves:
        """List the cheapest moves away from the labels."""
        entries = self.rows.total(
            _list_moves,
            n_kept or self.list_length(),
            labels=labels,
            combine=_MoveEntries.merged,
        )
        return ListedMoves(self.rows, entries, labels)

    def cost(self, labels: Labels) -> float:
        """Return the mean squared distance to the centres of the own clusters."""
        return self.rows.tally(labels).cost


class _Frame(NamedTuple):
    """What every block has to know."""

    piece: RepresentationProblem  # without rows and constraints, to be filled with those of a block
    cells: IntArray  # of the kinds
    centers: FloatArray = np.zeros(0)  # of labels
    price: FloatArray = np.zeros(0)


class _Moved(NamedTuple):
    """Rows of a block that were moved by hand, rising, and where they are now."""

    rows: IntArray = np.zeros(0, np.int64)
    clusters: IntArray = np.zeros(0, np.int64)


_NOT_MOVED = _Moved()


class _MoveEntries(NamedTuple):
    """Entries of lists of cheapest moves, in the order of the lists."""

    place: NDArray[np.int32]  # number of the list
    row: IntArray
    cost: FloatArray
    weight: FloatArray
    n_kept: int

    @classmethod
    def of(cls, moves: Moves, start: int, weights: FloatArray) -> _MoveEntries:
        """Return the entries of the lists of a block; the first row has the number ``start``."""
        places = moves.size.size
        is_listed = moves.is_listed
        row = moves.row[is_listed]
        place = np.repeat(np.arange(places, dtype=np.int32), moves.size.ravel())
        return cls(place, row, moves.cost[is_listed], weights[row - start], moves.row.shape[3])

    @classmethod
    def merged(cls, parts: list[_MoveEntries]) -> _MoveEntries:
        """Put lists together, in the order of the rows, and keep what is cheapest."""
        n_kept = parts[0].n_kept
        place, row, cost, weight = (np.concatenate([part[i] for part in parts]) for i in range(4))
        order = np.lexsort((cost, place))  # stable: of equal costs the first row comes first
        place = place[order]
        rank = np.arange(place.size) - np.searchsorted(place, place)
        order = order[rank < n_kept]
        return cls(place[rank < n_kept], row[order], cost[order], weight[order], n_kept)


class ListedMoves(Moves):
    """Lists of cheapest moves of rows that live elsewhere; they are numbered anew."""

    def __init__(self, problem: PartitionedProblem, entries: _MoveEntries, recipe: Labels) -> None:
        self._rows, number = np.unique(entries.row, return_inverse=True)
        labels, weights = np.zeros(self._rows.size, np.int32), np.ones(max(1, self._rows.size))
        super().__init__(problem, entries.n_kept, labels, weights)
        self.size[:] = np.bincount(entries.place, minlength=self.size.size).reshape(self.size.shape)
        is_listed = self.is_listed
        self.row[is_listed], self.cost[is_listed] = number, entries.cost
        labels[number] = entries.place // (self.size.size // problem.n_clusters)
        weights[number] = entries.weight
        self._before: NDArray[Any] = labels.copy()
        self._recipe = recipe

    def apply(self) -> None:
        """Write changed labels back into the recipe of all labels."""
        moved = np.flatnonzero(self.labels != self._before)
        if moved.size:
            self._recipe.move(self._rows[moved], self.labels[moved])
        self._before = self.labels.copy()


class _FarPoints(NamedTuple):
    """Points with the largest weighted distances to their own centres."""

    cost: NDArray[Any]
    points: NDArray[Any]
    n_points: int

    @classmethod
    def merged(cls, parts: list[_FarPoints]) -> _FarPoints:
        """Keep the farthest of several lists."""
        n_points = parts[0].n_points
        cost, points = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        order = largest(cost, n_points)
        return cls(cost[order], points[order], n_points)


def _pieces(block: RowBlock, frame: _Frame) -> Iterator[tuple[int, RepresentationProblem]]:
    """Yield the first row and the problem of each piece of a block (one at least)."""
    X, weights = block.X.astype(frame.piece.X.dtype, copy=False), block.row_weights()
    cells = frame.cells[block.kind]
    whole = frame.piece.with_rows(X, cells, weights)
    buffers: dict[str, NDArray[Any]] = {}
    for rows in whole.row_slices() if block.n_rows else [slice(0, 0)]:
        piece = whole.with_rows(X[rows], cells[rows], weights[rows])
        piece.buffers = buffers
        yield rows.start, piece


def _labelled(
    block: RowBlock, frame: _Frame, moved: _Moved
) -> Iterator[tuple[int, Distances, IntArray, float]]:
    """Yield first row, distances, labels and value of the dual of each piece of a block."""
    for start, part in _pieces(block, frame):
        distances = part.distances(frame.centers)
        labels, _, value = distances.assigned(frame.price)
        first = block.start + start
        i, j = np.searchsorted(moved.rows, (first, first + labels.size))
        labels[moved.rows[i:j] - first] = moved.clusters[i:j]
        yield first, distances, labels, value


def _spread(block: RowBlock) -> Spread:
    """Measure the points of a block."""
    weights = block.row_weights()
    step = max(1, NUMBERS // max(1, block.X.shape[1]))
    starts = range(0, max(1, block.n_rows), step)
    return Spread.merged([Spread.of(block.X[i : i + step], weights[i : i + step]) for i in starts])


def _take(block: RowBlock, rows: IntArray) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
    """Return points, kinds and weights of some rows."""
    weights = np.ones(rows.size) if block.weights is None else block.weights[rows]
    return block.X[rows], block.kind[rows].astype(np.int64), weights


def _ask(
    block: RowBlock,
    frame: _Frame,
    centers: FloatArray,
    question: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> Any:
    """Add up what a method of the distances returns for each piece of a block."""
    pieces = _pieces(block, frame)
    return add([question(part.distances(centers), *arguments) for _, part in pieces])


def _tally(block: RowBlock, frame: _Frame, moved: _Moved = _NOT_MOVED) -> Tally:
    """Count the labels of a block."""
    tallies = []
    for _, distances, labels, value in _labelled(block, frame, moved):
        part = distances.rows
        tallies.append(
            Tally(value, part.counts(labels), *part.sums(labels), distances.cost(labels))
        )
    total: Tally = add(tallies)
    return total


def _list_moves(
    block: RowBlock, frame: _Frame, n_kept: int, moved: _Moved = _NOT_MOVED
) -> _MoveEntries:
    """List the cheapest moves of the rows of a block."""
    weights = block.row_weights()
    moves = Moves(frame.piece, n_kept, moved.rows, weights)  # the labels come piece by piece
    for first, distances, labels, _ in _labelled(block, frame, moved):
        distances.list_moves(labels, moves, first)
    return _MoveEntries.of(moves, block.start, weights)


def _farthest(
    block: RowBlock,
    frame: _Frame,
    centers: FloatArray,
    n_points: int,
    moved: _Moved = _NOT_MOVED,
) -> _FarPoints:
    """Return the points of a block that are farthest from their own centres."""
    parts = [
        _FarPoints(*distances.rows.farthest_points(labels, centers, n_points), n_points)
        for _, distances, labels, _ in _labelled(block, frame, moved)
    ]
    return _FarPoints.merged(parts)


def _make_labels(block: RowBlock, frame: _Frame, moved: _Moved = _NOT_MOVED) -> NDArray[np.int32]:
    """Return the labels of a block."""
    parts = [labels for _, _, labels, _ in _labelled(block, frame, moved)]
    return np.concatenate(parts).astype(np.int32)


def _same(labels: NDArray[np.int32]) -> NDArray[np.int32]:
    return labels
