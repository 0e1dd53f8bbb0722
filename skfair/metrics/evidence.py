"""P-values of the comparisons that a metric makes, for a limit on its value in the population.

A disparity is the largest of several comparisons, so "the disparity is the limit or more" says that
one of them is. It is rejected if each is (intersection-union): the largest p-value counts, and
nothing is shared out over pairs, rates or attributes.

Distributions of scores differ by the limit or more if they do so at some threshold, so each
threshold is tested, and the largest p-value counts. It costs nothing to have many of them. Within
an interval shares differ by the limit only if three things hold: rates differ by the limit times
its length, the higher one reaches into it so far, and the lower one does not cover too much of it.
Rejecting any of the three is enough, at levels that add up to the whole. An area under a curve is
tested like a rate, of as many rows as have the variance of DeLong, DeLong and Clarke-Pearson
(1988): near 1 and with few rows that variance is often far too small, and an area is not normal.
Means have the test of Welch (1947), whose degrees of freedom allow for groups of few rows, and the
test of Gaffke (2005), which allows for skewed scores. The larger p-value counts.

Rows may belong together (``units=``). Rates then have effective numbers of rows, by their
cluster-robust variance. Means and areas are computed from the amounts that each unit adds to them.
At the thresholds of a distribution each unit counts as one row, which is the careful bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from skfair._typing import ClassLabel, FloatArray, IntArray
from skfair.groups.cohort import Cohort
from skfair.groups.compared_groups import Reference, is_group, ratios
from skfair.groups.intervals import Intervals
from skfair.groups.rates import rates_of
from skfair.groups.table import GroupTable
from skfair.metrics.labels import LabelSpec
from skfair.metrics.two_rates import (
    MANY_NODES,
    beta_density,
    both_ways,
    largest_rate,
    legendre,
    melded,
    rest_of_peers,
    score_statistic,
    smallest_limit,
)
from skfair.utils.rounding import TINY

# "auto" counts every table if both groups have at most about this many rows.
_FEW_ROWS = 61
# Thresholds at which a distribution is tested by the slower test: the worst by the faster one.
_N_THRESHOLDS = 200
# Share of the level for each end of an interval that is not an end of all ranks.
_OF_END = 0.1

_SINGLE = {"group_auc_gap"}  # one area, compared with a half
_OF_CLASSES = {"inter_group_pairwise_gap", "intra_group_pairwise_gap"}
_DECISIONS = {"partial_demographic_parity_gap"}  # at the threshold 0 alone
_DISTRIBUTIONS = {"statistical_parity_gap", "partial_statistical_parity_gap", *_DECISIONS}
SCORE_METRICS = (*sorted(_DISTRIBUTIONS | _SINGLE | _OF_CLASSES), "mean_score_difference")


class Evidence(NamedTuple):
    """Comparisons, what was measured of each, and how unlikely that is if it exceeds a limit."""

    columns: dict[str, Any]  # of the table of comparisons, one entry for each
    measured: FloatArray  # (n_comparisons,): the disparity of each
    p_values: Callable[[float], FloatArray]  # of a limit: one for each comparison
    method: str = "melded"

    def p_value(self, limit: float) -> float:
        """Return the largest p-value of a limit."""
        return float(self.p_values(limit).max(initial=0.0))

    @property
    def largest(self) -> float:
        """The largest disparity that was measured."""
        return float(self.measured.max(initial=0.0))

    def smallest_shown(self, confidence: float, spread: float | None = None) -> float:
        """Return the smallest limit that is shown: 1 at most, unless scores have a spread."""
        most = 1.0
        if spread is not None:
            most = spread or 1e-12
            while self.p_value(most) > 1 - confidence:
                most *= 2
        return smallest_limit(self.p_value, 1 - confidence, most)


def evidence_of_labels(
    spec: LabelSpec, rows: Cohort, method: str, reference: Reference
) -> Evidence:
    """Return the comparisons of a metric of labels, for rows whose values are its outcomes."""
    table, is_ratio = rows.table(), spec.kind == "ratio"
    # In an attribute with strata the cells of a stratum without weight are left out.
    of_cells = table.groups.present if spec.kind == "largest" else table.groups.compared
    for rate in spec.rates:
        table.checked_rate(rate, of_cells)  # raises where it is undefined
    if spec.kind == "largest":
        return _caps(table, *spec.rates)
    if is_ratio and not is_group(reference) and reference == "overall":
        raise ValueError(
            "Ratios to the overall rate have no test here. Use reference='pairwise', or "
            "comparison='difference'."
        )
    of_rates = [_pairs(table, rate, reference) for rate in spec.rates]
    pairs = _Pairs(*map(np.concatenate, zip(*of_rates, strict=True)))
    method = _chosen(method, pairs, are_independent=rows.counts_each_once and rows.units is None)
    p_values = partial(pairs.p_values, method, is_ratio)
    return Evidence(pairs.columns(), pairs.disparities(is_ratio), p_values, method)


def _chosen(method: str, pairs: _Pairs, *, are_independent: bool) -> str:
    """Return the test of pairs; "auto" counts all tables if rows are few and independent."""
    if method == "auto":
        n_tables = (pairs.n1 + 1) * (pairs.n0 + 1)
        are_few = n_tables.size > 0 and float(n_tables.max()) <= _FEW_ROWS**2
        return "exact" if are_independent and are_few else "melded"
    if method == "exact" and not are_independent:
        raise ValueError(
            "method='exact' counts independent rows, not weights or rows that belong together "
            "(units=). Use method='melded'."
        )
    return method


class _Pairs(NamedTuple):
    """Comparisons of two rates, of which each array has one entry."""

    rate: NDArray[Any]  # its name
    first: NDArray[Any]  # names of both sides
    second: NDArray[Any]
    k1: FloatArray  # hits of the first side, and its rows
    n1: FloatArray
    k0: FloatArray  # the same of the second side
    n0: FloatArray
    share: FloatArray  # by what the difference is multiplied

    def rates(self) -> tuple[FloatArray, FloatArray]:
        return self.k1 / np.maximum(self.n1, TINY), self.k0 / np.maximum(self.n0, TINY)

    def disparities(self, is_ratio: bool) -> FloatArray:
        first, second = self.rates()
        if is_ratio:
            return np.nan_to_num(1 - ratios(first, second))
        return self.share * np.abs(first - second)

    def p_values(self, method: str, is_ratio: bool, limit: float) -> FloatArray:
        """Return how unlikely each comparison is if it exceeds a limit."""
        if limit <= 0:  # every difference is as large as that
            return np.ones(self.share.size)
        p, at = np.zeros(self.share.size), self.share > limit  # others cannot be so far apart
        k1, n1, k0, n0, share = (own[at] for own in self[3:])
        p[at] = both_ways(method, k1, n1, k0, n0, limit / share, is_ratio)
        return p

    def columns(self) -> dict[str, Any]:
        rate_first, rate_second = self.rates()
        return {
            "rate": self.rate,
            "first": self.first,
            "second": self.second,
            "n_first": self.n1,
            "n_second": self.n0,
            "rate_first": rate_first,
            "rate_second": rate_second,
        }


def _pairs(table: GroupTable, rate: str, reference: Reference) -> _Pairs:
    """Return the comparisons of the groups in a rate.

    The distance of a group to the overall rate of its stratum is a share of that to the other
    groups, which is their share of the sample.
    """
    groups = table.groups
    names = np.array(groups.cells.names, dtype=object)
    hits, sizes = _hits_and_sizes(table, rate)
    if is_group(reference) or reference != "overall":
        first, second = groups.pairs_with(reference)
        other, k0, n0, share = names[second], hits[second], sizes[second], np.ones(first.size)
    else:
        rates, weights = np.nan_to_num(rates_of(table.weights, rate)), table.means(rate).weight
        rest_rate, rest_size, shares = rest_of_peers(rates, sizes, weights, groups.peer_sums)
        first = groups.compared[rest_size[groups.compared] > 0]
        other, share = np.full(first.size, "rest", dtype=object), shares[first]
        k0, n0 = (rest_rate * rest_size)[first], rest_size[first]
    return _Pairs(
        rate=np.full(first.size, rate),
        first=names[first],
        second=other,
        k1=hits[first],
        n1=sizes[first],
        k0=k0,
        n0=n0,
        share=share,
    )


def _hits_and_sizes(table: GroupTable, rate: str) -> tuple[FloatArray, FloatArray]:
    """Return the numbers of hits and of rows that a rate of each cell is worth."""
    means = table.means(rate)
    return np.nan_to_num(means.means) * means.n_effective, means.n_effective


def _caps(table: GroupTable, rate: str) -> Evidence:
    """Return the evidence on the largest rate of a group."""
    cells = table.groups.present
    k, n = (numbers[cells] for numbers in _hits_and_sizes(table, rate))
    names = np.array(table.groups.cells.names, dtype=object)[cells]
    columns = {"rate": rate, "first": names, "second": "limit", "n_first": n, "rate_first": k / n}
    return Evidence(columns, k / n, lambda limit: largest_rate(k, n, limit), "exact")


def evidence_of_scores(
    name: str, rows: Cohort, interval: Any = None, pos_label: ClassLabel = None
) -> Evidence:
    """Return the comparisons of a metric of scores, for rows without weights."""
    first, second = rows.groups.pairs
    names = np.array(rows.groups.cells.names, dtype=object)
    columns = {"rate": name, "first": names[first], "second": names[second]}
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    positive = rows.positive(pos_label) if name in _OF_CLASSES else None
    members = _members(rows, positive, name)
    if name == "mean_score_difference":
        return _of_means(columns, [(members[i][0], members[j][0]) for i, j in pairs])
    if name not in _DISTRIBUTIONS:
        areas = [_areas(name, members[i], members[j]) for i, j in pairs]
        return _of_areas(columns, np.array(areas).reshape(-1, 2, 2), is_single=name in _SINGLE)
    intervals = rows.groups.intervals((0.0, 1.0) if interval is None else interval)
    at = np.zeros(1) if name in _DECISIONS else None
    # Either group may be the higher one.
    curves = [
        [
            _Curves(members[i][0], members[j][0], intervals, (i, j), at)
            for i, j in (pair, pair[::-1])
        ]
        for pair in pairs
    ]
    return Evidence(
        columns,
        np.array([curve.largest for curve, _ in curves]),
        lambda limit: np.array([max(side.p_value(limit) for side in both) for both in curves]),
    )


@dataclass(frozen=True, eq=False)
class _Members:
    """The scores of a cell, or of its rows of a class."""

    scores: FloatArray
    units: IntArray | None = None  # the unit of each, where rows belong together

    @property
    def size(self) -> float:
        """The number of independent ones: by Kish's formula, if units have several."""
        if self.units is None:
            return self.scores.size
        of_units = np.bincount(self.units)
        return float(self.scores.size**2 / (of_units**2).sum())

    def by_unit(self, values: FloatArray) -> FloatArray:
        """Return independent values of the same mean: one for each unit, the larger the more rows.

        They are the mean and what the unit adds to it, so that they have its linearised variance.
        """
        if self.units is None:
            return values
        mean, (levels, owners) = float(values.mean()), np.unique(self.units, return_inverse=True)
        added = np.bincount(owners, values - mean, levels.size)
        return np.asarray(mean + added * (levels.size / values.size))


def _members(rows: Cohort, positive: IntArray | None, name: str) -> list[tuple[_Members, ...]]:
    """Return the members of each cell: all of them, or its negatives and its positives."""
    members, units = [], rows.units
    owners = np.arange(rows.values.size) if units is None else units.codes
    for cell, own in enumerate(rows.groups.rows_of_cells()):
        parts = [own]
        if positive is not None:
            parts = [own[positive[own] == label] for label in (0, 1)]
        is_single = any(np.unique(owners[part]).size < 2 for part in parts)
        if is_single and cell in rows.groups.compared:
            raise ValueError(
                f"{name} needs two {'rows' if units is None else 'units'} or more of each group"
                f"{' and class' if positive is not None else ''}, but the group "
                f"{rows.groups.cells.names[cell]!r} has fewer."
            )
        of_units = [None if units is None else owners[part] for part in parts]
        scores = (rows.values[part] for part in parts)
        members.append(tuple(map(_Members, scores, of_units)))
    return members


def _of_areas(columns: dict[str, Any], areas: FloatArray, *, is_single: bool) -> Evidence:
    """Return the evidence on pairs of areas and their sizes; or on the first one against a half."""
    (a1, n1), (a0, n0) = areas[:, 0].T, areas[:, 1].T
    k1, k0 = a1 * n1, a0 * n0

    def p_values(limit: float) -> FloatArray:
        if limit > (0.5 if is_single else 1.0):
            return np.zeros(n1.size)
        if is_single:
            edge = 0.5 + limit
            return np.maximum(largest_rate(k1, n1, edge), largest_rate(n1 - k1, n1, edge))
        return both_ways("melded", k1, n1, k0, n0, limit, False)

    return Evidence(columns, np.abs(a1 - (0.5 if is_single else a0)), p_values)


def _areas(
    name: str, a: tuple[_Members, ...], b: tuple[_Members, ...]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the two areas that a metric compares."""
    if name in _SINGLE:
        return (_area(a[0], b[0]),) * 2
    losers = (a[0], b[0]) if name.startswith("intra") else (b[0], a[0])
    return _area(a[1], losers[0]), _area(b[1], losers[1])


def _area(winners: _Members, losers: _Members) -> tuple[float, float]:
    """Return P(winner > loser), ties counted half, and the size of a rate that is as uncertain.

    Its variance is that of DeLong; with units that of Obuchowski (1997), who may win and lose.
    """
    n, m = winners.scores.size, losers.scores.size
    ranks = stats.rankdata(np.concatenate([winners.scores, losers.scores]))
    over = (ranks[:n] - stats.rankdata(winners.scores)) / m
    under = 1 - (ranks[n:] - stats.rankdata(losers.scores)) / n
    value = float(over.mean())
    if winners.units is None or losers.units is None:
        variance = float(over.var(ddof=1) / n + under.var(ddof=1) / m)
    else:
        owners = np.concatenate([winners.units, losers.units])
        added = np.bincount(owners, np.concatenate([(over - value) / n, (under - value) / m]))
        fewer = min(winners.size, losers.size)
        variance = float(added @ added) * fewer / (fewer - 1)
    # What Hanley and McNeil's variance says near 1, where few pairs or none are in wrong order.
    most = 4 * winners.size * losers.size / (winners.size + losers.size + 2)
    return value, min(value * (1 - value) / variance, most) if variance > 0 else most


def _of_means(columns: dict[str, Any], pairs: list[tuple[_Members, _Members]]) -> Evidence:
    sums = np.array([[_sums(own.by_unit(own.scores)) for own in pair] for pair in pairs])
    sums = sums.reshape(-1, 2, 6)
    first, second = sums[:, 0].T, sums[:, 1].T
    value = first[1] - second[1]
    # The variance of each mean; that of their difference has Welch's degrees of freedom.
    parts = sums[:, :, 4] / (sums[:, :, 0] - 1) / sums[:, :, 0]
    variance = np.maximum(parts.sum(axis=1), TINY)
    squares = ((parts / variance[:, None]) ** 2 / (sums[:, :, 0] - 1)).sum(axis=1)
    freedom = np.divide(1, squares, out=np.full(squares.size, np.inf), where=squares > 0)

    def p_values(limit: float) -> FloatArray:
        z = (np.abs(value) - limit) / np.sqrt(variance)
        welch = np.where(np.isfinite(freedom), special.stdtr(freedom, z), special.ndtr(z))
        gaffke = [_gaffke(first, second, limit), _gaffke(second, first, limit)]
        return np.asarray(np.maximum(welch, np.maximum(*gaffke)))

    return Evidence(columns, np.abs(value), p_values)


def _sums(scores: FloatArray) -> tuple[float, ...]:
    """Return the number and mean of scores, and of their distances to it the ends and moments.

    These are the smallest and the largest one, and the sums of their squares and cubes.
    """
    mean = float(scores.mean())
    centred = scores - mean
    squares = centred * centred
    ends = float(centred.min()), float(centred.max())
    return scores.size, mean, *ends, float(squares.sum()), float(squares @ centred)


def _gaffke(high: FloatArray, low: FloatArray, limit: float) -> FloatArray:
    """Return the chances that a mean drawn too high exceeds one drawn too low by the limit.

    A mean is drawn as the mean of its rows and of one more by random weights that sum to 1. The
    row more is the largest (or smallest) of both sides, each around its own mean: few rows of a
    skewed distribution do not show how far its tail reaches. With 0 and 1 it is the bound of
    Clopper and Pearson. The difference has about a gamma distribution of the same three moments.
    """
    largest, smallest = np.maximum(high[3], low[3]), np.minimum(high[2], low[2])
    unit = np.where(largest > smallest, largest - smallest, 1.0)  # cubes would be out of range
    mean, variance, third = (high[1] - low[1] - limit) / unit, 0.0, 0.0
    for (n, _, _, _, squares, cubes), end, sign in ((high, largest, 1), (low, smallest, -1)):
        more, squares, cubes = end / unit, squares / unit**2, cubes / unit**3
        # Sums of n rows around 0 become those of n + 1 around the new mean.
        cubes += more**3 * n * (n - 1) / (n + 1) ** 2 - 3 * more * squares / (n + 1)
        squares += more**2 * n / (n + 1)
        mean = mean + sign * more / (n + 1)
        variance = variance + squares / ((n + 1) * (n + 2))
        third = third + 2 * sign * cubes / ((n + 1) * (n + 2) * (n + 3))
    error = np.where(variance > 0, np.sqrt(variance), 1.0)
    skewness = third / error**3
    shape = 4 / np.maximum(skewness**2, 1e-12)  # nearly normal ones have a very large shape
    x = np.maximum(shape - np.where(skewness < 0, -1, 1) * mean / error * np.sqrt(shape), 0.0)
    chance = np.where(skewness < 0, special.gammainc(shape, x), special.gammaincc(shape, x))
    return np.where(variance > 0, chance, 0.0)


class _Curves:
    """Rows of two groups above each threshold, of which the first is to have the larger share."""

    def __init__(
        self,
        first: _Members,
        second: _Members,
        intervals: Intervals,
        cells: tuple[int, int],
        thresholds: FloatArray | None,  # None for every one
    ) -> None:
        if thresholds is None:
            thresholds = np.unique(np.concatenate([first.scores, second.scores]))
        # Where rows belong together, as if all rows of a unit were above a threshold or none.
        self.n1, self.n0 = first.size, second.size
        self.k1, self.k0 = (_above_each(side, thresholds) for side in (first, second))
        self.intervals, (self.own, self.other) = intervals, cells

    @property
    def largest(self) -> float:
        """The largest difference that was measured."""
        share = self.intervals.share
        gaps = share(self.k1 / self.n1, self.own) - share(self.k0 / self.n0, self.other)
        return float(np.abs(gaps).max())

    def p_value(self, limit: float) -> float:
        """Return the largest p-value of a threshold."""
        if limit >= 1:
            return 0.0
        if np.array_equal(self.intervals.bounds[self.own], self.intervals.bounds[self.other]):
            return self._of_rates(limit)
        # What is melded is at least the product of the p-values of both true rates, and that of two
        # uniform numbers is at most p with probability p (1 - log p).
        p = float(self._melded(limit, self._worst()).max())
        return p * (1 - np.log(p)) if p > 0 else 0.0

    def _of_rates(self, limit: float) -> float:
        """Return the largest p-value of a threshold, of the same interval for both groups."""
        k1, n1, k0, n0 = self.k1, self.n1, self.k0, self.n0
        bounds = self.intervals.bounds[self.own]
        gap, ends = limit * float(self.intervals.lengths[self.own]), []
        if bounds[0, 0] > 0:  # from rank 0 on, rates that are so far apart reach that far anyway
            ends.append((k1, n1, float(self.intervals.lowest_rank(limit, self.own))))
        if bounds[-1, 1] < 1:
            ends.append((n0 - k0, n0, 1 - float(self.intervals.highest_rank(1 - limit, self.own))))
        if not ends:
            kept = _likeliest(k1, n1, k0, n0, gap)
            return float(melded(k1[kept], n1, k0[kept], n0, gap, False).max())
        level = 1 - _OF_END * len(ends)
        rough = stats.norm.logcdf(score_statistic(k1, n1, k0, n0, gap, False)) - np.log(level)
        for k, n, rank in ends:
            z = (k - n * rank) / np.sqrt(n * max(rank * (1 - rank), 1e-12))
            rough = np.minimum(rough, stats.norm.logcdf(z) - np.log(_OF_END))
        kept = np.argsort(-rough, kind="stable")[:_N_THRESHOLDS]
        p = melded(k1[kept], n1, k0[kept], n0, gap, False) / level
        for k, n, rank in ends:
            p = np.minimum(p, largest_rate(k[kept], n, rank) / _OF_END)
        return min(1.0, float(p.max()))

    def _worst(self) -> IntArray:
        """Return the thresholds where shares may differ most, if rates are some errors off."""
        sides = (self.k1, self.n1, self.own, 1.0), (self.k0, self.n0, self.other, -1.0)
        kept = []
        # 40 thresholds for each number of standard errors that the rates may be off.
        for n_errors in (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0):
            ends = []
            for k, n, cell, sign in sides:
                rate = k / n
                error = np.sqrt((rate * (1 - rate) + 0.25 / n) / n)
                moved = np.clip(rate + sign * n_errors * error, 0.0, 1.0)
                ends.append(self.intervals.share(moved, cell))
            kept.append(np.argsort(ends[1] - ends[0], kind="stable")[:40])
        return np.unique(np.concatenate(kept))

    def _melded(self, limit: float, kept: IntArray) -> FloatArray:
        """Return P(share of U - share of L >= limit) of the shares of the intervals."""
        k, n = self.k1[kept, None], self.n1
        a, b = k + 1, np.maximum(n - k, 1)
        nodes, factors = legendre(MANY_NODES)
        low, high = special.betaincinv(a, b, 1e-12), special.betaincinv(a, b, 1 - 1e-12)
        p = np.zeros(kept.size)
        for start, stop in pairwise(self._kinks(limit)):
            first, last = np.clip(start, low, high), np.clip(stop, low, high)
            x = first + (last - first) * nodes
            values = beta_density(a, b, x) * self._below(x, limit, kept)
            p += values @ factors * (last - first)[:, 0]
        sure = self._below(np.ones(1), limit, kept)[:, 0]
        return np.clip(np.where(k[:, 0] < n, p, sure), 0.0, 1.0)

    def _below(self, rank: FloatArray, limit: float, kept: IntArray) -> FloatArray:
        """Return P(share of L <= share of a rank - limit)."""
        wanted = self.intervals.share(rank, self.own) - limit
        most = self.intervals.highest_rank(np.maximum(wanted, 0.0), self.other)
        k0, n0 = self.k0[kept, None], self.n0
        below = np.where(k0 > 0, special.betainc(np.maximum(k0, 1e-9), n0 - k0 + 1, most), 1.0)
        return np.where(wanted >= 0, below, 0.0)

    def _kinks(self, limit: float) -> FloatArray:
        """Return the ranks from the first that counts to 1 between which all curves are smooth.

        A sum over nodes on both sides of a jump has an error as large as the jump times a node's
        weight.
        """
        intervals, cell = self.intervals, self.own
        shares = limit + intervals.share(intervals.bounds[self.other].ravel(), self.other)
        shares = shares[shares <= 1]
        at = intervals.lowest_rank(shares, cell), intervals.highest_rank(shares, cell)
        ranks = np.unique(np.concatenate([*at, intervals.bounds[cell].ravel(), np.ones(1)]))
        return ranks[ranks >= intervals.lowest_rank(limit, cell)]


def _above_each(members: _Members, thresholds: FloatArray) -> FloatArray:
    """Return how many of the independent ones are above each threshold."""
    scores = np.sort(members.scores)
    above = scores.size - np.searchsorted(scores, thresholds, side="right").astype(np.float64)
    return above if members.units is None else above * (members.size / scores.size)


def _likeliest(k1: FloatArray, n1: float, k0: FloatArray, n0: float, limit: float) -> IntArray:
    """Return the thresholds with the largest statistics of the faster test, the largest first.

    The statistic rises with the first count and falls with the second, and both counts fall from
    one threshold to the next. So the first count at the start of a run of thresholds and the second
    at its end bound all statistics of the run, and most runs are far from the largest.
    """
    near = np.arange(k1.size)
    if k1.size > 4 * _N_THRESHOLDS:
        length = int(np.sqrt(k1.size))
        starts = near[::length]
        ends = np.minimum(starts + length, k1.size) - 1
        inside = score_statistic(k1[starts], n1, k0[starts], n0, limit, False)
        most = score_statistic(k1[starts], n1, k0[ends], n0, limit, False)
        # The runs of the best starts have thresholds enough, so their worst is a lower bound.
        best = np.argsort(-inside, kind="stable")[: _N_THRESHOLDS // length + 2]
        some = near[np.isin(near // length, best)]
        reached = np.sort(score_statistic(k1[some], n1, k0[some], n0, limit, False))[-_N_THRESHOLDS]
        near = near[np.repeat(most >= reached - 1e-9, ends - starts + 1)]
    z = score_statistic(k1[near], n1, k0[near], n0, limit, False)
    return near[np.argsort(-z, kind="stable")[:_N_THRESHOLDS]]
