r"""Bounds on what is reported, not on its smooth stand-in: the outer loop of ``enforce="strict"``.

A smooth rate can be far from the true one (on COMPAS a smooth gap of 0.05 is a true gap of 0.18),
so a solver that keeps the smooth bounds promises nothing. Here the smooth problem is solved again
and again, each time from the last solution:

- the smooth bounds are shifted by the difference of true and smooth values that was seen, until the
  true values meet the true bounds;
- every solution's threshold is scanned (:mod:`skfair.enforcement.thresholds.scan`).

These rounds are in :mod:`skfair.enforcement.erm.path`, what is true of a solution is said
by :mod:`skfair.enforcement.erm.judge`.

Where the constraints cost much accuracy the loss is a poor guide: few decisions can be right, and
it is dominated by those that are wrong. There the path goes on to *smooth errors* in place of the
loss, in two steps: the first is smooth enough to have few local optima, and only has to lead near
one that is good (:mod:`skfair.enforcement.erm.refine`).

Steeper rates with the loss gain nothing: five temperatures in place of one doubled the CPU for
.0001 of test accuracy in the mean of 18 cells. Among the solutions that keep the true bounds,
errors are only taken if they gain more than ``SLACK`` of training accuracy: they fit the sample
more closely, and with small cells they fit its noise.

Where groups are many, steps that see true rates take the place of the path
(:mod:`skfair.enforcement.erm.rate_steps`). Where dense rows are very many, the first rounds are
done roughly on a few of them (:mod:`skfair.enforcement.erm.growing`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack, cast

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.erm.growing import ManyRowsPath, close_on_all_rows
from skfair.enforcement.erm.judge import SLACK, Candidate, Judge, StrictResult
from skfair.enforcement.erm.path import Path, Shifting
from skfair.enforcement.erm.rate_steps import by_rate_steps, suits_rate_steps
from skfair.enforcement.erm.refine import promised_gain, scaled_if_steep, scaled_scores, shifted
from skfair.enforcement.erm.refine import refine as refined
from skfair.enforcement.rounds import Place, SolveOptions
from skfair.models.linear import LinearScore
from skfair.problems.erm.in_memory import LinearConstrainedERM
from skfair.problems.erm.problem import RuledProblem
from skfair.problems.erm.summed import SummedERM, few_rows
from skfair.solvers.base import Solver

ROUGH_TOL = 1e-5  # of solves on a few rows
LITTLE = 0.25 * SLACK  # gain in accuracy that counts where rows are very many
CHEAP = 0.02  # loss of accuracy that leaves little to gain from errors


def solve_strictly(
    problem: RuledProblem,  # the problem; its bounds are those that the true values must keep
    solver: Solver,
    theta0: FloatArray,
    *,
    # ``min_gap(theta) -> float``: differences of scores that rounding may cause
    min_gap: Callable[[FloatArray], float],
    is_classifier: bool,  # whether solutions are compared by accuracy (else by the objective)
    # Whether precise solvers of linear scores with an intercept go on from the loss to errors where
    # the constraints cost much accuracy
    refine: bool = False,
    **solve_params: Unpack[SolveOptions],
) -> StrictResult:
    """Find the best solution whose true disparities are within their bounds."""
    few = few_rows(problem) if is_classifier and solver.is_precise else None
    if few is not None:
        rough: SolveOptions = {**solve_params, "tol": ROUGH_TOL, "callback": None}
        sample = ManyRowsPath(Judge(few, min_gap, True), solver, rough)
        of_sample = _walk(sample, theta0, refine=False)
        if of_sample.n_solves > 1 and of_sample.is_feasible and not of_sample.is_constant:
            judge = Judge(SummedERM(cast(LinearConstrainedERM, problem), few), min_gap, True)
            closed = close_on_all_rows(judge, sample.candidates[-1].solution, solver, solve_params)
            if closed is not None:
                is_cheap = _is_cheap(sample, judge, closed)
                refines = refine and judge.scan is not None and not is_cheap
                # Errors of a few rows fit their noise.
                if not refines or promised_gain(sample, closed.solution, judge) < LITTLE:
                    return closed.solution
                exact = Judge(problem, min_gap, True, slack=LITTLE)
                steep = ManyRowsPath(exact, solver, solve_params)
                steep.candidates.append(closed)
                return steep.counted(refined(steep, closed.solution))
        theta0 = of_sample.result.theta
    whole = Path(Judge(problem, min_gap, is_classifier), solver, solve_params)
    if few is not None and refine and of_sample.n_solves > 1:
        guide = Path(Judge(few, min_gap, True), solver, {**solve_params, "callback": None})
        end = _walk(guide, theta0, refine=True)
        if end.problem.loss is not few.loss and not end.is_constant:
            # Where limits leave few decisions, rates of a few rows say too little of those of all,
            # but they lead to where errors are few.
            errors = Path(whole.judge, solver, solve_params)
            errors.keep(problem, end.result)
            by_errors = errors.counted(refined(errors, end))
            if errors.is_stopped or (by_errors.is_feasible and not by_errors.is_constant):
                return by_errors
    return _walk(whole, theta0, refine=refine)


def _is_cheap(sample: Path, judge: Judge, closed: Candidate) -> bool:
    """Whether the constraints cost so little accuracy that errors have little to gain."""
    free, few = sample.candidates[0].solution.result.theta, sample.judge
    place = shifted(few.problem, closed.solution)
    # The sample says it, unless that is near: its differences are off by far less than this.
    noise = 1 / np.sqrt(cast(LinearConstrainedERM, few.problem).n_rows)
    if few.quality(place) > few.quality(free) - CHEAP + noise:
        return True
    return closed.quality > judge.quality(free) - CHEAP


def _walk(path: Path, theta0: FloatArray, *, refine: bool) -> StrictResult:
    """Walk a path from its start."""
    judge, problem = path.judge, path.judge.problem
    # Without the constraints first: this is the result if they do not bind.
    params: SolveOptions = {**path.params, "tol": min(path.tol, path.step_tol)}
    free = path.solver.solve(judge.free, problem.model_part(theta0), **params)
    theta, lam = problem.centered(free.theta), np.zeros(problem.n_constraints)
    unlimited = path.keep(problem, free._replace(theta=theta, multipliers=lam))
    if path.is_stopped:
        return unlimited.solution
    if judge.compare(problem, theta, lam).violation <= 0:  # the constraints do not bind
        return unlimited.solution._replace(shift=0.0, is_feasible=True, is_constant=False)
    refines = refine and judge.scan is not None and path.is_precise
    if refines and suits_rate_steps(problem):
        by_steps = by_rate_steps(path, theta)
        if by_steps is not None:
            return by_steps
    enough = judge.quality(theta) - CHEAP
    rounds = Shifting(path, problem, np.zeros(problem.n_constraints))
    rounds.run(path.solver, Place(theta, lam), path.max_rounds, path.params)
    best = path.best()
    result = best.solution
    if refines and not path.is_stopped and (not result.is_feasible or best.quality < enough):
        result = refined(path, result)
    # Errors that were fitted in place of the loss are scaled already.
    if judge.scan is None or path.is_stopped or result.problem.loss is not problem.loss:
        return path.counted(result)
    if not isinstance(problem.model, LinearScore):
        result = scaled_scores(judge, result)
    elif problem.model.fit_intercept:
        result = scaled_if_steep(path, result)
    return path.counted(result)
