"""Stochastic gradient descent on the objective alone: the baseline that ignores all constraints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skfair._typing import FloatArray
from skfair.problems.protocol import Evaluation, StochasticProblem
from skfair.solvers.base import SOLVERS
from skfair.solvers.erm.stochastic import GradientSolver, TrainingState
from skfair.utils.docs import documented


@documented
@SOLVERS.register("sgd")
@dataclass
class SGD(GradientSolver[TrainingState]):
    """Stochastic gradient descent that ignores the constraints.

    Parameters
    ----------
    n_loss : int, default=128
        Number of rows per step.
    n_per_cell : int
        Not used, because there are no constraints.
    max_constraint_rows : int
        Not used, because there are no constraints.
    tolerance : float
        Not used, because evaluations are compared by the objective.

    See Also
    --------
    Penalty : Descends on a penalised loss.
    skfair.solvers.ALM : The default for networks.

    Notes
    -----
    Each step costs one evaluation and one gradient of ``n_loss`` rows. All multipliers are 0. The
    paper states no parameters for this baseline, so there is no preset.

    References
    ----------
    Kliachkin, A., Lepsova, J., Bareilles, G. and Marecek, J. "Benchmarking stochastic approximation
    algorithms for fairness-constrained training of deep neural networks", section 4.

    Examples
    --------
    >>> from skfair.papers.benchmark.sgd import SGD
    >>> SGD(optimizer="sgd", learning_rate=0.1).learning_rate
    0.1
    """

    def _step(
        self,
        problem: StochasticProblem,
        state: TrainingState,
        n_per_cell: int,
        rng: np.random.RandomState,
    ) -> None:
        at = problem.evaluate(state.theta, problem.draw(rng, self.n_loss, 0))
        self._descend(state, at.gradient())

    def _rank(self, problem: StochasticProblem, at: Evaluation) -> tuple[float, float]:
        return 0.0, at.objective

    def _final_multipliers(
        self, problem: StochasticProblem, at: Evaluation, multipliers: FloatArray
    ) -> FloatArray:
        return np.zeros_like(multipliers)
