"""The base of stochastic solvers: all that they share, except for the step itself.

A subclass implements ``_step``, which moves a :class:`TrainingState` by one batch of rows. It draws
``n_loss`` rows for the objective and equally many for each cell of the constraints, as in section 4
of the paper of :class:`~skfair.solvers.erm.alm.ALM`. Estimators call ``solve`` for a whole
training. For streams they call ``begin`` once, which returns a state, and ``advance`` for each
part, which may have new rows.

The result of ``solve`` is not the last iterate, as in the paper, because single iterates of a
stochastic method come near good points and leave them again. The solvers keep a weighted mean of
the iterates, and *check* it on all rows five times per run. The result is the best check of the
second half of the run: the one with the smallest violation beyond ``tolerance``, and among equals
with the smallest objective. In the first half a point may satisfy the constraints only because it
has learned nothing (theta = 0 treats everybody in the same way).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Generic, Literal, TypeVar, cast

import numpy as np
from sklearn.utils._param_validation import StrOptions

from skfair._typing import FloatArray
from skfair.problems.protocol import Evaluation, Offer, StochasticProblem
from skfair.solvers.base import Answer, IterativeSolver, Run, Step
from skfair.solvers.parameters import Count, NonNegative, Positive, PositiveOrInf, check_parameters
from skfair.utils.docs import documented

# Checks per run unless ``check_every`` says otherwise. Each one is a pass over all rows.
_CHECKS = 5


class Adam:
    """Adam steps: gradients divided by the root of a running mean of their squares.

    Parameters
    ----------
    n_parameters : int
        Length of the points that are moved.
    decay1, decay2 : float
        Weights of the past in the running means of gradients and of their squares.
    epsilon : float
        Keeps the division defined.

    Examples
    --------
    The first step has the length of the rate, whatever the gradient:

    >>> import numpy as np
    >>> from skfair.solvers.erm.stochastic import Adam
    >>> point = np.zeros(2)
    >>> Adam(2).step(point, np.array([3.0, -0.001]), 0.01)
    >>> point.round(4)
    array([-0.01,  0.01])
    """

    def __init__(
        self, n_parameters: int, decay1: float = 0.9, decay2: float = 0.999, epsilon: float = 1e-8
    ) -> None:
        self.decay1, self.decay2, self.epsilon = decay1, decay2, epsilon
        self.first = np.zeros(n_parameters)
        self.second = np.zeros(n_parameters)
        self.n_steps = 0

    def step(self, point: FloatArray, gradient: FloatArray, rate: float) -> None:
        """Move ``point`` in place."""
        from skfair._kernels.adam import adam_step

        self.n_steps += 1
        # Both running means start at 0, which dividing by 1 - decay^t corrects.
        unbias = 1 / math.sqrt(1 - self.decay2**self.n_steps)
        rate /= 1 - self.decay1**self.n_steps
        means = self.first, self.second
        decays = self.decay1, self.decay2
        adam_step(point, gradient, *means, *decays, self.epsilon, rate, unbias)


@dataclass(kw_only=True)
class TrainingState:
    """All that training needs to go on, later or elsewhere: it can be pickled.

    It does not hold the problem, so rows may be replaced by others with the same constraints.
    """

    # (n_parameters + n_slacks,): the parameters, and then the slack variables of algorithms
    # that have them
    point: FloatArray
    multipliers: FloatArray  # (n_constraints,): signed multipliers
    # Weighted means of the points and of the multipliers so far; None if iterates are not averaged
    average: FloatArray | None
    average_multipliers: FloatArray | None
    n_slacks: int = 0  # number of slack variables
    n_steps: int = 0  # steps so far
    adam: Adam | None = None  # makes the steps; None for plain gradient steps

    @property
    def theta(self) -> FloatArray:
        """The current parameters, a view of ``point``."""
        return self.point[: self.point.size - self.n_slacks]

    @property
    def solution(self) -> FloatArray:
        """The parameters to predict with: the averaged ones, if there are any; a copy."""
        best = self.point if self.average is None else self.average
        return best[: best.size - self.n_slacks].copy()

    @property
    def solution_multipliers(self) -> FloatArray:
        """The multipliers that belong to :attr:`solution`; a copy."""
        averaged = self.average_multipliers
        return (self.multipliers if averaged is None else averaged).copy()


S = TypeVar("S", bound=TrainingState)


@dataclass
class StochasticSolver(IterativeSolver[StochasticProblem], Generic[S]):
    """Base of the stochastic solvers; the module says what they share.

    Parameters
    ----------
    n_loss : int, default=128
        Number of rows per step for the objective. With more rows, the steps are less noisy and
        slower.
    n_per_cell : int, default=128
        Number of rows per step for each cell of each constraint. A cell is a group, or a class
        within a group.
    max_constraint_rows : int, default=1024
        Maximum number of rows per step for all cells together. With many cells, fewer rows are
        drawn for each cell, but at least one.
    averaging : float or None, default=3.0
        Exponent of the weights in the average of the iterates that is returned. The iterate of step
        t has a weight proportional to t to this power, so larger values forget the first steps
        sooner. If None, the iterates are not averaged.
    check_every : int, default=None
        Number of steps between evaluations on all rows. If None, there are five evaluations per
        run.
    tolerance : float, default=1e-3
        Violations up to this value are ignored in the comparison of the evaluations.
    output : {"best", "last"}, default="best"
        The iterate that is returned. If "best", it is the best evaluation of the second half of the
        run. If "last", it is the last one.
    """

    n_loss: Count = 128
    n_per_cell: Count = 128
    max_constraint_rows: Count = 1024
    averaging: NonNegative | None = 3.0
    check_every: Count | None = None
    tolerance: NonNegative = 1e-3
    output: Annotated[str, StrOptions({"best", "last"})] = "best"

    needs: ClassVar[tuple[Offer, ...]] = ("draw",)
    is_stochastic: ClassVar[bool] = True
    can_advance: ClassVar[bool] = True
    default_tol: ClassVar[float] = 1e-3
    default_max_iter: ClassVar[int] = 1500

    def __post_init__(self) -> None:
        check_parameters(self)

    def begin(
        self, problem: StochasticProblem, theta0: FloatArray, multipliers0: FloatArray | None = None
    ) -> S:
        """Return the initial state of the training.

        Parameters
        ----------
        problem : StochasticProblem
            The problem to solve.
        theta0 : ndarray of shape (n_parameters,)
            Initial parameters.
        multipliers0 : ndarray of shape (n_constraints,), default=None
            Initial multipliers. If None, they are zero.

        Returns
        -------
        state : TrainingState
            The state for :meth:`advance`.
        """
        return cast(S, self._first_state(problem, theta0, multipliers0))

    def advance(
        self, problem: StochasticProblem, state: S, n_steps: int, rng: np.random.RandomState
    ) -> None:
        """Make several steps of the training.

        Parameters
        ----------
        problem : StochasticProblem
            The problem of :meth:`begin`, or a problem with the same parameters and constraints on
            other rows.
        state : TrainingState
            The state from :meth:`begin`, which is changed in place.
        n_steps : int
            Number of steps.
        rng : RandomState
            Random number generator that draws the rows.
        """
        most = self.max_constraint_rows // max(problem.n_cells, 1)
        n_per_cell = max(1, min(self.n_per_cell, most))  # rows of each cell that a step draws
        for _ in range(n_steps):
            state.n_steps += 1
            self._step(problem, state, n_per_cell, rng)
            averaged = state.average_multipliers
            if self.averaging is not None and state.average is not None and averaged is not None:
                # Weights proportional to t^a: mean += (a + 1) / (t + a) * (x - mean).
                weight = (self.averaging + 1) / (self.averaging + state.n_steps)
                state.average += weight * (state.point - state.average)
                averaged += weight * (state.multipliers - averaged)

    def steps(self, problem: StochasticProblem, run: Run) -> Iterator[Step]:
        # Each yield is a check on all rows. ``tol`` does not end the run: it only decides whether
        # the result counts as converged.
        if run.max_iter < 1:
            raise ValueError(f"max_iter must be at least 1, got {run.max_iter}.")
        state = self.begin(problem, run.start, run.multipliers)
        every = self.check_every or -(-run.max_iter // _CHECKS)
        best_rank = (np.inf, np.inf)

        def answer() -> Answer:
            return Answer(best.at, self._final_multipliers(problem, *best))

        while state.n_steps < run.max_iter:
            self.advance(problem, state, min(every, run.max_iter - state.n_steps), run.rng)
            at = problem.evaluate(self._candidate(state))
            is_late = 2 * state.n_steps > run.max_iter and np.isfinite(at.objective)
            rank = self._rank(problem, at) if is_late else (np.inf, np.inf)
            # In the first half all ranks are infinite, so that the latest check is kept.
            if self.output != "best" or rank <= best_rank:
                best, best_rank = Answer(at, state.solution_multipliers), rank
            yield Step(at, state.multipliers, state.n_steps, answer=answer)

    @abstractmethod
    def _step(
        self, problem: StochasticProblem, state: S, n_per_cell: int, rng: np.random.RandomState
    ) -> None:
        """Make one step in place. Its number is ``state.n_steps``, counted from 1."""

    def _candidate(self, state: S) -> FloatArray:
        """Return the parameters that are checked."""
        return state.solution

    def _rank(self, problem: StochasticProblem, at: Evaluation) -> tuple[float, float]:
        """Return the key by which checks are compared; the smallest is best."""
        return max(problem.violation(at) - self.tolerance, 0.0), at.objective

    def _final_multipliers(
        self, problem: StochasticProblem, at: Evaluation, multipliers: FloatArray
    ) -> FloatArray:
        """Return the multipliers of the result, given those of the state at the check."""
        return multipliers

    def _first_state(
        self,
        problem: StochasticProblem,
        theta0: FloatArray,
        multipliers0: FloatArray | None,
        slacks: FloatArray | None = None,
    ) -> TrainingState:
        """Return a state at the start, with slack variables for algorithms that have them."""
        slacks = np.empty(0) if slacks is None else slacks
        point = np.concatenate([np.asarray(theta0, dtype=np.float64), slacks])
        start = np.zeros(problem.n_constraints) if multipliers0 is None else multipliers0
        multipliers = np.array(start, dtype=np.float64)
        is_averaged = self.averaging is not None
        return TrainingState(
            point=point,
            multipliers=multipliers,
            average=point.copy() if is_averaged else None,
            average_multipliers=multipliers.copy() if is_averaged else None,
            n_slacks=slacks.size,
            adam=self._adam(point.size),
        )

    def _adam(self, n_parameters: int) -> Adam | None:
        """Return the object that makes Adam steps; None for solvers with steps of their own."""
        return None


def decay(step: int, decay_steps: float) -> float:
    """Return the share of the first rate that is left at a step, counted from 1."""
    return 1 / math.sqrt(1 + (step - 1) / decay_steps)


@documented
@dataclass
class GradientSolver(StochasticSolver[S]):
    """Base of the stochastic solvers that follow the gradient of one function.

    Parameters
    ----------
    learning_rate : float, default=0.01
        Learning rate of the first step.
    decay_steps : float, default=100
        Decay of the learning rate, which is ``learning_rate / sqrt(1 + t / decay_steps)`` in step
        t. Pass ``numpy.inf`` for a constant learning rate.
    optimizer : {"adam", "sgd"}, default="adam"
        Kind of the steps. If "adam", they are scaled by Adam. If "sgd", they are plain gradient
        steps.
    """

    learning_rate: Positive = 0.01
    decay_steps: PositiveOrInf = 100.0
    optimizer: Literal["adam", "sgd"] = "adam"

    def _adam(self, n_parameters: int) -> Adam | None:
        return Adam(n_parameters) if self.optimizer == "adam" else None

    def _descend(self, state: TrainingState, gradient: FloatArray) -> None:
        """Move the point along the negative gradient."""
        rate = self.learning_rate * decay(state.n_steps, self.decay_steps)
        if state.adam is None:
            state.point -= rate * gradient
        else:
            state.adam.step(state.point, gradient, rate)
