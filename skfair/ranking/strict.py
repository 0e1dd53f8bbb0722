"""Keeping a limit for each query by the errors themselves, not by their smooth stand-ins.

The smooth problem is solved, the true disparity of every query is measured on all its pairs, and
the bounds of the queries that miss the limit are tightened by what they miss. Bounds are only ever
tightened, so queries do not take turns in missing it: with bounds that are shifted in all rounds,
as those of classifiers are, .76 of the queries of 16 fits are within the limit in place of .79.

After the first round, and where the temperature changes, bounds are shifted instead by the
difference of the smooth and the true value. It has two causes: sigmoids instead of errors, and a
sample of the pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.rounds import PATIENCE, moved_bounds
from skfair.problems.erm.in_memory import ConstrainedERM
from skfair.ranking.task import RankingTask
from skfair.solvers.base import SolverResult
from skfair.utils.rounding import SUM_ROUNDING

# Part of the limit by which bounds are tightened beyond what is missed.
_MARGIN = 0.03


class RankingSolution(NamedTuple):
    """The best solution of all rounds."""

    result: SolverResult  # what the solver returned
    problem: ConstrainedERM  # the problem that it solved, with the bounds of that round
    share_within: float  # share of the queries that satisfy the limit
    n_solves: int


def solve_by_query(
    task: RankingTask,
    solve: Callable[[ConstrainedERM, FloatArray, FloatArray], SolverResult],
    start: FloatArray,
    *,
    query_share: float,
    temperatures: tuple[float, ...],
    max_rounds: int,
) -> RankingSolution:
    """Return the solution with the most queries within the limit, of at most ``max_rounds``.

    ``solve(problem, theta, multipliers)`` solves the smooth problem. Rounds end when a share of the
    queries is within the limit. The first temperatures lead to a good start for the last.
    """
    problem, limit = task.problem, task.limits
    theta, multipliers = start, np.zeros(problem.n_constraints)
    best: RankingSolution | None = None
    since = 0
    path = [*temperatures, *[temperatures[-1]] * max_rounds][:max_rounds]
    for n_solves, temperature in enumerate(path, 1):
        problem = problem.bounded(temperature=temperature)
        result = solve(problem, theta, multipliers)
        theta, multipliers = result.theta, result.multipliers
        truth = task.true_values(theta)
        share = _share_within(truth, task.query_of_row, limit)
        if best is None or share > best.share_within:
            best, since = RankingSolution(result, problem, share, n_solves), 0
        else:
            since += 1
        best = best._replace(n_solves=n_solves)
        is_last = n_solves >= len(temperatures)
        if share >= query_share or result.status == "stopped" or (is_last and since >= PATIENCE):
            break
        smooth = problem.evaluate(theta).constraints
        if n_solves == 1 or not is_last:
            problem = problem.bounded(*moved_bounds(-limit, limit, truth - smooth, 0.0))
        else:
            problem = _tightened(problem, smooth, truth, limit)
    assert best is not None
    return best


def _share_within(truth: FloatArray, query_of_row: IntArray, limit: FloatArray) -> float:
    """Return the share of the queries none of whose rows misses the limit; 1 without rows."""
    is_over = np.abs(truth) > limit + SUM_ROUNDING
    n_queries = np.unique(query_of_row).size
    return 1 - np.unique(query_of_row[is_over]).size / max(n_queries, 1)


def _tightened(
    problem: ConstrainedERM, smooth: FloatArray, truth: FloatArray, limit: FloatArray
) -> ConstrainedERM:
    """Return the problem with tighter bounds where the truth misses the limit."""
    margin = _MARGIN * limit
    upper = np.minimum(problem.upper, smooth) - (truth - limit) - margin
    lower = np.maximum(problem.lower, smooth) - (truth + limit) + margin
    upper = np.where(truth > limit, upper, problem.upper)
    lower = np.where(truth < -limit, lower, problem.lower)
    middle = 0.5 * (problem.lower + problem.upper)  # never so tight that no value is allowed
    return problem.bounded(np.minimum(lower, middle), np.maximum(upper, middle))
