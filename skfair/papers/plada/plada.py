r"""PLADA: alternating steps on the proximal-perturbed Lagrangian.

This is algorithm 1 of "A modified proximal-perturbed Lagrangian for non-convex non-smooth
representatives of fairness constraints" (anonymous authors).

One-sided constraints G(theta) <= 0 become G(theta) + u = z with slacks u in [0, u_max] and a
perturbation z that a proximal term drives to 0. With z and its multiplier eliminated the Lagrangian
is

.. math:: L(\theta, u, \lambda, \mu) = F(\theta) + \lambda'(G(\theta) + u)
   - \frac{1}{2\rho} |\lambda - \mu|^2, \qquad \rho = \frac{\alpha}{1 + \alpha\beta}  \quad (7)

and an iteration is (equations 9 to 12)

.. math::
   \theta &\leftarrow \theta - \eta \, (\nabla F(\theta) + \lambda' \partial G(\theta)) \\
   u &\leftarrow \Pi_{[0, u_{max}]} (u - \tau \lambda) \\
   \mu &\leftarrow \mu + \gamma (\lambda - \mu) / \rho, \qquad
   \gamma = \min(\gamma_0, \rho \, \delta_k / (|\lambda - \mu|^2 + 1)), \quad
   \delta_k = \kappa / (k + 1) \\
   \lambda &\leftarrow \mu + \rho \, (G(\theta) + u)

so lambda is the multiplier estimate of an augmented Lagrangian, and mu follows lambda slowly.

Differences from the paper:

- The theta step of the paper minimises over G itself, which has no closed form. G is smooth here,
  so the step uses its gradient. |c| <= eps becomes two smooth constraints.
- The step eta starts from the paper's limit 1 / (L_F + 3 rho M_G^2), estimated at the start, and
  is halved if L does not fall as a gradient step must, and raised a little if it does, because
  the estimate may be too small or too large elsewhere. An eta that the user gives is fixed.
- kappa is not printed and matters most: late in the run mu moves by kappa / k times the
  violation, so the violation falls like a power of k that grows with kappa. All defaults are
  within the ranges of the paper's theory, and among the fastest of those that were tried.
- u_max is not printed. Without a limit the iteration is the same, as u cannot run away.
- The theorem is about averages over the iterates. The last iterate is better and is returned.
- z is (lambda - mu) / alpha, and no step uses it, so it is not stored.
- theta is not restricted to a box.

lam -> lambda, multipliers of G + u = z; mu -> multipliers of z = 0; u -> slacks; rho -> penalty
weight; eta, tau -> steps of theta and u; gamma -> step of mu; delta -> limit of the step of mu.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from numbers import Real
from typing import Annotated, Literal

import numpy as np
from sklearn.utils._param_validation import Interval

from skfair._typing import FloatArray
from skfair.papers.one_sided import Average, GradientStep, OneSided, curvature_bounds
from skfair.problems.protocol import Evaluation, Problem
from skfair.solvers.base import SOLVERS, Answer, IterativeSolver, Run, Step, residual
from skfair.solvers.parameters import Positive, PositiveOrInf, Share

# A check of all KKT conditions costs a gradient, so it is made at most once in this many steps.
_CHECK_EVERY = 10


@SOLVERS.register("plada")
@dataclass
class Plada(IterativeSolver[Problem]):
    r"""Primal-dual gradient steps on the proximal-perturbed Lagrangian.

    It finds a KKT point of :math:`\min F(\theta)` subject to :math:`l \le c(\theta) \le u`.

    Parameters
    ----------
    alpha : float, default=2.0
        Penalty on the perturbation, which must be larger than 1. Larger values penalise violated
        constraints more and make the steps shorter.
    beta : float, default=0.5
        Weight of the proximal term between the two multipliers lambda and mu, in (0, 1).
    gamma0 : float, default=0.7
        Largest step size of mu, in (0, 1]. Smaller values slow the multipliers down. With values
        near 1 and many constraints, the multipliers change faster than theta and oscillate.
    kappa : float, default=1e3
        Approximate number of iterations in which mu keeps its largest step size. If it is small,
        the violation hardly decreases. If it is very large, oscillations are not damped.
    eta : float, default=None
        Constant step size of theta. If None, the step size is estimated and adapted.
    tau : float, default=None
        Step size of the slacks. If None, it is the limit of the paper, 1 / (3 rho).
    u_max : float, default=inf
        Maximum slack.
    output : {"last", "average"}, default="last"
        The iterate that is returned. If "average", it is the average of all iterates. There is no
        stopping test then, so all ``max_iter`` iterations are made.

    See Also
    --------
    skfair.solvers.ALNewton : Much faster if second derivatives exist.

    Notes
    -----
    An iteration costs one evaluation and one gradient, regardless of the number of constraints, and
    a second evaluation if a step is rejected. A KKT residual of 1e-4 takes some hundred iterations
    for a constraint on two groups. Pairwise constraints on many groups need several times as many.

    Examples
    --------
    >>> from skfair.solvers.base import SOLVERS
    >>> SOLVERS["plada"](alpha=4.0).alpha
    4.0
    """

    alpha: Annotated[float, Interval(Real, 1, None, closed="neither")] = 2.0
    beta: Annotated[float, Interval(Real, 0, 1, closed="neither")] = 0.5
    gamma0: Share = 0.7
    kappa: Positive = 1e3
    eta: Positive | None = None
    tau: Positive | None = None
    u_max: PositiveOrInf = np.inf
    output: Literal["last", "average"] = "last"

    @classmethod
    def paper(cls, *, network: bool = False) -> Plada:
        """Return the solver with the parameters of table 2 of the paper.

        kappa and u_max are not stated in the paper and set to 1. These parameters are known to
        fail. With eta = 0.001, the objective is far from its minimum after thousands of iterations,
        tau is above the limit 1 / (3 rho) of the paper's own theory, and with kappa = 1 most of the
        violation remains.

        Parameters
        ----------
        network : bool, default=False
            If True, the row of the table for neural networks is used. If False, the row for linear
            scores is used.

        Returns
        -------
        solver : Plada
            A solver with these parameters.
        """
        if network:
            return cls(10.0, 0.5, gamma0=0.1, kappa=1.0, eta=0.1, tau=0.01, u_max=1.0)
        return cls(10.0, 0.1, gamma0=0.1, kappa=1.0, eta=0.001, tau=0.1, u_max=1.0)

    def steps(self, problem: Problem, run: Run) -> Iterator[Step]:
        constraints, averages = OneSided(problem), Average()
        rho = self.alpha / (1 + self.alpha * self.beta)
        tau = 1 / (3 * rho) if self.tau is None else self.tau
        at = problem.evaluate(run.start)
        step = self._first_step(problem, at, rho)
        mu = constraints.split(run.multipliers)  # a multiplier >= 0 for each row of G
        # With this u, G + u is 0 where -u_max <= G <= 0, so lam starts at mu there.
        u = np.clip(-constraints.values(at), 0.0, self.u_max)
        lam = mu + rho * (constraints.values(at) + u)

        def prices(lam: FloatArray) -> FloatArray:
            """Return the multipliers of the problem, signed: of upper minus of lower bounds."""
            return constraints.signed(np.maximum(lam, 0.0))

        def average() -> Answer:
            return Answer(problem.evaluate(averages.theta), prices(averages.multipliers))

        def lagrangian(point: Evaluation) -> float:
            """Return L at the best lambda, up to a constant, for the u and mu of the moment."""
            gap = constraints.values(point) + u
            return float(point.objective + mu @ gap + 0.5 * rho * (gap @ gap))

        for k in count():
            gradient = at.gradient(constraints.signed(lam))
            stationarity = float(np.abs(gradient).max(initial=0.0))
            is_due = self.output == "last" and (k % _CHECK_EVERY == 0 or k == run.max_iter)
            is_near = is_due and max(stationarity, problem.violation(at)) <= run.tol
            # lam may be negative on the way, and multipliers may not. ``prices`` cuts the negative
            # part off, and ``residual`` counts the gradient that then remains.
            is_solved = is_near and residual(problem, at, prices(lam)) <= run.tol
            yield Step(
                at,
                prices(lam),
                n_iter=k,
                status="converged" if is_solved else None,
                columns={"stationarity": stationarity},
                answer=average if self.output == "average" and k else None,
            )
            at = step.take(problem, at, gradient, lagrangian)  # eq. (9)
            u = np.clip(u - tau * lam, 0.0, self.u_max)  # eq. (10)
            gap = lam - mu
            limit = rho * self.kappa / ((k + 1) * (float(gap @ gap) + 1))
            mu = mu + min(self.gamma0, limit) / rho * gap  # eq. (11)
            lam = mu + rho * (constraints.values(at) + u)  # eq. (12)
            averages.add(at.theta, lam)

    def _first_step(self, problem: Problem, at: Evaluation, rho: float) -> GradientStep:
        """Return the first step of theta: the given one, or the limit of the paper's theory."""
        if self.eta is not None:
            return GradientStep(self.eta, growth=0.0)
        curvature, steepness = curvature_bounds(problem, at)
        return GradientStep(1 / (curvature + 3 * rho * steepness**2))
