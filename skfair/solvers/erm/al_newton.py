r"""Augmented Lagrangian with damped Newton steps: the default solver for linear scores.

None of the papers' algorithms, and where it applies several times faster than the fastest of them,
and far more exact. Two-sided constraints l <= c <= u enter by the function of Powell, Hestenes and
Rockafellar

.. math:: L_\rho(\theta, \lambda) = F(\theta)
   + \frac{\rho}{2} \sum_j \mathrm{dist}^2(c_j + \lambda_j / \rho, [l_j, u_j])

which is minimised by Newton's method with the exact second derivative of the Lagrangian. Where that
is not positive definite it is shifted; near a solution larger penalty weights are tried before, for
they add curvature along the rules only. Multipliers are renewed as soon as the gradient is small
against the violation, so that both shrink together. Near a solution a step of parameters and
multipliers together is tried first, and kept if it halves the residual.

Far from a solution a tenth of the rows show the way as well as all of them: the problem on a sample
is solved first (and before it the one on a sample of the sample), roughly, and all rows are seen in
the last few steps only.

lam -> lambda, rho -> penalty weight, nu -> the multipliers rho * dist that the gradient sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from skfair._typing import FloatArray
from skfair.problems.protocol import (
    CurvedEvaluation,
    Evaluation,
    Offer,
    Problem,
    TwiceDifferentiable,
)
from skfair.solvers.base import SOLVERS, IterativeSolver, Step
from skfair.solvers.parameters import NonNegative, Positive, PositiveOrInf

# Below this many units of the last place of the objective, a descent cannot be seen.
_ROUNDING = 1e-13
_HALVINGS = 10
# Steps that may bring no progress. Bounds that cannot be kept drive parameters to infinity.
_PATIENCE = 40
# Curvatures below this are taken for it, so that nothing overflows.
_FLAT = 1e-100
# KKT residual from which on a sample of n rows shows the way, and the one it is solved to, as
# multiples of 1 / sqrt(n): by about that much its gradient is off.
_FAR, _NEAR = 5.0, 1.0
# Factors on the penalty weight in the second derivative, near a solution.
_STEEPER = (1.0, 10.0, 100.0, 1000.0)


class Augmented(NamedTuple):
    """The augmented Lagrangian at a point."""

    value: float
    nu: FloatArray  # multipliers that its gradient sees


def augmented(problem: Problem, at: Evaluation, lam: FloatArray, rho: float) -> Augmented:
    """Evaluate the augmented Lagrangian from an evaluation of the problem."""
    if not problem.n_constraints:
        return Augmented(at.objective, lam)
    shifted = at.constraints + lam / rho
    nu = rho * (shifted - np.clip(shifted, problem.lower, problem.upper))
    return Augmented(at.objective + float(nu @ nu - lam @ lam) / (2 * rho), nu)


def gap_of(al: Augmented, lam: FloatArray, rho: float) -> float:
    """Bound violation and complementarity: distances from bounds, times large multipliers."""
    distance = float(np.abs(al.nu - lam).max(initial=0.0)) / rho
    return distance * max(1.0, float(np.abs(al.nu).max(initial=0.0)))


@SOLVERS.register("al_newton")
@dataclass
class ALNewton(IterativeSolver[TwiceDifferentiable]):
    """Augmented Lagrangian with damped Newton steps.

    Parameters
    ----------
    rho : float, default=10.0
        First penalty weight.
    rho_growth : float, default=4.0
        Factor on it when a renewal of the multipliers does not shrink the violation by as much.
    rho_max : float, default=1e5
        Largest penalty weight.
    joint_below : float, default=0.1
        KKT residual below which steps of parameters and multipliers together are tried first.

    Examples
    --------
    >>> from skfair.solvers import ALNewton
    >>> ALNewton(rho=100.0).rho
    100.0
    """

    rho: Positive = 10.0
    rho_growth: Positive = 4.0
    rho_max: PositiveOrInf = 1e5
    joint_below: NonNegative = 0.1

    needs: ClassVar[tuple[Offer, ...]] = ("hessian",)
    is_precise: ClassVar[bool] = True
    default_tol: ClassVar[float] = 1e-6
    default_max_iter: ClassVar[int] = 200

    def steps(
        self,
        problem: TwiceDifferentiable,
        start: FloatArray,
        multipliers: FloatArray | None,
        *,
        tol: float,
        max_iter: int,
        rng: np.random.RandomState,
    ) -> Iterator[Step]:
        # Yield the point after each Newton step; return where rounding allows no more.
        rho = self.rho
        if multipliers is None:  # who knows multipliers starts near a solution
            start, multipliers = self._rough(problem, start, tol)
        here = _point(problem, problem.evaluate(start), multipliers, rho)
        last_gap, shift, n_stalled = np.inf, 0.0, 0
        least, since = np.inf, 0
        for n_iter in count():
            stationarity, gap = here.stationarity, gap_of(here.al, here.lam, rho)
            residual = max(stationarity, gap)
            if residual < 0.9 * least:
                least, since = residual, n_iter
            is_solved = stationarity <= tol and gap <= tol
            columns = {"stationarity": stationarity}
            yield Step(here.at, here.al.nu, n_iter, "converged" if is_solved else None, columns)
            if n_stalled > 5 or n_iter - since > _PATIENCE:
                return
            if stationarity <= max(0.1 * min(gap, last_gap), 0.1 * tol) or n_stalled:
                if gap > last_gap / self.rho_growth and rho < self.rho_max:
                    rho = min(self.rho_growth * rho, self.rho_max)
                here, last_gap = _point(problem, here.at, here.al.nu, rho), gap
            is_near = residual < self.joint_below
            system = _NewtonSystem(here, rho, shift, is_near)
            shift = system.shift
            joint = _joint_step(problem, here, rho, system, residual) if is_near else None
            if joint is not None:
                here, last_gap = joint, gap_of(joint.al, joint.lam, rho)
                continue
            at, n_halvings = _search(problem, here, rho, -system.solve(here.gradient))
            n_stalled = n_stalled + 1 if at is here.at else 0
            if n_halvings > 2:  # the model is too bold, as where a hinge is flat
                shift = max(16 * shift, here.stationarity)
            here = _point(problem, at, here.lam, rho)

    def _rough(
        self, problem: TwiceDifferentiable, theta: FloatArray, tol: float
    ) -> tuple[FloatArray, FloatArray]:
        """Go from a start that is far off to the solution on a sample of the rows."""
        lam = np.zeros(problem.n_constraints)
        sample = problem.sampled()
        if sample is None:
            return theta, lam
        noise = 1 / np.sqrt(sample.n_rows)
        first = _point(sample, sample.evaluate(theta), lam, self.rho)
        if max(first.stationarity, gap_of(first.al, lam, self.rho)) < _FAR * noise:
            return theta, lam
        found = self.solve(sample, theta, tol=max(tol, _NEAR * noise))
        return (found.theta, found.multipliers) if found.status == "converged" else (theta, lam)


class _Point(NamedTuple):
    """A point, the multipliers of the moment, and the augmented Lagrangian there."""

    at: CurvedEvaluation
    lam: FloatArray
    al: Augmented
    gradient: FloatArray

    @property
    def stationarity(self) -> float:
        """Largest entry of the gradient."""
        return float(np.abs(self.gradient).max(initial=0.0))


def _point(problem: Problem, at: CurvedEvaluation, lam: FloatArray, rho: float) -> _Point:
    al = augmented(problem, at, lam, rho)
    return _Point(at, lam, al, at.gradient(al.nu))


class _NewtonSystem:
    """The second derivative of the augmented Lagrangian, factorised.

    Where it is not positive definite a multiple of the identity is added. Near a solution, where it
    often is so only along the active constraints, a larger penalty weight is tried before: it
    does not change the joint step, which then still squares the error.
    """

    def __init__(self, here: _Point, rho: float, shift: float, is_near: bool) -> None:
        hessian = here.at.hessian(here.al.nu)
        self.active = np.flatnonzero(here.al.nu)
        self.jacobian = np.empty((0, hessian.shape[0]))
        self.rho, self.shift = rho, 0.0
        if self.active.size:
            self.jacobian = here.at.jacobian(self.active)  # (n_active, n_parameters)
            along = self.jacobian.T @ self.jacobian
            hessian += rho * along
        if is_near and self.active.size:
            for factor in _STEEPER:
                self.rho = factor * rho
                if self._factorise(hessian + (self.rho - rho) * along):
                    return
            self.rho = rho
        self.shift = 0.0 if shift <= 1e-6 else 0.25 * shift
        while not self._factorise(hessian):
            self.shift = max(4 * self.shift, 1e-3)

    def _factorise(self, hessian: FloatArray) -> bool:
        """Factorise the shifted matrix; False if it is not positive definite."""
        order = np.arange(hessian.shape[0])
        matrix = hessian.copy()
        matrix[order, order] += self.shift
        # Parameters of very different curvature are made alike before the factorisation.
        diagonal = np.abs(matrix[order, order])
        largest = diagonal.max(initial=0.0) or 1.0  # all zero where a hinge is flat
        self._unit = 1 / np.sqrt(np.maximum(diagonal, max(1e-12 * largest, _FLAT)))
        matrix *= np.outer(self._unit, self._unit)
        matrix[order, order] += 1e-12
        try:
            self._factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return False
        return True

    def solve(self, right: FloatArray) -> FloatArray:
        """Solve for one right side, or for several in columns."""
        unit = self._unit if right.ndim == 1 else self._unit[:, None]
        return np.asarray(unit * cho_solve(self._factor, unit * right, check_finite=False))


def _joint_step(
    problem: TwiceDifferentiable, here: _Point, rho: float, system: _NewtonSystem, residual: float
) -> _Point | None:
    """Take the Newton step of parameters and multipliers together, if it pays.

    It makes the active constraints, linearised, hold exactly:
    M d + J' (mu - lam) = -gradient and J d = b - c, with M and rho those of the system and
    lam = nu - rho (c - b). Near a solution this squares the error, where renewing the multipliers
    alone divides it.
    """
    at, nu = here.at, here.al.nu
    d, mu = -system.solve(here.gradient), np.zeros(problem.n_constraints)
    if system.active.size:
        values = at.constraints[system.active]
        bounds = np.where(nu > 0, problem.upper, problem.lower)[system.active]
        pulled = system.solve(system.jacobian.T)  # M^-1 J'
        schur = system.jacobian @ pulled
        try:
            change = np.linalg.solve(schur, values - bounds + system.jacobian @ d)
        except np.linalg.LinAlgError:
            return None
        d -= pulled @ change
        mu[system.active] = nu[system.active] - system.rho * (values - bounds) + change
    new = _point(problem, problem.evaluate(at.theta + d), mu, rho)
    return new if max(new.stationarity, gap_of(new.al, mu, rho)) <= 0.5 * residual else None


def _search(
    problem: TwiceDifferentiable, here: _Point, rho: float, direction: FloatArray
) -> tuple[CurvedEvaluation, int]:
    """Halve the step until the augmented Lagrangian falls enough; stay if rounding forbids it.

    Returns where that ended and the number of halvings.
    """
    step, rounding = 1.0, _ROUNDING * max(1.0, abs(here.al.value))
    slope = float(here.gradient @ direction)
    for n_halvings in range(_HALVINGS):
        new = problem.evaluate(here.at.theta + step * direction)
        value = augmented(problem, new, here.lam, rho).value
        if value <= here.al.value + 1e-4 * step * slope + rounding:
            return new, n_halvings
        step *= 0.5
    return here.at, _HALVINGS
