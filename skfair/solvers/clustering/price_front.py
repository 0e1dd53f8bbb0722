"""The whole front of cost against balance, by a warm-started sweep of prices.

Neighbouring balances have neighbouring prices and centres, so one round of the price method per
balance follows the front once it is on it. Each start is swept up and down; what one direction
misses (centres that have no reason to come back) the other finds. Nothing is thinned out: every
clustering that no other dominates is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from skfair._typing import FloatArray
from skfair.problems.clustering.representation import RepresentationProblem, Rules
from skfair.solvers.clustering.prices import (
    Callback,
    PriceClustering,
    assign,
    fair_lloyd,
    is_large,
    sample_of,
)

# Steps on the dual per balance: prices move little from one balance to the next.
_DUAL_STEPS = 10


class FrontPoint(NamedTuple):
    """A clustering of the front and the rules that it was made under."""

    target: float  # balance asked for, as a share of the data's
    rules: Rules
    clustering: PriceClustering


def price_front(
    problem: RepresentationProblem,
    rules_of: Callable[[float], Rules],
    targets: FloatArray,
    starts: Sequence[FloatArray],
    *,
    random_state: Any = None,
    callback: Callback | None = None,
) -> list[FrontPoint]:
    """Sweep the targets up and down from each start and return every clustering found.

    Parameters
    ----------
    problem : RepresentationProblem
        The points; its own rules are not used.
    rules_of : callable
        Makes the rules of a target in [0, 1].
    targets : ndarray
        Balances to ask for, as shares of the data's, increasing.
    starts : sequence of ndarray
        Scaled starting centres; the second of every pair starts from the fair end.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample of a large problem.
    callback : callable, default=None
        Called with the centres after each balance; True stops the sweep.

    Returns
    -------
    points : list of FrontPoint
        In the order they were found; dominated ones included.
    """
    trial = sample_of(problem, check_random_state(random_state)) if is_large(problem) else problem
    points: list[FrontPoint] = []
    for number, centers in enumerate(starts):
        up, down = list(targets), list(targets[::-1])
        order = up + down[1:] if number % 2 == 0 else down + up[1:]
        for point in _sweep(trial, rules_of, order, centers):
            points.append(point)
            if callback is not None and callback(point.clustering.centers):
                return _on_all_points(problem, trial, points)
    return _on_all_points(problem, trial, points)


def _sweep(
    problem: RepresentationProblem,
    rules_of: Callable[[float], Rules],
    targets: Sequence[float],
    centers: FloatArray,
) -> Iterator[FrontPoint]:
    """Follow the front from target to target, one round each."""
    multipliers = None
    limited = problem.with_rules(rules_of(targets[0]))
    first = fair_lloyd(limited, centers, search_counts=False)
    centers, multipliers = first.centers, first.multipliers
    yield FrontPoint(targets[0], rules_of(targets[0]), first)
    for target in targets[1:]:
        rules = rules_of(target)
        limited = problem.with_rules(rules)
        found = assign(
            limited,
            centers,
            multipliers=multipliers,
            temperatures=(3e-3,),
            max_iter=_DUAL_STEPS,
            search_counts=False,
        )
        means, mass = limited.means(found.labels)
        centers, multipliers = np.where(mass[:, None] > 0, means, centers), found.multipliers
        clustering = PriceClustering(
            found.labels,
            centers,
            multipliers,
            limited.cost(found.labels),
            found.cost,
            found.lower_bound,
            found.violation,
            1,
            "converged",
            {},
        )
        yield FrontPoint(target, rules, clustering)


def _on_all_points(
    problem: RepresentationProblem, trial: RepresentationProblem, points: list[FrontPoint]
) -> list[FrontPoint]:
    """Carry the cheapest clustering of each target from the sample to all points."""
    if trial is problem:
        return points
    best: dict[float, FrontPoint] = {}
    for point in points:
        other = best.get(point.target)
        if other is None or point.clustering.cost < other.clustering.cost:
            best[point.target] = point
    return [
        point._replace(
            clustering=fair_lloyd(
                problem.with_rules(point.rules),
                point.clustering.centers,
                multipliers=point.clustering.multipliers,
                max_iter=1,
                dual_iter=4,
                search_counts=False,
            )
        )
        for point in best.values()
    ]
