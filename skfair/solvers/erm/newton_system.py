r"""Newton steps of an augmented Lagrangian, from its second derivative as a matrix or as products.

The system is M = H + rho J'J, with H the second derivative of the Lagrangian and J the gradients of
the active constraints. :class:`FactorisedSystem` makes the matrix and factorises it.
:class:`ProductSystem` asks for products with it, two passes over the rows for each step of
conjugate gradients: less work where columns are many and sparse, and no matrix to keep.

Where M is not positive definite, a multiple of the identity is added to the matrix. Near a
solution M often lacks that only along the active constraints. There a larger penalty weight is
tried first, which does not change the joint step. Conjugate gradients end where they meet a
curvature that is not positive, and what they have found so far leads downhill. Only if the first
curvature is not positive have they found nothing; then the identity is added here, too.

The joint step of parameters and multipliers makes the active constraints, linearised, hold exactly:
H d + J' delta = -gradient and J d = -missed, where missed = c - b is how far the constraints are
from their bounds. :mod:`skfair.solvers.erm.al_newton` makes a system at each point and asks it for
steps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from skfair._typing import FloatArray
from skfair.problems.protocol import CurvedEvaluation, Product

# Curvatures below this are taken for it, so that nothing overflows.
_FLAT = 1e-100
# Factors on the penalty weight in the second derivative, near a solution.
_STEEPER = (1.0, 10.0, 100.0, 1000.0)
# Largest number of steps of conjugate gradients, which may end before they are exact.
_MOST_STEPS = 500
# Relative errors below this are rounding, which steps of conjugate gradients would follow.
_LEAST_ERROR = 1e-8


class NewtonSystem(ABC):
    """The second derivative of the augmented Lagrangian at a point, made positive definite."""

    def __init__(
        self,
        at: CurvedEvaluation,
        nu: FloatArray,  # multipliers that the gradient sees
        gradient: FloatArray,
        rho: float,
        shift: float,  # what was added to the diagonal last
        *,
        is_near: bool,
        error: float,  # the relative error that a step may have
    ) -> None:
        self.gradient, self.first_rho, self.last_shift = gradient, rho, shift
        self.is_near, self.error = is_near, max(error, _LEAST_ERROR)
        self.active = np.flatnonzero(nu)
        self.nu = nu[self.active]
        self.jacobian = np.empty((0, gradient.size))
        if self.active.size:
            self.jacobian = at.jacobian(self.active)  # (n_active, n_parameters)
        self.rho, self.shift = rho, 0.0
        self._prepare(at, nu)

    @abstractmethod
    def _prepare(self, at: CurvedEvaluation, nu: FloatArray) -> None:
        """Ask for the second derivative."""

    @abstractmethod
    def step(self) -> FloatArray:
        """Return the Newton step of the parameters: -M^-1 gradient."""

    @abstractmethod
    def joint_step(self, missed: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the joint step of parameters, and the active multipliers; None if there is none.

        ``missed`` is c - b of the active constraints.
        """

    def _first_shift(self) -> None:
        self.shift = 0.0 if self.last_shift <= 1e-6 else 0.25 * self.last_shift

    def _next_shift(self) -> None:
        self.shift = max(4 * self.shift, 1e-3)


class FactorisedSystem(NewtonSystem):
    """The matrix and its factors."""

    def _prepare(self, at: CurvedEvaluation, nu: FloatArray) -> None:
        self._hessian = at.hessian(nu)
        if self.active.size:
            self._along = self.jacobian.T @ self.jacobian
            self._hessian += self.rho * self._along
        self._make_definite()

    def step(self) -> FloatArray:
        return -self._solve(self.gradient)

    def joint_step(self, missed: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        d = self.step()
        if not self.active.size:
            return d, self.nu
        pulled = self._solve(self.jacobian.T)  # M^-1 J'
        try:
            # M d = H d - rho J' missed, because J d = -missed: so delta = change - rho missed.
            change = np.linalg.solve(self.jacobian @ pulled, missed + self.jacobian @ d)
        except np.linalg.LinAlgError:
            return None
        return d - pulled @ change, self.nu - self.rho * missed + change

    def _make_definite(self) -> None:
        """Try penalty weights and shifts until the matrix is positive definite."""
        # A step that was too bold left a shift: without it the next one would be as bold.
        self._first_shift()
        if self.is_near and self.active.size:
            for factor in _STEEPER:
                self.rho = factor * self.first_rho
                if self._is_definite():
                    return
            self.rho = self.first_rho
        while not self._is_definite():
            self._next_shift()

    def _is_definite(self) -> bool:
        """Factorise with the present penalty weight and shift, if it can be done."""
        matrix = self._hessian.copy()
        if self.rho != self.first_rho:
            matrix += (self.rho - self.first_rho) * self._along
        diagonal = np.einsum("ii->i", matrix)  # a view
        diagonal += self.shift
        # Parameters of very different curvature are scaled before the factorisation.
        self._unit = 1 / np.sqrt(_lifted(np.abs(diagonal)))
        matrix *= np.outer(self._unit, self._unit)
        diagonal += 1e-12
        # Functions around these take longer than they do where parameters are few.
        self._factor, failure = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        return not failure

    def _solve(self, right: FloatArray) -> FloatArray:
        """Solve for one right side, or for several in columns."""
        unit = self._unit if right.ndim == 1 else self._unit[:, None]
        return np.asarray(unit * dpotrs(self._factor, unit * right, lower=1)[0])


class ProductSystem(NewtonSystem):
    """Conjugate gradients, preconditioned by the diagonal of the loss."""

    def _prepare(self, at: CurvedEvaluation, nu: FloatArray) -> None:
        self._product, self._diagonal = at.hessian_product(nu)

    def step(self) -> FloatArray:
        """Return as much of the Newton step as there is before the first negative curvature."""
        self._first_shift()
        while not (solution := self._solution()).is_definite and not solution.x.any():
            self._next_shift()
        return solution.x

    def _solution(self) -> _Solution:
        J, rho, shift = self.jacobian, self.rho, self.shift

        def product(vector: FloatArray) -> FloatArray:
            out = self._product(vector) + shift * vector
            return out + (rho * (J @ vector)) @ J if self.active.size else out

        inverse = 1 / _lifted(self._diagonal + rho * np.square(J).sum(axis=0) + shift)
        return _conjugate_gradients(product, -self.gradient, lambda r: inverse * r, self.error)

    def joint_step(self, missed: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Conjugate gradients among the steps that keep the active constraints as they are."""
        inverse = 1 / _lifted(self._diagonal)
        J, back = self.jacobian, self.jacobian * inverse
        try:
            across = np.linalg.inv(J @ back.T)
        except np.linalg.LinAlgError:
            return None

        change = np.zeros(self.active.size)

        def projected(r: FloatArray) -> FloatArray:
            # The part of the residual along the rows of J belongs to the multipliers. It is moved
            # from r to ``change`` at once, because its rounding would remain in r otherwise.
            part = across @ (back @ r)
            r -= part @ J
            np.add(change, part, out=change)
            return inverse * r

        first = -(across @ missed) @ back
        right = -self.gradient - self._product(first)
        solution = _conjugate_gradients(self._product, right, projected, self.error)
        if not solution.is_definite:
            return None
        return first + solution.x, self.nu + change


def _lifted(diagonal: FloatArray) -> FloatArray:
    """Return a diagonal that is positive: small values where it vanishes."""
    largest = float(diagonal.max(initial=0.0)) or 1.0  # all zero where a hinge is flat
    return np.maximum(diagonal, max(1e-12 * largest, _FLAT))


class _Solution(NamedTuple):
    """Where conjugate gradients ended."""

    x: FloatArray
    is_definite: bool  # whether all curvatures that were met are positive


def _conjugate_gradients(
    product: Product, right: FloatArray, precondition: Product, error: float
) -> _Solution:
    """Solve until the error, in the norm of the preconditioner, has fallen by a factor.

    The preconditioner may take from the residual what no step can change.
    """
    x, r = np.zeros_like(right), right.copy()
    p = precondition(r)
    size = float(r @ p)
    enough = error**2 * size
    for _ in range(min(_MOST_STEPS, 2 * right.size)):
        if not size > enough:
            break
        along = product(p)
        curvature = float(p @ along)
        if not curvature > 1e-12 * size:
            return _Solution(x, False)
        x += size / curvature * p
        r -= size / curvature * along
        z = precondition(r)
        size, last = float(r @ z), size
        p *= size / last
        p += z
    return _Solution(x, True)
