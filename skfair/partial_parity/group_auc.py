r"""A limit on the AUC between groups inside the interval: (49) of partial_fairness_idca.

The steps satisfy sigma(x) + sigma(-x) = 1, so each pair of groups k, l needs only one constraint:

.. math:: -\kappa \le \sum_{i \in k} \sum_{j \in l} m_i m_j \sigma(z_i - z_j) - \frac12 \le \kappa

where m_i is the mass of row i inside the interval of its group, as in ``metrics.py``
("overlap mass": rows at the ends count in part, and tied rows share their mass). The masses depend
on the ranking, but the sum is continuous, because two rows that change places have equal scores at
that point. Slopes take the masses as constant, which is exact if no two scores are equal.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from skfair._typing import FloatArray
from skfair.constraints.base import CONSTRAINTS
from skfair.partial_parity.ranked_moment import IntervalRows, RankedMoment, Values, WithinIntervals
from skfair.partial_parity.row_pairs import PairTerm, Spline
from skfair.partial_parity.surrogates import Surrogate


def step_spline(surrogate: Surrogate) -> Spline:
    """Return a step as a spline; raise for a sigmoid, which is nowhere exactly 0 or 1."""
    # w and r are the half-width and the rounding of the corners, both in units of the score.
    _, w, r, _ = surrogate.codes
    if not surrogate.is_compact:
        raise ValueError(
            f"constraint 'group_auc' sums over pairs of rows and needs a step that ends, got "
            f"surrogate={surrogate.kind!r}. Use 'smoothstep' or 'ramp'."
        )
    if surrogate.kind == "smoothstep":
        return Spline.of({-w: (0, 0, 0.75 / w**2, -0.25 / w**3), w: (1,)})
    slope = 0.5 / w
    if r == 0:
        return Spline.of({-w: (0, slope), w: (1,)})
    corner = (0, 0, 0.25 * slope / r)
    rise = {-w - r: corner, -w + r: (slope * r, slope)}
    return Spline.of(rise | {w - r: (1 - slope * r, slope, -corner[2]), w + r: (1,)})


class GroupAUCMoment(RankedMoment):
    """The constraint on group AUCs, with one row per pair of groups (see the module)."""

    metrics = ("partial_group_auc_gap",)

    def __init__(self, rows: IntervalRows, surrogate: Surrogate) -> None:
        super().__init__(rows, surrogate)
        step_spline(surrogate)  # raises for a sigmoid
        self.pairs = list(combinations(range(self.n_groups), 2))
        names = self.group_names
        self.row_names = tuple(f"{names[k]} above {names[other]}" for k, other in self.pairs)

    def bounds(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return minus and plus the tolerance, the allowed distance from 1/2."""
        limit = np.full(self.n_constraints, float(tolerance))
        return -limit, limit

    def evaluate(self, scores: FloatArray, aux: FloatArray) -> Values:
        """Return the group AUC minus 1/2 of each pair, in O(n log n + n G) for G groups."""
        ranked, masses, step = self.ranked_groups(scores), [], step_spline(self.surrogate)
        for of_group, pairs in zip(ranked, self.intervals.bounds, strict=True):
            low, high, _ = of_group.masses(pairs)
            masses.append(high - low)
        tape = [
            [PairTerm(ranked[k], masses[k], ranked[other], masses[other], step)]
            for k, other in self.pairs
        ]
        values = np.array([term.value() for (term,) in tape])
        return Values(values - 0.5, (scores.size, tape))

    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes by the scores, in O(n G)."""
        n, tape = at.tape
        slopes = np.zeros(n)
        for multiplier, terms in zip(multipliers, tape, strict=True):
            if multiplier:
                for term in terms:
                    term.add_slopes(multiplier, slopes)
        return slopes, np.zeros(0)


@CONSTRAINTS.register("group_auc")
class GroupAUC(WithinIntervals):
    """Bound the distance of group AUCs inside the interval from 1/2.

    A limit of 0 means that no group ranks above another inside the interval (Definition A.1 of
    partial_fairness_idca). The smooth step must have a bounded width, as "ramp" and "smoothstep"
    have.
    """

    ranked = GroupAUCMoment
