r"""IDCA: Algorithm 1 of partial_fairness_idca, with Algorithm 2 for its convex problems.

Objective and constraints are differences of convex functions, f_i = f_i^+ - f_i^-. At an iterate w
the f_i^- are replaced by their tangents. The resulting functions g_i >= f_i are convex, (31). A
fixed number of switching subgradient steps on the g_i gives the next w. Each step lowers the
objective g_0 if the largest constraint is at most eps, and otherwise it lowers that constraint.

The paper does not say what to do if no step was within eps, which cannot happen from a feasible
start. Here w is then the point of least violation, so the method works from starts that violate the
constraints a little.

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

from skfair.papers.idca.base import DCSolver, Linearised, Point, StepLengths, switching_step
from skfair.papers.idca.parts import DCProblem
from skfair.partial_parity.strict_rounds import INTERVAL_SOLVERS
from skfair.solvers.base import Run, Step
from skfair.solvers.parameters import Count, NonNegative, Positive
from skfair.utils.endings import Status


@INTERVAL_SOLVERS.register("idca")
@dataclass
class IDCA(DCSolver):
    r"""Inexact difference-of-convex algorithm.

    It looks for a KKT point of :math:`\min F(\theta)` subject to :math:`l \le c(\theta) \le u`,
    where all functions are differences of convex functions.

    Parameters
    ----------
    n_inner : int, default=150
        Number of subgradient steps per convex problem, T. The paper uses 150 or 200.
    eps : float, default=2e-3
        Violation that is allowed, in the unit of the constraints. An objective step also aims at a
        descent of this size, so the method is slower with smaller values. The paper uses 5e-4 to
        5e-3.
    n_outer : int, default=100
        Number of convex problems, K. The paper uses 100 to 400.
    mu : float, default=0.0
        Weight of a proximal term in objective and constraints, which is the strong convexity of
        Assumption 6.3A. The theory requires it, but the experiments of the paper do not use it.
    form : {"pairs", "centers"}, default="pairs"
        Form of constraints on rates. If "pairs", they compare all pairs of groups in ranks, as in
        (21), (50) and (56). If "centers", they compare each group with a centre, in fractions of
        the interval. In ranks, ``eps`` allows a violation that is larger by the factor 1 / (length
        of the interval). Other constraints do not depend on the form.

    See Also
    --------
    IDCAStochastic : The same algorithm on batches, for networks.
    DCSSG : The same steps without convex problems.
    skfair.solvers.ALLBFGS : Method for smooth surrogates, which is much faster.

    Notes
    -----
    A step costs one pass through the model, both convex parts of the constraints, and one gradient.
    A convex problem costs one more gradient per constraint. G groups have G (G - 1) constraints on
    pairs, and 2 G constraints with centres.

    If the starting point violates the constraints by at most eps, all iterates do so, and the
    objective never increases. If no step reduces the objective, the iterates do not move. Smaller
    values of eps may then still make progress. Multipliers are an estimate, which is the total
    length of the steps for a constraint divided by the total length of the steps for the objective,
    in the last convex problem.

    References
    ----------
    Algorithms 1 and 2 of partial_fairness_idca.

    Examples
    --------
    >>> from skfair.partial_parity.strict_rounds import INTERVAL_SOLVERS
    >>> INTERVAL_SOLVERS["idca"](eps=5e-3).n_inner
    150
    """

    n_inner: Count = 150
    eps: Positive = 2e-3
    n_outer: Count = 100
    mu: NonNegative = 0.0
    form: Literal["pairs", "centers"] = "pairs"

    def steps(self, problem: DCProblem, run: Run) -> Iterator[Step]:
        # Each yield solves a convex problem. The run ends if w moves by at most ``tol``.
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
        """Run Algorithm 2. The point after the last step is a candidate, too."""
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

        # The point of lowest objective within the tolerance, or the one of least violation.
        best = min(points(), key=lambda at: (max(at.excess - self.eps, 0.0), at.objective))
        return best, lengths
