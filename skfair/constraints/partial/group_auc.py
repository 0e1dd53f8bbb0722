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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair.constraints.partial.base import (
    PARTIAL_RULES,
    BoundPartialRule,
    PartialRows,
    PartialRule,
    Values,
)
from skfair.constraints.partial.surrogates import Part, Surrogate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Spline(NamedTuple):
    """A function that is 0 left of its first knot and a polynomial from each knot to the next.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Where the pieces start; the last one never ends.
    coefs : ndarray of shape (n_knots, 4)
        Coefficients by powers of the distance from the knot.
    """

    knots: FloatArray
    coefs: FloatArray

    @classmethod
    def of(cls, pieces: dict[float, tuple[float, ...]]) -> Spline:
        """Build a spline from the coefficients at each knot; powers left out are 0."""
        coefs = np.zeros((len(pieces), 4))
        for row, piece in zip(coefs, pieces.values(), strict=True):
            row[: len(piece)] = piece
        return cls(np.array(list(pieces)), coefs)

    def derivative(self) -> Spline:
        """Return the slope, from the right where there is a corner."""
        coefs = np.zeros_like(self.coefs)
        coefs[:, :-1] = self.coefs[:, 1:] * np.arange(1, 4)
        return Spline(self.knots, coefs)


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


class RankedRows:
    """Rows sorted by score, and the masses that their ranks give them.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        Numbers of the rows.
    scores : ndarray of shape (n_samples,)
        Scores of all rows.
    weights : ndarray of shape (n,)
        Weights of these rows.

    Attributes
    ----------
    rows, scores, shares : ndarray of shape (n,)
        Numbers, scores and weights, by ascending score; the weights add up to 1.
    """

    def __init__(self, rows: IntArray, scores: FloatArray, weights: FloatArray) -> None:
        order = np.argsort(scores[rows])
        self.rows, weights = rows[order], weights[order]
        self.scores = scores[self.rows]
        below = np.concatenate([[0.0], np.cumsum(weights)])
        starts = np.flatnonzero(np.diff(self.scores, prepend=np.nan) != 0)  # of blocks of ties
        self.shares = weights / below[-1]
        ranks = (below[-1] - np.append(below[starts], below[-1])) / below[-1]
        self._low, self._high = ranks[1:], ranks[:-1]
        self._sizes = np.diff(np.append(starts, rows.size))

    def masses(self, intervals: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the masses a, b, u of the rows in a union of intervals, (n_intervals, 2).

        a and b count ranks above the lower and above the upper ends, u all of them, once for each
        interval and per unit of length: b - a adds up to 1.
        """
        length = float(np.diff(intervals).sum())
        full = self.shares * (len(intervals) / length)
        low, high = (self._above(ends) * (self.shares / length) for ends in intervals.T)
        return low, high, full

    def _above(self, ends: FloatArray) -> FloatArray:
        """Return the part of each row's ranks that lies above the ends, summed over the ends."""
        covered = np.zeros(self._low.size)
        for end in ends:
            covered += np.minimum(self._high, end) - np.minimum(self._low, end)
        width = self._high - self._low
        part = np.divide(covered, width, out=np.zeros(width.size), where=width > 0)
        return np.repeat(part, self._sizes)


class PairTerm(NamedTuple):
    """A weighted sum over pairs of a spline of first score minus second score."""

    first: RankedRows
    first_mass: FloatArray
    second: RankedRows
    second_mass: FloatArray
    spline: Spline

    def value(self) -> float:
        """Return the sum, O(n)."""
        a, b = self.first_mass > 0, self.second_mass > 0
        sums = _sums(self.first.scores[a], self.second.scores[b], self.second_mass[b], self.spline)
        return float(self.first_mass[a] @ sums)

    def add_slopes(self, factor: float, slopes: FloatArray) -> None:
        """Add the slopes by the scores, times a factor, O(n); the masses are constant."""
        slope = self.spline.derivative()
        a, b = self.first_mass > 0, self.second_mass > 0
        z, y = self.first.scores[a], self.second.scores[b]
        u, v = self.first_mass[a], self.second_mass[b]
        slopes[self.first.rows[a]] += factor * u * _sums(z, y, v, slope)
        # The same differences seen from the other side: z - y = (-y) - (-z).
        sums = _sums(-y[::-1], -z[::-1], u[::-1], slope)[::-1]
        slopes[self.second.rows[b]] -= factor * v * sums


def _sums(queries: FloatArray, scores: FloatArray, mass: FloatArray, spline: Spline) -> FloatArray:
    from skfair._kernels.soft_pairs import pair_sums

    out = np.empty(queries.size)
    queries, scores, mass = (np.ascontiguousarray(one) for one in (queries, scores, mass))
    pair_sums(queries, scores, mass, spline.knots, spline.coefs, out)
    return out


class _BoundGroupAUC(BoundPartialRule):
    """One row per pair of groups."""

    def __init__(self, rows: PartialRows, surrogate: Surrogate) -> None:
        weights = np.ones(rows.codes.size) if rows.sample_weight is None else rows.sample_weight
        members = [np.flatnonzero(rows.codes == g) for g in range(rows.n_groups)]
        self._groups = [(here, weights[here]) for here in members]
        self._intervals = rows.intervals.bounds
        self._pairs = list(zip(*np.triu_indices(rows.n_groups, k=1), strict=True))
        self.surrogate = surrogate
        names = rows.group_names
        self.row_names = tuple(f"{names[k]} above {names[other]}" for k, other in self._pairs)

    def bounds(self, tolerance: float) -> tuple[FloatArray, FloatArray]:
        """Return the distance from 1/2 allowed; the lengths of the intervals do not matter."""
        limit = np.full(self.n_constraints, float(tolerance))
        return -limit, limit

    def evaluate(self, scores: FloatArray, aux: FloatArray, part: Part = "whole") -> Values:
        """Return how far pairs are from even, O(n log n + n G)."""
        ranked = [RankedRows(here, scores, weights) for here, weights in self._groups]
        masses = [one.masses(pairs) for one, pairs in zip(ranked, self._intervals, strict=True)]
        step, minus = step_splines(self.surrogate)
        tape = []
        for k, other in self._pairs:
            first, second = ranked[k], ranked[other]
            (a, b, u), (low, high, full) = masses[k], masses[other]
            if part == "whole":
                tape.append([PairTerm(first, b - a, second, high - low, step)])
                continue
            end = low if part == "plus" else high
            tape.append(
                [
                    PairTerm(first, a, second, end, step),
                    PairTerm(first, b, second, full - end, step),
                    PairTerm(first, u, second, full, minus),
                ]
            )
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


@PARTIAL_RULES.register("group_auc")
class GroupAUC(PartialRule):
    """Inside the interval no group ranks above another, Definition A.1; needs a compact step."""

    def prepare(self, rows: PartialRows, surrogate: Surrogate) -> list[BoundPartialRule]:
        """Bind the rule to rows."""
        step_splines(surrogate)  # raises for a step that never ends
        return [_BoundGroupAUC(rows, surrogate)]
