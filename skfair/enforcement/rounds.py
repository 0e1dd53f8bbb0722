"""The outer loop of strict enforcement: solve, measure, move the bounds, solve again.

Bounds on smooth stand-ins are moved by what the truth is seen to be, and every round starts from
the last solution. What is measured, and how bounds move, differs between constraints on all
decisions (:mod:`skfair.enforcement.erm.strict`) and constraints within an interval
(:mod:`skfair.enforcement.partial.strict`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypedDict, TypeVar

from skfair._typing import Callback, FloatArray, Seed
from skfair.problems.protocol import Problem
from skfair.solvers.base import Solver, SolverResult

DAMPING = 0.7  # share of a newly seen difference of true and smooth values that is believed
MAX_ROUNDS = 6  # solves of one problem, whose bounds are moved between them

PATIENCE = 3  # rounds that may pass without gain

P = TypeVar("P", bound=Problem)


class SolveOptions(TypedDict, total=False):
    """How a solver is called; what is left out is its own choice."""

    tol: float
    max_iter: int
    random_state: Seed
    callback: Callback | None


class Place(NamedTuple):
    """Where a round starts; multipliers are None where nothing is known of them."""

    theta: FloatArray
    multipliers: FloatArray | None


class Rounds(ABC, Generic[P]):
    """One problem under bounds that move."""

    @abstractmethod
    def bounded(self) -> P:
        """Return the problem under the present bounds."""

    @abstractmethod
    def keep(self, problem: P, result: SolverResult) -> bool:
        """Measure and keep a solution; return whether the next round may start from it."""

    @abstractmethod
    def move(self, problem: P, result: SolverResult) -> bool:
        """Move the bounds by what was measured; return whether another round may help."""

    def run(self, solver: Solver, start: Place, n_rounds: int, params: SolveOptions) -> Place:
        """Make at most so many rounds; return where the last sound one ended."""
        place = start
        for _ in range(n_rounds):
            problem = self.bounded()
            result = solver.solve(problem, place.theta, place.multipliers, **params)
            is_sound = self.keep(problem, result)
            if result.status == "stopped" or not is_sound:
                break
            place = Place(result.theta, result.multipliers)
            if not self.move(problem, result):
                break
        return place
