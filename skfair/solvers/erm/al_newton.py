r"""Augmented Lagrangian with damped Newton steps: the default solver for linear scores.

Estimators make an :class:`ALNewton` and call its ``solve`` with a problem that offers second
derivatives. This is not an algorithm of a paper. For linear scores it is several times faster than
the fastest of those, and far more exact. Constraints l <= c <= u enter by the function of Powell,
Hestenes and Rockafellar

.. math:: L_\rho(\theta, \lambda) = F(\theta)
   + \frac{\rho}{2} \sum_j \mathrm{dist}^2(c_j + \lambda_j / \rho, [l_j, u_j])

whose gradient is grad F + sum_j nu_j grad c_j with nu = rho * (signed distance). The *gap* says how
far the point is from satisfying the bounds and complementarity (:func:`gap_of`). The *residual* is
the larger of the gap and the largest entry of the gradient. Each iteration of
:meth:`ALNewton.steps` does the following:

1. If the gradient is small compared with the gap, it renews the multipliers, lambda = nu, so that
   both shrink together. If the gap falls too slowly, the penalty weight rises.
2. Near a solution it tries a step of parameters and multipliers together, and keeps it if that
   halves the residual.
3. Otherwise it makes a Newton step of the parameters with the exact second derivative, made
   positive definite (``newton_system.py``), and halves it until L_rho falls.

Far from a solution, steps from a tenth of the rows are as good as steps from all rows. So the
problem is first solved on a sample, with low precision, and all rows are used in the last few
iterations only. The problem on the sample is itself first solved on a sample of the sample.

lam -> lambda, rho -> penalty weight, nu -> the multipliers that the gradient sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, NamedTuple

import numpy as np

from skfair._typing import FloatArray
from skfair.problems.protocol import (
    CurvedEvaluation,
    Evaluation,
    Offer,
    Problem,
    TwiceDifferentiable,
)
from skfair.solvers.base import SOLVERS, IterativeSolver, Run, Step
from skfair.solvers.erm.newton_system import FactorisedSystem, NewtonSystem, ProductSystem
from skfair.solvers.parameters import NonNegative, Positive, PositiveOrInf
from skfair.utils.rounding import LAST_DIGITS

_HALVINGS = 10  # how often a step is halved, at most
# Number of steps that may bring no progress. If bounds contradict each other, parameters would
# otherwise grow without end.
_PATIENCE = 40
# The largest relative error of a Newton step.
_MOST_ERROR = 0.1
# The gradient on a sample of n rows differs from the gradient on all rows by about 1 / sqrt(n). The
# problem is first solved on the sample if the KKT residual is at least _FAR times this number. The
# tolerance on the sample is _NEAR times this number.
_FAR, _NEAR = 5.0, 1.0
# With at least this many rows, second derivatives and gradients of constraints are computed on a
# sample: with 500,000 rows and 50 columns a step then takes 0.04 s instead of 0.12. All rows are
# used again as soon as a step does not halve the residual, because a sample may have too few of the
# rows that a steep loss depends on.
MANY_ROWS = 120_000


def augmented(
    problem: Problem, at: Evaluation, lam: FloatArray, rho: float, largest: float = np.inf
) -> tuple[float, FloatArray]:
    """Return the augmented Lagrangian at a point, and the multipliers nu that its gradient sees.

    The multipliers are clipped to +- ``largest``, so that a violation costs at most that much per
    unit.
    """
    if not problem.n_constraints:
        return at.objective, lam
    shifted = at.constraints + lam / rho
    pull = rho * (shifted - np.minimum(np.maximum(shifted, problem.lower), problem.upper))
    nu = pull if largest == np.inf else np.clip(pull, -largest, largest)
    # If nothing is clipped, this is (nu'nu - lam'lam) / (2 rho) up to rounding, and line searches
    # depend on the last digits. Its second term makes the value equal to F if nu = lam.
    extra = float(2 * (nu @ pull) - nu @ nu - lam @ lam) / (2 * rho)
    return at.objective + extra, nu


def gap_of(nu: FloatArray, lam: FloatArray, rho: float) -> float:
    """Return how far a point is from satisfying the bounds and complementarity.

    |nu - lam| / rho is the distance of a constraint from its bound. In complementarity, distances
    are multiplied by multipliers. So the largest distance is multiplied by the largest multiplier
    if that is above 1.
    """
    distance = float(np.abs(nu - lam).max(initial=0.0)) / rho
    return distance * max(1.0, float(np.abs(nu).max(initial=0.0)))


@SOLVERS.register("al_newton")
@dataclass
class ALNewton(IterativeSolver[TwiceDifferentiable]):
    """Augmented Lagrangian method with damped Newton steps.

    It is the default for linear models with few features. Its accuracy is high, and one iteration
    needs the second derivatives of the loss.

    Parameters
    ----------
    rho : float, default=10.0
        Initial penalty weight.
    rho_growth : float, default=4.0
        Factor by which the penalty weight is increased if an update of the multipliers does not
        reduce the violation by the same factor.
    rho_max : float, default=1e5
        Maximum penalty weight.
    joint_below : float, default=0.1
        KKT residual below which joint Newton steps of parameters and multipliers are tried first.

    See Also
    --------
    ALLBFGS : The same without second derivatives.
    ALM : The stochastic method for networks and streams.

    Examples
    --------
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> from skfair.solvers import ALNewton
    >>> X, y, sex = [[0], [1], [2], [3]] * 30, [0, 0, 1, 1] * 30, ["f", "m", "f", "m"] * 30
    >>> model = ConstrainedERMClassifier(solver=ALNewton(rho=100.0))
    >>> model.fit(X, y, sensitive_features=sex).status_
    'converged'
    """

    rho: Positive = 10.0
    rho_growth: Positive = 4.0
    rho_max: PositiveOrInf = 1e5
    joint_below: NonNegative = 0.1

    needs: ClassVar[tuple[Offer, ...]] = ("hessian",)
    is_precise: ClassVar[bool] = True
    default_tol: ClassVar[float] = 1e-6
    default_max_iter: ClassVar[int] = 200

    def steps(self, problem: TwiceDifferentiable, run: Run) -> Iterator[Step]:
        # Each yield is the point after a Newton step. The generator returns without convergence if
        # steps bring no progress any more.
        rho = self.rho
        start, multipliers = run.start, run.multipliers
        if multipliers is None:  # callers that have multipliers start near a solution
            start, multipliers = self._rough(problem, start, run.tol)
        current = _point(problem, problem.evaluate(start), multipliers, rho)
        is_large = "products" not in problem.offers and problem.n_rows >= MANY_ROWS
        # The problem whose rows give the second derivatives: a sample of many rows, or all of them
        curved = (problem.sampled() if is_large else None) or problem
        # ``last_gap`` is the gap at the last renewal of multipliers, ``shift`` the shift of the
        # last system, and ``n_stalled`` the number of searches in a row that found no better point.
        # ``is_rounded`` says that a search failed only because of rounding.
        last_gap, shift, n_stalled, is_rounded = np.inf, 0.0, 0, False
        # ``least`` is the smallest residual, ``since`` the iteration that reached it, and
        # ``before`` the residual one iteration ago.
        least, since, before = np.inf, 0, np.inf
        for n_iter in count():
            stationarity, gap = current.stationarity, gap_of(current.nu, current.lam, rho)
            residual = max(stationarity, gap)
            curved, before = curved if residual <= 0.5 * before else problem, residual
            if residual < 0.9 * least:
                least, since = residual, n_iter
            is_solved = stationarity <= run.tol and gap <= run.tol
            columns = {"stationarity": stationarity}
            yield Step(current.at, current.nu, n_iter, "converged" if is_solved else None, columns)
            if n_stalled > 5 or n_iter - since > _PATIENCE:
                return
            if stationarity <= max(0.1 * min(gap, last_gap), 0.1 * run.tol) or is_rounded:
                if gap > last_gap / self.rho_growth and rho < self.rho_max:
                    rho = min(self.rho_growth * rho, self.rho_max)
                current, last_gap = _point(problem, current.at, current.nu, rho), gap
            is_near = residual < self.joint_below
            of_kind = ProductSystem if "products" in problem.offers else FactorisedSystem
            # A step need not be more exact than the residual, or than the tolerance asks for.
            error = min(max(residual, 0.1 * run.tol / residual), _MOST_ERROR)
            at, nu, gradient = current.at, current.nu, current.gradient
            at = at if curved is problem else curved.evaluate(at.theta)
            system = of_kind(at, nu, gradient, rho, shift, is_near=is_near, error=error)
            joint = _joint_step(problem, current, rho, system, residual) if is_near else None
            if joint is not None:
                shift = system.shift
                current, last_gap = joint, gap_of(joint.nu, joint.lam, rho)
                continue
            direction = system.step()
            at, n_halvings = _search(problem, current, rho, direction)
            shift = system.shift
            n_stalled = n_stalled + 1 if at is current.at else 0
            # If a step failed, either the gain it could still bring is below rounding, or it was
            # too long for ten halvings.
            gain = -(0.5**_HALVINGS) * float(current.gradient @ direction)
            is_rounded = n_stalled > 0 and gain <= LAST_DIGITS * max(1.0, abs(current.value))
            if n_halvings > 2:  # the step was too long, as where a hinge loss is flat
                shift = max(16 * shift, current.stationarity)
            current = _point(problem, at, current.lam, rho)

    def _rough(
        self, problem: TwiceDifferentiable, theta: FloatArray, tol: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the solution and multipliers on a sample of the rows, if the start is far off.

        Otherwise, or if there is no sample, the start is returned, with multipliers of 0.
        """
        lam = np.zeros(problem.n_constraints)
        sample = problem.sampled()
        if sample is None:
            return theta, lam
        noise = 1 / np.sqrt(sample.n_rows)
        first = _point(sample, sample.evaluate(theta), lam, self.rho)
        if max(first.stationarity, gap_of(first.nu, lam, self.rho)) < _FAR * noise:
            return theta, lam
        result = self.solve(sample, theta, tol=max(tol, _NEAR * noise))
        return (result.theta, result.multipliers) if result.status == "converged" else (theta, lam)


class _Point(NamedTuple):
    """A point, and the augmented Lagrangian there."""

    at: CurvedEvaluation
    lam: FloatArray  # multipliers of the augmented Lagrangian
    value: float
    nu: FloatArray  # multipliers that the gradient sees
    gradient: FloatArray

    @property
    def stationarity(self) -> float:
        """Largest entry of the gradient."""
        return float(np.abs(self.gradient).max(initial=0.0))


def _point(problem: Problem, at: CurvedEvaluation, lam: FloatArray, rho: float) -> _Point:
    value, nu = augmented(problem, at, lam, rho)
    return _Point(at, lam, value, nu, at.gradient(nu))


def _joint_step(
    problem: TwiceDifferentiable, current: _Point, rho: float, system: NewtonSystem, residual: float
) -> _Point | None:
    """Return the point after a Newton step of parameters and multipliers; None if it is worse.

    A step that does not halve the residual counts as worse. Near a solution, a step of both squares
    the error, while renewing the multipliers alone divides it by a constant.
    """
    at, nu, active = current.at, current.nu, system.active
    bounds = np.where(nu > 0, problem.upper, problem.lower)
    step = system.joint_step((at.constraints - bounds)[active])
    if step is None:
        return None
    d, mu = step[0], np.zeros(problem.n_constraints)
    mu[active] = step[1]
    new = _point(problem, problem.evaluate(at.theta + d), mu, rho)
    return new if max(new.stationarity, gap_of(new.nu, mu, rho)) <= 0.5 * residual else None


def _search(
    problem: TwiceDifferentiable, current: _Point, rho: float, direction: FloatArray
) -> tuple[CurvedEvaluation, int]:
    """Halve the step until the augmented Lagrangian falls enough.

    Returns the point and the number of halvings. If ``_HALVINGS`` halvings were not enough, the
    point is the current one.
    """
    step, rounding = 1.0, LAST_DIGITS * max(1.0, abs(current.value))
    slope = float(current.gradient @ direction)
    for n_halvings in range(_HALVINGS):
        new = problem.evaluate(current.at.theta + step * direction)
        value, _ = augmented(problem, new, current.lam, rho)
        if value <= current.value + 1e-4 * step * slope + rounding:
            return new, n_halvings
        step *= 0.5
    return current.at, _HALVINGS
