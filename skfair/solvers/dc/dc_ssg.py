r"""Switching subgradients on the DC problem itself: Algorithm 3 of partial_fairness_idca.

A heuristic that the paper compares IDCA with: the step of Algorithm 2 on the functions as they are.
Where the largest constraint f is at most eps_t, the step is eps_t / |grad f_0|^2 against the
objective, otherwise f / |grad f|^2 against that constraint.

Changed: the paper returns the best iterate within its own eps_t, which for diminishing tolerances
may be an early one that violates by much; here it must be within the last tolerance. For static
tolerances this is the same. Without such an iterate the paper returns nothing; here the one of
least violation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from skfair._typing import FloatArray
from skfair.solvers.base import Solver, SolverResult, Status
from skfair.solvers.dc.base import DC_SOLVERS, Best, Direct, StepLengths, switching_step
from skfair.utils.history import History


@DC_SOLVERS.register("ssg")
@dataclass
class DCSwitching(Solver):
    r"""Switching subgradient method for differences of convex functions.

    Parameters
    ----------
    eps : float, default=1e-3
        Static tolerance on the constraints, and the descent that an objective step aims at. The
        paper chooses among 1e-4 to 1e-3.
    schedule : {"static", "diminishing"}, default="static"
        Whether all tolerances are ``eps``, or that of step t is ``c / (t + 1)``.
    c : float, default=0.5
        First diminishing tolerance; the paper chooses among 0.2 to 2.

    See Also
    --------
    IDCA : Solves convex problems, and never leaves the constraints by more than ``eps``.
    SSG : Switching steps of scheduled lengths, for problems with smooth functions.

    Notes
    -----
    A step costs one pass through the model and one pull-back. Nothing is guaranteed: steps may end
    where the constraints are violated and stationary. Multipliers are estimated over the second
    half of the steps, as in :class:`IDCA`.

    References
    ----------
    Algorithm 3 of partial_fairness_idca.

    Examples
    --------
    >>> from skfair.solvers.dc.base import DC_SOLVERS
    >>> DC_SOLVERS["ssg"](eps=5e-3).schedule
    'static'
    """

    eps: float = 1e-3
    schedule: Literal["static", "diminishing"] = "static"
    c: float = 0.5

    def solve(
        self,
        problem: Any,
        theta0: FloatArray,
        multipliers0: FloatArray | None = None,
        *,
        tol: float | None = None,
        max_iter: int | None = None,
        random_state: Any = None,
        callback: Any = None,
    ) -> SolverResult:
        """Make ``max_iter`` steps.

        Parameters
        ----------
        problem : PartialParityProblem
            Has the methods in ``needs``.
        theta0 : ndarray of shape (n_parameters,)
            Where to start.
        multipliers0 : ndarray of shape (n_constraints,), default=None
            Not used.
        tol : float, default=None
            Not used: there is no test of optimality.
        max_iter : int, default=None
            Number of steps; None for 10000. The paper makes 50000 with the best tolerance.
        random_state : object
            Not used.
        callback : callable, default=None
            ``callback(theta) -> stop``, called after each step.

        Returns
        -------
        result : SolverResult
            Parameters, estimated multipliers, history. The status is "converged" or "infeasible"
            only where a subgradient vanished.
        """
        functions, history = Direct(problem), History()
        status: Status = "max_iter"
        n_iter, n_steps = 0, 10_000 if max_iter is None else max_iter
        at = functions.evaluate(np.array(theta0, dtype=np.float64))
        best, lengths = Best(self._tolerance(n_steps - 1), at), StepLengths(functions.n)
        history.record(objective=at.objective, max_violation=at.violation)
        while n_iter < n_steps:
            if n_iter == n_steps // 2:
                lengths = StepLengths(functions.n)
            eps = self._tolerance(n_iter)
            following = switching_step(functions, at, eps, lengths)
            if following is None:
                status = "converged" if at.excess <= eps else "infeasible"
                break
            at = following
            n_iter += 1
            best.offer(at)
            history.record(objective=at.objective, max_violation=at.violation)
            if callback is not None and callback(at.theta):
                status = "stopped"
                break
        multipliers = lengths.multipliers(problem)
        return SolverResult(best.point.theta, multipliers, n_iter, status, history.as_dict())

    def _tolerance(self, step: int) -> float:
        return self.eps if self.schedule == "static" else self.c / (max(step, 0) + 1)
