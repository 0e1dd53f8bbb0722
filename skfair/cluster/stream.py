"""Clustering a stream: each part is assigned within the limits on everything seen so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skfair._typing import ColumnLike, ColumnsLike, MatrixLike
from skfair.cluster.limits import clustering_problem, limits_of, representation_constraints
from skfair.cluster.results import clustering_attributes
from skfair.groups.training_data import TrainingData
from skfair.read import ROW_CHECKS, read_features, read_part_groups
from skfair.solvers.clustering.assignment import place
from skfair.solvers.clustering.base import Clustering
from skfair.utils.validation import check_weights

if TYPE_CHECKING:
    from skfair.cluster.fair_kmeans import FairKMeans

# The latest thirty parts or so decide the prices: early ones belong to centres that have moved on.
_LEAST_STEP = 0.03


def part_attributes(
    estimator: FairKMeans,  # fitted
    X: MatrixLike,
    sensitive_features: ColumnsLike | None,
    sample_weight: ColumnLike | None,
) -> dict[str, Any]:
    """Return the attributes of a model after a part of a stream has joined those before it."""
    groups = read_part_groups(estimator, X, sensitive_features)
    rows = read_features(estimator, X, **ROW_CHECKS)
    weights, held = check_weights(sample_weight, rows.shape[0]), estimator.group_counts_
    n_clusters, data = estimator.n_clusters, TrainingData(rows, None, weights, groups)
    constraints = representation_constraints(
        groups, n_clusters, limits_of(estimator), weights, held
    )
    problem = clustering_problem(data, constraints, n_clusters, held, estimator._units)
    centers, multipliers = estimator._scaled_centers, estimator._multipliers
    if multipliers.shape != problem.no_multipliers().shape:  # the solver of fit kept no limits
        multipliers = problem.no_multipliers()
    placed = place(problem, centers, multipliers)
    before = estimator.cluster_sizes_
    means, mass, _ = problem.means(placed.labels)
    share = mass / np.where(before + mass > 0, before + mass, 1.0)
    centers = centers + share[:, None] * (means - centers)
    step = max(_LEAST_STEP, problem.total_weight / (before.sum() + problem.total_weight))
    multipliers = multipliers + step * (placed.multipliers - multipliers)
    cost, bound, missed = placed.cost, placed.lower_bound, placed.violation
    of_fit = estimator.n_iter_ + 1, estimator.status_, estimator.history_
    clustering = Clustering(placed.labels, centers, multipliers, cost, cost, bound, missed, *of_fit)
    attributes = clustering_attributes(problem, groups, clustering, held)
    return attributes | {"status_": estimator.status_}  # of fit, as is its history
