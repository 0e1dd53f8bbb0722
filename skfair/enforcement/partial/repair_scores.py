"""Scores that keep a promise: which thresholds and which maps of the groups, and at what bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.partial.promise import Promise
from skfair.enforcement.partial.repair import GroupMaps, band_maps, shift_maps
from skfair.enforcement.thresholds.cuts import Blocks, choose_cuts, score_blocks
from skfair.utils.rounding import ROUNDING
from skfair.utils.warn import warn_user

_BISECTIONS = 12


class Repaired(NamedTuple):
    """Maps of the groups, and what they are good for."""

    maps: GroupMaps  # from scores to scores whose decision threshold is 0
    bound: float  # the disparity that is kept: larger than asked only where ties leave no choice


def repair_scores(
    promise: Promise,  # what is limited; the groups must not overlap
    scores: FloatArray,  # (n_samples,): scores of the rows of the promise
    *,
    min_gap: float = 0.0,  # scores that are closer count as tied
) -> Repaired:
    """Return monotone maps of the groups after which the promise is kept, O(n log n + n G)."""
    groups, codes = promise.groups, promise.groups.codes[0]
    blocks = score_blocks(scores, codes, groups.n_groups, promise.targets, promise.weights, min_gap)
    levels = _levels(promise, blocks)
    if promise.rule.limits_decisions or groups.n_groups == 1:
        cuts = _thresholds(promise, blocks, levels, promise.tolerance)
        return Repaired(shift_maps(blocks, cuts), promise.bound)

    as_they_are = promise.measure(scores)
    unmoved = shift_maps(blocks, np.zeros(groups.n_groups))
    if as_they_are <= promise.bound:
        return Repaired(unmoved, promise.bound)

    def bands(tolerance: float) -> tuple[GroupMaps, float]:
        cuts = _thresholds(promise, blocks, levels, tolerance)
        maps, _ = band_maps(blocks, cuts, promise.intervals, tolerance)
        return maps, promise.measure(maps(scores, codes))

    tolerance = promise.tolerance
    if not promise.rule.is_share:
        tolerance = _widest(bands, promise.bound)
    maps, kept = bands(tolerance)
    if as_they_are < kept > promise.bound + ROUNDING:  # ties: better not to move them
        maps, kept = unmoved, as_they_are
    return Repaired(maps, _kept_or_warned(promise, kept))


def _thresholds(
    promise: Promise,
    blocks: Sequence[Blocks],
    levels: Sequence[Sequence[FloatArray]],
    tolerance: float,
) -> FloatArray:
    """Return the most accurate thresholds; between the bins of scores, if there are any."""
    chosen = choose_cuts(blocks, levels, tolerance, 0.0).thresholds
    bins = None if promise.behind is None else promise.behind.bins
    return chosen if bins is None else bins.between(chosen)


def _widest(bands: Callable[[float], tuple[GroupMaps, float]], bound: float) -> float:
    """Look for the widest bands that keep a bound: those of the bound do, and mostly wider ones."""
    low, high = bound, 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if bands(middle)[1] <= bound else (low, middle)
    return low


def _kept_or_warned(promise: Promise, kept: float) -> float:
    """Return the bound, or with a warning the disparity that ties do not let one go below."""
    if kept <= promise.bound + ROUNDING:
        return promise.bound
    warn_user(
        f"Ties make a smaller limit impossible than {kept:.4g} on the {promise.name} disparity of "
        f"the training data; max_disparity={promise.bound:g} was asked. Finer scores, a longer "
        "interval or merged groups would help."
    )
    return kept


def _levels(promise: Promise, blocks: Sequence[Blocks]) -> list[list[FloatArray]]:
    """Return, for each comparison and group, the share of the interval above each cut."""
    share, classes = promise.intervals.share, promise.rule.classes
    if len(blocks) == 1:  # compared with nobody
        return [[np.zeros(blocks[0].ends.size)]]
    if not classes:
        return [[share(block.ends, g) for g, block in enumerate(blocks)]]
    if promise.rule.ranks_whole_groups:
        return [
            [_rates_inside(block, share(block.ends, g), c) for g, block in enumerate(blocks)]
            for c in reversed(classes)
        ]
    return [
        [share(block.positive if c else block.negative, g) for g, block in enumerate(blocks)]
        for c in reversed(classes)
    ]


def _rates_inside(blocks: Blocks, share: FloatArray, label: int) -> FloatArray:
    """Return the rate at each cut among the rows of a class whose rank in the group is inside."""
    size = np.diff(blocks.ends)
    part = np.divide(np.diff(share), size, out=np.zeros(size.size), where=size > 0)
    mass = part * np.diff(blocks.positive if label else blocks.negative)
    above = np.concatenate([[0.0], np.cumsum(mass)])
    return above / above[-1] if above[-1] > 0 else above
