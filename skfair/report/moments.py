"""Weighted sums from which every mean and rate of an audit, and its uncertainty, is computed.

A *measure* is the mean of a value over the rows that count for it: a rate is the mean of 0 and 1.
Four sums per cell are enough, and the sums of two parts of a sample add up, so a sample can be
read in blocks and cells can be merged without another pass over the rows. Values are counted from
an origin close to them: the variance of numbers around ten million would lose its digits in a
difference of squares.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.metrics.intervals import wilson


class Moments(NamedTuple):
    """Sums of one measure by cell; the arrays have one entry per cell."""

    # Sums of weight times value, and of weight times squared value, both counted from the origin
    total: FloatArray
    second: FloatArray
    # Sums of the weights and of their squares
    weight: FloatArray
    squares: FloatArray
    is_share: bool  # whether the values are 0 or 1, so that the mean is a share
    origin: float = 0.0

    @classmethod
    def of_rows(
        cls,
        values: FloatArray | BoolArray,
        counted: BoolArray | None,
        codes: IntArray,
        n_cells: int,
        weights: FloatArray | None,
    ) -> Moments:
        """Sum the values of the rows that count (None: all) by cell."""
        if counted is not None:
            values, codes = values[counted], codes[counted]
            weights = None if weights is None else weights[counted]
        is_share = values.dtype == np.bool_

        def summed(of_rows: FloatArray | None) -> FloatArray:
            sums = np.bincount(codes, of_rows, n_cells)
            return sums.astype(np.float64)

        weight = summed(weights)
        squares = weight if weights is None else summed(weights**2)
        if is_share and weights is None:
            total = np.bincount(codes[values], minlength=n_cells).astype(np.float64)
            return cls(total, total, weight, squares, True)
        numbers = values.astype(np.float64)
        origin = 0.0
        if not is_share and weight.sum() > 0:
            origin = float(np.average(numbers, weights=weights))
            numbers = numbers - origin
        product = numbers if weights is None else weights * numbers
        total = summed(product)
        second = total if is_share else summed(product * numbers)
        return cls(total, second, weight, squares, is_share, origin)

    def with_sums(self, sums: Iterable[FloatArray]) -> Moments:
        """Return the measure with four other sums, in the order of the attributes."""
        total, second, weight, squares = sums
        return Moments(total, second, weight, squares, self.is_share, self.origin)

    def counted_from(self, origin: float) -> Moments:
        """Return the same with another origin."""
        by = self.origin - origin
        second = self.second + by * (2 * self.total + by * self.weight)
        total = self.total + by * self.weight
        return self._replace(total=total, second=second, origin=origin)

    def merged(self, codes: IntArray, n_cells: int) -> Moments:
        """Add up cells into larger ones: cell ``i`` becomes part of ``codes[i]``."""
        return self.with_sums(
            np.bincount(codes, sums, n_cells).astype(np.float64) for sums in self[:4]
        )

    @property
    def means(self) -> FloatArray:
        """The mean of each cell; NaN without weight."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.weight > 0, self.origin + self.total / self.weight, np.nan)

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
        return self.weight**2 / np.where(self.squares > 0, self.squares, 1.0)

    @property
    def variances(self) -> FloatArray:
        """The variance of the values of each cell; at least 0."""
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.maximum(self.second / self.weight - (self.total / self.weight) ** 2, 0.0)
            correction = 1.0 if self.is_share else self.n_effective / (self.n_effective - 1)
            return np.asarray(np.where(np.isfinite(correction), spread * correction, np.nan))

    @property
    def standard_errors(self) -> FloatArray:
        """The standard error of each mean."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(self.variances / self.n_effective)

    def interval(self, confidence: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the interval of each mean: Wilson's for shares, else Student's."""
        if self.is_share:
            return wilson(
                self.means, np.where(self.weight > 0, self.n_effective, np.nan), confidence
            )
        half = stats.t.ppf(0.5 + confidence / 2, np.maximum(self.n_effective - 1, 1))
        half = half * self.standard_errors
        return self.means - half, self.means + half

    def drawn(
        self,
        rng: np.random.RandomState,
        n_draws: int,
        means: FloatArray,
        variances: FloatArray,
    ) -> FloatArray:
        """Draw the mean of each cell anew, given what it is in the population.

        Shares of rows without weights are binomial; all other means are taken for normal.
        Returns an array of shape (n_draws, n_cells) with NaN for cells without rows.
        """
        has_mean = (self.weight > 0) & np.isfinite(means)
        draws = np.full((n_draws, self.weight.size), np.nan)
        at, weight = means[has_mean], self.weight[has_mean]
        if self.is_share and np.array_equal(self.weight, self.squares):
            draws[:, has_mean] = binomials(rng, n_draws, weight, np.clip(at, 0, 1)) / weight
            return draws
        errors = np.sqrt(np.nan_to_num(variances[has_mean]) * self.squares[has_mean]) / weight
        normal = at + errors * rng.standard_normal((n_draws, at.size))
        draws[:, has_mean] = np.clip(normal, 0, 1) if self.is_share else normal
        return draws


def added(parts: list[Moments]) -> Moments:
    """Put the cells of several samples one after the other."""
    first = next((part for part in parts if part.origin), parts[0])  # others may have no rows
    parts = [part.counted_from(first.origin) for part in parts]
    return first.with_sums(np.concatenate([part[i] for part in parts]) for i in range(4))


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
