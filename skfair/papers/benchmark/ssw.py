r"""Stochastic switching subgradient method (SSw): either the objective or the worst constraint.

Algorithm 3 of the paper that compares stochastic solvers, for one-sided constraints G <= 0. Each
step estimates G from a batch. If its largest entry is at most epsilon the step follows the gradient
of the objective, and otherwise the gradient of this entry, each from a fresh batch.

Changed against the paper, which finds no values with which the method both satisfies the
constraints and minimises:

- The two rates are equal and fall like 1 / root of the number of steps. With the printed pair, 0.5
  and 0.05, steps for the objective violate the constraints faster than the others repair them.
- The maximum of noisy estimates is above the maximum of their means, so the method would see
  violations that do not exist. A running mean of the estimates over the batches has less noise.
- Iterates zigzag around the boundary, so their mean is returned, not a random one.

eta_f, eta_c -> ``objective_rate``, ``constraint_rate``; k0 -> ``record_from``; tracked -> running
mean of c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skfair._typing import FloatArray
from skfair.problems.protocol import StochasticProblem
from skfair.solvers.base import SOLVERS
from skfair.solvers.erm.stochastic import StochasticSolver, TrainingState, decay
from skfair.solvers.parameters import CountOrZero, NonNegative, Positive, PositiveOrInf, Share
from skfair.utils.docs import documented
from skfair.utils.rounding import TINY


@dataclass(kw_only=True)
class SSwState(TrainingState):
    """State of a switching subgradient method."""

    tracked: FloatArray  # (n_constraints,): running mean of the constraint values
    # (n_constraints,): sum of the rates of the steps along each constraint, negative for
    # lower bounds
    pulls: FloatArray
    pushes: float = 0.0  # sum of the rates of the steps along the objective
    chosen: FloatArray  # an iterate, drawn in proportion to the rates
    chosen_from: float = 0.0  # sum of the rates of the iterates from which ``chosen`` was drawn


@documented
@SOLVERS.register("ssw")
@dataclass
class SSw(StochasticSolver[SSwState]):
    r"""Stochastic switching subgradient method.

    Parameters
    ----------
    n_loss : int, default=128
        Number of rows per step for the objective.
    n_per_cell : int, default=128
        Number of rows per step for each cell of each constraint.
    max_constraint_rows : int, default=1024
        Maximum number of rows per step for all cells together.
    output : {"best", "last", "random"}, default="best"
        The iterate that is returned. If "best", it is the best evaluation of the second half of the
        run. If "last", it is the last one. If "random", it is drawn in proportion to the learning
        rates, as in the paper.
    objective_rate : float, default=0.5
        First learning rate of the steps along the objective.
    constraint_rate : float, default=0.5
        First learning rate of the steps along a constraint. If it is smaller than
        ``objective_rate``, the constraints are satisfied less closely.
    decay_steps : float, default=100
        Decay of the learning rates, which are divided by ``sqrt(1 + t / decay_steps)`` in step t.
        Pass ``numpy.inf`` for constant learning rates.
    tracking : float, default=0.2
        Weight of a batch in the running mean of the constraint values, in (0, 1]. With 1, only the
        last batch is used, as in the paper.
    epsilon : float, default=1e-4
        Violations up to this value are ignored.
    shrink : float, default=0.97
        Factor by which ``epsilon`` is multiplied in each step from ``shrink_from`` on.
    shrink_from : int, default=500
        First step in which ``epsilon`` is multiplied by ``shrink``. In the paper this starts again
        in each epoch, but a solver has no epochs.
    record_from : int, default=0
        First step whose iterate may be drawn if ``output="random"``.
    max_step : float, default=1.0
        Maximum length of a step. Without it, learning rates that suit most problems would diverge
        if columns of X are nearly the same.

    See Also
    --------
    Ghost : Stochastic ghost method.
    skfair.solvers.ALM : The default for networks.

    Notes
    -----
    Each step costs two evaluations and one gradient of a batch. The multiplier of a constraint is
    estimated by the sum of the learning rates of its steps, divided by the sum for the objective.
    Initial multipliers are not used. With the defaults, 1500 steps end within 1e-2 of the optimum
    and satisfy the constraints to 1e-3 on linear problems like Adult.

    References
    ----------
    Kliachkin, A., Lepsova, J., Bareilles, G. and Marecek, J. "Benchmarking stochastic approximation
    algorithms for fairness-constrained training of deep neural networks", Algorithm 3.

    Examples
    --------
    >>> from skfair.papers.benchmark.ssw import SSw
    >>> solver = SSw.paper()
    >>> solver.objective_rate, solver.constraint_rate, solver.output
    (0.5, 0.05, 'random')
    """

    output: Annotated[str, StrOptions({"best", "last", "random"})] = "best"
    objective_rate: Positive = 0.5
    constraint_rate: Positive = 0.5
    decay_steps: PositiveOrInf = 100.0
    tracking: Share = 0.2
    epsilon: NonNegative = 1e-4
    shrink: Share = 0.97
    shrink_from: CountOrZero = 500
    record_from: CountOrZero = 0
    max_step: PositiveOrInf = 1.0

    @classmethod
    def paper(cls) -> Self:
        """Return the solver with the values of section 4 (batch sizes are not printed there)."""
        return cls(
            averaging=None,
            output="random",
            objective_rate=0.5,
            constraint_rate=0.05,
            decay_steps=np.inf,
            tracking=1.0,
            epsilon=1e-4,
            shrink=0.97,
            shrink_from=500,
            max_step=np.inf,
        )

    def begin(
        self, problem: StochasticProblem, theta0: FloatArray, multipliers0: FloatArray | None = None
    ) -> SSwState:
        state = self._first_state(problem, theta0, None)
        values = problem.evaluate(state.point).constraints.copy()
        return SSwState(
            **vars(state), tracked=values, pulls=np.zeros_like(values), chosen=state.point.copy()
        )

    def _step(
        self,
        problem: StochasticProblem,
        state: SSwState,
        n_per_cell: int,
        rng: np.random.RandomState,
    ) -> None:
        seen = problem.evaluate(state.theta, problem.draw(rng, 0, n_per_cell))
        state.tracked += self.tracking * (seen.constraints - state.tracked)
        excess = state.tracked - np.clip(state.tracked, problem.lower, problem.upper)
        worst = int(np.abs(excess).argmax()) if excess.size else 0
        n_shrinks = max(0, state.n_steps - self.shrink_from)
        is_feasible = not excess.size or abs(excess[worst]) <= self.epsilon * self.shrink**n_shrinks
        left = decay(state.n_steps, self.decay_steps)
        if is_feasible:
            rate = left * self.objective_rate
            at = problem.evaluate(state.theta, problem.draw(rng, self.n_loss, 0))
            gradient = at.gradient()
            state.pushes += rate
        else:
            rate = left * self.constraint_rate
            unit = np.zeros(excess.size)
            unit[worst] = np.sign(excess[worst])
            at = problem.evaluate(state.theta, problem.draw(rng, 0, n_per_cell))
            gradient = at.gradient(unit, objective=0.0)
            state.pulls += rate * unit
        if self.output == "random" and state.n_steps > self.record_from:
            state.chosen_from += rate
            if rng.random_sample() * state.chosen_from < rate:
                state.chosen = state.point.copy()
        length = rate * float(np.linalg.norm(gradient))
        state.point -= (rate * min(1.0, self.max_step / max(length, TINY))) * gradient
        if state.pushes:
            state.multipliers[:] = state.pulls / state.pushes

    def _candidate(self, state: SSwState) -> FloatArray:
        return state.chosen.copy() if self.output == "random" else state.solution
