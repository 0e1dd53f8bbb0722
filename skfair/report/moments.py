"""Weighted sums from which every mean and rate of an audit, and its uncertainty, is computed.

A *measure* is the mean of a value over the rows that count for it: a rate is the mean of 0 and 1.
Four sums per cell are enough, and the sums of two parts of a sample add up, so a sample can be
read in blocks and cells can be merged without another pass over the rows. Values are counted from
an origin close to them: the variance of numbers around ten million would lose its digits in a
difference of squares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.metrics.intervals import wilson


class Moments(NamedTuple):
    """Sums of one measure by cell."""

    # (4, n_cells): sums of weight times value, of weight times squared value, both counted from the
    # origin, of the weights and of the squared weights
    sums: FloatArray
    is_share: bool  # whether the values are 0 or 1, so that the mean is a share
    origin: float = 0.0

    @classmethod
    def of_rows(
        cls,
        values: FloatArray | BoolArray,
        counted: BoolArray | None,
        codes: IntArray,
        n_cells: int,
        weights: FloatArray | None = None,
        squares: FloatArray | None = None,
    ) -> Moments:
        """Sum the values of the rows that count (None: all) by cell.

        Rows that stand for several ones have the sum of the squared weights of these.
        """
        if weights is not None and squares is None:
            squares = weights**2
        if counted is not None:
            values, codes = values[counted], codes[counted]
            weights, squares = (v if v is None else v[counted] for v in (weights, squares))
        is_share = values.dtype == np.bool_
        numbers, origin = values.astype(np.float64), 0.0
        weight = np.bincount(codes, weights, n_cells)
        if not is_share and weight.sum() > 0:
            origin = float(np.average(numbers, weights=weights))
            numbers -= origin
        product = numbers if weights is None else weights * numbers
        total = np.bincount(codes, product, n_cells)
        second = total if is_share else np.bincount(codes, product * numbers, n_cells)
        of_squares = weight if squares is None else np.bincount(codes, squares, n_cells)
        return cls(np.stack([total, second, weight, of_squares]), is_share, origin)

    def counted_from(self, origin: float) -> Moments:
        """Return the same with another origin."""
        by, (total, second, weight, squares) = self.origin - origin, self.sums
        sums = [total + by * weight, second + by * (2 * total + by * weight), weight, squares]
        return self._replace(sums=np.stack(sums), origin=origin)

    def merged(self, codes: IntArray, n_cells: int) -> Moments:
        """Add up cells into larger ones: cell ``i`` becomes part of ``codes[i]``."""
        return self._replace(sums=np.stack([np.bincount(codes, s, n_cells) for s in self.sums]))

    def whole(self) -> Moments:
        """Return the sums of all cells, as one."""
        return self._replace(sums=self.sums.sum(axis=1, keepdims=True))

    @property
    def weight(self) -> FloatArray:
        """The sum of the weights of each cell."""
        return np.asarray(self.sums[2])

    @property
    def means(self) -> FloatArray:
        """The mean of each cell; NaN without weight."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.weight > 0, self.origin + self.sums[0] / self.weight, np.nan)

    @property
    def smoothed_means(self) -> FloatArray:
        """The means; shares as if one more row of each kind had been seen.

        A group of three rows without a success is not known to never have one.
        """
        if not self.is_share:
            return self.means
        shares = (self.means * self.n_effective + 1) / (self.n_effective + 2)
        return np.asarray(np.where(self.weight > 0, shares, np.nan))

    @property
    def n_effective(self) -> FloatArray:
        """How many rows of equal weight would be as informative."""
        squares = self.sums[3]
        return self.weight**2 / np.where(squares > 0, squares, 1.0)

    @property
    def variances(self) -> FloatArray:
        """The variance of the values of each cell; at least 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, second = self.sums[:2] / self.weight
            spread = np.maximum(second - mean**2, 0.0)
            correction = 1.0 if self.is_share else self.n_effective / (self.n_effective - 1)
            return np.asarray(np.where(np.isfinite(correction), spread * correction, np.nan))

    def interval(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the interval of each mean: Wilson's for shares, else Student's."""
        if self.is_share:
            n_rows = np.where(self.weight > 0, self.n_effective, np.nan)
            return wilson(self.means, n_rows, confidence)
        half = stats.t.ppf(0.5 + confidence / 2, np.maximum(self.n_effective - 1, 1))
        with np.errstate(invalid="ignore", divide="ignore"):
            half = half * np.sqrt(self.variances / self.n_effective)
        return self.means - half, self.means + half

    def drawn(
        self, rng: np.random.RandomState, n_draws: int, means: FloatArray, variances: FloatArray
    ) -> FloatArray:
        """Draw the mean of each cell anew, given what it is in the population.

        Shares of rows without weights are binomial; all other means are taken for normal.
        Returns an array of shape (n_draws, n_cells) with NaN for cells without rows.
        """
        has_mean = (self.weight > 0) & np.isfinite(means)
        draws = np.full((n_draws, self.weight.size), np.nan)
        at, (weight, squares) = means[has_mean], self.sums[2:, has_mean]
        if self.is_share and np.array_equal(*self.sums[2:]):
            draws[:, has_mean] = binomials(rng, n_draws, weight, np.clip(at, 0, 1)) / weight
            return draws
        errors = np.sqrt(np.nan_to_num(variances[has_mean]) * squares) / weight
        normal = at + errors * rng.standard_normal((n_draws, at.size))
        draws[:, has_mean] = np.clip(normal, 0, 1) if self.is_share else normal
        return draws


def added(parts: list[Moments]) -> Moments:
    """Put the cells of several samples one after the other."""
    first = next((part for part in parts if part.origin), parts[0])  # others may have no rows
    sums = [part.counted_from(first.origin).sums for part in parts]
    return first._replace(sums=np.concatenate(sums, axis=1))


def binomials(
    rng: np.random.RandomState, n_draws: int, sizes: FloatArray, shares: FloatArray
) -> FloatArray:
    """Draw binomial counts, an array of shape (n_draws, n_cells); O(log n) for each draw.

    Many cells of a search have the same size and the same share. They are drawn by one table of
    the distribution, which takes a third of the time of drawing each by itself.
    """
    counts = np.empty((n_draws, sizes.size))
    if not sizes.size:
        return counts
    pairs, kinds = np.unique(np.stack([sizes, shares]), axis=1, return_inverse=True)
    order = np.argsort(kinds.ravel(), kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(kinds.ravel()))[:-1])
    for (whole, share), cells in zip(pairs.T, parts, strict=True):
        size, shape = int(whole), (n_draws, cells.size)
        if size >= n_draws * cells.size:  # its table would be longer than what is drawn by it
            counts[:, cells] = rng.binomial(size, share, shape)
        else:
            below = special.bdtr(np.arange(size), size, share)  # P(count <= 0), ..., <= size - 1
            counts[:, cells] = np.searchsorted(below, rng.random_sample(shape), side="right")
    return counts


def sums_by(
    joint: IntArray, n_values: int, columns: Sequence[FloatArray | None]
) -> tuple[IntArray, list[FloatArray]]:
    """List the values that occur, and add up columns over the rows of each; None counts rows."""
    levels = None
    if n_values > 4 * joint.size + 10**6:
        levels, joint = np.unique(joint, return_inverse=True)
        n_values = levels.size
    occurs = np.flatnonzero(np.bincount(joint, minlength=n_values))
    sums = [np.bincount(joint, own, n_values)[occurs].astype(np.float64) for own in columns]
    return occurs if levels is None else levels[occurs], sums
