"""Better places for centres: one that is hardly needed moves to where rows pay most.

Moving centres to the means of their rows ends near where they were. Here rows that are far from all
centres are drawn from a sample; one of them takes the place of the centre that is missed least, and
the exchange is kept if the centres then settle at a lower cost. This is the local search of
Lattanzi and Sohler (2019), "A better k-means++ algorithm via local search", without limits: they
are kept afterwards. It also begins at fresh k-means++ centres, and the better end counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics.pairwise import euclidean_distances

from skfair._typing import FloatArray
from skfair.cluster.costs import (
    Moved,
    distances_between,
    mean_cost,
    means_of,
    move_centers,
    origin_of,
)
from skfair.problems.clustering.cost_table import CostProblem
from skfair.solvers.clustering.assignment import assign

# Rows of the sample; exchanges that are tried, most of them in vain; rows drawn for each.
_SAMPLE, _N_TRIES, _MOST_IN_VAIN, _N_DRAWN = 10_000, 60, 20, 16
# Rounds after an exchange; it may cost _WORSE at first, and must gain _GAIN in the end, relatively.
_N_ROUNDS, _WORSE, _GAIN = 4, 0.02, 1e-3
# Steps on the prices of many rows, after those on a sample.
_SETTLING_STEPS = 2


class _Settled(NamedTuple):
    """Centres, squared distances of the rows to them, and the cost."""

    centers: FloatArray
    distances: FloatArray
    cost: float


def improved(X: Any, problem: CostProblem, start: Moved, rng: np.random.RandomState) -> Moved:
    """Relocate centres if that pays, and move all to the means of their rows."""
    centers = relocated(X, start.centers, problem.weights, rng)
    if centers is not None:
        costs = distances_between(X, centers)
        other = Moved(assign(problem, costs, settle_iter=_SETTLING_STEPS), costs, centers, 1)
        found = move_centers(X, problem, other)
        now, before = (
            mean_cost(one.costs, one.placement.labels, problem.weights) for one in (found, start)
        )
        allowed = start.placement.violation + problem.rounding
        if now < before and found.placement.violation <= allowed:
            return found
    return move_centers(X, problem, start)


def relocated(
    X: Any, centers: FloatArray, weights: FloatArray, rng: np.random.RandomState
) -> FloatArray | None:
    """Return better centres, by exchanges or afresh; None if a sample shows none that gain.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        The rows.
    centers : ndarray of shape (n_clusters, n_features)
        Centres.
    weights : ndarray of shape (n_samples,)
        Weights of the rows.
    rng : RandomState
        Draws the sample, and rows from it.

    Returns
    -------
    centers : ndarray of shape (n_clusters, n_features) or None
        The better ones.
    """
    if not 2 <= centers.shape[0] <= X.shape[0]:
        return None
    rows = np.arange(X.shape[0])
    if rows.size > _SAMPLE:
        rows = rng.choice(rows, _SAMPLE, replace=False)
    sample, weights = X[rows].astype(np.float64, copy=False), weights[rows]
    centers = np.asarray(centers, dtype=np.float64)
    origin = origin_of(sample, centers)
    sample = sample if issparse(sample) else sample - origin
    start = _settled(sample, weights, centers - origin)
    fresh, _ = kmeans_plusplus(sample, centers.shape[0], sample_weight=weights, random_state=rng)
    found = _searched(sample, weights, start, rng)
    other = _searched(sample, weights, _settled(sample, weights, fresh), rng)
    best = min(found, other, key=lambda one: one.cost)
    return best.centers + origin if best.cost < (1 - _GAIN) * start.cost else None


def _searched(X: Any, weights: FloatArray, best: _Settled, rng: np.random.RandomState) -> _Settled:
    """Exchange centres for drawn rows while that gains."""
    n_in_vain = 0
    for _ in range(_N_TRIES):
        if n_in_vain == _MOST_IN_VAIN or best.cost <= 0:
            break
        n_in_vain += 1
        start, cost = _exchanged(X, weights, best, rng)
        if cost < (1 + _WORSE) * best.cost:
            found = _settled(X, weights, start)
            if found.cost < (1 - _GAIN) * best.cost:
                best, n_in_vain = found, 0
    return best


def _settled(X: Any, weights: FloatArray, centers: FloatArray) -> _Settled:
    """Move centres to the means of their rows a few times."""
    distances = euclidean_distances(X, centers, squared=True)
    for _ in range(_N_ROUNDS):
        centers = means_of(X, distances.argmin(axis=1), weights, centers)
        distances = euclidean_distances(X, centers, squared=True)
    return _Settled(centers, distances, float(weights @ distances.min(axis=1)))


def _exchanged(
    X: Any, weights: FloatArray, now: _Settled, rng: np.random.RandomState
) -> tuple[FloatArray, float]:
    """Return centres of which the best one is exchanged for the best drawn row, and the cost."""
    nearest = now.distances.argmin(axis=1)
    first, second = np.partition(now.distances, 1, axis=1)[:, :2].T
    chances = weights * first
    drawn = X[rng.choice(weights.size, _N_DRAWN, p=chances / chances.sum())]
    to_drawn = euclidean_distances(X, drawn, squared=True)
    with_own = np.minimum(to_drawn, first[:, None])
    without_own = np.minimum(to_drawn, second[:, None])
    missed = np.zeros((now.centers.shape[0], _N_DRAWN))
    np.add.at(missed, nearest, weights[:, None] * (without_own - with_own))
    costs = weights @ with_own + missed
    cluster, row = np.unravel_index(costs.argmin(), costs.shape)
    centers = now.centers.copy()
    centers[cluster] = drawn[[row]].toarray()[0] if issparse(X) else drawn[row]
    return centers, float(costs[cluster, row])
