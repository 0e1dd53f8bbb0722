"""The whole front of cost against balance, by a warm-started sweep of prices.

Neighbouring balances have neighbouring prices and centres, so one round of the price method per
balance follows the front once it is on it. Each start is swept up and down, because each direction
finds points that the other misses (centres that have no reason to come back). Nothing is thinned
out: every clustering that no other dominates is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skfair._typing import Callback, FloatArray
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solvers.base import Clustering, ConstraintsOf, FrontPoint, for_each
from skfair.cluster.kmeans.solvers.lloyd import fair_lloyd, placed_rows
from skfair.utils.history import History


def sweep(
    problem: RepresentationProblem,
    constraints_of: ConstraintsOf,
    targets: FloatArray,
    starts: Sequence[FloatArray],
    callback: Callback,
) -> list[FrontPoint]:
    """Sweep the targets up and down from each start and return every clustering found.

    The second of every pair of starts begins at the fair end. Points come in the order in which
    they were found; dominated ones are included.
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
    """Carry the cheapest clustering of each target from a sample to all points."""
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
