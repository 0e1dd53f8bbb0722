"""Very many rows through a sample: its values and gradients are made those of all, again and again.

At a point the sample gets linear functions that give it the values and gradients of all rows there.
Its solution is closer to that of all rows by the factor in which its second derivatives are off,
about 1 / sqrt(rows of the sample per parameter). Which bounds press is found out on the sample, so
that one pass over all rows is enough for each point.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np

from skfair._typing import FloatArray
from skfair.problems.erm.summed import SummedERM
from skfair.solvers.base import IterativeSolver, Solver, Step, residual

# Residual that the sample is solved to, as a share of that of all rows.
_SHARE = 0.02
# Residuals that do not fall by this factor will not.
_SLOW = 0.7


class BySample(IterativeSolver[SummedERM]):
    """Solves corrected samples with another solver."""

    is_precise = True

    def __init__(
        self,
        solver: Solver,
        # What the second derivative of the sample lacks, as far as it is known
        curvature: FloatArray | None = None,
        least_steps: int = 0,
    ) -> None:
        self.solver, self.curvature, self.least_steps = solver, curvature, least_steps

    def steps(
        self,
        problem: SummedERM,
        start: FloatArray,
        multipliers: FloatArray | None,
        *,
        tol: float,
        max_iter: int,
        rng: np.random.RandomState,
    ) -> Iterator[Step]:
        # Yield where the solution of each sample is; return where the next brings nothing.
        lam = np.zeros(problem.n_constraints) if multipliers is None else multipliers
        at, last = problem.evaluate(start), np.inf
        for n_iter in count():
            left = residual(problem, at, lam)
            is_done = left <= tol and n_iter >= self.least_steps
            yield Step(at, lam, n_iter, "converged" if is_done else None)
            if not left < _SLOW * last:
                return
            last = left
            sample = problem.corrected_sample(at, self.curvature)
            result = self.solver.solve(sample, at.theta, lam, tol=_SHARE * max(left, tol))
            at, lam = problem.evaluate(result.theta), result.multipliers
