"""k-means under representation rules by prices (our own method, DESIGN section 5).

For fixed centres the cheapest assignment under linear rules on the clusters' counts is a linear
programme whose dual has one multiplier per cluster and rule:

    max over lam >= 0 of  sum_i w_i min_k (D_ik + price[cell_i, k]) - lam . slack,
    price[s, k] = - sum_r lam[k, r] rules[r, s]

so a point pays its distance plus a price that depends on its cell and the cluster only. The minimum
is smoothed (soft minimum, falling temperature) and the dual maximised by L-BFGS-B; one evaluation
is one pass over the points, O(n K), which the problem makes wherever its points are. The few points
near a tie are then moved so that whole people meet the rules, and the cost is lowered by feasible
moves and by swaps within a cell. The value of the dual at the multipliers found is a lower bound on
the cost of every feasible assignment to these centres.

Lloyd rounds alternate this assignment with the means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.utils import check_random_state

from skfair._typing import FloatArray
from skfair.problems.clustering.cost_table import CostTable, Distances, Moves
from skfair.problems.clustering.representation import GroupedRows, RepresentationProblem, Rules
from skfair.solvers.base import Status
from skfair.solvers.clustering.whole_people import (
    move_to_counts,
    nearest_feasible_counts,
    settle_undecided,
)
from skfair.utils.history import History

Callback = Callable[[Any], bool]

# Temperatures of the soft minimum, in units of the mean distance to the nearest centre.
TEMPERATURES = (3e-2, 3e-3)
# Large problems first find their prices on this many points.
_SAMPLE = 10_000
# Rounds end when this many of them have not lowered the value of the dual by one in ten thousand:
# with many rules the multipliers are never quite at rest, and the centres tremble with them.
_PATIENCE, _PROGRESS = 6, 1e-4
# How many rounds of repair and improvement may follow.
_FINISHING_ROUNDS = 10
# How many rounds may look at all points of a large problem, before and after the repair.
_FULL_ROUNDS = 3
# How many entries the lists of cheapest moves may have in all, and how many per list.
_LIST_BUDGET, _SHORTEST_LIST, _LONGEST_LIST = 1 << 20, 4, 24
# How often the lists are renewed before a repair or an improvement is given up.
_MAX_RENEWALS = 60


class Assignment(NamedTuple):
    """The cheapest assignment found to fixed centres.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Cluster of each point, in the form that the problem gives to labels.
    multipliers : ndarray of shape (n_clusters, n_rules)
        Dual variables.
    cost : float
        Mean squared distance to the centres, in scaled units.
    lower_bound : float
        No feasible assignment to these centres costs less.
    violation : float
        What the rules are missed by, summed over clusters; 0 if all are met.
    """

    labels: Any
    multipliers: FloatArray
    cost: float
    lower_bound: float
    violation: float


def price_table(multipliers: FloatArray, rules: Rules) -> FloatArray:
    """Return the price of each cell in each cluster, shape (n_cells, n_clusters)."""
    return np.ascontiguousarray(-(multipliers @ rules.matrix).T)


def maximise_dual(
    problem: GroupedRows,
    distances: CostTable,
    multipliers: FloatArray,
    *,
    temperatures: tuple[float, ...] = TEMPERATURES,
    max_iter: int = 60,
) -> FloatArray:
    """Improve the multipliers by L-BFGS-B on the smoothed dual, one temperature after the other."""
    rules = problem.rules
    shape = multipliers.shape
    if not multipliers.size:
        return multipliers
    total = problem.total_weight
    unit = distances.mean_nearest()
    if unit <= 0:
        return multipliers

    def negative_dual(flat: FloatArray, temperature: float) -> tuple[float, FloatArray]:
        lam = flat.reshape(shape) * unit
        value, counts = distances.soft_counts(price_table(lam, rules), temperature * unit)
        slope = (counts @ rules.matrix.T + rules.slack) / total
        value = value / unit - float((flat.reshape(shape) * rules.slack).sum())
        return -value / total, slope.ravel()

    flat = (multipliers / unit).ravel()
    bounds = [(0.0, None)] * flat.size
    for temperature in temperatures:
        flat = minimize(
            negative_dual,
            flat,
            args=(temperature,),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": max_iter, "ftol": 1e-9, "gtol": 1e-6},
        ).x
    return np.asarray(flat).reshape(shape) * unit


def assign_at_prices(
    problem: GroupedRows, distances: CostTable, multipliers: FloatArray
) -> tuple[Any, FloatArray, float]:
    """Give each point its cheapest cluster; return labels, counts and the value of the dual."""
    labels, counts, value = distances.assigned(price_table(multipliers, problem.rules))
    value -= float((multipliers * problem.rules.slack).sum())
    return labels, counts, value / problem.total_weight


def _cheapest_moves(problem: GroupedRows, distances: CostTable, labels: Any) -> Moves:
    """Return the lists of cheapest moves of the current labels."""
    n_lists = problem.n_clusters**2 * problem.n_cells
    n_kept = int(np.clip(_LIST_BUDGET // n_lists, _SHORTEST_LIST, _LONGEST_LIST))
    return distances.cheapest_moves(labels, n_kept)


def repair_labels(
    problem: GroupedRows, distances: CostTable, labels: Any, counts: FloatArray
) -> float:
    """Move points, in place, until the rules hold; return the violation that is left."""
    from skfair._kernels.prices import repair

    rules = problem.rules
    left = float(rules.violation(counts).sum())
    for _ in range(_MAX_RENEWALS):
        if left <= 1e-9:
            break
        moves = _cheapest_moves(problem, distances, labels)
        steps, left = repair(
            rules.matrix,
            rules.slack,
            moves.labels,
            moves.weights,
            counts,
            moves.row,
            moves.cost,
            moves.size,
            problem.n_samples,
        )
        if not steps:
            break
        moves.apply(labels)
    return left


def improve_labels(
    problem: GroupedRows,
    distances: CostTable,
    labels: Any,
    counts: FloatArray,
    max_renewals: int = 3,
) -> None:
    """Lower the cost in place, by moves that break no rule and by swaps within a cell."""
    from skfair._kernels.prices import improve

    for _ in range(max_renewals):
        moves = _cheapest_moves(problem, distances, labels)
        gain = improve(
            problem.rules.matrix,
            problem.rules.slack,
            moves.labels,
            moves.weights,
            counts,
            moves.row,
            moves.cost,
            moves.size,
            problem.n_samples,
        )
        moves.apply(labels)
        if gain <= 1e-9 * problem.total_weight:
            break


def assign(
    problem: GroupedRows,
    target: NDArray[Any],
    *,
    multipliers: FloatArray | None = None,
    temperatures: tuple[float, ...] = TEMPERATURES,
    max_iter: int = 60,
    search_counts: bool = True,
    exact: bool = False,
) -> Assignment:
    """Find a cheapest assignment to fixed (scaled) centres, or at given costs, under the rules.

    With ``search_counts`` an integer programme on the counts helps where single moves get stuck,
    with ``exact`` one on the undecided points of small problems.
    """
    distances = problem.distances(target)
    if multipliers is None:
        multipliers = np.zeros((problem.n_clusters, problem.rules.matrix.shape[0]))
        if is_large(problem):  # prices of a sample are close
            rows = problem.sample_rows(_SAMPLE, np.random.RandomState(0))
            part = problem.subset(rows)
            multipliers = maximise_dual(
                part,
                part.distances(problem.target_of(rows, target)),
                multipliers,
                temperatures=temperatures,
                max_iter=max_iter,
            )
            temperatures, max_iter = temperatures[-1:], max(1, max_iter // 4)
    multipliers = maximise_dual(
        problem, distances, multipliers, temperatures=temperatures, max_iter=max_iter
    )
    labels, counts, lower_bound = assign_at_prices(problem, distances, multipliers)
    violation = repair_labels(problem, distances, labels, counts)
    if search_counts and violation > 1e-9:
        wanted = nearest_feasible_counts(problem, counts)
        if wanted is not None:
            move_to_counts(problem, distances, labels, wanted)
            counts = problem.counts(labels)
            violation = float(problem.rules.violation(counts).sum())
    improve_labels(problem, distances, labels, counts)
    cost = distances.cost(labels)
    if exact and violation <= 1e-9:
        price = price_table(multipliers, problem.rules)
        settle_undecided(problem, distances, labels, price, cost, lower_bound)
        cost = distances.cost(labels)
    return Assignment(labels, multipliers, cost, lower_bound, violation)


class PriceClustering(NamedTuple):
    """A clustering that keeps the rules, and its certificate at the final centres."""

    labels: Any  # in the form that the problem gives to labels
    centers: FloatArray  # scaled means of the clusters
    multipliers: FloatArray
    cost: float  # mean squared distance to the means, scaled
    cost_at_bound: float  # cost of the labels at the centres that the bound is for
    lower_bound: float
    violation: float
    n_iter: int
    status: Status
    history: dict[str, NDArray[Any]]
    # Prices of the groups (scaled), of solvers that do not find them through multipliers.
    prices: FloatArray | None = None


def cluster_by_prices(
    problem: RepresentationProblem,
    starts: Sequence[FloatArray],
    *,
    max_iter: int = 100,
    tol: float = 1e-4,
    random_state: Any = None,
    callback: Callback | None = None,
) -> PriceClustering:
    """Run :func:`fair_lloyd` from each start and return the cheapest clustering.

    Large problems settle on a sample, where the starts compete; only the winner goes on with a few
    rounds over all points.
    """
    trial = sample_of(problem, check_random_state(random_state)) if is_large(problem) else problem
    runs = [
        fair_lloyd(
            trial,
            start,
            max_iter=max_iter,
            tol=tol,
            # On a sample it only has to be seen which start is better.
            finishing_rounds=_FINISHING_ROUNDS if trial is problem else 1,
            search_counts=trial is problem,
            callback=callback,
        )
        for start in starts
    ]
    best = min(runs, key=lambda run: (run.violation, run.cost))
    if trial is problem:
        return best
    if best.status == "stopped":
        return _finish(problem, best._replace(violation=np.inf, cost=np.inf), 1)
    return fair_lloyd(
        problem,
        best.centers,
        multipliers=best.multipliers,
        max_iter=min(max_iter, _FULL_ROUNDS),
        tol=tol,
        dual_iter=4,
        finishing_rounds=_FULL_ROUNDS,
        callback=callback,
    )._replace(status=best.status)


def is_large(problem: GroupedRows) -> bool:
    """Whether a problem should settle on a sample first."""
    return problem.n_samples > 2 * _SAMPLE


def sample_of(problem: RepresentationProblem, rng: np.random.RandomState) -> RepresentationProblem:
    """Return the problem on a random sample of its points."""
    return problem.sample(_SAMPLE, rng)


def fair_lloyd(
    problem: RepresentationProblem,
    centers: FloatArray,
    *,
    multipliers: FloatArray | None = None,
    max_iter: int = 100,
    tol: float = 1e-4,
    dual_iter: int = 15,
    finishing_rounds: int = _FINISHING_ROUNDS,
    search_counts: bool = True,
    callback: Callback | None = None,
) -> PriceClustering:
    """Alternate the cheapest assignment under the rules with the means of the clusters.

    Rounds first follow the dual alone (the few points near a tie hardly move a mean); once the
    centres rest, every round is repaired and improved, and rounds go on while the cost falls.

    Parameters
    ----------
    problem : RepresentationProblem
        Points and rules.
    centers : ndarray of shape (n_clusters, n_features)
        Scaled starting centres.
    multipliers : ndarray of shape (n_clusters, n_rules), default=None
        Multipliers of a similar problem, to start from.
    max_iter : int, default=100
        Largest number of rounds.
    tol : float, default=1e-4
        Rounds end when the squared shift of all centres is below ``tol`` times the mean variance
        of the features.
    dual_iter : int, default=15
        Steps on the dual per round.
    finishing_rounds : int, default=10
        Largest number of rounds with repair and improvement.
    search_counts : bool, default=True
        Whether an integer programme helps where single moves get stuck.
    callback : callable, default=None
        Called with the (scaled) centres after each round; True stops.

    Returns
    -------
    clustering : PriceClustering
        The cheapest clustering found.
    """
    history = History()
    tol = tol / problem.X.shape[1]
    is_warm = multipliers is not None
    temperatures = TEMPERATURES[-1:] if is_warm else TEMPERATURES
    if multipliers is None:
        multipliers = np.zeros((problem.n_clusters, problem.rules.matrix.shape[0]))
    status: Status = "max_iter"
    stalled = _Stalled()
    n_iter = 0
    while n_iter < max_iter and status == "max_iter":
        distances = problem.distances(centers)
        multipliers = maximise_dual(
            problem, distances, multipliers, temperatures=temperatures, max_iter=dual_iter
        )
        temperatures = TEMPERATURES[-1:]
        labels, counts, bound = assign_at_prices(problem, distances, multipliers)
        means, mass = problem.means(labels)
        means = reseed(distances, labels, means, mass)
        shift = float(((means - centers) ** 2).sum())
        centers = means
        n_iter += 1
        violation = float(problem.rules.violation(counts).sum())
        history.record(objective=bound, max_violation=violation, shift=shift)
        if callback is not None and callback(centers):
            status = "stopped"
        elif shift <= tol or stalled.after(bound):
            status = "converged"
    settled = PriceClustering(
        labels, centers, multipliers, np.inf, np.inf, bound, np.inf, n_iter, status, {}
    )
    rounds = 1 if status == "stopped" else finishing_rounds
    # Prices that grew in these rounds are rough when there are many rules; given ones are not.
    first_iter = (2 if is_warm else 6) * dual_iter
    return _finish(problem, settled, rounds, 2 * dual_iter, first_iter, search_counts, history)


class _Stalled:
    """Notices that a sequence has stopped falling."""

    def __init__(self) -> None:
        self._lowest = np.inf
        self._waited = 0

    def after(self, value: float) -> bool:
        """Take the next value; whether the last few brought no progress."""
        if value < self._lowest - _PROGRESS * abs(self._lowest):
            self._waited = 0
        else:
            self._waited += 1
        self._lowest = min(self._lowest, value)
        return self._waited >= _PATIENCE


def _finish(
    problem: RepresentationProblem,
    settled: PriceClustering,
    rounds: int,
    dual_iter: int = 30,
    first_iter: int = 90,
    search_counts: bool = True,
    history: History | None = None,
) -> PriceClustering:
    """Repair and improve the assignment, and move the centres after it, while the cost falls."""
    history = History() if history is None else history
    best = settled
    for number in range(rounds):
        found = assign(
            problem,
            best.centers,
            multipliers=best.multipliers,
            temperatures=TEMPERATURES[-1:],
            max_iter=first_iter if number == 0 else dual_iter,
            search_counts=search_counts,
        )
        search_counts = search_counts and found.violation <= 1e-9  # once in vain is enough
        means, mass = problem.means(found.labels)
        cost = problem.cost(found.labels)
        history.record(objective=cost, max_violation=found.violation)
        if (found.violation, cost) >= (best.violation, best.cost * (1 - 1e-5)):
            break
        best = best._replace(
            labels=found.labels,
            centers=np.where(mass[:, None] > 0, means, best.centers),
            multipliers=found.multipliers,
            cost=cost,
            cost_at_bound=found.cost,
            lower_bound=found.lower_bound,
            violation=found.violation,
        )
    return best._replace(history=history.as_dict())


def reseed(distances: Distances, labels: Any, means: FloatArray, mass: FloatArray) -> FloatArray:
    """Give each empty cluster a point that is far from its own centre, the farthest first."""
    empty = np.flatnonzero(mass <= 0)
    if empty.size:
        means = means.copy()
        means[empty] = distances.farthest(labels, empty.size)[1]
    return means
