r"""Augmented Lagrangian with L-BFGS: for models without second derivatives, or very many columns.

The function that is minimised is that of ``al_newton.py``; each minimisation is one
run of L-BFGS (``lbfgs.py``), stopped where its gradient is small against the last
violation.

lam -> lambda, rho -> penalty weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skfair._typing import FloatArray
from skfair.solvers.base import SOLVERS, SolverResult, Status
from skfair.solvers.erm.al_newton import augmented, gap_of
from skfair.solvers.erm.lbfgs import LBFGS, Point
from skfair.utils.history import History


@SOLVERS.register("al_lbfgs")
@dataclass
class ALLBFGS:
    """Augmented Lagrangian with L-BFGS.

    Parameters
    ----------
    rho : float, default=10.0
        First penalty weight.
    rho_growth : float, default=4.0
        Factor on it when a renewal of the multipliers does not shrink the violation by as much.
    rho_max : float, default=1e4
        Largest penalty weight.
    memory : int, default=50
        Pairs of steps and gradient changes that L-BFGS keeps.

    Examples
    --------
    >>> from skfair.solvers import ALLBFGS
    >>> ALLBFGS(memory=10).memory
    10
    """

    rho: float = 10.0
    rho_growth: float = 4.0
    rho_max: float = 1e4
    memory: int = 50

    needs = ()
    is_stochastic = False
    is_precise = True

    def solve(
        self,
        problem: Any,
        theta0: FloatArray,
        multipliers0: FloatArray | None = None,
        *,
        tol: float = 1e-6,
        max_iter: int = 5000,
        random_state: Any = None,
        callback: Any = None,
    ) -> SolverResult:
        """Solve to a KKT residual of ``tol``.

        Parameters
        ----------
        problem : ConstrainedERM
            Has the methods in ``needs``.
        theta0 : ndarray of shape (n_parameters,)
            Where to start.
        multipliers0 : ndarray of shape (n_constraints,), default=None
            Multipliers to start from; zeros if None.
        tol : float, default=1e-6
            Largest KKT residual.
        max_iter : int, default=5000
            Largest number of L-BFGS steps over all minimisations.
        random_state : object
            Not used.
        callback : callable, default=None
            ``callback(theta) -> stop``, called after each minimisation.

        Returns
        -------
        result : SolverResult
            Parameters, signed multipliers, history.
        """
        m = problem.n_constraints
        lam = np.zeros(m) if multipliers0 is None else np.array(multipliers0, dtype=np.float64)
        rho, history = self.rho, History()
        status: Status = "max_iter"
        last_gap, n_iter, inner_tol = np.inf, 0, 1e-2
        lbfgs = LBFGS(self.memory)

        def point(at: Any) -> Point:
            al = augmented(problem, at, lam, rho)
            return Point(at.theta, al.value, at.gradient(al.nu), (at, al))

        found = point(problem.evaluate(np.array(theta0, dtype=np.float64)))
        while n_iter < max_iter:
            found, n_steps = lbfgs.minimize(
                lambda x: point(problem.evaluate(x)), found, inner_tol, max_iter - n_iter
            )
            n_iter += max(1, n_steps)
            at, al = found.more
            gap = gap_of(al, lam, rho)
            lam = al.nu
            history.record(
                objective=at.objective,
                max_violation=problem.violation(at),
                stationarity=found.steepness,
            )
            if found.steepness <= tol and gap <= tol:
                status = "converged"
                break
            if callback is not None and callback(at.theta):
                status = "stopped"
                break
            # Rounding can end a run above its tolerance; a larger penalty would only make it worse.
            is_stuck = found.steepness > inner_tol or (n_steps == 0 and inner_tol <= tol)
            if is_stuck and gap >= last_gap:
                break
            if gap > last_gap / self.rho_growth and not is_stuck:
                rho = min(self.rho_growth * rho, self.rho_max)
            last_gap = gap
            inner_tol = max(0.5 * tol, min(0.1 * inner_tol, 0.1 * gap))
            found = point(at)
        return SolverResult(found.x, lam, n_iter, status, history.as_dict())
