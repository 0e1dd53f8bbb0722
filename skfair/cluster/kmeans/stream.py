"""Clustering a stream: each part is assigned within the limits on everything seen so far."""

from __future__ import annotations

import numpy as np

from skfair._typing import FloatArray
from skfair.cluster.assignment.by_prices import place
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solver import Clustering

# The latest thirty parts or so decide the prices: early ones belong to centres that have moved on.
_LEAST_STEP = 0.03


def with_part(
    problem: RepresentationProblem,  # of the part, with what clusters hold already
    centers: FloatArray,  # (scaled) centres, multipliers and sizes before the part
    multipliers: FloatArray,
    sizes: FloatArray,
) -> Clustering:
    """Place the rows of a part; centres move to running means, and prices are averaged."""
    if multipliers.shape != problem.no_multipliers().shape:  # the solver of fit kept no limits
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
