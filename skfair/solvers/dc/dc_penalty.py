r"""Subgradient descent on the objective plus a multiple of the largest violation: (114) and (119).

A baseline of partial_fairness_idca, section G.3,

.. math:: \min_\theta F(\theta) + \rho \max_j (c_j(\theta) - u_j, \; l_j - c_j(\theta))_+

With tolerance 0 the violations are the distances of (114) from the percentiles p, in ranks, with
:math:`\rho = 2 \lambda / (\beta - \alpha)`; in (119), which compares pairs of shares in place of
shares and their centre, :math:`\rho = 2 \lambda`.

rho -> weight, eta -> length of a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from skfair._typing import FloatArray
from skfair.solvers.base import Solver, SolverResult, Status
from skfair.solvers.dc.base import DC_SOLVERS, OBJECTIVE, StepLengths
from skfair.solvers.one_sided import OneSided
from skfair.utils.history import History


@DC_SOLVERS.register("penalty")
@dataclass
class DCPenalty(Solver):
    r"""Subgradient descent on a penalised objective.

    Parameters
    ----------
    weight : float, default=0.3
        Weight of the largest violation. From the sum of the multipliers on, minima of the penalised
        objective keep the constraints; smaller ones give up some of them.
    step : float, default=2e-3
        Factor on the subgradient in each step; the paper chooses among 5e-4 to 5e-3.
    output : {"last", "best"}, default="last"
        Which iterate is returned; the best has the lowest penalised objective. The paper takes the
        last.

    See Also
    --------
    IDCA : Keeps the constraints.

    Notes
    -----
    A step costs one pass through the model and one pull-back. Steps of fixed length end in a
    neighbourhood of a stationary point; where they diverge, the best iterate is returned.
    Multipliers are the weight times the part of the steps, in the second half, in which a
    constraint was the worst.

    References
    ----------
    Equations (114) and (119) of partial_fairness_idca.

    Examples
    --------
    >>> from skfair.solvers.dc.base import DC_SOLVERS
    >>> DC_SOLVERS["penalty"](weight=1.0).step
    0.002
    """

    weight: float = 0.3
    step: float = 2e-3
    output: Literal["last", "best"] = "last"

    ignores_tolerance = True  # it pays for any distance from parity

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
            Stops where the subgradient is at most as long.
        max_iter : int, default=None
            Number of steps; None for 10000, as in the paper.
        random_state : object
            Not used.
        callback : callable, default=None
            ``callback(theta) -> stop``, called after each step.

        Returns
        -------
        result : SolverResult
            Parameters, estimated multipliers, history.
        """
        rows, history = OneSided(problem), History()
        status: Status = "max_iter"
        n_iter, n_steps = 0, 10_000 if max_iter is None else max_iter
        at = best = problem.evaluate(np.array(theta0, dtype=np.float64))
        lowest, lengths = np.inf, StepLengths(rows.n)
        while True:
            G = rows.values(at)
            worst = int(np.argmax(G)) if rows.n else -1
            violation = max(0.0, float(G[worst])) if rows.n else 0.0
            history.record(objective=at.objective, max_violation=violation)
            value = at.objective + self.weight * violation
            if not np.isfinite(value):  # steps of fixed length can diverge
                at = best
                break
            if value < lowest:
                lowest, best = value, at
            if n_iter >= n_steps or status == "stopped":
                break
            if n_iter == n_steps // 2:
                lengths = StepLengths(rows.n)
            presses = self.weight * rows.unit(worst) if violation else None
            gradient = at.gradient(presses)
            if float(np.linalg.norm(gradient)) <= (tol or 0.0):
                status = "converged"
                break
            lengths.add(OBJECTIVE, self.step)
            if violation:
                lengths.add(worst, self.step * self.weight)
            at = problem.evaluate(at.theta - self.step * gradient)
            n_iter += 1
            if callback is not None and callback(at.theta):
                status = "stopped"
        theta = at.theta if self.output == "last" else best.theta
        return SolverResult(theta, lengths.multipliers(problem), n_iter, status, history.as_dict())
