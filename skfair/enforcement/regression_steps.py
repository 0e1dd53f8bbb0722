"""Alternating maps: the attributes take turns in moving predictions until all limits are satisfied.

:meth:`skfair.regression.FairDecisionRegressor.fit` makes a :class:`NumberTask` of its rows,
evaluates the free predictions by :meth:`NumberTask.moved`, and gives both to :func:`find_steps`.
The result is a list of :class:`Step`, which ``predict`` applies in the same order.

If the groups are known and there is one attribute, one step is enough. Maps of one attribute change
the disparities of the others, so several attributes take turns. If groups are estimated, a row is
moved by the mean of the maps of its possible groups, which brings the groups together only part of
the way, so one attribute needs several steps, too.
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
    merged_ties,
    shifts_of_means,
)
from skfair.groups.encoding import GroupEncoding
from skfair.utils.rounding import ROUNDING, SUM_ROUNDING

ROUNDS = 60  # largest number of rounds; in a round each attribute has one step
# Rounds that may pass without gain: the Kolmogorov-Smirnov distance of few rows falls unevenly.
PATIENCE = 6
# Maps aim below the limit by a share of it, the *room* for rounding, which starts at SUM_ROUNDING.
# If groups are known, only rounding can make a step miss its limit. So the room of each round is
# this many times the room of the round before.
MORE_ROOM = 1e3
# A step part of the way is shortened until the disparity is at least the share USED of the
# disparity that the step aims at, but at most SHORTENINGS times.
USED, SHORTENINGS = 0.998, 3


class NumberMaps(NamedTuple):
    """The maps that make a kind of disparity smaller, and what else is known of that disparity."""

    # Makes the maps of (predictions, rows of one attribute, disparity to aim at)
    maps: Callable[[FloatArray, NumberRows, float], GroupMaps]
    # Whether the maps remove the disparity completely, whatever the limit is. Moving predictions
    # only a share of the way may then be enough
    goes_part_way: bool = False
    # If all predictions are shrunk to their mean, the disparity shrinks by the same factor
    # ("alike"), vanishes only when all predictions are equal ("end"), or stays ("never")
    shrinking: Literal["alike", "end", "never"] = "never"


NUMBER_MAPS: dict[type[Constraint], NumberMaps] = {
    Wasserstein: NumberMaps(barycentre_maps, True, "alike"),
    Kolmogorov: NumberMaps(band_around_barycentre, False, "end"),
    MeanScoreParity: NumberMaps(shifts_of_means, False, "alike"),
    MeanResidualParity: NumberMaps(lambda z, rows, a: shifts_of_means(z - rows.targets, rows, a)),
    LossParity: NumberMaps(lines_of_losses),
}
# If the groups are estimated, these replace the maps above. Rows are then moved by a mean of maps,
# which is a small move, so a band would hardly bring the groups together.
WITHOUT_GROUPS = {Kolmogorov: NumberMaps(barycentre_maps, True, "end")}
# If the maps above miss a limit, these are tried as well. They merge whole blocks of tied rows, at
# worst into one value for everybody.
WITH_MANY_TIES = {Kolmogorov: NumberMaps(merged_ties, False, "end")}


class Step(NamedTuple):
    """Maps of the groups of one attribute, and how far rows go along them."""

    attribute: int  # number of the attribute
    maps: GroupMaps
    share: float  # 0: rows stay, 1: rows go where the maps say

    def __call__(self, values: FloatArray, groups: IntArray | FloatArray) -> FloatArray:
        """Return the moved values, given the groups of the attribute or their probabilities."""
        moved = expected(self.maps, values, groups)
        return moved if self.share == 1 else values + self.share * (moved - values)


class Moved(NamedTuple):
    """Steps, and the predictions after them."""

    steps: list[Step]
    values: FloatArray  # (n_samples,): the predictions
    gaps: FloatArray  # (n_attributes,): disparity of each attribute
    # The largest disparity minus its limit: at most 0 if all limits are satisfied
    excess: float
    error: float  # mean squared error of the predictions

    def is_better_than(self, other: Moved, least: float = 0.0) -> bool:
        """Whether limits are missed by less, or all are satisfied and the error is smaller.

        "Less" and "smaller" are by at least the share ``least``.
        """
        if max(self.excess, other.excess) <= 0:
            return self.error < other.error * (1 - least)
        return max(self.excess, 0.0) < max(other.excess, 0.0) * (1 - least)


class NumberTask(NamedTuple):
    """What :func:`find_steps` has to solve: rows, constraint and limits."""

    constraint: Constraint
    limits: Sequence[float | None]  # the limit of each attribute; None if it has none
    targets: FloatArray
    groups: GroupEncoding
    weights: FloatArray | None
    # Estimated probabilities of the groups of each attribute, (n_samples, n_groups) each; None if
    # predictions may use the groups themselves
    chances: Sequence[FloatArray] | None
    merges_ties: bool = False  # whether maps are the ones of ``WITH_MANY_TIES``

    def gap(self, attribute: int, values: FloatArray) -> float:
        """Return the disparity of one attribute, measured by the metric of the constraint.

        It is 0 for an attribute with a single group, which limits nothing.
        """
        groups = self.groups.of_attribute(attribute)
        if groups.is_vacuous:
            return 0.0
        columns = {"sensitive_features": groups, "sample_weight": self.weights}
        measure = getattr(metrics, str(self.constraint.metric))
        options = self.constraint.metric_options("squared_error")
        return float(measure(self.targets, values, **columns, **options))

    @property
    def number_maps(self) -> NumberMaps:
        """The maps for the constraint, which may be others if groups are estimated."""
        kind = type(self.constraint)
        if self.merges_ties:
            return WITH_MANY_TIES[kind]
        is_other = self.chances is not None and kind in WITHOUT_GROUPS
        return WITHOUT_GROUPS[kind] if is_other else NUMBER_MAPS[kind]

    def rows(self, attribute: int) -> NumberRows:
        """Return the rows with their groups by one attribute."""
        groups = self.groups.of_attribute(attribute)
        chances = None if self.chances is None else self.chances[attribute]
        return NumberRows(self.targets, groups.codes[0], groups.n_groups, self.weights, chances)

    def step(
        self,
        attribute: int,  # the attribute whose groups are brought together
        values: FloatArray,  # the predictions so far
        gap: float,  # disparity of these groups, which is above the limit
        room: float,  # share of the limit by which the step aims below it
    ) -> tuple[Step, FloatArray, float]:
        """Return a step of one attribute, the moved values and their disparity.

        The disparity may still be above the limit if groups are estimated. If maps go part of the
        way, regula falsi looks for the smallest share that is enough. It draws a straight line
        between the disparity at a share that is too small and at one that is enough, and tries the
        share at which the line has the wanted disparity. The Wasserstein distance is convex along
        the way, so this share is always enough. For the Kolmogorov-Smirnov distance it may be too
        small. Then the next line begins at this share.
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
        # The share ``short`` is too small. ``share`` is enough and leads to the values ``part``.
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
        """Evaluate predictions that ``steps`` have led to; ``gaps`` are measured if not given."""
        if gaps is None:
            gaps = np.array([self.gap(a, values) for a in range(len(self.limits))])
        error = float(np.average((values - self.targets) ** 2, weights=self.weights))
        return Moved([*steps], values, gaps.copy(), self.excess(gaps, values), error)

    def shrunk(self, moved: Moved) -> Moved | None:
        """Return the predictions shrunk towards the mean of the targets, or None.

        Predictions are *poor* if their error is larger than the error of the mean. There are two
        reasons to shrink, and the result is None if neither applies:

        - If limits are violated, and groups are estimated or predictions poor, predictions are
          shrunk until the limits are satisfied.
        - Poor predictions are shrunk at least to the multiple that has the least error. They become
          the mean itself if shrinking does not make the disparity smaller.
        """
        values, targets = moved.values, self.targets
        mean, middle = (float(np.average(v, weights=self.weights)) for v in (targets, values))
        is_poor = moved.error > np.average((targets - mean) ** 2, weights=self.weights)
        # Factors that bring each violated disparity to its limit, if it shrinks like predictions.
        factors = [
            limit * (1 - SUM_ROUNDING) / gap
            for limit, gap in zip(self.limits, moved.gaps, strict=True)
            if limit is not None and gap > limit and moved.excess > 0
        ]
        # Distances from the mean are multiplied by ``left``.
        shrinking, left = self.number_maps.shrinking, 1.0
        if factors and (self.chances is not None or is_poor):
            left = min(factors) if shrinking == "alike" else 0.0
        if is_poor:
            around = values - middle
            common, spread = (
                np.average(around * v, weights=self.weights) for v in (targets, around)
            )
            best = float(np.clip(common / spread, 0.0, 1.0)) if spread > 0 else 0.0
            left = 0.0 if shrinking == "never" else min(left, best)
        if left == 1.0:
            return None
        # A step of the first attribute whose map is the mean for all groups, so that it does not
        # matter which group a row has.
        n_groups = int(self.groups.offsets[1])
        ends, to_mean = np.array([-FAR, FAR]), np.full(2, mean)
        maps = GroupMaps(np.zeros(n_groups), [ends] * n_groups, [to_mean] * n_groups)
        step = Step(0, maps, 1.0 - left)
        shrunk = step(values, np.zeros(values.size, np.int64))
        return self.moved([*moved.steps, step], shrunk)

    def excess(self, gaps: FloatArray, values: FloatArray) -> float:
        """Return the largest disparity minus its limit, and at most 0 if that is only rounding.

        It is -inf if no attribute has a limit.
        """
        pairs = zip(gaps, self.limits, strict=True)
        excess = max((gap - limit for gap, limit in pairs if limit is not None), default=-np.inf)
        return excess if excess > ROUNDING * float(np.abs(values).max()) else min(excess, 0.0)


def find_steps(start: Moved, task: NumberTask) -> Moved:
    """Move predictions until all limits are satisfied or nothing is gained; return the best.

    After each round, the predictions and what :meth:`NumberTask.shrunk` makes of them are both
    candidates. If the other columns say little about the groups, shrinking costs less accuracy than
    many rounds. The next round starts from the predictions that are not shrunk. If known groups
    remain beyond a limit because many rows are tied, rounds that merge ties follow.
    """
    best = _best_of_rounds(start, task)
    if best.excess > 0 and task.chances is None and type(task.constraint) in WITH_MANY_TIES:
        merged = _best_of_rounds(start, task._replace(merges_ties=True))
        best = merged if merged.is_better_than(best) else best
    return best


def _best_of_rounds(start: Moved, task: NumberTask) -> Moved:
    """Make rounds, and return the best of the start and of their candidates."""
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
    """Return how many rounds may help: one, if a single step reaches its limit for certain."""
    takes_turns = task.chances is not None or len(task.limits) > 1
    # With one known attribute, further rounds only leave more room for rounding. Steps that go part
    # of the way need no room, and if the limit is 0 the room is 0 as well.
    needs_room = not task.number_maps.goes_part_way and bool(task.limits[0])
    return ROUNDS if takes_turns or needs_room else 1


def _round(moved: Moved, task: NumberTask, room: float) -> Moved:
    """Take one step for each attribute whose limit is violated when its turn comes."""
    steps, values, gaps = [*moved.steps], moved.values, moved.gaps.copy()
    for a, limit in enumerate(task.limits):
        if limit is None or gaps[a] <= limit:
            continue
        step, values, gap = task.step(a, values, gaps[a], room)
        steps.append(step)
        gaps = np.array([gap if b == a else task.gap(b, values) for b in range(gaps.size)])
    return task.moved(steps, values, gaps)
