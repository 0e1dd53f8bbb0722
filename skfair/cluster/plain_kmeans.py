"""Plain k-means, of which clusterings start: the best of several runs of scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import FloatArray, IntArray
from skfair.cluster.assignment.points import squared_norms
from skfair.utils.threads import one_thread, over_blocks
from skfair.utils.warn import hidden

_fit = one_thread(KMeans.fit)


def best_runs(
    seen: list[NDArray[Any]],  # points, seen in several ways
    weights: FloatArray,
    n_clusters: int,
    init: str,
    n_trials: int,
    rng: np.random.RandomState,
    max_iter: int = 50,
) -> list[KMeans]:
    """Return the best of several plain k-means runs on each; threads share what is seen.

    One call makes all runs on the same points: its checks take longer than a run on few.
    """
    seeds = rng.randint(np.iinfo(np.int32).max, size=len(seen))

    def spread(points: NDArray[Any], n: int, random_state: np.random.RandomState) -> NDArray[Any]:
        return points[spread_rows(points, weights, n, random_state)]

    def runs(i: int, _: int) -> KMeans:
        first = spread if "+" in init else init
        seed = np.random.RandomState(seeds[i])
        kmeans = KMeans(
            n_clusters, init=first, n_init=n_trials, max_iter=max_iter, random_state=seed
        )
        # OpenMP counts the threads of each thread of Python by itself. The rows are checked.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            return _fit(kmeans, seen[i], sample_weight=weights)

    # Fewer distinct points than clusters are no reason to warn.
    with hidden("Number of distinct clusters", ConvergenceWarning):
        return over_blocks(runs, len(seen), 1)


def spread_rows(
    points: NDArray[Any], weights: FloatArray, n_rows: int, rng: np.random.RandomState
) -> IntArray:
    """Draw rows that are far apart: k-means++ with several candidates for each.

    Candidates are drawn by their squared distance to the nearest row so far, and the one that
    leaves the least distance to all rows is taken. This is what scikit-learn's ``kmeans_plusplus``
    does, whose checks of every product take two thirds of its time.
    """
    points = points.astype(np.float32, copy=False)  # single precision is enough to draw
    weights = (weights / weights.max()).astype(np.float32)
    norms, n_candidates = squared_norms(points), 2 + int(np.log(n_rows))
    doubled = np.ascontiguousarray(-2 * points.T)

    def distances(rows: IntArray) -> NDArray[Any]:
        squares = points[rows] @ doubled
        squares += norms
        squares += norms[rows, None]
        return np.asarray(np.maximum(squares, 0.0, out=squares))

    chosen = np.empty(n_rows, np.int64)
    chosen[0] = rng.choice(weights.size, p=weights / weights.sum(dtype=np.float64))
    nearest = distances(chosen[:1])[0]
    left = nearest @ weights
    for i in range(1, n_rows):
        places = rng.uniform(size=n_candidates) * left
        drawn = np.searchsorted(np.cumsum(weights * nearest, dtype=np.float64), places)
        candidates = np.minimum(drawn, weights.size - 1)  # sums are rounded
        closer = np.minimum(distances(candidates), nearest)
        remains = closer @ weights
        best = int(remains.argmin())
        chosen[i], nearest, left = candidates[best], closer[best], remains[best]
    return chosen
