"""What rows pay in the clusters of any clusterer, and assignments at such costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances

from skfair._typing import FloatArray, MatrixLike
from skfair.problems.clustering.cost_table import CostProblem
from skfair.problems.clustering.placement import Placement
from skfair.solvers.clustering.assignment import TEMPERATURES, assign, at_best_prices, place

_TINY = 1e-300
# Rows on which the prices of large tables are found, and steps that this takes at most.
_SAMPLE, _MOST_STEPS = 20_000, 60
CostFunction = Callable[[Any, Any], Any]


def distances_to_centers(clusterer: Any, X: MatrixLike) -> FloatArray:
    """Return squared distances to the centres of clusters."""
    centers = getattr(clusterer, "cluster_centers_", None)
    centers = clusterer.centroids_ if centers is None else centers
    return np.asarray(euclidean_distances(X, centers, squared=True), dtype=np.float64)


def surprise(clusterer: Any, X: MatrixLike) -> FloatArray:
    """Return minus the logarithm of the probabilities of clusters."""
    chances = np.asarray(clusterer.predict_proba(X), dtype=np.float64)
    return np.asarray(-np.log(np.maximum(chances, _TINY)))


# What a clusterer may have, and the cost that goes with it; the first that fits is taken.
COSTS: dict[str, CostFunction] = {
    "predict_proba": surprise,
    "cluster_centers_": distances_to_centers,
    "centroids_": distances_to_centers,
}


def cost_function(clusterer: Any) -> CostFunction | None:
    """Return what fits a clusterer."""
    return next((COSTS[has] for has in COSTS if hasattr(clusterer, has)), None)


def assign_all(problem: CostProblem, costs: FloatArray) -> Placement:
    """Assign rows; of many, a sample finds the prices, and few passes over all settle them."""
    if problem.n_samples <= 2 * _SAMPLE:
        return assign(problem, costs)
    rows = problem.sample_rows(_SAMPLE, np.random.RandomState(0))
    start = problem.no_multipliers()
    few = at_best_prices(problem.subset(rows), costs[rows], start, TEMPERATURES, _MOST_STEPS)
    last = TEMPERATURES[-1:]
    return place(problem, costs, few.multipliers, last, max_iter=2)


def mean_cost(costs: FloatArray, labels: NDArray[Any], weights: FloatArray) -> float:
    """Return the mean of what the rows pay in their clusters."""
    return float(np.average(costs[np.arange(labels.size), labels], weights=weights))


def means_of(
    X: NDArray[Any], labels: NDArray[Any], weights: FloatArray, empty: FloatArray
) -> FloatArray:
    """Return the weighted means of the rows of each cluster; an empty one keeps its place."""
    n_clusters = empty.shape[0]
    shares = sparse.csr_array(
        (weights, (labels, np.arange(labels.size))), shape=(n_clusters, labels.size)
    )
    total = np.bincount(labels, weights, n_clusters)[:, None]
    return np.asarray(np.where(total > 0, shares @ X / np.where(total > 0, total, 1), empty))
