"""The path of strict enforcement: rounds of smooth problems, and all solutions that they found.

A round solves a smooth problem, compares true with smooth values, and moves the bounds of the next
one by the difference. :mod:`skfair.enforcement.erm.true_limits` measures the true values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.erm.true_limits import StrictResult, TrueLimits
from skfair.enforcement.rounds import SolveOptions, moved_bounds
from skfair.problems.erm.problem import ConstrainedERM
from skfair.solvers.base import Solver, SolverResult
from skfair.utils.rounding import ROUNDING

FAR = 0.01  # smooth bounds that are missed by more were not nearly kept
# How far below and above a limit, as a share of the width of its bounds, a threshold mends what is
# missed: further rounds then gain nothing (500,000 rows, parity and odds, .0000 and -.0006).
MENDED = -0.25, 0.05
# Misses from which on bounds are aimed at from inside, where no threshold brings solutions there:
# differences that change less and less would never do so.
PLAIN_MISSES = 2


@dataclass(eq=False)
class Path:
    """Rounds of solves under moved bounds, and all solutions that they found."""

    limits: TrueLimits
    solver: Solver
    options: SolveOptions  # of the solver, as the user asked for them
    step_tol: float  # tolerance of each solve
    slack: float  # merit that a later level has to gain
    candidates: list[StrictResult] = field(default_factory=list)  # one for each solve
    level: int = 0  # 0 with the loss, then one more for each steepness of smooth errors

    @property
    def is_stopped(self) -> bool:
        """Whether a callback stopped the last solve."""
        return self.candidates[-1].is_stopped

    def keep(self, found: StrictResult) -> StrictResult:
        """Add a solution to those that the best one is chosen from."""
        kept = replace(found, level=self.level)
        self.candidates.append(kept)
        return kept

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
        limits, true = self.limits, self.limits.problem
        options: SolveOptions = {**self.options, "tol": self.step_tol}
        margin = limits.margin(self.step_tol)
        most = np.maximum(margin, 0.25 * (true.upper - true.lower))  # else the bounds would close
        width = float((true.upper - true.lower).max(initial=0.0)) or 1.0
        if offsets is None:
            offsets = limits.compare(problem, start.theta)[0]
        before, n_worse, n_missed = np.inf, 0, 0
        for _ in range(n_rounds):
            bounded = problem.bounded(*moved_bounds(true.lower, true.upper, offsets, margin))
            result = self.solver.solve(bounded, start.theta, start.multipliers, **options)
            found = self.keep(limits.measured(bounded, result))
            if found.is_stopped or self._is_far(bounded, result):
                break
            start = result
            differences, beyond = limits.compare(bounded, result.theta)
            violation = float(beyond.max(initial=-np.inf))
            if until_sound and found.is_sound and MENDED[0] <= violation / width <= MENDED[1]:
                break
            offsets = offsets + limits.damping * (differences - offsets)
            n_worse = n_worse + 1 if violation > 0.5 * before else 0
            before, n_missed = violation, n_missed + (violation > 0)
            is_free = not np.any(result.multipliers)
            if violation <= 0 and (is_free or limits.is_used(result.theta)):
                break
            if n_worse == 2 and (violation <= 0 or limits.has_threshold):
                break
            if n_missed >= PLAIN_MISSES:
                inside = limits.further_inside(np.maximum(beyond, 0.0), n_missed)
                margin = np.minimum(margin + inside, most)
        return start

    def _is_far(self, problem: ConstrainedERM, result: SolverResult) -> bool:
        """Whether the solver gave up far from bounds that it had no way to keep."""
        if result.status != "max_iter" or self.solver.is_stochastic:
            return False
        return problem.violation(problem.evaluate(result.theta)) > FAR
