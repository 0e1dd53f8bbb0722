r"""The interface between solvers and problems, as types.

A problem is

.. math:: \min_\theta F(\theta) \quad \text{subject to} \quad l \le c(\theta) \le u

and is asked at a point: ``at = problem.evaluate(theta)`` has the values, and ``at.gradient(nu)``,
``at.jacobian()`` and, where there is one, ``at.hessian(nu)`` the derivatives. Multipliers ``nu``
are signed: positive where the upper bound presses, negative where the lower one does.

Values and first derivatives are there for every problem. Methods that only some have are listed in
``offers``, and solvers list in ``needs`` what they cannot do without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np

from skfair._typing import FloatArray, IntArray

# Second derivatives; products with them that take less than the matrix; random batches of rows; the
# same problem on some of the rows.
Offer = Literal["hessian", "products", "draw", "on_rows"]


# A matrix times a vector.
Product = Callable[[FloatArray], FloatArray]


class Evaluation(Protocol):
    """A problem at a point."""

    @property
    def theta(self) -> FloatArray:
        """The point, (n_parameters,)."""

    @property
    def objective(self) -> float:
        """F."""

    @property
    def constraints(self) -> FloatArray:
        """c, (n_constraints,)."""

    def gradient(
        self, multipliers: FloatArray | None = None, *, objective: float = 1.0
    ) -> FloatArray:
        """Return objective * grad F + sum of multipliers * grad c: one pull-back."""

    def jacobian(self, which: IntArray | None = None) -> FloatArray:
        """Return the gradients of some constraints (all if None), (n_which, n_parameters)."""


class CurvedEvaluation(Evaluation, Protocol):
    """A twice differentiable problem at a point."""

    def hessian(self, multipliers: FloatArray) -> FloatArray:
        """Return the second derivative of the Lagrangian, (n_parameters, n_parameters)."""

    def hessian_product(self, multipliers: FloatArray) -> tuple[Product, FloatArray]:
        """Return the same as a function, and a positive diagonal that is about its own."""


class Problem(Protocol):
    """An objective and constraints between bounds."""

    # (n_constraints,): bounds, which may be infinite
    lower: FloatArray
    upper: FloatArray

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""

    @property
    def n_constraints(self) -> int:
        """Number of constraints."""

    @property
    def offers(self) -> frozenset[Offer]:
        """Methods that it has in addition to values and first derivatives."""

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Return the problem at a point: one pass through the model."""

    def violation(self, at: Evaluation) -> float:
        """Return by how much the worst constraint is missed."""

    def kkt_residual(self, at: Evaluation, multipliers: FloatArray) -> dict[str, float]:
        """Return how far a point is from the first-order conditions."""

    def bounded(self, lower: FloatArray | None = None, upper: FloatArray | None = None) -> Self:
        """Return the problem with other bounds."""


class TwiceDifferentiable(Problem, Protocol):
    """A problem that offers ``hessian``."""

    @property
    def n_rows(self) -> int:
        """Number of rows that an evaluation sees."""

    def evaluate(self, theta: FloatArray) -> CurvedEvaluation:
        """Return the problem at a point."""

    def sampled(self, draw: int = 0) -> Self | None:
        """Return the problem on a sample of its rows; None if that would say too little."""


class Batch(NamedTuple):
    """Some rows and what they stand for."""

    rows: IntArray | None  # (n_batch,): row numbers; None for all rows
    # (n_batch,): weights of the rows in the mean loss; they add up to 1, or are all 0
    loss_weights: FloatArray
    # (n_batch,): for each constraint, weights of the rows in the mean of their cell
    cell_weights: list[FloatArray]


class StochasticProblem(Problem, Protocol):
    """A problem that offers ``draw``: it can be evaluated on random batches of its rows."""

    @property
    def n_cells(self) -> int:
        """Number of cells of all constraints, for each of which a batch has rows."""

    def draw(
        self,
        rng: np.random.RandomState,
        n_loss: int,
        n_per_cell: int,
        constraint: int | None = None,
    ) -> Batch:
        """Draw rows for the objective, and equally many rows for every cell of every constraint.

        With a ``constraint`` rows are drawn for its cells only: no other value means anything.
        """

    def evaluate(self, theta: FloatArray, batch: Batch | None = None) -> Evaluation:
        """Return the problem at a point, on all rows or on those of a batch."""
