r"""SSG: the switching subgradient method of Huang and Lin (2023), with exact gradients.

With G(theta) <= 0 the one-sided constraints and g their maximum, an iteration is

.. math:: \theta_{k+1} = \theta_k -
   \begin{cases} \eta_k \nabla F(\theta_k) & \text{if } g(\theta_k) \le \epsilon_k \\
                 \eta^c_k \nabla G_j(\theta_k), \; G_j = g & \text{otherwise} \end{cases}

It is a step for the objective if the constraints are nearly satisfied, and otherwise a step for the
worst constraint. There are no multipliers and no penalties.

Differences from the paper, each switched off by :meth:`SSG.paper`:

- Steps and tolerances fall geometrically over the first nine tenths of ``max_iter`` instead of like
  1 / sqrt(k + 1). Both are large while the iterate is far away, so that the method does not crawl
  along the boundary, and small in the end, where an objective step of length eta leaves an error
  of the order of eta.
- Constraint steps are Polyak's, :math:`\eta^c_k = (G_j + \epsilon_k / 2) / |\nabla G_j|^2`. They
  end a little inside the limit, so a few of them are enough with many constraints. If constraint
  steps were as long as objective steps, many iterations would be needed to satisfy the constraints.
- The first step is 1 / L_F, estimated at the start.
- The best of the last tenth of the iterates is returned. The theorem is about a random one among
  those that got an objective step, drawn in proportion to eta; "average" is its expectation.

theta has no box, so nothing is projected. The loop is shared with ``ipp_ssg.py``.

eta -> length of objective steps, eps -> tolerance on g, j -> row of the worst constraint, gamma ->
weight of a proximal term (0 here), away -> distance from its centre.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Literal

import numpy as np

from skfair.papers.one_sided import Average, Best, OneSided, curvature_bounds
from skfair.problems.protocol import Problem
from skfair.solvers.base import SOLVERS, Answer, IterativeSolver, Run, Step
from skfair.solvers.parameters import NonNegative, Positive

# Steps and tolerances fall in this part of the iterations. The best iterate of the rest is
# returned.
_FALLING = 0.9
# A constraint step aims at G = -_INSIDE * tolerance.
_INSIDE = 0.5


@SOLVERS.register("ssg")
@dataclass
class SSG(IterativeSolver[Problem]):
    r"""Switching subgradient method.

    It looks for a KKT point of :math:`\min F(\theta)` subject to :math:`l \le c(\theta) \le u`.

    Parameters
    ----------
    eta : float, default=None
        First step size for the objective. If None, it is 1 / L_F.
    eta_last : float, default=0.03
        Last step size, as a fraction of the first one. Smaller values end closer to a KKT point,
        but the method may not get there.
    eps : float, default=0.1
        First tolerance, in the unit of the constraints. Larger values allow more objective steps.
    eps_last : float, default=1e-4
        Last tolerance, which is also the violation that the best iterate may have.
    schedule : {"geometric", "root"}, default="geometric"
        Decrease of the step sizes and tolerances. If "geometric", they decrease from the first to
        the last value. If "root", they decrease like 1 / sqrt(k + 1).
    constraint_step : {"polyak", "equal"}, default="polyak"
        Length of a constraint step. If "polyak", it aims at a point slightly inside the constraint.
        If "equal", it has the length of an objective step.
    output : {"best", "average"}, default="best"
        The iterate that is returned. If "best", it is the iterate with the lowest objective among
        those of the last tenth with a violation of at most ``eps_last``. If there is none, it is
        the one with the smallest violation. If "average", it is the average of all iterates with an
        objective step, weighted with eta.

    See Also
    --------
    Plada : Method with multipliers and a stopping test.

    Notes
    -----
    An iteration costs one evaluation and one gradient. All ``max_iter`` iterations are made,
    because there is no test of optimality without multipliers. The status is "converged" only if
    the constraints are satisfied and the gradient of the objective vanishes. The multipliers are
    zero. With one or two constraints, the error in objective and violation is well below 1e-3. It
    is larger with many constraints, because each step improves only one of them.

    Examples
    --------
    >>> from skfair.solvers.base import SOLVERS
    >>> SOLVERS["ssg"](eps=0.01).constraint_step
    'polyak'
    """

    eta: Positive | None = None
    eta_last: Positive = 0.03
    eps: Positive = 0.1
    eps_last: NonNegative = 1e-4
    schedule: Literal["geometric", "root"] = "geometric"
    constraint_step: Literal["polyak", "equal"] = "polyak"
    output: Literal["best", "average"] = "best"

    # :class:`IPPSSG` makes fields of these two: the weight of the pull to a centre, and the steps
    # per centre. Here there is no pull.
    proximal: ClassVar[float] = 0.0
    n_inner: ClassVar[float] = np.inf
    default_max_iter: ClassVar[int] = 3000

    @classmethod
    def paper(cls) -> SSG:
        """Return the solver of Huang and Lin, with averages and equal steps like 1 / sqrt(k + 1).

        The papers state neither the first step size nor the first tolerance, which are 1 / L_F and
        0.1 here. These parameters are known to fail. The average contains the error of the first
        iterates, and with many constraints, equal steps need hundreds of iterations to satisfy them
        again.

        Returns
        -------
        solver : SSG
            A solver with these parameters.
        """
        return cls(schedule="root", constraint_step="equal", output="average")

    def steps(self, problem: Problem, run: Run) -> Iterator[Step]:
        constraints, zeros = OneSided(problem), np.zeros(problem.n_constraints)
        at = problem.evaluate(run.start)
        curvature, _ = curvature_bounds(problem, at)
        gamma = self.proximal * curvature
        first = 1 / (curvature + gamma) if self.eta is None else self.eta
        center, best, average = at.theta, Best(self.eps_last), Average()

        def answer() -> Answer:
            is_average = self.output == "average" and average.weight
            return Answer(problem.evaluate(average.theta) if is_average else best.at or at, zeros)

        for k in count():
            if 0 < k < run.max_iter and k % self.n_inner == 0:
                if self.output == "average" and average.weight:
                    at, average = problem.evaluate(average.theta), Average()
                center = at.theta
            if k == int(_FALLING * run.max_iter):
                best = Best(self.eps_last)
            best.offer(at, problem.violation(at))
            if k >= run.max_iter:
                yield Step(at, zeros, k, answer=answer)
                return
            eta, eps = self._lengths(first, k, run.max_iter)
            away = at.theta - center
            G = constraints.values(at) + 0.5 * gamma * float(away @ away)
            worst = int(np.argmax(G)) if constraints.n else -1
            serves_objective = worst < 0 or G[worst] <= eps
            if serves_objective:
                gradient = at.gradient()
                if (
                    problem.violation(at) <= run.tol
                    and np.abs(gradient).max(initial=0.0) <= run.tol
                ):
                    yield Step(at, zeros, k, "converged")
            yield Step(at, zeros, k, answer=answer)
            if serves_objective:
                average.add(at.theta, zeros, eta)
            else:
                gradient = at.gradient(constraints.unit(worst), objective=0.0)
                squared = float(np.square(gradient + gamma * away).sum())
                if self.constraint_step == "polyak":
                    eta = (G[worst] + _INSIDE * eps) / squared if squared else 0.0
            at = problem.evaluate(at.theta - eta * (gradient + gamma * away))

    def _lengths(self, first: float, n_iter: int, max_iter: int) -> tuple[float, float]:
        """Return the length of an objective step and the tolerance on g in iteration ``n_iter``."""
        if self.schedule == "root":
            root = np.sqrt(n_iter % self.n_inner + 1)
            return first / root, self.eps / root
        part = min(1.0, n_iter / (_FALLING * max_iter))
        return first * self.eta_last**part, self.eps * (self.eps_last / self.eps) ** part
