"""Percentile intervals of groups: the user's argument, and the share of them below a rank.

The *rank* of a score is the share of its group above it, so ranks count from the top. An interval
is a pair (low, high), a union of pairs, or either of them per group. The metrics and models of
partial parity compare scores whose rank lies in it. The *share* of a rank is the part of the
interval below the rank: 0 before the interval begins, 1 after its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray, IntervalLike
from skfair.groups.levels import GroupLevels
from skfair.utils.rounding import ROUNDING


class Intervals:
    """The percentile interval, or union of intervals, of each group.

    ``bounds`` are the sorted disjoint (low, high) pairs of each group, ``lengths`` their totals.
    """

    def __init__(self, interval: IntervalLike, levels: GroupLevels) -> None:
        if isinstance(interval, Mapping):
            by_group = {levels.number(key): value for key, value in interval.items()}
            missing = [name for g, name in enumerate(levels.names) if g not in by_group]
            if missing:
                raise ValueError(
                    f"interval has no entry for group {missing[0]!r}. Give one interval per group, "
                    "or one for all."
                )
            self.bounds = [check_interval(by_group[g]) for g in range(levels.n_groups)]
        else:
            self.bounds = [check_interval(interval)] * levels.n_groups
        self.lengths = np.array([(pairs[:, 1] - pairs[:, 0]).sum() for pairs in self.bounds])

    def overlap(self, rank: FloatArray, group: int) -> FloatArray:
        """Return the length of a group's interval below each rank."""
        return sum(
            (np.minimum(np.maximum(rank, low), high) - low for low, high in self.bounds[group]),
            start=np.zeros(np.shape(rank)),
        )

    def contains(self, rank: FloatArray, group: int) -> NDArray[np.bool_]:
        """Whether each rank lies in the intervals [low, high) of a group."""
        inside = np.zeros(np.shape(rank), bool)
        for low, high in self.bounds[group]:
            # Ranks are sums of weights, so a rank at an end may miss it by rounding.
            inside |= (rank >= low - ROUNDING) & (rank < high - ROUNDING)
        return inside

    def share(self, rank: FloatArray, group: int) -> FloatArray:
        """Return the length of a group's interval below each rank, over its whole length."""
        return np.asarray(self.overlap(rank, group) / self.lengths[group])

    def lowest_rank(self, share: FloatArray | float, group: int) -> FloatArray:
        """Return the smallest rank with at least this share; 0 for a share of 0 or less."""
        return self._rank_at(share, group, side="left")

    def highest_rank(self, share: FloatArray | float, group: int) -> FloatArray:
        """Return the largest rank with at most this share; 1 for a share of 1 or more."""
        return self._rank_at(share, group, side="right")

    def _rank_at(
        self, share: FloatArray | float, group: int, side: Literal["left", "right"]
    ) -> FloatArray:
        """Invert ``share``; the side matters in a gap of the interval, where shares are equal."""
        pairs = self.bounds[group]
        ends = np.cumsum(pairs[:, 1] - pairs[:, 0])  # lengths up to the end of each pair
        wanted = np.asarray(share, dtype=np.float64) * self.lengths[group]
        # A length that differs from the end of a pair only by rounding is set to this end, so that
        # it is not in the next pair.
        near = np.abs(wanted[..., None] - ends)
        nearest = near.argmin(axis=-1)
        wanted = np.where(near.min(axis=-1) < ROUNDING, ends[nearest], wanted)
        wanted = np.where(np.abs(wanted) < ROUNDING, 0.0, wanted)
        piece = np.searchsorted(ends, wanted, side=side)
        inside = np.minimum(piece, ends.size - 1)
        rank = pairs[inside, 1] - (ends[inside] - wanted)
        if side == "left":
            return np.where(wanted <= 0, 0.0, np.minimum(rank, 1.0))
        return np.where(piece >= ends.size, 1.0, np.where(wanted < 0, 0.0, rank))

    def widened(self, margin: float) -> Intervals:
        """Return for each group the union of all intervals, longer by a margin at each end."""
        pairs = np.unique(np.concatenate(self.bounds), axis=0)
        merged: list[list[float]] = []
        for low, high in np.clip(pairs + np.array([-margin, margin]), 0.0, 1.0).tolist():
            if merged and low <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], high)
            else:
                merged.append([low, high])
        return Intervals._of([np.array(merged)] * len(self.bounds))

    def of_groups(self, first: int, stop: int) -> Intervals:
        """Return the intervals of the groups ``first`` to ``stop - 1``."""
        return Intervals._of(self.bounds[first:stop])

    def take(self, groups: IntArray) -> Intervals:
        """Return the intervals of these groups, in this order; a group may repeat."""
        return Intervals._of([self.bounds[g] for g in groups.tolist()])

    @classmethod
    def _of(cls, bounds: list[FloatArray]) -> Intervals:
        made = cls.__new__(cls)
        made.bounds = bounds
        made.lengths = np.array([(pairs[:, 1] - pairs[:, 0]).sum() for pairs in bounds])
        return made


def check_interval(interval: IntervalLike) -> FloatArray:
    """Return sorted disjoint (low, high) pairs within [0, 1]; raise for anything else."""
    try:
        pairs = np.atleast_2d(np.asarray(interval, dtype=np.float64))
    except (TypeError, ValueError):
        pairs = np.empty((0, 0))
    if pairs.ndim != 2 or pairs.shape[1:] != (2,) or not pairs.size:
        raise ValueError(
            f"interval must be a pair (low, high), a list of pairs, or a dict of them per group; "
            f"got {interval!r}."
        )
    pairs = pairs[np.argsort(pairs[:, 0])]
    if not (np.all(pairs >= 0) and np.all(pairs <= 1) and np.all(pairs[:, 0] < pairs[:, 1])):
        raise ValueError(
            f"interval must satisfy 0 <= low < high <= 1 (ranks counted from the top), got "
            f"{interval!r}."
        )
    if np.any(pairs[1:, 0] < pairs[:-1, 1]):
        raise ValueError(f"interval is a union whose parts overlap, got {interval!r}.")
    return pairs
