r"""Bounds on the true disparity within an interval, by solving smooth problems again and again.

The smooth rules of :class:`PartialParityProblem` are kept at some percentiles only, and by steps
that are not sharp, so the disparity of the true scores can be larger. Each round solves the problem
from the last solution and measures the disparity; then the tolerance of the smooth rules is
multiplied by what was asked over what was measured, and the steps become narrower. Two or three
rounds are mostly enough.

Steps are as wide as the scores are spread: scores that all move together would keep any smooth rule
whose steps are wide against their differences, and no true one.

Rules with several forms, each sufficient, are solved in each, and the best result is kept. Further
problems, with more percentiles, are there for when that fails; they are tried with the same and
with wider steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray
from skfair.constraints.partial.surrogates import Surrogate
from skfair.problems.partial.problem import PartialParityProblem
from skfair.solvers.base import SolverResult

ROUNDS = 8
# Factor on the width of the steps per round, and the least width, as parts of the first.
NARROWING, NARROWEST = 0.6, 0.2
# Widths that retries begin with. Wider steps lose some accuracy and get into fewer dead ends.
RETRY_WIDTHS = (1.0, 2.5)
# A tolerance aims this much below what is allowed.
AIM = 0.96
# A disparity below this part of what is allowed gives room away.
USED = 0.75
# After so many rounds any solution within the bound will do.
PATIENCE = 3
# Rounding of disparities.
EXACT = 1e-9


class PartialResult(NamedTuple):
    """The solution that is kept.

    Attributes
    ----------
    problem : PartialParityProblem
        The smooth problem that it solves, with its tolerance and steps.
    result : SolverResult
        The solution.
    disparity : float
        Its measured disparity.
    n_solves : int
        Number of problems that were solved.
    is_precise : bool
        Whether its solver runs until it has converged.
    """

    problem: PartialParityProblem
    result: SolverResult
    disparity: float
    n_solves: int
    is_precise: bool


class _Round(NamedTuple):
    """A smooth problem, its solution, and what the scores of that are good for."""

    problem: PartialParityProblem
    result: SolverResult
    excess: float  # of the measured disparity
    quality: float
    disparity: float

    @property
    def rank(self) -> tuple[float, float]:
        """The smaller, the better."""
        return self.excess, -self.quality


def solve_partially(
    problems: Sequence[PartialParityProblem],
    solver: Any,
    theta_model: FloatArray,
    surrogate: Surrogate,
    *,
    measure: Callable[[FloatArray], float],
    quality: Callable[[FloatArray], float],
    max_disparity: float,
    retries: Sequence[PartialParityProblem] = (),
    n_rounds: int = ROUNDS,
    **params: Any,
) -> PartialResult:
    """Find the best solution whose measured disparity is within its bound.

    Parameters
    ----------
    problems : sequence of PartialParityProblem
        Forms of the problem, one after the other.
    solver : object
        Has ``solve``.
    theta_model : ndarray
        Parameters of the model to start from.
    surrogate : Surrogate
        The steps of the first round, for scores that are spread as those of ``theta_model``.
    measure, quality : callable
        Disparity and accuracy of scores.
    max_disparity : float
        Largest measured disparity.
    retries : sequence of PartialParityProblem, default=()
        Problems that are solved while no solution within the bound is found.
    n_rounds : int, default=8
        Largest number of rounds per form; 1 for one solution of the smooth problem.
    **params
        Passed to the solver.

    Returns
    -------
    found : PartialResult
        The most accurate solution within the bound, else the one of least disparity.
    """
    rounds: list[_Round] = []
    spread = _spread(problems[0].model.forward(theta_model)[0])
    attempts = [(problem, 1.0) for problem in problems]
    attempts += [(problem, width) for problem in retries for width in RETRY_WIDTHS]
    for k, (form, first) in enumerate(attempts):
        if rounds and rounds[-1].result.status == "stopped":
            break
        if k >= len(problems) and any(not one.excess for one in rounds):
            break
        tolerance, narrowed, ratio = form.tolerance, 1.0, 1.0
        theta = lam = None
        for n_done in range(1, n_rounds + 1):
            problem = form.limited(tolerance, surrogate.narrowed(first * narrowed * ratio))
            theta = problem.start(theta_model) if theta is None else theta
            result = solver.solve(problem, theta, lam, **params)
            theta, lam = result.theta, result.multipliers
            scores = problem.evaluate(theta).scores
            disparity = measure(scores)
            excess = max(disparity - max_disparity - EXACT, 0.0)
            rounds.append(_Round(problem, result, excess, quality(scores), disparity))
            is_used_up = disparity >= USED * max_disparity or not np.any(lam) or n_done > PATIENCE
            if result.status == "stopped" or (not excess and is_used_up):
                break
            wanted = AIM * max_disparity / max(disparity, 1e-3 * max_disparity, EXACT)
            tolerance *= float(np.clip(wanted, 0.3, 1.5))
            narrowed = max(NARROWEST, NARROWING * narrowed)
            if spread:
                ratio = max(_spread(scores) / spread, 1e-6)
    best = min(rounds, key=lambda one: one.rank)
    return PartialResult(
        best.problem, best.result, best.disparity, len(rounds), getattr(solver, "is_precise", False)
    )


def _spread(scores: FloatArray) -> float:
    return float(scores.std())
