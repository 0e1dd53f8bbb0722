r"""IDCA on batches: Algorithm 1 of partial_fairness_idca with the inner steps of its section G.9.

For networks the paper replaces Algorithm 2, which needs all rows for every step, by the stochastic
primal-dual method of Yu, Neely and Wei (2017). Each step draws a batch and is

.. math::
   w_{t+1} &= w_t - \frac{1}{2 \alpha} \Big( V \nabla g_0(w_t) + \sum_i Q_i \nabla g_i(w_t) \Big) \\
   Q_i &\leftarrow \max(Q_i + g_i(w_t) + \nabla g_i(w_t)^T (w_{t+1} - w_t), \; 0)

with the convex functions g_i of (31), whose plus parts are means over the batch, and Q = 0 at
first. The mean of w_1 ... w_T is the next centre of Algorithm 1. V is sqrt(T) and alpha is T by
default, as in the theory of that method.

The paper does not say how a batch is drawn. Here it has equally many rows of each group, so that
the mean of each group is estimated without bias. Both parts of f_i are computed on the same batch.
They are long sums that nearly cancel, so with a tangent from other rows their noise would remain.

The tangents belong to the minus parts as functions of the scores. With linear scores this makes no
difference. With networks neither part is convex in w, and these tangents need one backward pass per
step for any number of constraints.

Changed: Q is kept from one convex problem to the next, because the multipliers of both are close.
The result is the best centre of the second half of the run, measured on all rows, because single
centres are noisy.

w -> iterate; center -> of the tangents; V -> objective_weight; alpha -> damping; Q -> queues.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, ClassVar, cast

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.papers.idca.base import DCSolver, Parts
from skfair.papers.idca.parts import DCProblem
from skfair.papers.one_sided import Best, OneSided
from skfair.partial_parity.problem import PartialEvaluation
from skfair.partial_parity.statistical_parity import StatisticalParityMoment
from skfair.partial_parity.strict_rounds import INTERVAL_SOLVERS
from skfair.problems.erm.batches import CellSampler
from skfair.solvers.base import Answer, Run, Step
from skfair.solvers.parameters import Count, NonNegative, Positive


@INTERVAL_SOLVERS.register("idca_stochastic")
@dataclass
class IDCAStochastic(DCSolver):
    r"""Inexact difference-of-convex algorithm on batches of rows, for networks.

    Parameters
    ----------
    n_inner : int, default=150
        Number of steps per convex problem, T.
    n_batch : int, default=64
        Number of rows per step, with the same number from each group. With more rows, the steps are
        less noisy. The paper uses 64.
    n_outer : int, default=20
        Number of convex problems.
    objective_weight : float, default=None
        Weight V of the objective against the queues. If None, it is the square root of ``n_inner``.
        With larger values, the objective decreases faster, and the constraints are violated longer.
    damping : float, default=None
        Damping alpha, which is half of the inverse of the step size. If None, it is ``n_inner``.
        With larger values, the steps are shorter.
    restart : bool, default=False
        If True, the queues are reset to zero in each convex problem, as in the original method. If
        False, they continue.
    eps : float, default=2e-3
        Violations up to this value are ignored in the comparison of the centres.
    mu : float, default=0.0
        Weight of the proximal term, as in :class:`IDCA`.

    See Also
    --------
    IDCA : The same algorithm on all rows.

    Notes
    -----
    A step costs three passes of a batch through the model, one gradient, and :math:`O(m P)` with m
    rows and P percentiles. A convex problem costs a pass of all rows. The constraint and the loss
    must be means over rows, as with ``constraint="statistical_parity"``. Multipliers are the mean
    queues divided by V, in the last convex problem. There is no guarantee for networks.

    References
    ----------
    Section G.9 of partial_fairness_idca. H. Yu, M. Neely and X. Wei, "Online convex optimization
    with stochastic constraints", NeurIPS 2017.

    Examples
    --------
    >>> from skfair.partial_parity.strict_rounds import INTERVAL_SOLVERS
    >>> INTERVAL_SOLVERS["idca_stochastic"](n_batch=128).n_inner
    150
    """

    n_inner: Count = 150
    n_batch: Count = 64
    n_outer: Count = 20
    objective_weight: Positive | None = None
    damping: Positive | None = None
    restart: bool = False
    eps: NonNegative = 2e-3
    mu: NonNegative = 0.0

    needs: ClassVar[tuple[Any, ...]] = ("parts", "on_rows")
    is_stochastic: ClassVar[bool] = True

    @property
    def weights(self) -> tuple[float, float]:
        """V and alpha."""
        V, alpha = self.objective_weight, self.damping
        return V or math.sqrt(self.n_inner), alpha or float(self.n_inner)

    def steps(self, problem: DCProblem, run: Run) -> Iterator[Step]:
        # Each yield is a centre. There is no test of optimality.
        rows, strata = OneSided(problem), strata_of(problem)
        draw = CellSampler(strata, np.ones(strata.size), int(strata.max()) + 1)
        w, nu = run.start, np.zeros(problem.n_constraints)
        queues, best = self.weights[0] * rows.split(run.multipliers), Best(self.eps)

        for n_iter in count():
            at = problem.evaluate(w)
            if 2 * n_iter > run.max_iter:
                best.offer(at, problem.violation(at))
            yield Step(at, nu, n_iter, answer=partial(Answer, best.at or at, nu))
            if self.restart:
                queues = np.zeros(rows.n)
            w, queues, mean = self._minimise(problem, draw, w, queues, run.rng)
            nu = rows.signed(mean / self.weights[0])

    def _minimise(
        self,
        problem: DCProblem,
        draw: CellSampler,
        w: FloatArray,
        queues: FloatArray,
        rng: np.random.RandomState,
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the mean iterate on a convex problem, the last queues, and their mean."""
        V, alpha = self.weights
        of_iterates, of_queues, center = np.zeros_like(w), np.zeros_like(queues), w
        for _ in range(self.n_inner):
            of_iterates += w / self.n_inner
            of_queues += queues / self.n_inner
            batch = problem.on_rows(*standing_in(draw, rng, self.n_batch))
            convex = _ConvexBatch(batch, center, w, self.mu)
            w = w - convex.gradient(V, queues) / (2 * alpha)
            queues = np.maximum(queues + convex.predicted(w), 0.0)
        return of_iterates, queues, of_queues


class _ConvexBatch:
    """The functions g_0 and g_i of (31) on a batch, at the iterate w.

    ``_at`` and ``_at_center`` are the convex parts (plus, minus) at w and at the centre of the
    tangents, and ``_away`` is w minus the centre.
    """

    def __init__(self, problem: DCProblem, center: FloatArray, w: FloatArray, mu: float) -> None:
        self._problem, self._away, self._mu = problem, w - center, mu
        self._rows = OneSided(problem)
        self._at, self._at_center = problem.parts(w), problem.parts(center)

    def gradient(self, V: float, queues: FloatArray) -> FloatArray:
        """Return V grad g_0 + sum of Q_i grad g_i, by one backward pass."""
        (plus, minus), (plus_tangent, minus_tangent) = self._at, self._at_center
        of_uppers, of_lowers = self._rows.both(queues)
        slopes, of_aux = V * plus.objective_slopes, np.zeros(self._problem.n_aux)
        for at, multipliers in (
            (plus, of_uppers),
            (minus, of_lowers),
            (minus_tangent, -of_uppers),
            (plus_tangent, -of_lowers),
        ):
            by_scores, by_aux = at.slopes(multipliers)
            slopes, of_aux = slopes + by_scores, of_aux + by_aux
        of_model = self._problem.model.pullback(plus.tape, slopes) + V * plus.penalty_gradient
        pull = self._mu * (V + float(queues.sum())) * self._away
        return np.concatenate([of_model, of_aux]) + pull

    def predicted(self, w: FloatArray) -> FloatArray:
        """Return g_i + grad g_i' (next - w) for the next iterate, the amount by which Q grows.

        ``w`` is the next iterate. The scores change by a pass through the model, not by its
        linearisation.
        """
        plus, step = self._at[0], w - self._at[0].theta
        change = self._problem.scores(w) - plus.scores
        since_center = plus.scores - self._at_center[0].scores
        values, tangent = (
            self._rows.sides(first.constraints, second.constraints)
            for first, second in (self._at, self._at_center[::-1])
        )
        rise = self._along(self._at, change, step)
        rise -= self._along(self._at_center[::-1], change + since_center, step + self._away)
        pull = self._mu * (0.5 * self._away @ self._away + self._away @ step)
        return np.asarray(values - tangent - self._rows.bounds + rise + pull)

    def _along(self, parts: Parts, of_scores: FloatArray, step: FloatArray) -> FloatArray:
        """Return the derivatives of the one-sided rows along a change of scores and parameters."""
        of_aux = np.split(step, self._problem.aux_starts)[1:-1]
        return self._rows.sides(*(_along(part, of_scores, of_aux) for part in parts))


def standing_in(
    draw: CellSampler, rng: np.random.RandomState, n_rows: int
) -> tuple[IntArray, FloatArray]:
    """Draw about ``n_rows`` rows, at least one of each cell; return them and their factors.

    A cell is a code of :func:`strata_of`. The factor of a drawn row is the number of rows in its
    cell divided by the number drawn from it. Sums of rows times factors are unbiased estimates of
    sums over all rows.
    """
    n_each = max(1, n_rows // draw.sizes.size)
    return draw(rng, n_each), np.repeat(draw.sizes / n_each, n_each)


def strata_of(problem: DCProblem) -> IntArray:
    """Return a code for each row: the combination of its groups in all constraints."""
    codes = [np.zeros(problem.model.n_samples, np.int64), *(m.codes for m in problem.moments)]
    # numpy 2.0.0 returns the inverse with two dimensions.
    return np.asarray(np.unique(codes, axis=1, return_inverse=True)[1].ravel())


def _along(
    at: PartialEvaluation, of_scores: FloatArray, of_aux: Sequence[FloatArray]
) -> FloatArray:
    """Return the derivatives of the rates of all constraints along a change, O(n P)."""
    derivatives, moments = [np.empty(0)], cast(list[StatisticalParityMoment], at.problem.moments)
    for moment, values, change in zip(moments, at.of_moments, of_aux, strict=True):
        rates = np.empty((moment.n_aux, moment.n_groups))
        for p in range(moment.n_aux):
            weights = np.zeros_like(rates)
            weights[p] = 1.0
            slopes, _ = moment.pull(values, weights)
            rates[p] = np.bincount(moment.cells, slopes * (of_scores - change[p]), moment.n_groups)
        derivatives.append(rates.ravel())
    return np.concatenate(derivatives)
