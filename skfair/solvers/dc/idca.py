r"""IDCA: Algorithm 1 of partial_fairness_idca, with Algorithm 2 for its convex problems.

Objective and constraints are differences of convex functions, f_i = f_i^+ - f_i^-. At an iterate w
the f_i^- are replaced by their tangents; the g_i >= f_i that come out are convex, (31). A fixed
number of switching subgradient steps on them gives the next w: each step lowers the objective g_0
if the largest constraint is at most eps, and that constraint otherwise.

The paper leaves open what to do where no step was within eps, which cannot happen from a feasible
start; the point of least violation is taken then, which repairs starts that are not far off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skfair._typing import FloatArray
from skfair.solvers.base import Solver, SolverResult, Status
from skfair.solvers.dc.base import (
    DC_SOLVERS,
    Best,
    Linearised,
    Parts,
    Point,
    StepLengths,
    switching_step,
)
from skfair.utils.history import History


@DC_SOLVERS.register("idca")
@dataclass
class IDCA(Solver):
    r"""Inexact difference-of-convex algorithm.

    Looks for a KKT point of :math:`\min F(\theta)` subject to :math:`l \le c(\theta) \le u`, all
    functions being differences of convex ones.

    Parameters
    ----------
    n_inner : int, default=150
        Subgradient steps per convex problem; T of the paper, which chooses among 150 and 200.
    eps : float, default=2e-3
        Violation allowed, in the unit of the constraints. It is also the descent that an objective
        step aims at, so that smaller ones are slower. The paper chooses among 5e-4 to 5e-3.
    n_outer : int, default=100
        Number of convex problems, K of the paper, which chooses among 100 to 400.
    mu : float, default=0.0
        Weight of a pull to the last iterate, in objective and constraints: the strong convexity of
        Assumption 6.3A. The theory wants some; the paper's experiments have none.

    See Also
    --------
    DCSwitching : The same steps without convex problems.
    ALLBFGS : Reaches a lower objective in a fraction of the time on smooth surrogates.

    Notes
    -----
    A step costs one pass through the model, both convex parts of the constraints, and one
    pull-back; a convex problem costs one more pull-back per constraint.
    From a start that violates by at most eps, so do all iterates, and the objective never rises.
    Where no step lowers it the iterates rest: smaller values of eps may still get further.
    Multipliers are an estimate: total length of the steps against a constraint over that of the
    steps against the objective, in the last convex problem.

    References
    ----------
    Algorithms 1 and 2 of partial_fairness_idca.

    Examples
    --------
    >>> from skfair.solvers.dc.base import DC_SOLVERS
    >>> DC_SOLVERS["idca"](eps=5e-3).n_inner
    150
    """

    n_inner: int = 150
    eps: float = 2e-3
    n_outer: int = 100
    mu: float = 0.0

    needs = ("parts",)

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
        """Solve convex problems one after the other.

        Parameters
        ----------
        problem : PartialParityProblem
            Has the attributes in ``needs``.
        theta0 : ndarray of shape (n_parameters,)
            Where to start.
        multipliers0 : ndarray of shape (n_constraints,), default=None
            Not used.
        tol : float, default=None
            Stops after a convex problem that moves the parameters by at most this distance.
        max_iter : int, default=None
            Largest number of convex problems; None for ``n_outer``.
        random_state : object
            Not used.
        callback : callable, default=None
            ``callback(theta) -> stop``, called after each convex problem.

        Returns
        -------
        result : SolverResult
            Parameters, estimated multipliers, history per convex problem. The status is
            "infeasible" if the parameters rest where they violate by more than ``eps``.
        """
        history = History()
        status: Status = "max_iter"
        n_iter, n_outer = 0, self.n_outer if max_iter is None else max_iter
        convex = Linearised(problem, Parts(problem, np.array(theta0, dtype=np.float64)), self.mu)
        lengths = StepLengths(convex.n)
        w = convex.center
        history.record(objective=w.objective, max_violation=w.violation)
        while n_iter < n_outer:
            found, lengths = self._minimise(convex)
            moved = float(np.linalg.norm(found.theta - w.theta))
            convex = Linearised(problem, found.tape, self.mu)
            w = convex.center  # the problem itself at the point found
            n_iter += 1
            history.record(objective=w.objective, max_violation=w.violation)
            if callback is not None and callback(w.theta):
                status = "stopped"
                break
            if moved <= (tol or 0.0):
                status = "converged" if w.violation <= self.eps else "infeasible"
                break
        multipliers = lengths.multipliers(problem)
        return SolverResult(w.theta, multipliers, n_iter, status, history.as_dict())

    def _minimise(self, convex: Linearised) -> tuple[Point, StepLengths]:
        """Run Algorithm 2; where the last step leads is a candidate too."""
        at = convex.center
        best, lengths = Best(self.eps, at), StepLengths(convex.n)
        for _ in range(self.n_inner):
            following = switching_step(convex, at, self.eps, lengths)
            if following is None:
                break
            at = following
            best.offer(at)
        return best.point, lengths
