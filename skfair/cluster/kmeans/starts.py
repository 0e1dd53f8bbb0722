"""Starts of fair k-means: two plain k-means solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from skfair._typing import FloatArray
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.plain_kmeans import best_runs

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


def _given_centers(problem: RepresentationProblem, init: Any) -> FloatArray:
    """Check the centres that a user gave, and scale them."""
    centers = check_array(init, dtype=np.float64, input_name="init")
    expected = (problem.n_clusters, problem.X.shape[1])
    if centers.shape != expected:
        raise ValueError(f"init has the shape {centers.shape}, expected {expected}.")
    return problem.units.inwards(centers)
