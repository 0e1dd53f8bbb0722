"""Costs of rows in the clusters of any clusterer, and centres that move after the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import _num_samples

from skfair._typing import FloatArray, MatrixLike
from skfair.utils.pieces import ROWS
from skfair.utils.rounding import TINY
from skfair.utils.threads import over_blocks

# Centres move at most so often, and until the cost falls by less than this part of it.
_MOST_ROUNDS, _SETTLED = 100, 1e-5
CostFunction = Callable[[Any, Any], Any]


def centers_of(clusterer: Any) -> NDArray[Any]:
    """Return the centres of clusters."""
    centers = getattr(clusterer, "cluster_centers_", None)
    return np.asarray(clusterer.centroids_ if centers is None else centers)


def distances_to_centers(clusterer: Any, X: MatrixLike) -> FloatArray:
    """Return squared distances to the centres of clusters."""
    return distances_between(X if sparse.issparse(X) else np.asarray(X), centers_of(clusterer))


def distances_between(X: Any, centers: NDArray[Any]) -> FloatArray:
    """Return squared distances of rows to centres, measured from the middle of the centres.

    Squares of a far offset would leave no digits of the distances.
    """
    origin, is_sparse = origin_of(X, centers), sparse.issparse(X)
    middle, distances = centers - origin, np.empty((X.shape[0], centers.shape[0]))

    def of_block(start: int, stop: int) -> None:
        rows = X[start:stop] if is_sparse else X[start:stop] - origin
        distances[start:stop] = euclidean_distances(rows, middle, squared=True)

    over_blocks(of_block, X.shape[0], ROWS)
    return distances


def origin_of(X: Any, centers: NDArray[Any]) -> NDArray[Any]:
    """Return the middle of the centres, in the precision of X; 0 for sparse rows, to stay so."""
    middle = np.zeros(centers.shape[1]) if sparse.issparse(X) else centers.mean(axis=0)
    return np.asarray(middle, dtype=X.dtype)


def negative_log_chances(clusterer: Any, X: MatrixLike) -> FloatArray:
    """Return minus the logarithm of the probabilities of clusters."""
    chances = np.asarray(clusterer.predict_proba(X), dtype=np.float64)
    return np.asarray(-np.log(np.maximum(chances, TINY)))


# What a clusterer may have, and the cost that goes with it; the first that fits is taken.
COSTS: dict[str, CostFunction] = {
    "predict_proba": negative_log_chances,
    "cluster_centers_": distances_to_centers,
    "centroids_": distances_to_centers,
}


def cost_function(clusterer: Any) -> CostFunction | None:
    """Return what fits a clusterer."""
    return next((COSTS[has] for has in COSTS if hasattr(clusterer, has)), None)


def cost_table(clusterer: Any, X: MatrixLike, function: CostFunction | None) -> FloatArray:
    """Return what rows pay in each cluster, by a function or by what fits the clusterer."""
    name = type(clusterer).__name__
    function = cost_function(clusterer) if function is None else function
    if function is None:
        raise TypeError(
            f"{name} has none of {', '.join(COSTS)}, so the cost of joining a cluster is not "
            "known. Pass costs=, a function of the fitted clusterer and X."
        )
    try:
        costs = np.asarray(function(clusterer, X), dtype=np.float64)
    except TypeError as error:
        raise TypeError(
            f"costs must be a function of the fitted clusterer and X that returns numbers, got "
            f"{function!r}: {error}"
        ) from error
    n_samples = _num_samples(X)
    if costs.ndim != 2 or costs.shape[0] != n_samples or not np.isfinite(costs).all():
        raise ValueError(
            f"The costs of {name} must be finite numbers of shape ({n_samples}, n_clusters), got "
            f"the shape {costs.shape}."
        )
    return costs


def mean_cost(costs: FloatArray, labels: NDArray[Any], weights: FloatArray) -> float:
    """Return the mean of what the rows pay in their clusters."""
    return float(np.average(costs[np.arange(labels.size), labels], weights=weights))
