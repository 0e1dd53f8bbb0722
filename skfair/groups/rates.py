"""Rates, and means of a value over the rows of each cell, with their uncertainty.

A rate is a quotient of the weights of rows by true and predicted class (``RATES``), and the mean of
0 and 1 over the rows that count for it. Sums of powers of the value are enough, each with the
weights of the rows and with their squares. The sums of two parts of a sample add up, so a sample
can be read in blocks, and cells can be merged without another pass over the rows. Values are
counted from an origin close to them: the variance of numbers around ten million would lose its
digits in a difference of squares.

Where rows belong together (:mod:`skfair.groups.row_units`) there are squares of what each unit adds
as well. They have the variance of a rate among units, whatever the rows of a unit have in common.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.row_units import RowUnits, UnitParts, share_of_few
from skfair.groups.score_bins import bincount
from skfair.utils.rounding import ROUNDING, SUM_ROUNDING


class Moments(NamedTuple):
    """Sums of the powers 0, 1 and 2 of a value, each with a weight.

    Over rows with squared weights, and over units, they are the sums of a squared weight, of its
    product with the weighted value, and of that squared.
    """

    weight: FloatArray
    first: FloatArray
    second: FloatArray


class CellMeans(NamedTuple):
    """Sums of one value by cell."""

    # (2, 3, n_cells): with the weights and with their squares, the sums of the powers 0, 1 and 2
    # of the value, counted from the origin. With units (3, 3, n_cells): last the sums over units
    # of their squared weight, of its product with their sum of the value, and of that squared
    sums: FloatArray
    is_share: bool  # whether the values are 0 or 1, so that the mean is a share
    origin: float = 0.0
    # (2, n_parts): of each part of a unit its weight, and its sum of the value. They are kept where
    # units lie in several cells
    unit_sums: FloatArray | None = None

    @classmethod
    def of_rows(
        cls,
        values: FloatArray | BoolArray,
        counted: BoolArray | None,
        codes: IntArray,
        n_cells: int,
        weights: FloatArray | None = None,
        squares: FloatArray | None = None,
        units: RowUnits | UnitParts | None = None,  # which rows belong together
    ) -> CellMeans:
        """Sum the values of the rows that count (None: all) by cell; cells may be merged later.

        Rows that stand for several ones have the sum of the squared weights of these.
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
        sums.append([*parts.squares(of_parts, n_cells, are_merged=True)[[0, 0, 1], [0, 1, 1]]])
        return cls(np.array(sums), is_share, origin, of_parts if parts.are_split else None)

    def counted_from(self, origin: float) -> CellMeans:
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

        Without the parts of units, those of several cells are worth less than they are.
        """
        powers = [0, 1, 1] if self.is_share else [0, 1, 2]  # 0 and 1 are their own squares
        codes = codes.astype(np.intp, copy=False)
        if len(self.sums) > 2:
            added: list[Any]
            added = [[bincount(codes, own, n_cells) for own in part] for part in self.sums]
            if units is not None and self.unit_sums is not None:
                added[2] = units.squares(units.sums(self.unit_sums), n_cells)[[0, 0, 1], [0, 1, 1]]
            return self._replace(sums=np.array(added), unit_sums=None)
        parts = self.sums[:, : max(powers) + 1]
        if np.array_equal(*parts):  # weights are their own squares, too
            parts = parts[:1]
        sums = np.array([[bincount(codes, own, n_cells) for own in part] for part in parts])
        return self._replace(sums=np.repeat(sums[:, powers], 2 // len(sums), axis=0))

    def whole(self) -> CellMeans:
        return self._replace(sums=self.sums.sum(axis=-1, keepdims=True))

    @property
    def weight(self) -> FloatArray:
        return np.asarray(self.sums[0, 0])

    @property
    def means(self) -> FloatArray:
        """The mean of each cell; NaN without weight."""
        with np.errstate(invalid="ignore", divide="ignore"):
            means = self.origin + self.sums[0, 1] / self.weight
            return np.where(self.weight > 0, means, np.nan)

    @property
    def n_effective(self) -> FloatArray:
        """How many rows of equal weight, each of its own unit, would be as informative."""
        return effective_size(*(Moments(*own) for own in self.sums), is_share=self.is_share)

    @property
    def variances(self) -> FloatArray:
        """The variance of the values of each cell; at least 0."""
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
    first = next((part for part in parts if part.origin), parts[0])  # others may have no rows
    sums = [part.counted_from(first.origin).sums for part in parts]
    return first._replace(sums=np.concatenate(sums, axis=-1), unit_sums=None)


def effective_size(
    rows: Moments,
    squares: Moments,  # the same with squared weights
    of_units: Moments | None = None,  # the squares over units, if rows belong together
    *,
    is_share: bool = True,
) -> FloatArray:
    """Return how many rows of equal weight, each of its own unit, would be as informative.

    The smaller one of Kish's formula, and that of Korn and Graubard, which sees weights that depend
    on the value: its variance over the linearised variance of the mean. Rows that count once are
    worth themselves. With units it is at most what these are worth. What is a whole number but for
    rounding is one: ten people copied are not fewer than ten, and simulations of them draw the same
    numbers.
    """
    weight = rows.weight
    mean = rows.first / np.where(weight > 0, weight, 1.0)
    if all(map(np.array_equal, rows, squares)):
        size = np.asarray(weight)
    else:
        kish = weight**2 / np.where(squares.weight > 0, squares.weight, 1.0)
        size = np.minimum(kish, _over_variance(rows, mean, squares))
    if of_units is not None:
        size = np.minimum(size, _size_of_units(rows, mean, of_units, is_share))
    whole = np.rint(size)
    return np.asarray(np.where(np.abs(size - whole) <= SUM_ROUNDING * whole, whole, size))


def _over_variance(rows: Moments, mean: FloatArray, squares: Moments) -> FloatArray:
    """Return the variance of values over that of their mean; infinite where either is 0."""
    safe = np.where(rows.weight > 0, rows.weight, 1.0)
    variance = (squares.second - 2 * mean * squares.first + mean**2 * squares.weight) / safe**2
    spread = rows.second / safe - mean**2
    is_spread = (spread > ROUNDING * rows.second / safe) & (variance > 0)
    return np.asarray(np.where(is_spread, spread / np.where(is_spread, variance, 1.0), np.inf))


def _size_of_units(rows: Moments, mean: FloatArray, squares: Moments, is_share: bool) -> FloatArray:
    """Return the number of rows of different units that are as informative as those of some units.

    The cluster-robust variance says it, made larger as Korn and Graubard (1998) do: by the quantile
    of Student over the normal one, since few units do not show how their rows resemble each other.
    It has at most twice as many degrees of freedom as units that have hits, or misses: a variance
    that rests on three people says little, however many others were never selected. Where it says
    less than the number of the units, that is taken (their variance if it is even larger): no rows
    resemble each other more than equal ones. In simulations with 20 to 300 units of 1 to 10 rows
    (rates of .05, .2 and .5; equal, correlated or independent) intervals cover the rate in 95.5%,
    91% at least, and limits are passed wrongly in 5.4% at most.
    """
    weight = rows.weight
    kish = weight**2 / np.where(squares.weight > 0, squares.weight, 1.0)
    linear = _over_variance(rows, mean, squares)
    linear = np.where(np.isinf(linear), kish, linear)
    informative = kish
    if is_share:
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
    # 0 and 1 come out as 1e-17 and 1 - 1e-16.
    return np.clip(centre - half, 0, rates), np.clip(centre + half, rates, 1)


# The entries by true class, then by predicted class: negatives and positives, true and false.
_ENTRIES = (("tn", "fp"), ("fn", "tp"))


def entries(names: str) -> IntArray:
    """Return how often the entries of the table, [true class][predicted class], are named."""
    return np.array([[names.split().count(name) for name in row] for row in _ENTRIES])


# Which entries of the table a rate divides by which, and what a group has none of if those by
# which it divides are empty.
RATES = {
    name: (entries(numerator), entries(denominator), lacking)
    for name, numerator, denominator, lacking in (
        ("base_rate", "fn tp", "tn fp fn tp", "row"),
        ("selection_rate", "fp tp", "tn fp fn tp", "row"),
        ("true_positive_rate", "tp", "fn tp", "row of the positive class"),
        ("false_positive_rate", "fp", "tn fp", "row of the negative class"),
        ("false_negative_rate", "fn", "fn tp", "row of the positive class"),
        ("positive_predictive_value", "tp", "fp tp", "row predicted positive"),
        ("negative_predictive_value", "tn", "tn fn", "row predicted negative"),
        ("false_omission_rate", "fn", "tn fn", "row predicted negative"),
        ("error_ratio", "fn", "fp", "row that is a false positive"),
        ("accuracy", "tn tp", "tn fp fn tp", "row"),
    )
}


def hits_and_rows(weights: FloatArray, rate: str) -> tuple[FloatArray, FloatArray]:
    """Return what a rate of tables of shape (..., 2, 2) divides by what."""
    above, below = ((weights * part).sum(axis=(-2, -1)) for part in RATES[rate][:2])
    return above, below


def rates_of(weights: FloatArray, rate: str) -> FloatArray:
    """Compute one rate of tables of shape (..., 2, 2); NaN where the denominator is empty."""
    above, below = hits_and_rows(weights, rate)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(below > 0, above / below, np.nan))
