"""Predictions of a fitted clustering by centres and prices, and batches within limits of their own.

Centres and prices are those in the units of the problem of the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import check_array
from sklearn.utils.validation import _num_samples

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntArray, MatrixLike, Rows
from skfair.cluster.limits import clustering_problem, representation_constraints
from skfair.cluster.results import missed_by
from skfair.groups.attributes import check_aligned
from skfair.groups.encoding import encode_groups
from skfair.groups.named_columns import take_columns
from skfair.groups.training_data import TrainingData
from skfair.problems.clustering.points import RepresentationProblem, Units, squared_norms
from skfair.read import ROW_CHECKS, read_features, read_part_groups
from skfair.solvers.clustering.assignment import assign
from skfair.utils.dask_collections import is_lazy
from skfair.utils.pieces import ROWS, piece_rows
from skfair.utils.threads import over_blocks
from skfair.utils.validation import check_number, check_weights
from skfair.utils.warn import warn_user

if TYPE_CHECKING:
    from skfair.cluster.fair_assignment import FairAssignment
    from skfair.cluster.fair_kmeans import FairKMeans

R = TypeVar("R")

# Distances of a row in two batches differ by this many units in the last place at most, times the
# squared norms that they are made of; below that they are tied, and the first cluster gets the row.
_ROUNDING = 64.0


def labels_at_prices(
    rows: Rows, codes: IntArray | None, centers: FloatArray, prices: FloatArray, units: Units
) -> NDArray[np.int32]:
    """Return the cluster of each row: where distance plus price is least, without groups distance.

    ``codes`` has the shape (n_attributes, n_samples), ``prices`` (n_clusters, n_groups).
    """
    labels = np.empty(rows.shape[0], np.int32)
    unit = float(squared_norms(centers + units.mean / units.scale * issparse(rows)).max())
    codes = np.empty((0, labels.size), np.int32) if codes is None else codes
    unit += len(codes) * float(np.abs(prices).max(initial=0.0))
    of_groups = np.ascontiguousarray(prices.T)

    def of_part(part: slice, distances: NDArray[Any]) -> None:
        from skfair._kernels.prices import nearest

        rounding = _ROUNDING * np.finfo(distances.dtype).eps
        nearest(distances, of_groups, codes[:, part], unit, rounding, labels[part])

    over_distances(rows, centers, units, of_part)
    return labels


def center_distances(rows: Rows, centers: FloatArray, units: Units) -> NDArray[Any]:
    """Return the distances of rows to the centres (n_samples, n_clusters), in units of the data."""
    out = np.empty((rows.shape[0], len(centers)), rows.dtype)

    def of_part(part: slice, distances: NDArray[Any]) -> None:
        out[part] = np.sqrt(distances) * units.scale

    over_distances(rows, centers, units, of_part)
    return out


def cost_of_rows(
    rows: Rows, weights: FloatArray | None, centers: FloatArray, units: Units
) -> float:
    """Return the sum of squared distances to the nearest centres."""

    def of_part(part: slice, distances: NDArray[Any]) -> float:
        nearest = distances.min(axis=1).astype(np.float64)
        return float(nearest.sum() if weights is None else weights[part] @ nearest)

    return sum(over_distances(rows, centers, units, of_part)) * units.squared


def over_distances(
    X: Rows, centers: FloatArray, units: Units, function: Callable[[slice, NDArray[Any]], R]
) -> list[R]:
    """Return what a function makes of each block: a slice of the rows, and their distances.

    The distances to the centres are squared and in scaled units.
    """
    from skfair._kernels.prices import complete_distances, scaled_rows

    origin, scale = units.mean, units.scale
    is_sparse = issparse(X)  # then zeros would fill up, so the centres move instead
    moved = (centers + origin / scale).astype(X.dtype)
    inverse = np.float64(1 / max(scale, float(np.finfo(np.float64).tiny)))
    minus_two, norms = np.ascontiguousarray(-2 * centers.T), squared_norms(centers)

    def of_block(start: int, stop: int) -> R:
        part = slice(start, stop)
        if is_sparse:
            own = euclidean_distances(X[part] / X.dtype.type(scale), moved, squared=True)
        else:
            scaled = np.empty((stop - start, X.shape[1]))
            scaled_rows(X[part], origin, inverse, scaled)
            own = scaled @ minus_two
            complete_distances(own, norms, squared_norms(scaled))
        return function(part, own)

    # Rows and their distances stay in the fastest part of the cache.
    step = ROWS if is_sparse else piece_rows(X.shape[0], 4 * sum(centers.shape))
    return over_blocks(of_block, X.shape[0], step)


def score_block(block: dict[str, Any], estimator: FairKMeans) -> float:
    """Score the rows of a block; there may be none, or none with a weight."""
    weights = block.get("sample_weight")
    if not block["X"].shape[0] or (weights is not None and not np.any(weights)):
        return 0.0
    return float(estimator.score(block["X"], sample_weight=weights))


def read_batch(
    estimator: FairKMeans | FairAssignment,  # fitted
    X: MatrixLike,
    sensitive_features: ColumnsLike | None,
    sample_weight: ColumnLike | None,
    **check_params: Any,
) -> TrainingData:
    """Return a batch of new rows, checked, with groups of its own."""
    if is_lazy(X, sensitive_features, sample_weight):
        raise TypeError(
            "assign decides on a whole batch in memory, got a Dask collection. Pass batches "
            "that were computed, or use predict with sensitive_features."
        )
    check_aligned(X=X, sensitive_features=sensitive_features, sample_weight=sample_weight)
    asked = estimator._sensitive
    if sensitive_features is None and asked.columns is not None:
        sensitive_features = take_columns(X, asked.columns)
    if sensitive_features is None:
        raise ValueError("assign needs sensitive_features, got None.")
    rows = read_features(estimator, X, **check_params)
    n = _num_samples(rows)
    groups = encode_groups(
        sensitive_features, n_samples=n, intersectional=asked.intersectional, like=X
    )
    return TrainingData(rows, None, check_weights(sample_weight, n), groups)


def batch_problem(
    estimator: FairKMeans,  # fitted
    X: MatrixLike,
    sensitive_features: ColumnsLike | None,
    min_balance: float | None,
    share_bounds: Any,
    size_bounds: Any,
    sample_weight: ColumnLike | None,
    before: MatrixLike | Literal["fit"] | None,
) -> RepresentationProblem:
    """Return the problem of a batch whose rows join what clusters hold already, if anything.

    Without limits of its own the batch has those of the fit.
    """
    data = read_batch(estimator, X, sensitive_features, sample_weight, **ROW_CHECKS)
    if min_balance is not None:
        check_number(min_balance, "min_balance", 0, 1)
    elif share_bounds is None:
        min_balance, share_bounds = estimator.min_balance, estimator.share_bounds
    n_clusters, names = estimator.n_clusters, set(data.groups.names)
    lacks_rows = data.groups.counts.min() < n_clusters or names < set(estimator.groups_)
    if before is None and min_balance and lacks_rows:
        before = "fit"
    held = None
    if before is not None:
        data = replace(data, groups=read_part_groups(estimator, X, sensitive_features))
        held = counts_before(before, estimator.group_counts_)
    size_bounds = estimator.size_bounds if size_bounds is None else size_bounds
    limits = min_balance, estimator.relative_balance, share_bounds, size_bounds
    constraints = representation_constraints(
        data.groups, n_clusters, limits, data.sample_weight, held
    )
    return clustering_problem(data, constraints, n_clusters, held)


def counts_before(before: MatrixLike | str, of_fit: FloatArray) -> FloatArray:
    """Return what the clusters hold already of each group of the fit: (n_clusters, n_groups)."""
    if isinstance(before, str):
        if before != "fit":
            raise ValueError(f"before must be 'fit', counts or None, got {before!r}.")
        return of_fit
    shape, counts = of_fit.shape, check_array(before, input_name="before")
    if counts.shape != shape or counts.min() < 0:
        raise ValueError(
            f"before must hold counts, at least 0, of {shape[1]} groups in each of {shape[0]} "
            f"clusters; got the shape {counts.shape} and {counts.min():g} as the smallest."
        )
    return np.asarray(counts, dtype=np.float64)


def batch_labels(problem: RepresentationProblem, centers: NDArray[Any]) -> NDArray[np.int32]:
    """Return labels of a batch at least cost within its limits; warn if these are missed."""
    labels = assign(problem, problem.units.inwards(centers), exact=True).labels
    if (missed := missed_by(problem, labels)) > 0:
        warn_user(
            f"The limits on the batch are missed by {missed:.4g} in all. Ask for wider ones.",
            ConvergenceWarning,
        )
    return np.asarray(labels, dtype=np.int32)
