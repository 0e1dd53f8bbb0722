"""The default solver of k-means under constraints: prices for each group in each cluster.

One clustering, for ``FairKMeans`` (``Prices.cluster``). :func:`fair_lloyd` makes rounds: a round
assigns every row at prices that satisfy the limits, and moves the centres to the means.
:func:`placed_rows` then makes a few more rounds, in which whole rows satisfy the limits. The best
of several starts wins. If there are many rows, starts compete on a sample, and
:func:`_on_all_rows` carries the winner to all rows.

A whole front of cost against balance, for ``ParetoFairKMeans`` (``Prices.front``). Neighbouring
balances have neighbouring prices and centres. So :func:`sweep` goes through the balances in order,
and one round per balance is enough. Each start is swept up and down, because each direction finds
points that the other misses. If there are many rows, :func:`on_all_points` carries the points from
a sample to all rows.

A row is assigned to the cluster with the smallest squared distance plus price. Prices follow from
the multipliers of the constraints (``assignment/by_prices.py``), which are what is stored and
improved. Centres are in the scaled coordinates of ``assignment/points.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from skfair._typing import Callback, FloatArray
from skfair.cluster.assignment.by_prices import (
    LARGE,
    SAMPLE,
    TEMPERATURES,
    at_best_prices,
    place,
)
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solver import (
    Clustering,
    ClusteringSolver,
    ConstraintsOf,
    Front,
    FrontPoint,
    RunSettings,
    Starts,
    for_each,
    register,
)
from skfair.utils.endings import Status
from skfair.utils.history import History, go_on

# A round makes at most this many steps on the dual, and the next round continues from its prices.
# With ten, rows of small groups cost 0.1% more (125 fits).
_STEPS = 20
# In a large problem, this many rounds at prices may visit all rows, and this many further rounds
# that place whole rows.
_FULL_ROUNDS = 3
# Problems of more than three times _MIDDLE rows first make _MIDDLE_ROUNDS rounds on a sample of
# _MIDDLE rows. Then _LAST_ROUNDS over all rows follow. Their steps on the dual use the sample only.
_MIDDLE, _MIDDLE_ROUNDS = 70_000, 6
_LAST_ROUNDS = 2
# Rounds end if _PATIENCE rounds in a row have not lowered the value of the dual by the share
# _PROGRESS, because with many constraints multipliers and centres never come to rest completely.
_PATIENCE, _PROGRESS = 6, 1e-4
# At most this many rounds that place whole rows may follow.
FINISHING_ROUNDS = 10
# Such a round has to lower the cost by this share to be followed by another.
_WORTH_A_ROUND = 1e-5


@register
@dataclass
class Prices(ClusteringSolver):
    """k-means under limits on groups, solved with dual prices of the cheapest assignment.

    Each pair of a group and a cluster has a price, and each row is assigned to the cluster with the
    smallest squared distance plus price. The prices are the dual variables of the limits. The
    solver enforces limits on the balance or on the shares of groups, also for several attributes
    and with sample weights. Rows may be in the partitions of a Dask collection.

    See Also
    --------
    skfair.cluster.FairKMeans : Takes it as ``solver``.

    Notes
    -----
    A round costs a few passes over the rows, each of which is O(n K d). The steps on the prices
    only use the rows near a tie. For K clusters and J groups, a limit on the balance has
    K J (J - 1) multipliers, and limits on the shares have 2 K J.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.cluster import FairKMeans
    >>> from skfair.solvers import Prices
    >>> X, sex = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    >>> model = FairKMeans(3, solver=Prices(), random_state=0).fit(X, sensitive_features=sex)
    >>> bool(model.balance_ >= 0.8)
    True
    """

    name = "prices"
    takes_overlaps = True
    takes_sparse = True
    has_front = True
    keeps_balance = True
    keeps_shares = True

    def run(
        self, problem: RepresentationProblem, start: FloatArray, settings: RunSettings
    ) -> Clustering:
        return self.cluster(problem, [start], settings)

    def cluster(
        self, problem: RepresentationProblem, starts: Sequence[FloatArray], settings: RunSettings
    ) -> Clustering:
        # The starts of a large problem compete on a sample, which is enough to find the better one.
        # The winner continues with a few rounds over all rows.
        is_large = problem.n_samples > LARGE
        part = problem.sample(SAMPLE, settings.random_state) if is_large else problem
        run = partial(
            fair_lloyd,
            part,
            max_iter=settings.max_iter,
            tol=settings.tol,
            finishing_rounds=1 if is_large else FINISHING_ROUNDS,
            search_counts=not is_large,
            callback=settings.callback,
        )
        best = min(for_each(run, starts, settings.callback), key=lambda run: run.standing)
        return _on_all_rows(problem, best, settings) if is_large else best

    def front(
        self,
        problem: RepresentationProblem,
        constraints_of: ConstraintsOf,
        targets: FloatArray,
        starts: Starts,
        settings: RunSettings,
    ) -> Front:
        # A large problem is swept on a sample.
        first, callback = starts(settings.random_state), settings.callback
        if problem.n_samples <= LARGE:
            return Front(sweep(problem, constraints_of, targets, first, callback), {})
        sample = problem.sample(SAMPLE, settings.random_state)
        points = sweep(sample, constraints_of, targets, first, callback)
        return Front(on_all_points(problem, points, callback), {})


def _on_all_rows(
    problem: RepresentationProblem,
    best: Clustering,  # the clustering of a sample
    settings: RunSettings,
) -> Clustering:
    """Continue a clustering of a sample on all rows, and on a larger sample first if needed."""
    rounds, middle = _FULL_ROUNDS, None
    status = best.status
    if status != "stopped" and problem.n_samples > 3 * _MIDDLE:
        middle = problem.sample(_MIDDLE, settings.random_state)
        best = fair_lloyd(
            middle,
            best.centers,
            multipliers=best.multipliers,
            max_iter=min(settings.max_iter, _MIDDLE_ROUNDS),
            tol=settings.tol,
            finishing_rounds=0,
            callback=settings.callback,
        )
        rounds = _LAST_ROUNDS
    # If the callback has stopped the rounds, whole rows are still placed, once.
    if best.status == "stopped":
        status, rounds = best.status, 0
    result = fair_lloyd(
        problem,
        best.centers,
        multipliers=best.multipliers,
        max_iter=min(settings.max_iter, rounds),
        tol=settings.tol,
        finishing_rounds=max(rounds, 1),
        part=middle,
        callback=settings.callback,
    )
    return result._replace(status=status, n_iter=result.n_iter or best.n_iter)


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
    search_counts: bool = True,  # whether to search for whole counts, see ``place``
    # A sample of the points on which prices are found, see ``at_best_prices``
    part: RepresentationProblem | None = None,
    callback: Callback = go_on,  # called with the (scaled) centres after each round; True stops
) -> Clustering:
    """Alternate the cheapest assignment under the constraints with the means of the clusters.

    The first rounds assign rows to their cheapest clusters at the best prices. Whole rows then
    violate the constraints by little, which does not matter yet, because the few rows near a tie
    hardly move a mean. The temperature is the higher one, or the lower one if ``multipliers`` are
    given. When the centres have come to rest, ``placed_rows`` makes whole rows satisfy the
    constraints.

    Returns
    -------
    clustering : Clustering
        The cheapest clustering found.
    """
    temperatures = TEMPERATURES[:1] if multipliers is None else TEMPERATURES[-1:]
    multipliers = problem.no_multipliers() if multipliers is None else multipliers
    history = History()
    lowest, since = np.inf, 0  # lowest value of the dual so far, and the round that reached it
    status: Status = "max_iter"
    n_iter = 0
    while n_iter < max_iter and status == "max_iter":
        placed = at_best_prices(problem, centers, multipliers, temperatures, _STEPS, part)
        empty = np.flatnonzero(placed.counts.sum(axis=1) <= 0)
        means = problem.reseeded_means(placed.labels, centers, empty)
        shift = float(((means - centers) ** 2).sum())
        centers, multipliers = means, placed.multipliers
        n_iter += 1
        bound, violation = placed.lower_bound, placed.violation
        del placed  # frees its memory before the next round allocates as much
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
    """Place whole rows within the constraints and move the centres, while the cost falls.

    A clustering of less violation is always better. The rounds are added to ``history``.
    """
    inf = np.inf  # ``best`` begins as a placeholder that is worse than any labels
    best = Clustering(np.empty(0), centers, multipliers, inf, inf, inf, inf, 1, "converged", {})
    for _ in range(rounds):
        last = TEMPERATURES[-1:]
        placed = place(problem, best.centers, best.multipliers, last, _STEPS, search_counts, part)
        # A search that found nothing once is not repeated.
        search_counts = search_counts and placed.is_feasible
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
        del placed  # frees its memory before the next round allocates as much
    return best._replace(history=history.as_dict())


def sweep(
    problem: RepresentationProblem,
    constraints_of: ConstraintsOf,
    targets: FloatArray,
    starts: Sequence[FloatArray],
    callback: Callback,
) -> list[FrontPoint]:
    """Sweep the targets (balances in rising order) up and down from each start.

    The second of every pair of starts begins at the largest balance, since it suits strict limits
    (see ``starting_centers``). All clusterings are returned in the order in which they were found,
    also those that others dominate.
    """
    is_stopped = False

    def follow(number: int) -> list[FrontPoint]:
        nonlocal is_stopped
        up, down = list(targets), list(targets[::-1])
        order = up + down[1:] if number % 2 == 0 else down + up[1:]
        points: list[FrontPoint] = []
        if not is_stopped:
            for point in _follow(problem, constraints_of, order, starts[number]):
                points.append(point)
                is_stopped = callback(point.clustering.centers)
                if is_stopped:
                    break
        return points

    of_starts = for_each(follow, range(len(starts)), callback)
    return [point for of_start in of_starts for point in of_start]


def _follow(
    problem: RepresentationProblem,
    constraints_of: ConstraintsOf,
    targets: Sequence[float],
    centers: FloatArray,
) -> Iterator[FrontPoint]:
    """Yield a clustering for each target, started from the previous one's centres and prices."""
    at: Clustering | None = None
    for target in targets:
        constraints = constraints_of(target)
        limited = problem.with_constraints(constraints)
        if at is None:
            at = fair_lloyd(limited, centers, search_counts=False)
        else:
            at = placed_rows(limited, at.centers, at.multipliers, History())
            at = at._replace(history={})
        yield FrontPoint(target, constraints, at)


def on_all_points(
    problem: RepresentationProblem, points: Sequence[FrontPoint], callback: Callback
) -> list[FrontPoint]:
    """Continue the cheapest clustering of each target, found on a sample, on all points."""
    best: dict[float, FrontPoint] = {}
    for point in points:
        other = best.get(point.target)
        if other is None or point.clustering.cost < other.clustering.cost:
            best[point.target] = point

    def carry(point: FrontPoint) -> FrontPoint:
        clustering = fair_lloyd(
            problem.with_constraints(point.constraints),
            point.clustering.centers,
            multipliers=point.clustering.multipliers,
            max_iter=1,
            search_counts=False,
        )
        return point._replace(clustering=clustering)

    return for_each(carry, list(best.values()), callback)
