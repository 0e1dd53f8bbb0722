r"""IPP-ConEx: an inexact proximal point method with constraint extrapolation (Boob et al. 2022).

F and G are not convex, but become so with a quadratic around a centre :math:`\bar\theta`:

.. math:: \min_\theta F(\theta) + q(\theta) \quad \text{subject to} \quad
   G(\theta) + q(\theta) \le 0, \qquad q(\theta) = \frac{\gamma}{2} |\theta - \bar\theta|^2

Each such problem gets ``n_inner`` primal-dual steps, whose prices see the constraints extrapolated,

.. math::
   s &= (1 + \vartheta) \, (G + q)(\theta_k) - \vartheta \, (G + q)(\theta_{k-1}) \\
   \lambda &\leftarrow [\lambda + \sigma s]_+ \\
   \theta &\leftarrow \theta - \eta \, (\nabla F + \nabla q + \lambda' (\nabla G + \nabla q))

and the centre moves to where they ended. At a fixed point the quadratics vanish and the KKT
conditions of the problem remain.

Differences from the paper:

- It extrapolates linearisations of G, which need the gradient of every constraint. G is evaluated
  anyway and is smooth, so its values are extrapolated; an iteration needs one pull-back.
- Steps do not follow a schedule. sigma is balanced against the curvature, sigma M_G^2 = ratio L_F,
  with the largest M_G seen so far; eta is at most 1 / (L_F + gamma + sigma M_G^2) and is halved
  where the Lagrangian does not fall as a gradient step must, since the paper's bound on lambda
  times the curvature of G is not known beforehand.
- Prices are kept from one centre to the next. The last iterate of each problem is used; the theorem
  is about averages.
- theta has no box, so nothing is projected. The start need not keep the constraints.

lam -> lambda, prices; gamma -> weight of q; eta, sigma ->
steps of theta and lam; extrapolation -> vartheta; L_F -> largest curvature of F; M_G -> norm of
the Jacobian of G, called steepness below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from skfair._typing import FloatArray
from skfair.solvers.base import SOLVERS, SolverResult, Status
from skfair.solvers.one_sided import GradientStep, OneSided, curvature_bounds
from skfair.utils.history import History

_TINY = 1e-12


@SOLVERS.register("ipp_conex")
@dataclass
class IPPConEx:
    r"""Inexact proximal points by constraint extrapolation.

    Finds a KKT point of :math:`\min F(\theta)` subject to :math:`l \le c(\theta) \le u`.

    Parameters
    ----------
    proximal : float, default=0.01
        gamma, in units of L_F. Larger ones make each problem easier and need more centres.
    n_inner : int, default=20
        Steps for each centre.
    ratio : float, default=3.0
        sigma M_G^2, in units of L_F. Larger ones move prices faster and parameters slower.
    extrapolation : float, default=1.0
        How far the constraints are extrapolated; 0 for plain gradient descent and ascent.
    output : {"last", "average"}, default="last"
        Whether centres and result are the last iterates of their problems or averages of them.

    See Also
    --------
    Plada : One loop instead of two, and usually faster.

    Notes
    -----
    An iteration costs one evaluation and one pull-back, whatever the number of constraints, and a
    second evaluation where a step is rejected. KKT conditions are checked at each new centre.

    Examples
    --------
    >>> from skfair.solvers import SOLVERS
    >>> SOLVERS["ipp_conex"](ratio=1.0).ratio
    1.0
    """

    proximal: float = 0.01
    n_inner: int = 20
    ratio: float = 3.0
    extrapolation: float = 1.0
    output: Literal["last", "average"] = "last"

    needs = ()
    is_stochastic = False

    @classmethod
    def paper(cls) -> IPPConEx:
        """Return the rule of the paper: averages, and gamma above the constants of weak convexity.

        The papers print no numbers; gamma is 1 in units of L_F, with 100 steps for each centre.
        Known to fail: the centre then moves about as slowly as gradient steps would, at ``n_inner``
        times their cost.

        Returns
        -------
        solver : IPPConEx
            The solver.
        """
        return cls(proximal=1.0, n_inner=100, output="average")

    def solve(
        self,
        problem: Any,
        theta0: FloatArray,
        multipliers0: FloatArray | None = None,
        *,
        tol: float = 1e-4,
        max_iter: int = 5000,
        random_state: Any = None,
        callback: Any = None,
    ) -> SolverResult:
        """Solve to a KKT residual of ``tol``, or for ``max_iter`` steps in all.

        Parameters
        ----------
        problem : ConstrainedERM
            Has the methods in ``needs``.
        theta0 : ndarray of shape (n_parameters,)
            Where to start.
        multipliers0 : ndarray of shape (n_constraints,), default=None
            Multipliers to start from; zeros if None.
        tol : float, default=1e-4
            Largest KKT residual.
        max_iter : int, default=5000
            Largest number of steps over all centres.
        random_state : object
            Not used.
        callback : callable, default=None
            ``callback(theta) -> stop``, called after each step.

        Returns
        -------
        result : SolverResult
            Parameters, signed multipliers, history.
        """
        constraints, history = OneSided(problem), History()
        at = problem.evaluate(np.array(theta0, dtype=np.float64))
        bounds = curvature_bounds(problem, at)
        curvature = max(bounds.objective, _TINY)
        gamma, steepness = self.proximal * curvature, bounds.jacobian
        eta_max = 1 / ((1 + self.proximal + self.ratio) * curvature)
        step = GradientStep(eta_max, eta_max=eta_max)
        lam = np.zeros(constraints.n)
        if multipliers0 is not None:
            lam = constraints.split(multipliers0)
        center, previous = at.theta, constraints.values(at)
        total_theta, total_lam = np.zeros(at.theta.size), np.zeros(constraints.n)
        status: Status = "max_iter"
        n_iter = 0

        def quadratic(point: Any) -> float:
            """Return q."""
            away = point.theta - center
            return 0.5 * gamma * float(away @ away)

        def lagrangian(point: Any) -> float:
            """Return the Lagrangian of the problem around the centre, for the prices of now."""
            extended = constraints.values(point) + quadratic(point)
            return float(point.objective + quadratic(point) + lam @ extended)

        while True:
            history.record(objective=at.objective, max_violation=problem.violation(at))
            if n_iter % self.n_inner == 0 or n_iter == max_iter:
                if self.output == "average" and n_iter:
                    n_inner = (n_iter - 1) % self.n_inner + 1
                    at, lam = problem.evaluate(total_theta / n_inner), total_lam / n_inner
                    total_theta, total_lam = np.zeros(at.theta.size), np.zeros(constraints.n)
                residual = problem.kkt_residual(at, constraints.signed(lam))
                if max(residual.values()) <= tol:
                    status = "converged"
                    break
                center, previous = at.theta, constraints.values(at)
            if n_iter >= max_iter:
                break
            extended = constraints.values(at) + quadratic(at)
            ahead = (1 + self.extrapolation) * extended - self.extrapolation * previous
            sigma = self.ratio * curvature / max(steepness**2, _TINY)
            lam, previous = np.maximum(lam + sigma * ahead, 0.0), extended
            gradient = at.gradient(constraints.signed(lam))
            gradient = gradient + gamma * (1 + lam.sum()) * (at.theta - center)
            old, at = at, step.take(problem, at, gradient, lagrangian)
            steepness = max(steepness, _slope(constraints, old, at))
            n_iter += 1
            total_theta += at.theta
            total_lam += lam
            if callback is not None and callback(at.theta):
                status = "stopped"
                break
        return SolverResult(at.theta, constraints.signed(lam), n_iter, status, history.as_dict())


def _slope(constraints: OneSided, old: Any, new: Any) -> float:
    """Return how fast G changed in a step: a lower bound of M_G."""
    length = float(np.linalg.norm(new.theta - old.theta))
    if not length:
        return 0.0
    return float(np.linalg.norm(constraints.values(new) - constraints.values(old))) / length
