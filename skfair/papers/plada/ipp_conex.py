r"""IPP-ConEx: an inexact proximal point method with constraint extrapolation (Boob et al. 2022).

F and G are not convex, but become so with a quadratic around a centre :math:`\bar\theta`:

.. math:: \min_\theta F(\theta) + q(\theta) \quad \text{subject to} \quad
   G(\theta) + q(\theta) \le 0, \qquad q(\theta) = \frac{\gamma}{2} |\theta - \bar\theta|^2

Each such problem gets ``n_inner`` primal-dual steps. The multipliers lambda follow s, the
constraints extrapolated from the last two iterates:

.. math::
   s &= (1 + \vartheta) \, (G + q)(\theta_k) - \vartheta \, (G + q)(\theta_{k-1}) \\
   \lambda &\leftarrow [\lambda + \sigma s]_+ \\
   \theta &\leftarrow \theta - \eta \, (\nabla F + \nabla q + \lambda' (\nabla G + \nabla q))

Then the centre moves to the last iterate. At a fixed point the quadratics vanish and the KKT
conditions of the problem remain.

Differences from the paper:

- It extrapolates linearisations of G, which need the gradient of every constraint. G is evaluated
  anyway and is smooth, so its values are extrapolated. An iteration needs one pull-back.
- Steps do not follow a schedule. sigma is balanced against the curvature, sigma M_G^2 = ratio L_F,
  with the largest M_G seen so far; eta is at most 1 / (L_F + gamma + sigma M_G^2) and is halved
  where the Lagrangian does not fall as a gradient step must, since the paper's bound on lambda
  times the curvature of G is not known beforehand.
- The multipliers are kept from one centre to the next. The last iterate of each problem is used.
  The theorem
  is about averages.
- theta has no box, so nothing is projected. The start may violate the constraints.

lam -> lambda, multipliers; gamma -> weight of q; eta, sigma ->
steps of theta and lam; extrapolation -> vartheta; L_F -> largest curvature of F; M_G -> norm of
the Jacobian of G, called steepness below.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal

import numpy as np

from skfair.papers.one_sided import Average, GradientStep, OneSided, curvature_bounds
from skfair.problems.protocol import Evaluation, Problem
from skfair.solvers.base import SOLVERS, Answer, IterativeSolver, Run, Step, residual
from skfair.solvers.parameters import Count, NonNegative, Positive
from skfair.utils.rounding import ROUNDING

# Steps shorter than this, in units of max(1, |theta|), are not used to estimate M_G. Values of G
# are rounded in the 16th digit, so the slope over a step of 1e-8 has an error of 1e-8. Over a step
# of 1e-16 it would be noise.
_SHORTEST = 1e-8


@SOLVERS.register("ipp_conex")
@dataclass
class IPPConEx(IterativeSolver[Problem]):
    r"""Inexact proximal points by constraint extrapolation.

    It finds a KKT point of :math:`\min F(\theta)` subject to :math:`l \le c(\theta) \le u`.

    Parameters
    ----------
    proximal : float, default=0.01
        Weight gamma of the proximal term, in units of L_F. Larger values make each problem easier
        and require more centres.
    n_inner : int, default=20
        Number of steps for each centre.
    ratio : float, default=3.0
        Ratio sigma M_G^2 of the step sizes, in units of L_F. With larger values, the multipliers
        change faster and the parameters change more slowly.
    extrapolation : float, default=1.0
        Factor of the extrapolation of the constraints. With 0, the method is plain gradient descent
        and ascent.
    output : {"last", "average"}, default="last"
        Iterates that are used as centres and as the result. If "last", they are the last iterates
        of each problem. If "average", they are averages.

    See Also
    --------
    Plada : Method with one loop instead of two, which is usually faster.

    Notes
    -----
    An iteration costs one evaluation and one gradient, regardless of the number of constraints, and
    a second evaluation if a step is rejected. The KKT conditions are checked at each new centre.

    Examples
    --------
    >>> from skfair.solvers.base import SOLVERS
    >>> SOLVERS["ipp_conex"](ratio=1.0).ratio
    1.0
    """

    proximal: NonNegative = 0.01
    n_inner: Count = 20
    ratio: Positive = 3.0
    extrapolation: NonNegative = 1.0
    output: Literal["last", "average"] = "last"

    @classmethod
    def paper(cls) -> IPPConEx:
        """Return the solver as in the paper, with averages and a large gamma.

        The papers state no numbers. Here gamma is 1 in units of L_F, which is above the constants
        of weak convexity, and there are 100 steps for each centre. These parameters are known to
        fail. The centre moves about as slowly as with gradient steps, at ``n_inner`` times their
        cost.

        Returns
        -------
        solver : IPPConEx
            A solver with these parameters.
        """
        return cls(proximal=1.0, n_inner=100, output="average")

    def steps(self, problem: Problem, run: Run) -> Iterator[Step]:
        constraints, averages = OneSided(problem), Average()
        at = problem.evaluate(run.start)
        curvature, steepness = curvature_bounds(problem, at)
        gamma = self.proximal * curvature
        eta_max = 1 / ((1 + self.proximal + self.ratio) * curvature)
        step = GradientStep(eta_max, eta_max=eta_max)
        lam = constraints.split(run.multipliers)
        center, previous = at.theta, constraints.values(at)

        def quadratic(point: Evaluation) -> float:
            """Return q, the quadratic around the centre."""
            away = point.theta - center
            return 0.5 * gamma * float(away @ away)

        def average() -> Answer:
            return Answer(at, constraints.signed(lam))

        def lagrangian(point: Evaluation) -> float:
            """Return the Lagrangian of the problem around the centre at the current multipliers."""
            extended = constraints.values(point) + quadratic(point)
            return float(point.objective + quadratic(point) + lam @ extended)

        for k in count():
            iterate, is_solved = at, False
            is_center = k % self.n_inner == 0 or k == run.max_iter
            if is_center:
                if self.output == "average" and averages.weight:
                    at, lam = problem.evaluate(averages.theta), averages.multipliers
                    averages = Average()
                is_solved = residual(problem, at, constraints.signed(lam)) <= run.tol
            yield Step(
                iterate,
                constraints.signed(lam),
                n_iter=k,
                status="converged" if is_solved else None,
                answer=None if at is iterate else average,
            )
            if is_center:
                center, previous = at.theta, constraints.values(at)
            extended = constraints.values(at) + quadratic(at)
            ahead = (1 + self.extrapolation) * extended - self.extrapolation * previous
            sigma = self.ratio * curvature / max(steepness**2, ROUNDING)
            lam, previous = np.maximum(lam + sigma * ahead, 0.0), extended
            gradient = at.gradient(constraints.signed(lam))
            gradient = gradient + gamma * (1 + lam.sum()) * (at.theta - center)
            old, at = at, step.take(problem, at, gradient, lagrangian)
            steepness = max(steepness, _slope(constraints, old, at))
            averages.add(at.theta, lam)


def _slope(constraints: OneSided, old: Evaluation, new: Evaluation) -> float:
    """Return how fast G changed in a step: a lower bound of M_G, 0 if the step is too short."""
    length = float(np.linalg.norm(new.theta - old.theta))
    if length < _SHORTEST * max(1.0, float(np.linalg.norm(old.theta))):
        return 0.0
    return float(np.linalg.norm(constraints.values(new) - constraints.values(old))) / length
