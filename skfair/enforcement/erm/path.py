"""The rounds of strict enforcement, and the choice of the best of all solutions found.

:func:`skfair.enforcement.erm.strict.solve_strictly` makes a :class:`Path` and calls
:meth:`Path.rounds`, first for the problem with the loss. ``refine.py`` calls it again for problems
with smooth errors, each of which is one *level* higher. A round solves a smooth problem, compares
true with smooth values (``true_limits.py``), and moves the bounds of the next round by the
difference. All solutions are kept as candidates, and :meth:`Path.best` returns the best of them.
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

FAR = 0.01  # rounds end if a solver gives up with smooth bounds violated by more
# With ``until_sound``, rounds end if the violation is in this range, in units of the width of the
# bounds, and the best threshold satisfies the limits. Further rounds then gain nothing (with
# 500,000 rows 0.0000 for demographic parity and -0.0006 for equalized odds).
NEARLY_REACHED = -0.25, 0.05
# After this many rounds with a violation, bounds also move further inside. Moves by the difference
# of true and smooth values become ever smaller, and alone might never reach the limits.
PLAIN_MISSES = 2


@dataclass(eq=False)
class Path:
    """Rounds of solves under moved bounds, and all solutions that they found."""

    limits: TrueLimits
    solver: Solver
    options: SolveOptions  # options of the solver, as the user asked for them
    step_tol: float  # tolerance of each solve
    slack: float  # a later level is only preferred if it gains more merit than this
    candidates: list[StrictResult] = field(default_factory=list)  # one for each solve
    level: int = 0  # 0 with the loss, then one more for each steepness of smooth errors

    @property
    def is_stopped(self) -> bool:
        """Whether a callback stopped the last solve."""
        return self.candidates[-1].is_stopped

    def keep(self, found: StrictResult) -> StrictResult:
        """Add a solution to the candidates; return it with the present level."""
        kept = replace(found, level=self.level)
        self.candidates.append(kept)
        return kept

    def best(self) -> StrictResult:
        """Return the best candidate, of the lowest level that is good enough.

        Candidates that satisfy the limits come first, and among these the ones that do not give all
        rows the same decision. If none satisfies them, the smallest excess is best. A level is good
        enough if its best merit is at most ``slack`` below the best of all levels.
        """
        feasible = [c for c in self.candidates if c.verdict.is_feasible]
        feasible = [c for c in feasible if not c.is_constant] or feasible
        if not feasible:
            return min(self.candidates, key=lambda c: c.verdict.excess)
        best = max(c.verdict.merit for c in feasible)
        good = [c for c in feasible if c.verdict.merit >= best - self.slack - ROUNDING]
        lowest = min(c.level for c in good)
        of_level = [c for c in good if c.level == lowest]
        best = max(c.verdict.merit for c in of_level) - ROUNDING
        return next(c for c in of_level if c.verdict.merit >= best)

    def counted(self, result: StrictResult, free: FloatArray) -> StrictResult:
        """Return a result with the number of solves and the parameters without constraints."""
        return replace(result, n_solves=len(self.candidates), free=free)

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

        ``offsets`` (n_constraints,) is the first shift; if None, it is measured at the start. With
        ``until_sound`` the rounds end at the first solution that nearly reaches the limits and that
        the best threshold brings inside. Returns the last solution that another round may start
        from, while all solutions are kept as candidates.
        """
        limits, true = self.limits, self.limits.problem
        options: SolveOptions = {**self.options, "tol": self.step_tol}
        margin = limits.margin(self.step_tol)
        # Bounds move inside by at most a quarter of their width, so that they do not meet, or by
        # the initial margin, if that is larger.
        most = np.maximum(margin, 0.25 * (true.upper - true.lower))
        width = float((true.upper - true.lower).max(initial=0.0)) or 1.0
        if offsets is None:
            offsets = limits.compare(problem, start.theta)[0]
        # n_slow counts the rounds in a row that did not halve the violation, n_missed all rounds
        # that violated a limit.
        before, n_slow, n_missed = np.inf, 0, 0
        for _ in range(n_rounds):
            bounded = problem.bounded(*moved_bounds(true.lower, true.upper, offsets, margin))
            result = self.solver.solve(bounded, start.theta, start.multipliers, **options)
            found = self.keep(limits.measured(bounded, result))
            if found.is_stopped or self._is_far(bounded, result):
                break
            start = result
            differences, beyond = limits.compare(bounded, result.theta)
            violation = float(beyond.max(initial=-np.inf))
            is_near = NEARLY_REACHED[0] <= violation / width <= NEARLY_REACHED[1]
            if until_sound and found.is_sound and is_near:
                break
            offsets = offsets + limits.damping * (differences - offsets)
            n_slow = n_slow + 1 if violation > 0.5 * before else 0
            before, n_missed = violation, n_missed + (violation > 0)
            is_free = not np.any(result.multipliers)
            if violation <= 0 and (is_free or limits.is_used(result.theta)):
                break
            if n_slow == 2 and (violation <= 0 or limits.has_threshold):
                break
            if n_missed >= PLAIN_MISSES:
                inside = limits.further_inside(np.maximum(beyond, 0.0), n_missed)
                margin = np.minimum(margin + inside, most)
        return start

    def _is_far(self, problem: ConstrainedERM, result: SolverResult) -> bool:
        """Whether the solver gave up far beyond the smooth bounds, which it cannot satisfy."""
        if result.status != "max_iter" or self.solver.is_stochastic:
            return False
        return problem.violation(problem.evaluate(result.theta)) > FAR
