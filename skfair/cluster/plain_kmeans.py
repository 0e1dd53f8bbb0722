"""Plain k-means by scikit-learn, for starting centres and for the labels of an embedding.

``kmeans/starts.py`` and ``spectral/rounding.py`` call :func:`best_runs`. With ``init="k-means++"``,
the first centres are drawn by :func:`spread_rows`, which is faster than scikit-learn's k-means++.
"""

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

# Threads of Python make the runs in parallel, so OpenMP must not start more threads in each run.
_fit = one_thread(KMeans.fit)


def best_runs(
    versions: list[NDArray[Any]],  # of the same points; each version is clustered separately
    weights: FloatArray,
    n_clusters: int,
    init: str,  # "k-means++" or "random"
    n_trials: int,  # runs for each version
    rng: np.random.RandomState,
    max_iter: int = 50,
) -> list[KMeans]:
    """Return, for each version of the points, the best of ``n_trials`` runs of plain k-means.

    Each thread takes a version. All runs on a version are one call of ``KMeans.fit``, because its
    checks take longer than a run on few points.
    """
    seeds = rng.randint(np.iinfo(np.int32).max, size=len(versions))

    def spread(points: NDArray[Any], n: int, random_state: np.random.RandomState) -> NDArray[Any]:
        return points[spread_rows(points, weights, n, random_state)]

    def runs(i: int, _: int) -> KMeans:
        first = spread if "+" in init else init
        seed = np.random.RandomState(seeds[i])
        kmeans = KMeans(
            n_clusters, init=first, n_init=n_trials, max_iter=max_iter, random_state=seed
        )
        # The rows were checked by the caller.
        with config_context(assume_finite=True, skip_parameter_validation=True):
            return _fit(kmeans, versions[i], sample_weight=weights)

    # The estimators report empty clusters themselves, so scikit-learn's warning is hidden.
    with hidden("Number of distinct clusters", ConvergenceWarning):
        return over_blocks(runs, len(versions), 1)


def spread_rows(
    points: NDArray[Any], weights: FloatArray, n_drawn: int, rng: np.random.RandomState
) -> IntArray:
    """Draw ``n_drawn`` rows that are far apart, by k-means++ with several candidates for each.

    Candidates are drawn with probabilities in proportion to weight times squared distance to the
    nearest row so far. The candidate that makes the sum of these products smallest is chosen.
    scikit-learn's ``kmeans_plusplus`` does the same, but checks of every product take two thirds of
    its time.
    """
    points = points.astype(np.float32, copy=False)  # single precision is enough to draw
    weights = (weights / weights.max()).astype(np.float32)
    norms, n_candidates = squared_norms(points), 2 + int(np.log(n_drawn))
    doubled = np.ascontiguousarray(-2 * points.T)

    def distances(rows: IntArray) -> NDArray[Any]:
        squares = points[rows] @ doubled
        squares += norms
        squares += norms[rows, None]
        return np.asarray(np.maximum(squares, 0.0, out=squares))

    chosen = np.empty(n_drawn, np.int64)
    chosen[0] = rng.choice(weights.size, p=weights / weights.sum(dtype=np.float64))
    nearest = distances(chosen[:1])[0]
    left = nearest @ weights
    for i in range(1, n_drawn):
        places = rng.uniform(size=n_candidates) * left
        drawn = np.searchsorted(np.cumsum(weights * nearest, dtype=np.float64), places)
        candidates = np.minimum(drawn, weights.size - 1)  # by rounding, a place may be past the end
        closer = np.minimum(distances(candidates), nearest)
        remains = closer @ weights
        best = int(remains.argmin())
        chosen[i], nearest, left = candidates[best], closer[best], remains[best]
    return chosen
