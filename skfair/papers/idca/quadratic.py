r"""Pairwise constraints with a quadratic for the step: the baselines of partial_fairness_idca.

With (103), sigma(x) = (1 + x)^2 / 2, the mean over pairs of rows of two cells depends on means mu
and variances v only,

.. math:: \mathrm{mean}_{i \in A, j \in B} \sigma(z_i - z_j) - \frac12
          = d + \frac12 (d^2 + v_A + v_B), \qquad d = \mu_A - \mu_B

so that a constraint costs O(n), and is convex. Cells are groups, or groups split by class. A row of
the constraint adds up one or two such comparisons and is limited from above only, once for each
order of two groups. Intervals and the smooth step are not used.

The second double sums of (105) and (107) are read as in (104) and (106): negatives of k above
positives of k', and of k' above its own positives.
"""

from __future__ import annotations

from itertools import permutations
from typing import ClassVar

import numpy as np

from skfair._typing import FloatArray
from skfair.constraints.base import CONSTRAINTS
from skfair.partial_parity.ranked_moment import IntervalRows, RankedMoment, Values, WithinIntervals
from skfair.partial_parity.surrogates import Surrogate

# (0 for the first of two groups or 1 for the second, class of the cell or 0 without classes).
Cell = tuple[int, int]


class QuadraticMoment(RankedMoment):
    """Base of the constraints of this file: a row for each ordered pair of groups.

    A subclass lists in ``compared`` which cells of the two groups are compared and added up.
    """

    compared: ClassVar[tuple[tuple[Cell, Cell], ...]]  # pairs (cell above, cell below)

    def __init__(
        self, rows: IntervalRows, surrogate: Surrogate, classes: tuple[int, ...] = ()
    ) -> None:
        super().__init__(rows, surrogate)
        n_classes, names = max(1, len(classes)), self.group_names
        self._n_cells = n_classes * self.n_groups
        self._cells = n_classes * self.codes + (rows.classes if classes else 0)
        self._shares = self.shares(self._cells, self._n_cells)
        pairs = np.array(list(permutations(range(self.n_groups), 2)), dtype=np.intp).reshape(-1, 2)
        which, label = np.array(self.compared).transpose(2, 1, 0)  # (above and below, comparisons)
        self._above, self._below = n_classes * pairs[:, which].transpose(1, 0, 2) + label[:, None]
        self.row_names = tuple(f"{names[k]} above {names[other]}" for k, other in pairs)

    def bounds(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return infinite lower bounds, and the tolerance as upper bounds."""
        m = self.n_constraints
        return np.full(m, -np.inf), np.full(m, float(tolerance))

    def evaluate(self, scores: FloatArray, aux: FloatArray) -> Values:
        """Return the sums of comparisons, in O(n)."""
        mean = np.bincount(self._cells, self._shares * scores, self._n_cells)
        offset = scores - mean[self._cells]
        variance = np.bincount(self._cells, self._shares * offset**2, self._n_cells)
        gap = mean[self._above] - mean[self._below]
        spread = variance[self._above] + variance[self._below]
        values = (gap + 0.5 * (gap**2 + spread)).sum(axis=1)
        return Values(values, (offset, gap))

    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives of the weighted sums by the scores, in O(n)."""
        offset, gap = at.tape
        of_gap = multipliers[:, None] * (1 + gap)
        of_mean, of_variance = np.zeros((2, self._n_cells))
        for cells, sign in ((self._above, 1), (self._below, -1)):
            np.add.at(of_mean, cells, sign * of_gap)
            np.add.at(of_variance, cells, 0.5 * multipliers[:, None])
        slopes = of_mean[self._cells] + 2 * of_variance[self._cells] * offset
        return self._shares * slopes, np.zeros(0)


class GroupAUCQuadraticMoment(QuadraticMoment):
    """Compares one group with the other."""

    compared = (((0, 0), (1, 0)),)


@CONSTRAINTS.register("group_auc_quadratic")
class GroupAUCQuadratic(WithinIntervals):
    """A row of one group is as likely above a row of the other as below it, (102)."""

    ranked = GroupAUCQuadraticMoment


class InterGroupMoment(QuadraticMoment):
    """Compares positives with the other group's negatives, negatives with its positives."""

    compared = (((0, 1), (1, 0)), ((0, 0), (1, 1)))


@CONSTRAINTS.register("inter_group_pairwise")
class InterGroupPairwise(WithinIntervals):
    """Positives of one group beat negatives of the other as often as the other way round, (105)."""

    subset = "class"
    ranked = InterGroupMoment


class IntraGroupMoment(QuadraticMoment):
    """Compares positives and negatives of one group, negatives and positives of the other."""

    compared = (((0, 1), (0, 0)), ((1, 0), (1, 1)))


@CONSTRAINTS.register("intra_group_pairwise")
class IntraGroupPairwise(WithinIntervals):
    """Positives of a group beat its negatives as often as in the other group, (107)."""

    subset = "class"
    ranked = IntraGroupMoment
