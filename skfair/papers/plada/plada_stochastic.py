r"""PLADA on batches: algorithm 1 of its paper with means over a few rows (its appendix D.3).

As in ``plada.py``, with constraints G(theta) <= 0, slacks u and prices lambda and mu. A step draws
a batch and is

.. math::
   \lambda &= \mu + \rho \, (G(\theta) + u) \\
   \theta &\leftarrow \theta - \eta \, (\nabla F(\theta) + \lambda' \partial G(\theta)) \\
   u &\leftarrow \Pi_{[0, u_{max}]} (u - \tau \lambda) \\
   \mu &\leftarrow \mu + \gamma (\lambda - \mu) / \rho, \qquad
   \gamma = \min(\gamma_0, \rho \, \delta_k / (|\lambda - \mu|^2 + 1)), \quad
   \delta_k = \kappa / (k + 1)

where F, G and the derivatives are means over the batch.

Differences from the paper, which prints no more about this setting than its figure 7, neither batch
sizes nor which rows a batch has:

- The product of the Jacobian and the values of G of one batch is a biased estimate, badly so with
  few rows per cell. With ``batches="two"`` lambda comes from a batch of its own, as in equation
  (10) of the paper that compares stochastic solvers.
- Steps of theta are Adam's, and the averaged iterate is returned; ``PladaStochastic.paper()`` has
  plain steps of the printed length, one batch and the last iterate.
- Where the cells of the constraints contain all rows, the loss gets no rows of its own.

lam -> lambda, prices of G + u = z; mu -> prices of z = 0; u -> slacks; rho -> penalty weight; tau
-> step of u; gamma -> step of mu.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Literal, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from skfair._typing import FloatArray
from skfair.papers.one_sided import OneSided
from skfair.problems.protocol import StochasticProblem
from skfair.solvers.base import SOLVERS
from skfair.solvers.erm.stochastic import GradientSolver, TrainingState
from skfair.solvers.parameters import Positive, PositiveOrInf, Share


@dataclass(kw_only=True)
class PladaState(TrainingState):
    """State of stochastic PLADA.

    Attributes
    ----------
    mu : ndarray of shape (n_one_sided,)
        The prices that creep after lambda.
    """

    mu: FloatArray


@SOLVERS.register("plada_stochastic")
@dataclass
class PladaStochastic(GradientSolver[PladaState]):
    r"""Primal-dual steps on batches of the proximal-perturbed Lagrangian.

    Parameters
    ----------
    n_loss, n_per_cell : int, default=128
        Rows per step for the objective, and for each cell of each constraint.
    max_constraint_rows : int, default=1024
        With many cells fewer rows are drawn for each, so that their sum stays within this.
    averaging : float or None, default=3.0
        Power of t that is the weight of the t-th iterate in the mean that is returned; None to
        return an iterate.
    check_every : int, default=None
        Steps between evaluations on all rows; None for five per run.
    tolerance : float, default=1e-3
        Violations up to this count as none when checks are compared.
    output : {"best", "last"}, default="best"
        Which check is returned.
    learning_rate : float, default=0.02
        Rate of the first step.
    decay_steps : float, default=100
        The rate of step t is ``learning_rate / sqrt(1 + t / decay_steps)``; inf for a constant one.
    optimizer : {"adam", "sgd"}, default="adam"
        Adam, or plain gradient steps.
    alpha : float, default=2.0
        Penalty on the perturbation, > 1. Larger ones press harder on violated constraints and make
        the steps noisier.
    beta : float, default=0.5
        Weight of the proximal term between the two prices, in (0, 1).
    gamma0 : float, default=0.3
        Largest step of mu, in (0, 1]. Larger ones follow the noise of the batches.
    kappa : float, default=1e3
        How long mu keeps its largest step, about kappa steps.
    tau : float, default=None
        Step of the slacks; None for the paper's limit 1 / (3 rho).
    u_max : float, default=inf
        Largest slack.
    batches : {"two", "one"}, default="two"
        Whether lambda comes from a batch of its own, or from that of the gradients.

    See Also
    --------
    Plada : The same on all rows.
    ALM : Stochastic augmented Lagrangian, with one price per constraint.

    Notes
    -----
    One evaluation and one pull-back of a batch per step, whatever the number of constraints, and a
    second evaluation with two batches. The paper leaves convergence on batches open.

    Examples
    --------
    >>> from skfair.papers.plada.plada_stochastic import PladaStochastic
    >>> PladaStochastic(alpha=4.0).alpha, PladaStochastic.paper().batches
    (4.0, 'one')
    """

    learning_rate: Positive = 0.02
    alpha: Annotated[float, Interval(Real, 1, None, closed="neither")] = 2.0
    beta: Annotated[float, Interval(Real, 0, 1, closed="neither")] = 0.5
    gamma0: Share = 0.3
    kappa: Positive = 1e3
    tau: Positive | None = None
    u_max: PositiveOrInf = np.inf
    batches: Literal["two", "one"] = "two"

    @classmethod
    def paper(cls) -> Self:
        """Return the solver with the row for neural networks of table 2; kappa and u_max are 1.

        How batches are drawn is not printed. That values and gradients share one batch is our
        reading, and where the cells of the constraints contain all rows, as with demographic
        parity, the loss is estimated on the rows of the cells too.

        Returns
        -------
        solver : PladaStochastic
            The solver.
        """
        return cls(
            averaging=None,
            output="last",
            learning_rate=0.1,
            decay_steps=np.inf,
            optimizer="sgd",
            alpha=10.0,
            gamma0=0.1,
            kappa=1.0,
            tau=0.01,
            u_max=1.0,
            batches="one",
        )

    @property
    def rho(self) -> float:
        """Weight of the penalty that is left once the perturbation is eliminated."""
        return self.alpha / (1 + self.alpha * self.beta)

    def begin(
        self, problem: StochasticProblem, theta0: FloatArray, multipliers0: FloatArray | None = None
    ) -> PladaState:
        constraints = OneSided(problem)
        values = constraints.values(problem.evaluate(np.asarray(theta0, dtype=np.float64)))
        mu = constraints.split(multipliers0)
        u = np.clip(-values - mu / self.rho, 0.0, self.u_max)  # minimises L for this mu
        state = self._first_state(problem, theta0, multipliers0, u)
        return PladaState(**vars(state), mu=mu)

    def _step(
        self,
        problem: StochasticProblem,
        state: PladaState,
        n_per_cell: int,
        rng: np.random.RandomState,
    ) -> None:
        constraints = OneSided(problem)
        at = problem.evaluate(state.theta, problem.draw(rng, self.n_loss, n_per_cell))
        other = at
        if self.batches == "two":
            other = problem.evaluate(state.theta, problem.draw(rng, 0, n_per_cell))
        u = state.point[state.theta.size :]
        lam = state.mu + self.rho * (constraints.values(other) + u)
        nu = constraints.signed(lam)
        self._descend(state, np.concatenate([at.gradient(nu), np.zeros(u.size)]))
        tau = 1 / (3 * self.rho) if self.tau is None else self.tau
        np.clip(u - tau * lam, 0.0, self.u_max, out=u)
        gap = lam - state.mu
        limit = self.rho * self.kappa / (state.n_steps * (float(gap @ gap) + 1))
        state.mu = state.mu + min(self.gamma0, limit) / self.rho * gap
        state.multipliers[:] = nu
