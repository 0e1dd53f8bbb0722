"""The next part of a stream of rows, for ``FairKMeans.partial_fit``.

Each part is assigned so that the limits hold for all rows seen so far. This may be impossible,
because rows of earlier parts stay in their clusters. ``FairKMeans.partial_fit`` fits the first part
by ``fit`` and calls :func:`with_part` for later ones. The multipliers belong to the limits on
clusters, as the solver ``prices`` keeps them.
"""

from __future__ import annotations

import numpy as np

from skfair._typing import FloatArray
from skfair.cluster.assignment.by_prices import place
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solver import Clustering

# A part has at least this weight in the running mean of the multipliers, so about the last thirty
# parts determine it. Older multipliers belong to centres that have moved since.
_LEAST_STEP = 0.03


def with_part(
    # The rows of the part. Its limits take into account the rows that clusters hold already
    problem: RepresentationProblem,
    # State before the part: centres (in the scale of the problem), multipliers, and the total
    # weight of each cluster
    centers: FloatArray,
    multipliers: FloatArray,
    sizes: FloatArray,
) -> Clustering:
    """Assign the rows of a part, and update centres and multipliers.

    Centres are means over all rows so far. Multipliers are a running mean over parts. Labels, cost
    and bound of the result are for the rows of the part. Its history is a filler, because the
    estimator keeps that of ``fit``.
    """
    # The solver of ``fit`` may not have handled limits, and then there are no multipliers yet.
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
