"""Rates, and means of a value over the rows of each cell, with their uncertainty.

A rate (:mod:`skfair.groups.declared_rates`) is the mean of a value that is 0 or 1 over the rows in
its denominator, and an F score is one in which errors count as a part of a row. To compute means
and variances, sums of powers of the value are enough, with the weights of the rows and with the
squared weights. The sums of two parts of a sample add up, so a sample can be read in blocks, and
cells can be merged without another pass over the rows. Values are counted from an origin close to
them, because the variance of numbers around ten million would lose its digits in a difference of
squares.

If rows belong together (:mod:`skfair.groups.row_units`), the squares of the sums of each unit are
added up as well. They give the variance of a rate among units, for any dependence within a unit.

There are two ways to a :class:`CellMeans`: ``GroupTable.means`` makes one of a rate, and audits
call :meth:`CellMeans.of_rows` for values of any kind. Both then read ``means``, ``n_effective`` and
``interval``. Certificates (``enforcement/certified/walk.py``) also call :func:`effective_size`. In
comments, w is the weight of a row, x its value and m the mean of a cell.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import stats

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.declared_rates import Rate
from skfair.groups.row_units import RowUnits, UnitParts, share_of_few
from skfair.groups.score_bins import bincount
from skfair.groups.shared_units import SharedUnits, UnitSums
from skfair.utils.rounding import ROUNDING, SUM_ROUNDING


class Moments(NamedTuple):
    """Three sums over the rows, or the units, of a cell: (weight, first, second).

    With weights they are the sums of w, w x and w x^2. With squared weights they are the sums of
    w^2, w^2 x and w^2 x^2. Over units they are the sums of W^2, W S and S^2, where W is the sum of
    w and S the sum of w x over the rows of a unit.
    """

    weight: FloatArray
    first: FloatArray
    second: FloatArray


class Remeasured(Protocol):
    """The rows of a value that is no mean over rows, such as an F1 score, with their cells."""

    def only(self, is_kept: BoolArray) -> Remeasured:
        """Leave out the rows of cells that are not kept."""

    def merged(self, codes: IntArray, n_cells: int) -> CellMeans:
        """Measure larger cells, as ``CellMeans.merged`` does from sums."""


class CellMeans(NamedTuple):
    """Sums of one value by cell."""

    # (2, 3, n_cells): Moments with weights, and with squared weights. If rows have units, (3, 3,
    # n_cells), and the third are Moments over units. Values are counted from the origin, so x is
    # value - origin
    sums: FloatArray
    is_share: bool  # whether the values are 0 or 1, so that the mean is a share
    origin: float = 0.0
    # W and S of each part (the rows of a unit in a cell). They are kept only if a unit lies in
    # several cells. Sums over units cannot be merged without them then, and means vary together
    unit_sums: UnitSums | None = None
    # Measures larger cells anew. It is needed if the value is no mean over rows, because its sums
    # cannot be merged
    own: Remeasured | None = None
    # Whether some rows count by parts, as errors of an F score do. Sums with squared weights then
    # have squared parts, and Kish's number is no limit on the information
    by_parts: bool = False

    @classmethod
    def of_rows(
        cls,
        values: FloatArray | BoolArray,
        counted: BoolArray | None,
        codes: IntArray,
        n_cells: int,
        weights: FloatArray | None = None,
        squares: FloatArray | None = None,
        units: RowUnits | UnitParts | None = None,  # the unit of each row, or the parts of units
        *,
        are_merged: bool = True,  # whether cells may be merged later, see UnitParts.squares
    ) -> CellMeans:
        """Sum the values by cell over the rows for which ``counted`` is true (None: all rows).

        ``codes`` has the cell of each row. The mean of boolean values is a share. ``squares`` are
        the squared weights. They must be given if a row stands for several rows, as the sum of the
        squared weights of these rows. Otherwise they are computed from the weights.
        """
        if weights is not None and squares is None:
            squares = weights**2
        parts = units.parts(codes, n_cells) if isinstance(units, RowUnits) else units
        if counted is not None:
            values, codes = values[counted], codes[counted]
            parts = parts if parts is None else replace(parts, codes=parts.codes[counted])
            weights, squares = (v if v is None else v[counted] for v in (weights, squares))
        is_share = values.dtype == np.bool_
        numbers, origin = values.astype(np.float64), 0.0
        if not is_share and (len(numbers) if weights is None else weights.sum()) > 0:
            origin = float(np.average(numbers, weights=weights))
            numbers -= origin

        def sums_with(own: FloatArray | None) -> list[FloatArray]:
            products = numbers if own is None else own * numbers
            total, first = (bincount(codes, by, n_cells) for by in (own, products))
            second = first if is_share else bincount(codes, products * numbers, n_cells)
            return [total, first, second]

        sums = [sums_with(weights)]
        sums.append(sums[0] if squares is None else sums_with(squares))
        if parts is None:
            return cls(np.array(sums), is_share, origin)
        each = np.ones(numbers.size) if weights is None else weights
        of_parts = parts.sums(np.stack([each, each * numbers]))
        # The products of W and S are 2 x 2. Three entries are needed: W W, W S and S S.
        sums.append([*parts.squares(of_parts, n_cells, are_merged)[[0, 0, 1], [0, 1, 1]]])
        kept = UnitSums(parts, of_parts, n_cells) if parts.are_split else None
        return cls(np.array(sums), is_share, origin, kept)

    @classmethod
    def of_outcomes(
        cls,
        rate: Rate,
        outcomes: IntArray,  # (n_rows,): 0 to 3 for tn, fp, fn and tp
        codes: IntArray,
        n_cells: int,
        weights: FloatArray | None = None,
        units: RowUnits | None = None,
        *,
        squares: FloatArray | None = None,
        are_merged: bool = True,
    ) -> CellMeans:
        """Sum a rate by cell; the other arguments are those of ``of_rows``."""
        below = rate.below.ravel()[outcomes]
        hits, counted = rate.above.ravel()[outcomes] > 0, below > 0
        own = below if weights is None else weights * below
        of_squares = None if squares is None else squares * below**2
        by_cell = codes, n_cells, own, of_squares, units
        sums = cls.of_rows(hits, counted, *by_cell, are_merged=are_merged)
        return sums._replace(by_parts=not rate.is_mean)

    def counted_from(self, origin: float) -> CellMeans:
        """Return the same sums with values counted from another origin."""
        by, (total, first, second) = self.origin - origin, self.sums.swapaxes(0, 1)
        sums = [total, first + by * total, second + by * (2 * first + by * total)]
        return self._replace(sums=np.stack(sums, axis=1), origin=origin)

    def merged(
        self,
        codes: IntArray,
        n_cells: int,
        units: UnitParts | None = None,  # merged as well, see UnitParts.merged
    ) -> CellMeans:
        """Add up cells into larger ones: cell ``i`` becomes part of ``codes[i]``.

        A unit in several of the merged cells counts as one unit if ``units`` and ``unit_sums`` are
        known. Otherwise the effective size is too small, never too large.
        """
        if self.own is not None:
            return self.own.merged(codes, n_cells)
        # 0 and 1 are their own squares, so the second moments of shares are the first ones.
        powers = [0, 1, 1] if self.is_share else [0, 1, 2]
        codes = codes.astype(np.intp, copy=False)
        if len(self.sums) > 2:
            added: list[Any]
            added = [[bincount(codes, own, n_cells) for own in part] for part in self.sums]
            kept = None
            if units is not None and self.unit_sums is not None:
                of_parts = units.sums(self.unit_sums.sums)
                added[2] = units.squares(of_parts, n_cells)[[0, 0, 1], [0, 1, 1]]
                kept = UnitSums(units, of_parts, n_cells) if units.are_split else None
            return self._replace(sums=np.array(added), unit_sums=kept)
        parts = self.sums[:, : max(powers) + 1]
        if np.array_equal(*parts):  # with weights of 0 and 1 both parts are equal
            parts = parts[:1]
        sums = np.array([[bincount(codes, own, n_cells) for own in part] for part in parts])
        return self._replace(sums=np.repeat(sums[:, powers], 2 // len(sums), axis=0))

    def whole(self) -> CellMeans:
        """Return all cells merged into one."""
        if self.own is not None:
            return self.own.merged(np.zeros(self.weight.size, np.int64), 1)
        return self._replace(sums=self.sums.sum(axis=-1, keepdims=True), unit_sums=None)

    @property
    def weight(self) -> FloatArray:
        """The sum of the weights of each cell."""
        return np.asarray(self.sums[0, 0])

    @property
    def means(self) -> FloatArray:
        """The mean of each cell; NaN without weight."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means = self.origin + self.sums[0, 1] / self.weight
            return np.where(self.weight > 0, means, np.nan)

    @property
    def n_effective(self) -> FloatArray:
        """Number of rows of equal weight, each of its own unit, with the same information."""
        moments = (Moments(*own) for own in self.sums)
        return effective_size(*moments, is_share=self.is_share, by_parts=self.by_parts)

    @property
    def shared(self) -> SharedUnits | None:
        """How the means of the cells vary together; None if no unit lies in two of them."""
        return None if self.unit_sums is None else self.unit_sums.shared

    def correlations(self, first: IntArray, second: IntArray) -> FloatArray:
        """Return the correlation of the means of each pair of cells, 0 without shared units."""
        shared = self.shared
        return np.zeros(first.shape) if shared is None else shared.correlations(first, second)

    @property
    def variances(self) -> FloatArray:
        """The variance of the values of each cell, or NaN if there are too few rows.

        Unless the mean is a share, it is the estimate that divides by the effective size minus 1.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            mean, second = self.sums[0, 1:] / self.weight
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


def added(parts: list[CellMeans]) -> CellMeans:
    """Put the cells of several samples one after the other."""
    # Parts without rows have the origin 0, which may be far from the values.
    first = next((part for part in parts if part.origin), parts[0])
    sums = [part.counted_from(first.origin).sums for part in parts]
    return first._replace(sums=np.concatenate(sums, axis=-1), unit_sums=None)


def effective_size(
    rows: Moments,
    squares: Moments,  # the same with squared weights
    of_units: Moments | None = None,  # the squares over units, if rows belong together
    *,
    is_share: bool = True,
    by_parts: bool = False,  # whether some rows count by parts, see CellMeans
) -> FloatArray:
    """Return the number of rows of equal weight, each of its own unit, with the same information.

    It is the smaller of two numbers. Kish's formula is (sum of w)^2 / (sum of w^2). The formula of
    Korn and Graubard is the variance of the values divided by the linearised variance of their
    mean, which takes into account that weights may depend on the value. Without weights the size is
    the number of rows. If rows count by parts, only the second number is taken, or their sum if all
    values are equal. With units it is at most the size of :func:`_size_of_units`. A size that
    differs from a whole number only by rounding becomes this number. So copies of ten people are
    not fewer than ten, and simulations that draw as many rows draw the same numbers.
    """
    weight = rows.weight
    mean = rows.first / np.where(weight > 0, weight, 1.0)
    if all(map(np.array_equal, rows, squares)):
        size = np.asarray(weight)
    elif by_parts:
        linear = _over_variance(rows, mean, squares)
        size = np.where(np.isinf(linear), weight, linear)
    else:
        kish = weight**2 / np.where(squares.weight > 0, squares.weight, 1.0)
        size = np.minimum(kish, _over_variance(rows, mean, squares))
    if of_units is not None:
        size = np.minimum(size, _size_of_units(rows, mean, of_units, is_share))
    whole = np.rint(size)
    return np.asarray(np.where(np.abs(size - whole) <= SUM_ROUNDING * whole, whole, size))


def _over_variance(rows: Moments, mean: FloatArray, squares: Moments) -> FloatArray:
    """Return the variance of the values divided by the variance of their mean.

    It is infinite if one of them is 0. The variance of the values is (sum of w x^2) / W - m^2, with
    W the sum of w. The variance of their mean is (sum of w^2 (x - m)^2) / W^2 over rows, or (sum of
    (S - m W_u)^2) / W^2 over units of weight W_u. Both are the same expression in the moments
    ``squares``.
    """
    safe = np.where(rows.weight > 0, rows.weight, 1.0)
    variance = (squares.second - 2 * mean * squares.first + mean**2 * squares.weight) / safe**2
    spread = rows.second / safe - mean**2
    is_spread = (spread > ROUNDING * rows.second / safe) & (variance > 0)
    return np.asarray(np.where(is_spread, spread / np.where(is_spread, variance, 1.0), np.inf))


def _size_of_units(rows: Moments, mean: FloatArray, squares: Moments, is_share: bool) -> FloatArray:
    """Return the number of rows, each of its own unit, with the information of the rows of units.

    ``linear`` is this number by the cluster-robust variance. As in Korn and Graubard (1998) it is
    made smaller by the ratio of the normal to the Student quantile (``share_of_few``), because few
    units do not show well how similar their rows are. The degrees of freedom follow from the number
    of units (``kish``), but at most from twice the number of units with hits, and twice the number
    with misses. The reason is that a variance from three people is not reliable, even if many
    others were never selected. The result of this may be below the number of units. Then the number
    of units is returned, or ``linear`` if it is smaller, because rows of a unit are at most as
    similar as equal rows. In simulations with 20 to 300 units of 1 to 10 rows (rates of .05, .2
    and .5; equal, correlated or independent rows) intervals cover the rate in 95.5% of cases, and
    in at least 91%, and limits are passed wrongly in at most 5.4%.
    """
    weight = rows.weight
    kish = weight**2 / np.where(squares.weight > 0, squares.weight, 1.0)
    linear = _over_variance(rows, mean, squares)
    linear = np.where(np.isinf(linear), kish, linear)
    informative = kish
    if is_share:
        # Kish's formula is applied to the hits of units, and to their misses W - S.
        hits, misses = weight * mean, weight * (1 - mean)
        of_misses = squares.weight - 2 * squares.first + squares.second
        with np.errstate(invalid="ignore", divide="ignore"):
            fewer = np.fmin(hits**2 / squares.second, misses**2 / of_misses)
        informative = np.minimum(kish, 2 * np.nan_to_num(fewer))
    shrunk = linear * share_of_few(kish, informative)
    return np.asarray(np.maximum(shrunk, np.minimum(linear, kish)))


def wilson(rates: FloatArray, rows: FloatArray, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's score interval of a proportion; NaN without rows."""
    z = stats.norm.ppf(0.5 + confidence / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = 1 + z**2 / rows
        centre = (rates + z**2 / (2 * rows)) / scale
        half = z / scale * np.sqrt(rates * (1 - rates) / rows + (z / (2 * rows)) ** 2)
    # By rounding the ends may be 1e-17 instead of 0 and 1 - 1e-16 instead of 1.
    return np.clip(centre - half, 0, rates), np.clip(centre + half, rates, 1)
