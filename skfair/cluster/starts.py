"""Where fair k-means starts: two plain k-means solutions."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array

from skfair._typing import FloatArray
from skfair.problems.clustering.points import RepresentationProblem
from skfair.utils.threads import one_thread

# Starting centres are sought on at most this many points.
_START_SAMPLE = 10_000


def starting_centers(
    problem: RepresentationProblem, init: Any, n_trials: int, rng: np.random.RandomState
) -> list[FloatArray]:
    """Return the (scaled) centres that were given, or those of two plain k-means runs.

    The first run sees (a sample of) the points as they are. The second sees them relative to the
    mean of their cell: its clusters hold the groups in nearly equal shares, because what sets the
    groups apart is taken away, which is the better start when the limits are strict. Their means
    follow.
    """
    if not isinstance(init, str):
        return [_given_centers(problem, init)]
    part = problem.sample(_START_SAMPLE, rng)
    points, weights, cells = part.scaled(slice(None)), part.weights, part.cells
    kmeans = KMeans(problem.n_clusters, init=init, n_init=n_trials, max_iter=50, random_state=rng)
    with (
        one_thread(),
        warnings.catch_warnings(),
    ):  # fewer distinct points than clusters are no reason to warn
        warnings.simplefilter("ignore", ConvergenceWarning)
        starts = [kmeans.fit(points, sample_weight=weights).cluster_centers_]
        if problem.rules.matrix.size:
            total = np.bincount(cells, weights=weights, minlength=problem.n_cells)
            sums = [
                np.bincount(cells, weights=weights * column, minlength=total.size)
                for column in points.T
            ]
            means = np.stack(sums, axis=1) / np.where(total > 0, total, 1.0)[:, None]
            apart = points - means.astype(points.dtype)[cells]
            labels = kmeans.fit(apart, sample_weight=weights).labels_
            member = np.eye(problem.n_clusters)[labels] * weights[:, None]
            mass = member.sum(axis=0)
            if mass.min() > 0:
                starts.append((member.T @ points) / mass[:, None])
    return [start.astype(np.float64) for start in starts]


def _given_centers(problem: RepresentationProblem, init: Any) -> FloatArray:
    """Check the centres that a user gave, and scale them."""
    centers = check_array(init, dtype=np.float64, input_name="init")
    expected = (problem.n_clusters, problem.X.shape[1])
    if centers.shape != expected:
        raise ValueError(f"init has the shape {centers.shape}, expected {expected}.")
    return np.asarray((centers - problem.units.mean) / problem.units.scale)
