"""Thresholds of groups: the most accurate ones whose shares are within a tolerance of each other.

The scores of each group are sorted once (:func:`score_blocks`); a threshold is a *cut* between two
distinct ones. For one rule a sweep over windows is exact, for two (equalized odds) pairs of windows
are tried on a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.range_maxima import RangeMaxima
from skfair.utils.threads import for_groups

# Shares are sums of many floating-point numbers.
ROUNDING = 1e-12
# Largest number of steps of the sweep over windows; beyond it, windows are tried on a grid.
_MOST_STEPS = 100_000_000
# Cuts per group, and windows per class, that are tried where two rates are bounded at once.
_MOST_CUTS, _GRID = 4096, 200


class Blocks(NamedTuple):
    """The distinct scores of one group, in descending order."""

    scores: FloatArray  # (n_blocks,): the scores; of those that count as tied the lowest
    highest: FloatArray  # (n_blocks,): and the highest
    # (n_blocks + 1,): share of the group's weight above each cut; a cut after j blocks puts j
    # of them above
    ends: FloatArray
    # (n_blocks + 1,): weight of positive minus that of negative rows above each cut, as a
    # share of all rows
    gains: FloatArray
    # (n_blocks + 1,): share of the group's positives, and of its negatives, above each cut
    positive: FloatArray
    negative: FloatArray


def score_blocks(
    # (n_samples,): scores, groups and classes (-1 and 1) of the rows
    scores: FloatArray,
    codes: IntArray,
    n_groups: int,  # number of groups
    targets: FloatArray,
    weights: FloatArray | None = None,  # (n_samples,): weights of the rows
    min_gap: float = 0.0,  # scores that are not further apart count as tied
) -> list[Blocks]:
    """Sort the scores of each group and merge those closer than ``min_gap``, O(n log n)."""
    from skfair._kernels.sorted_pairs import counting_sort

    starts = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=n_groups))))
    order = np.empty(codes.size, np.int64)
    counting_sort(codes, starts, order)
    total = float(scores.size if weights is None else weights.sum())

    def of_group(g: int) -> Blocks:
        rows = order[starts[g] : starts[g + 1]]
        rows = rows[np.argsort(-scores[rows], kind="stable")]
        mine = scores[rows]
        mass = np.ones(rows.size) if weights is None else weights[rows]
        is_last = np.append(mine[:-1] - mine[1:] > min_gap, True)
        is_positive = targets[rows] > 0

        def above(values: FloatArray) -> FloatArray:
            return np.concatenate([[0.0], np.cumsum(values)[is_last]])

        all_above, positives = above(mass), above(mass * is_positive)
        negatives = all_above - positives
        return Blocks(
            mine[is_last],
            mine[np.append(True, is_last[:-1])],
            _shares(all_above),
            (positives - negatives) / total,
            _shares(positives),
            _shares(negatives),
        )

    return for_groups(of_group, range(n_groups), scores.size)


def _shares(above: FloatArray) -> FloatArray:
    """Divide by the last entry, which becomes exactly 1."""
    return above / above[-1] if above[-1] > 0 else above


class Cuts(NamedTuple):
    """How many blocks of each group are above its threshold, and the thresholds."""

    counts: IntArray
    thresholds: FloatArray


def natural_cuts(blocks: Sequence[Blocks], threshold: float) -> Cuts:
    """Return the cuts of one threshold for all.

    A threshold that is itself a score is moved up a little, into the gap above it: what is decided
    stays, and no score lies on the threshold.
    """
    counts = [int(np.count_nonzero(one.scores > threshold)) for one in blocks]
    if any(np.any(one.scores == threshold) for one in blocks):
        above = [one.scores[j - 1] for one, j in zip(blocks, counts, strict=True) if j]
        all_scores = np.concatenate([one.scores for one in blocks])
        threshold = _halfway(
            threshold, min(above, default=threshold + 2 * small_distance(all_scores))
        )
    return Cuts(np.array(counts), np.full(len(blocks), float(threshold)))


def choose_cuts(
    blocks: Sequence[Blocks],  # distinct scores of each group
    # One or two rules: for each group what is compared, at every cut (not falling)
    levels: Sequence[Sequence[FloatArray]],
    tolerance: float,  # largest difference of two groups
    threshold: float | None,  # a common threshold that is kept if the rule allows it
) -> Cuts:
    """Return the most accurate cuts whose levels are within the tolerance of each other.

    Exact for one rule, O(n G) after sorting; near the best on a grid of windows for two.
    """
    if threshold is not None:
        cuts = natural_cuts(blocks, threshold)
        spreads = [
            np.ptp([level[j] for level, j in zip(rule, cuts.counts, strict=True)])
            for rule in levels
        ]
        if max(spreads) <= tolerance + ROUNDING:
            return cuts
    gains = [one.gains for one in blocks]
    counts = (
        _best_single(levels[0], gains, tolerance)
        if len(levels) == 1
        else _best_double(levels, gains, tolerance)
    )
    middles = [_between(one, j) for one, j in zip(blocks, counts, strict=True)]
    return Cuts(counts, np.array(middles))


def _best_single(
    levels: Sequence[FloatArray], gains: Sequence[FloatArray], tolerance: float
) -> IntArray:
    from skfair._kernels.repair import best_cuts

    starts = np.cumsum([0, *(level.size for level in levels)])
    together = np.concatenate(levels)
    lows = np.unique(together)
    stride = -(-lows.size * len(levels) // _MOST_STEPS)
    lows = np.unique(np.append(lows[::stride], lows[-1]))
    cuts = np.zeros(len(levels), np.int64)
    best_cuts(together, np.concatenate(gains), starts, lows, tolerance + ROUNDING, cuts)
    return cuts


def _best_double(
    levels: Sequence[Sequence[FloatArray]], gains: Sequence[FloatArray], tolerance: float
) -> IntArray:
    """Try a grid of pairs of windows; the cuts of a group within both are a range."""
    n_groups = len(gains)
    kept = [
        np.unique(np.linspace(0, gain.size - 1, min(gain.size, _MOST_CUTS)).astype(np.int64))
        for gain in gains
    ]
    grids = [
        np.unique(np.quantile(np.concatenate(list(rule)), np.linspace(0, 1, _GRID), method="lower"))
        for rule in levels
    ]
    total = np.zeros((grids[0].size, grids[1].size))
    chosen = []
    for g in range(n_groups):
        ranges = []
        for rule, lows in zip(levels, grids, strict=True):
            level = rule[g][kept[g]]
            first = np.searchsorted(level, lows)
            last = np.searchsorted(level, lows + tolerance + ROUNDING, side="right")
            ranges.append((first, last))
        first = np.maximum.outer(ranges[0][0], ranges[1][0])
        last = np.minimum.outer(ranges[0][1], ranges[1][1])
        where, best = RangeMaxima(gains[g][kept[g]])(first, last)
        total += best
        chosen.append(kept[g][where])
    best_window = np.unravel_index(np.argmax(total), total.shape)
    return np.array([where[best_window] for where in chosen])


def _between(blocks: Blocks, count: int) -> float:
    """Return a threshold with exactly ``count`` of the (descending) blocks above it."""
    scores, highest = blocks.scores, blocks.highest
    beyond = small_distance(scores)
    if count == 0:
        return float(highest[0]) + beyond
    if count == scores.size:
        return float(scores[-1]) - beyond
    return _halfway(float(highest[count]), float(scores[count - 1]))


def _halfway(low: float, high: float) -> float:
    """Return a number in [low, high): the middle of neighbours may round to the upper one."""
    middle = 0.5 * (low + high)
    return middle if middle < high else low


def small_distance(scores: FloatArray) -> float:
    """Return a distance that is small but not nothing, on the scale of the scores."""
    return max(1e-3 * float(np.ptp(scores)), 1e-9 * float(np.abs(scores).max())) or 1e-6
