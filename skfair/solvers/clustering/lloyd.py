"""k-means under representation constraints: the cheapest assignment and the means, in turn."""

from __future__ import annotations

import numpy as np

from skfair._typing import Callback, FloatArray
from skfair.problems.clustering.points import RepresentationProblem
from skfair.solvers.base import Status
from skfair.solvers.clustering.assignment import STEPS, TEMPERATURES, at_best_prices, placed_rows
from skfair.solvers.clustering.base import Clustering
from skfair.utils.history import History, go_on

# Rounds end when this many of them have not lowered the value of the dual by one in ten thousand:
# with many constraints the multipliers are never quite at rest, and the centres tremble with them.
_PATIENCE, _PROGRESS = 6, 1e-4
# How many rounds of repair and improvement may follow.
FINISHING_ROUNDS = 10


def fair_lloyd(
    problem: RepresentationProblem,  # points and constraints
    centers: FloatArray,  # (n_clusters, n_features): scaled starting centres
    *,
    # (n_clusters, n_constraints): multipliers of a similar problem, to start from
    multipliers: FloatArray | None = None,
    max_iter: int = 100,  # largest number of rounds
    # Rounds end when the squared shift of all centres is below ``tol`` times the mean
    # variance of the features
    tol: float = 1e-4,
    # Largest number of rounds with repair and improvement
    finishing_rounds: int = FINISHING_ROUNDS,
    search_counts: bool = True,  # whether whole counts are sought where single moves get stuck
    part: RepresentationProblem | None = None,  # a sample of the points that prices are found on
    callback: Callback = go_on,  # called with the (scaled) centres after each round; True stops
) -> Clustering:
    """Alternate the cheapest assignment under the constraints with the means of the clusters.

    Rounds first follow the dual alone (the few rows near a tie hardly move a mean); once the
    centres rest, every round is repaired and improved, and rounds go on while the cost falls.

    Returns
    -------
    clustering : Clustering
        The cheapest clustering found.
    """
    temperatures = TEMPERATURES[:1] if multipliers is None else TEMPERATURES[-1:]
    multipliers = problem.no_multipliers() if multipliers is None else multipliers
    history, lowest, since = History(), np.inf, 0
    status: Status = "max_iter"
    n_iter = 0
    while n_iter < max_iter and status == "max_iter":
        placed = at_best_prices(problem, centers, multipliers, temperatures, STEPS, part)
        empty = np.flatnonzero(placed.counts.sum(axis=1) <= 0)
        means = problem.reseeded_means(placed.labels, centers, empty)
        shift = float(((means - centers) ** 2).sum())
        centers, multipliers = means, placed.multipliers
        n_iter += 1
        bound, violation = placed.lower_bound, placed.violation
        del placed  # its labels and costs, before those of the next round are made
        if bound < lowest - _PROGRESS * abs(lowest):
            since = n_iter
        lowest = min(lowest, bound)
        history.record(objective=bound, max_violation=violation, shift=shift)
        if callback(centers):
            status = "stopped"
        elif shift <= tol / problem.X.shape[1] or n_iter - since >= _PATIENCE:
            status = "converged"
    rounds = 1 if status == "stopped" else finishing_rounds
    clustering = placed_rows(
        problem, centers, multipliers, history, rounds, search_counts=search_counts, part=part
    )
    return clustering._replace(n_iter=n_iter, status=status)
