r"""IDCA: Algorithm 1 of partial_fairness_idca, with Algorithm 2 for its convex problems.

Objective and constraints are differences of convex functions, f_i = f_i^+ - f_i^-. At an iterate w
the f_i^- are replaced by their tangents; the g_i >= f_i that come out are convex, (31). A fixed
number of switching subgradient steps on them gives the next w: each step lowers the objective g_0
if the largest constraint is at most eps, and that constraint otherwise.

The paper leaves open what to do where no step was within eps, which cannot happen from a feasible
start; the point of least violation is taken then, which repairs starts that are not far off.

Constraints on rates are solved as (21), (50) and (56) print them, with the convex parts of Example
D.5 and eps in ranks. The reformulation with a centre, ``form="centers"``, cancels terms in these
parts, and measures in shares of the interval, so the same eps is stricter by the interval's length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Literal, cast

import numpy as np

from skfair.enforcement.partial.strict import INTERVAL_SOLVERS
from skfair.papers.idca.base import DCSolver, Linearised, Point, StepLengths, switching_step
from skfair.papers.idca.parts import DCProblem
from skfair.solvers.base import Run, Status, Step
from skfair.solvers.parameters import Count, NonNegative, Positive


@INTERVAL_SOLVERS.register("idca")
@dataclass
class IDCA(DCSolver):
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
    form : {"pairs", "centers"}, default="pairs"
        How constraints on rates are written: as in (21), (50) and (56), for all pairs of groups
        and in ranks, or for each group and a centre, in shares of the interval. In ranks, ``eps``
        allows 1 over the length of the interval times as much. Other constraints are the same.

    See Also
    --------
    IDCAStochastic : The same algorithm with steps on batches, for networks.
    DCSSG : The same steps without convex problems.
    ALLBFGS : Reaches a lower objective in a fraction of the time on smooth surrogates.

    Notes
    -----
    A step costs one pass through the model, both convex parts of the constraints, and one
    pull-back; a convex problem costs one more pull-back per constraint. G groups make G (G - 1)
    constraints on pairs, and 2 G with centres.
    From a start that violates by at most eps, so do all iterates, and the objective never rises.
    Where no step lowers it the iterates rest: smaller values of eps may still get further.
    Multipliers are an estimate: total length of the steps against a constraint over that of the
    steps against the objective, in the last convex problem.

    References
    ----------
    Algorithms 1 and 2 of partial_fairness_idca.

    Examples
    --------
    >>> from skfair.enforcement.partial.strict import INTERVAL_SOLVERS
    >>> INTERVAL_SOLVERS["idca"](eps=5e-3).n_inner
    150
    """

    n_inner: Count = 150
    eps: Positive = 2e-3
    n_outer: Count = 100
    mu: NonNegative = 0.0
    form: Literal["pairs", "centers"] = "pairs"

    def steps(self, problem: DCProblem, run: Run) -> Iterator[Step]:
        # Yields the solutions of the convex problems; ends where one moves by at most ``tol``.
        convex = Linearised(problem, problem.parts(run.start), self.mu)
        lengths, moved = StepLengths(convex.n), np.inf
        for n_iter in count():
            w, status = convex.center, cast(Status | None, None)
            if moved <= run.tol:
                status = "converged" if w.excess <= self.eps else "infeasible"
            yield Step(problem.evaluate(w.theta), lengths.multipliers(problem), n_iter, status)
            point, lengths = self._minimise(convex)
            moved = float(np.linalg.norm(point.theta - w.theta))
            convex = Linearised(problem, point.parts, self.mu)

    def _minimise(self, convex: Linearised) -> tuple[Point, StepLengths]:
        """Run Algorithm 2; where the last step leads is a candidate too."""
        lengths = StepLengths(convex.n)

        def points() -> Iterator[Point]:
            at = convex.center
            yield at
            for _ in range(self.n_inner):
                step = switching_step(at.constraints, partial(convex.gradient, at), self.eps)
                if step is None:
                    return
                row, length, against = step
                lengths.add(row, length)
                at = convex.evaluate(at.theta - length * against)
                yield at

        # The lowest within the tolerance, or the one of least violation.
        best = min(points(), key=lambda at: (max(at.excess - self.eps, 0.0), at.objective))
        return best, lengths
