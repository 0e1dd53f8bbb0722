r"""The outer loop of ``enforce="strict"``: limits on reported disparities, not on smooth ones.

:mod:`skfair.estimators.erm.solve` calls :func:`solve_strictly` with a problem, whose bounds are the
limits, and a solver. It returns the best solution found as a :class:`StrictResult`.

Solvers need smooth rates, which can be far from the true ones (on COMPAS a smooth gap of 0.05 is a
true gap of 0.18). So the problem is solved in these steps (:func:`_walk`), each from the last
solution:

1. Without constraints. If this solution satisfies the limits, it is the result. If all limits are
   on rates, and the same decision for all rows satisfies them, too, and is more often right, then
   the solution gets its best threshold.
2. With many groups, by steps that see true rates (``rate_steps.py``). If they find a solution, it
   is the result.
3. In rounds. The bounds are moved by the difference of true and smooth values, until the true
   values satisfy the limits (``path.py``). If all limits are on rates, each solution gets its best
   threshold (``true_limits.py``). If losses of groups may only differ by so much, there are several
   local optima. Then rounds also begin at the same score for everybody: in 15 of 240 fits the loss
   fell by more than a tenth, once to a fourth of it, at 1.4 times the cost.
4. If the constraints cost much accuracy, in rounds with smooth errors in place of the loss
   (``refine.py``). They fit noise more closely than the loss does, so their solution must gain more
   than ``SLACK`` of training accuracy. Steeper rates with the loss gain nothing: five temperatures
   instead of one doubled the time and gained 0.0001 of test accuracy in the mean of 18 cases.

Steps 2 and 4 need linear scores, and that all limits are on rates.

With very many rows, a sample makes all of these steps, under limits that are wider by the noise of
its rates. The whole data then only make the last rounds, and steps that see true rates if the
rounds lose accuracy (:func:`_from_sample`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack, cast

import numpy as np

from skfair._typing import FloatArray
from skfair.constraints.bound import BoundConstraint
from skfair.enforcement.erm.path import Path
from skfair.enforcement.erm.rate_steps import by_rate_steps, has_large_cells, suits_rate_steps
from skfair.enforcement.erm.refine import refined, scaled, shifted
from skfair.enforcement.erm.true_limits import OnRates, StrictResult, TrueLimits, true_limits
from skfair.enforcement.rounds import MAX_ROUNDS, PATIENCE, SolveOptions
from skfair.enforcement.strict_evaluation import Verdict
from skfair.models.linear import LinearScore
from skfair.problems.erm.problem import ConstrainedERM
from skfair.solvers.base import Solver
from skfair.solvers.erm.al_newton import MANY_ROWS
from skfair.utils.rounding import ROUNDING

LOOSE_TOL = 1e-4  # tolerance of each solve, because most results are only steps on the way
# Tolerance of each solve if a step of the solver makes one matrix of second derivatives. A loose
# solution depends on the solver and on the order of the rows. The bounds of the next round depend
# on the solution, so the final model would depend on both, too. With many columns a step makes
# hundreds of products instead. Then the tolerance of the user is taken, because this one would take
# up to twice the time, for the same accuracy.
PRECISE_TOL = 1e-9
CHEAP = 0.02  # smooth errors are not tried if the limits cost less accuracy than this
# The accuracy of the result on all rows may be this much below the accuracy that the sample's own
# result has on the sample. Otherwise all rows make the whole walk. With 12,000 rows in the sample,
# 0.02 was seen under the same limits, and 0.03 under limits that are wider by the noise.
OPTIMISM = 0.05
# Smooth errors take many steps. So they are fitted to all rows only if they are estimated to gain
# this much accuracy over the loss. If less was estimated, they gained 0.0002 to 0.0017 (seven
# problems), and otherwise up to 0.01.
GAIN = 0.003


def solve_strictly(
    problem: ConstrainedERM,  # the problem whose bounds limit the true values
    solver: Solver,
    theta0: FloatArray,
    *,
    is_classifier: bool,  # whether predictions are decisions
    may_refine: bool,  # whether smooth errors may take the place of the loss
    **options: Unpack[SolveOptions],  # options of the solver; ``tol`` is required
) -> StrictResult:
    """Return the best solution found, from ``theta0``, whose true values satisfy the limits.

    If none satisfies them, it is the one that violates them least.
    """
    limits, tol = true_limits(problem, is_classifier=is_classifier), options["tol"]
    # With many rows the tolerance of the user is precise enough.
    has_many_rows = solver.is_precise and getattr(problem, "n_rows", 0) >= MANY_ROWS
    step_tol = tol if has_many_rows else _tol_of_steps(problem, solver, tol)
    path = Path(limits, solver, options, step_tol, limits.slack)
    # Smooth errors need second derivatives, and an intercept to which the threshold is added.
    has_curvature = solver.is_precise and "hessian" in problem.offers
    refine = may_refine and has_curvature and cast(LinearScore, problem.model).fit_intercept
    if has_many_rows and limits.has_threshold and not suits_rate_steps(problem):
        few = problem.sampled()
        if few is not None:
            return _from_sample(path, few, theta0, refine=refine)
    return _walk(path, theta0, refine=refine)


def _tol_of_steps(problem: ConstrainedERM, solver: Solver, tol: float) -> float:
    """Return the tolerance of each solve, given the one of the user."""
    has_rates = any(bound.moment.is_rate for bound in problem.constraints)
    loose = LOOSE_TOL if has_rates else tol
    if not solver.is_precise or "hessian" not in problem.offers:
        return loose
    return min(loose, tol if "products" in problem.offers else PRECISE_TOL)


def _from_sample(
    path: Path, few: ConstrainedERM, theta0: FloatArray, *, refine: bool
) -> StrictResult:
    """Return the best of a few rounds on all rows, which start where the walk on a sample ends.

    The rates of a sample differ from the rates of all rows by their noise. If a limit is smaller
    than the noise, few models satisfy it on the sample, and most of them do so by luck, or because
    they select nearly nobody or nearly everybody. So the sample has wider limits (:func:`_noise`).
    With the limits themselves, equalized odds of 0.002 on 130,000 rows lost up to 0.07 of accuracy.

    If the constraints do not bind on the sample, or all rows find no good solution from there, all
    rows make the whole walk, from the solution of the sample without constraints. What they found
    before remains a candidate.
    """
    whole = path.limits.problem
    few = few.constrained(
        [replace(own, max_disparity=own.max_disparity + _noise(own)) for own in few.constraints]
    )
    rough: SolveOptions = {**path.options, "callback": None}
    sample = Path(OnRates(few), path.solver, rough, path.step_tol, slack=0.0)
    end = _walk(sample, theta0, refine=refine)
    free = (sample.candidates or [end])[0].result.theta  # the first solve has no constraints
    if end.n_solves == 1 or not end.is_sound:
        return _walk(path, free, refine=refine)
    last = sample.candidates[-1]  # a solution with smooth errors, if these were tried
    if last.level and _gain_by_errors(sample, OnRates(whole.sampled(1) or whole)) < GAIN:
        last = next(c for c in sample.candidates[::-1] if not c.level)
    problem = whole.with_loss(last.problem.loss)
    problem = problem.bounded(temperature=last.problem.temperature)
    start = last.result._replace(theta=problem.centered(last.result.theta))
    path.rounds(problem, start, PATIENCE, until_sound=True)
    best = path.best()
    # The sample had wider limits, so all rows may reach less without a reason to worry. Steps often
    # gain then: if only a loss of 0.01 counted, 4 of 7 fits would have lost 0.001 to 0.006.
    loses = best.verdict.merit < end.verdict.merit or not best.is_sound
    if refine and loses and not path.is_stopped and has_large_cells(whole):
        near, callback = shifted(few, end), path.options.get("callback")
        stepped = by_rate_steps(path.limits, near, callback, is_near=True)
        if stepped is not None:
            path.keep(stepped)
            best = path.best()
    least = end.verdict.merit - OPTIMISM
    if not path.is_stopped and not (best.is_sound and best.verdict.merit > least):
        return _walk(path, free, refine=refine)
    # The scale is searched on the sample, because each of its steps is a pass over the rows.
    best = path.counted(scaled(few, best), whole.model_part(free))
    return replace(best, n_solves=best.n_solves + end.n_solves)


def _noise(bound: BoundConstraint) -> float:
    """Return the largest standard error of a difference between two rates of a constraint.

    It is 0 if rates are not limited by their differences. A share of rows has a variance of at most
    1/4, divided by their number, and the difference of two rates twice this.
    """
    if not bound.comparison.is_difference:
        return 0.0
    of_cells = 0.25 * np.bincount(bound.cells, bound.row_weights**2, bound.n_cells)
    return float(np.sqrt(2 * (bound.rates.power(2) @ of_cells).max(initial=0.0)))


def _gain_by_errors(sample: Path, others: OnRates) -> float:
    """Return the estimated gain of accuracy if all rows are fitted to smooth errors.

    Smooth errors fit noise. So their gain over the loss on the sample is too large an estimate, and
    the gain of the same solutions on ``others``, another sample, is too small. The mean of both is
    returned. It is -inf if no solution with smooth errors satisfies the limits. Otherwise it is inf
    if no solution with the loss satisfies them.
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
    """Return the result of the steps in the module docstring, on the rows of ``path``."""
    limits, problem = path.limits, path.limits.problem
    options: SolveOptions = {**path.options, "tol": min(path.options["tol"], path.step_tol)}
    free = path.solver.solve(limits.free, problem.model_part(theta0), **options)
    theta, lam = problem.centered(free.theta), np.zeros(problem.n_constraints)
    free = free._replace(theta=theta, multipliers=lam)
    beyond = limits.compare(problem, theta)[1]
    if free.status != "stopped" and np.all(beyond <= 0):  # the limits do not bind
        within = StrictResult(problem, free, Verdict(limits.merit(theta), 0.0))
        return _no_worse_than_constants(limits, within)
    unlimited = path.keep(limits.measured(problem, free))
    if unlimited.is_stopped:
        return unlimited
    refine = refine and limits.has_threshold
    if refine and suits_rate_steps(problem):
        found = by_rate_steps(limits, theta, path.options.get("callback"))
        if found is not None and (found.is_sound or found.is_stopped):
            return path.counted(scaled(problem, path.keep(found)), problem.model_part(theta))
    enough = Verdict(limits.merit(theta) - CHEAP)
    # A run of a stochastic solver is long, and its noise hides small corrections.
    n_rounds = 2 if path.solver.is_stochastic else MAX_ROUNDS
    path.rounds(problem, free, n_rounds, offsets=np.zeros_like(lam))
    if limits.has_local_optima and path.solver.is_precise and not path.is_stopped:
        everybody = free._replace(theta=problem.centered(np.zeros_like(theta)))
        path.rounds(problem, everybody, n_rounds, offsets=np.zeros_like(lam))
    result = path.best()
    if refine and not path.is_stopped and enough.is_better_than(result.verdict):
        result = refined(path, result)
    if limits.has_threshold and (not path.is_stopped or result.problem.loss is not problem.loss):
        result = scaled(problem, result)
    return path.counted(result, problem.model_part(theta))


def _no_worse_than_constants(limits: TrueLimits, found: StrictResult) -> StrictResult:
    """Return a solution without constraints, with its best threshold if a constant is better.

    A *constant* is the same decision for all rows. If a class is rare, the loss may lead to fewer
    right decisions than the constant. All other solutions have their best threshold anyway, which
    is one of the constants if none is better.
    """
    if found.verdict.merit >= limits.best_constant() - ROUNDING:
        return found
    theta = limits.problem.model_part(found.result.theta)
    return replace(limits.measured(found.problem, found.result), free=theta)
