"""The next part of a stream of rows, for ``FairKMeans.partial_fit``.

Each part is assigned so that the limits hold for all rows seen so far. The first part is fitted by
``fit``.
"""

from __future__ import annotations

import numpy as np

from skfair._typing import FloatArray
from skfair.cluster.assignment.by_prices import place
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solver import Clustering

# Least weight of a part in the average of the prices, so that about the last thirty parts decide.
# Older prices belong to centres that have moved on.
_LEAST_STEP = 0.03


def with_part(
    problem: RepresentationProblem,  # the rows of the part; limits include what clusters hold
    # Before the part: scaled centres, multipliers, and total weight of each cluster
    centers: FloatArray,
    multipliers: FloatArray,
    sizes: FloatArray,
) -> Clustering:
    """Place the rows of a part; centres move to running means, and prices are averaged.

    Labels, cost and bound of the result are those of the part. Its status and history say nothing,
    and the estimator keeps those of ``fit``.
    """
    # The solver of ``fit`` may have kept no limits, so it has no multipliers for these.
    if multipliers.shape != problem.no_multipliers().shape:
        multipliers = problem.no_multipliers()
    placed = place(problem, centers, multipliers)
    means, mass, _ = problem.means(placed.labels)
    share = mass / np.where(sizes + mass > 0, sizes + mass, 1.0)
    step = max(_LEAST_STEP, problem.total_weight / (sizes.sum() + problem.total_weight))
    return Clustering(
        placed.labels,
        centers + share[:, None] * (means - centers),
        multipliers + step * (placed.multipliers - multipliers),
        cost=placed.cost,
        cost_at_bound=placed.cost,
        lower_bound=placed.lower_bound,
        violation=placed.violation,
        n_iter=1,
        status="converged",
        history={},
    )
