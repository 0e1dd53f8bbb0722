"""Sums over pairs of rows of a function of the difference of their scores, in O(n log n).

The group AUC (:mod:`skfair.partial_parity.group_auc`), the losses of pairs
(:mod:`skfair.partial_parity.pair_losses`) and algorithms of papers are such sums,

    sum_i sum_j u_i v_j f(z_i - z_j)

over the rows i of one set and j of another. The sets are :class:`RankedRows`, sorted once, which
also compute the masses u and v, such as the part of a row's ranks that lies in an interval.
f is a piecewise cubic :class:`Spline`. A :class:`PairTerm` is one such sum with its slopes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray


class Spline(NamedTuple):
    """A function that is 0 left of its first knot and a polynomial from each knot to the next."""

    knots: FloatArray  # (n_knots,): starts of the pieces; the last piece extends to infinity
    coefs: FloatArray  # (n_knots, 4): coefficients of powers 0 to 3 of the distance from the knot

    @classmethod
    def of(cls, pieces: dict[float, tuple[float, ...]]) -> Spline:
        """Return the spline with the given coefficients at each knot; missing powers are 0."""
        coefs = np.zeros((len(pieces), 4))
        for row, piece in zip(coefs, pieces.values(), strict=True):
            row[: len(piece)] = piece
        return cls(np.array(list(pieces)), coefs)

    def derivative(self) -> Spline:
        """Return the derivative, which at a corner is the one from the right."""
        coefs = np.zeros_like(self.coefs)
        coefs[:, :-1] = self.coefs[:, 1:] * np.arange(1, 4)
        return Spline(self.knots, coefs)


class RankedRows:
    """Rows sorted by ascending score, and the masses that follow from their ranks.

    A row has no single rank. It covers a piece of [0, 1], counted from the highest score. The
    length of the piece is the row's share of the weight. Tied rows cover a piece together.
    """

    def __init__(
        self,
        rows: IntArray,  # (n,): numbers of the rows
        scores: FloatArray,  # (n_samples,): scores of all rows
        weights: FloatArray,  # (n,): weights of these rows
    ) -> None:
        order = np.argsort(scores[rows])
        self.rows, weights = rows[order], weights[order]
        self.scores = scores[self.rows]
        below = np.concatenate([[0.0], np.cumsum(weights)])
        # The first rows of the blocks of ties.
        starts = np.flatnonzero(np.diff(self.scores, prepend=np.nan) != 0)
        self.shares = weights / below[-1]  # they add up to 1
        # Block b of ties covers the ranks from _low[b] to _high[b].
        ranks = (below[-1] - np.append(below[starts], below[-1])) / below[-1]
        self._low, self._high = ranks[1:], ranks[:-1]
        self._sizes = np.diff(np.append(starts, rows.size))

    def masses(self, intervals: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return masses a, b, u of the rows for a union of intervals, (n_intervals, 2).

        a is the part of the row's ranks below the low end of an interval, b the part below its high
        end, and u the whole row. Each is summed over the intervals and divided by their total
        length. So b - a is the mass inside, whose sum over the rows is 1.
        """
        length = float(np.diff(intervals).sum())
        full = self.shares * (len(intervals) / length)
        low, high = (self._above(ends) * (self.shares / length) for ends in intervals.T)
        return low, high, full

    def _above(self, ends: FloatArray) -> FloatArray:
        """Return the part of each row's ranks below an end, summed over the ends."""
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
        # For the slope by y_j the sum is over i. Because z - y = (-y) - (-z) it has the same form,
        # with negated arrays, which are reversed so that they ascend.
        sums = _sums(-y[::-1], -z[::-1], u[::-1], slope)[::-1]
        slopes[self.second.rows[b]] -= factor * v * sums


def _sums(queries: FloatArray, scores: FloatArray, mass: FloatArray, spline: Spline) -> FloatArray:
    """Return sum_j mass_j spline(q - scores_j) for each query q; both arrays ascend."""
    from skfair.partial_parity._kernels.soft_pairs import pair_sums

    out = np.empty(queries.size)
    queries, scores, mass = (np.ascontiguousarray(array) for array in (queries, scores, mass))
    pair_sums(queries, scores, mass, spline.knots, spline.coefs, out)
    return out
