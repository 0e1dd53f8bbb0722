r"""Two-sided constraints as the papers write them, G(theta) <= 0, and steps of first-order solvers.

The solvers in ``papers/plada`` and ``papers/benchmark`` use this file. The problem keeps
l <= c(theta) <= u and has one signed multiplier per constraint. The papers have one-sided
constraints with multipliers >= 0. :class:`OneSided` converts between the two forms:

.. math:: G = (c - u, \; l - c), \qquad \nu_j = \lambda_j^{up} - \lambda_j^{low}

where rows of infinite bounds are left out, so that G is always finite.

:func:`curvature_bounds` estimates the two constants that the papers' step sizes are made of, and
:class:`GradientStep` takes steps whose length adapts. Both ask for values and gradients only, so
they work for every model. :class:`Best` and :class:`Average` choose what a run returns.

lam -> lambda >= 0 of the one-sided constraints, nu -> signed multipliers of the problem, L_F ->
largest curvature of the objective, M_G -> norm of the Jacobian of G, eta -> length of a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skfair._typing import FloatArray
from skfair.problems.protocol import Evaluation, Problem
from skfair.utils.rounding import LAST_DIGITS, ROUNDING

# Second derivatives are estimated by differences over the length _FAR, first ones by differences
# over _NEAR. _FAR is long enough to notice the kinks of smoothed losses from a distance.
_FAR, _NEAR = 1.0, 1e-4
# Iterations of the power method that estimates the largest curvature and the largest slope.
_POWER_STEPS = 20
# A step must lower the function by this share of ``eta |gradient|^2``, the descent that a linear
# function would have.
_DESCENT = 0.3


class OneSided:
    """A view of a problem with constraints G(theta) <= 0.

    Rows of G are the finite upper bounds and then the finite lower ones. Bounds are read at each
    call, so their values may change, but finite bounds must stay finite and infinite ones infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from types import SimpleNamespace
    >>> from skfair.papers.one_sided import OneSided
    >>> problem = SimpleNamespace(
    ...     n_constraints=2, lower=np.array([-0.1, -np.inf]), upper=np.array([0.1, 0.5])
    ... )
    >>> constraints = OneSided(problem)
    >>> constraints.values(SimpleNamespace(constraints=np.array([0.3, 0.4]))).round(2)
    array([ 0.2, -0.1, -0.4])
    >>> constraints.split(np.array([-2.0, 1.0]))
    array([0., 1., 2.])
    >>> constraints.signed(np.array([0.0, 1.0, 2.0]))
    array([-2.,  1.])
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._uppers = np.flatnonzero(np.isfinite(problem.upper))
        self._lowers = np.flatnonzero(np.isfinite(problem.lower))
        self.n = self._uppers.size + self._lowers.size

    def values(self, at: Evaluation) -> FloatArray:
        """Return G at an evaluated point, shape (n,)."""
        return self.sides(at.constraints, -at.constraints) - self.bounds

    @property
    def bounds(self) -> FloatArray:
        """The finite upper bounds, and minus the finite lower ones."""
        return self.sides(self._problem.upper, -self._problem.lower)

    def sides(self, of_uppers: FloatArray, of_lowers: FloatArray) -> FloatArray:
        """Return one number per row of G, from two arrays of shape (n_constraints,).

        Rows of upper bounds take their entry of ``of_uppers``, rows of lower bounds of
        ``of_lowers``.
        """
        return np.concatenate([of_uppers[self._uppers], of_lowers[self._lowers]])

    def signed(self, lam: FloatArray) -> FloatArray:
        """Return the signed multipliers of the problem, upper minus lower, (n_constraints,)."""
        of_uppers, of_lowers = self.both(lam)
        return np.asarray(of_uppers - of_lowers)

    def both(self, lam: FloatArray) -> FloatArray:
        """Return lam by constraint, shape (2, n_constraints): upper bounds first, then lower ones.

        It is 0 for infinite bounds.
        """
        both = np.zeros((2, self._problem.n_constraints))
        both[0, self._uppers], both[1, self._lowers] = np.split(lam, [self._uppers.size])
        return both

    def split(self, multipliers: FloatArray | None) -> FloatArray:
        """Return the multipliers >= 0 of G from signed ones (zeros if None), see :meth:`signed`."""
        if multipliers is None:
            return np.zeros(self.n)
        nu = np.asarray(multipliers, dtype=np.float64)
        return self.sides(np.maximum(nu, 0.0), np.maximum(-nu, 0.0))

    def unit(self, row: int) -> FloatArray:
        """Return signed multipliers that select one row of G.

        The entry of its constraint is 1 for an upper bound and -1 for a lower one; others are 0.
        """
        lam = np.zeros(self.n)
        lam[row] = 1.0
        return self.signed(lam)


def curvature_bounds(problem: Problem, at: Evaluation) -> tuple[float, float]:
    """Estimate L_F and M_G: the largest curvature of the objective, and the norm of the Jacobian.

    A power iteration multiplies by the Hessian, as a difference of gradients, and another one by
    J'J, where J is the Jacobian of G, as a difference of values and a product with J'. Each of the
    20 iterations costs two evaluations and two gradients. The estimates hold near one point and may
    be too small elsewhere.
    """
    constraints = OneSided(problem)
    gradient, values = at.gradient(), constraints.values(at)
    start = np.random.RandomState(0).standard_normal(at.theta.size)

    def bend(direction: FloatArray) -> FloatArray:
        """Return the Hessian of the objective times a direction."""
        moved = problem.evaluate(at.theta + _FAR * direction)
        return np.asarray(moved.gradient() - gradient) / _FAR

    def tilt(direction: FloatArray) -> FloatArray:
        """Return J'J times a direction. The largest factor of length is M_G squared."""
        moved = problem.evaluate(at.theta + _NEAR * direction)
        slopes = constraints.signed((constraints.values(moved) - values) / _NEAR)
        return np.asarray(at.gradient(slopes, objective=0.0))

    squared = _largest(tilt, start) if constraints.n else 0.0
    # A curvature of zero would make a step infinite.
    return max(_largest(bend, start), ROUNDING), float(np.sqrt(squared))


def _largest(apply: Callable[[FloatArray], FloatArray], start: FloatArray) -> float:
    """Return the largest factor by which ``apply`` changes a length during a power iteration."""
    largest, vector = 0.0, start
    for _ in range(_POWER_STEPS):
        length = float(np.sqrt(vector @ vector))
        if not length:
            break
        vector = apply(vector / length)
        largest = max(largest, float(np.sqrt(vector @ vector)))
    return largest


@dataclass
class GradientStep:
    """Steps against a gradient, of a length that adapts.

    The length is halved until the function falls by the share ``_DESCENT`` of what the gradient
    promises, and rises a little after each step. A rejected step costs one evaluation, no gradient.
    """

    eta: float  # first length
    # Factor on the length after each accepted step. With 0, ``eta`` is fixed and every step is
    # accepted
    growth: float = 1.05
    eta_max: float = np.inf  # largest length

    def take(
        self,
        problem: Problem,
        at: Evaluation,
        gradient: FloatArray,
        function: Callable[[Evaluation], float],
    ) -> Evaluation:
        """Return the evaluation after one step, or ``at`` if no length lowers the function.

        ``function(evaluation)`` is the function whose gradient is given.
        """
        if not self.growth:
            return problem.evaluate(at.theta - self.eta * gradient)
        value, squared = function(at), float(gradient @ gradient)
        rounding = LAST_DIGITS * max(1.0, abs(value))
        for _ in range(50):
            new = problem.evaluate(at.theta - self.eta * gradient)
            if function(new) <= value - _DESCENT * self.eta * squared + rounding:
                self.eta = min(self.growth * self.eta, self.eta_max)
                return new
            self.eta *= 0.5
        return at


class Best:
    """The point of lowest objective whose violation is within a tolerance.

    If no point is within it, the point of least violation is kept.
    """

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._rank = (np.inf, np.inf)
        self.at: Evaluation | None = None

    def offer(self, at: Evaluation, violation: float) -> None:
        """Keep a point if it is better than all before."""
        rank = (max(violation - self._tolerance, 0.0), at.objective)
        if self.at is None or rank < self._rank:
            self._rank, self.at = rank, at


class Average:
    """A weighted mean of parameters and multipliers."""

    def __init__(self) -> None:
        self.weight = 0.0
        self.theta = self.multipliers = np.empty(0)

    def add(self, theta: FloatArray, multipliers: FloatArray, weight: float = 1.0) -> None:
        """Add one point to the mean."""
        if not self.weight:
            self.theta, self.multipliers = theta, multipliers
        self.weight += weight
        share = weight / self.weight
        self.theta = self.theta + share * (theta - self.theta)
        self.multipliers = self.multipliers + share * (multipliers - self.multipliers)
