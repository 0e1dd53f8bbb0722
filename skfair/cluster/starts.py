"""Starts of fair k-means: two plain k-means solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from skfair._typing import FloatArray, IntArray
from skfair.problems.clustering.points import RepresentationProblem, squared_norms
from skfair.utils.threads import one_thread, over_blocks
from skfair.utils.warn import hidden

# Starting centres are sought on at most this many points: on 4000, fits of 7,000 to 18,000 rows are
# a tenth faster and cost .4 % more (adult, bank, compas, generated tables; 5 to 40 clusters).
_START_SAMPLE = 10_000
# Runs of plain k-means, of which the best one is a start: with one each, ten fair runs from twenty
# starts were worse than one from six on Adult with five clusters (cost 2389 against 2376). All but
# the last steps on 3,000 of 7,000 rows and more: .86 of the time, cost .12 (+- .06) % more.
_TRIALS = 3
# Few rows have many local optima, and runs on them are cheap. Of 67 fits of 150 rows without a
# limit 8 cost 2% more than the best of three runs of KMeans with 3 trials (9 ms), one with 10
# (16 ms), and none of 379 of 60 to 600 rows as it is (17 to 28 ms).
_FEW_ROWS, _MOST_TRIALS = 3_000, 20
# Starts that put more of the rows than this into the same clusters lead to the same end.
_SAME = 0.995

_fit = one_thread(KMeans.fit)


def starting_centers(
    problem: RepresentationProblem, init: Any, rng: np.random.RandomState
) -> list[FloatArray]:
    """Return the (scaled) centres that were given, or those of two plain k-means runs.

    The first run sees (a sample of) the points as they are. The second sees them relative to the
    mean of their cell: its clusters hold the groups in nearly equal shares, because what sets the
    groups apart is taken away, which is the better start when the limits are strict. Their means
    follow. Without the second run where the first is nearly within the limits, fits of Adult and
    bank took .6 of the time and cost .3 (+- .07) % more (96 fits): it is worth three more trials.
    """
    if not isinstance(init, str):
        return [_given_centers(problem, init)]
    part = problem.sample(_START_SAMPLE, rng)
    points, weights, cells = part.start_points(rng), part.weights, part.cells
    seen = [points]
    if problem.constraints.n_proportions:
        total = np.bincount(cells, weights=weights, minlength=problem.n_cells)
        sums = [
            np.bincount(cells, weights=weights * column, minlength=total.size)
            for column in points.T
        ]
        means = np.stack(sums, axis=1) / np.where(total > 0, total, 1.0)[:, None]
        seen.append(points - means.astype(points.dtype)[cells])
    n_trials = max(_TRIALS, min(_MOST_TRIALS, _FEW_ROWS // weights.size))
    plain, *apart = best_runs(seen, weights, problem.n_clusters, init, n_trials, rng)
    has_all_columns = points.shape[1] == problem.X.shape[1]
    starts = [plain.cluster_centers_ if has_all_columns else part.means(plain.labels_)[0]]
    for kmeans in apart:
        means, mass, _ = part.means(kmeans.labels_)
        both = np.bincount(plain.labels_ * mass.size + kmeans.labels_, minlength=mass.size**2)
        n_shared = both.reshape(mass.size, -1).max(axis=1).sum()
        if mass.min() > 0 and n_shared <= _SAME * weights.size:
            starts.append(means)
    return [_numbered_by_size(part, start.astype(np.float64)) for start in starts]


def _numbered_by_size(problem: RepresentationProblem, centers: FloatArray) -> FloatArray:
    """Number clusters so that larger ones have the larger bounds, if their bounds differ."""
    sizes = problem.constraints.sizes
    if sizes is None or not np.ptp(sizes, axis=1).any():
        return centers
    weight = np.bincount(problem.distances(centers).nearest(), problem.weights, len(centers))
    numbered = np.empty_like(centers)
    numbered[np.argsort(sizes.sum(axis=0))] = centers[np.argsort(weight)]
    return numbered


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


def _given_centers(problem: RepresentationProblem, init: Any) -> FloatArray:
    """Check the centres that a user gave, and scale them."""
    centers = check_array(init, dtype=np.float64, input_name="init")
    expected = (problem.n_clusters, problem.X.shape[1])
    if centers.shape != expected:
        raise ValueError(f"init has the shape {centers.shape}, expected {expected}.")
    return problem.units.inwards(centers)
