"""The comparisons behind a disparity, and the p-value of each for a limit on the population.

:mod:`skfair.metrics.disparity_tests` reads the rows and calls ``evidence_of_labels`` for metrics of
predicted labels, or ``evidence_of_scores`` for metrics of scores (regressors that certify a limit
call it too). Both return an ``Evidence``: one entry for each comparison, with the disparity that
was measured, and a function that turns a limit into p-values. The null hypothesis of a comparison
is that its disparity in the population is the limit or more.

A metric is the largest of its comparisons, so its null hypothesis is that at least one of them
reaches the limit. It is rejected only if every comparison rejects its own (an intersection-union
test). So the largest p-value counts, and no level is divided among pairs, rates or attributes.

Two rates are compared by the tests of :mod:`skfair.groups.two_rates`. Scores are compared so:

- Distributions (``_Curves``) differ by the limit if the shares above some threshold do. Each
  threshold is tested as a pair of rates, and the largest p-value counts.
- Within a percentile interval, the share of a group is the part of the interval below its rate. Two
  shares differ by the limit only if three things hold: the rates differ by the limit times the
  length of the interval, the higher rate covers at least the limit of the interval, and the lower
  rate covers at most 1 minus the limit of it. Rejecting one of the three is enough, so the level is
  divided among the three tests.
- An area under a curve (``_of_areas``) is tested like a rate of as many rows as give the variance
  of DeLong, DeLong and Clarke-Pearson (1988). A normal test with this variance would reject too
  often near 1 and with few rows, where the variance is often far too small.
- Means (``_of_means``) have the test of Welch (1947), whose degrees of freedom allow for groups of
  few rows, and the test of Gaffke (2005), which allows for skewed scores. The larger p-value
  counts.

If rows belong together (``units=``), rates have effective numbers of rows by their cluster-robust
variance, and means and areas are computed from the amounts that each unit adds to them. At the
thresholds of a distribution each unit counts as one row, which is the careful bound.

Numbers of a comparison: ``k1`` hits among the ``n1`` rows of the first side, and ``k0`` hits among
the ``n0`` rows of the second. They are effective numbers, so they may be fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from skfair._typing import ClassLabel, FloatArray, IntArray
from skfair.groups.compared_groups import Reference
from skfair.groups.compared_rates import hits_and_sizes
from skfair.groups.estimates import Estimate
from skfair.groups.intervals import Intervals
from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.table import GroupTable
from skfair.groups.two_rates import (
    MANY_NODES,
    beta_density,
    both_ways,
    largest_rate,
    legendre,
    melded,
    score_statistic,
    smallest_limit,
)
from skfair.metrics.labels import LabelSpec
from skfair.utils.rounding import TINY

# The melded test is slow, so a distribution is tested by it at this many thresholds only: those
# with the largest score statistics.
_N_THRESHOLDS = 200
# Part of the level for the test of each end of a percentile interval. An end at rank 0 or 1 needs
# no test. The test of the rates gets the rest.
_OF_END = 0.1
# The number of rows of a mean that is known for certain.
_CERTAIN = 1e12

# Metrics of scores by what they compare: one area with a half, two areas of true classes, shares
# above the threshold 0, or shares above every threshold.
_SINGLE = {"group_auc_gap"}
_OF_CLASSES = {"inter_group_pairwise_gap", "intra_group_pairwise_gap"}
_DECISIONS = {"partial_demographic_parity_gap"}
_DISTRIBUTIONS = {"statistical_parity_gap", "partial_statistical_parity_gap", *_DECISIONS}
# The metrics of scores that have a test. (Those that can be resampled are in ``resampled_scores``.)
SCORE_METRICS = (*sorted(_DISTRIBUTIONS | _SINGLE | _OF_CLASSES), "mean_score_difference")


class Evidence(NamedTuple):
    """The comparisons of a metric: what was measured, and the p-values of any limit."""

    columns: dict[str, Any]  # columns of ``DisparityTest.pairs``, with one entry per comparison
    measured: FloatArray  # (n_comparisons,): the disparity of each
    p_values: Callable[[float], FloatArray]  # turns a limit into one p-value per comparison
    method: str = "melded"  # the name of the test, for the user
    # Turns a limit into the p-values of the hypotheses that the disparities reach it in the other
    # direction than the measured one; None if they are not computed
    p_values_of_other_way: Callable[[float], FloatArray] | None = None
    undefined: str = ""  # why the disparity is undefined, so that no limit is shown to hold

    def without_value(self, reason: str) -> Evidence:
        """Return the comparisons without disparities; the p-value of any limit is 1."""
        nothing = np.full(self.measured.shape, np.nan)
        return self._replace(
            measured=nothing, p_values=lambda _: np.ones(nothing.shape), undefined=reason
        )

    def p_value(self, limit: float) -> float:
        """Return the p-value of "the disparity is the limit or more": the largest one."""
        return float(self.p_values(limit).max(initial=0.0))

    def total_p_value(self, limit: float) -> float:
        """Return the sum of the p-values of all comparisons in both directions.

        It is the p-value if gaps were closed on the rows that test them: the true gaps are then
        errors of any comparison, in any direction.
        """
        assert self.p_values_of_other_way is not None
        both = self.p_values(limit).sum() + self.p_values_of_other_way(limit).sum()
        return float(min(both, 1.0))

    @property
    def largest(self) -> float:
        """The largest disparity that was measured."""
        return float(self.measured.max(initial=0.0))

    def smallest_shown(
        self, confidence: float, spread: float | None = None, *, adds: bool = False
    ) -> float:
        """Return the smallest limit with a p-value of at most 1 - ``confidence``.

        With ``adds`` it is the total p-value. Without a ``spread`` the disparity is a share, so the
        limit 1 always holds. Means have the unit of the scores, and ``spread`` is the range of
        these: the search doubles it until a limit is shown.
        """
        most, test = 1.0, self.total_p_value if adds else self.p_value
        if spread is not None:
            most = spread or 1e-12  # 0 if all scores are equal, which cannot be doubled
            while test(most) > 1 - confidence:
                most *= 2
        return smallest_limit(test, 1 - confidence, most)


def evidence_of_labels(
    spec: LabelSpec, table: GroupTable, method: str, reference: Reference
) -> Evidence:
    """Return the comparisons of a metric of labels.

    ``table`` must be read by ``outcome_table(people, spec.counted)``. ``reference`` is "pairwise",
    "overall" or a group, and is ignored by largest rates.
    """
    is_ratio = spec.kind == "ratio"
    of_cells = table.groups.present if spec.kind == "largest" else table.groups.compared
    for rate in spec.rates:
        table.checked_rate(rate, of_cells)  # raises if it is undefined in one of the cells
    reason = table.undefined_by_decision(spec.rates)
    if spec.kind == "largest":
        caps = _caps(table, *spec.rates)
        return caps.without_value(reason) if reason else caps
    pairs = Estimate.of(table, "ratio" if is_ratio else "difference", spec.rates, reference).pairs
    if method == "exact" and not table.counts_each_once:
        raise ValueError(
            "method='exact' counts independent rows, not weights or rows that belong together "
            "(units=). Use method='melded'."
        )
    p_values = partial(pairs.p_values, method, is_ratio)
    evidence = Evidence(pairs.columns(), pairs.disparities(is_ratio), p_values, method)
    return evidence.without_value(reason) if reason else evidence


def _caps(table: GroupTable, rate: str) -> Evidence:
    """Return the evidence on a largest rate: each group by itself is compared with the limit."""
    cells = table.groups.present
    k, n = (numbers[cells] for numbers in hits_and_sizes(table.means(rate)))
    names = np.array(table.groups.cells.names, dtype=object)[cells]
    columns = {"rate": rate, "first": names, "second": "limit", "n_first": n, "rate_first": k / n}
    return Evidence(columns, k / n, lambda limit: largest_rate(k, n, limit), "exact")


def evidence_of_scores(
    name: str, rows: MeasuredRows, interval: Any = None, pos_label: ClassLabel = None
) -> Evidence:
    """Return the comparisons of a metric of ``SCORE_METRICS``, for rows without weights.

    ``interval`` is used by metrics of distributions only (None: all ranks), and ``pos_label`` by
    metrics of true classes only.
    """
    first, second = rows.groups.pairs
    names = np.array(rows.groups.cells.names, dtype=object)
    columns = {"rate": name, "first": names[first], "second": names[second]}
    pairs = list(zip(first.tolist(), second.tolist(), strict=True))
    positive = rows.positive(pos_label) if name in _OF_CLASSES else None
    members = _members(rows, positive, name)
    if name == "mean_score_difference":
        return _of_means(columns, [_means_of(members[i][0], members[j][0]) for i, j in pairs])
    if name not in _DISTRIBUTIONS:
        areas = [_areas(name, members[i], members[j]) for i, j in pairs]
        return _of_areas(columns, np.array(areas).reshape(-1, 2, 2), is_single=name in _SINGLE)
    intervals = rows.groups.intervals((0.0, 1.0) if interval is None else interval)
    at = np.zeros(1) if name in _DECISIONS else None
    # Either group may be the higher one, so each pair is tested in both orders.
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
    """The scores of the rows of a cell, or of its rows of one true class."""

    scores: FloatArray
    units: IntArray | None = None  # the unit of each row, if rows belong together

    @property
    def size(self) -> float:
        """The number of independent rows: with units, Kish's number of their sizes."""
        if self.units is None:
            return self.scores.size
        of_units = np.bincount(self.units)
        return float(self.scores.size**2 / (of_units**2).sum())

    def by_unit(self, values: FloatArray) -> FloatArray:
        """Return one value per unit, with the mean of the values of all rows.

        Units are independent. The value of a unit is the mean plus what its rows add to it, so the
        variance of the mean of these values is the linearised variance of the mean over rows.
        """
        if self.units is None:
            return values
        mean, (levels, owners) = float(values.mean()), np.unique(self.units, return_inverse=True)
        added = np.bincount(owners, values - mean, levels.size)
        return np.asarray(mean + added * (levels.size / values.size))


def _members(
    rows: MeasuredRows, positive: IntArray | None, name: str
) -> list[tuple[_Members, ...]]:
    """Return the members of each cell: (all of them,), or (negatives, positives) by true class.

    ``positive`` is the class of each row, or None if the metric has no classes. ``name`` is for the
    error that a compared cell has fewer than two rows, or units.
    """
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
    """Return the evidence on areas, (n_pairs, 2, 2): both sides of a pair, each area and its size.

    If ``is_single``, the first area of each pair is compared with a half.
    """
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
    """Return the two areas that a metric compares for the groups a and b, each with its size.

    Within a group, positives are to outrank its own negatives; across groups, those of the other.
    """
    if name in _SINGLE:
        return (_area(a[0], b[0]),) * 2  # the second one is not used
    losers = (a[0], b[0]) if name.startswith("intra") else (b[0], a[0])
    return _area(a[1], losers[0]), _area(b[1], losers[1])


def _area(winners: _Members, losers: _Members) -> tuple[float, float]:
    """Return the area A = P(winner > loser) with ties counted half, and its size.

    The size is the number of rows n of a rate A with the same variance, A (1 - A) / n. The variance
    of A is DeLong's, from the share of losers that each winner is over, and the share of winners
    that each loser is under. With units it is Obuchowski's (1997): a unit may have winners and
    losers, and what both add to A is summed first.
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
    # Near 1 few pairs or none are in the wrong order, and the variance may be 0. The size is then
    # the one that the variance of Hanley and McNeil gives there.
    most = 4 * winners.size * losers.size / (winners.size + losers.size + 2)
    return value, min(value * (1 - value) / variance, most) if variance > 0 else most


def _means_of(first: _Members, second: _Members) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the sums of both sides of a pair of means, see ``_sums``.

    If units have rows on both sides, the first side has one value for each unit: the difference of
    the means, plus what its rows add to this difference. It is compared with 0, which the second
    side is for certain. With one row on each side these are the differences of pairs. A pair may
    be as far apart in one direction as any was in the other, or, if all differences are the same,
    as any two scores are.
    """
    if first.units is None or second.units is None:
        return _sums(first.scores), _sums(second.scores)
    owners, places = np.unique(np.concatenate([first.units, second.units]), return_inverse=True)
    if owners.size == np.unique(first.units).size + np.unique(second.units).size:
        return _sums(first.by_unit(first.scores)), _sums(second.by_unit(second.scores))
    scores, other = first.scores, second.scores
    added = (scores - scores.mean()) / scores.size, (other.mean() - other) / other.size
    of_units = np.asarray(np.bincount(places, np.concatenate(added)), np.float64)
    difference = float(scores.mean() - other.mean())
    n, mean, low, high, squares, cubes = _sums(difference + owners.size * of_units)
    end = max(high, -low) if high > low else float(np.ptp(np.concatenate([scores, other])))
    return (n, mean, -end, end, squares, cubes), (_CERTAIN, 0.0, 0.0, 0.0, 0.0, 0.0)


def _of_means(
    columns: dict[str, Any], pairs: list[tuple[tuple[float, ...], tuple[float, ...]]]
) -> Evidence:
    """Return the evidence on the difference of the means of each pair, given their sums."""
    sums = np.array(pairs).reshape(-1, 2, 6)
    first, second = sums[:, 0].T, sums[:, 1].T  # each (6, n_pairs), in the order of _sums
    value = first[1] - second[1]
    # The variance of each mean, (n_pairs, 2). Their sum has Welch's degrees of freedom.
    parts = sums[:, :, 4] / (sums[:, :, 0] - 1) / sums[:, :, 0]
    variance = np.maximum(parts.sum(axis=1), TINY)
    squares = ((parts / variance[:, None]) ** 2 / (sums[:, :, 0] - 1)).sum(axis=1)
    freedom = np.divide(1, squares, out=np.full(squares.size, np.inf), where=squares > 0)

    def larger_of_tests(gap: FloatArray, limit: float, is_measured: bool) -> FloatArray:
        z = (gap - limit) / np.sqrt(variance)
        welch = np.where(np.isfinite(freedom), special.stdtr(freedom, z), special.ndtr(z))
        # The p-value of the measured direction is the larger one.
        gaffke = [_gaffke(first, second, limit), _gaffke(second, first, limit)]
        of_way = np.maximum(*gaffke) if is_measured else np.minimum(*gaffke)
        return np.asarray(np.maximum(welch, of_way))

    size = np.abs(value)
    return Evidence(
        columns,
        size,
        lambda limit: larger_of_tests(size, limit, True),
        p_values_of_other_way=lambda limit: larger_of_tests(-size, limit, False),
    )


def _sums(scores: FloatArray) -> tuple[float, ...]:
    """Return six numbers: how many scores there are, their mean, and four about x - mean.

    These are the smallest and the largest difference, and the sums of their squares and cubes.
    """
    mean = float(scores.mean())
    centred = scores - mean
    squares = centred * centred
    ends = float(centred.min()), float(centred.max())
    return scores.size, mean, *ends, float(squares.sum()), float(squares @ centred)


def _gaffke(high: FloatArray, low: FloatArray, limit: float) -> FloatArray:
    """Return Gaffke's p-values of "the mean of ``high`` is the limit or more above ``low``".

    Both are (6, n_pairs), see ``_sums``. The p-value is the probability that a random mean of
    ``high`` exceeds a random mean of ``low`` by the limit. A random mean weighs the n rows and one
    more row by weights that are uniform among those that sum to 1. The added row makes the test
    careful: in ``high`` it is the largest value of both sides, in ``low`` the smallest one, as
    differences from the own mean, because few rows of a skewed distribution do not show how far its
    tail reaches. For values of 0 and 1 this is the bound of Clopper and Pearson.

    The difference of the two random means has known moments. Its probability is that of a gamma
    distribution with the same mean, variance and skewness.
    """
    largest, smallest = np.maximum(high[3], low[3]), np.minimum(high[2], low[2])
    # Values are divided by their range, since cubes of very large or small ones are no floats.
    unit = np.where(largest > smallest, largest - smallest, 1.0)
    mean, variance, third = (high[1] - low[1] - limit) / unit, 0.0, 0.0
    for (n, _, _, _, squares, cubes), end, sign in ((high, largest, 1), (low, smallest, -1)):
        more, squares, cubes = end / unit, squares / unit**2, cubes / unit**3
        # Sums over n rows around their mean become sums over n + 1 rows around the new mean.
        cubes += more**3 * n * (n - 1) / (n + 1) ** 2 - 3 * more * squares / (n + 1)
        squares += more**2 * n / (n + 1)
        mean = mean + sign * more / (n + 1)
        variance = variance + squares / ((n + 1) * (n + 2))
        third = third + 2 * sign * cubes / ((n + 1) * (n + 2) * (n + 3))
    error = np.where(variance > 0, np.sqrt(variance), 1.0)
    skewness = third / error**3
    # The skewness of a gamma distribution is 2 / sqrt(shape). A normal one has an infinite shape.
    shape = 4 / np.maximum(skewness**2, 1e-12)
    x = np.maximum(shape - np.where(skewness < 0, -1, 1) * mean / error * np.sqrt(shape), 0.0)
    chance = np.where(skewness < 0, special.gammainc(shape, x), special.gammaincc(shape, x))
    return np.where(variance > 0, chance, 0.0)


class _Curves:
    """Test of "the share of the first group exceeds that of the second by the limit or more".

    The shares are those above a threshold, within the interval of each group. ``k1`` and ``k0`` are
    the rows of both groups above each threshold, (n_thresholds,), and ``n1`` and ``n0`` all of
    them. ``own`` and ``other`` are the numbers of the two cells, which say what interval they have.
    """

    def __init__(
        self,
        first: _Members,
        second: _Members,
        intervals: Intervals,
        cells: tuple[int, int],
        thresholds: FloatArray | None,  # if None, every score of the two groups
    ) -> None:
        if thresholds is None:
            thresholds = np.unique(np.concatenate([first.scores, second.scores]))
        # Units count as if all of their rows were above a threshold, or none.
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
        # If the intervals differ, the melded p-value is not valid by itself. It is at least the
        # product of the p-values of both true rates, and the product of two uniform numbers is at
        # most p with probability p (1 - log p), which is therefore a p-value.
        p = float(self._melded(limit, self._worst()).max())
        return p * (1 - np.log(p)) if p > 0 else 0.0

    def _of_rates(self, limit: float) -> float:
        """Return the largest p-value of a threshold, if both groups have the same interval.

        It is the smallest of up to three p-values, each divided by its part of the level: the rates
        differ by ``gap``, the first rate covers the limit of the interval, and the second rate
        covers at most 1 - limit. The last two are entries of ``ends``: hits, rows, and a rank that
        the share of hits must reach. The third counts the rows that are not above the threshold.
        """
        k1, n1, k0, n0 = self.k1, self.n1, self.k0, self.n0
        bounds = self.intervals.bounds[self.own]
        gap, ends = limit * float(self.intervals.lengths[self.own]), []
        if bounds[0, 0] > 0:  # an interval from rank 0 on is covered so far if the rates differ
            ends.append((k1, n1, float(self.intervals.lowest_rank(limit, self.own))))
        if bounds[-1, 1] < 1:
            ends.append((n0 - k0, n0, 1 - float(self.intervals.highest_rank(1 - limit, self.own))))
        if not ends:
            kept = _likeliest(k1, n1, k0, n0, gap)
            return float(melded(k1[kept], n1, k0[kept], n0, gap, False).max())
        level = 1 - _OF_END * len(ends)
        # Normal approximations of the log p-values choose the thresholds.
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
        """Return the thresholds whose melded p-value may be the largest.

        They are those where the shares differ most after the first rate was moved up and the second
        one down by some standard errors, 40 for each number of these. In 144 comparisons the
        p-value was that of all thresholds within 1e-5.
        """
        sides = (self.k1, self.n1, self.own, 1.0), (self.k0, self.n0, self.other, -1.0)
        kept = []
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
        """Return the p-values of the melded test (``two_rates.melded``) at some thresholds.

        A group's share() is the part of its interval that lies below a rate. The test melds the
        upper confidence distribution of the first rate, U ~ Beta(k1 + 1, n1 - k1), with the lower
        one of the second rate, L ~ Beta(k0, n0 - k0 + 1): the p-value is P(share(U) - share(L) >=
        limit). It is the integral of the density of U times P(share(L) <= share(U) - limit), added
        up over the pieces between the ranks of ``_kinks``, because the integrand is smooth only
        within these. If all rows are above the threshold, U is 1 and no integral is needed.
        """
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
        """Return P(share(L) <= share(rank) - limit) for ranks of the first group."""
        wanted = self.intervals.share(rank, self.own) - limit
        most = self.intervals.highest_rank(np.maximum(wanted, 0.0), self.other)
        k0, n0 = self.k0[kept, None], self.n0
        below = np.where(k0 > 0, special.betainc(np.maximum(k0, 1e-9), n0 - k0 + 1, most), 1.0)
        return np.where(wanted >= 0, below, 0.0)

    def _kinks(self, limit: float) -> FloatArray:
        """Return the ranks at which the integrand of ``_melded`` may bend or jump.

        They go from the first rank that covers the limit, below which it is 0, to 1. It is smooth
        between them, which the integral by nodes needs: across a jump its error would be the jump
        times the weight of a node.
        """
        intervals, cell = self.intervals, self.own
        shares = limit + intervals.share(intervals.bounds[self.other].ravel(), self.other)
        shares = shares[shares <= 1]
        at = intervals.lowest_rank(shares, cell), intervals.highest_rank(shares, cell)
        ranks = np.unique(np.concatenate([*at, intervals.bounds[cell].ravel(), np.ones(1)]))
        return ranks[ranks >= intervals.lowest_rank(limit, cell)]


def _above_each(members: _Members, thresholds: FloatArray) -> FloatArray:
    """Return how many members, or independent ones of them, are above each threshold."""
    scores = np.sort(members.scores)
    above = scores.size - np.searchsorted(scores, thresholds, side="right").astype(np.float64)
    return above if members.units is None else above * (members.size / scores.size)


def _likeliest(k1: FloatArray, n1: float, k0: FloatArray, n0: float, limit: float) -> IntArray:
    """Return the ``_N_THRESHOLDS`` thresholds with the largest score statistics, largest first.

    The statistic takes a cubic at each threshold, so runs of thresholds that cannot be among them
    are left out first. It rises with ``k1`` and falls with ``k0``, and both fall from one threshold
    to the next. So ``k1`` at the start of a run and ``k0`` at its end bound all statistics of it.
    """
    near = np.arange(k1.size)
    if k1.size > 4 * _N_THRESHOLDS:
        length = int(np.sqrt(k1.size))
        starts = near[::length]
        ends = np.minimum(starts + length, k1.size) - 1
        inside = score_statistic(k1[starts], n1, k0[starts], n0, limit, False)
        most = score_statistic(k1[starts], n1, k0[ends], n0, limit, False)
        # The runs with the best starts have more than _N_THRESHOLDS thresholds. The statistic that
        # _N_THRESHOLDS of these reach is a lower bound for the thresholds that are wanted.
        best = np.argsort(-inside, kind="stable")[: _N_THRESHOLDS // length + 2]
        some = near[np.isin(near // length, best)]
        reached = np.sort(score_statistic(k1[some], n1, k0[some], n0, limit, False))[-_N_THRESHOLDS]
        near = near[np.repeat(most >= reached - 1e-9, ends - starts + 1)]
    z = score_statistic(k1[near], n1, k0[near], n0, limit, False)
    return near[np.argsort(-z, kind="stable")[:_N_THRESHOLDS]]
