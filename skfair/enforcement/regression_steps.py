"""Alternating maps: the attributes take turns in moving predictions until all limits are satisfied.

With known groups and one attribute one step is enough. Several attributes take turns, as do the
expected maps of estimated groups, each of which moves groups only part of the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from skfair import metrics
from skfair._typing import FloatArray, IntArray
from skfair.constraints.base import Constraint
from skfair.constraints.losses import LossParity
from skfair.constraints.scores import Kolmogorov, MeanResidualParity, MeanScoreParity, Wasserstein
from skfair.enforcement.group_maps import GroupMaps
from skfair.enforcement.regression_maps import (
    FAR,
    NumberRows,
    band_around_barycentre,
    barycentre_maps,
    expected,
    lines_of_losses,
    shifts_of_means,
)
from skfair.groups.encoding import GroupEncoding
from skfair.utils.rounding import ROUNDING, SUM_ROUNDING

ROUNDS = 60  # over the attributes
# Rounds that may pass without gain: the Kolmogorov-Smirnov distance of few rows falls unevenly.
PATIENCE = 6
# Maps aim a little below the limit, relatively, so that rounding finds room; with known groups each
# round by this factor more.
MORE_ROOM = 1e3
# A step that goes part of the way is made shorter until it uses this share of the limit.
USED, SHORTENINGS = 0.998, 3


class NumberMaps(NamedTuple):
    """Which maps of numbers make a disparity smaller."""

    maps: Callable[[FloatArray, NumberRows, float], GroupMaps]
    goes_part_way: bool = False  # whether maps go the whole way, and a share of it may do
    # What shrinking all predictions to their mean does: disparities shrink by the same factor,
    # vanish only at the end, or stay.
    shrinking: Literal["alike", "end", "never"] = "never"


NUMBER_MAPS: dict[type[Constraint], NumberMaps] = {
    Wasserstein: NumberMaps(barycentre_maps, True, "alike"),
    Kolmogorov: NumberMaps(band_around_barycentre, False, "end"),
    MeanScoreParity: NumberMaps(shifts_of_means, False, "alike"),
    MeanResidualParity: NumberMaps(lambda z, rows, a: shifts_of_means(z - rows.targets, rows, a)),
    LossParity: NumberMaps(lines_of_losses),
}
# Each map of estimated groups moves rows by little, so a band hardly brings the groups together.
WITHOUT_GROUPS = {Kolmogorov: NumberMaps(barycentre_maps, True, "end")}


class Step(NamedTuple):
    """Maps of the groups of one attribute, and how far rows go along them."""

    attribute: int
    maps: GroupMaps
    share: float

    def __call__(self, values: FloatArray, groups: IntArray | FloatArray) -> FloatArray:
        """Move values, by the groups of the attribute or their probabilities."""
        moved = expected(self.maps, values, groups)
        return moved if self.share == 1 else values + self.share * (moved - values)


class Moved(NamedTuple):
    """Steps, and what they make of the rows."""

    steps: list[Step]
    values: FloatArray
    gaps: FloatArray  # (n_attributes,): disparity of each attribute
    excess: float  # the largest that is above its limit; at most 0 if all are kept
    error: float  # mean squared error

    def is_better_than(self, other: Moved, least: float = 0.0) -> bool:
        """Whether limits are missed by less, or all are kept and predictions are better."""
        if max(self.excess, other.excess) <= 0:
            return self.error < other.error * (1 - least)
        return max(self.excess, 0.0) < max(other.excess, 0.0) * (1 - least)


class NumberTask(NamedTuple):
    """Rows, constraint and limits."""

    constraint: Constraint
    limits: Sequence[float | None]
    targets: FloatArray
    groups: GroupEncoding
    weights: FloatArray | None
    chances: Sequence[FloatArray] | None  # of each attribute, if groups may not be used

    def gap(self, attribute: int, values: FloatArray) -> float:
        """Measure the disparity of one attribute as the metric counts it."""
        groups = self.groups.of_attribute(attribute)
        columns = {"sensitive_features": groups, "sample_weight": self.weights}
        measure = getattr(metrics, str(self.constraint.metric))
        options = self.constraint.metric_options("squared_error")
        return float(measure(self.targets, values, **columns, **options))

    @property
    def number_maps(self) -> NumberMaps:
        kind = type(self.constraint)
        is_other = self.chances is not None and kind in WITHOUT_GROUPS
        return WITHOUT_GROUPS[kind] if is_other else NUMBER_MAPS[kind]

    def rows(self, attribute: int) -> NumberRows:
        groups = self.groups.of_attribute(attribute)
        chances = None if self.chances is None else self.chances[attribute]
        return NumberRows(self.targets, groups.codes[0], groups.n_groups, self.weights, chances)

    def step(
        self, attribute: int, values: FloatArray, gap: float, room: float
    ) -> tuple[Step, FloatArray, float]:
        """Return a step, the moved values and their disparity.

        The Wasserstein distance is convex along the way, so the share that the line between both
        ends asks for is enough. For the Kolmogorov-Smirnov distance shares that are too small are
        passed over.
        """
        limit = self.limits[attribute]
        assert limit is not None
        aim, rows = limit * (1 - min(room, 1.0)), self.rows(attribute)
        step = Step(attribute, self.number_maps.maps(values, rows, aim), 1.0)
        groups: IntArray | FloatArray = rows.codes if rows.chances is None else rows.chances
        whole = step(values, groups)
        gap_of_whole = self.gap(attribute, whole)
        if not self.number_maps.goes_part_way or gap_of_whole >= aim:
            return step, whole, gap_of_whole
        # Between a share that leaves the disparity above the aim, and one that is enough.
        short, gap_of_short, share, part, gap_of_part = 0.0, gap, 1.0, whole, gap_of_whole
        for _ in range(SHORTENINGS):
            if not USED * aim > gap_of_part > 0:
                break
            tried = short + (share - short) * (gap_of_short - aim) / (gap_of_short - gap_of_part)
            moved = values + tried * (whole - values)
            gap_of_moved = self.gap(attribute, moved)
            if gap_of_moved > limit:
                short, gap_of_short = tried, gap_of_moved
            else:
                share, part, gap_of_part = tried, moved, gap_of_moved
        return step._replace(share=share), part, gap_of_part

    def moved(
        self, steps: Sequence[Step], values: FloatArray, gaps: FloatArray | None = None
    ) -> Moved:
        """Judge what steps have made of the rows."""
        if gaps is None:
            gaps = np.array([self.gap(a, values) for a in range(len(self.limits))])
        error = float(np.average((values - self.targets) ** 2, weights=self.weights))
        return Moved([*steps], values, gaps.copy(), self.excess(gaps, values), error)

    def shrunk(self, moved: Moved) -> Moved | None:
        """Return the same, shrunk towards the mean of the targets, if that may be better.

        Without the groups predictions are shrunk until limits are satisfied. Where they are worse
        than the mean, they are shrunk to the multiple of least error.
        """
        values, targets = moved.values, self.targets
        mean, middle = (float(np.average(v, weights=self.weights)) for v in (targets, values))
        is_poor = moved.error > np.average((targets - mean) ** 2, weights=self.weights)
        kept = [
            limit * (1 - SUM_ROUNDING) / gap
            for limit, gap in zip(self.limits, moved.gaps, strict=True)
            if limit is not None and gap > limit and moved.excess > 0
        ]
        shrinking, share = self.number_maps.shrinking, 1.0
        if kept and (self.chances is not None or is_poor):
            share = min(kept) if shrinking == "alike" else 0.0
        if is_poor:
            around = values - middle
            common, spread = (
                np.average(around * v, weights=self.weights) for v in (targets, around)
            )
            best = float(np.clip(common / spread, 0.0, 1.0)) if spread > 0 else 0.0
            share = 0.0 if shrinking == "never" else min(share, best)
        if share == 1.0:
            return None
        n_groups = int(self.groups.offsets[1])
        ends, to_mean = np.array([-FAR, FAR]), np.full(2, mean)
        maps = GroupMaps(np.zeros(n_groups), [ends] * n_groups, [to_mean] * n_groups)
        step = Step(0, maps, 1.0 - share)
        shrunk = step(values, np.zeros(values.size, np.int64))
        return self.moved([*moved.steps, step], shrunk)

    def excess(self, gaps: FloatArray, values: FloatArray) -> float:
        """Return how far the worst disparity is above its limit; rounding is none."""
        pairs = zip(gaps, self.limits, strict=True)
        excess = max((gap - limit for gap, limit in pairs if limit is not None), default=-np.inf)
        return excess if excess > ROUNDING * float(np.abs(values).max()) else min(excess, 0.0)


def find_steps(start: Moved, task: NumberTask) -> Moved:
    """Move predictions until all limits are satisfied, or no round gains: return the best round.

    With estimated groups each round is also shrunk until limits are satisfied, which costs less
    than many rounds where the other columns say little of the groups. Predictions that have moved
    so far that they are worse than the mean are shrunk, too, however the groups are known.
    """
    best, moved, least, room, n_without_gain = start, start, start.excess, SUM_ROUNDING, 0
    for _ in range(_rounds(task)):
        if moved.excess <= 0 or n_without_gain == PATIENCE:
            break
        moved = _round(moved, task, room)
        is_gain = moved.excess < 0.99 * least
        least = min(least, moved.excess)
        for candidate in filter(None, (moved, task.shrunk(moved))):
            is_gain |= candidate.is_better_than(best, 0.01)
            best = candidate if candidate.is_better_than(best) else best
        n_without_gain = 0 if is_gain else n_without_gain + 1
        room *= MORE_ROOM if task.chances is None else 1.0
    return best


def _rounds(task: NumberTask) -> int:
    takes_turns = task.chances is not None or len(task.limits) > 1
    # Of one known attribute one round is enough; others only find room for rounding.
    needs_room = not task.number_maps.goes_part_way and bool(task.limits[0])
    return ROUNDS if takes_turns or needs_room else 1


def _round(moved: Moved, task: NumberTask, room: float) -> Moved:
    """Take one step for each attribute whose limit is missed."""
    steps, values, gaps = [*moved.steps], moved.values, moved.gaps.copy()
    for a, limit in enumerate(task.limits):
        if limit is None or gaps[a] <= limit:
            continue
        step, values, gap = task.step(a, values, gaps[a], room)
        steps.append(step)
        gaps = np.array([gap if b == a else task.gap(b, values) for b in range(gaps.size)])
    return task.moved(steps, values, gaps)
