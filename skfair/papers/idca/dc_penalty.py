r"""Subgradient descent on the objective plus a multiple of the largest violation: (114) and (119).

A baseline of partial_fairness_idca, section G.3,

.. math:: \min_\theta F(\theta) + \rho \max_j (c_j(\theta) - u_j, \; l_j - c_j(\theta))_+

Here l = u (the tolerance is 0), so every distance from parity counts. In (114) the violations are
distances from the percentiles p, in ranks, and :math:`\rho = 2 \lambda / (\beta - \alpha)`. In
(119) they are differences of two shares, and :math:`\rho = 2 \lambda`.

lambda -> lam, eta -> length of a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

import numpy as np

from skfair.papers.idca.base import OBJECTIVE, DCSolver, StepLengths
from skfair.papers.idca.parts import DCProblem
from skfair.papers.one_sided import OneSided
from skfair.partial_parity.promise import Promise
from skfair.partial_parity.ranked_moment import RankedMoment
from skfair.partial_parity.rate_moment import RateMoment
from skfair.partial_parity.statistical_parity import StatisticalParityMoment
from skfair.partial_parity.strict_rounds import INTERVAL_SOLVERS
from skfair.solvers.base import Answer, Run, Step
from skfair.solvers.parameters import NonNegative, Positive


@INTERVAL_SOLVERS.register("dc_penalty")
@dataclass
class DCPenalty(DCSolver):
    r"""Subgradient descent on a penalised objective.

    Parameters
    ----------
    lam : float, default=0.2
        Weight of the disparity, which is lambda in (114) and (119). The values of the paper start
        at 0.2. From a certain weight on, the minima of the penalised objective have no disparity.
    step : float, default=2e-3
        Step size, by which each subgradient is multiplied. The paper uses 5e-4 to 5e-3.
    output : {"last", "best"}, default="last"
        The iterate that is returned. If "last", it is the last one, as in the paper. If "best", it
        is the one with the lowest penalised objective.

    See Also
    --------
    IDCA : Method that satisfies the constraints.

    Notes
    -----
    The limit of the estimator has no effect. A step costs one pass through the model and one
    gradient. Steps of fixed length end in a neighbourhood of a stationary point. If the steps
    diverge, the best iterate is returned. The multiplier of a constraint is rho times the fraction
    of the steps in the second half in which it was the worst one.

    References
    ----------
    Equations (114) and (119) of partial_fairness_idca.

    Examples
    --------
    >>> from skfair.partial_parity.strict_rounds import INTERVAL_SOLVERS
    >>> INTERVAL_SOLVERS["dc_penalty"](lam=1.0).step
    0.002
    """

    lam: NonNegative = 0.2
    step: Positive = 2e-3
    output: Literal["last", "best"] = "last"

    def _asked(self, promise: Promise) -> Promise:
        # The penalty counts any distance from parity, so the user's limit is replaced by 0.
        limit: Any = 0.0
        if isinstance(promise.limit, Mapping):
            limit = {name: None if own is None else 0.0 for name, own in promise.limit.items()}
        return replace(promise, limit=limit)

    def steps(self, problem: DCProblem, run: Run) -> Iterator[Step]:
        # The run ends if the length of the subgradient is at most ``tol``.
        rows, zeros = OneSided(problem), np.zeros(problem.n_constraints)
        at = best = problem.evaluate(run.start)
        lowest, lengths = np.inf, StepLengths(rows.n)
        rho = self.lam * max(map(_unit, problem.moments), default=1.0)

        def answer() -> Answer:
            is_last = self.output == "last" and np.isfinite(value)
            return Answer(at if is_last else best, lengths.multipliers(problem))

        for n_iter in count():
            G = rows.values(at)
            worst = int(np.argmax(G)) if rows.n else OBJECTIVE
            violation = max(0.0, float(G[worst])) if rows.n else 0.0
            value = at.objective + rho * violation
            if not np.isfinite(value):
                yield Step(at, zeros, n_iter, "max_iter", answer=answer)
                return
            if value < lowest:
                lowest, best = value, at
            gradient = at.gradient(rho * rows.unit(worst) if violation else None)
            with np.errstate(over="ignore"):  # steps of fixed length can diverge
                is_flat = n_iter < run.max_iter and float(np.linalg.norm(gradient)) <= run.tol
            yield Step(at, zeros, n_iter, "converged" if is_flat else None, answer=answer)
            if n_iter == run.max_iter // 2:
                lengths = StepLengths(rows.n)
            lengths.add(OBJECTIVE, self.step)
            if violation:
                lengths.add(worst, self.step * rho)
            at = problem.evaluate(at.theta - self.step * gradient)


def _unit(moment: RankedMoment) -> float:
    """Return the factor from the violation of a row to the disparity."""
    shortest = float(moment.intervals.lengths.min())
    if isinstance(moment, StatisticalParityMoment):
        # A row holds a distance in ranks from the middle; the disparity is a difference in shares.
        return 2 / shortest
    if isinstance(moment, RateMoment):
        # A row holds a distance from a centre; the disparity is a difference of two shares.
        return {"shares": 2.0, "pairs": 1 / shortest}.get(moment.form, 2 / shortest)
    return 1.0
