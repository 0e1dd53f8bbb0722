r"""Equal scores of groups at percentiles of the interval: problem (15) of partial_fairness_idca.

For each of P shares v of the interval (``percentiles``) there is a threshold theta_v, an auxiliary
parameter, such that for every group k

.. math:: \text{lowest}_k(v) \le \frac{1}{n_k} \sum_i \sigma(z^k_i - \theta_v)
          \le \text{highest}_k(v + \kappa)

with the scores z of the n_k rows of the group, a smooth step sigma and the tolerance kappa. lowest
and highest are the smallest and the largest rank of group k that cover a share of its intervals.
For one interval [alpha, beta) and p = alpha + v (beta - alpha) these are p and p + kappa (beta -
alpha), as in Lemma 5.1. The same definition covers unions and intervals that differ by group. A
lower bound of rank 0 or an upper bound of rank 1 always holds, so it becomes infinite.
"""

from __future__ import annotations

from copy import copy
from typing import Self

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.base import CONSTRAINTS
from skfair.partial_parity.ranked_moment import IntervalRows, RankedMoment, Values, WithinIntervals
from skfair.partial_parity.surrogates import Surrogate


class StatisticalParityMoment(RankedMoment):
    """Smooth rates of every group at every threshold, which are P * n_groups constraint rows."""

    metrics = ("partial_statistical_parity_gap",)
    ccdf_metric = "partial_ccdf_gap"
    is_share = is_mean = True

    def __init__(self, rows: IntervalRows, surrogate: Surrogate) -> None:
        super().__init__(rows, surrogate)
        self.cells, self._shares = self.codes, self.shares(self.codes, self.n_groups)
        self.percentiles = rows.percentiles
        self.n_aux = rows.percentiles.size
        self.row_names = tuple(
            f"{name} at {share:.3g}" for share in rows.percentiles for name in self.group_names
        )

    def ranks(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and highest rank of each group at each threshold, (P, n_groups)."""
        v, n_groups, intervals = self.percentiles, self.n_groups, self.intervals
        # v + tolerance must be at most 1.
        v = np.minimum(v, max(0.0, 1 - tolerance))
        low = np.stack([intervals.lowest_rank(v, g) for g in range(n_groups)], axis=1)
        high = np.stack([intervals.highest_rank(v + tolerance, g) for g in range(n_groups)], axis=1)
        return low, high

    def bounds(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return :meth:`ranks` as bounds, which are infinite if they always hold."""
        low, high = self.ranks(tolerance)
        low, high = np.where(low <= 0, -np.inf, low), np.where(high >= 1, np.inf, high)
        return low.ravel(), high.ravel()

    def start(self, scores: FloatArray, tolerance: float) -> FloatArray:
        """Return thresholds at which the mean rate of the groups is in the middle of the bounds.

        If all scores are 0, as at the start of the paper, all groups have the same rates, and every
        constraint is satisfied strictly.
        """
        middle = np.add(*self.ranks(tolerance)).mean(axis=1) / 2
        spread = self.surrogate.width
        low, high = np.full(self.n_aux, scores.min()), np.full(self.n_aux, scores.max())
        low, high = low - 40 * spread, high + 40 * spread
        for _ in range(60):  # bisection, because the mean rate falls with the threshold
            theta = 0.5 * (low + high)
            rates = self._rates(scores, theta).mean(axis=1)
            low, high = np.where(rates > middle, theta, low), np.where(rates > middle, high, theta)
        return 0.5 * (low + high)

    def evaluate(self, scores: FloatArray, aux: FloatArray) -> Values:
        """Return the smooth rates, in O(n P)."""
        return Values(self._rates(scores, aux).ravel(), (scores, aux))

    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes by scores and thresholds, in O(n P)."""
        scores, aux = at.tape
        pull = multipliers.reshape(self.n_aux, self.n_groups)
        return self.surrogate.slopes(scores, self.cells, self._shares, aux, pull)

    def on_rows(self, rows: IntArray, factors: FloatArray) -> Self:
        """Return the constraint on some rows, each of which stands for ``factors`` rows."""
        other = copy(self)
        other.cells, other._shares = self.cells[rows], self._shares[rows] * factors
        return other

    def _rates(self, scores: FloatArray, thetas: FloatArray) -> FloatArray:
        return self.surrogate.rates(scores, self.cells, self._shares, thetas, self.n_groups)


@CONSTRAINTS.register("statistical_parity")
class StatisticalParity(WithinIntervals):
    """Bound the difference of positive rates inside the interval at every threshold.

    A limit of 0 means that scores inside the interval have the same distribution in all groups
    (Definition 4.2 of partial_fairness_idca).
    """

    ranked = StatisticalParityMoment
