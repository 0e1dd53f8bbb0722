r"""Pairwise constraints with a quadratic for the step: the baselines of partial_fairness_idca.

With (103), sigma(x) = (1 + x)^2 / 2, the mean over pairs of rows of two cells depends on means mu
and variances v only,

.. math:: \mathrm{mean}_{i \in A, j \in B} \sigma(z_i - z_j) - \frac12
          = d + \frac12 (d^2 + v_A + v_B), \qquad d = \mu_A - \mu_B

so that a constraint costs O(n), and is convex. Cells are groups, or groups split by class; a row of
the constraint adds up one or two such comparisons and is limited from above only, once for each
order of two groups. Intervals and the smooth step are not used.

The second double sums of (105) and (107) are read as in (104) and (106): negatives of k above
positives of k', and of k' above its own positives.
"""

from __future__ import annotations

from abc import abstractmethod
from itertools import permutations

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.partial.base import (
    PARTIAL_RULES,
    BoundPartialRule,
    PartialRows,
    PartialRule,
    Values,
)
from skfair.constraints.partial.surrogates import Part, Surrogate

# (cell above, cell below)
Comparison = tuple[int, int]


class _BoundQuadratic(BoundPartialRule):
    """Sums of comparisons of two cells."""

    def __init__(
        self,
        rows: PartialRows,
        surrogate: Surrogate,
        cells: IntArray,
        n_cells: int,
        comparisons: dict[str, list[Comparison]],
    ) -> None:
        self._cells, self._n_cells = cells, n_cells
        self._shares = rows.shares(cells, n_cells)
        pairs = np.empty((0, 1, 2), np.intp)  # one group: nothing to compare
        if comparisons:
            pairs = np.array(list(comparisons.values()))
        self._above, self._below = pairs.transpose(2, 0, 1)
        self.surrogate = surrogate
        self.row_names = tuple(comparisons)

    def bounds(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return upper bounds only."""
        m = self.n_constraints
        return np.full(m, -np.inf), np.full(m, float(tolerance))

    def evaluate(self, scores: FloatArray, aux: FloatArray, part: Part = "whole") -> Values:
        """Return the sums, O(n); they are convex, so their second part is 0."""
        if part == "minus":
            return Values(np.zeros(self.n_constraints), (scores.size, None, None))
        mean = np.bincount(self._cells, self._shares * scores, self._n_cells)
        offset = scores - mean[self._cells]
        variance = np.bincount(self._cells, self._shares * offset**2, self._n_cells)
        gap = mean[self._above] - mean[self._below]
        spread = variance[self._above] + variance[self._below]
        values = (gap + 0.5 * (gap**2 + spread)).sum(axis=1)
        return Values(values, (scores.size, offset, gap))

    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes by the scores, O(n)."""
        n, offset, gap = at.tape
        if gap is None:
            return np.zeros(n), np.zeros(0)
        of_gap = multipliers[:, None] * (1 + gap)
        of_mean, of_variance = np.zeros((2, self._n_cells))
        for cells, sign in ((self._above, 1), (self._below, -1)):
            np.add.at(of_mean, cells, sign * of_gap)
            np.add.at(of_variance, cells, 0.5 * multipliers[:, None])
        slopes = of_mean[self._cells] + 2 * of_variance[self._cells] * offset
        return self._shares * slopes, np.zeros(0)


class QuadraticRule(PartialRule):
    """A constraint of comparisons; subclasses say which cells are compared."""

    uses_interval = False

    def prepare(self, rows: PartialRows, surrogate: Surrogate) -> list[BoundPartialRule]:
        """Bind the constraint to rows."""
        cells, n_cells = rows.codes, rows.n_groups
        if self.by_class:
            cells, n_cells = 2 * cells + (rows.targets > 0), 2 * n_cells
        names = rows.group_names
        comparisons = {
            f"{names[k]} above {names[other]}": self.compare(k, other)
            for k, other in permutations(range(rows.n_groups), 2)
        }
        return [_BoundQuadratic(rows, surrogate, cells, n_cells, comparisons)]

    @abstractmethod
    def compare(self, k: int, other: int) -> list[Comparison]:
        """Return what the row of two groups adds up.

        Cells are the groups or, by class, 2 k for the negatives of group k, 2 k + 1 for its
        positives.
        """


@PARTIAL_RULES.register("group_auc_quadratic")
class GroupAUCQuadratic(QuadraticRule):
    """A row of one group is as likely above a row of the other as below it, (102)."""

    def compare(self, k: int, other: int) -> list[Comparison]:
        """Compare one group with the other."""
        return [(k, other)]


@PARTIAL_RULES.register("inter_group_pairwise")
class InterGroupPairwise(QuadraticRule):
    """Positives of one group beat negatives of the other as often as the other way round, (105)."""

    by_class = True

    def compare(self, k: int, other: int) -> list[Comparison]:
        """Compare positives with the other group's negatives, negatives with its positives."""
        return [(2 * k + 1, 2 * other), (2 * k, 2 * other + 1)]


@PARTIAL_RULES.register("intra_group_pairwise")
class IntraGroupPairwise(QuadraticRule):
    """Positives of a group beat its negatives as often as in the other group, (107)."""

    by_class = True

    def compare(self, k: int, other: int) -> list[Comparison]:
        """Compare positives and negatives of one group, negatives and positives of the other."""
        return [(2 * k + 1, 2 * k), (2 * other, 2 * other + 1)]
