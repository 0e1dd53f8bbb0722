"""Percentile intervals of groups: their names on a picture and the scores they stand for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from skfair._typing import FloatArray, IntervalLike
from skfair.groups.encoding import GroupLevels
from skfair.groups.intervals import Intervals
from skfair.inspection._style import percent
from skfair.utils.rounding import ROUNDING


def bounds_of_groups(interval: IntervalLike | None, levels: GroupLevels) -> list[FloatArray] | None:
    """Return the (low, high) pairs of each group; None if there is no interval."""
    return None if interval is None else Intervals(interval, levels).bounds


def pairs_of_groups(interval: Sequence[ArrayLike] | None) -> list[FloatArray] | None:
    """Return the intervals of each group, or curve, as tables of (low, high) pairs."""
    if interval is None:
        return None
    return [np.atleast_2d(np.asarray(pairs, dtype=np.float64)) for pairs in interval]


def interval_text(bounds: Sequence[FloatArray]) -> str:
    """Write the interval that all groups share, ``5% to 30%``, or say that they differ."""
    if any(not np.array_equal(pairs, bounds[0]) for pairs in bounds):
        return "in the group's own interval"
    return " and ".join(f"{percent(low)} to {percent(high)}" for low, high in bounds[0])


def score_ranges(scores: FloatArray, weights: FloatArray | None, bounds: FloatArray) -> FloatArray:
    """Return the lowest and the highest score inside each percentile interval of one group.

    The row at descending position i owns the ranks between the share of the group above it and the
    share at or above it. An interval that reaches the top or the bottom has no end there.
    """
    order = np.argsort(-scores, kind="stable")
    descending = scores[order]
    mass = np.ones(scores.size) if weights is None else weights[order]
    rank = np.cumsum(mass) / mass.sum()
    # The first row whose ranks reach above the low end, and the one that owns the high end.
    best = np.searchsorted(rank[:-1], bounds[:, 0] + ROUNDING, side="right")
    worst = np.searchsorted(rank[:-1], bounds[:, 1] - ROUNDING)
    highest = np.where(bounds[:, 0] <= 0, np.inf, descending[best])
    lowest = np.where(bounds[:, 1] >= 1, -np.inf, descending[worst])
    return np.stack([lowest, highest], axis=1)
