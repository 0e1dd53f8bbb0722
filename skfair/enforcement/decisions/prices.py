"""From rules to prices that keep them on the rows: soft prices first, then strict rounds.

Prices that keep the rules in expectation miss them on the rows: decisions are whole, and the
probabilities are not quite right. So the bounds are shifted by what was missed, a few times, and
exact line searches do the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.decisions.dual import SoftRows, soft_values, solve_dual
from skfair.enforcement.decisions.judge import Judge
from skfair.enforcement.decisions.lines import Candidate, offsets, polish
from skfair.enforcement.decisions.rows import Features, LinearRows, linear_rows
from skfair.enforcement.decisions.shares import Shares

TEMPERATURES = (0.05, 0.01, 0.002)
# Larger data sets are sampled for the first prices.
SAMPLE = 20_000
N_ROUNDS = 8
DAMPING = 0.7
# Bounds are made tighter by at most this much in a round.
_LARGEST_MARGIN = 0.004
# Rows that the line searches may visit, in all.
SEARCHED_ROWS = 4e6


@dataclass
class PriceSearch:
    """Searches prices for rows, rules and shares.

    Attributes
    ----------
    judge : Judge
        Rules, classes and weights.
    features : Features
        How features are numbered.
    kinds : ndarray of shape (n_samples,)
        Stratum and true class of each row, as one number.
    values : ndarray of shape (n_samples, n_classes)
        Expected worth of each decision.
    shares : Shares
        What rows are expected to add to rates.
    rng : RandomState
        Draws the sample.
    """

    judge: Judge
    features: Features
    kinds: IntArray
    values: FloatArray
    shares: Shares
    rng: np.random.RandomState

    def candidate(self, prices: FloatArray) -> Candidate:
        """Return prices with their decisions."""
        return Candidate(self.judge, self.values, self.shares, prices)

    def free(self) -> Candidate:
        """Return the decisions without rules."""
        return self.candidate(np.zeros((self.features.size, self.judge.n_classes)))

    def polished(self, best: Candidate) -> Candidate:
        """Return what exact line searches make of a candidate."""
        return polish(best, self.features, n_sweeps=2, max_rows=SEARCHED_ROWS)

    def run(self) -> Candidate:
        """Return the best prices found."""
        best = self.free()
        if best.verdict.is_feasible:
            return best
        rows = linear_rows(self.judge, self.features, self.kinds, self.judge.means(best.predicted))
        multipliers = self._soft(rows)
        shift, margin = np.zeros(rows.upper.size), 0.0
        for n_done in range(N_ROUNDS):
            found = self.candidate(self._prices(rows, multipliers))
            missed, excess = self._missed(rows, found), found.verdict.excess
            for label, which in offsets(self.judge, self.features):
                found = found.along(label, which)
                if found.verdict.is_better_than(best.verdict):
                    best = found
            settled = np.abs(missed - shift).max(initial=0.0)
            if best.verdict.is_feasible and n_done > 2 and settled < 1e-3:
                break
            shift += DAMPING * (missed - shift)
            excess = max(excess, found.verdict.excess)
            if n_done > 0 and excess > 0:
                margin += min(1.1 * excess, _LARGEST_MARGIN)
            if any(bound.quotients is not None for bound in self.judge.bounds):
                means = self.judge.means(found.predicted)
                rows = linear_rows(self.judge, self.features, self.kinds, means)
            multipliers = solve_dual(
                self._data(), _shifted(rows, shift, margin), multipliers, TEMPERATURES[-1], 15
            )
        return self.polished(best)

    def _data(self) -> SoftRows:
        return SoftRows(self.values, self.shares, self.judge.weights)

    def _soft(self, rows: LinearRows) -> FloatArray:
        """Return the multipliers of the rules in expectation."""
        data = self._data()
        n, multipliers = self.judge.classes.size, np.zeros(rows.upper.size)
        few = data.sample(SAMPLE, self.rng) if n > 1.5 * SAMPLE else data
        for temperature in TEMPERATURES:
            multipliers = solve_dual(few, rows, multipliers, temperature, 60)
        if few is not data:
            multipliers = solve_dual(data, rows, multipliers, TEMPERATURES[-1], 12)
        return multipliers

    def _prices(self, rows: LinearRows, multipliers: FloatArray) -> FloatArray:
        return np.asarray(rows.matrix.T @ multipliers).reshape(
            self.features.size, self.judge.n_classes
        )

    def _missed(self, rows: LinearRows, found: Candidate) -> FloatArray:
        """Return by how much the rows of the decisions themselves exceed the expected ones."""
        expected = soft_values(self._data(), rows, found.prices, TEMPERATURES[-1])
        means = self.judge.means(found.predicted)
        strict = [b.row_values(m) for b, m in zip(self.judge.bounds, means, strict=True)]
        return np.asarray(np.concatenate(strict) - rows.fixed - expected)


def _shifted(rows: LinearRows, shift: FloatArray, margin: float) -> LinearRows:
    """Return rows whose bounds are moved by what was missed, and made tighter by a margin."""
    upper, lower = rows.upper - shift - margin, rows.lower - shift + margin
    crossed = upper < lower
    middle = 0.5 * (upper + lower)
    return rows._replace(
        upper=np.where(crossed, middle, upper), lower=np.where(crossed, middle, lower)
    )
