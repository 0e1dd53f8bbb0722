r"""SSG: the switching subgradient method of Huang and Lin (2023), with exact gradients.

With G(theta) <= 0 the one-sided constraints and g their maximum, an iteration is

.. math:: \theta_{k+1} = \theta_k -
   \begin{cases} \eta_k \nabla F(\theta_k) & \text{if } g(\theta_k) \le \epsilon_k \\
                 \eta^c_k \nabla G_j(\theta_k), \; G_j = g & \text{otherwise} \end{cases}

a step for the objective where the constraints are nearly kept, a step for the worst constraint
where they are not. There are no multipliers and no penalties.

Differences from the paper, each switched off by :meth:`SSG.paper`:

- Steps and tolerances fall geometrically over the first nine tenths of ``max_iter`` instead of like
  1 / sqrt(k + 1). Both are large while the iterate is far away, so that the method does not crawl
  along the boundary, and small in the end, where an objective step of length eta leaves an error
  of the order of eta.
- Constraint steps are Polyak's, :math:`\eta^c_k = (G_j + \epsilon_k / 2) / |\nabla G_j|^2`, which
  land a little inside, so that a few of them are enough with many constraints; steps as long as
  those for the objective take many iterations to return.
- The first step is 1 / L_F, estimated at the start.
- The best of the last tenth of the iterates is returned. The theorem is about a random one among
  those that got an objective step, drawn in proportion to eta; "average" is its expectation.

theta has no box, so nothing is projected. The loop is shared with ``ipp_ssg.py``.

eta -> length of objective steps, eps -> tolerance on g, j -> row of the worst constraint, gamma ->
weight of a proximal term (0 here), away -> distance from its centre.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from skfair._typing import FloatArray
from skfair.solvers.base import SOLVERS, SolverResult, Status
from skfair.solvers.one_sided import OneSided, curvature_bounds
from skfair.utils.history import History

# Part of the iterations in which steps and tolerances fall; the best of the others is returned.
_FALLING = 0.9
# How far inside a constraint step aims, in units of the tolerance.
_INSIDE = 0.5


@SOLVERS.register("ssg")
@dataclass
class SSG:
    r"""Switching subgradient method.

    Looks for a KKT point of :math:`\min F(\theta)` subject to :math:`l \le c(\theta) \le u`.

    Parameters
    ----------
    eta : float, default=None
        First step for the objective; None for 1 / L_F.
    eta_last : float, default=0.03
        Last step, as a part of the first. Smaller ones end closer to a KKT point if they get there.
    eps : float, default=0.1
        First tolerance, in the unit of the constraints. Larger ones allow more objective steps.
    eps_last : float, default=1e-4
        Last tolerance, and the violation that a best iterate may have.
    schedule : {"geometric", "root"}, default="geometric"
        How steps and tolerances fall: from first to last, or like 1 / sqrt(k + 1) from the first.
    constraint_step : {"polyak", "equal"}, default="polyak"
        Whether a constraint step aims a little inside, or is as long as an objective step.
    output : {"best", "average"}, default="best"
        Whether the last tenth of the iterates gives the one of lowest objective within ``eps_last``
        (of least violation if there is none), or the average of all with an objective step,
        weighted with eta, is returned.

    See Also
    --------
    Plada : Has multipliers, and knows when to stop.

    Notes
    -----
    An iteration costs one evaluation and one pull-back. All ``max_iter`` iterations are made, since
    without multipliers there is no test of optimality; the status is "converged" only if the
    constraints are kept where the gradient of the objective vanishes. Multipliers are zeros.
    The error in objective and violation is well below 1e-3 with one or two constraints; with many
    it is larger, as each step serves only one of them.

    Examples
    --------
    >>> from skfair.solvers import SOLVERS
    >>> SOLVERS["ssg"](eps=0.01).constraint_step
    'polyak'
    """

    eta: float | None = None
    eta_last: float = 0.03
    eps: float = 0.1
    eps_last: float = 1e-4
    schedule: Literal["geometric", "root"] = "geometric"
    constraint_step: Literal["polyak", "equal"] = "polyak"
    output: Literal["best", "average"] = "best"

    needs = ()
    is_stochastic = False

    @classmethod
    def paper(cls) -> SSG:
        """Return the rule of Huang and Lin: equal steps that fall like 1 / sqrt(k + 1), averaged.

        The papers print neither first step nor first tolerance; they are 1 / L_F and 0.1. Known to
        fail: the average carries the error of the early iterates, and equal steps need hundreds of
        iterations to get back to the constraints when there are many.

        Returns
        -------
        solver : SSG
            The solver.
        """
        return cls(schedule="root", constraint_step="equal", output="average")

    def solve(
        self,
        problem: Any,
        theta0: FloatArray,
        multipliers0: FloatArray | None = None,
        *,
        tol: float = 1e-4,
        max_iter: int = 3000,
        random_state: Any = None,
        callback: Any = None,
    ) -> SolverResult:
        """Make ``max_iter`` steps.

        Parameters
        ----------
        problem : ConstrainedERM
            Has the methods in ``needs``.
        theta0 : ndarray of shape (n_parameters,)
            Where to start.
        multipliers0 : ndarray of shape (n_constraints,), default=None
            Not used.
        tol : float, default=1e-4
            Where no constraint presses, the largest gradient and violation to stop at.
        max_iter : int, default=3000
            Number of steps, over which the lengths of steps fall.
        random_state : object
            Not used.
        callback : callable, default=None
            ``callback(theta) -> stop``, called after each step.

        Returns
        -------
        result : SolverResult
            Parameters, zeros as multipliers, history.
        """
        return switch(
            self, problem, theta0, n_inner=max_iter, tol=tol, max_iter=max_iter, callback=callback
        )


def switch(
    rule: SSG,
    problem: Any,
    theta0: FloatArray,
    *,
    proximal: float = 0.0,
    n_inner: int,
    tol: float,
    max_iter: int,
    callback: Any,
) -> SolverResult:
    """Make switching steps; each ``n_inner`` of them are drawn to where they began.

    ``proximal`` is the weight of that, gamma, in units of L_F; it is added to F and to G.
    """
    constraints, history = OneSided(problem), History()
    at = problem.evaluate(np.array(theta0, dtype=np.float64))
    curvature = max(curvature_bounds(problem, at).objective, 1e-12)
    gamma = proximal * curvature
    first = 1 / (curvature + gamma) if rule.eta is None else rule.eta
    center, best, average = at.theta, _Best(rule.eps_last), _Average()
    status: Status = "max_iter"
    n_iter = 0
    while True:
        if 0 < n_iter < max_iter and n_iter % n_inner == 0:
            if rule.output == "average" and average.weight:
                at, average = problem.evaluate(average.value), _Average()
            center = at.theta
        violation = problem.violation(at)
        history.record(objective=at.objective, max_violation=violation)
        if n_iter == int(_FALLING * max_iter):
            best = _Best(rule.eps_last)
        best.offer(at, violation)
        if n_iter >= max_iter:
            break
        eta, eps = _lengths(rule, first, n_iter, n_inner, max_iter)
        away = at.theta - center
        G = constraints.values(at) + 0.5 * gamma * float(away @ away)
        worst = int(np.argmax(G)) if constraints.n else -1
        if worst < 0 or G[worst] <= eps:
            gradient = at.gradient()
            if violation <= tol and np.abs(gradient).max(initial=0.0) <= tol:
                best, status = _Best(tol), "converged"
                best.offer(at, violation)
                break
            average.add(at.theta, eta)
        else:
            gradient = at.gradient(constraints.unit(worst), objective=0.0)
            squared = float(np.square(gradient + gamma * away).sum())
            if rule.constraint_step == "polyak":
                eta = (G[worst] + _INSIDE * eps) / squared if squared else 0.0
        at = problem.evaluate(at.theta - eta * (gradient + gamma * away))
        n_iter += 1
        if callback is not None and callback(at.theta):
            status = "stopped"
            best.offer(at, problem.violation(at))
            break
    is_average = rule.output == "average" and average.weight and status != "converged"
    theta = average.value if is_average else best.theta
    return SolverResult(theta, np.zeros(problem.n_constraints), n_iter, status, history.as_dict())


def _lengths(
    rule: SSG, first: float, n_iter: int, n_inner: int, max_iter: int
) -> tuple[float, float]:
    """Return length and tolerance of a step."""
    if rule.schedule == "root":
        root = np.sqrt(n_iter % n_inner + 1)
        return first / root, rule.eps / root
    part = min(1.0, n_iter / (_FALLING * max_iter))
    return first * rule.eta_last**part, rule.eps * (rule.eps_last / rule.eps) ** part


class _Best:
    """The iterate of lowest objective within a tolerance, or else of least violation."""

    def __init__(self, tolerance: float) -> None:
        self._tolerance = tolerance
        self._rank = (np.inf, np.inf)
        self.theta = np.empty(0)

    def offer(self, at: Any, violation: float) -> None:
        """Keep the iterate if it is the best so far."""
        rank = (max(violation - self._tolerance, 0.0), at.objective)
        if rank < self._rank:
            self._rank, self.theta = rank, at.theta


class _Average:
    """A weighted average of iterates."""

    def __init__(self) -> None:
        self.weight = 0.0
        self.value = np.empty(0)

    def add(self, theta: FloatArray, weight: float) -> None:
        """Take in one iterate."""
        self.weight += weight
        old = self.value if self.value.size else theta
        self.value = old + (weight / self.weight) * (theta - old)
