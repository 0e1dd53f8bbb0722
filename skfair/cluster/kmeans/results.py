"""Attributes of a fitted k-means, made from a clustering in scaled units, and warnings about it.

``FairKMeans`` calls these after a fit or a part of a stream, ``ParetoFairKMeans`` for each point.
Attributes that begin with an underscore are in scaled units. Prediction and ``partial_fit`` use
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import FloatArray
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solver import Clustering
from skfair.cluster.results import (
    count_attributes,
    missed_by,
    warn_of_large,
    warn_of_missed,
)
from skfair.groups.encoding import GroupEncoding
from skfair.utils.endings import ENDINGS
from skfair.utils.warn import warn_user


def center_attributes(problem: RepresentationProblem, centers: FloatArray) -> dict[str, Any]:
    """Return the attributes that prediction without groups needs, with prices of 0.

    Callbacks of a running fit also get them, so that they can predict.
    """
    return {
        "cluster_centers_": problem.units.outwards(centers).astype(problem.X.dtype),
        "_scaled_prices": np.zeros((problem.n_clusters, problem.n_groups)),
        "_size_prices": np.zeros((problem.n_clusters, 1)),
        "_units": problem.units,
        "_scaled_centers": np.asarray(centers, dtype=np.float64),
    }


def clustering_attributes(
    problem: RepresentationProblem,
    groups: GroupEncoding,
    clustering: Clustering,
    held: FloatArray | float = 0.0,  # (n_clusters, n_groups): weight that clusters held before
) -> dict[str, Any]:
    """Return all attributes of a fit."""
    prices, bound, units = clustering.prices, clustering.lower_bound, problem.units
    if prices is None:
        prices = problem.group_prices(clustering.multipliers)
    # The multipliers are put back into the order in which the constraints were given, because the
    # problem of ``partial_fit``, which has rows ``before``, does not reorder its constraints.
    multipliers = np.empty_like(clustering.multipliers)
    multipliers[:, problem.constraint_order] = clustering.multipliers
    is_missed = missed_by(problem, clustering.labels) > 0
    counts = held + problem.counts(clustering.labels) @ problem.membership.T
    # Means of scaled squared distances become sums over the rows in units of the data.
    sums = np.array([clustering.cost, bound]) * problem.total_weight
    cost, least = units.squared_outwards(sums).tolist()
    return {
        **center_attributes(problem, clustering.centers),
        **count_attributes(counts, groups, problem.constraints),
        "prices_": units.squared_outwards(prices),
        "_scaled_prices": prices,
        "_size_prices": problem.size_prices(clustering.multipliers),
        "_multipliers": multipliers,
        "labels_": clustering.labels.astype(np.int32, copy=False),
        "inertia_": cost,
        "lower_bound_": least,
        "assignment_gap_": (clustering.cost_at_bound - bound) / bound if bound > 0 else 0.0,
        "n_iter_": clustering.n_iter,
        "history_": clustering.history,
        "status_": "infeasible" if is_missed else clustering.status,
    }


def warn_of_result(
    problem: RepresentationProblem,
    clustering: Clustering,
    balance: float,
    max_iter: int,
    other: str = "",  # see ``warn_of_large``
) -> None:
    """Give the first warning that applies.

    They are, in this order: limits violated by a row or more, limits violated by less if the solver
    reports it, centres that still move, empty clusters, and one cluster with nearly all rows.
    """
    if (missed := missed_by(problem, clustering.labels)) > 0:
        largest = f" (largest weight of a row: {problem.largest_weight:g})"
        warn_of_missed("The limits", missed, f"{largest}; the balance reached is {balance:.4g}")
    elif clustering.status == "infeasible":
        warn_user(
            "The limits are violated by less than a row. The smallest balance of a cluster is "
            f"{balance:.4g}. Ask for a smaller min_balance, fewer clusters, or another solver.",
            ConvergenceWarning,
        )
    elif clustering.status == "max_iter":
        warn_user(
            f"{ENDINGS['max_iter']} The centres still move after max_iter={max_iter} rounds. The "
            "limits are satisfied. Increase max_iter or tol to lower the cost.",
            ConvergenceWarning,
        )
    elif n_empty := int(np.sum(problem.counts(clustering.labels).sum(axis=1) <= 0)):
        warn_user(
            f"{n_empty} of {problem.n_clusters} clusters are empty. X may have fewer distinct rows "
            "than there are clusters. Ask for fewer clusters.",
            ConvergenceWarning,
        )
    elif problem.constraints.sizes is None:
        sizes = problem.counts(clustering.labels).sum(axis=1)
        warn_of_large(sizes, problem.largest_weight, other=other)
