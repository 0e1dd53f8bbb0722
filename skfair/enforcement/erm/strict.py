r"""The outer loop of ``enforce="strict"``: bounds on reported disparities, not on smooth ones.

A smooth rate can be far from the true one (on COMPAS a smooth gap of 0.05 is a true gap of 0.18),
so a solver that keeps the smooth bounds promises nothing. Here the smooth problem is solved again
and again, each time from the last solution:

- the smooth bounds are shifted by the difference of true and smooth values that was seen, until the
  true values meet the true bounds;
- the threshold of every solution is scanned if all limits are on rates
  (:mod:`skfair.enforcement.erm.true_limits`).

These rounds are in :mod:`skfair.enforcement.erm.path`.

Where the constraints cost much accuracy the loss is a poor guide: few decisions can be right, and
it is dominated by those that are wrong. There the path goes on to *smooth errors* in place of the
loss, in two steps: the first is smooth enough to have few local optima, and only has to lead near
one that is good (:mod:`skfair.enforcement.erm.refine`).

Steeper rates with the loss gain nothing: five temperatures in place of one doubled the CPU for
.0001 of test accuracy in the mean of 18 cells. Among the solutions that keep the true bounds,
errors are only taken if they gain more than ``SLACK`` of training accuracy: they fit the sample
more closely, and with small cells they fit its noise.

Where groups are many, steps that see true rates take the place of the path
(:mod:`skfair.enforcement.erm.rate_steps`). Where rows are very many, a sample of them walks the
path, and all rows make the last rounds only. Errors fit the noise of the sample, so another one is
asked whether all rows shall fit errors as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack, cast

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.erm.path import Path
from skfair.enforcement.erm.rate_steps import by_rate_steps, suits_rate_steps
from skfair.enforcement.erm.refine import refine as refined
from skfair.enforcement.erm.refine import scaled
from skfair.enforcement.erm.true_limits import OnRates, StrictResult, true_limits
from skfair.enforcement.rounds import MAX_ROUNDS, PATIENCE, SolveOptions
from skfair.enforcement.strict_evaluation import Verdict
from skfair.models.linear import LinearScore
from skfair.problems.erm.problem import ConstrainedERM
from skfair.solvers.base import Solver
from skfair.solvers.erm.al_newton import MANY_ROWS

LOOSE_TOL = 1e-4  # of solves whose result is only a step on the way
# The same, of solvers and scores (linear ones) for which precision is cheap: one more step is one
# more matrix of second derivatives. What is seen at one solution decides where the next one lies; a
# loose one depends on the solver and on the order of the rows, and then so does the model. Where
# columns are many a step is hundreds of products, and the precision that was asked for has to be
# enough: more takes up to twice the time, for the same accuracy.
PRECISE_TOL = 1e-9
CHEAP = 0.02  # loss of accuracy that leaves little to gain from errors
OPTIMISM = 0.05  # accuracy that a sample of 12,000 rows may have beyond that of all (.02 seen)
# Accuracy that errors must promise to gain over the loss, for all rows to fit them. They take many
# steps; where they promised less they gained .0002 to .0017 (seven problems), else up to .01.
GAIN = 0.003


def solve_strictly(
    problem: ConstrainedERM,  # its bounds are those that the true values must keep
    solver: Solver,
    theta0: FloatArray,
    *,
    is_classifier: bool,  # whether predictions are decisions
    may_refine: bool,  # whether smooth errors may take the place of the loss
    **options: Unpack[SolveOptions],  # with a tolerance
) -> StrictResult:
    """Find the best solution whose true disparities are within their bounds."""
    limits, tol = true_limits(problem, is_classifier=is_classifier), options["tol"]
    # With many rows the requested precision is enough, and walks begin on a sample.
    has_many_rows = solver.is_precise and getattr(problem, "n_rows", 0) >= MANY_ROWS
    step_tol = tol if has_many_rows else _tol_of_steps(problem, solver, tol)
    path = Path(limits, solver, options, step_tol, limits.slack)
    # Smooth errors need second derivatives, and an intercept that takes up the chosen threshold.
    has_curvature = solver.is_precise and "hessian" in problem.offers
    refine = may_refine and has_curvature and cast(LinearScore, problem.model).fit_intercept
    if has_many_rows and limits.has_threshold and not suits_rate_steps(problem):
        few = problem.sampled()
        if few is not None:
            return _from_sample(path, few, theta0, refine=refine)
    return _walk(path, theta0, refine=refine)


def _tol_of_steps(problem: ConstrainedERM, solver: Solver, tol: float) -> float:
    """Return the tolerance of each solve: what suits the solver."""
    has_rates = any(bound.moment.is_rate for bound in problem.constraints)
    loose = LOOSE_TOL if has_rates else tol
    if not solver.is_precise or "hessian" not in problem.offers:
        return loose
    return min(loose, tol if "products" in problem.offers else PRECISE_TOL)


def _from_sample(
    path: Path, few: ConstrainedERM, theta0: FloatArray, *, refine: bool
) -> StrictResult:
    """Return the best of the last rounds on all rows, begun where the walk on a sample ends.

    Where the constraints do not bind on the sample, or these rounds find nothing, all rows make the
    walk, begun at the solution of the sample.
    """
    whole = path.limits.problem
    rough: SolveOptions = {**path.options, "callback": None}
    sample = Path(OnRates(few), path.solver, rough, path.step_tol, slack=0.0)
    end = _walk(sample, theta0, refine=refine)
    free = (sample.candidates or [end])[0].result.theta
    if end.n_solves == 1 or not end.is_sound:
        return _walk(path, free, refine=refine)
    last = sample.candidates[-1]
    if last.level and _gain_by_errors(sample, OnRates(whole.sampled(1) or whole)) < GAIN:
        last = next(c for c in sample.candidates[::-1] if not c.level)
    problem = whole.with_loss(last.problem.loss)
    problem = problem.bounded(temperature=last.problem.temperature)
    start = last.result._replace(theta=problem.centered(last.result.theta))
    path.rounds(problem, start, PATIENCE, until_sound=True)
    best = path.best()
    least = end.verdict.merit - OPTIMISM
    if not path.is_stopped and not (best.is_sound and best.verdict.merit > least):
        return _walk(replace(path, candidates=[]), free, refine=refine)
    # The scale is that of the sample: all rows would be passed over at each of its steps.
    best = path.counted(scaled(few, best))
    return replace(best, n_solves=best.n_solves + end.n_solves)


def _gain_by_errors(sample: Path, others: OnRates) -> float:
    """Return about how much more accurate errors in place of the loss make a fit of all rows.

    They fit noise: what they gain on the sample is too much, and what its solutions gain on other
    rows too little. The middle of both is returned.
    """
    gains = []
    for is_errors in (True, False):
        candidates = [c for c in sample.candidates if c.is_sound and bool(c.level) == is_errors]
        if not candidates:
            return -np.inf if is_errors else np.inf
        best = max(candidates, key=lambda candidate: candidate.verdict.merit)
        elsewhere = others.measured(others.problem, best.result)
        gains.append(0.5 * (best.verdict.merit + elsewhere.verdict.merit))
    return gains[0] - gains[1]


def _walk(path: Path, theta0: FloatArray, *, refine: bool) -> StrictResult:
    """Go from the solution without constraints to rounds with the loss, and then with errors."""
    limits, problem = path.limits, path.limits.problem
    # Without the constraints first: this is the result if they do not bind.
    options: SolveOptions = {**path.options, "tol": min(path.options["tol"], path.step_tol)}
    free = path.solver.solve(limits.free, problem.model_part(theta0), **options)
    theta, lam = problem.centered(free.theta), np.zeros(problem.n_constraints)
    free = free._replace(theta=theta, multipliers=lam)
    beyond = limits.compare(problem, theta)[1]
    if free.status != "stopped" and np.all(beyond <= 0):  # they do not bind
        return StrictResult(problem, free, Verdict(limits.merit(theta), 0.0))
    unlimited = path.keep(limits.measured(problem, free))
    if unlimited.is_stopped:
        return unlimited
    refine = refine and limits.has_threshold
    if refine and suits_rate_steps(problem):
        found = by_rate_steps(limits, theta, path.options.get("callback"))
        if found is not None and (found.is_sound or found.is_stopped):
            return path.counted(scaled(problem, path.keep(found)))
    enough = Verdict(limits.merit(theta) - CHEAP)
    # A run of a stochastic solver is long, and its noise hides small corrections.
    n_rounds = 2 if path.solver.is_stochastic else MAX_ROUNDS
    path.rounds(problem, free, n_rounds, offsets=np.zeros_like(lam))
    result = path.best()
    if refine and not path.is_stopped and enough.is_better_than(result.verdict):
        result = refined(path, result)
    if limits.has_threshold and (not path.is_stopped or result.problem.loss is not problem.loss):
        result = scaled(problem, result)
    return path.counted(result)
