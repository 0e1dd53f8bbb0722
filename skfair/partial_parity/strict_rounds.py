r"""Strict limits within an interval: rounds of smooth problems whose tolerance is scaled.

The smooth constraints of :class:`PartialParityProblem` are kept at some percentiles only, and by
steps that are not sharp, so the disparity of the true scores can be larger. Each round solves the
problem from the last solution and measures the disparity. Then the tolerance of the smooth
constraints is multiplied by what was asked over what was measured, and the steps become narrower.
Two or three rounds are mostly enough.

Steps are as wide as the scores are spread: scores that all move together would keep any smooth
constraint whose steps are wide against their differences, and no true one.

Constraints with several forms, each sufficient, are solved in each, and the best result is kept.
If all of them violate the limit, then mostly by little: random moves from the best solutions look
for parameters that satisfy it.

Nothing is returned that a glance would refuse. A solution that ranks rows worse than chance counts
as far beyond any limit, and the model without the limit is always a candidate. So is a model whose
decisions are all the same but whose ranks are the ranks of a solution, which satisfies every limit
on decisions.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.rounds import (
    LONGEST,
    MAX_ROUNDS,
    MOST_MOVES,
    PATIENCE,
    SolveOptions,
    random_moves,
)
from skfair.enforcement.strict_evaluation import Verdict
from skfair.models.linear import LinearScore
from skfair.partial_parity.problem import PartialParityProblem
from skfair.partial_parity.promise import Promise
from skfair.partial_parity.surrogates import Surrogate
from skfair.problems.erm.problem import SAMPLE_ROWS
from skfair.solvers.base import Solver, SolverResult
from skfair.utils.registry import PAPERS, Registry
from skfair.utils.rounding import ROUNDING

# Factor on the width of the steps per round, and the least width, as parts of the first.
NARROWING, NARROWEST = 0.6, 0.2
# Least and largest factor on the tolerance per round. The wide steps of the first round leave a far
# larger disparity than narrow ones will: 0.3 went too far and cost a round to come back, 0.7 takes
# a fifth more evaluations on 400 rows.
CHANGE = 0.5, 1.5
# A tolerance aims this much below what is allowed.
AIM = 0.96
# A disparity below this part of what is allowed gives room away. With .85, as elsewhere, .0026 of
# accuracy were lost on COMPAS.
USED = 0.75
# Violations of smooth constraints that count as none.
SLACK = 1e-3
# Solutions that random moves start from, from each twice as long ones, and rows that all moves from
# one solution may look at.
MOVED, MOST_ROWS = 5, 50_000_000
# The AUC of ranks by chance, up to rounding.
CHANCE = 0.5 - ROUNDING
# Factors on scores, where only their ranks count for the constraint; 1 first, for it wins ties.
FACTORS = (1.0, *(2.0**power for power in range(-10, 11) if power))


@dataclass(frozen=True)
class PartialResult:
    """A solution of a smooth problem, and what its scores are good for."""

    problem: PartialParityProblem  # the smooth problem, with its tolerance and steps
    result: SolverResult  # the solution
    verdict: Verdict  # on its scores
    disparity: float = 0.0  # its measured disparity
    n_solves: int = 1  # number of problems that were solved
    is_precise: bool = True  # whether its solver runs until it has converged
    spread: float = 0.0  # of the scores

    @property
    def smooth_verdict(self) -> Verdict:
        at = self.problem.evaluate(self.result.theta)
        return Verdict(-at.objective, self.problem.violation(at) - SLACK)


@dataclass(frozen=True)
class Target:
    """Requirements on scores, and the numbers by which they are compared."""

    measure: Callable[[FloatArray], float]  # disparity of scores
    quality: Callable[[FloatArray], float]  # their accuracy, or their AUC where that is learned
    decides: bool  # whether quality looks at decisions, not at ranks alone
    auc: Callable[[FloatArray], float]
    max_disparity: float  # largest disparity
    weights: FloatArray | None = None  # weights of the rows

    def excess(self, scores: FloatArray, disparity: float) -> float:
        """Return by how much the limit is exceeded; infinity if scores rank worse than chance."""
        return disparity - self.max_disparity if self.auc(scores) >= CHANCE else np.inf

    def spread(self, scores: FloatArray) -> float:
        """Return the standard deviation of scores: a row of weight 2 counts as two rows."""
        if self.weights is None or not np.ptp(self.weights):  # scores.std(), in a third of its time
            centred = scores - np.add.reduce(scores) / scores.size
            return float(np.sqrt(np.add.reduce(centred * centred) / scores.size))
        middle = np.average(scores, weights=self.weights)
        return float(np.sqrt(np.average((scores - middle) ** 2, weights=self.weights)))


class IntervalSolver(Solver):
    """A solver that states its own problem within the interval, and is run on it once."""

    @abstractmethod
    def fit_within(
        self, promise: Promise, free: PartialParityProblem, options: SolveOptions, *, printed: bool
    ) -> PartialResult:
        """State the problem and solve it.

        Parameters
        ----------
        promise : Promise
            What is limited.
        free : PartialParityProblem
            The problem without the limit.
        options : dict
            Arguments of :meth:`solve`.
        printed : bool
            Whether the constraint is wanted in the form that the paper prints.

        Returns
        -------
        result : PartialResult
            The solution.
        """


# By name. The other solvers of constraints within intervals are those of risk minimisation.
INTERVAL_SOLVERS: Registry[type[IntervalSolver]] = Registry("solver", PAPERS)


def stated(
    promise: Promise, free: PartialParityProblem, surrogate: Surrogate, *, printed: bool, last: bool
) -> list[PartialParityProblem]:
    """Return the problem with its limit, in each form of the constraint or only in the last one.

    With ``printed`` the constraint has the form in which the paper prints it.
    """
    constraint = promise.constraint
    rows = promise.rows(constraint.n_percentiles)
    forms = [constraint.moments(of, surrogate, printed=printed) for of in rows]
    if last:
        forms = [attribute[-1:] for attribute in forms]
    ratios = promise.ratios if isinstance(promise.limit, Mapping) else None
    of_rows = free.model, free.objective
    return [
        type(free)(*of_rows, moments, promise.tolerance, alpha=free.alpha, ratios=ratios)
        for moments in zip(*forms, strict=True)
    ]


def solve_partially(
    problems: Sequence[PartialParityProblem],  # forms of the problem, one after the other
    solver: Solver,
    theta_model: FloatArray,  # parameters of the model to start from
    # The steps of the first round, for scores that are spread as those of ``theta_model``
    surrogate: Surrogate,
    target: Target,
    *,
    # Largest number of rounds per form; 1 for one solution of the smooth problem: forms are then
    # compared by these problems, not by what is measured
    n_rounds: int = MAX_ROUNDS,
    # The model without the limit, if there is to be more than rounds: random moves from the best
    # solutions if none keeps the bound, and comparisons with this model and with constants
    unlimited: SolverResult | None = None,
    **params: Unpack[SolveOptions],
) -> PartialResult:
    """Find the most accurate solution whose measured disparity is within its bound.

    If there is none, the one of least disparity is returned.
    """
    solved: list[PartialResult] = []
    starts: list[FloatArray] = []
    for form in problems:
        if solved and solved[-1].result.status == "stopped":
            break
        starts.append(form.start(theta_model))
        solved += _rounds(form, solver, starts[-1], surrogate, target, n_rounds, params)
    n_solves, is_stopped = len(solved), solved[-1].result.status == "stopped"
    model = problems[0].model
    if unlimited is not None:
        none = np.zeros(problems[0].n_constraints)
        result = unlimited._replace(theta=starts[0], multipliers=none)
        solved.append(free := measured(problems[0], result, target))
    is_short = not any(result.verdict.is_feasible for result in solved)
    if unlimited is not None and not is_stopped and is_short:
        for k, moving in enumerate(sorted(solved, key=lambda result: result.verdict.rank)[:MOVED]):
            solved.append(_random_moves(moving, target, LONGEST * 2**k, np.random.RandomState(k)))
            if solved[-1].verdict.is_feasible:
                break
    by_smooth = n_rounds == 1
    best = min(solved, key=lambda r: (r.smooth_verdict if by_smooth else r.verdict).rank)
    if unlimited is not None and isinstance(best.problem.model, LinearScore):
        worth, sign = max((target.quality(np.full(model.n_samples, s)), s) for s in (1.0, -1.0))
        # Equal decisions take nothing from an AUC, so there they are the last resort.
        if not best.verdict.is_feasible or (target.decides and best.verdict.merit < worth):
            equal = [_deciding_equally(each, sign, target) for each in (best, free)]
            best = min(
                [best, *equal], key=lambda r: (round(r.verdict.rank[0], 9), -r.verdict.merit)
            )
        best = best if is_stopped else _of_best_size(best, target)
    return replace(best, n_solves=n_solves, is_precise=solver.is_precise)


def _rounds(
    form: PartialParityProblem,
    solver: Solver,
    theta: FloatArray,  # where the first round starts
    surrogate: Surrogate,
    target: Target,
    n_rounds: int,
    params: SolveOptions,
) -> list[PartialResult]:
    """Solve, measure, multiply the tolerance by what was asked over that, and solve again."""
    theta_model = form.model_part(theta)
    spread, limit = target.spread(form.model.forward(theta_model)[0]), target.max_disparity
    tolerance, width, solved = form.tolerance, 1.0, list[PartialResult]()
    problem = form.limited(tolerance, surrogate)
    n, multipliers = form.model.n_samples, None
    if n_rounds > 1 and n // 10 >= SAMPLE_ROWS and "on_rows" in form.offers:
        # Far from the solution a tenth of the rows show the way as well as all of them.
        rows = np.sort(np.random.RandomState(0).randint(0, n, n // 10))
        few = problem.on_rows(rows, np.full(rows.size, n / rows.size))
        rough = solver.solve(few, few.start(theta_model), **params)
        theta, multipliers = rough.theta, rough.multipliers
    for n_done in range(1, n_rounds + 1):
        result = solver.solve(problem, theta, multipliers, **params)
        theta, multipliers = result.theta, result.multipliers
        last = measured(problem, result, target)
        solved.append(last)
        is_used_up = last.disparity >= USED * limit or not np.any(multipliers)
        seen = [each.disparity for each in solved]
        # Later any solution within the bound will do; after two rounds that come no closer to it
        # the next ones hardly do, and random moves may.
        is_done = n_done > 2 and min(seen[-2:]) >= min(seen[:-2])
        if last.verdict.is_feasible:
            is_done = is_used_up or n_done > PATIENCE
        if is_done or result.status == "stopped":
            break
        wanted = AIM * limit / max(last.disparity, 1e-3 * limit, ROUNDING)
        tolerance *= float(np.clip(wanted, *CHANGE))
        width = max(NARROWEST, NARROWING * width)
        ratio = max(last.spread / spread, 1e-6) if spread else 1.0
        problem = form.limited(tolerance, surrogate.narrowed(width * ratio))
    return solved


def measured(problem: PartialParityProblem, result: SolverResult, target: Target) -> PartialResult:
    """Return what a solution is good for."""
    scores = problem.evaluate(result.theta).scores
    disparity = target.measure(scores)
    verdict = Verdict(target.quality(scores), target.excess(scores, disparity))
    return PartialResult(problem, result, verdict, disparity, spread=target.spread(scores))


def _random_moves(
    solved: PartialResult, target: Target, longest: float, rng: np.random.RandomState
) -> PartialResult:
    """Move from a solution to the bound."""
    problem, model = solved.problem, solved.problem.model

    def place(theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        return theta, model.forward(theta)[0]

    def excess(at: tuple[FloatArray, FloatArray]) -> float:
        return max(target.excess(at[1], target.measure(at[1])) - ROUNDING, 0.0)

    def move(at: tuple[FloatArray, FloatArray], length: float) -> tuple[FloatArray, FloatArray]:
        theta, scores = at
        step = rng.standard_normal(theta.size)
        change = target.spread(model.forward(theta + step)[0] - scores) or 1.0
        return place(theta + length * target.spread(scores) / change * step)

    start = place(problem.model_part(solved.result.theta))
    most = min(MOST_MOVES, MOST_ROWS // model.n_samples)
    theta, scores = random_moves(start, excess, move, most=most, longest=longest)
    # Moves do not look at the objective, and may have made scores far too large.
    theta = solved.spread / (target.spread(scores) or 1.0) * theta
    return measured(problem, solved.result._replace(theta=problem.start(theta)), target)


def _of_best_size(solved: PartialResult, target: Target) -> PartialResult:
    """Return a solution whose scores are multiplied by what makes the objective least.

    Random moves and rounds that end early may leave scores that are far too large.
    """
    problem, model = solved.problem, solved.problem.model
    theta = problem.model_part(solved.result.theta)

    def missed(scores: FloatArray) -> float:
        return max(target.excess(scores, target.measure(scores)) - ROUNDING, 0.0)

    scores = model.forward(theta)[0]
    least, right = missed(scores), target.quality(scores)

    def is_harmless(factor: float) -> bool:
        scaled = model.forward(factor * theta)[0]
        return factor == 1 or (missed(scaled) <= least and target.quality(scaled) >= right)

    factor = best_factor(problem, problem.start(theta), is_harmless)
    if factor == 1:
        return solved
    result = solved.result._replace(theta=problem.start(factor * theta))
    return measured(problem, result, target)


def _deciding_equally(solved: PartialResult, sign: float, target: Target) -> PartialResult:
    """Return a linear model with the ranks of a solution that decides the same for all rows."""
    problem, model = solved.problem, solved.problem.model
    theta = problem.model_part(solved.result.theta)
    scores, (coef, intercept) = model.forward(theta)[0], model.raw(theta)
    unit = 2 * float(np.ptp(scores)) or 1.0
    middle = 0.5 * float(scores.min() + scores.max())
    theta = model.standardised(coef / unit, (intercept - middle) / unit + sign)
    theta = best_factor(problem, problem.start(theta)) * theta
    return measured(problem, solved.result._replace(theta=problem.start(theta)), target)


def best_factor(
    problem: PartialParityProblem,
    theta: FloatArray,
    is_harmless: Callable[[float], bool] = lambda _: True,
) -> float:
    """Return the factor on the parameters that makes the objective least, on a grid.

    Ranks and decisions at 0 stay what they are, and so do disparities; where they do not, as with a
    threshold or a model that is not linear, some factors do harm.
    """
    by_objective = sorted(FACTORS, key=lambda factor: problem.evaluate(factor * theta).objective)
    return next(filter(is_harmless, by_objective))
