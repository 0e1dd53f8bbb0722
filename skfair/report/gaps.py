"""Differences and ratios between groups, with intervals, and what chance alone would show.

The worst of many differences is never 0, even when all groups are treated alike. So each comes with
two things. The *interval* covers the worst difference in the population: every pair of groups gets
an interval, all of them wide enough to hold together, and the worst difference lies between the
largest of their lower and the largest of their upper ends. The *noise floor* is what the worst
difference would be if all groups had the same mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.metrics.compared_groups import ComparedGroups
from skfair.report.moments import Moments

# Shares of few rows are often exactly as far apart as those that chance shows.
_ROUNDING = 1e-12
# Each is 1 minus the other, so one drawing serves both, and they have one verdict.
_HITS, _MISSES = "true_positive_rate", "false_negative_rate"
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


class MeasuredGap(NamedTuple):
    """A gap with its interval, its noise floor, and the pair of groups where it is worst."""

    value: float
    value_low: float
    value_high: float
    noise_mean: float
    noise_upper: float
    first_group: str
    second_group: str
    left_out: str  # groups without rows to compute their mean from
    is_beyond_chance: bool  # of a ratio that of the difference of the same means


def is_beyond_chance(value: float, noise_upper: float, *, is_ratio: bool) -> bool:
    """Whether a gap is further from parity than chance alone would show."""
    if not np.isfinite([value, noise_upper]).all():
        return False
    further = noise_upper - value if is_ratio else value - noise_upper
    return bool(further > _ROUNDING)


class _Drawn(NamedTuple):
    """Simulated means of one measure: what they are drawn around, and the draws."""

    centre: FloatArray  # (n_cells,)
    around_centre: FloatArray  # (n_draws, n_cells)
    around_overall: FloatArray  # (n_draws, n_cells), as if all groups had the same mean


def measure_gaps(
    gaps: list[Gap],
    moments: Mapping[str, Moments],
    groups: ComparedGroups,
    names: list[str],
    *,
    confidence: float,
    n_draws: int,
    rng: np.random.RandomState,
) -> dict[str, MeasuredGap]:
    """Measure every gap between the cells that may be compared."""
    names_of_measures = dict.fromkeys(measure for gap in gaps for measure in gap.measures)
    drawn = {
        name: _drawn(moments[name], groups, n_draws, rng)
        for name in names_of_measures
        if not (name == _MISSES and _HITS in names_of_measures)
    }
    if _MISSES in names_of_measures and _HITS in names_of_measures:
        drawn[_MISSES] = _Drawn(*(1 - one for one in drawn[_HITS]))
    found = {}
    for gap in gaps:
        one = _measured(gap, moments, drawn, groups, names, confidence)
        if gap.is_ratio:  # both say whether the same means differ, so they have one verdict
            other = gap._replace(comparison=differences)
            verdict = _measured(other, moments, drawn, groups, names, confidence).is_beyond_chance
            one = one._replace(is_beyond_chance=verdict)
        found[gap.name] = one
    return found


def _drawn(
    one: Moments, groups: ComparedGroups, n_draws: int, rng: np.random.RandomState
) -> _Drawn:
    """Simulate the means of one measure, as they are and as if they were equal."""
    overall = one.with_sums(map(groups.block_sums, one[:4]))
    centre = one.smoothed_means
    if one.is_share:
        variances = centre * (1 - centre)
    else:  # of a single row none is known, which is not one of 0: that of all rows is taken
        variances = np.where(np.isnan(one.variances), overall.variances, one.variances)
    return _Drawn(
        centre,
        one.drawn(rng, n_draws, centre, variances),
        one.drawn(rng, n_draws, overall.means, overall.variances),
    )


def _measured(
    gap: Gap,
    moments: Mapping[str, Moments],
    drawn: Mapping[str, _Drawn],
    groups: ComparedGroups,
    names: list[str],
    confidence: float,
) -> MeasuredGap:
    """Reduce measured and simulated means to one gap."""
    pairs = groups.pairs
    means = [moments[name].means[None] for name in gap.measures]
    value = float(gap.worst(means, pairs)[0])
    own = [drawn[name] for name in gap.measures]
    low, high = _interval(gap, value, own, pairs, confidence)
    if all(moments[name].is_share for name in gap.measures):
        unlike = np.ones((len(means), 1, 1))
        high = min(high, max(1.0, float(gap.comparison(unlike, 0 * unlike).max())))
    simulated = gap.worst([one.around_overall for one in own], pairs)
    simulated = simulated[np.isfinite(simulated)]
    # The unlucky end: the largest difference, or the smallest ratio, that chance would show.
    level = 1 - confidence if gap.is_ratio else confidence
    mean, upper = (
        (simulated.mean(), np.quantile(simulated, level)) if simulated.size else [np.nan] * 2
    )
    first, second = _worst_pair(gap, means, pairs, names)
    undefined = np.isnan(np.concatenate(means)).any(axis=0) & groups.is_present
    left_out = ", ".join(names[i] for i in np.flatnonzero(undefined))
    is_beyond = is_beyond_chance(value, upper, is_ratio=gap.is_ratio)
    return MeasuredGap(value, low, high, mean, upper, first, second, left_out, is_beyond)


def _interval(
    gap: Gap,
    value: float,
    drawn: list[_Drawn],
    pairs: tuple[IntArray, IntArray],
    confidence: float,
) -> tuple[float, float]:
    """Return the ends of the interval of the worst gap.

    The error of a pair is the gap of the errors of its means; of ratios, the gap of relative errors
    is the error of the logarithm.
    """
    centres = [one.centre[None] for one in drawn]
    errors = [one.around_centre - one.centre for one in drawn]
    if gap.is_ratio:
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = [error / one.centre for error, one in zip(errors, drawn, strict=True)]
            at = -np.log(gap.of_pairs(centres, pairs)[0])
        of_pairs = Gap(gap.name, differences, gap.measures).of_pairs(errors, pairs)
    else:
        at = gap.of_pairs(centres, pairs)[0]
        of_pairs = gap.of_pairs(errors, pairs)
    is_there = np.isfinite(at) & np.isfinite(of_pairs).all(axis=0)
    if not is_there.any():
        return np.nan, np.nan
    at, of_pairs = at[is_there], of_pairs[:, is_there]
    spread = np.sqrt((of_pairs**2).mean(axis=0))
    scaled = of_pairs / np.where(spread > 0, spread, 1.0)
    margin = float(np.quantile(scaled.max(axis=1), confidence)) * spread
    low, high = float(np.maximum(at - margin, 0.0).max()), float((at + margin).max())
    if gap.is_ratio:
        low, high = float(np.exp(-high)), float(np.exp(-low))
    return min(low, value), max(high, value)


def _worst_pair(
    gap: Gap, means: list[FloatArray], pairs: tuple[IntArray, IntArray], names: list[str]
) -> tuple[str, str]:
    """Return the pair of groups that is furthest apart, the one of the smaller mean first."""
    values = gap.of_pairs(means, pairs)[0]
    if not np.isfinite(values).any():
        return "", ""
    place = int(np.nanargmin(values) if gap.is_ratio else np.nanargmax(values))
    n_pairs = pairs[0].size
    of_measure = means[min(place // n_pairs, len(means) - 1)][0]
    pair = [int(side[place % n_pairs]) for side in pairs]
    first, second = sorted(pair, key=lambda cell: float(of_measure[cell]))
    return names[first], names[second]
