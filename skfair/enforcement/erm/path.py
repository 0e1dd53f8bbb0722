"""The path of strict enforcement: rounds of smooth problems, with the loss and then with errors.

A :class:`Path` knows the true limits. It measures solutions, compares true with smooth values of
the constraints, and chooses among all that were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.erm.thresholds import best_threshold
from skfair.enforcement.rounds import DAMPING, SolveOptions, moved_bounds
from skfair.enforcement.strict_evaluation import StrictEvaluation, Threshold, Verdict, excesses
from skfair.problems.erm.problem import ConstrainedERM, Decisions
from skfair.solvers.base import Solver, SolverResult
from skfair.utils.rounding import ROUNDING

SLACK = 0.004  # training accuracy that errors have to gain, as they fit noise as well
USED = 0.85  # share of a limit from which on it counts as reached
FAR = 0.01  # smooth bounds that are missed by more were not nearly kept
# How far below and above a limit, as a share of the width of its bounds, a threshold mends what is
# missed: further rounds then gain nothing (500,000 rows, parity and odds, .0000 and -.0006).
MENDED = -0.25, 0.05
# Misses from which on bounds are aimed at from inside, where no threshold brings solutions there:
# differences that change less and less would never do so.
PLAIN_MISSES = 2
# How far inside where rates are limited, too, times the misses before: a share of what was missed,
# as their differences make up for the rest, and about a row at least. Without it 27 of 160 fits of
# rates and losses missed their limits, now one.
INSIDE, ABOUT_A_ROW = 0.5, 1e-3
LOOSE_TOL = 1e-4  # of solves whose result is only a step on the way
# The same, of solvers and scores (linear ones) for which precision is cheap: one more step is one
# more matrix of second derivatives. What is seen at one solution decides where the next one lies; a
# loose one depends on the solver and on the order of the rows, and then so does the model. Where
# columns are many a step is hundreds of products, and the precision that was asked for has to be
# enough: more takes up to twice the time, for the same accuracy.
PRECISE_TOL = 1e-9


@dataclass(frozen=True)
class StrictResult:
    """A solution of a smooth problem, and the verdict on it."""

    # The smooth problem that was solved, with its loss, bounds and temperature
    problem: ConstrainedERM
    result: SolverResult  # its solution
    verdict: Verdict  # its merit: accuracy, or minus the objective without constraints on rates
    shift: float = 0.0  # what is added to its scores
    scale: float = 1.0  # what its scores are then multiplied by
    is_constant: bool = False  # whether limits take the same prediction for everybody
    n_solves: int = 1  # number of smooth problems that were solved
    level: int = 0  # how far along the path, from smooth to steep

    @property
    def is_sound(self) -> bool:
        """Whether limits are satisfied without the same prediction for everybody."""
        return self.verdict.is_feasible and not self.is_constant

    @property
    def is_stopped(self) -> bool:
        """Whether a callback stopped the solver."""
        return self.result.status == "stopped"


class Path:
    """The problem, how it is solved and measured, and all that was found on the way."""

    def __init__(
        self,
        problem: ConstrainedERM,  # its bounds are those that the true values must keep
        solver: Solver,
        params: SolveOptions,
        # ``min_gap(theta) -> float``: differences of scores that rounding may cause
        min_gap: Callable[[FloatArray], float],
        *,
        is_classifier: bool,  # whether solutions are compared by accuracy (else by the objective)
        slack: float = SLACK,  # accuracy that a later level has to gain
        step_tol: float | None = None,  # of each solve; None for what suits the solver
    ) -> None:
        self.problem, self.solver, self.min_gap = problem, solver, min_gap
        self.free = problem.relaxed()
        is_rate = [bound.moment.is_rate for bound in problem.constraints]
        self.has_rates = any(is_rate)
        # Whether there is a best threshold: all constraints are on rates of decisions.
        self.has_threshold = is_classifier and all(is_rate)
        self.by_accuracy = is_classifier and self.has_rates
        self.slack = slack if self.by_accuracy else 0.0
        # Whether precise solutions are cheap.
        self.is_precise = solver.is_precise and "hessian" in problem.offers
        self.tol = params.get("tol", 1e-6)
        self.step_tol = self._tol_of_steps() if step_tol is None else step_tol
        self.params: SolveOptions = {**params, "tol": self.step_tol}
        is_exact = [np.full(r.upper.size, not r.moment.is_rate) for r in problem.constraints]
        wanted = 2 * self.step_tol * np.concatenate([np.empty(0), *is_exact])
        # Not past the middle: of a limit of 0 both bounds are 0, and no point would be inside.
        self.margin = np.minimum(wanted, 0.25 * (problem.upper - problem.lower))
        self.candidates: list[StrictResult] = []  # one for each solve
        self.level = 0  # 0 with the loss, then one more for each steepness of smooth errors
        self._last: tuple[FloatArray, Decisions] | None = None  # a point and its decisions

    @property
    def is_stopped(self) -> bool:
        """Whether a callback stopped the last solve."""
        return self.candidates[-1].is_stopped

    def _tol_of_steps(self) -> float:
        """Return the tolerance of each solve: what suits the solver."""
        tol = LOOSE_TOL if self.has_rates else self.tol
        if not self.is_precise:
            return tol
        has_matrix = "products" not in self.problem.offers
        return min(tol, PRECISE_TOL if has_matrix else self.tol)

    @cached_property
    def threshold(self) -> Callable[[FloatArray, float], Threshold]:
        """The search for the best threshold of scores."""
        problem, weights = self.problem, self.problem.everything.loss_weights
        strict = StrictEvaluation.of_scores(problem.constraints, problem.targets, weights)
        return partial(best_threshold, strict)

    def measured(self, problem: ConstrainedERM, result: SolverResult) -> StrictResult:
        """Measure a solution by its true disparities, at its best threshold."""
        scores = problem.scores(result.theta)
        if self.has_threshold:
            cut = self.threshold(scores, self.min_gap(result.theta))
        else:
            over = excesses(self.problem.constraints, problem.decide(scores).means)
            verdict = Verdict(self.quality(result.theta), float(over.max(initial=0.0)))
            cut = Threshold(0.0, verdict, is_constant=False)
        return StrictResult(
            problem, result, cut.verdict, cut.shift, is_constant=cut.is_constant, level=self.level
        )

    def keep(self, found: StrictResult) -> StrictResult:
        """Add a solution to those that the best one is chosen from."""
        self.candidates.append(found)
        return found

    def quality(self, theta: FloatArray) -> float:
        """Return the accuracy at the threshold 0, or minus the objective."""
        if self.by_accuracy:
            return self._decisions(theta).right
        return -self.free.evaluate(self.problem.model_part(theta)).objective

    def _decisions(self, theta: FloatArray) -> Decisions:
        """Return the decisions at the threshold 0; those of the last point are kept."""
        if self._last is None or not np.array_equal(self._last[0], theta):
            self._last = theta.copy(), self.problem.decide(self.problem.scores(theta))
        return self._last[1]

    def compare(self, problem: ConstrainedERM, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return true minus smooth values, and how far true ones are beyond the true bounds.

        Every centre is in the middle of its rates.
        """
        true = self.constraints(self._decisions(theta).means)
        beyond = np.maximum(self.problem.lower - true, true - self.problem.upper)
        return true - problem.evaluate(theta).constraints, beyond

    def _is_used(self, theta: FloatArray) -> bool:
        """Whether a true limit is nearly reached."""
        return any(
            bound.disparity_of_means(means) >= USED * bound.max_disparity
            for bound, means in zip(
                self.problem.constraints, self._decisions(theta).means, strict=True
            )
        )

    def constraints(self, means: Sequence[FloatArray]) -> FloatArray:
        """Return the constraints at true cell means, every centre in the middle of its rates."""
        values = [
            bound.row_values(of_cells)
            for bound, of_cells in zip(self.problem.constraints, means, strict=True)
        ]
        rows = self.problem.constraint_rows
        return rows.from_middles(rows.joined(values))

    def best(self) -> StrictResult:
        """Return the first step on the path whose best solution is about as good as any."""
        feasible = [c for c in self.candidates if c.verdict.is_feasible]
        feasible = [c for c in feasible if not c.is_constant] or feasible
        if not feasible:
            return min(self.candidates, key=lambda c: c.verdict.excess)
        best = max(c.verdict.merit for c in feasible)
        good = [c for c in feasible if c.verdict.merit >= best - self.slack - ROUNDING]
        lowest = min(c.level for c in good)
        coolest = [c for c in good if c.level == lowest]
        best = max(c.verdict.merit for c in coolest) - ROUNDING
        return next(c for c in coolest if c.verdict.merit >= best)

    def counted(self, result: StrictResult) -> StrictResult:
        """Return a result that says how many problems were solved."""
        return replace(result, n_solves=len(self.candidates))

    def rounds(
        self,
        problem: ConstrainedERM,  # a smooth problem, at its temperature
        start: SolverResult,
        n_rounds: int,
        offsets: FloatArray | None = None,
        *,
        until_sound: bool = False,
    ) -> SolverResult:
        """Solve, measure, shift the bounds by true minus smooth values, and solve again.

        ``offsets`` (n_constraints,) is the shift to begin with, by default that seen at the start.
        Returned is the last solution that another round may start from. ``until_sound`` ends at the
        first one that nearly reaches the limits, and that a threshold brings inside.
        """
        true, margin = self.problem, self.margin
        if offsets is None:
            offsets = self.compare(problem, start.theta)[0]
        before, n_worse, n_missed = np.inf, 0, 0
        width = float((true.upper - true.lower).max(initial=0.0)) or 1.0
        for _ in range(n_rounds):
            bounds = moved_bounds(true.lower, true.upper, offsets, margin)
            bounded = problem.bounded(*bounds)
            result = self.solver.solve(bounded, start.theta, start.multipliers, **self.params)
            is_sound = self.keep(self.measured(bounded, result)).is_sound
            if self.is_stopped or self._is_far(bounded, result):
                break
            start = result
            differences, beyond = self.compare(bounded, result.theta)
            violation = float(beyond.max(initial=-np.inf))
            if until_sound and is_sound and MENDED[0] <= violation / width <= MENDED[1]:
                break
            # Means of losses and scores are smooth themselves: only the tolerance is between.
            offsets = offsets + (DAMPING if self.has_rates else 1.0) * (differences - offsets)
            n_worse = n_worse + 1 if violation > 0.5 * before else 0
            before, n_missed = violation, n_missed + (violation > 0)
            is_free = not np.any(result.multipliers)
            if violation <= 0 and (is_free or self._is_used(result.theta)):
                break
            if n_worse == 2 and (violation <= 0 or self.has_threshold):
                break
            if n_missed >= PLAIN_MISSES and not self.has_threshold:
                # Further inside by what was missed, unless that closes the bounds.
                most = np.maximum(self.margin, 0.25 * (true.upper - true.lower))
                missed = np.maximum(beyond, 0.0)
                if self.has_rates:
                    some = np.maximum(INSIDE * missed, ABOUT_A_ROW)
                    missed = np.where(missed > 0, (n_missed - 1) * some, 0.0)
                margin = np.minimum(margin + missed, most)
        return start

    def _is_far(self, problem: ConstrainedERM, result: SolverResult) -> bool:
        """Whether the solver gave up far from bounds that it had no way to keep."""
        if result.status != "max_iter" or self.solver.is_stochastic:
            return False
        return problem.violation(problem.evaluate(result.theta)) > FAR
