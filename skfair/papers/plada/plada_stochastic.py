r"""PLADA on batches: algorithm 1 of its paper with means over a few rows (its appendix D.3).

The problem is that of ``plada.py``, with constraints G(theta) <= 0, slacks u and multipliers lambda
and mu. Each constraint bounds means over *cells*, which are groups, or classes within groups. A
step draws a batch and is

.. math::
   \lambda &= \mu + \rho \, (G(\theta) + u) \\
   \theta &\leftarrow \theta - \eta \, (\nabla F(\theta) + \lambda' \partial G(\theta)) \\
   u &\leftarrow \Pi_{[0, u_{max}]} (u - \tau \lambda) \\
   \mu &\leftarrow \mu + \gamma (\lambda - \mu) / \rho, \qquad
   \gamma = \min(\gamma_0, \rho \, \delta_k / (|\lambda - \mu|^2 + 1)), \quad
   \delta_k = \kappa / (k + 1)

where F, G and the derivatives are means over the batch. k counts from 0, and ``state.n_steps``
counts from 1, so in the code k + 1 is ``state.n_steps``.

The base class (``skfair/solvers/erm/stochastic.py``) calls ``begin`` once and ``_step`` for each
batch, and averages the iterates.

The paper shows this setting only in figure 7. It states neither batch sizes nor which rows are
drawn. Differences from the paper:

- The product of the Jacobian and the values of G of one batch is a biased estimate, badly so with
  few rows per cell. With ``batches="two"`` lambda comes from a batch of its own, as in equation
  (10) of the paper that compares stochastic solvers.
- Steps of theta are Adam's, and the averaged iterate is returned; ``PladaStochastic.paper()`` has
  plain steps of the printed length, one batch and the last iterate.
- If the cells of the constraints contain all rows, as with demographic parity, the rows drawn for
  the cells also estimate the loss. ``problem.draw`` decides this
  (``skfair/problems/erm/batches.py``).

lam -> lambda, multipliers of G + u = z; mu -> multipliers of z = 0; nu -> lam as one signed number
per two-sided constraint; u -> slacks; rho -> penalty weight; tau -> step of u; gamma -> step of mu.
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
    n_loss : int, default=128
        Number of rows per step for the objective.
    n_per_cell : int, default=128
        Number of rows per step for each cell of each constraint.
    max_constraint_rows : int, default=1024
        Maximum number of rows per step for all cells together.
    averaging : float or None, default=3.0
        Exponent of the weights in the average of the iterates that is returned. The iterate of step
        t has a weight proportional to t to this power. If None, the iterates are not averaged.
    check_every : int, default=None
        Number of steps between evaluations on all rows. If None, there are five evaluations per
        run.
    tolerance : float, default=1e-3
        Violations up to this value are ignored in the comparison of the evaluations.
    output : {"best", "last"}, default="best"
        The iterate that is returned. If "best", it is the best evaluation of the second half of the
        run. If "last", it is the last one.
    learning_rate : float, default=0.02
        Learning rate of the first step.
    decay_steps : float, default=100
        Decay of the learning rate, which is ``learning_rate / sqrt(1 + t / decay_steps)`` in step
        t. Pass ``numpy.inf`` for a constant learning rate.
    optimizer : {"adam", "sgd"}, default="adam"
        Kind of the steps. If "adam", they are scaled by Adam. If "sgd", they are plain gradient
        steps.
    alpha : float, default=2.0
        Penalty on the perturbation, which must be larger than 1. Larger values penalise violated
        constraints more and make the steps noisier.
    beta : float, default=0.5
        Weight of the proximal term between the two multipliers lambda and mu, in (0, 1).
    gamma0 : float, default=0.3
        Largest step size of mu, in (0, 1]. With larger values, mu follows the noise of the batches.
    kappa : float, default=1e3
        Approximate number of steps in which mu keeps its largest step size.
    tau : float, default=None
        Step size of the slacks. If None, it is the limit of the paper, 1 / (3 rho).
    u_max : float, default=inf
        Maximum slack.
    batches : {"two", "one"}, default="two"
        Number of batches per step. If "two", lambda is computed from a batch of its own. If "one",
        it is computed from the batch of the gradients.

    See Also
    --------
    Plada : The same method on all rows.
    skfair.solvers.ALM : Stochastic augmented Lagrangian with one multiplier per constraint.

    Notes
    -----
    Each step costs one evaluation and one gradient of a batch, regardless of the number of
    constraints, and a second evaluation with two batches. The paper does not prove convergence for
    batches.

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
        """Return the solver with the parameters for neural networks in table 2 of the paper.

        kappa and u_max are 1. The paper does not describe how batches are drawn. We assume that
        values and gradients share one batch. If the cells of the constraints contain all rows, as
        with demographic parity, the loss is also estimated on the rows of the cells.

        Returns
        -------
        solver : PladaStochastic
            A solver with these parameters.
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
        """The penalty weight rho of the Lagrangian without the perturbation z."""
        return self.alpha / (1 + self.alpha * self.beta)

    def begin(
        self, problem: StochasticProblem, theta0: FloatArray, multipliers0: FloatArray | None = None
    ) -> PladaState:
        constraints = OneSided(problem)  # the two-sided constraints as rows G <= 0
        values = constraints.values(problem.evaluate(np.asarray(theta0, dtype=np.float64)))
        mu = constraints.split(multipliers0)  # multipliers >= 0 of G, from signed ones
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
        # The point is theta followed by u. u is a view of it: _descend moves theta in place and
        # leaves u alone (its gradient entries are 0), and np.clip then writes the new u into the
        # point.
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
