r"""Multipliers as a function of a description: the Lagrangian game with a multiplier model.

With very many constraints each has few rows, and its own multiplier learns slowly. Here a network
psi gives the multiplier of every constraint from a description t of it,

.. math:: \lambda_g(\psi) = |\text{net}_\psi(t_g)|,

so similar constraints learn from each other. A step draws ONE constraint g and one batch:

.. math::
   \theta: \; F(\theta) + \lambda_g(\psi) \, G_g(\theta) \to \min, \qquad
   \psi: \; \lambda_g(\psi) \, G_g(\theta) \to \max

Each player moves by Adagrad along the gradient of its own function. Constraints are one-sided,
G(theta) <= 0. Every g is drawn with the same probability, so on average theta moves as if the
multipliers were lambda_g / number of constraints, and these are reported.

Differences from the authors' code:

- The constraint that psi sees is the smooth one, as for theta. In the paper it is the 0/1 error.
- A description is optional: without one each constraint is described by its number (one-hot).
- ``dual_scale`` is 1 and the averaged iterate is returned; ``MultiplierModel.paper()`` has the
  printed 0.01, at which psi needs tens of thousands of steps, and the last iterate.

psi -> parameters of the network; lam -> multiplier of the drawn constraint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

import numpy as np

from skfair._typing import FloatArray
from skfair.papers.one_sided import OneSided
from skfair.problems.protocol import StochasticProblem
from skfair.solvers.base import SOLVERS
from skfair.solvers.erm.stochastic import StochasticSolver, TrainingState
from skfair.solvers.parameters import Positive
from skfair.utils.validation import check_layers

# Adagrad starts from this sum of squares, as in the library that the authors' code uses.
_FIRST_SQUARES = 0.1


class Adagrad:
    """Adagrad steps: gradients divided by the root of the sum of their squares so far.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.papers.plada.multiplier_model import Adagrad
    >>> point = np.zeros(2)
    >>> Adagrad(2).step(point, np.array([1.0, 0.0]), rate=0.1)
    >>> point.round(3)
    array([-0.095,  0.   ])
    """

    def __init__(self, n_parameters: int) -> None:
        self.squares = np.full(n_parameters, _FIRST_SQUARES)

    def step(self, point: FloatArray, gradient: FloatArray, rate: float) -> None:
        """Move ``point`` in place, against the gradient."""
        self.squares += gradient**2
        point -= rate * gradient / np.sqrt(self.squares)


class MultiplierNetwork:
    """Multipliers of constraints, at least 0, from their descriptions.

    Parameters
    ----------
    n_inputs : int
        Length of a description.
    hidden : sequence of int
        Sizes of the hidden layers of rectified linear units.
    rng : RandomState
        Draws the weights; intercepts are 0, that of the output 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.papers.plada.multiplier_model import MultiplierNetwork
    >>> network = MultiplierNetwork(3, (4,), np.random.RandomState(0))
    >>> network.with_gradient(np.zeros(3))[0]
    1.0
    """

    def __init__(self, n_inputs: int, hidden: Sequence[int], rng: np.random.RandomState) -> None:
        self._sizes = (n_inputs, *hidden, 1)
        self.psi = np.zeros(sum((a + 1) * b for a, b in pairwise(self._sizes)))
        for weights, _ in self._layers(self.psi):
            bound = np.sqrt(6 / sum(weights.shape))
            weights[:] = rng.uniform(-bound, bound, weights.shape)
        self.psi[-1] = 1.0

    def with_gradient(self, description: FloatArray) -> tuple[float, FloatArray]:
        """Return the multiplier of one description, and its gradient by psi."""
        layers = self._layers(self.psi)
        inputs = [description]
        for weights, intercepts in layers[:-1]:
            inputs.append(np.maximum(inputs[-1] @ weights + intercepts, 0.0))
        weights, intercepts = layers[-1]
        output = float(inputs[-1] @ weights[:, 0] + intercepts[0])
        gradient = np.zeros(self.psi.size)
        slopes = np.array([np.sign(output)])  # derivatives by the outputs of the last layer
        backwards = zip(layers, self._layers(gradient), inputs, strict=True)
        for (weights, _), (of_weights, of_intercepts), values in reversed(list(backwards)):
            of_weights[:] = values[:, None] * slopes
            of_intercepts[:] = slopes
            slopes = (weights @ slopes) * (values > 0)
        return abs(output), gradient

    def _layers(self, flat: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Return views of the weights (fan_in, fan_out) and intercepts of each layer."""
        shapes = list(pairwise(self._sizes))
        ends = np.cumsum([size for a, b in shapes for size in (a * b, b)])
        parts = iter(np.split(flat, ends[:-1]))
        return [(next(parts).reshape(shape), next(parts)) for shape in shapes]


class _Rival:
    """The player that sets the multipliers.

    ``seen`` holds the last multiplier of each one-sided constraint that was drawn, 0 before.
    """

    def __init__(
        self, described: FloatArray, hidden: Sequence[int], rng: np.random.RandomState
    ) -> None:
        self.described = described
        self.network = MultiplierNetwork(described.shape[1] + 1, hidden, rng)
        self.mover = Adagrad(self.network.psi.size)
        self.seen = np.zeros(2 * described.shape[0])


@dataclass(kw_only=True)
class GameState(TrainingState):
    """State of the game.

    Attributes
    ----------
    mover : Adagrad
        Makes the steps of theta.
    rival : _Rival or None
        The other player; drawn in the first step.
    """

    mover: Adagrad
    rival: _Rival | None = None


@SOLVERS.register("multiplier_model")
@dataclass
class MultiplierModel(StochasticSolver[GameState]):
    r"""Lagrangian game whose multipliers are the outputs of a network.

    Parameters
    ----------
    n_loss : int, default=128
        Number of rows per step for the objective.
    n_per_cell : int, default=128
        Number of rows per step for each cell of the constraint that is drawn.
    max_constraint_rows : int, default=1024
        Not used, because a single constraint has few cells.
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
    learning_rate : float, default=0.1
        Learning rate of the Adagrad steps of both players.
    dual_scale : float, default=1.0
        Factor of the gradient of the network. Smaller values slow down its first steps.
    hidden_layer_sizes : tuple of int, default=(100, 100, 100)
        Sizes of the hidden layers of the network.
    descriptions : ndarray of shape (n_constraints, n_inputs) or None, default=None
        Inputs of the network for each constraint, in the order of ``multipliers_``. If None, the
        number of the constraint is used. The network always knows if it is asked for the upper or
        the lower bound.

    See Also
    --------
    skfair.solvers.ALM : Method with one multiplier per constraint, which updates all in each step.

    Notes
    -----
    A step costs one evaluation and one gradient of ``n_loss`` rows and of the rows of a few cells,
    regardless of the number of constraints. Each constraint is visited every n_constraints steps on
    average.

    References
    ----------
    Narasimhan, H., Cotter, A., Zhou, Y., Wang, S. and Guo, W. "Approximate heavily-constrained
    learning with Lagrange multiplier models", NeurIPS 2020.

    Examples
    --------
    >>> from skfair.papers.plada.multiplier_model import MultiplierModel
    >>> MultiplierModel().dual_scale, MultiplierModel.paper().dual_scale
    (1.0, 0.01)
    """

    learning_rate: Positive = 0.1
    dual_scale: Positive = 1.0
    hidden_layer_sizes: tuple[int, ...] = (100, 100, 100)
    descriptions: FloatArray | None = field(default=None, compare=False)

    @classmethod
    def paper(cls) -> Self:
        """Return the solver with the values of the authors' code."""
        return cls(averaging=None, output="last", dual_scale=0.01)

    def begin(
        self, problem: StochasticProblem, theta0: FloatArray, multipliers0: FloatArray | None = None
    ) -> GameState:
        # The network gives the multipliers, so the caller's multipliers are not used.
        state = self._first_state(problem, theta0, None)
        return GameState(**vars(state), mover=Adagrad(state.point.size))

    def _step(
        self,
        problem: StochasticProblem,
        state: GameState,
        n_per_cell: int,
        rng: np.random.RandomState,
    ) -> None:
        constraints = OneSided(problem)
        if not constraints.n:
            at = problem.evaluate(state.theta, problem.draw(rng, self.n_loss, 0))
            state.mover.step(state.point, at.gradient(), self.learning_rate)
            return
        if state.rival is None:
            layers = check_layers(self.hidden_layer_sizes, "hidden_layer_sizes")
            state.rival = _Rival(self._described(problem), layers, rng)
        row = rng.randint(constraints.n)
        unit = constraints.unit(row)  # 1 (upper bound) or -1 (lower bound) at the drawn constraint
        drawn = int(np.flatnonzero(unit)[0])
        batch = problem.draw(rng, self.n_loss, self.n_per_cell, drawn)
        at = problem.evaluate(state.theta, batch)
        rival = state.rival
        lam, slopes = rival.network.with_gradient(np.append(rival.described[drawn], unit[drawn]))
        value = float(constraints.values(at)[row])
        state.mover.step(state.point, at.gradient(lam * unit), self.learning_rate)
        ascent = -self.dual_scale * value * slopes
        rival.mover.step(rival.network.psi, ascent, self.learning_rate)
        # ``signed`` joins the last multipliers of the upper and lower bound of each constraint.
        rival.seen[row] = lam
        state.multipliers[:] = constraints.signed(rival.seen[: constraints.n] / constraints.n)

    def _described(self, problem: StochasticProblem) -> FloatArray:
        """Return the descriptions of the constraints, checked."""
        if self.descriptions is None:
            return np.eye(problem.n_constraints)
        own = np.asarray(self.descriptions, dtype=np.float64)
        if own.ndim != 2 or own.shape[0] != problem.n_constraints:
            raise ValueError(
                f"descriptions has the shape {own.shape}, and the problem has "
                f"{problem.n_constraints} constraints. Pass one row per constraint."
            )
        return own
