r"""Newton steps of an augmented Lagrangian, from its second derivative as a matrix or as products.

:mod:`skfair.solvers.erm.al_newton` makes a system at each point and asks it for one of two steps.
Let H be the second derivative of the Lagrangian, J the gradients of the active constraints, and
M = H + rho J'J. The *step* of the parameters is d = -M^-1 gradient. The *joint step* of parameters
and multipliers makes the active constraints, linearised, hold exactly:

    H d + J' delta = -gradient,    J d = -missed,

where missed = c - b is how far the constraints are from their bounds, and delta is the change of
the multipliers. There are two kinds of systems:

- :class:`FactorisedSystem` makes the matrix M and factorises it. If M is not positive definite, a
  *shift*, a multiple of the identity, is added. Near a solution M often has negative curvature
  along the active constraints only, so larger penalty weights rho are tried before. These do not
  change the joint step.
- :class:`ProductSystem` uses conjugate gradients, which need products with M only: two passes over
  the rows each. That is less work if columns are many and sparse. Conjugate gradients end at the
  first direction of curvature that is not positive. What they have found until then leads downhill.
  If they have found nothing, a shift is added here, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from skfair._typing import FloatArray
from skfair.problems.protocol import CurvedEvaluation, Product

# Smallest diagonal entry, so that its inverse does not overflow.
_FLAT = 1e-100
# Factors of the penalty weight in M that are tried near a solution.
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
        shift: float,  # the shift at the last point
        *,
        is_near: bool,  # whether the point is near a solution
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
        """Compute from the second derivative what both steps need."""

    @abstractmethod
    def step(self) -> FloatArray:
        """Return the Newton step of the parameters: -M^-1 gradient."""

    @abstractmethod
    def joint_step(self, missed: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the joint step of the parameters, and the active multipliers after it.

        ``missed`` is c - b of the active constraints. None is returned if their gradients are
        linearly dependent, or if a step along the constraints has no positive curvature.
        """

    def _first_shift(self) -> None:
        """Set the shift to a quarter of the last one, or to 0 if that was small."""
        self.shift = 0.0 if self.last_shift <= 1e-6 else 0.25 * self.last_shift

    def _next_shift(self) -> None:
        """Increase the shift."""
        self.shift = max(4 * self.shift, 1e-3)


class FactorisedSystem(NewtonSystem):
    """A system whose matrix is made and factorised."""

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
        # If the last step was too long, the solver has set a shift. A part of it is kept, because
        # without any shift the next step would be as long.
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
        """Factorise M with the present penalty weight and shift; return whether that succeeded."""
        matrix = self._hessian.copy()
        if self.rho != self.first_rho:
            matrix += (self.rho - self.first_rho) * self._along
        diagonal = np.einsum("ii->i", matrix)  # a view: changing it changes the matrix
        diagonal += self.shift
        # Parameters of very different curvature are scaled before the factorisation.
        self._unit = 1 / np.sqrt(_lifted(np.abs(diagonal)))
        matrix *= np.outer(self._unit, self._unit)
        diagonal += 1e-12
        # LAPACK is called directly, because with few parameters SciPy's checks take longer.
        self._factor, failure = dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
        return not failure

    def _solve(self, right: FloatArray) -> FloatArray:
        """Return M^-1 times a vector, or times the columns of a matrix."""
        unit = self._unit if right.ndim == 1 else self._unit[:, None]
        return np.asarray(unit * dpotrs(self._factor, unit * right, lower=1)[0])


class ProductSystem(NewtonSystem):
    """A system that is solved by conjugate gradients, with a diagonal as preconditioner."""

    def _prepare(self, at: CurvedEvaluation, nu: FloatArray) -> None:
        self._product, self._diagonal = at.hessian_product(nu)

    def step(self) -> FloatArray:
        """Return as much of the Newton step as there is before the first negative curvature."""
        self._first_shift()
        while not (solution := self._solution()).is_definite and not solution.x.any():
            self._next_shift()
        return solution.x

    def _solution(self) -> _Solution:
        """Solve for the step with the present shift."""
        J, rho, shift = self.jacobian, self.rho, self.shift

        def product(vector: FloatArray) -> FloatArray:
            out = self._product(vector) + shift * vector
            return out + (rho * (J @ vector)) @ J if self.active.size else out

        inverse = 1 / _lifted(self._diagonal + rho * np.square(J).sum(axis=0) + shift)
        return _conjugate_gradients(product, -self.gradient, lambda r: inverse * r, self.error)

    def joint_step(self, missed: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """Return the joint step d = first + x, where J first = -missed and J x = 0.

        ``first`` is the shortest such step in the norm of the preconditioner. Conjugate gradients
        find x among the steps that do not change the active constraints.
        """
        inverse = 1 / _lifted(self._diagonal)
        J, back = self.jacobian, self.jacobian * inverse
        try:
            across = np.linalg.inv(J @ back.T)
        except np.linalg.LinAlgError:
            return None

        change = np.zeros(self.active.size)

        def projected(r: FloatArray) -> FloatArray:
            # Steps x with J x = 0 cannot reduce the part of the residual along the rows of J, which
            # belongs to the multipliers. It is moved from r to ``change`` at once, because its
            # rounding would remain in r otherwise.
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
    """Return a diagonal with small positive entries in the place of zeros."""
    largest = float(diagonal.max(initial=0.0)) or 1.0  # all are 0 where a hinge loss is flat
    return np.maximum(diagonal, max(1e-12 * largest, _FLAT))


class _Solution(NamedTuple):
    """The last point of conjugate gradients."""

    x: FloatArray
    is_definite: bool  # whether the curvature was positive in all directions


def _conjugate_gradients(
    product: Product, right: FloatArray, precondition: Product, error: float
) -> _Solution:
    """Solve product(x) = right until the residual has fallen to ``error`` times the first one.

    Residuals are measured in the norm of the preconditioner, which may also change them in place:
    it may remove a part that no step can change.
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
