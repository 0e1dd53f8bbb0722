r"""No group ranks above another inside the interval: problem (49) of partial_fairness_idca.

For each pair of groups k, l one two-sided row (the steps satisfy sigma(x) + sigma(-x) = 1)

.. math:: -\kappa \le \sum_{i \in k} \sum_{j \in l} m_i m_j \sigma(z_i - z_j) - \frac12 \le \kappa

where m_i is the mass of row i inside the interval of its group, as in :mod:`skfair.metrics.partial`
("overlap mass": rows at the ends count in part, ties share). The masses follow the ranking, yet the
sum is continuous: where two rows change places their scores are equal. Slopes take the masses as
constant, which is exact wherever no two scores are equal.

*Convex parts.* Let a_i and b_i be the masses of row i above the lower and the upper end of the
interval, m = b - a, and u_i its full mass, 0 <= a <= b <= u. With the split of the step itself,
sigma = sigma+ - sigma-,

.. math:: c^+ &= \sum_{ij} (a_i a_j + b_i (u_j - a_j)) \sigma_{ij} + u_i u_j \sigma^-_{ij}
          - \tfrac12 \\
          c^- &= \sum_{ij} (a_i b_j + b_i (u_j - b_j)) \sigma_{ij} + u_i u_j \sigma^-_{ij}

are convex and differ by the sum above. This is Example D.7 with two changes: its terms that are the
same on both sides are gone, and the step's own sigma- stands for its quadratic (also for steps with
corners). Why convex: the masses of the best ranks maximise the sum, over all masses between 0 and u
of that total (the step rises, and what l loses by a row falls with its score). For each choice of
masses the coefficient C of sigma lies between 0 and u_i u_j, and C sigma + u u sigma- is
C sigma+ + (u u - C) sigma-.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from skfair._typing import FloatArray
from skfair.constraints.base import CONSTRAINTS, OneLimit
from skfair.constraints.cells import TrainingRows
from skfair.constraints.partial.base import RankedMoment, Values
from skfair.constraints.partial.row_pairs import PairTerm, Spline
from skfair.constraints.partial.surrogates import Part, Surrogate


def step_splines(surrogate: Surrogate) -> tuple[Spline, Spline]:
    """Return a step and the smaller of its convex parts, sigma and sigma-, as splines."""
    _, w, r = surrogate.codes
    if not surrogate.is_compact:
        raise ValueError(
            f"constraint 'group_auc' sums over pairs of rows and needs a step that ends, got "
            f"surrogate={surrogate.kind!r}. Use 'smoothstep' or 'ramp'."
        )
    if surrogate.kind == "smoothstep":
        step = Spline.of({-w: (0, 0, 0.75 / w**2, -0.25 / w**3), w: (1,)})
        return step, Spline.of({0: (0, 0, 0, 0.25 / w**3), w: (0.25, 0.75 / w)})
    slope = 0.5 / w
    if r == 0:
        return Spline.of({-w: (0, slope), w: (1,)}), Spline.of({w: (0, slope)})
    corner = (0, 0, 0.25 * slope / r)
    rise = {-w - r: corner, -w + r: (slope * r, slope)}
    level = {w - r: (1 - slope * r, slope, -corner[2]), w + r: (1,)}
    return Spline.of(rise | level), Spline.of({w - r: corner, w + r: (slope * r, slope)})


class GroupAUCMoment(RankedMoment):
    """One row per pair of groups."""

    metrics = ("partial_group_auc_gap",)

    def __init__(self, rows: TrainingRows, surrogate: Surrogate) -> None:
        super().__init__(rows, surrogate)
        step_splines(surrogate)  # raises for a step that never ends
        self._pairs = list(combinations(range(self.n_groups), 2))
        names = self.group_names
        self.row_names = tuple(f"{names[k]} above {names[other]}" for k, other in self._pairs)

    def bounds(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return the distance from 1/2 allowed; the lengths of the intervals do not matter."""
        limit = np.full(self.n_constraints, float(tolerance))
        return -limit, limit

    def evaluate(self, scores: FloatArray, aux: FloatArray, part: Part = "whole") -> Values:
        """Return how far pairs are from even, O(n log n + n G)."""
        ranked = self.ranked_groups(scores)
        masses = [
            of_group.masses(pairs)
            for of_group, pairs in zip(ranked, self.intervals.bounds, strict=True)
        ]
        step, minus = step_splines(self.surrogate)
        tape = []
        for k, other in self._pairs:
            first, second = ranked[k], ranked[other]
            (a, b, u), (low, high, full) = masses[k], masses[other]
            if part == "whole":
                tape.append([PairTerm(first, b - a, second, high - low, step)])
                continue
            end = low if part == "plus" else high
            masses_of_both = (a, end, step), (b, full - end, step), (u, full, minus)
            tape.append([PairTerm(first, m, second, own, f) for m, own, f in masses_of_both])
        values = np.array([sum(term.value() for term in terms) for terms in tape])
        return Values(values - (0.0 if part == "minus" else 0.5), (scores.size, tape))

    def pull(self, at: Values, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes by the scores, O(n G)."""
        n, tape = at.tape
        slopes = np.zeros(n)
        for multiplier, terms in zip(multipliers, tape, strict=True):
            if multiplier:
                for term in terms:
                    term.add_slopes(multiplier, slopes)
        return slopes, np.zeros(0)


@CONSTRAINTS.register("group_auc")
class GroupAUC(OneLimit):
    """Inside the interval no group ranks above another, Definition A.1; needs a compact step."""

    tasks = frozenset({"intervals"})
    ranked = GroupAUCMoment
