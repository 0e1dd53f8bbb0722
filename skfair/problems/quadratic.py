r"""Quadratic objectives under linear constraints: one look at a problem says all there is to know.

.. math:: F(\theta) = F_0 + g'\theta + \tfrac12 \theta' H \theta, \qquad c(\theta) = c_0 + J \theta

Squared errors of linear scores with limits on mean scores are such a problem. The coefficients take
the place of the rows, so that a solve under other limits costs a few products of the size of the
parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.problems.base import TwoSidedProblem
from skfair.problems.protocol import Offer, Product, TwiceDifferentiable


@dataclass(eq=False)
class QuadraticEvaluation:
    """The problem at a point."""

    theta: FloatArray
    objective: float
    constraints: FloatArray  # (n_constraints,)
    slope: FloatArray  # (n_parameters,): gradient of the objective
    curvature: FloatArray  # (n_parameters, n_parameters)
    slopes: FloatArray  # (n_constraints, n_parameters)

    def gradient(
        self, multipliers: FloatArray | None = None, *, objective: float = 1.0
    ) -> FloatArray:
        """Return objective * grad F + sum of multipliers * grad c."""
        gradient = objective * self.slope
        return gradient if multipliers is None else gradient + multipliers @ self.slopes

    def jacobian(self, which: IntArray | None = None) -> FloatArray:
        """Return the gradients of some constraints (all if None), (n_which, n_parameters)."""
        return self.slopes if which is None else self.slopes[which]

    def hessian(self, multipliers: FloatArray) -> FloatArray:
        """Return the second derivative of the Lagrangian, which is that of the objective."""
        return self.curvature.copy()

    def hessian_product(self, multipliers: FloatArray) -> tuple[Product, FloatArray]:
        """Return the same as a function, and its diagonal."""
        return lambda vector: self.curvature @ vector, np.diag(self.curvature).copy()


class QuadraticProblem(TwoSidedProblem):
    """A problem by its coefficients."""

    offers: ClassVar[frozenset[Offer]] = frozenset({"hessian"})

    def __init__(
        self,
        problem: TwiceDifferentiable,  # quadratic, with linear constraints
    ) -> None:
        self.n_parameters, self.n_constraints = problem.n_parameters, problem.n_constraints
        self.n_rows, self.lower, self.upper = problem.n_rows, problem.lower, problem.upper
        at = problem.evaluate(np.zeros(self.n_parameters))
        self._objective, self._gradient, self._constraints = (
            at.objective,
            at.gradient(),
            at.constraints,
        )
        self._hessian, self._jacobian = at.hessian(np.zeros(self.n_constraints)), at.jacobian()

    def sampled(self) -> None:
        """Return nothing: there are no rows to take a part of."""

    def evaluate(self, theta: FloatArray) -> QuadraticEvaluation:
        """Return the problem at a point."""
        bent = self._hessian @ theta
        return QuadraticEvaluation(
            theta=theta.copy(),
            objective=self._objective + float((self._gradient + 0.5 * bent) @ theta),
            constraints=self._constraints + self._jacobian @ theta,
            slope=self._gradient + bent,
            curvature=self._hessian,
            slopes=self._jacobian,
        )
