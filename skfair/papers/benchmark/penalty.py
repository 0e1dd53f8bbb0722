r"""Stochastic gradient descent on a weighted sum of objective and violations.

.. math:: F(\theta) + \text{weight} \sum_j \mathrm{dist}(c_j(\theta), [l_j, u_j])^q,
   \qquad q \in \{1, 2\}

The regulariser that the paper on stochastic solvers compares with has this form. The weight is
fixed, so the user finds by trial how well a weight satisfies the constraints.

Slopes of the penalty and gradients of the constraints come from two batches, as in equation (10) of
the paper. In a single batch the noise of both would be the same, and its square would count as
violation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from skfair._typing import FloatArray
from skfair.problems.protocol import Evaluation, StochasticProblem
from skfair.solvers.base import SOLVERS
from skfair.solvers.erm.stochastic import GradientSolver, TrainingState
from skfair.solvers.parameters import NonNegative
from skfair.utils.docs import documented


@documented
@SOLVERS.register("penalty")
@dataclass
class Penalty(GradientSolver[TrainingState]):
    r"""Stochastic gradient descent with a penalty on violations.

    Parameters
    ----------
    tolerance : float
        Not used, because evaluations are compared by the sum that is minimised.
    weight : float, default=20.0
        Weight of the penalty. With larger values, the constraints are satisfied more closely, but
        the steps are noisier.
    kind : {"squared", "absolute"}, default="squared"
        Penalty on the violations, which is their square or their absolute value.

    See Also
    --------
    skfair.solvers.ALM : Method with multipliers, which needs no large weight.

    Notes
    -----
    Each step costs two evaluations and one gradient of a batch. With a squared penalty, violations
    end near lambda / (2 weight), where lambda is the multiplier of the constrained problem. With an
    absolute penalty, they end near 0 if the weight is above all multipliers. The multipliers in the
    result are the derivatives of the penalty. The paper states no parameters for this baseline, so
    there is no preset.

    References
    ----------
    Buyl, M., Defrance, M. and De Bie, T. "fairret: a framework for differentiable fairness
    regularization terms", ICLR 2024.

    Examples
    --------
    >>> from skfair.papers.benchmark.penalty import Penalty
    >>> Penalty(weight=5.0, kind="absolute").weight
    5.0
    """

    weight: NonNegative = 20.0
    kind: Literal["squared", "absolute"] = "squared"

    def _step(
        self,
        problem: StochasticProblem,
        state: TrainingState,
        n_per_cell: int,
        rng: np.random.RandomState,
    ) -> None:
        at = problem.evaluate(state.theta, problem.draw(rng, self.n_loss, n_per_cell))
        other = problem.evaluate(state.theta, problem.draw(rng, 0, n_per_cell))
        self._descend(state, at.gradient(self._slopes(problem, other)))

    def _slopes(self, problem: StochasticProblem, at: Evaluation) -> FloatArray:
        """Return the derivatives of the penalty by the constraint values."""
        excess = at.constraints - np.clip(at.constraints, problem.lower, problem.upper)
        return self.weight * (np.sign(excess) if self.kind == "absolute" else 2 * excess)

    def _rank(self, problem: StochasticProblem, at: Evaluation) -> tuple[float, float]:
        excess = at.constraints - np.clip(at.constraints, problem.lower, problem.upper)
        power = 1 if self.kind == "absolute" else 2
        return 0.0, at.objective + self.weight * float((np.abs(excess) ** power).sum())

    def _final_multipliers(
        self, problem: StochasticProblem, at: Evaluation, multipliers: FloatArray
    ) -> FloatArray:
        return self._slopes(problem, at)
