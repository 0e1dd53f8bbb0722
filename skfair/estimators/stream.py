"""Streams: training with a stochastic solver that goes on with other rows."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from skfair._typing import FloatArray
from skfair.estimators.erm_problem import Problem
from skfair.models.units import Units

# Steps on a part of a stream, however few rows it has.
PART_STEPS = 100


class Training(Protocol):
    """All that training needs to go on with other rows."""

    n_steps: int

    @property
    def solution(self) -> FloatArray:
        """The parameters to predict with."""

    @property
    def solution_multipliers(self) -> FloatArray:
        """The multipliers that belong to them."""


class StreamSolver(Protocol):
    """A solver whose training can stop and go on."""

    n_loss: int

    def begin(
        self, problem: Any, theta0: FloatArray, multipliers0: FloatArray | None = None
    ) -> Training:
        """Return the state of a training that has made no step yet."""

    def advance(
        self, problem: Any, state: Training, n_steps: int, rng: np.random.RandomState
    ) -> None:
        """Make steps; the state is changed in place."""


@dataclass(frozen=True)
class Stream:
    """What is kept between the parts of a stream."""

    training: Training
    units: Units  # of the columns of the first part
    rng: np.random.RandomState
    n_rows: int = 0

    def advanced(self, problem: Problem, solver: StreamSolver) -> Stream:
        """Return the stream after some steps, at least one pass over the rows of a new part."""
        after = deepcopy(self)  # what is there stays as it is if something fails below
        problem.model.use_units(after.units)
        n_new = problem.model.n_samples
        solver.advance(problem, after.training, max(PART_STEPS, n_new // solver.n_loss), after.rng)
        return replace(after, n_rows=after.n_rows + n_new)
