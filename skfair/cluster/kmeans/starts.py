"""Starting centres of fair k-means, from runs of plain k-means or as the user gave them.

``FairKMeans`` and ``ParetoFairKMeans`` call :func:`starting_centers` once per run of ``n_init``,
and pass the starts to the solver.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from skfair._typing import FloatArray
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.plain_kmeans import best_runs

# Starting centres are searched on at most this many points. On 4000, fits of 7,000 to 18,000 rows
# are a tenth faster and cost 0.4% more (adult, bank, compas, generated tables; 5 to 40 clusters).
# If plain k-means instead made all but its last iterations on 3,000 rows, fits of 7,000 to 25,000
# rows would take 0.86 of the time and cost 0.12 (+- 0.06) % more (Adult and bank, 90 fits).
_START_SAMPLE = 10_000
# The best of this many runs of plain k-means is a start. With one run each, ten fair runs from
# twenty starts were worse than one fair run from six on Adult with five clusters (cost 2389 against
# 2376).
_TRIALS = 3
# Few rows have many local optima, and runs on them are cheap. So up to _MOST_TRIALS runs are made,
# in proportion to _FEW_ROWS over the number of rows. With 3 runs (9 ms), 8 of 67 fits of 150 rows
# without a limit cost 2% more than the best of three runs of KMeans. With 10 (16 ms) it was one of
# 67, and as it is (17 to 28 ms) none of 379 fits of 60 to 600 rows.
_FEW_ROWS, _MOST_TRIALS = 3_000, 20
# Two starts that put more than this share of the rows into the same clusters lead to the same
# result, so the second is dropped.
_SAME = 0.995


def starting_centers(
    problem: RepresentationProblem, init: Any, rng: np.random.RandomState
) -> list[FloatArray]:
    """Return one or two starts, which are scaled centres: given ones, or found by plain k-means.

    ``init`` is the parameter of the estimator, a name or an array. The first start comes from the
    points themselves, or a sample of them. If the limits compare groups, the second start comes
    from the points minus the mean of their cell (the rows of the same groups). This removes the
    differences between groups, so the clusters hold the groups in similar shares, which is the
    better start for strict limits. Its centres are the means of the original points.

    The second start is made even if the first is nearly within the limits: leaving it out in this
    case made fits of Adult and bank take 0.6 of the time and cost 0.3 (+- 0.07) % more (96 fits).
    It is dropped if one of its clusters is empty, or if it puts nearly all rows into the same
    clusters as the first start.
    """
    if not isinstance(init, str):
        return [_given_centers(problem, init)]
    part = problem.sample(_START_SAMPLE, rng)
    points, weights, cells = part.start_points(rng), part.weights, part.cells
    versions = [points]
    if problem.constraints.n_proportions:
        total = np.bincount(cells, weights=weights, minlength=problem.n_cells)
        sums = [
            np.bincount(cells, weights=weights * column, minlength=total.size)
            for column in points.T
        ]
        means = np.stack(sums, axis=1) / np.where(total > 0, total, 1.0)[:, None]
        versions.append(points - means.astype(points.dtype)[cells])
    n_trials = max(_TRIALS, min(_MOST_TRIALS, _FEW_ROWS // weights.size))
    plain, *within_cells = best_runs(versions, weights, problem.n_clusters, init, n_trials, rng)
    # Sparse points may have been projected. Then the centres are computed from the labels.
    has_all_columns = points.shape[1] == problem.X.shape[1]
    starts = [plain.cluster_centers_ if has_all_columns else part.means(plain.labels_)[0]]
    for kmeans in within_cells:
        means, mass, _ = part.means(kmeans.labels_)
        pairs = plain.labels_ * mass.size + kmeans.labels_
        n_in_both = np.bincount(pairs, minlength=mass.size**2)  # rows of each pair of clusters
        n_shared = n_in_both.reshape(mass.size, -1).max(axis=1).sum()
        if mass.min() > 0 and n_shared <= _SAME * weights.size:
            starts.append(means)
    return [_numbered_by_size(part, start.astype(np.float64)) for start in starts]


def _numbered_by_size(problem: RepresentationProblem, centers: FloatArray) -> FloatArray:
    """Order the centres so that larger clusters get the larger bounds on sizes, if these differ."""
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
