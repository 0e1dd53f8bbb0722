r"""Augmented Lagrangian with L-BFGS: for models without second derivatives, or very many columns.

Estimators make an :class:`ALLBFGS` and call its ``solve`` with a problem. The method minimises the
augmented Lagrangian of ``al_newton.py`` by a run of L-BFGS (``lbfgs.py``), renews the multipliers,
and minimises again. Each run ends when its gradient is small compared with the last violation,
because multipliers and parameters are then equally inexact.

lam -> lambda, rho -> penalty weight, nu -> renewed multipliers, which the gradient sees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from skfair._typing import FloatArray
from skfair.problems.protocol import Evaluation, Problem
from skfair.solvers.base import SOLVERS, IterativeSolver, Run, Step
from skfair.solvers.erm.al_newton import augmented, gap_of
from skfair.solvers.erm.lbfgs import LBFGS, Point
from skfair.solvers.parameters import Count, Positive, PositiveOrInf


@SOLVERS.register("al_lbfgs")
@dataclass
class ALLBFGS(IterativeSolver[Problem]):
    """Augmented Lagrangian method with L-BFGS.

    It is the default for linear models with many features. Its accuracy is high, and it only needs
    first derivatives.

    Parameters
    ----------
    rho : float, default=10.0
        Initial penalty weight.
    rho_growth : float, default=4.0
        Factor by which the penalty weight is increased if an update of the multipliers does not
        reduce the violation by the same factor.
    rho_max : float, default=1e4
        Maximum penalty weight.
    memory : int, default=50
        Number of pairs of steps and gradient changes that L-BFGS stores.
    max_multiplier : float, default=inf
        Maximum multiplier. If a constraint would need a larger one, or cannot be satisfied, its
        violation is penalised with this weight instead.

    See Also
    --------
    ALNewton : The same with Newton steps.
    ALM : The stochastic method for networks and streams.

    Examples
    --------
    >>> from skfair.classification import ConstrainedERMClassifier
    >>> from skfair.solvers import ALLBFGS
    >>> X, y, sex = [[0], [1], [2], [3]] * 30, [0, 0, 1, 1] * 30, ["f", "m", "f", "m"] * 30
    >>> model = ConstrainedERMClassifier(solver=ALLBFGS(memory=10))
    >>> model.fit(X, y, sensitive_features=sex).status_
    'converged'
    """

    rho: Positive = 10.0
    rho_growth: Positive = 4.0
    rho_max: PositiveOrInf = 1e4
    memory: Count = 50
    max_multiplier: PositiveOrInf = np.inf

    is_precise: ClassVar[bool] = True
    default_tol: ClassVar[float] = 1e-6

    def steps(self, problem: Problem, run: Run) -> Iterator[Step]:
        # Each yield is the end of a run of L-BFGS, and n_iter counts the iterations of all runs.
        lam = np.zeros(problem.n_constraints) if run.multipliers is None else run.multipliers
        rho, last_gap, n_iter, inner_tol = self.rho, np.inf, 0, 1e-2
        lbfgs: LBFGS[tuple[Evaluation, FloatArray]] = LBFGS(self.memory)

        def point(at: Evaluation) -> Point[tuple[Evaluation, FloatArray]]:
            value, nu = augmented(problem, at, lam, rho, self.max_multiplier)
            return Point(at.theta, value, at.gradient(nu), (at, nu))

        at = problem.evaluate(run.start)
        while n_iter < run.max_iter:
            minimum, n_steps = lbfgs.minimize(
                lambda x: point(problem.evaluate(x)), point(at), inner_tol, run.max_iter - n_iter
            )
            n_iter += max(1, n_steps)
            at, nu = minimum.more
            gap, lam = gap_of(nu, lam, rho), nu
            is_solved = minimum.steepness <= run.tol and gap <= run.tol
            columns = {"stationarity": minimum.steepness}
            yield Step(at, lam, n_iter, "converged" if is_solved else None, columns)
            # Rounding can end a run above its tolerance. The penalty weight then stays as it is,
            # because a larger one would make this worse. If the violation has not fallen either,
            # the solver gives up.
            is_stuck = minimum.steepness > inner_tol or (n_steps == 0 and inner_tol <= run.tol)
            if is_stuck and gap >= last_gap:
                return
            if gap > last_gap / self.rho_growth and not is_stuck:
                rho = min(self.rho_growth * rho, self.rho_max)
            last_gap = gap
            inner_tol = max(0.5 * run.tol, min(0.1 * inner_tol, 0.1 * gap))
