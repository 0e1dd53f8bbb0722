"""k-means under representation constraints: the cheapest assignment and the means, in turn."""

from __future__ import annotations

import numpy as np

from skfair._typing import Callback, FloatArray
from skfair.cluster.assignment.by_prices import STEPS, TEMPERATURES, at_best_prices, place
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solvers.base import Clustering
from skfair.solvers.base import Status
from skfair.utils.history import History, go_on

# Rounds end when this many of them have not lowered the value of the dual by one in ten thousand:
# with many constraints the multipliers are never quite at rest, and the centres tremble with them.
_PATIENCE, _PROGRESS = 6, 1e-4
# How many rounds of repair and improvement may follow.
FINISHING_ROUNDS = 10
# By what share a round of placing whole rows and moving the centres has to lower the cost.
_WORTH_A_ROUND = 1e-5


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


def placed_rows(
    problem: RepresentationProblem,
    centers: FloatArray,
    multipliers: FloatArray,
    history: History,
    rounds: int = 1,
    search_counts: bool = False,
    part: RepresentationProblem | None = None,
) -> Clustering:
    """Repair and improve the assignment, and move the centres after it, while the cost falls."""
    inf = np.inf  # there are no labels yet: any are better
    best = Clustering(np.empty(0), centers, multipliers, inf, inf, inf, inf, 1, "converged", {})
    for _ in range(rounds):
        last = TEMPERATURES[-1:]
        placed = place(problem, best.centers, best.multipliers, last, STEPS, search_counts, part)
        search_counts = search_counts and placed.is_feasible  # once in vain is enough
        means, mass, cost = problem.means(placed.labels)
        history.record(objective=cost, max_violation=placed.violation)
        if (placed.violation, cost) >= (best.violation, best.cost * (1 - _WORTH_A_ROUND)):
            break
        best = best._replace(
            labels=placed.labels,
            centers=np.where(mass[:, None] > 0, means, best.centers),
            multipliers=placed.multipliers,
            cost=cost,
            cost_at_bound=placed.cost,
            lower_bound=placed.lower_bound,
            violation=placed.violation,
        )
        if part is not None and placed.is_feasible:
            break  # another round over this many rows costs more than it gains
        del placed  # its costs, before those of the next round are made
    return best._replace(history=history.as_dict())
