"""The path of strict enforcement: rounds of smooth problems, with the loss and then with errors."""

from __future__ import annotations

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.erm.judge import Judge, StrictResult
from skfair.enforcement.rounds import DAMPING, MAX_ROUNDS, SolveOptions, moved_bounds
from skfair.problems.erm.problem import RuledProblem
from skfair.solvers.base import Solver, SolverResult

FAR = 0.01  # smooth bounds that are missed by more were not nearly kept
PLAIN_MISSES = 2  # of losses; differences that change less and less would never bring them inside
LOOSE_TOL = 1e-4  # of solves whose result is only a step on the way
# The same, of solvers and scores (linear ones) for which precision is cheap: one more step is one
# more matrix of second derivatives. What is seen at one solution decides where the next one lies; a
# loose one depends on the solver and on the order of the rows, and then so does the model. Where
# columns are many a step is hundreds of products, and the precision that was asked for has to be
# enough: more takes up to twice the time, for the same accuracy.
PRECISE_TOL = 1e-9


class Path:
    """The solver, how closely it solves, and all that was found on the way."""

    def __init__(
        self,
        judge: Judge,
        solver: Solver,
        params: SolveOptions,
        step_tol: float | None = None,  # of each solve; None for what suits the solver
    ) -> None:
        problem = judge.problem
        self.judge, self.solver = judge, solver
        # Whether precise solutions are cheap.
        self.is_precise = solver.is_precise and "hessian" in problem.offers
        # Most solves with one loss and steepness. A run of a stochastic solver is long, and its
        # noise hides small corrections.
        self.max_rounds = 2 if solver.is_stochastic else MAX_ROUNDS
        self.tol = params.get("tol", 1e-6)
        self.step_tol = self._tol_of_steps() if step_tol is None else step_tol
        self.params: SolveOptions = {**params, "tol": self.step_tol}
        is_exact = [np.full(r.upper.size, not r.moment.is_rate) for r in problem.rules]
        wanted = 2 * self.step_tol * np.concatenate([np.empty(0), *is_exact])
        # Not past the middle: of a limit of 0 both bounds are 0, and no point would be inside.
        self.margin = np.minimum(wanted, 0.25 * (problem.upper - problem.lower))
        self.candidates: list[StrictResult] = []  # one for each solve
        self.level = 0  # 0 with the loss, then one more for each steepness of smooth errors

    @property
    def is_stopped(self) -> bool:
        """Whether a callback stopped the last solve."""
        return self.candidates[-1].result.status == "stopped"

    def _tol_of_steps(self) -> float:
        """Return the tolerance of each solve: what suits the solver."""
        tol = LOOSE_TOL if self.judge.has_rates else self.tol
        if not self.is_precise:
            return tol
        has_matrix = "products" not in self.judge.problem.offers
        return min(tol, PRECISE_TOL if has_matrix else self.tol)

    def keep(self, problem: RuledProblem, result: SolverResult) -> StrictResult:
        """Measure a solution and keep it."""
        self.candidates.append(self.judge.measured(problem, result, self.level))
        return self.candidates[-1]

    def best(self) -> StrictResult:
        """Return the best of all that was found."""
        return self.judge.best(self.candidates)

    def counted(self, result: StrictResult) -> StrictResult:
        """Return a result that says how many problems were solved."""
        return result._replace(n_solves=len(self.candidates))

    def rounds(
        self,
        problem: RuledProblem,  # a smooth problem, at its temperature
        start: SolverResult,
        n_rounds: int,
        offsets: FloatArray | None = None,
    ) -> SolverResult:
        """Solve, measure, shift the bounds by true minus smooth values, and solve again.

        ``offsets`` (n_constraints,) is the shift to begin with, by default that seen at the start.
        Returned is the last solution that another round may start from.
        """
        judge, true, margin = self.judge, self.judge.problem, self.margin
        if offsets is None:
            offsets = judge.compare(problem, start.theta, start.multipliers).differences
        before, n_worse, n_missed = np.inf, 0, 0
        for _ in range(n_rounds):
            bounds = moved_bounds(true.lower, true.upper, offsets, margin)
            bounded = problem.bounded(*bounds)
            result = self.solver.solve(bounded, start.theta, start.multipliers, **self.params)
            self.keep(bounded, result)
            if self.is_stopped or self._is_far(bounded, result):
                break
            start = result
            seen = judge.compare(bounded, result.theta, result.multipliers)
            # Means of losses and scores are smooth themselves: only the tolerance is between.
            offsets = offsets + (DAMPING if judge.has_rates else 1.0) * (seen.differences - offsets)
            n_worse = n_worse + 1 if seen.violation > 0.5 * before else 0
            before, n_missed = seen.violation, n_missed + (seen.violation > 0)
            if (seen.violation <= 0 and seen.is_used) or n_worse == 2:
                break
            if n_missed >= PLAIN_MISSES and not judge.has_rates:
                # Further inside by what was missed, unless that closes the bounds.
                most = np.maximum(self.margin, 0.25 * (true.upper - true.lower))
                margin = np.minimum(margin + max(seen.violation, 0.0), most)
        return start

    def _is_far(self, problem: RuledProblem, result: SolverResult) -> bool:
        """Whether the solver gave up far from bounds that it had no way to keep."""
        if result.status != "max_iter" or self.solver.is_stochastic:
            return False
        return problem.violation(problem.evaluate(result.theta)) > FAR
