"""The path of strict enforcement: rounds of smooth problems at one temperature after the other."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from skfair._typing import FloatArray
from skfair.enforcement.judge import Candidate, Judge, StrictResult
from skfair.enforcement.rounds import Rounds, SolveOptions
from skfair.problems.erm.problem import RuledProblem
from skfair.solvers.base import Solver, SolverResult

DAMPING = 0.7  # share of a newly seen difference of true and smooth values that is believed
# Scores that say how fast true and smooth rates change, and what their ratio may be.
SEEN_SCORES, RATIOS = 50_000, (0.7, 4.0)
ROOM = 0.1  # share of a limit
MAX_ROUNDS = 6  # solves per temperature
FAR = 0.01  # smooth bounds that are missed by more were not nearly kept
LOOSE_TOL = 1e-4  # of solves whose result is only a step on the way
# The same, of solvers and scores (linear ones) for which precision is cheap. What is seen at one
# solution decides where the next one lies; a loose one depends on the solver and on the order of
# the rows, and then so does the model.
PRECISE_TOL = 1e-9


class Path:
    """The solver, how closely it solves, and all that was found on the way.

    Parameters
    ----------
    judge : Judge
        Knows the true bounds.
    solver : Solver
        Solves the smooth problems.
    params : dict
        Passed to the solver.
    step_tol : float, default=None
        Tolerance of each solve; None for what suits the solver.

    Attributes
    ----------
    candidates : list of Candidate
        One for each solve.
    level : int
        How far along the path, from smooth to steep.
    max_rounds : int
        Most solves at one temperature.
    is_precise : bool
        Whether precise solutions are cheap.
    """

    def __init__(
        self, judge: Judge, solver: Solver, params: SolveOptions, step_tol: float | None = None
    ) -> None:
        problem = judge.problem
        self.judge, self.solver = judge, solver
        self.is_precise = solver.is_precise and "hessian" in problem.offers
        # A run of a stochastic solver is long, and its noise hides small corrections.
        self.max_rounds = 2 if solver.is_stochastic else MAX_ROUNDS
        self.tol = params.get("tol", 1e-6)
        step_tol_is_given = step_tol is not None
        if step_tol is None:
            step_tol = LOOSE_TOL if judge.has_rates else self.tol
            step_tol = min(step_tol, PRECISE_TOL) if self.is_precise else step_tol
        self.step_tol = step_tol
        self.params: SolveOptions = {**params, "tol": self.step_tol}
        # Means of losses and scores are smooth themselves: only the solver's tolerance is between.
        self._damping = DAMPING if judge.has_rates else 1.0
        self._is_adaptive = step_tol_is_given
        # What is missed by less on a sample is decided on all rows.
        self.room = ROOM * judge.least_limit if step_tol_is_given else 0.0
        is_exact = [np.full(r.upper.size, not r.moment.is_rate) for r in problem.rules]
        self.margin = 2 * self.step_tol * np.concatenate([np.empty(0), *is_exact])
        self.candidates: list[Candidate] = []
        self.level = 0

    @property
    def is_stopped(self) -> bool:
        """Whether a callback stopped the last solve."""
        return self.candidates[-1].found.result.status == "stopped"

    def damping(self, problem: RuledProblem, theta: FloatArray) -> float:
        """Return the share of a newly seen difference that is believed.

        Bounds that move by x move smooth values by x, and true ones by x times the ratio of their
        slopes. Where rows are many, that is seen in the scores.
        """
        if not self._is_adaptive:
            return self._damping
        return 1 / slope_ratio(self.judge.problem.scores(theta), problem.temperature)

    def solve_freely(self, theta: FloatArray) -> SolverResult:
        """Solve without the rules: this is the result if they do not bind."""
        params: SolveOptions = {**self.params, "tol": min(self.tol, self.step_tol)}
        return self.solver.solve(self.judge.free, theta, None, **params)

    def keep(self, problem: RuledProblem, result: SolverResult) -> Candidate:
        """Measure a solution and keep it."""
        self.candidates.append(self.judge.candidate(problem, result, self.level))
        return self.candidates[-1]

    def best(self) -> Candidate:
        """Return the best of all that was found."""
        return self.judge.best(self.candidates)

    def counted(self, found: StrictResult) -> StrictResult:
        """Return a result that says how many problems were solved."""
        return found._replace(n_solves=len(self.candidates))


class Shifting(Rounds[RuledProblem]):
    """One smooth problem whose bounds are shifted by true minus smooth values.

    Parameters
    ----------
    path : Path
        Where solutions are kept.
    problem : RuledProblem
        The smooth problem, at its temperature.
    offsets : ndarray of shape (n_constraints,)
        Shift of the bounds to begin with.

    Attributes
    ----------
    is_settled : bool
        Whether the true bounds are kept and used.
    reached : float
        Quality of the best solution that keeps them; -inf if there is none.
    """

    def __init__(self, path: Path, problem: RuledProblem, offsets: FloatArray) -> None:
        self.path, self.problem, self.offsets = path, problem, offsets
        self.is_settled, self.reached = False, -np.inf
        self._before, self._n_worse = np.inf, 0

    def bounded(self) -> RuledProblem:
        """Return the problem under the shifted bounds."""
        true, margin = self.path.judge.problem, self.path.margin
        return self.problem.bounded(
            true.lower - self.offsets + margin, true.upper - self.offsets - margin
        )

    def keep(self, problem: RuledProblem, result: SolverResult) -> bool:
        """Keep a solution, unless its solver gave up far from bounds that it had no way to keep."""
        candidate = self.path.keep(problem, result)
        if candidate.found.is_feasible:
            self.reached = max(self.reached, candidate.quality)
        if result.status != "max_iter" or self.path.solver.is_stochastic:
            return True
        return problem.violation(problem.evaluate(result.theta)) <= FAR

    def move(self, problem: RuledProblem, result: SolverResult) -> bool:
        """Shift the bounds by a part of what is newly seen."""
        seen = self.path.judge.compare(problem, result.theta, result.multipliers)
        self.offsets = self.offsets + self.path.damping(problem, result.theta) * (
            seen.differences - self.offsets
        )
        self.is_settled = seen.violation <= self.path.room and seen.is_used
        self._n_worse = self._n_worse + 1 if seen.violation > 0.5 * self._before else 0
        self._before = seen.violation
        return not self.is_settled and self._n_worse < 2


def slope_ratio(scores: FloatArray, temperature: float) -> float:
    """Return about how much faster true rates change than smooth ones, if scores shift."""
    some = scores[:: max(1, scores.size // SEEN_SCORES)]
    near = np.partition(np.abs(some), some.size // 8)[some.size // 8]
    smooth = expit(temperature * some)
    slope = temperature * float(np.mean(smooth * (1 - smooth)))
    return float(np.clip(1 / (16 * near * slope + 1e-300), *RATIOS))
