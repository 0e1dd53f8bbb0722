r"""Strict limits within an interval: rounds of smooth problems whose tolerance is scaled.

:mod:`skfair.partial_parity.fitting` states the problem in all forms of its constraint
(:func:`stated`) and calls :func:`solve_partially`. Solvers that state their own problem, as
algorithms of papers do, derive from :class:`IntervalSolver` instead.

*Rounds.* The smooth constraints of :class:`PartialParityProblem` hold at some percentiles only, and
for smooth steps, so the true disparity can be larger. Each round solves the problem from the last
solution and measures the disparity. Then the tolerance of the smooth constraints is multiplied by
limit / disparity, and the steps become narrower. Two or three rounds are mostly enough. The width
of the steps is kept in proportion to the spread of the scores. Otherwise scores could shrink until
they all lie on one wide step, which satisfies any smooth constraint and no true one.

*Forms.* A constraint may have several forms, each sufficient. Each is solved in rounds, and the
best result is kept.

*Random moves.* If all results violate the limit, the violation is mostly small. Random moves from
the best results search for parameters that satisfy it.

*Other candidates.* Some solutions satisfy a limit but are useless. A solution that ranks rows worse
than chance therefore counts as infinitely far beyond the limit, and the model without the limit is
always a candidate. So is a model with the ranks of a solution whose decisions are the same for all
rows, because it satisfies every limit on decisions.
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

# Factor on the width of the steps in each round, and the smallest width as a part of the first.
NARROWING, NARROWEST = 0.6, 0.2
# Smallest and largest factor on the tolerance in a round. The wide steps of the first round leave a
# far larger disparity than narrow ones will. So 0.3 lowered the tolerance too much, which took a
# round to correct. 0.7 takes a fifth more evaluations on 400 rows.
CHANGE = 0.5, 1.5
# The new tolerance aims at this part of the limit.
AIM = 0.96
# Rounds continue if the disparity is below this part of the limit, because the accuracy may still
# rise. With 0.85, as elsewhere in skfair, the accuracy on COMPAS was lower by 0.0026.
USED = 0.75
# Smaller violations of smooth constraints do not count.
SLACK = 1e-3
# Random moves start from at most MOVED solutions, the best one first. They are twice as long from
# each further solution. The moves from one solution read MOST_ROWS rows in total.
MOVED, MOST_ROWS = 5, 50_000_000
# An AUC below this is worse than chance.
CHANCE = 0.5 - ROUNDING
# Factors on scores that best_factor() tries. 1 comes first, so that it is chosen in a tie.
FACTORS = (1.0, *(2.0**power for power in range(-10, 11) if power))


@dataclass(frozen=True)
class PartialResult:
    """A solution of a smooth problem, and the verdict on its true disparity and quality."""

    problem: PartialParityProblem  # the smooth problem, with its tolerance and steps
    result: SolverResult  # the solution
    verdict: Verdict  # quality of the scores, and excess of the measured disparity over the limit
    disparity: float = 0.0  # the measured disparity
    n_solves: int = 1  # number of problems that were solved
    is_precise: bool = True  # whether the solver runs until it has converged
    spread: float = 0.0  # standard deviation of the scores

    @property
    def smooth_verdict(self) -> Verdict:
        """The verdict by the smooth problem: minus the objective, and the violation of bounds."""
        at = self.problem.evaluate(self.result.theta)
        return Verdict(-at.objective, self.problem.violation(at) - SLACK)


@dataclass(frozen=True)
class Target:
    """The limit on scores, and the numbers by which scores are compared."""

    measure: Callable[[FloatArray], float]  # disparity of scores
    quality: Callable[[FloatArray], float]  # accuracy of scores, or AUC if the loss is one of pairs
    decides: bool  # whether quality depends on decisions, not on ranks alone
    auc: Callable[[FloatArray], float]  # AUC of scores; always 1 if there is one class only
    max_disparity: float  # the limit
    weights: FloatArray | None = None  # weights of the rows

    def excess(self, scores: FloatArray, disparity: float) -> float:
        """Return by how much the limit is exceeded; infinity if scores rank worse than chance."""
        return disparity - self.max_disparity if self.auc(scores) >= CHANCE else np.inf

    def spread(self, scores: FloatArray) -> float:
        """Return the standard deviation of scores, where a row of weight 2 counts as two rows."""
        if self.weights is None or not np.ptp(self.weights):  # scores.std() takes 3 times as long
            centred = scores - np.add.reduce(scores) / scores.size
            return float(np.sqrt(np.add.reduce(centred * centred) / scores.size))
        middle = np.average(scores, weights=self.weights)
        return float(np.sqrt(np.average((scores - middle) ** 2, weights=self.weights)))


class IntervalSolver(Solver):
    """A solver that states its own problem within the interval, and solves it once, not in rounds.

    Such solvers are registered in ``INTERVAL_SOLVERS``, also those of :mod:`skfair.papers`.
    """

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


# The solvers by the names that users pass. All other names are in skfair.solvers.base.SOLVERS.
INTERVAL_SOLVERS: Registry[type[IntervalSolver]] = Registry("solver", PAPERS)


def stated(
    promise: Promise, free: PartialParityProblem, surrogate: Surrogate, *, printed: bool, last: bool
) -> list[PartialParityProblem]:
    """Return the problem ``free`` with the limit of a promise, once for each form of constraint.

    With ``printed`` the constraint has the form that the paper prints. With ``last`` only the last
    form is returned. If several attributes are limited, a problem has a moment for each attribute,
    all in the same form.
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
    problems: Sequence[PartialParityProblem],  # the problem in each form; all are solved in turn
    solver: Solver,
    theta_model: FloatArray,  # parameters of the model to start from
    # The steps of the first round, for scores with the spread of the scores of ``theta_model``
    surrogate: Surrogate,
    target: Target,
    *,
    # Largest number of rounds per form. With 1 the smooth problem is solved once, and forms are
    # compared by their smooth problems, not by the measured disparity
    n_rounds: int = MAX_ROUNDS,
    # The model without the limit. If it is given, random moves and the other candidates (see the
    # module) follow the rounds
    unlimited: SolverResult | None = None,
    **params: Unpack[SolveOptions],
) -> PartialResult:
    """Return the best solution whose measured disparity is within the limit.

    If there is none, the solution of smallest disparity is returned. A callback may stop the solver
    (status "stopped"). Then the best solution so far is returned.
    """
    # 1. Rounds for each form.
    solved: list[PartialResult] = []
    starts: list[FloatArray] = []
    for form in problems:
        if solved and solved[-1].result.status == "stopped":
            break
        starts.append(form.start(theta_model))
        solved += _rounds(form, solver, starts[-1], surrogate, target, n_rounds, params)
    n_solves, is_stopped = len(solved), solved[-1].result.status == "stopped"
    model = problems[0].model
    # 2. The model without the limit, and random moves if no candidate satisfies the limit.
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
    # 3. The best candidate, compared with decisions that are the same for all rows.
    by_smooth = n_rounds == 1
    best = min(solved, key=lambda r: (r.smooth_verdict if by_smooth else r.verdict).rank)
    if unlimited is not None and isinstance(best.problem.model, LinearScore):
        worth, sign = max((target.quality(np.full(model.n_samples, s)), s) for s in (1.0, -1.0))
        # ``worth`` is the quality if all rows have the score ``sign``, so the same decision. If the
        # quality is an AUC (``decides`` is False), it does not depend on decisions, so equal
        # decisions are only tried if no candidate is feasible.
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
    theta: FloatArray,  # start of the first round
    surrogate: Surrogate,
    target: Target,
    n_rounds: int,
    params: SolveOptions,
) -> list[PartialResult]:
    """Return the solutions of all rounds for one form.

    A round solves the problem, measures the disparity, and multiplies the tolerance by limit /
    disparity.
    """
    theta_model = form.model_part(theta)
    spread, limit = target.spread(form.model.forward(theta_model)[0]), target.max_disparity
    tolerance, width, solved = form.tolerance, 1.0, list[PartialResult]()
    problem = form.limited(tolerance, surrogate)
    n, multipliers = form.model.n_samples, None
    if n_rounds > 1 and n // 10 >= SAMPLE_ROWS and "on_rows" in form.offers:
        # A tenth of the rows is enough to come near the solution.
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
        # If the limit is violated, two rounds without progress end the loop, because random moves
        # are then more promising. If it is satisfied, rounds continue only to use up the limit.
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
    """Return a solution with its measured disparity and quality."""
    scores = problem.evaluate(result.theta).scores
    disparity = target.measure(scores)
    verdict = Verdict(target.quality(scores), target.excess(scores, disparity))
    return PartialResult(problem, result, verdict, disparity, spread=target.spread(scores))


def _random_moves(
    solved: PartialResult, target: Target, longest: float, rng: np.random.RandomState
) -> PartialResult:
    """Move from a solution by random steps until the limit is satisfied, or the moves are used up.

    ``longest`` is the length of the first moves, in spreads of the scores.
    """
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
    # Moves may have made the scores far too large, so the spread of the solution is restored.
    theta = solved.spread / (target.spread(scores) or 1.0) * theta
    return measured(problem, solved.result._replace(theta=problem.start(theta)), target)


def _of_best_size(solved: PartialResult, target: Target) -> PartialResult:
    """Return the solution with its scores multiplied by the factor of lowest objective.

    Random moves, and rounds that end early, may leave scores that are far too large. Factors that
    lower the quality or raise the violation of the limit are not used.
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
    """Return a linear model with the ranks of a solution, and the same decision for all rows.

    ``sign`` is 1 if all decisions are positive, and -1 if all are negative.
    """
    problem, model = solved.problem, solved.problem.model
    theta = problem.model_part(solved.result.theta)
    scores, (coef, intercept) = model.forward(theta)[0], model.raw(theta)
    unit = 2 * float(np.ptp(scores)) or 1.0  # new scores are within 1/4 of ``sign``
    middle = 0.5 * float(scores.min() + scores.max())
    theta = model.standardised(coef / unit, (intercept - middle) / unit + sign)
    theta = best_factor(problem, problem.start(theta)) * theta
    return measured(problem, solved.result._replace(theta=problem.start(theta)), target)


def best_factor(
    problem: PartialParityProblem,
    theta: FloatArray,
    is_harmless: Callable[[float], bool] = lambda _: True,
) -> float:
    """Return the factor in ``FACTORS`` on the parameters with the lowest objective.

    A factor on linear scores changes neither ranks nor decisions at 0, and thus no disparity. For
    other models callers pass ``is_harmless(factor)``, which the result satisfies. It must be True
    for 1.
    """
    by_objective = sorted(FACTORS, key=lambda factor: problem.evaluate(factor * theta).objective)
    return next(filter(is_harmless, by_objective))
