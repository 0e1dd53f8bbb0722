"""Differences and ratios between groups, with intervals, and what chance alone would show.

The worst of many differences is never 0, even when all groups are treated alike. So each comes with
two things. The *interval* covers the worst difference in the population: every pair of groups gets
an interval, all of them wide enough to hold together, and the worst difference lies between the
largest of their lower and the largest of their upper ends. The *p-value* is how often chance alone
would show something as extreme anywhere in the audit, in a gap or in a subgroup, if all groups had
the same means: of 100 audits without a disparity, five find one at the level of 5%. Pairs are
compared in standard deviations, so that a group of three people does not hide what the large groups
show, and gaps by how rare their most extreme pair is, so that a crossing with a thousand pairs does
not hide what one attribute shows. Where interval and p-value disagree about equal means, the end of
the interval is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

from skfair._typing import FloatArray, IntArray
from skfair.groups.compared_groups import ComparedGroups
from skfair.metrics.intervals import wilson
from skfair.report.moments import Moments
from skfair.utils.rounding import ROUNDING

# Each is 1 minus the other, so one drawing serves both, and they have one verdict.
_HITS, _MISSES = "true_positive_rate", "false_negative_rate"
# A pair is clearly beyond chance with a p-value of a fifth of the level. Three people who were all
# selected are often barely beyond it; a verdict then speaks of a pair of large groups instead.
_CLEARLY = 5
# The most extreme pair of a gap is as rare as that of so many independent ones which are as extreme
# in these shares of the simulations: the largest number, for a long tail must not outweigh others.
_SHARES = np.array([0.9, 0.95, 0.99])
_MOST_DEVIATIONS = 37.0  # the normal distribution is 0 in double precision above it
# Turns means of both sides of each pair, shape (n_measures, n_draws, n_pairs), into how far they
# are apart, shape (n_draws, n_pairs or more).
Comparison = Callable[[FloatArray, FloatArray], FloatArray]


def differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return absolute differences; those of several measures stand side by side."""
    return np.concatenate(np.abs(first - second), axis=1)


def totals(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return absolute differences, added up over the measures."""
    return np.asarray(np.abs(first - second).sum(axis=0))


def ratios(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the smaller mean divided by the larger one; NaN for 0 by 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        quotients = np.minimum(first, second) / np.maximum(first, second)
    return np.concatenate(quotients, axis=1)


class Gap(NamedTuple):
    """A comparison of groups: its name, how means are compared, and which means."""

    name: str
    comparison: Comparison
    measures: tuple[str, ...]

    @property
    def is_ratio(self) -> bool:
        """Whether parity is 1 instead of 0, and smaller is worse."""
        return self.comparison is ratios

    @property
    def is_single(self) -> bool:
        """Whether it is the difference of one measure."""
        return self.comparison is differences and len(self.measures) == 1

    @property
    def tested(self) -> Gap:
        """The difference of the same means, whose verdict a ratio has."""
        return self._replace(comparison=differences) if self.is_ratio else self

    def worst(self, means: list[FloatArray], pairs: tuple[IntArray, IntArray]) -> FloatArray:
        """Return the worst pair of each draw; pairs with an undefined mean are left out."""
        values = self.of_pairs(means, pairs)
        reduce = np.fmin if self.is_ratio else np.fmax
        if not values.shape[1]:
            return np.full(values.shape[0], 1.0 if self.is_ratio else 0.0)
        return np.asarray(reduce.reduce(values, axis=1))

    def of_pairs(self, means: list[FloatArray], pairs: tuple[IntArray, IntArray]) -> FloatArray:
        """Compare the pairs of cells."""
        stacked = np.stack(means)
        return self.comparison(stacked[:, :, pairs[0]], stacked[:, :, pairs[1]])


class _Chance(NamedTuple):
    """What chance alone would show, with one entry per comparison of a pair by a measure."""

    p_values: FloatArray  # covering all comparisons of the audit
    noise: FloatArray  # comparisons above it are beyond chance
    level: float  # how often a gap by itself may be beyond chance, so that any is as wanted

    @property
    def smallest(self) -> float:
        """The p-value of all comparisons together."""
        return float(np.nanmin(self.p_values, initial=1.0))


class Simulated(NamedTuple):
    """Differences by one metric, and how large they are if all groups have the same means."""

    deviations: FloatArray  # (n_comparisons,): the differences in standard deviations; may be NaN
    spread: FloatArray | float  # (n_comparisons,): the standard deviations by chance
    largest: FloatArray  # (n_draws,): the most extreme deviation of each simulation
    n_independent: float  # comparisons, of which the largest would be as extreme
    most: float  # which no difference exceeds

    @classmethod
    def of(cls, values: FloatArray, simulated: FloatArray, most: float) -> Simulated:
        """Return what simulations (n_draws, n_comparisons) say about differences.

        What is scaled by them is one of them, or the others would be less extreme than it by
        chance: with 59 simulations 12% of samples of equal groups were beyond that of 5%.
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
        """Return what the most extreme deviations of simulations say about others."""
        every = np.append(largest, np.nan_to_num(deviations).max(initial=0.0))
        rare = -np.log(_SHARES) / _rarity(np.quantile(every, _SHARES))
        return cls(deviations, spread, largest, float(rare.max(initial=1.0)), most)

    @property
    def rarities(self) -> FloatArray:
        """How rare each simulation is, about its p-value; (n_draws,)."""
        return self.n_independent * _rarity(self.largest)

    def chance(self, rarest: FloatArray, level: float) -> _Chance:
        """Compare each difference with the rarest one of each simulation, in order."""
        # Shares of few rows are often exactly as far apart as those that chance shows.
        rarities = self.n_independent * _rarity(self.deviations - ROUNDING)
        n_draws = rarest.size
        n_beaten = np.searchsorted(rarest, rarities, side="right")
        p_values = np.where(np.isnan(self.deviations), np.nan, (1 + n_beaten) / (1 + n_draws))
        n_allowed = int(level * (n_draws + 1) + ROUNDING)  # simulations that may be as extreme
        rarity = rarest[max(n_allowed, 1) - 1]
        deviation = -special.ndtri(-np.expm1(-rarity / self.n_independent) / 2)
        noise = np.minimum(deviation * self.spread, self.most)
        return _Chance(p_values, noise, -float(np.expm1(-rarity)))


def _rarity(deviations: FloatArray) -> FloatArray:
    """Return minus the logarithm of how often a normal variable deviates less; 0 is rarest."""
    outside = 2 * special.ndtr(-np.clip(deviations, 0.0, _MOST_DEVIATIONS))
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log1p(-outside))


class _Drawn(NamedTuple):
    """Simulated means of one measure: what they are drawn around, and the draws."""

    centre: FloatArray  # (n_cells,)
    around_centre: FloatArray  # (n_draws, n_cells)
    around_overall: FloatArray  # (n_draws, n_cells), as if all groups had the same mean


class Compared(NamedTuple):
    """A gap without its verdict, for which all gaps of an audit are needed."""

    gap: Gap
    means: list[FloatArray]  # of each measure, of shape (1, n_cells)
    pairs: tuple[IntArray, IntArray]
    names: list[str]
    left_out: str
    interval: tuple[float, float]
    by_chance: FloatArray  # the worst pair of each simulation
    simulated: Simulated


def compare_gaps(
    gaps: list[Gap],
    moments: Mapping[str, Moments],
    groups: ComparedGroups,
    names: list[str],
    *,
    confidence: float,
    n_draws: int,
    rng: np.random.RandomState,
) -> list[Compared]:
    """Measure and simulate every gap between the cells that may be compared."""
    names_of_measures = dict.fromkeys(measure for gap in gaps for measure in gap.measures)
    drawn = {
        name: _drawn(moments[name], groups, n_draws, rng)
        for name in names_of_measures
        if not (name == _MISSES and _HITS in names_of_measures)
    }
    if _MISSES in names_of_measures and _HITS in names_of_measures:
        drawn[_MISSES] = _Drawn(*(1 - shares for shares in drawn[_HITS]))
    compared = []
    for gap in gaps:
        of_gap = [moments[name] for name in gap.measures]
        means = [measure.means[None] for measure in of_gap]
        own = [drawn[name] for name in gap.measures]
        value = float(gap.worst(means, groups.pairs)[0])
        low, high = _interval(gap, value, of_gap, own, groups.pairs, confidence)
        most = np.inf
        if all(measure.is_share for measure in of_gap):
            unlike = np.ones((len(means), 1, 1))
            most = max(1.0, float(gap.comparison(unlike, 0 * unlike).max()))
        undefined = np.isnan(np.concatenate(means)).any(axis=0) & groups.is_present
        left_out = ", ".join(names[i] for i in np.flatnonzero(undefined))
        alike = [means_drawn.around_overall for means_drawn in own]
        worst = gap.worst(alike, groups.pairs)
        tested = gap.tested
        simulated = Simulated.of(
            tested.of_pairs(means, groups.pairs)[0],
            np.nan_to_num(tested.of_pairs(alike, groups.pairs)),
            most,
        )
        ends = low, min(high, most)
        compared.append(Compared(gap, means, groups.pairs, names, left_out, ends, worst, simulated))
    return compared


def _drawn(
    moments: Moments, groups: ComparedGroups, n_draws: int, rng: np.random.RandomState
) -> _Drawn:
    """Simulate the means of one measure, as they are and as if they were equal."""
    overall = moments._replace(sums=groups.block_sums(moments.sums.T).T)
    centre = moments.smoothed_means
    if moments.is_share:
        variances = centre * (1 - centre)
    else:  # of a single row none is known, which is not one of 0: that of all rows is taken
        variances = np.where(np.isnan(moments.variances), overall.variances, moments.variances)
    return _Drawn(
        centre,
        moments.drawn(rng, n_draws, centre, variances),
        moments.drawn(rng, n_draws, overall.means, overall.variances),
    )


def judge_gap(
    compared: Compared, rarest: FloatArray, level: float
) -> tuple[dict[str, Any], dict[frozenset[str], tuple[float, float]]]:
    """Reduce a gap to its worst and its clearest pair; say whether chance explains the latter.

    ``rarest`` has the rarity of the most extreme comparison of each simulation, in order. The
    second result has the p-value of each pair, and above which difference it is beyond chance.
    """
    chance = compared.simulated.chance(rarest, level)
    gap, means, pairs, names = compared[:4]
    value = float(gap.worst(means, pairs)[0])
    low, high = _agreeing(
        gap, value, compared.interval, np.stack(means)[:, 0], pairs, chance, level
    )
    simulated = compared.by_chance[np.isfinite(compared.by_chance)]
    mean = simulated.mean() if simulated.size else np.nan
    values = gap.of_pairs(means, pairs)[0]
    worst = _worst_place(values, is_ratio=gap.is_ratio)
    if worst is None:
        upper = np.nan
    elif gap.is_ratio:  # the smallest ratio that chance would show
        upper = np.quantile(simulated, chance.level) if simulated.size else np.nan
    else:
        upper = chance.noise[worst]
    places = [worst, _clear_place(values, chance, level, is_ratio=gap.is_ratio)]
    (first, second), (clear_first, clear_second) = (
        _named_pair(place, means, pairs, names) for place in places
    )
    tested = zip(chance.p_values.tolist(), chance.noise.tolist(), strict=True)
    record = {
        "value": value,
        "value_low": low,
        "value_high": high,
        "noise_mean": mean,
        "noise_upper": float(upper),
        "first_group": first,
        "second_group": second,
        "left_out": compared.left_out,
        "is_beyond_chance": chance.smallest <= level + ROUNDING,
        "p_value": chance.smallest,
        "clear_first": clear_first,
        "clear_second": clear_second,
    }
    return record, {
        frozenset((names[i], names[j])): own for i, j, own in zip(*pairs, tested, strict=False)
    }


def _agreeing(
    gap: Gap,
    value: float,
    interval: tuple[float, float],
    means: FloatArray,  # (n_measures, n_cells)
    pairs: tuple[IntArray, IntArray],
    chance: _Chance,
    level: float,
) -> tuple[float, float]:
    """Return an interval that holds equal means exactly if chance explains the difference.

    Interval and simulation are two methods, which disagree where a difference is barely beyond
    chance. What a difference has more than chance would show is then the end of the interval.
    """
    low, high = interval
    is_beyond = chance.smallest <= level + ROUNDING
    if not np.isfinite([value, low, high]).all():
        return low, high
    if not is_beyond:
        return (low, 1.0) if gap.is_ratio else (0.0, high)
    if (high < 1.0) if gap.is_ratio else (low > 0.0):
        return low, high
    values = gap.tested.of_pairs([measure_means[None] for measure_means in means], pairs)[0]
    surplus = np.where(chance.p_values <= level + ROUNDING, values - chance.noise, -np.inf)
    if not gap.is_ratio:
        return min(float(np.nanmax(surplus)), value), high
    sides = np.stack([means[:, sides_of_pair] for sides_of_pair in pairs])
    larger = np.concatenate(sides.max(axis=0))
    return low, max(float(np.nanmin(1 - surplus / larger)), value)


def _interval(
    gap: Gap,
    value: float,
    moments: list[Moments],
    drawn: list[_Drawn],
    pairs: tuple[IntArray, IntArray],
    confidence: float,
) -> tuple[float, float]:
    """Return the ends of the interval of the worst gap.

    The error of a pair is the gap of the errors of its means; of ratios, the gap of relative errors
    is the error of the logarithm. How many of its standard deviations the intervals of all pairs
    must have to hold together is simulated.
    """
    centres = [measure.centre[None] for measure in drawn]
    errors = [measure.around_centre - measure.centre for measure in drawn]
    at = gap.of_pairs(centres, pairs)[0]
    if gap.is_ratio:
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = [error / measure.centre for error, measure in zip(errors, drawn, strict=True)]
            at = -np.log(at)
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
    if gap.comparison is not totals and all(measure.is_share for measure in moments):
        of_measures = [
            _ends_of_shares(measure, pairs, n_errors, gap.is_ratio) for measure in moments
        ]
        lows, highs = (np.concatenate(ends)[is_finite] for ends in zip(*of_measures, strict=True))
        low, high = float(np.maximum(lows, 0.0).max()), float(highs.max())
    else:
        margin = n_errors * spread
        low, high = float(np.maximum(at - margin, 0.0).max()), float((at + margin).max())
    if gap.is_ratio:
        low, high = float(np.exp(-high)), float(np.exp(-low))
    return min(low, value), max(high, value)


def _ends_of_shares(
    moments: Moments, pairs: tuple[IntArray, IntArray], n_errors: float, is_ratio: bool
) -> tuple[FloatArray, FloatArray]:
    """Return intervals of the distance of the shares of each pair, or of their logarithms.

    The distances from both shares to the ends of their own intervals, those of Wilson with half a
    row for continuity, are added as squares (Newcombe 1998, method 10; Zou & Donner 2008 for
    ratios). With 0.3 and 0.4 of 500 each, a limit of 0.1 is wrongly passed in 2.3% of samples;
    without the half row in 2.5 to 3.0%, by the usual interval in 3.1%, and not in 2.5% or less.
    """
    confidence = float(2 * stats.norm.cdf(n_errors) - 1)
    n_rows = np.where(moments.weight > 0, moments.n_effective, np.nan)
    shares = moments.means
    low, high = wilson(shares, n_rows, confidence)
    half = 0.5 / n_rows
    ends = np.stack([shares, np.maximum(low - half, 0.0), np.minimum(high + half, 1.0)])
    if is_ratio:
        ends = np.log(np.clip(ends, ROUNDING, None))  # smaller shares count as 0
    is_larger = ends[0, pairs[0]] >= ends[0, pairs[1]]
    upper = np.where(is_larger, pairs[0], pairs[1])
    lower = np.where(is_larger, pairs[1], pairs[0])
    (a, a_low, a_high), (b, b_low, b_high) = ends[:, upper], ends[:, lower]
    low = a - b - np.hypot(a - a_low, b_high - b)
    if is_ratio:  # of a share of 0 only the upper end is known
        low = np.where(b <= np.log(ROUNDING), a_low - b_high, low)
    return low, a - b + np.hypot(a_high - a, b - b_low)


def _worst_place(values: FloatArray, *, is_ratio: bool) -> int | None:
    """Return which comparison is furthest from parity; None if none is defined."""
    if not np.isfinite(values).any():
        return None
    return int(np.nanargmin(values) if is_ratio else np.nanargmax(values))


def _clear_place(
    values: FloatArray, chance: _Chance, level: float, *, is_ratio: bool
) -> int | None:
    """Return which comparison a verdict speaks of: the worst of those that are clearest."""
    for limit in (level / _CLEARLY, level, 1.0):
        is_clear = chance.p_values <= limit + ROUNDING
        place = _worst_place(np.where(is_clear, values, np.nan), is_ratio=is_ratio)
        if place is not None:
            return place
    return None


def _named_pair(
    place: int | None,
    means: list[FloatArray],
    pairs: tuple[IntArray, IntArray],
    names: list[str],
) -> tuple[str, str]:
    """Return the names of the pair of a comparison, the one of the smaller mean first."""
    if place is None:
        return "", ""
    n_pairs = pairs[0].size
    of_measure = means[min(place // n_pairs, len(means) - 1)][0]
    pair = [int(side[place % n_pairs]) for side in pairs]
    first, second = sorted(pair, key=lambda cell: float(of_measure[cell]))
    return names[first], names[second]
