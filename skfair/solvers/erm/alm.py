r"""Stochastic augmented Lagrangian: the default for neural models and for ``partial_fit``.

Estimators make an :class:`ALM` and call ``solve``, or ``begin`` and ``advance`` for streams. Each
step is a gradient step on

.. math:: F(\theta)
   + \frac{\rho}{2} \sum_j \mathrm{dist}^2(c_j + \lambda_j / \rho, [l_j, u_j])

for one batch of rows, and a small step of the multipliers. This is Algorithm 2 of the paper that
compares stochastic solvers (see :class:`ALM`), without its smoothing term (which is in
``ssl_alm.py``). Two things differ from the paper:

- Steps are those of Adam, and the distance from [l, u] takes the place of slack variables.
- The Jacobian of a batch is multiplied by the constraint values of the batch before. Their product
  within one batch would be a biased estimate, in particular with few rows per group. As in equation
  (10) the two factors are independent, but here one batch per step is enough. A mean of the values
  of several batches would be less noisy, but its lag makes many multipliers oscillate.

``ALM.paper()`` has plain steps, slack variables and two batches. A two-sided constraint has one
slack there, c(theta) - s = 0 with s in [l, u]. The paper's pair of one-sided constraints has two.

lam -> y of the paper, rho -> penalty weight, nu -> multipliers that the gradient sees, slack -> s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from skfair._typing import FloatArray
from skfair.problems.protocol import Evaluation, StochasticProblem
from skfair.solvers.base import SOLVERS
from skfair.solvers.erm.stochastic import GradientSolver, TrainingState
from skfair.solvers.parameters import Positive, PositiveOrInf
from skfair.utils.docs import documented


@dataclass(kw_only=True)
class ALMState(TrainingState):
    """State of a stochastic augmented Lagrangian."""

    values: FloatArray  # (n_constraints,): constraint values of the last batch


@documented
@SOLVERS.register("alm")
@dataclass
class ALM(GradientSolver[ALMState]):
    r"""Stochastic augmented Lagrangian method with Adam steps.

    It is the default for networks and for ``partial_fit``, because each step only uses a batch of
    rows.

    Parameters
    ----------
    rho : float, default=2.0
        Penalty weight. With larger values, the constraints are satisfied more closely between
        updates of the multipliers, but the steps are noisier.
    eta : float, default=0.1
        Step size of the multipliers per unit of violation. With many constraints, the multipliers
        may oscillate if it is above a tenth of ``rho``.
    form : {"projection", "slack"}, default="projection"
        Treatment of inequality constraints. If "projection", violations of the bounds are
        penalised. If "slack", the problem has a slack variable for each constraint, as in the
        paper.
    max_multiplier : float, default=inf
        Multipliers are reset to 0 if their norm reaches this value (lines 6-7 of the algorithm). It
        only has an effect with ``form="slack"``.

    See Also
    --------
    skfair.papers.SSLALM : The same method with a smoothing term.

    Notes
    -----
    Each step costs one evaluation and one gradient of a batch, regardless of the number of
    constraints. With the defaults, 1500 steps end within 2e-3 of the optimum and of the bounds on
    linear problems like Adult with one constraint and a few groups. With dozens of groups they end
    within 1e-2. With hundreds of groups, a batch has few rows of each group, and the noise of the
    rates is larger than the bounds. The constraints are then satisfied with room to spare, and a
    larger ``max_constraint_rows`` improves the objective. There is no guarantee for nonlinear
    constraints.

    References
    ----------
    Kliachkin, A., Lepsova, J., Bareilles, G. and Marecek, J. "Benchmarking stochastic approximation
    algorithms for fairness-constrained training of deep neural networks", section 3.3.

    Examples
    --------
    >>> from skfair.solvers.erm.alm import ALM
    >>> ALM(rho=5.0).rho, ALM.paper().form
    (5.0, 'slack')
    """

    rho: Positive = 2.0
    eta: Positive = 0.1
    form: Literal["projection", "slack"] = "projection"
    max_multiplier: PositiveOrInf = np.inf

    @classmethod
    def paper(cls) -> Self:
        """Return the solver with the parameters of section 4 of the paper.

        The batches differ from the paper, which does not state their sizes. The algorithm draws the
        rows of the loss, xi, separately from the rows of the constraints, zeta. Here xi is the
        first batch of zeta if its cells contain all rows and are at least as large a sample as
        ``n_loss`` rows, which is so for loss parity and demographic parity. No rows are then drawn
        for the loss, and the estimate of the mean loss is still unbiased.

        Returns
        -------
        solver : ALM
            A solver with these parameters.
        """
        return cls(
            averaging=None,
            output="last",
            learning_rate=0.01,
            decay_steps=np.inf,
            optimizer="sgd",
            rho=1.0,
            eta=0.05,
            form="slack",
            max_multiplier=10.0,
        )

    def begin(
        self, problem: StochasticProblem, theta0: FloatArray, multipliers0: FloatArray | None = None
    ) -> ALMState:
        values = problem.evaluate(np.asarray(theta0, dtype=np.float64)).constraints
        slacks = np.clip(values, problem.lower, problem.upper) if self.form == "slack" else None
        state = self._first_state(problem, theta0, multipliers0, slacks)
        return ALMState(**vars(state), values=values)

    def _step(
        self,
        problem: StochasticProblem,
        state: ALMState,
        n_per_cell: int,
        rng: np.random.RandomState,
    ) -> None:
        at = problem.evaluate(state.theta, problem.draw(rng, self.n_loss, n_per_cell))
        if self.form == "projection":
            gradient = self._projected(problem, state, at)
        else:
            other = problem.evaluate(state.theta, problem.draw(rng, 0, n_per_cell))
            gradient = self._slacked(state, at, other)
        self._descend(state, gradient)
        if state.n_slacks:
            slack = state.point[-state.n_slacks :]
            np.clip(slack, problem.lower, problem.upper, out=slack)

    def _projected(self, problem: StochasticProblem, state: ALMState, at: Evaluation) -> FloatArray:
        """Return the gradient of the augmented Lagrangian, and move the multipliers."""
        lam = state.multipliers
        # Constraint values of the batch before, as the head of this file explains.
        shifted = state.values + lam / self.rho
        nu = self.rho * (shifted - np.clip(shifted, problem.lower, problem.upper))
        gradient: FloatArray = at.gradient(nu)
        lam += self.eta / self.rho * (nu - lam)
        state.values = at.constraints
        return gradient

    def _slacked(self, state: ALMState, at: Evaluation, other: Evaluation) -> FloatArray:
        """Move the multipliers (lines 5-8); return the gradient by the parameters and slacks."""
        lam, slack = state.multipliers, state.point[state.theta.size :]
        lam += self.eta * (at.constraints - slack)
        if np.linalg.norm(lam) >= self.max_multiplier:
            lam[:] = 0.0
        nu = lam + self.rho * (other.constraints - slack)  # eq. (10)
        return np.concatenate([at.gradient(nu), -nu])
