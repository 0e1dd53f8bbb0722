"""Differences and ratios between groups, with intervals and their size by chance alone.

``find_gaps`` in :mod:`skfair.report.tables.views` calls :func:`compare_gaps` once for each view,
model and kind of comparison (over all rows, or within strata). Each call measures and simulates
some gaps (:class:`Compared`). When all gaps and subgroups of the audit are simulated, it calls
:meth:`Compared.judge` for each, because p-values are corrected for the whole audit.

The worst of many differences is never 0, even when all groups are treated in the same way. So each
gap comes with two things:

- The *interval* covers the worst difference in the population. For shares it is the interval of an
  :class:`~skfair.groups.estimates.Estimate`, which reports and tests have as well. Means and totals
  have intervals for every pair of groups, all of them wide enough to hold together, and the worst
  difference lies between the largest of their lower ends and the largest of their upper ends.
- The *p-value* is how often chance alone would show something as extreme anywhere in the audit, in
  a gap or in a subgroup, if all groups had the same means. If 100 audits have no disparity, five
  find one at the level of 5%.

To compare unlike things, there are two scales. Within a gap, pairs are compared by their
*deviation*: the difference divided by its standard deviation in the simulations, so that a group of
three people does not hide what the large groups show. Between gaps, the most extreme deviation is
turned into a *rarity*, which is small if it is rare, so that a crossing with a thousand pairs does
not hide what one attribute shows (see :class:`Simulated`). An interval is about a single gap and
the p-value about the whole audit, so an interval may exclude equal means although the p-value is
above the level.

Arrays of means have the shape (n_measures, n_draws, n_cells). In *draws around* the observed means,
groups differ as they do in the data. In *parity draws*, all groups have the same mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, special, stats

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.compared_groups import ComparedGroups
from skfair.groups.estimates import Estimate, intervals
from skfair.groups.levels import number_tuples
from skfair.groups.rates import CellMeans
from skfair.report.tables.options import Options
from skfair.utils.rounding import ROUNDING

# Up to this number of cells, means are drawn with their correlations. An audit of 4,000 cells would
# take 45 s longer for them. More cells are drawn as if each unit were in one of them only.
MOST_JOINT = 400
# Each is 1 minus the other, so one simulation serves both, and they have one verdict.
_HITS, _MISSES = "true_positive_rate", "false_negative_rate"


class Gap(NamedTuple):
    """A comparison of groups by the means of some measures."""

    name: str
    kind: str  # "difference", "ratio", or "total": the differences of all measures added up
    measures: tuple[str, ...]

    @property
    def is_ratio(self) -> bool:
        """Whether parity is 1 (not 0), and smaller is worse."""
        return self.kind == "ratio"

    @property
    def tested(self) -> Gap:
        """The gap that is simulated: for a ratio, the difference of the same means."""
        return self._replace(kind="difference") if self.is_ratio else self

    def of_pairs(self, means: FloatArray, pairs: IntArray) -> FloatArray:
        """Compare the pairs of cells by means of shape (n_measures, ..., n_cells).

        The last axis of the result has one comparison for each pair, and first all pairs of the
        first measure, then all pairs of the second one. A "total" has one comparison for each pair.
        """
        first, second = (means[..., side] for side in pairs)
        if not self.is_ratio:
            apart = np.abs(first - second)
            return np.asarray(
                apart.sum(axis=0) if self.kind == "total" else np.concatenate(apart, -1)
            )
        with np.errstate(invalid="ignore", divide="ignore"):
            quotients = np.minimum(first, second) / np.maximum(first, second)  # NaN for 0 by 0
        return np.concatenate(quotients, -1)

    def worst(self, means: FloatArray, pairs: IntArray) -> FloatArray:
        """Return the worst pair of means (n_measures, n_draws, n_cells) of each draw.

        Pairs with an undefined mean are left out.
        """
        values = self.of_pairs(means, pairs)
        if not values.shape[1]:
            return np.full(values.shape[0], 1.0 if self.is_ratio else 0.0)
        return np.asarray((np.fmin if self.is_ratio else np.fmax).reduce(values, axis=1))


class Simulated(NamedTuple):
    """Differences by one metric, and how large they are if all groups have the same means.

    The largest of many deviations has no simple distribution, because pairs share groups. It is
    treated as the largest of K independent normal deviations, where K = ``n_independent`` is chosen
    from the simulations. It stays below d with probability F(d)^K, where F(d) is the probability
    that the absolute value of one normal variable is below d. The rarity is minus its logarithm,
    -K log F(d), which is about the p-value if it is small. Rarities of gaps with few and with many
    pairs can be compared. Subgroups have this class too (:func:`Simulated.scaled`).
    """

    deviations: FloatArray  # (n_comparisons,): differences in standard deviations, NaN if undefined
    spread: FloatArray | float  # (n_comparisons,): standard deviations of parity draws
    largest: FloatArray  # (n_draws,): the most extreme deviation of each simulation
    n_independent: float  # K: as many independent comparisons would be as extreme
    most: float  # the largest difference that is possible, such as 1 for shares

    @classmethod
    def of(cls, values: FloatArray, simulated: FloatArray, most: float) -> Simulated:
        """Compare differences (n_comparisons,) with parity draws (n_draws, n_comparisons).

        The standard deviations that scale both are computed from the draws and the data together.
        From the draws alone, the data would look too extreme: with 59 simulations, 12% of samples
        of equal groups were beyond the limit of 5%.
        """
        every = np.vstack([simulated, np.nan_to_num(values)])
        spread = np.sqrt((every**2).mean(axis=0))
        unit = np.where(spread > 0, spread, 1.0)
        largest = (every / unit).max(axis=1, initial=0.0)
        by_chance = np.sqrt((simulated**2).mean(axis=0))
        return cls.scaled(values / unit, largest[:-1], by_chance, most)

    @classmethod
    def scaled(
        cls,
        deviations: FloatArray,
        largest: FloatArray,
        spread: FloatArray | float = 1.0,
        most: float = np.inf,
    ) -> Simulated:
        """Compare deviations with the most extreme one of each simulation; find K."""
        every = np.append(largest, np.nan_to_num(deviations).max(initial=0.0))
        # At each of these quantiles d, F(d)^K = share gives a K. The largest one is taken, so that
        # a gap whose simulations have a long tail does not count as rarer than others.
        shares = np.array([0.9, 0.95, 0.99])
        numbers = -np.log(shares) / _rarity(np.quantile(every, shares))
        return cls(deviations, spread, largest, float(numbers.max(initial=1.0)), most)

    @property
    def rarities(self) -> FloatArray:
        """The rarity of the most extreme deviation of each simulation, (n_draws,)."""
        return self.n_independent * _rarity(self.largest)

    def by_chance(self, rarest: FloatArray, level: float) -> tuple[FloatArray, FloatArray, float]:
        """Compare each difference with the rarest comparison of each simulation of the audit.

        ``rarest`` has the smallest rarity over all gaps and subgroups, (n_draws,), in increasing
        order. Returns p-values that are corrected for all comparisons of the audit, the difference
        above which each is significant, and the level of a single gap at which all gaps together
        keep ``level``.
        """
        # Shares of few rows are often exactly as far apart as in a simulation. Such a simulation
        # counts as just as extreme, in spite of rounding.
        rarities = self.n_independent * _rarity(self.deviations - ROUNDING)
        n_draws = rarest.size
        n_beaten = np.searchsorted(rarest, rarities, side="right")
        p_values = np.where(np.isnan(self.deviations), np.nan, (1 + n_beaten) / (1 + n_draws))
        n_allowed = int(level * (n_draws + 1) + ROUNDING)  # simulations that may be as extreme
        rarity = rarest[max(n_allowed, 1) - 1]
        deviation = -special.ndtri(-np.expm1(-rarity / self.n_independent) / 2)
        noise = np.minimum(deviation * self.spread, self.most)
        return p_values, noise, -float(np.expm1(-rarity))


def _rarity(deviations: FloatArray) -> FloatArray:
    """Return -log F(d) with F(d) = P(|normal variable| < d); 0 is the rarest."""
    # The normal distribution is 0 in double precision above 37.
    outside = 2 * special.ndtr(-np.clip(deviations, 0.0, 37.0))
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log1p(-outside))


@dataclass(frozen=True, eq=False)
class Averaged:
    """The difference of each pair of groups by one measure, averaged over strata that have both.

    A stratum in which the two groups have weights a and b counts as a b / (a + b), so a stratum
    with a few rows of one group counts little (these are the weights of Mantel and Haenszel).
    """

    groups: IntArray  # (2, n_pairs)
    of_pair: IntArray  # (n_comparisons,): the pair of groups of each comparison within a stratum
    within: FloatArray  # (n_comparisons,): second group minus first, in one stratum
    values: FloatArray  # (n_pairs,): second group minus first, averaged over strata
    simulated: Simulated

    @classmethod
    def of(
        cls, measure: CellMeans, at_parity: FloatArray, groups: ComparedGroups, most: float
    ) -> Averaged:
        """Average over strata. A cell is a group in a stratum; ``at_parity`` has a row per draw."""
        first, second = groups.pairs
        size = groups.groups.n_groups
        of_groups = [groups.group_of[first], groups.group_of[second]]
        of_pair, pairs = number_tuples(of_groups, np.array([size, size]))
        within = measure.means[second] - measure.means[first]
        a, b = measure.weight[first], measure.weight[second]
        weight = np.where(np.isnan(within), 0.0, a * b / np.where(a + b > 0, a + b, 1.0))
        total = np.bincount(of_pair, weight, len(pairs))
        shares = weight / np.where(total > 0, total, 1.0)[of_pair]
        average: Any = sparse.csr_array((shares, (of_pair, np.arange(of_pair.size))))
        values = np.where(total > 0, average @ np.nan_to_num(within), np.nan)
        drawn = (average @ np.nan_to_num(at_parity[:, second] - at_parity[:, first]).T).T
        simulated = Simulated.of(np.abs(values), np.abs(drawn), most)
        return cls(pairs.T, of_pair, within, values, simulated)


# Simulated means of one measure: the means of the population in the draws around (1, n_cells), the
# draws around them (n_draws, n_cells), and the parity draws (n_draws, n_cells).
_Drawn = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class Compared:
    """A gap, measured and simulated. Its verdict needs all gaps of the audit, see :meth:`judge`."""

    gap: Gap
    means: FloatArray  # (n_measures, 1, n_cells)
    pairs: IntArray  # (2, n_pairs): the cells that are compared, in pairs
    is_asked: BoolArray  # (n_pairs,): which pairs the value is about, those with a reference group
    names: list[str]  # names of the cells: groups, or groups in a stratum
    left_out: str  # names of the cells with an undefined mean, separated by commas
    # (n_draws,): the value of the gap in each parity draw, so what chance alone would show
    by_chance: FloatArray
    interval: tuple[float, float]
    simulated: Simulated
    groups: list[str]  # names of the groups, which are split into cells within strata
    # Differences averaged over strata. None for comparisons over all rows, for crossings, and for
    # gaps other than the difference of one measure.
    averaged: Averaged | None = None

    @classmethod
    def of(
        cls,
        gap: Gap,
        measures: list[CellMeans],
        drawn: list[_Drawn],
        groups: ComparedGroups,
        confidence: float,
        interval: tuple[float, float] | None,  # None if it is simulated
        is_asked: BoolArray,
    ) -> Compared:
        """Measure a gap, and compare it with simulated means of each of its measures."""
        means = np.stack([measure.means[None] for measure in measures])
        pairs, names = np.stack(groups.pairs), groups.cells.names
        centres, around, at_parity = (np.stack(parts) for parts in zip(*drawn, strict=True))
        most = np.inf
        if all(measure.is_share for measure in measures):
            most = float(len(measures)) if gap.kind == "total" else 1.0
        undefined = np.isnan(means).any(axis=(0, 1)) & groups.is_present
        simulated = Simulated.of(
            gap.tested.of_pairs(means, pairs)[0],
            np.nan_to_num(gap.tested.of_pairs(at_parity, pairs)),
            most,
        )
        left_out = ", ".join(names[i] for i in np.flatnonzero(undefined))
        asked = pairs[:, is_asked]
        worst = gap.worst(at_parity, asked)
        if interval is None:
            interval = _interval(gap, measures, centres, around, asked, confidence)
        low, high = interval
        value = float(gap.worst(means, asked)[0])
        ends = min(low, value), min(max(high, value), most)
        averaged = None
        is_plain = gap.kind == "difference" and len(measures) == 1
        if groups.strata is not None and len(groups.groups.attributes) == 1 and is_plain:
            averaged = Averaged.of(measures[0], at_parity[0], groups, most)
        shown = list(names), left_out, worst, ends, simulated, list(groups.groups.names), averaged
        return cls(gap, means, pairs, is_asked, *shown)

    def judge(
        self, rarest: FloatArray, level: float
    ) -> tuple[dict[str, Any], dict[frozenset[str], tuple[float, float]]]:
        """Return the row of the table ``gaps`` of an audit, and the chances of each pair.

        ``rarest`` is described in :meth:`Simulated.by_chance`. The row names two pairs: the worst
        one, and the *clear* one, which is the worst of those that are significant. The second
        result has, for each pair of names, the p-value and the difference above which it is
        significant. It is only complete for gaps of one measure, the only ones whose chances are
        read.
        """
        p_values, noise, own_level = self.simulated.by_chance(rarest, level)
        is_asked = np.tile(self.is_asked, p_values.size // max(self.is_asked.size, 1))
        p_value = float(np.nanmin(p_values[is_asked], initial=1.0))
        value = float(self.gap.worst(self.means, self.pairs[:, self.is_asked])[0])
        by_chance = self.by_chance[np.isfinite(self.by_chance)]
        worst = self._worst_place(is_asked)
        upper = np.nan
        if worst is not None and not self.gap.is_ratio:
            upper = noise[worst]
        elif worst is not None and by_chance.size:  # the smallest ratio that chance would show
            upper = np.quantile(by_chance, own_level)
        # The clear pair is the worst one with a p-value of at most a fifth of the level. If there
        # is none, it is the worst significant pair, and else the worst pair. A group of three
        # people who were all selected is often barely significant, so a pair of large groups is
        # named if there is one.
        clear = (
            self._worst_place(is_asked & (p_values <= limit + ROUNDING))
            for limit in (level / 5, level, 1.0)
        )
        clear_place = next((place for place in clear if place is not None), None)
        first, second = self._named_pair(worst)
        clear_first, clear_second = self._named_pair(clear_place)
        record = {
            "value": value,
            "value_low": self.interval[0],
            "value_high": self.interval[1],
            "noise_mean": by_chance.mean() if by_chance.size else np.nan,
            "noise_upper": float(upper),
            "first_group": first,
            "second_group": second,
            "left_out": self.left_out,
            "is_beyond_chance": p_value <= level + ROUNDING,
            "p_value": p_value,
            "clear_first": clear_first,
            "clear_second": clear_second,
        }
        of_pairs = zip(*self.pairs, p_values.tolist(), noise.tolist(), strict=False)
        return record, {
            frozenset((self.names[i], self.names[j])): (p, above) for i, j, p, above in of_pairs
        }

    def _worst_place(self, is_asked: BoolArray) -> int | None:
        """Return the index of the comparison furthest from parity; None if none is defined."""
        values = np.where(is_asked, self.gap.of_pairs(self.means, self.pairs)[0], np.nan)
        if not np.isfinite(values).any():
            return None
        return int(np.nanargmin(values) if self.gap.is_ratio else np.nanargmax(values))

    def _named_pair(self, place: int | None) -> tuple[str, str]:
        """Return the names of the two cells of a comparison, first the one with the smaller mean.

        They are empty if there is no comparison.
        """
        if place is None:
            return "", ""
        measure, pair = divmod(place, self.pairs.shape[1])
        of_measure = self.means[measure, 0]
        first, second = sorted(self.pairs[:, pair], key=lambda cell: float(of_measure[cell]))
        return self.names[first], self.names[second]


def compare_gaps(
    gaps: list[Gap],
    measures: Mapping[str, CellMeans],
    groups: ComparedGroups,
    options: Options,
    is_asked: BoolArray,  # (n_pairs,): which pairs of groups the values are about
) -> list[Compared]:
    """Measure and simulate every gap between the cells of some groups.

    The caller has left out the groups that may not be compared. Each measure is simulated once, for
    all gaps that use it. All pairs are simulated, because p-values are corrected for all of them.
    """
    names = dict.fromkeys(measure for gap in gaps for measure in gap.measures)
    are_both = {_HITS, _MISSES} <= set(names)
    drawn = {
        name: _drawn(measures[name], groups, options)
        for name in names
        if not (name == _MISSES and are_both)
    }
    if are_both:
        centre, around, at_parity = drawn[_HITS]
        drawn[_MISSES] = (1 - centre, 1 - around, 1 - at_parity)
    of_asked = groups.only_pairs(is_asked)
    estimates = {gap.name: _estimate(gap, measures, of_asked) for gap in gaps}
    shares = {name: own for name, own in estimates.items() if own is not None}
    ends = dict(zip(shares, intervals(list(shares.values()), options.confidence), strict=True))
    return [
        Compared.of(
            gap,
            [measures[name] for name in gap.measures],
            [drawn[name] for name in gap.measures],
            groups,
            options.confidence,
            ends.get(gap.name),
            is_asked,
        )
        for gap in gaps
    ]


def _estimate(
    gap: Gap, measures: Mapping[str, CellMeans], groups: ComparedGroups
) -> Estimate | None:
    """Return the estimate of a gap of shares; None for means, totals and measures of one's own."""
    own = tuple(measures[name] for name in gap.measures)
    if gap.kind == "total" or not all(each.is_share and each.own is None for each in own):
        return None
    kind: Any = gap.kind
    return Estimate(own, gap.measures, groups, kind, only_known=True)


def _drawn(measure: CellMeans, groups: ComparedGroups, options: Options) -> _Drawn:
    """Simulate the means of one measure, as they are and as if they were equal."""
    # The mean over the cells that each cell is compared with: the same attribute and stratum
    overall = measure._replace(sums=groups.peer_sums(measure.sums.T).T)
    centre = smoothed(measure)
    if measure.is_share:
        variances = centre * (1 - centre)
    else:  # a single row has no variance, which is not a variance of 0: the overall one is used
        variances = np.where(np.isnan(measure.variances), overall.variances, measure.variances)
    rng, n_draws = options.rng, options.n_simulations
    around = drawn_means(measure, rng, n_draws, centre, variances)
    at_parity = drawn_means(measure, rng, n_draws, overall.means, overall.variances)
    return centre[None], around, at_parity


def _interval(
    gap: Gap,
    measures: list[CellMeans],
    centres: FloatArray,  # (n_measures, 1, n_cells)
    around: FloatArray,  # (n_measures, n_draws, n_cells)
    pairs: IntArray,
    confidence: float,
) -> tuple[float, float]:
    """Return the ends of the interval of the worst gap.

    The interval of a pair is its gap plus or minus ``n_errors`` standard deviations of its error.
    The same number serves all pairs: it is simulated so that all their intervals hold together. The
    error of a pair is the gap of the errors of its two means, and for ratios, which are compared as
    logarithms, the gap of the relative errors. The result is the largest lower and the largest
    upper end.
    """
    errors = around - centres
    at = gap.of_pairs(centres, pairs)[0]  # the gap of each pair, or minus the log of its ratio
    if gap.is_ratio:
        with np.errstate(invalid="ignore", divide="ignore"):
            errors, at = errors / centres, -np.log(at)
    of_pairs = gap.tested.of_pairs(errors, pairs)
    is_finite = np.isfinite(at) & np.isfinite(of_pairs).all(axis=0)
    if not is_finite.any():
        return np.nan, np.nan
    at, of_pairs = at[is_finite], of_pairs[:, is_finite]
    spread = np.sqrt((of_pairs**2).mean(axis=0))
    scaled = of_pairs / np.where(spread > 0, spread, 1.0)
    n_errors = float(stats.norm.ppf(0.5 + confidence / 2))
    if at.size > 1:
        n_errors = max(n_errors, float(np.quantile(scaled.max(axis=1), confidence)))
    margin = n_errors * spread
    low, high = float(np.maximum(at - margin, 0.0).max()), float((at + margin).max())
    if gap.is_ratio:
        low, high = float(np.exp(-high)), float(np.exp(-low))
    return low, high


def smoothed(measure: CellMeans) -> FloatArray:
    """Return the means of cells; shares are (hits + 1) / (rows + 2).

    A group of three rows without a hit is not known to never have one.
    """
    if not measure.is_share:
        return measure.means
    n_rows = measure.n_effective
    return np.asarray((measure.means * n_rows + 1) / (n_rows + 2))


def drawn_means(
    measure: CellMeans,
    rng: np.random.RandomState,
    n_draws: int,
    # Mean and variance of the values of each cell in the population
    means: FloatArray,
    variances: FloatArray,
) -> FloatArray:
    """Draw the mean of each cell anew; return (n_draws, n_cells), NaN for cells without rows.

    Shares of rows without weights are drawn from a binomial distribution, with the effective number
    of rows of the cell. All other means are drawn from a normal distribution. If units have rows in
    up to ``MOST_JOINT`` cells, the means have the correlations of
    :mod:`skfair.groups.shared_units`: normal numbers are drawn with these, and binomial counts are
    their quantiles.
    """
    has_mean = (measure.weight > 0) & np.isfinite(means)
    draws = np.full((n_draws, measure.weight.size), np.nan)
    at, n_rows = means[has_mean], measure.n_effective[has_mean]
    shared, errors = None, np.empty((0, 0))
    if measure.unit_sums is not None and at.size <= MOST_JOINT:
        shared = measure.unit_sums.shared
        places = np.flatnonzero(has_mean)
        first, second = np.meshgrid(places, places, indexing="ij")
        errors = _correlated(rng, n_draws, shared.correlations(first, second))
    # Without weights, the sums of weights and of squared weights are equal.
    if measure.is_share and np.array_equal(*measure.sums[:2, 0]):
        n_rows, chances = np.maximum(n_rows.round(), 1.0), np.clip(at, 0, 1)
        if shared is None:
            counts = binomials(rng, n_draws, n_rows, chances)
        else:
            counts = np.asarray(stats.binom.ppf(special.ndtr(errors), n_rows, chances))
        draws[:, has_mean] = counts / n_rows
        return draws
    errors = rng.standard_normal((n_draws, at.size)) if shared is None else errors
    normal = at + np.sqrt(np.nan_to_num(variances[has_mean]) / n_rows) * errors
    draws[:, has_mean] = np.clip(normal, 0, 1) if measure.is_share else normal
    return draws


def _correlated(rng: np.random.RandomState, n_draws: int, correlations: FloatArray) -> FloatArray:
    """Draw normal numbers of variance 1 with these correlations, (n_draws, n_cells)."""
    values, vectors = np.linalg.eigh(correlations)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    root /= np.sqrt((root**2).sum(axis=0))  # a correlation made smaller may leave them inconsistent
    return np.asarray(rng.standard_normal((n_draws, values.size)) @ root)


def binomials(
    rng: np.random.RandomState, n_draws: int, sizes: FloatArray, shares: FloatArray
) -> FloatArray:
    """Draw binomial counts, an array of shape (n_draws, n_cells); O(log n) for each draw.

    Many cells of a search have the same size n and the same share p. They are drawn by inversion of
    one table of P(count <= k), k = 0, ..., n - 1, which takes a third of the time of drawing each
    separately.
    """
    counts = np.empty((n_draws, sizes.size))
    if not sizes.size:
        return counts
    pairs, kinds = np.unique(np.stack([sizes, shares]), axis=1, return_inverse=True)
    order = np.argsort(kinds.ravel(), kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(kinds.ravel()))[:-1])
    for (whole, share), cells in zip(pairs.T, parts, strict=True):
        size, shape = int(whole), (n_draws, cells.size)
        if size >= n_draws * cells.size:  # the table ``below`` would be longer than the draws
            counts[:, cells] = rng.binomial(size, share, shape)
        else:
            below = special.bdtr(np.arange(size), size, share)  # P(count <= 0), ..., <= size - 1
            counts[:, cells] = np.searchsorted(below, rng.random_sample(shape), side="right")
    return counts
