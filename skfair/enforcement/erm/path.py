"""The path of strict enforcement: rounds of smooth problems, with the loss and then with errors."""

from __future__ import annotations

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.erm.judge import Candidate, Judge, StrictResult
from skfair.enforcement.rounds import DAMPING, MAX_ROUNDS, Rounds, SolveOptions
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
        self.candidates: list[Candidate] = []  # one for each solve
        self.level = 0  # 0 with the loss, then one more for each steepness of smooth errors

    @property
    def is_stopped(self) -> bool:
        """Whether a callback stopped the last solve."""
        return self.candidates[-1].solution.result.status == "stopped"

    def _tol_of_steps(self) -> float:
        """Return the tolerance of each solve: what suits the solver."""
        tol = LOOSE_TOL if self.judge.has_rates else self.tol
        if not self.is_precise:
            return tol
        has_matrix = "products" not in self.judge.problem.offers
        return min(tol, PRECISE_TOL if has_matrix else self.tol)

    def keep(self, problem: RuledProblem, result: SolverResult) -> Candidate:
        """Measure a solution and keep it."""
        self.candidates.append(self.judge.candidate(problem, result, self.level))
        return self.candidates[-1]

    def best(self) -> Candidate:
        """Return the best of all that was found."""
        return self.judge.best(self.candidates)

    def counted(self, result: StrictResult) -> StrictResult:
        """Return a result that says how many problems were solved."""
        return result._replace(n_solves=len(self.candidates))


class Shifting(Rounds[RuledProblem]):
    """One smooth problem whose bounds are shifted by true minus smooth values."""

    def __init__(
        self,
        path: Path,
        problem: RuledProblem,  # the smooth problem, at its temperature
        offsets: FloatArray,  # (n_constraints,): shift of the bounds to begin with
    ) -> None:
        # Margin (n_constraints,): how far inside of the bounds is aimed at
        self.path, self.problem, self.offsets, self.margin = path, problem, offsets, path.margin
        # is_settled: whether the true bounds are kept and used
        self.is_settled = False
        self._before, self._n_worse, self._n_missed = np.inf, 0, 0

    def bounded(self) -> RuledProblem:
        """Return the problem under the shifted bounds."""
        true, margin = self.path.judge.problem, self.margin
        return self.problem.bounded(
            true.lower - self.offsets + margin, true.upper - self.offsets - margin
        )

    def keep(self, problem: RuledProblem, result: SolverResult) -> bool:
        """Keep a solution, unless its solver gave up far from bounds that it had no way to keep."""
        self.path.keep(problem, result)
        if result.status != "max_iter" or self.path.solver.is_stochastic:
            return True
        return problem.violation(problem.evaluate(result.theta)) <= FAR

    def move(self, problem: RuledProblem, result: SolverResult) -> bool:
        """Shift the bounds by a part of what is newly seen."""
        seen = self.path.judge.compare(problem, result.theta, result.multipliers)
        # Means of losses and scores are smooth themselves: only the solver's tolerance is between.
        damping = DAMPING if self.path.judge.has_rates else 1.0
        self.offsets = self.offsets + damping * (seen.differences - self.offsets)
        self.is_settled = seen.violation <= 0 and seen.is_used
        self._n_worse = self._n_worse + 1 if seen.violation > 0.5 * self._before else 0
        self._before = seen.violation
        self._n_missed += seen.violation > 0
        if self._n_missed >= PLAIN_MISSES and not self.path.judge.has_rates:
            self._aim_further_inside(seen.violation)
        return not self.is_settled and self._n_worse < 2

    def _aim_further_inside(self, missed: float) -> None:
        """Aim inside of the bounds by what they were missed by, unless that closes them."""
        true = self.path.judge.problem
        most = np.maximum(self.path.margin, 0.25 * (true.upper - true.lower))
        self.margin = np.minimum(self.margin + max(missed, 0.0), most)
