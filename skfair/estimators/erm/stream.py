"""Streams: training with a stochastic solver that goes on with other rows."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from skfair._typing import FloatArray
from skfair.estimators.erm.problem import Problem
from skfair.models.units import Units
from skfair.problems.erm.in_memory import ConstrainedERM
from skfair.solvers.erm.stochastic import StochasticSolver, TrainingState

# Steps on a part of a stream, however few rows it has.
PART_STEPS = 100

StreamSolver = StochasticSolver[Any]


@dataclass(frozen=True)
class Stream:
    """What is kept between the parts of a stream."""

    training: TrainingState
    units: Units  # of the columns of the first part
    rng: np.random.RandomState
    weight: float = 0.0  # of all rows so far, in the mean loss

    def advanced(self, problem: Problem, solver: StreamSolver, weight: float) -> Stream:
        """Return the stream after some steps, at least one pass over the rows of a new part.

        ``weight`` is that of these rows in the mean loss.
        """
        after = deepcopy(self)  # what is there stays as it is if something fails below
        problem.model.use_units(after.units)
        n_steps = max(PART_STEPS, problem.model.n_samples // solver.n_loss)
        solver.advance(cast(ConstrainedERM, problem), after.training, n_steps, after.rng)
        return replace(after, weight=after.weight + weight)


def begin(
    problem: Problem,
    solver: StreamSolver,
    start: FloatArray,
    multipliers: FloatArray | None,
    rng: np.random.RandomState,
) -> Stream:
    """Return a stream without rows; units are those of the columns of the problem."""
    training = solver.begin(cast(ConstrainedERM, problem), start, multipliers)
    return Stream(training, problem.model.units, rng)
