"""Several starts, where differences of losses have several local optima.

Of many starts only the most promising one is worth a solve. Which that is, a few steps of the
solver from each say.
"""

from __future__ import annotations

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.rounds import Place, SolveOptions
from skfair.problems.erm.problem import RuledProblem
from skfair.solvers.base import Solver

N_STARTS = 8  # besides constant scores
N_STEPS = 40  # of the solver from each
PRICE = 10.0  # of a violation, in units of the objective: more than usual multipliers
GAIN = 1e-6  # an objective that is better by less is the same


def starts_around(problem: RuledProblem, theta: FloatArray) -> FloatArray:
    """Return constant scores, and points around the model without the constraints, one per row."""
    rng = np.random.RandomState(0)  # the starts are part of the method: the same in every fit
    size = float(np.sqrt(np.mean(problem.model_part(theta) ** 2)))
    around = theta + size * rng.normal(size=(N_STARTS, theta.size))
    return np.array([problem.centered(start) for start in (0 * theta, *around)])


def most_promising(
    problem: RuledProblem, starts: FloatArray, solver: Solver, params: SolveOptions, best: float
) -> Place | None:
    """Return where the best of the starts leads to; None if no better than ``best``."""
    few: SolveOptions = {**params, "max_iter": N_STEPS}
    none = np.zeros(problem.n_constraints)
    results = [solver.solve(problem, start, none, **few) for start in starts]
    reached = [problem.evaluate(result.theta) for result in results]
    misses = np.array([problem.violation(at) for at in reached])
    objectives = np.array([at.objective for at in reached])
    merit = objectives + PRICE * np.maximum(misses, 0.0)
    winner = int(np.argmin(merit))
    place = Place(results[winner].theta, results[winner].multipliers)
    return place if merit[winner] + GAIN * abs(merit[winner]) < best else None
