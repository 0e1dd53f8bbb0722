r"""Augmented Lagrangian with L-BFGS: for models without second derivatives, or very many columns.

The function that is minimised is that of :mod:`skfair.solvers.al_newton`; each minimisation is one
run of scipy's L-BFGS, stopped where its gradient is small against the last violation.

lam -> lambda, rho -> penalty weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from skfair.solvers.al_newton import augmented, gap_of
from skfair.solvers.base import SOLVERS, SolverResult, Status
from skfair.utils.history import History

FloatArray = NDArray[np.float64]


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
    memory : int, default=20
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
    memory: int = 20

    needs = ("evaluate", "gradient")
    is_stochastic = False

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
        theta = np.array(theta0, dtype=np.float64)
        rho, history = self.rho, History()
        status: Status = "max_iter"
        last_gap, n_iter, inner_tol = np.inf, 0, 1e-2

        def value_and_gradient(x: FloatArray) -> tuple[float, FloatArray]:
            at = problem.evaluate(x)
            al = augmented(problem, at, lam, rho)
            return al.value, problem.gradient(at, al.nu)

        while n_iter < max_iter:
            found = minimize(
                value_and_gradient,
                theta,
                jac=True,
                method="L-BFGS-B",
                options={
                    "maxiter": max_iter - n_iter,
                    "maxfun": 2 * max_iter,
                    "gtol": inner_tol,
                    "ftol": 0.0,
                    "maxcor": self.memory,
                },
            )
            n_iter += max(1, found.nit)
            theta = found.x
            at = problem.evaluate(theta)
            al = augmented(problem, at, lam, rho)
            nu = al.nu
            stationarity = float(np.abs(problem.gradient(at, nu)).max(initial=0.0))
            gap = gap_of(al, lam, rho)
            lam = nu
            history.record(
                objective=at.objective,
                max_violation=problem.violation(at),
                stationarity=stationarity,
            )
            if stationarity <= tol and gap <= tol:
                status = "converged"
                break
            if callback is not None and callback(theta):
                status = "stopped"
                break
            # Rounding can end a run above its tolerance; a larger penalty would only make it worse.
            is_stuck = found.nit == 0 and inner_tol <= tol
            if is_stuck and gap >= last_gap:
                break
            if gap > last_gap / self.rho_growth and not is_stuck:
                rho = min(self.rho_growth * rho, self.rho_max)
            last_gap = gap
            inner_tol = max(0.5 * tol, min(0.1 * inner_tol, 0.1 * gap))
        return SolverResult(theta, lam, n_iter, status, history.as_dict())
