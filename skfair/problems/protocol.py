r"""The interface between solvers and problems, as types.

A problem is

.. math:: \min_\theta F(\theta) \quad \text{subject to} \quad l \le c(\theta) \le u

A solver evaluates it at a point: ``at = problem.evaluate(theta)`` has the values F and c. The
derivatives are ``at.gradient(nu)``, ``at.jacobian()`` and, for some problems, ``at.hessian(nu)``.
Multipliers ``nu``, one per constraint, are signed: positive if the upper bound is active, negative
if the lower one is, and 0 if neither is.

Every problem has values and first derivatives. Methods that only some have are listed in
``offers``, and a solver lists in ``needs`` what it cannot do without
(:func:`skfair.solvers.base.check_needs` compares both). The classes here are types only: problems
inherit from :class:`skfair.problems.base.TwoSidedProblem`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np

from skfair._typing import FloatArray, IntArray

# What a problem may offer:
# - "hessian": second derivatives as a matrix
# - "products": products with this matrix, for less than the matrix costs
# - "draw": random batches of rows
# - "on_rows": the same problem on some of its rows
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
        """The objective F."""

    @property
    def constraints(self) -> FloatArray:
        """The values c of the constraints, (n_constraints,)."""

    def gradient(
        self, multipliers: FloatArray | None = None, *, objective: float = 1.0
    ) -> FloatArray:
        """Return objective * grad F + sum of multipliers * grad c, in one pass.

        If there are no multipliers, the second part is 0.
        """

    def jacobian(self, which: IntArray | None = None) -> FloatArray:
        """Return the gradients of the constraints ``which``, or of all, one in each line."""


class CurvedEvaluation(Evaluation, Protocol):
    """A twice differentiable problem at a point."""

    def hessian(self, multipliers: FloatArray) -> FloatArray:
        """Return the second derivative of the Lagrangian, (n_parameters, n_parameters)."""

    def hessian_product(self, multipliers: FloatArray) -> tuple[Product, FloatArray]:
        """Return the product of :meth:`hessian` with a vector, as a function of the vector.

        The second result is a positive approximation of its diagonal, for preconditioning.
        """


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
        """What the problem has in addition to values and first derivatives."""

    def evaluate(self, theta: FloatArray) -> Evaluation:
        """Return the problem at a point: one pass through the model."""

    def violation(self, at: Evaluation) -> float:
        """Return the largest distance of a constraint beyond its bound."""

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
        """Return the problem on a sample of its rows; None if it has too few rows for that.

        ``draw`` numbers the samples: another number is another sample.
        """


class Batch(NamedTuple):
    """Rows of a stochastic step, and their weights in the objective and in the constraints."""

    rows: IntArray | None  # (n_batch,): row numbers; None for all rows
    # (n_batch,): weights of the rows in the mean loss; they add up to 1, or are all 0
    loss_weights: FloatArray
    # One array (n_batch,) per constraint: weights of the rows in the mean of their cell
    cell_weights: list[FloatArray]


class StochasticProblem(Problem, Protocol):
    """A problem that offers ``draw``: it can be evaluated on random batches of its rows."""

    @property
    def n_cells(self) -> int:
        """Number of cells of all constraints; a batch has rows of each.

        A cell holds the rows over which a constraint averages, such as the positives of a group.
        """

    def draw(
        self,
        rng: np.random.RandomState,
        n_loss: int,  # number of rows for the objective
        n_per_cell: int,  # number of rows for each cell
        constraint: int | None = None,
    ) -> Batch:
        """Draw rows for the objective, and equally many rows for every cell of every constraint.

        If the number of a ``constraint`` is given, rows are drawn for its cells only, and the
        values of the other constraints on this batch mean nothing.
        """

    def evaluate(self, theta: FloatArray, batch: Batch | None = None) -> Evaluation:
        """Return the problem at a point, on all rows or on those of a batch."""
