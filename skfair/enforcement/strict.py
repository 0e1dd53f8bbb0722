r"""Bounds on what is reported, not on its smooth stand-in: the outer loop of ``enforce="strict"``.

A smooth rate can be far from the true one (on COMPAS a smooth gap of 0.05 is a true gap of 0.18),
so a solver that keeps the smooth bounds promises nothing. Here the smooth problem is solved again
and again, each time from the last solution:

- the *temperature* of the smooth rates rises, 1, 2, 4, ...;
- at each temperature the smooth bounds are shifted by the difference of true and smooth values that
  was seen, until the true values meet the true bounds;
- every solution's threshold is scanned (:mod:`skfair.enforcement.thresholds`).

Where the rules cost much accuracy the loss is a poor guide: few decisions can be right, and it is
dominated by those that are wrong. There the path does not go on to the steepest rates but to
*smooth errors* in place of the loss, in two steps: the first is smooth enough to have few local
optima, and only has to lead near one that is good. The scores are scaled afterwards so that the
loss is least, which changes no decision.

Among the solutions that keep the true bounds the one of the lowest temperature is taken whose
training accuracy is within ``SLACK`` of the best: high temperatures fit the sample more closely,
and with small cells they fit its noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from skfair._typing import FloatArray
from skfair.enforcement.threshold_search import make_scan
from skfair.losses import Loss, SmoothErrors
from skfair.problems.erm.problem import RuledProblem
from skfair.solvers.base import SolverResult

DAMPING = 0.7  # share of a newly seen difference of true and smooth values that is believed
MAX_ROUNDS = 6  # solves per temperature
SLACK = 0.004  # accuracy that a lower temperature may cost
USED = 0.85  # share of a bound from which on it counts as reached
STEEP = 4.0  # from this temperature on, smooth rates are close to true ones
CHEAP = 0.02  # loss of accuracy that leaves little to gain from steeper rates, or from errors
FAR = 0.01  # smooth bounds that are missed by more were not nearly kept
ROUNDING = 1e-12  # accuracies that differ by less are the same
STEEPNESSES = (3.0, 10.0)  # of smooth errors and rates, for scores of size 1
SIZES = (1e-3, 1e3)  # of scores, within which they may be scaled afterwards
LOOSE_TOL = 1e-4  # of solves whose result is only a step on the way
# The same, of solvers and scores (linear ones) for which precision is cheap. What is seen at one
# solution decides where the next one lies; a loose one depends on the solver and on the order of
# the rows, and then so does the model.
PRECISE_TOL = 1e-9


class StrictResult(NamedTuple):
    """The solution that is kept.

    Attributes
    ----------
    result : SolverResult
        The smooth solution it is made of.
    shift : float
        What is added to its scores.
    scale : float
        What its scores are then multiplied by.
    loss : Loss
        Loss of the smooth problem.
    temperature : float
        Temperature of the smooth problem.
    is_feasible : bool
        Whether the true bounds are kept.
    is_constant : bool
        Whether that takes the same prediction for everybody.
    lower, upper : ndarray of shape (n_constraints,)
        Bounds of the smooth problem.
    n_solves : int
        Number of smooth problems that were solved.
    """

    result: SolverResult
    shift: float
    scale: float
    loss: Loss
    temperature: float
    is_feasible: bool
    is_constant: bool
    lower: FloatArray
    upper: FloatArray
    n_solves: int


class _Candidate(NamedTuple):
    quality: float  # accuracy, or minus the objective where no rule is on rates
    excess: float
    level: int  # how far along the path, from smooth to steep
    kept: StrictResult


def solve_strictly(
    problem: RuledProblem,
    solver: Any,
    theta0: FloatArray,
    *,
    temperatures: Sequence[float],
    min_gap: Any,
    is_classifier: bool,
    refine: bool = False,
    **solve_params: Any,
) -> StrictResult:
    """Find the best solution whose true disparities are within their bounds.

    Parameters
    ----------
    problem : RuledProblem
        The problem; its bounds are those that the true values must keep. Left as it was.
    solver : object
        A solver of the registry.
    theta0 : ndarray of shape (n_parameters,)
        Where to start.
    temperatures : sequence of float
        Rising; only the first is used if no rule is on rates.
    min_gap : callable
        ``min_gap(theta) -> float``: differences of scores that rounding may cause.
    is_classifier : bool
        Whether solutions are compared by accuracy (else by the objective).
    refine : bool, default=False
        Whether precise solvers of linear scores with an intercept go on from the loss to errors
        where the rules cost much accuracy.
    **solve_params
        Passed to the solver.

    Returns
    -------
    found : StrictResult
        The solution.
    """
    path = _StrictPath(problem, solver, min_gap, is_classifier, refine, solve_params)
    bounds = problem.lower, problem.upper, problem.temperature
    try:
        return path.run(theta0, temperatures)
    finally:
        problem.lower, problem.upper, problem.temperature = bounds


class _Seen(NamedTuple):
    differences: FloatArray  # true minus smooth values of the constraints
    violation: float  # of the true bounds
    is_used: bool  # whether the true bounds are nearly reached, or do not bind


class _Place(NamedTuple):
    theta: FloatArray
    multipliers: FloatArray
    offsets: FloatArray  # of the smooth bounds


class _StrictPath:
    def __init__(
        self,
        problem: RuledProblem,
        solver: Any,
        min_gap: Any,
        is_classifier: bool,
        refine: bool,
        solve_params: dict[str, Any],
    ) -> None:
        self.problem = problem
        self.solver = solver
        self.min_gap = min_gap
        self.is_classifier = is_classifier
        self.params = solve_params
        self.tol = solve_params.pop("tol", 1e-6)
        self.lower, self.upper = problem.lower, problem.upper
        self.has_rates = any(rule.moment.is_rate for rule in problem.rules)
        # Means of losses and scores are smooth themselves: only the solver's tolerance is between.
        self.damping = DAMPING if self.has_rates else 1.0
        self.step_tol = LOOSE_TOL if self.has_rates else self.tol
        is_precise = getattr(solver, "is_precise", False) and "hessian" in problem.offers
        if is_precise:
            self.step_tol = min(self.step_tol, PRECISE_TOL)
        is_exact = [np.full(r.upper.size, not r.moment.is_rate) for r in problem.rules]
        self.margin = 2 * self.step_tol * np.concatenate([np.empty(0), *is_exact])
        self.n_solves = 0
        self.free = problem.relaxed()
        # A run of a stochastic solver is long, and its noise hides small corrections.
        self.max_rounds = 2 if getattr(solver, "is_stochastic", False) else MAX_ROUNDS
        self.scan = None
        if is_classifier and all(rule.moment.is_rate for rule in problem.rules):
            self.scan = make_scan(problem)
        self.refines = refine and self.scan is not None and is_precise
        self.candidates: list[_Candidate] = []
        self.level = 0
        self.is_stopped = False

    def run(self, theta0: FloatArray, temperatures: Sequence[float]) -> StrictResult:
        problem = self.problem
        tol = min(self.tol, self.step_tol)  # this is the result if the rules do not bind
        free_result = self._solve(self.free, problem.model_part(theta0), None, tol)
        theta = problem.centered(free_result.theta)
        lam = np.zeros(problem.n_constraints)
        problem.temperature = temperatures[0]
        result = free_result._replace(theta=theta, multipliers=lam)
        first = self._judge(problem, result)
        self.candidates.append(first)
        if result.status == "stopped":
            return self._choose().kept
        if self._compare(problem, theta, lam).violation <= 0:  # the rules do not bind
            return first.kept._replace(shift=0.0, is_feasible=True, is_constant=False)
        free_quality = self._quality(result)
        here = _Place(theta, lam, np.zeros(problem.n_constraints))
        best = first.quality if first.kept.is_feasible else -np.inf
        steps = temperatures if self.has_rates else temperatures[:1]
        for self.level, temperature in enumerate(steps):
            problem.temperature = temperature
            here, is_settled, reached = self._follow(problem, here, self.max_rounds)
            if self.is_stopped:
                return self._choose().kept
            if np.isfinite(reached) and self.max_rounds < MAX_ROUNDS:
                break
            is_cheap = temperature >= STEEP or reached > free_quality - CHEAP
            if is_settled and is_cheap and reached < best + 0.5 * SLACK:
                break  # higher temperatures would only fit the sample more closely
            best = max(best, reached)
            if self.refines and temperature >= STEEP and -np.inf < best < free_quality - CHEAP:
                break  # errors say more than steeper rates
        found = self._choose()
        if self.refines and found.kept.is_feasible and found.quality < free_quality - CHEAP:
            return self._refined(found.kept)
        return found.kept

    def _refined(self, found: StrictResult) -> StrictResult:
        """Go on from a solution with smooth errors in place of the loss."""
        problem, theta = self.problem, self._shifted(found)
        lam = found.result.multipliers
        for steepness in STEEPNESSES:
            unit = _spread(problem.model_part(theta))
            if self.is_stopped or not unit > 0:
                break
            aimed = problem.with_loss(SmoothErrors(steepness, unit))
            aimed.temperature = steepness / unit
            self.level += 1
            theta = aimed.centered(theta)
            offsets = self._compare(aimed, theta, lam).differences
            n_rounds = MAX_ROUNDS if steepness == STEEPNESSES[-1] else 1
            (theta, lam, _), _, _ = self._follow(aimed, _Place(theta, lam, offsets), n_rounds)
        best = self._choose().kept
        return best if best.loss is problem.loss else best._replace(scale=self._scale(best))

    def _scale(self, found: StrictResult) -> float:
        """Return the multiple of the scores that has the least loss."""
        theta = self._shifted(found)
        low, high = np.array(SIZES) / _spread(theta)

        def slope(scale: float) -> float:  # rises: the loss is convex
            at = self.free.evaluate(scale * theta)
            return float(theta @ at.gradient())

        if slope(low) >= 0 or slope(high) <= 0:
            return float(low if slope(low) >= 0 else high)
        return float(brentq(slope, low, high, xtol=1e-12 * low, rtol=1e-13))

    def _shifted(self, found: StrictResult) -> FloatArray:
        """Return the parameters of linear scores with the chosen threshold in the intercept."""
        theta = self.problem.model_part(found.result.theta).copy()
        theta[-1] += found.shift
        return theta

    def _follow(
        self, problem: RuledProblem, here: _Place, max_rounds: int
    ) -> tuple[_Place, bool, float]:
        """Shift the smooth bounds until the true ones are met, at one temperature.

        Returns where that ended, whether the true bounds are kept and used, and the quality of the
        best solution that keeps them.
        """
        theta, lam, offsets = problem.centered(here.theta), here.multipliers, here.offsets
        before, n_worse, is_settled, reached = np.inf, 0, False, -np.inf
        for _ in range(max_rounds):
            problem.lower = self.lower - offsets + self.margin
            problem.upper = self.upper - offsets - self.margin
            result = self._solve(problem, theta, lam, self.step_tol)
            candidate = self._judge(problem, result)
            self.candidates.append(candidate)
            if candidate.kept.is_feasible:
                reached = max(reached, candidate.quality)
            self.is_stopped = result.status == "stopped"
            if self.is_stopped or self._has_diverged(problem, result):
                break  # the next temperature starts from the last sound parameters
            theta, lam = result.theta, result.multipliers
            seen = self._compare(problem, theta, lam)
            offsets = offsets + self.damping * (seen.differences - offsets)
            is_settled = seen.violation <= 0 and seen.is_used
            n_worse = n_worse + 1 if seen.violation > 0.5 * before else 0
            before = seen.violation
            if is_settled or n_worse == 2:
                break
        return _Place(theta, lam, offsets), is_settled, reached

    def _solve(
        self, problem: RuledProblem, theta: FloatArray, lam: FloatArray | None, tol: float
    ) -> SolverResult:
        self.n_solves += 1
        found: SolverResult = self.solver.solve(problem, theta, lam, tol=tol, **self.params)
        return found

    def _has_diverged(self, problem: RuledProblem, result: SolverResult) -> bool:
        """Whether a solver gave up far from the bounds, which it had no way to keep."""
        if result.status != "max_iter" or getattr(self.solver, "is_stochastic", False):
            return False
        return problem.violation(problem.evaluate(result.theta)) > FAR

    def _true_constraints(self, theta: FloatArray) -> FloatArray:
        """Return the constraint rows for true moments, every centre in the middle of its rates."""
        means = self.problem.decide(self.problem.scores(theta)).means
        values = [rule.matrix @ one for rule, one in zip(self.problem.rules, means, strict=True)]
        return self.problem.from_centers(np.concatenate([np.empty(0), *values]))

    def _compare(self, problem: RuledProblem, theta: FloatArray, lam: FloatArray) -> _Seen:
        """Compare true with smooth values of the constraints."""
        at = problem.evaluate(theta)
        true = self._true_constraints(theta)
        beyond = np.maximum(self.lower - true, true - self.upper)
        size = np.where(np.isfinite(self.lower), np.abs(true), true)
        return _Seen(
            true - at.constraints,
            float(beyond.max(initial=-np.inf)),
            bool(not lam.any() or np.any(size >= USED * self.upper)),
        )

    def _judge(self, problem: RuledProblem, result: SolverResult) -> _Candidate:
        """Measure a solution by its true disparities, at its best threshold."""
        scores = problem.scores(result.theta)
        if self.scan is not None:
            found = self.scan(scores, self.min_gap(result.theta))
            quality, excess, shift = found.accuracy, found.excess, found.shift
            is_feasible, is_constant = found.is_feasible, found.is_constant
        else:
            means = problem.decide(scores).means
            excess = max(
                (
                    rule.disparity_of_means(one) - rule.max_disparity
                    for rule, one in zip(problem.rules, means, strict=True)
                ),
                default=0.0,
            )
            quality = self._quality(result)
            is_feasible, is_constant, shift = excess <= 0, False, 0.0
        kept = StrictResult(
            result=result,
            shift=shift,
            scale=1.0,
            loss=problem.loss,
            temperature=problem.temperature,
            is_feasible=is_feasible,
            is_constant=is_constant,
            lower=problem.lower,
            upper=problem.upper,
            n_solves=self.n_solves,
        )
        return _Candidate(quality, excess, self.level, kept)

    def _quality(self, result: SolverResult) -> float:
        if self.is_classifier and self.has_rates:
            return self.problem.decide(self.problem.scores(result.theta)).right
        return -self.free.evaluate(self.problem.model_part(result.theta)).objective

    def _choose(self) -> _Candidate:
        """Return the first step on the path whose best solution is about as good as any."""
        feasible = [c for c in self.candidates if c.kept.is_feasible and not c.kept.is_constant]
        feasible = feasible or [c for c in self.candidates if c.kept.is_feasible]
        if not feasible:
            return min(self.candidates, key=lambda c: c.excess)
        best = max(c.quality for c in feasible)
        slack = SLACK if self.has_rates and self.is_classifier else 0.0
        good = [c for c in feasible if c.quality >= best - slack - ROUNDING]
        lowest = min(c.level for c in good)
        coolest = [c for c in good if c.level == lowest]
        best = max(c.quality for c in coolest) - ROUNDING
        chosen = next(c for c in coolest if c.quality >= best)
        return chosen._replace(kept=chosen.kept._replace(n_solves=self.n_solves))


def _spread(theta: FloatArray) -> float:
    """Return about how far linear scores spread: their columns are standardised."""
    return float(np.linalg.norm(theta[:-1]))
