"""Thresholds of groups on their scores, for :mod:`skfair.partial_parity.repair`.

A *cut* of a group is the number j of its blocks (distinct scores, descending) above the threshold.
Its *level* is the number that the constraint compares, such as the share of the interval above the
cut. :func:`choose_cuts` lets :mod:`skfair.enforcement.cuts` choose the most accurate cuts whose
levels differ by at most a tolerance, and returns a threshold for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.cuts import Blocks, GroupCuts, Rate, best_cuts
from skfair.utils.rounding import ROUNDING


class Cuts(NamedTuple):
    """The cut and the threshold of each group."""

    counts: IntArray  # (n_groups,): number of blocks above the threshold
    thresholds: FloatArray  # (n_groups,)


def natural_cuts(blocks: Sequence[Blocks], threshold: float) -> Cuts:
    """Return the cuts of a common threshold of all groups.

    If the threshold equals a score, it is moved up into the gap above this score. This changes no
    decision, and no score lies on the threshold.
    """
    counts = [int(np.count_nonzero(block.scores > threshold)) for block in blocks]
    if any(np.any(block.scores == threshold) for block in blocks):
        above = [block.scores[j - 1] for block, j in zip(blocks, counts, strict=True) if j]
        all_scores = np.concatenate([block.scores for block in blocks])
        threshold = _halfway(
            threshold, min(above, default=threshold + 2 * small_distance(all_scores))
        )
    return Cuts(np.array(counts), np.full(len(blocks), float(threshold)))


def choose_cuts(
    blocks: Sequence[Blocks],  # distinct scores of each group
    # For each comparison (one or two, as of classes) and group the level at every cut, ascending
    levels: Sequence[Sequence[FloatArray]],
    tolerance: float,  # largest difference of two groups
    # A common threshold that is returned if its cuts are within the tolerance; None to search in
    # any case
    threshold: float | None,
) -> Cuts:
    """Return the most accurate cuts whose levels are within the tolerance of each other."""
    if threshold is not None:
        cuts = natural_cuts(blocks, threshold)
        spreads = [
            np.ptp([level[j] for level, j in zip(constraint, cuts.counts, strict=True)])
            for constraint in levels
        ]
        if max(spreads) <= tolerance + ROUNDING:
            return cuts
    length = tolerance + ROUNDING
    groups = [
        GroupCuts(
            block.gains,
            tuple(Rate(k, constraint[g], length) for k, constraint in enumerate(levels)),
        )
        for g, block in enumerate(blocks)
    ]
    counts = best_cuts(groups)
    assert counts is not None  # cuts with nobody above any threshold always satisfy the limits
    middles = [_between(block, j) for block, j in zip(blocks, counts, strict=True)]
    return Cuts(np.array(counts), np.array(middles))


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
    """Return the middle of two numbers, or ``low`` if the middle is rounded to ``high``."""
    middle = 0.5 * (low + high)
    return middle if middle < high else low


def small_distance(scores: FloatArray) -> float:
    """Return a positive distance that is small next to the range of the scores."""
    return max(1e-3 * float(np.ptp(scores)), 1e-9 * float(np.abs(scores).max())) or 1e-6
