r"""Repair: one monotone map of the scores per group that satisfies a limit within an interval.

:func:`skfair.partial_parity.prediction.settled` calls :func:`repair_scores` at the end of a fit if
predictions may use the group. Fairness within an interval is a property of the distributions of
the scores, so any monotone map per group may be applied. The loss of accuracy depends only on the
rates of positive decisions. So repair has two steps, each exact on the given rows:

1. *Cuts.* If the shares of the interval above the decision threshold differ by more than the
   tolerance, each group gets a threshold of its own. These are the most accurate thresholds with
   shares that differ by at most the tolerance (:mod:`skfair.partial_parity.thresholds`).
2. *Bands.* With thresholds moved to 0, let F_k(theta) be the share of group k's interval above
   theta, H(theta) the middle between the largest and the smallest of them, and kappa the
   tolerance. Scores are moved no further than needed to have :math:`|F_k - H| \le \kappa / 2`
   everywhere, which puts any two groups within :math:`\kappa`. For a row that *owns* the shares
   [a, b] of the interval (a above it, b with it) this is an interval of scores, its band,

   .. math:: \inf\{\theta: H(\theta) \le a + \kappa / 2\} \le \text{score} \le
             \sup\{\theta: H(\theta) \ge b - \kappa / 2\}

   so the guarantee holds for every row, with ties and weights. Decisions do not change, and scores
   that already satisfy the constraint stay as they are.

Constraints on decisions need the first step only.

A block of tied scores moves as a whole. If a block owns such a large share that its band is empty,
it is put where H passes the middle of its share. Then its ends are half of the share away from H,
and the tolerance can be missed by at most that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.cuts import Blocks, score_blocks
from skfair.enforcement.group_maps import GroupMaps
from skfair.groups.intervals import Intervals
from skfair.partial_parity.promise import Promise
from skfair.partial_parity.thresholds import choose_cuts, small_distance
from skfair.utils.rounding import ROUNDING
from skfair.utils.threads import for_groups
from skfair.utils.warn import warn_user

_BISECTIONS = 12  # steps of the search for the widest bands
# If groups are compared at thresholds, bands may have to be narrower than the bound. At most
# _NARROWER widths are tried, each the previous one times bound / disparity times _LESS.
_NARROWER, _LESS = 4, 0.98


def shift_maps(blocks: Sequence[Blocks], thresholds: FloatArray) -> GroupMaps:
    """Return maps that only subtract the threshold of each group."""
    knots = [block.scores[:1].copy() for block in blocks]
    after = [x - t for x, t in zip(knots, thresholds, strict=True)]
    return GroupMaps(np.asarray(thresholds, dtype=np.float64), knots, after)


def band_maps(
    blocks: Sequence[Blocks],  # distinct scores of each group
    thresholds: FloatArray,  # (n_groups,): the scores that are moved to 0
    intervals: Intervals,  # the percentile intervals
    tolerance: float,  # largest difference of shares
) -> tuple[GroupMaps, float]:
    """Return maps that move scores as little as needed for shares to agree at every score (step 2).

    The second result is the guaranteed disparity: the tolerance, or the largest share of a block of
    ties if that is more. The cost is O(n log n + n G) for G groups.
    """
    owned = [
        _owned(block, intervals.share(block.ends, g), t)
        for g, (block, t) in enumerate(zip(blocks, thresholds, strict=True))
    ]
    points, middle = _middle(owned)
    half = 0.5 * tolerance + ROUNDING
    new = for_groups(lambda block: _band(block, points, middle, half), owned, middle.size)
    largest = max(float((block.ends - block.starts).max()) for block in owned)
    knots = [
        _knots(block, after, t) for block, after, t in zip(owned, new, thresholds, strict=True)
    ]
    before, after = ([pair[k] for pair in knots] for k in (0, 1))
    maps = GroupMaps(np.asarray(thresholds, dtype=np.float64), before, after)
    return maps, max(tolerance, largest)


class _Owned(NamedTuple):
    """The blocks of tied scores of one group that own a share of its interval, descending."""

    before: FloatArray  # scores of the blocks
    scores: FloatArray  # scores of the blocks if the threshold is moved to 0
    starts: FloatArray  # share of the interval above each block
    ends: FloatArray  # share of the interval above and in each block


def _owned(blocks: Blocks, share: FloatArray, threshold: float) -> _Owned:
    """Return the blocks that own a share; ``share`` is the share of the interval above each cut."""
    owns = share[1:] > share[:-1]
    before = blocks.scores[owns]
    return _Owned(before, before - threshold, share[:-1][owns], share[1:][owns])


def _middle(owned: Sequence[_Owned]) -> tuple[FloatArray, FloatArray]:
    """Return the points and H between them, (n_points,) and (n_points + 1,).

    Points are the scores at which shares change, and 0, descending. Entry m of H is its value on
    [points[m], points[m - 1]): the first one is above all points, the last one below all.
    """
    from skfair.partial_parity._kernels.middle_levels import middle_levels

    scores = np.concatenate([block.scores for block in owned])
    groups = np.repeat(np.arange(len(owned)), [block.scores.size for block in owned])
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    is_last = np.append(scores[1:] != scores[:-1], True)
    middle = np.empty(np.count_nonzero(is_last))
    levels = np.concatenate([block.ends for block in owned])[order]
    middle_levels(levels, groups[order], is_last, len(owned), middle)
    points, middle = scores[is_last], np.append(0.0, middle)
    # 0 is always a point, so that no score is moved to the other side of it.
    place = int(np.searchsorted(-points, 0.0))
    if place == points.size or points[place] != 0.0:
        points = np.insert(points, place, 0.0)
        middle = np.insert(middle, place, middle[place])
    return points, middle


def _band(owned: _Owned, points: FloatArray, middle: FloatArray, half: float) -> FloatArray:
    """Return the new scores of the blocks of one group.

    ``half`` is half the tolerance. *Gap* m is [points[m], points[m - 1]), on which H is
    ``middle[m]``, which rises with m. The band of a block consists of the gaps from ``upper``, the
    one with the highest scores, to ``lower``. A score outside the band moves to the middle of the
    nearest of these gaps, so that rounding cannot carry it across a point.
    """
    upper = np.searchsorted(middle + half, owned.ends, side="left")  # sup is points[upper - 1]
    lower = np.searchsorted(middle - half, owned.starts, side="right") - 1  # inf is points[lower]
    # A block with an empty band moves to the place where H passes the middle of its share.
    center = 0.5 * (owned.starts + owned.ends)
    is_large = lower + 1 < upper
    upper = np.where(is_large, np.searchsorted(middle, center - ROUNDING, side="left"), upper)
    lower = np.where(is_large, np.searchsorted(middle, center + ROUNDING, side="right") - 1, lower)
    outside = small_distance(points)
    tops = np.append(points[0] + 2 * outside, points)
    bottoms = np.append(points, points[-1] - 2 * outside)
    gaps = 0.5 * (tops + bottoms)
    highest = np.append(np.inf, points)[upper]
    lowest = np.append(points, -np.inf)[lower]
    new = np.where(owned.scores > highest, gaps[upper], owned.scores)
    new = np.where(owned.scores < lowest, gaps[lower], new)
    new = np.where(lowest >= highest, highest, new)  # the band is a single point
    # Blocks with an empty band move to the middle of their gap, so that those of different groups
    # get the same score. They stay on their side of 0, so that decisions do not change.
    is_positive = owned.scores > 0
    low = np.where(is_large & is_positive, np.maximum(lowest, 0.0), lowest)
    high = np.where(is_large & ~is_positive, np.minimum(highest, 0.0), highest)
    new = np.where(is_large, 0.5 * (low + high), new)
    return np.minimum.accumulate(new)


def _knots(owned: _Owned, new: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray]:
    """Return the knots (before, after) of the map of a group, rising, with its threshold.

    Knots are blocks that own a share. Other rows lie between two knots, or move in parallel with
    the outermost knot. So rows keep their order, and are not all tied at an end of the interval.
    """
    # A block is left out if it and both neighbours are not moved, or all move to the same score.
    kept = np.arange(new.size)
    if new.size > 2:
        is_moved = new != owned.scores
        alike = (is_moved[1:] == is_moved[:-1]) & (~is_moved[1:] | (new[1:] == new[:-1]))
        kept = np.flatnonzero(np.concatenate([[True], ~(alike[:-1] & alike[1:]), [True]]))
    before, after = owned.before[kept][::-1], new[kept][::-1]
    place = int(np.searchsorted(before, threshold))
    if place < before.size and before[place] == threshold:
        return before.copy(), after.copy()
    return np.insert(before, place, threshold), np.insert(after, place, 0.0)


def repair_scores(
    promise: Promise,  # what is limited; the groups must not overlap
    scores: FloatArray,  # (n_samples,): scores of the rows of the promise
    *,
    min_gap: float = 0.0,  # scores that are closer count as tied
) -> tuple[GroupMaps, float]:
    """Return monotone maps of the groups, and the disparity that they guarantee.

    This is the bound of the promise, or with a warning a larger number if ties make the bound
    impossible. The cost is O(n log n + n G) for G groups.
    """
    groups, codes = promise.groups, promise.groups.codes[0]
    blocks = score_blocks(scores, codes, groups.n_groups, promise.targets, promise.weights, min_gap)
    levels = _levels(promise, blocks)
    if promise.constraint.ranked.limits_decisions or groups.n_groups == 1:
        cuts = choose_cuts(blocks, levels, promise.tolerance, 0.0).thresholds
        return shift_maps(blocks, cuts), promise.bound

    as_they_are = promise.measure(scores)
    unmoved = shift_maps(blocks, np.zeros(groups.n_groups))
    if as_they_are <= promise.bound:
        return unmoved, promise.bound

    def bands(tolerance: float) -> tuple[GroupMaps, float]:
        """Return the maps of both steps for a tolerance, and the disparity measured after them."""
        cuts = choose_cuts(blocks, levels, tolerance, 0.0).thresholds
        maps, _ = band_maps(blocks, cuts, promise.intervals, tolerance)
        return maps, promise.measure(maps(scores, codes))

    tolerance = promise.tolerance
    if not promise.constraint.ranked.is_share:
        tolerance = _widest(bands, promise.bound)
    maps, kept = bands(tolerance)
    # Bands guarantee the bound at every score of these rows. At thresholds between scores, groups
    # may still differ by one or two rows more.
    if promise.compares_thresholds:
        for _ in range(_NARROWER):
            if kept <= promise.bound + ROUNDING:
                break
            tolerance *= _LESS * promise.bound / kept
            maps, kept = min((maps, kept), bands(tolerance), key=lambda one: one[1])
    if as_they_are < kept > promise.bound + ROUNDING:  # ties can make maps increase the disparity
        maps, kept = unmoved, as_they_are
    if kept <= promise.bound + ROUNDING:
        return maps, promise.bound
    warn_user(
        f"Because of ties, the {promise.name} disparity of the training data cannot be smaller "
        f"than {kept:.4g}, but max_disparity={promise.bound:g} was requested. Finer scores, a "
        "longer interval or merged groups would help."
    )
    return maps, kept


def _widest(bands: Callable[[float], tuple[GroupMaps, float]], bound: float) -> float:
    """Return the largest tolerance, found by bisection, whose bands satisfy a bound.

    For group AUCs the bound itself is such a tolerance, and mostly larger ones are, too.
    """
    low, high = bound, 1.0
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if bands(middle)[1] <= bound else (low, middle)
    return low


def _levels(promise: Promise, blocks: Sequence[Blocks]) -> list[list[FloatArray]]:
    """Return the level of each cut, the share of the interval above it, by comparison and group.

    There is a comparison for each class on which the constraint depends, or a single one if it does
    not depend on classes. A single group has levels of 0, because there is nothing to compare with.
    """
    share, classes = promise.intervals.share, promise.constraint.classes
    if len(blocks) == 1:
        return [[np.zeros(blocks[0].ends.size)]]
    if not classes:
        return [[share(block.ends, g) for g, block in enumerate(blocks)]]
    if promise.constraint.ranks_whole_groups:
        return [
            [_rates_inside(block, share(block.ends, g), c) for g, block in enumerate(blocks)]
            for c in reversed(classes)
        ]
    return [
        [share(block.positive if c else block.negative, g) for g, block in enumerate(blocks)]
        for c in reversed(classes)
    ]


def _rates_inside(blocks: Blocks, share: FloatArray, label: int) -> FloatArray:
    """Return the rate at each cut among the rows of a class whose rank in the group is inside.

    ``share`` is the share of the interval above each cut, and ``label`` 1 for the positive class.
    """
    size = np.diff(blocks.ends)
    part = np.divide(np.diff(share), size, out=np.zeros(size.size), where=size > 0)
    mass = part * np.diff(blocks.positive if label else blocks.negative)
    above = np.concatenate([[0.0], np.cumsum(mass)])
    return above / above[-1] if above[-1] > 0 else above
