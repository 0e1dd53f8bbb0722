"""Sums over pairs of rows of a function of the difference of their scores, in O(n log n).

Rows are sorted once. Functions are piecewise cubic (:class:`Spline`). Rows have masses, for
instance the part of their ranks that lies in a percentile interval (:class:`RankedRows`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray


class Spline(NamedTuple):
    """A function that is 0 left of its first knot and a polynomial from each knot to the next."""

    knots: FloatArray  # (n_knots,): where the pieces start; the last one never ends
    coefs: FloatArray  # (n_knots, 4): coefficients by powers of the distance from the knot

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


class RankedRows:
    """Rows sorted by ascending score, and the masses that their ranks give them."""

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
        starts = np.flatnonzero(np.diff(self.scores, prepend=np.nan) != 0)  # of blocks of ties
        self.shares = weights / below[-1]  # they add up to 1
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
    from skfair.partial_parity._kernels.soft_pairs import pair_sums

    out = np.empty(queries.size)
    queries, scores, mass = (np.ascontiguousarray(array) for array in (queries, scores, mass))
    pair_sums(queries, scores, mass, spline.knots, spline.coefs, out)
    return out
