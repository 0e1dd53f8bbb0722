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
Means have the test of Welch (1947), whose degrees of freedom allow for groups of few rows, and that
of Gaffke (2005), which allows for skewed scores; the larger p-value counts.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy import special, stats

from skfair._typing import FloatArray, IntArray
from skfair.blocks.partitions import is_lazy
from skfair.groups.compared_groups import Reference, is_group, ratios
from skfair.groups.encoding import encode_groups
from skfair.groups.intervals import Intervals
from skfair.groups.probabilities import GroupProbabilities
from skfair.groups.table import RATES, GroupTable
from skfair.metrics.labels import LabelSpec
from skfair.metrics.scores import ScoredRows, ranked_rows, scored_rows
from skfair.metrics.two_rates import (
    both_ways,
    largest_rate,
    legendre,
    melded,
    pair_test,
    rest_of_block,
    score_statistic,
    smallest_limit,
)
from skfair.utils.rounding import TINY
from skfair.utils.validation import check_positive

# "auto" counts every table if both groups have at most about this many rows.
_FEW_ROWS = 61


# Names of both sides of each comparison, and (5, n_comparisons): successes and rows of both sides,
# and by what their difference is multiplied.
_Sides: TypeAlias = tuple[list[tuple[str, str]], FloatArray]


class Sample(NamedTuple):
    """Rows as the user passed them."""

    y_true: Any
    y_pred: Any
    sensitive_features: Any
    control_features: Any
    sample_weight: Any
    intersectional: bool
    pos_label: Any

    def groups(self, weights: FloatArray | None) -> tuple[Any, Any, Any, bool]:
        """Return groups and strata with other weights, in the order that metrics take them."""
        return self.sensitive_features, self.control_features, weights, self.intersectional


class Evidence(NamedTuple):
    """Comparisons, what was measured of each, and how unlikely that is if it exceeds a limit."""

    columns: dict[str, Any]  # of the table of comparisons, one entry for each
    measured: FloatArray  # (n_comparisons,): the disparity of each
    p_values: Callable[[float], FloatArray]  # of a limit: one for each comparison
    method: str

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
    sample: Sample, name: str, spec: LabelSpec, comparison: str, method: str, reference: Reference
) -> Evidence:
    """Return the comparisons of a metric of labels."""
    table = _table(sample, spec, name)
    groups = table.groups
    # In an attribute with strata the cells of a stratum without weight are left out.
    of_cells = groups.present if spec.kind == "largest" else groups.compared
    for rate in spec.rates:
        table.checked_rate(rate, of_cells)  # raises where it is undefined
    if spec.kind == "largest":
        return _caps(table, *spec.rates)
    is_overall = not is_group(reference) and reference == "overall"
    if is_overall and comparison == "ratio":
        raise ValueError(
            "Ratios to the overall rate have no test here. Use reference='pairwise', or "
            "comparison='difference'."
        )
    sides = [
        _against_rest(table, rate) if is_overall else _between_groups(table, rate, reference)
        for rate in spec.rates
    ]
    names = [
        (rate, *both) for rate, (pairs, _) in zip(spec.rates, sides, strict=True) for both in pairs
    ]
    k1, n1, k0, n0, share = np.concatenate([numbers for _, numbers in sides], axis=1)
    if method == "auto":
        is_whole = sample.sample_weight is None and not is_lazy(sample.y_pred)
        few = k1.size > 0 and float(((n1 + 1) * (n0 + 1)).max()) <= _FEW_ROWS**2
        method = "exact" if is_whole and few else "melded"
    if method == "exact" and sample.sample_weight is not None:
        raise ValueError("method='exact' counts rows, not weights. Use method='melded'.")
    test = pair_test(method, comparison)
    r1, r0 = k1 / np.maximum(n1, TINY), k0 / np.maximum(n0, TINY)
    measured = share * np.abs(r1 - r0)
    if comparison == "ratio":
        measured = np.nan_to_num(1 - ratios(r1, r0, "pairwise"))
    columns = {
        "rate": [rate for rate, _, _ in names],
        "first": [first for _, first, _ in names],
        "second": [second for _, _, second in names],
        "n_first": n1,
        "n_second": n0,
        "rate_first": r1,
        "rate_second": r0,
    }

    def p_values(limit: float) -> FloatArray:
        if limit <= 0:  # every difference is as large as that
            return np.ones(k1.size)
        p = np.zeros(k1.size)
        for factor in np.unique(share[share > limit]):  # others cannot be so far apart
            at = share == factor
            p[at] = both_ways(test, k1[at], n1[at], k0[at], n0[at], limit / factor)
        return p

    return Evidence(columns, measured, p_values, method)


def _caps(table: GroupTable, rate: str) -> Evidence:
    """Return the evidence on the largest rate of a group."""
    cells = table.groups.present
    k, n = (numbers[cells] for numbers in table.effective_counts(rate))
    columns = {
        "rate": [rate] * cells.size,
        "first": [table.groups.cells.names[i] for i in cells.tolist()],
        "second": ["limit"] * cells.size,
        "n_first": n,
        "rate_first": k / n,
    }
    return Evidence(columns, k / n, lambda limit: largest_rate(k, n, limit), "exact")


def _between_groups(table: GroupTable, rate: str, reference: Reference) -> _Sides:
    """Compare pairs of groups."""
    first, second = table.groups.pairs_with(reference)
    hits, sizes = table.effective_counts(rate)
    numbers = [hits[first], sizes[first], hits[second], sizes[second], np.ones(first.size)]
    names = table.groups.cells.names
    pairs = [(names[i], names[j]) for i, j in zip(first.tolist(), second.tolist(), strict=True)]
    return pairs, np.stack(numbers)


def _against_rest(table: GroupTable, rate: str) -> _Sides:
    """Compare each group with the others of its stratum.

    Its distance to the overall rate is a share of that to the others: the share of the sample.
    """
    groups = table.groups
    hits, sizes = table.effective_counts(rate)
    rates, weights = np.nan_to_num(table.rate(rate)), table.summed(RATES[rate].denominator)
    rest = rest_of_block(rates, sizes, weights, groups.block_sums)
    cells = groups.compared[rest.size[groups.compared] > 0]
    numbers = np.stack([hits, sizes, rest.rate * rest.size, rest.size, rest.share])[:, cells]
    return [(groups.cells.names[cell], "rest") for cell in cells.tolist()], numbers


def _table(sample: Sample, spec: LabelSpec, name: str) -> GroupTable:
    """Count the rows that a metric reads."""
    if spec.uses_y_true and sample.y_true is None:
        raise ValueError(f"{name} needs y_true, got None.")
    if isinstance(sample.sensitive_features, GroupProbabilities):
        encode_groups(sample.sensitive_features)  # raises: such rows are not independent
    rows, groups = (sample.y_true, sample.y_pred), sample.groups(sample.sample_weight)
    if spec.rates == ("accuracy",):
        return GroupTable.of_correct(*rows, groups)
    return GroupTable.of_labels(*rows, groups, sample.pos_label, ignores_true=not spec.uses_y_true)


# Thresholds at which a distribution is tested by the slower test: the worst by the faster one.
_N_THRESHOLDS = 200
# Of the level, what each end of an interval gets that is not an end of all ranks.
_OF_END = 0.1
# Within intervals that differ by group: where shares may differ most, if rates are so many
# standard errors off.
_ERRORS, _N_OF_ERRORS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 6.0), 40
_N_NODES = 96  # of integrals

_SINGLE = ("group_auc_gap",)  # one area, compared with a half
_OF_CLASSES = ("inter_group_pairwise_gap", "intra_group_pairwise_gap")
_DECISIONS = ("partial_demographic_parity_gap",)  # at the threshold 0 alone
_DISTRIBUTIONS = ("statistical_parity_gap", "partial_statistical_parity_gap", *_DECISIONS)
SCORE_METRICS = (*_DISTRIBUTIONS, *_SINGLE, *_OF_CLASSES, "mean_score_difference")


class _Sums(NamedTuple):
    """Sums over the distances of scores from their mean: numbers, or arrays of several groups."""

    n: Any
    mean: Any
    unit: Any  # their range, of which squares and cubes are multiples
    smallest: Any  # the smallest and the largest distance
    largest: Any
    squares: Any
    cubes: Any


def evidence_of_scores(sample: Sample, name: str, interval: Any) -> Evidence:
    """Return the comparisons of a metric of scores."""
    arguments = (sample.y_true, sample.y_pred, sample.sensitive_features, sample.control_features)
    if is_lazy(*arguments):
        raise TypeError(
            f"The test of {name} reads single scores, and these are in Dask collections. compute() "
            "them, or test rates of labels, of which sums are enough."
        )
    if sample.sample_weight is not None:
        raise ValueError(f"{name} has no test with sample_weight here; rates of labels have one.")
    read = scored_rows if interval is None else ranked_rows
    rows = read(sample.y_pred, *sample.groups(None), like=sample.y_true, name="y_pred")
    pairs = list(zip(*(side.tolist() for side in rows.groups.pairs), strict=True))
    names = rows.groups.cells.names
    columns = {
        "rate": [name] * len(pairs),
        "first": [names[i] for i, _ in pairs],
        "second": [names[j] for _, j in pairs],
    }
    positive = None
    if name in _OF_CLASSES:
        positive = check_positive(sample.y_true, "y_true", sample.pos_label, rows.scores.size)
    members = _members(rows, positive, name)
    if name in _DISTRIBUTIONS:
        intervals = rows.groups.intervals((0.0, 1.0) if interval is None else interval)
        curves = [
            _Curves.of(members, pair, intervals, is_at_0=name in _DECISIONS) for pair in pairs
        ]
        measured = np.array([curve.largest for curve in curves])
        return Evidence(
            columns,
            measured,
            lambda limit: np.array([curve.p_value(limit) for curve in curves]),
            "melded",
        )
    if name in _SINGLE + _OF_CLASSES:
        areas = [_areas(name, members[i], members[j]) for i, j in pairs]
        return _of_areas(columns, np.array(areas).reshape(-1, 2, 2), is_single=name in _SINGLE)
    sums = {cell: _sums(*members[cell]) for cell in {cell for pair in pairs for cell in pair}}
    both = np.array([(sums[i], sums[j]) for i, j in pairs]).reshape(-1, 2, len(_Sums._fields))
    return _of_means(columns, _Sums(*both[:, 0].T), _Sums(*both[:, 1].T))


def _of_means(columns: dict[str, Any], first: _Sums, second: _Sums) -> Evidence:
    """Return the evidence on differences of means, from the sums of both sides of each."""
    # The variances of both means, and the degrees of freedom of their sum.
    parts = np.stack([s.unit**2 * s.squares / (s.n - 1) / s.n for s in (first, second)])
    variance = parts.sum(axis=0)
    error = np.sqrt(np.maximum(variance, TINY))
    is_constant = variance <= 0
    shares = parts / np.where(is_constant, 1.0, variance)
    inverse = shares[0] ** 2 / (first.n - 1) + shares[1] ** 2 / (second.n - 1)
    freedom = 1 / np.where(inverse > 0, inverse, 1.0)
    value = first.mean - second.mean
    drawn = np.stack([_drawn(value, first, second), _drawn(-value, second, first)], axis=1)

    def p_values(limit: float) -> FloatArray:
        z = (np.abs(value) - limit) / error
        welch = np.where(is_constant, special.ndtr(z), special.stdtr(freedom, z))
        return np.asarray(np.maximum(welch, _above(limit, *drawn).max(axis=0)))

    return Evidence(columns, np.abs(value), p_values, "melded")


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
        return both_ways(pair_test("melded", "difference"), k1, n1, k0, n0, limit)

    measured = np.abs(a1 - (0.5 if is_single else a0))
    return Evidence(columns, measured, p_values, "melded")


def _members(
    rows: ScoredRows, positive: IntArray | None, name: str
) -> list[tuple[FloatArray, ...]]:
    """Return the scores of each cell: all of them, or of its negatives and of its positives."""
    members = []
    for cell, own in enumerate(rows.groups.rows_of_cells()):
        parts: tuple[FloatArray, ...] = (rows.scores[own],)
        if positive is not None:
            parts = tuple(rows.scores[own[positive[own] == label]] for label in (0, 1))
        if any(part.size < 2 for part in parts) and cell in rows.groups.compared:
            raise ValueError(
                f"{name} needs two rows or more of each group"
                f"{' and class' if positive is not None else ''}; group "
                f"{rows.groups.cells.names[cell]!r} has fewer."
            )
        members.append(parts)
    return members


def _area(winners: FloatArray, losers: FloatArray) -> tuple[float, float]:
    """Return P(winner > loser), ties counted half, and the size of a rate that is as uncertain.

    Its variance is that of DeLong.
    """
    n, m = winners.size, losers.size
    ranks = stats.rankdata(np.concatenate([winners, losers]))
    over = (ranks[:n] - stats.rankdata(winners)) / m
    under = 1 - (ranks[n:] - stats.rankdata(losers)) / n
    value = float(over.mean())
    variance = float(over.var(ddof=1) / n + under.var(ddof=1) / m)
    # What Hanley and McNeil's variance says near 1, where few pairs or none are in wrong order.
    most = 4 * n * m / (n + m + 2)
    return value, min(value * (1 - value) / variance, most) if variance > 0 else most


def _areas(
    name: str, a: tuple[FloatArray, ...], b: tuple[FloatArray, ...]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the two areas that a metric compares."""
    if name in _SINGLE:
        return (_area(a[0], b[0]),) * 2
    losers = (a[0], b[0]) if name.startswith("intra") else (b[0], a[0])
    return _area(a[1], losers[0]), _area(b[1], losers[1])


def _sums(scores: FloatArray) -> _Sums:
    """Return the sums of scores, each score read once."""
    mean = scores.mean()
    centred = scores - mean
    smallest, largest = centred.min(), centred.max()
    unit = (largest - smallest) or 1.0
    centred /= unit
    squares = centred * centred
    return _Sums(scores.size, mean, unit, smallest, largest, squares.sum(), squares @ centred)


def _drawn(value: FloatArray, high: _Sums, low: _Sums) -> tuple[FloatArray, ...]:
    """Return the differences of means that are drawn too high and of those drawn too low.

    Their means, their standard errors and their skewness.

    A mean is drawn as the mean of its rows and of one more by random weights that sum to 1. The
    row more is the largest (or smallest) of both sides, each around its own mean: few rows of a
    skewed distribution do not show how far its tail reaches. With 0 and 1 it is the bound of
    Clopper and Pearson.
    """
    largest, smallest = (
        np.maximum(high.largest, low.largest),
        np.minimum(high.smallest, low.smallest),
    )
    unit = np.where(largest > smallest, largest - smallest, 1.0)
    mean = variance = third = np.zeros(value.size)
    for side, end, sign in ((high, largest, 1.0), (low, smallest, -1.0)):
        n, more, size = side.n, end / unit, side.unit / unit
        # Sums of n rows around 0, then those of n + 1 around the new mean.
        squares, cubes = side.squares * size**2, side.cubes * size**3
        cubes = cubes + more**3 * n * (n - 1) / (n + 1) ** 2 - 3 * more * squares / (n + 1)
        squares = squares + more**2 * n / (n + 1)
        mean = mean + sign * more / (n + 1)
        variance = variance + squares / ((n + 1) * (n + 2))
        third = third + 2 * sign * cubes / ((n + 1) * (n + 2) * (n + 3))
    skewness = np.where(variance > 0, third / np.where(variance > 0, variance, 1.0) ** 1.5, 0.0)
    return value + unit * mean, unit * np.sqrt(variance), skewness


def _above(limit: float, mean: FloatArray, error: FloatArray, skewness: FloatArray) -> FloatArray:
    """Return the chances that differences are above a limit: gamma distributions, moved."""
    z = (limit - mean) / np.where(error > 0, error, 1.0)
    shape = 4 / np.maximum(skewness**2, 1e-12)  # nearly normal ones have a very large shape
    towards = np.where(skewness < 0, -1.0, 1.0)
    x = np.maximum(shape + towards * z * np.sqrt(shape), 0.0)
    chance = np.where(towards > 0, special.gammaincc(shape, x), special.gammainc(shape, x))
    return np.where(error > 0, chance, 0.0)


class _Curves(NamedTuple):
    """Rows of two groups above each threshold, and the intervals of ranks that count."""

    above: tuple[FloatArray, FloatArray]  # each (n_thresholds,)
    sizes: tuple[int, int]
    intervals: Intervals
    cells: tuple[int, int]

    @classmethod
    def of(
        cls,
        members: list[tuple[FloatArray, ...]],
        cells: tuple[int, int],
        intervals: Intervals,
        *,
        is_at_0: bool,  # count at the threshold 0 alone
    ) -> _Curves:
        """Count the rows of two cells above thresholds, by default above every score."""
        sides = [np.sort(members[cell][0]) for cell in cells]
        thresholds = np.zeros(1) if is_at_0 else np.unique(np.concatenate(sides))
        first, second = (
            np.asarray(side.size - np.searchsorted(side, thresholds, side="right"), np.float64)
            for side in sides
        )
        return cls((first, second), (sides[0].size, sides[1].size), intervals, cells)

    @property
    def largest(self) -> float:
        """The largest difference that was measured."""
        first, other = (
            self.intervals.share(above / size, cell)
            for above, size, cell in zip(self.above, self.sizes, self.cells, strict=True)
        )
        return float(np.abs(first - other).max())

    def p_value(self, limit: float) -> float:
        """Return the largest p-value of a threshold, either group being the higher one."""
        if limit >= 1:
            return 0.0
        first, second = (self.intervals.bounds[cell] for cell in self.cells)
        of_side = _Curves._of_rates if np.array_equal(first, second) else _Curves._of_shares
        turned = _Curves(self.above[::-1], self.sizes[::-1], self.intervals, self.cells[::-1])
        return max(of_side(self, limit), of_side(turned, limit))

    def _of_rates(self, limit: float) -> float:
        """Return the largest p-value of a threshold, of the same interval for both groups."""
        (k1, k0), (n1, n0), cell = self.above, self.sizes, self.cells[0]
        bounds = self.intervals.bounds[cell]
        gap, ends = limit * float(self.intervals.lengths[cell]), []
        if bounds[0, 0] > 0:  # from rank 0 on, rates that are so far apart reach that far anyway
            ends.append((k1, n1, float(self.intervals.lowest_rank(limit, cell))))
        if bounds[-1, 1] < 1:
            ends.append((n0 - k0, n0, 1 - float(self.intervals.highest_rank(1 - limit, cell))))
        if not ends:
            kept = _likeliest(k1, n1, k0, n0, gap)
            return float(melded(k1[kept], n1, k0[kept], n0, gap, False).max())
        level = 1 - _OF_END * len(ends)
        rough = stats.norm.logcdf(_statistic(k1, n1, k0, n0, gap)) - np.log(level)
        for k, n, rank in ends:
            z = (k - n * rank) / np.sqrt(n * max(rank * (1 - rank), 1e-12))
            rough = np.minimum(rough, stats.norm.logcdf(z) - np.log(_OF_END))
        kept = np.argsort(-rough, kind="stable")[:_N_THRESHOLDS]
        p = melded(k1[kept], n1, k0[kept], n0, gap, False) / level
        for k, n, rank in ends:
            p = np.minimum(p, largest_rate(k[kept], n, rank) / _OF_END)
        return min(1.0, float(p.max()))

    def _of_shares(self, limit: float) -> float:
        """Return the largest p-value of a threshold, of intervals that differ.

        What is melded is at least the product of the p-values of both true rates, and that of two
        uniform numbers is at most p with probability p (1 - log p).
        """
        p = float(self._melded(limit, self._worst()).max())
        return p * (1 - np.log(p)) if p > 0 else 0.0

    def _worst(self) -> IntArray:
        """Return the thresholds where shares may differ most, if rates are some errors off."""
        kept = []
        for n_errors in _ERRORS:
            ends = []
            for above, n, cell, sign in zip(
                self.above, self.sizes, self.cells, (1.0, -1.0), strict=True
            ):
                rate = above / n
                error = np.sqrt((rate * (1 - rate) + 0.25 / n) / n)
                moved = np.clip(rate + sign * n_errors * error, 0.0, 1.0)
                ends.append(self.intervals.share(moved, cell))
            kept.append(np.argsort(ends[1] - ends[0], kind="stable")[:_N_OF_ERRORS])
        return np.unique(np.concatenate(kept))

    def _melded(self, limit: float, kept: IntArray) -> FloatArray:
        """Return P(share of U - share of L >= limit) of the shares of the intervals."""
        k, n = self.above[0][kept], self.sizes[0]
        a, b = k + 1, np.maximum(n - k, 1)
        nodes, factors = legendre(_N_NODES)
        low, high = special.betaincinv(a, b, 1e-12), special.betaincinv(a, b, 1 - 1e-12)
        p = np.where(k < n, 0.0, self._below(np.ones(1), limit, kept)[:, 0])
        for start, stop in pairwise(self._kinks(limit)):
            first, last = np.clip(start, low, high), np.clip(stop, low, high)
            x = first[:, None] + (last - first)[:, None] * nodes
            density = np.exp(
                special.xlogy((a - 1)[:, None], x)
                + special.xlog1py((b - 1)[:, None], -np.minimum(x, 1 - 1e-16))
                - special.betaln(a, b)[:, None]
            )
            below = self._below(x, limit, kept)
            p += np.where(k < n, (density * below) @ factors * (last - first), 0.0)
        return np.clip(p, 0.0, 1.0)

    def _below(self, rank: FloatArray, limit: float, kept: IntArray) -> FloatArray:
        """Return P(share of L <= share of a rank - limit)."""
        wanted = self.intervals.share(rank, self.cells[0]) - limit
        most = self.intervals.highest_rank(np.maximum(wanted, 0.0), self.cells[1])
        k0, n0 = self.above[1][kept, None], self.sizes[1]
        below = np.where(k0 > 0, special.betainc(np.maximum(k0, 1e-9), n0 - k0 + 1, most), 1.0)
        return np.where(wanted >= 0, below, 0.0)

    def _kinks(self, limit: float) -> FloatArray:
        """Return the ranks from the first that counts to 1 between which all curves are smooth.

        A sum over nodes on both sides of a jump has an error as large as the jump times a node's
        weight.
        """
        intervals, (cell, other) = self.intervals, self.cells
        shares = limit + intervals.share(intervals.bounds[other].ravel(), other)
        shares = shares[shares <= 1]
        at = [intervals.lowest_rank(shares, cell), intervals.highest_rank(shares, cell)]
        ranks = np.unique(np.concatenate([*at, intervals.bounds[cell].ravel(), np.ones(1)]))
        return ranks[ranks >= intervals.lowest_rank(limit, cell)]


def _likeliest(k1: FloatArray, n1: int, k0: FloatArray, n0: int, limit: float) -> IntArray:
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
        inside = _statistic(k1[starts], n1, k0[starts], n0, limit)
        most = _statistic(k1[starts], n1, k0[ends], n0, limit)
        # The runs of the best starts have thresholds enough, so their worst is a lower bound.
        best = np.argsort(-inside, kind="stable")[: _N_THRESHOLDS // length + 2]
        some = near[np.isin(near // length, best)]
        reached = np.sort(_statistic(k1[some], n1, k0[some], n0, limit))[-_N_THRESHOLDS]
        near = near[np.repeat(most >= reached - 1e-9, ends - starts + 1)]
    z = _statistic(k1[near], n1, k0[near], n0, limit)
    return near[np.argsort(-z, kind="stable")[:_N_THRESHOLDS]]


def _statistic(k1: FloatArray, n1: int, k0: FloatArray, n0: int, limit: float) -> FloatArray:
    limits, rows = np.full(k1.size, limit), np.ones(k1.size)
    return score_statistic(k1, n1 * rows, k0, n0 * rows, limits, False)
