r"""Switching subgradients on the DC problem itself: Algorithm 3 of partial_fairness_idca.

This is a heuristic that the paper compares with IDCA: it makes the step of Algorithm 2 on the
functions themselves. If the largest constraint f is at most eps_t, the step is -eps_t / |grad
f_0|^2 times the gradient of the objective, otherwise -f / |grad f|^2 times the gradient of that
constraint.

Changed: the paper returns the best iterate within its own eps_t. If the tolerances diminish, this
may be an early iterate with a large violation. Here it must be within the last tolerance. For
static tolerances this is the same. If there is no such iterate, the paper returns nothing, and this
class returns the iterate of least violation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Literal, cast

import numpy as np

from skfair._typing import FloatArray
from skfair.papers.idca.base import OBJECTIVE, DCSolver, StepLengths, switching_step
from skfair.papers.idca.parts import DCProblem
from skfair.papers.one_sided import Best, OneSided
from skfair.partial_parity.strict_rounds import INTERVAL_SOLVERS
from skfair.solvers.base import Answer, Run, Step
from skfair.solvers.parameters import Positive
from skfair.utils.endings import Status


@INTERVAL_SOLVERS.register("dc_ssg")
@dataclass
class DCSSG(DCSolver):
    r"""Switching subgradient method for differences of convex functions.

    Parameters
    ----------
    eps : float, default=1e-3
        Static tolerance on the constraints, which is also the descent that an objective step aims
        at. The paper uses 1e-4 to 1e-3.
    schedule : {"static", "diminishing"}, default="static"
        Tolerances of the steps. If "static", all tolerances are ``eps``. If "diminishing", the
        tolerance of step t is ``c / (t + 1)``.
    c : float, default=0.5
        First diminishing tolerance. The paper uses 0.2 to 2.
    form : {"pairs", "centers"}, default="pairs"
        Form of constraints on rates, as in :class:`IDCA`.

    See Also
    --------
    IDCA : Method that solves convex problems, with a violation of at most ``eps``.
    SSG : Switching steps of scheduled lengths, for problems with smooth functions.

    Notes
    -----
    A step costs one pass through the model and one gradient. There is no guarantee, because the
    method may end at a stationary point of the violated constraints. Multipliers are estimated over
    the second half of the steps, as in :class:`IDCA`.

    References
    ----------
    Algorithm 3 of partial_fairness_idca.

    Examples
    --------
    >>> from skfair.partial_parity.strict_rounds import INTERVAL_SOLVERS
    >>> INTERVAL_SOLVERS["dc_ssg"](eps=5e-3).schedule
    'static'
    """

    eps: Positive = 1e-3
    schedule: Literal["static", "diminishing"] = "static"
    c: Positive = 0.5
    form: Literal["pairs", "centers"] = "pairs"

    def steps(self, problem: DCProblem, run: Run) -> Iterator[Step]:
        # There is no test of optimality. A run ends early only if a subgradient is 0. The best
        # iterate within the last tolerance is returned.
        rows, zeros = OneSided(problem), np.zeros(problem.n_constraints)
        at, lengths = problem.evaluate(run.start), StepLengths(rows.n)
        best = Best(self._tolerance(run.max_iter - 1))

        def answer() -> Answer:
            return Answer(best.at or at, lengths.multipliers(problem))

        def gradient(row: int) -> FloatArray:
            unit = None if row == OBJECTIVE else rows.unit(row)
            return at.gradient(unit, objective=float(unit is None))

        for n_iter in count():
            G = rows.values(at)
            excess = float(G.max(initial=-np.inf))
            best.offer(at, max(excess, 0.0))  # max() in this order keeps NaN
            eps, status = self._tolerance(n_iter), cast(Status | None, None)
            step = switching_step(G, gradient, eps) if n_iter < run.max_iter else None
            if step is None and n_iter < run.max_iter:
                status = "converged" if excess <= eps else "infeasible"
            yield Step(at, zeros, n_iter, status, answer=answer)
            if step is None:
                return
            if n_iter == run.max_iter // 2:
                lengths = StepLengths(rows.n)
            row, length, against = step
            lengths.add(row, length)
            at = problem.evaluate(at.theta - length * against)

    def _tolerance(self, step: int) -> float:
        return self.eps if self.schedule == "static" else self.c / (max(step, 0) + 1)
