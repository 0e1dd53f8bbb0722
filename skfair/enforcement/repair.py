r"""Repair: one monotone map of the scores per group, so that a rule within an interval is kept.

Fairness within an interval is a property of the distributions of the scores. Where the group is
known at prediction, any monotone map per group may be applied, and what the rule costs is decided
by the rates of positive decisions alone. So repair has two steps, each exact on the given rows:

1. *Cuts.* If the shares of the interval above the decision threshold differ by more than the
   tolerance, each group gets a threshold of its own: those of highest accuracy among all that keep
   the shares within the tolerance of each other (:func:`choose_cuts`, a sweep over windows).
2. *Bands.* With thresholds moved to 0, let F_k(theta) be the share of group k's interval above
   theta and H the middle between the largest and the smallest of them. Scores are moved no further
   than needed to have :math:`|F_k - H| \le \kappa / 2` everywhere, which puts any two groups within
   :math:`\kappa`. For a row that owns the shares [a, b] this is an interval of scores,

   .. math:: \inf\{\theta: H(\theta) \le a + \kappa / 2\} \le \text{score} \le
             \sup\{\theta: H(\theta) \ge b - \kappa / 2\}

   so the guarantee holds for every row, with ties and weights; decisions do not change, and scores
   that already keep the rule stay as they are.

A block of tied scores moves as a whole. One that owns more than its band is put where H passes the
middle of its share, so that it is half of it away from H on both sides; then the tolerance can be
missed, by no more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.groups.intervals import Intervals

# Shares are sums of many floating-point numbers.
ROUNDING = 1e-12
# Largest number of steps of the sweep over windows; beyond it, windows are tried on a grid.
_MOST_STEPS = 100_000_000
# Cuts per group, and windows per class, that are tried where two rates are bounded at once.
_MOST_CUTS, _GRID = 4096, 200


class Blocks(NamedTuple):
    """The distinct scores of one group, in descending order.

    Attributes
    ----------
    scores : ndarray of shape (n_blocks,)
        The scores.
    ends : ndarray of shape (n_blocks + 1,)
        Share of the group's weight above each cut; a cut after j blocks puts j of them above.
    gains : ndarray of shape (n_blocks + 1,)
        Weight of positive minus that of negative rows above each cut, as a share of all rows.
    positive, negative : ndarray of shape (n_blocks + 1,)
        Share of the group's positives, and of its negatives, above each cut.
    """

    scores: FloatArray
    ends: FloatArray
    gains: FloatArray
    positive: FloatArray
    negative: FloatArray


def score_blocks(
    scores: FloatArray,
    codes: IntArray,
    n_groups: int,
    targets: FloatArray,
    weights: FloatArray | None = None,
    min_gap: float = 0.0,
) -> list[Blocks]:
    """Sort the scores of each group and merge those that are closer than ``min_gap``.

    Parameters
    ----------
    scores, codes, targets : ndarray of shape (n_samples,)
        Scores, groups and classes (-1 and 1) of the rows.
    n_groups : int
        Number of groups.
    weights : ndarray of shape (n_samples,), default=None
        Weights of the rows.
    min_gap : float, default=0.0
        Scores that are not further apart count as tied.

    Returns
    -------
    blocks : list of Blocks
        One per group. O(n log n).
    """
    order = np.lexsort((-scores, codes))
    bounds = np.searchsorted(codes[order], np.arange(n_groups + 1))
    total = float(scores.size if weights is None else weights.sum())
    out = []
    for start, stop in pairwise(bounds.tolist()):
        rows = order[start:stop]
        mine = scores[rows]
        mass = np.ones(rows.size) if weights is None else weights[rows]
        is_last = np.append(mine[:-1] - mine[1:] > min_gap, True)
        is_positive = targets[rows] > 0

        def above(values: FloatArray, ends: NDArray[np.bool_] = is_last) -> FloatArray:
            return np.concatenate([[0.0], np.cumsum(values)[ends]])

        all_above, positives = above(mass), above(mass * is_positive)
        negatives = all_above - positives
        out.append(
            Blocks(
                mine[is_last],
                _shares(all_above),
                (positives - negatives) / total,
                _shares(positives),
                _shares(negatives),
            )
        )
    return out


def _shares(above: FloatArray) -> FloatArray:
    """Divide by the last entry, which becomes exactly 1."""
    return above / above[-1] if above[-1] > 0 else above


@dataclass
class GroupMaps:
    """One monotone map per group: straight between its knots and parallel beyond them.

    Scores that only move with the threshold of their group do so in one subtraction, and rows
    between two knots stay between them, to the last bit: order and ties are not left to rounding.

    Parameters
    ----------
    thresholds : ndarray of shape (n_groups,)
        What is moved to 0.
    before, after : list of ndarray
        For each group its knots: rising scores, and what they become.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.enforcement.repair import GroupMaps
    >>> maps = GroupMaps(np.array([1.0]), [np.array([1.0, 2.0])], [np.array([0.0, 0.5])])
    >>> maps(np.array([0.5, 1.5, 4.0]), np.array([0, 0, 0]))
    array([-0.5 ,  0.25,  2.5 ])
    """

    thresholds: FloatArray
    before: list[FloatArray]
    after: list[FloatArray]

    def __call__(self, scores: FloatArray, codes: IntArray) -> FloatArray:
        """Return the mapped scores of rows whose groups are given, O(n log n_knots)."""
        out = np.empty(scores.size)
        for g, (x, y) in enumerate(zip(self.before, self.after, strict=True)):
            rows = np.flatnonzero(codes == g)
            out[rows] = _mapped(scores[rows], x, y, self.thresholds[g])
        return out


def _mapped(z: FloatArray, x: FloatArray, y: FloatArray, threshold: float) -> FloatArray:
    """Apply one map with the knots (x, y)."""
    above = np.searchsorted(x, z)  # the first knot that is not below
    right = np.minimum(above, x.size - 1)
    left = np.maximum(np.where(x[right] == z, above, above - 1), 0)
    moves_along = y == x - threshold
    width = x[right] - x[left]
    part = np.where(width > 0, (z - x[left]) / np.where(width > 0, width, 1.0), 0.0)
    inside = np.clip(y[left] + part * (y[right] - y[left]), y[left], y[right])
    beyond = z - np.clip(z, x[0], x[-1])
    return np.where(moves_along[left] & moves_along[right], z - threshold, inside + beyond)


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
        threshold = _halfway(threshold, min(above, default=threshold + 2 * _beyond(all_scores)))
    return Cuts(np.array(counts), np.full(len(blocks), float(threshold)))


def choose_cuts(
    blocks: Sequence[Blocks],
    levels: Sequence[Sequence[FloatArray]],
    tolerance: float,
    threshold: float | None,
) -> Cuts:
    """Return the most accurate cuts whose levels are within the tolerance of each other.

    Parameters
    ----------
    blocks : sequence of Blocks
        Distinct scores of each group.
    levels : sequence of sequences of ndarray
        One or two rules: for each group what is compared, at every cut (not falling).
    tolerance : float
        Largest difference of two groups.
    threshold : float or None
        A common threshold that is kept if the rule allows it.

    Returns
    -------
    cuts : Cuts
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
    middles = [_between(one.scores, j) for one, j in zip(blocks, counts, strict=True)]
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
        best, where = _range_maxima(gains[g][kept[g]], first, last)
        total += best
        chosen.append(kept[g][where])
    best_window = np.unravel_index(np.argmax(total), total.shape)
    return np.array([where[best_window] for where in chosen])


def _range_maxima(
    values: FloatArray, first: IntArray, last: IntArray
) -> tuple[FloatArray, IntArray]:
    """Return the largest of values[first:last] and its place; -inf for empty ranges."""
    tables = [np.arange(values.size)]
    while 2 ** len(tables) <= values.size:
        half = 2 ** (len(tables) - 1)
        one, other = tables[-1][:-half], tables[-1][half:]
        tables.append(np.where(values[one] >= values[other], one, other))
    length = np.maximum(last - first, 1)
    power = np.frexp(length.astype(np.float64))[1] - 1
    is_empty = last <= first
    one, other = np.zeros_like(first), np.zeros_like(first)
    for k, table in enumerate(tables):
        here = (power == k) & ~is_empty
        one[here] = table[first[here]]
        other[here] = table[last[here] - 2**k]
    place = np.where(values[one] >= values[other], one, other)
    return np.where(is_empty, -np.inf, values[place]), place


def _between(scores: FloatArray, count: int) -> float:
    """Return a threshold with exactly ``count`` of the (descending) scores above it."""
    beyond = _beyond(scores)
    if count == 0:
        return float(scores[0]) + beyond
    if count == scores.size:
        return float(scores[-1]) - beyond
    return _halfway(float(scores[count]), float(scores[count - 1]))


def _halfway(low: float, high: float) -> float:
    """Return a number in [low, high): the middle of neighbours may round to the upper one."""
    middle = 0.5 * (low + high)
    return middle if middle < high else low


def shift_maps(blocks: Sequence[Blocks], thresholds: FloatArray) -> GroupMaps:
    """Return the maps that move the threshold of each group to 0."""
    knots = [one.scores[:1].copy() for one in blocks]
    after = [x - t for x, t in zip(knots, thresholds, strict=True)]
    return GroupMaps(np.asarray(thresholds, dtype=np.float64), knots, after)


def band_maps(
    blocks: Sequence[Blocks],
    thresholds: FloatArray,
    intervals: Intervals,
    tolerance: float,
    *,
    margin: float = 0.0,
    n_knots: int | None = None,
) -> tuple[GroupMaps, float]:
    """Move scores as little as needed for the shares of all groups to agree at every score.

    Parameters
    ----------
    blocks : sequence of Blocks
        Distinct scores of each group.
    thresholds : ndarray of shape (n_groups,)
        What is moved to 0.
    intervals : Intervals
        The percentile intervals.
    tolerance : float
        Largest difference of shares.
    margin : float, default=0.0
        How much smaller it is made away from the threshold, where that costs no accuracy, so that
        the noise of new rows finds room.
    n_knots : int, default=None
        Largest number of knots of a map; None for as many as it takes to be exact.

    Returns
    -------
    maps : GroupMaps
        The maps.
    tolerance : float
        What is kept at least: the tolerance, or the largest block of ties if that is more.
        O(n log n + n G).
    """
    owned = [
        _owned(one, intervals.share(one.ends, g), t)
        for g, (one, t) in enumerate(zip(blocks, thresholds, strict=True))
    ]
    points, middle = _middle(owned)
    half = _half_widths(points, middle, tolerance, margin)
    new = [_band(one, points, middle, half) for one in owned]
    largest = max(float((one.ends - one.starts).max()) for one in owned)
    knots = [
        _knots(one, after, t, n_knots) for one, after, t in zip(owned, new, thresholds, strict=True)
    ]
    before, after = ([pair[k] for pair in knots] for k in (0, 1))
    maps = GroupMaps(np.asarray(thresholds, dtype=np.float64), before, after)
    return maps, max(tolerance, largest)


class _Owned(NamedTuple):
    """The blocks of one group that own a share of its interval, in descending order."""

    before: FloatArray  # their scores
    scores: FloatArray  # their scores when the threshold is moved to 0
    starts: FloatArray  # share of the interval above each block
    ends: FloatArray  # share above and in it


def _owned(blocks: Blocks, share: FloatArray, threshold: float) -> _Owned:
    owns = share[1:] > share[:-1]
    before = blocks.scores[owns]
    return _Owned(before, before - threshold, share[:-1][owns], share[1:][owns])


def _middle(owned: Sequence[_Owned]) -> tuple[FloatArray, FloatArray]:
    """Return the scores at which shares change, and 0, descending; and H above and below each."""
    from skfair._kernels.repair import middle_levels

    scores = np.concatenate([one.scores for one in owned])
    groups = np.repeat(np.arange(len(owned)), [one.scores.size for one in owned])
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    is_last = np.append(scores[1:] != scores[:-1], True)
    middle = np.empty(np.count_nonzero(is_last))
    levels = np.concatenate([one.ends for one in owned])[order]
    middle_levels(levels, groups[order], is_last, len(owned), middle)
    points, middle = scores[is_last], np.append(0.0, middle)
    # 0 is a point of its own, so that no score is put on its other side.
    place = int(np.searchsorted(-points, 0.0))
    if place == points.size or points[place] != 0.0:
        points = np.insert(points, place, 0.0)
        middle = np.insert(middle, place, middle[place])
    return points, middle


def _half_widths(
    points: FloatArray, middle: FloatArray, tolerance: float, margin: float
) -> FloatArray:
    """Return how far shares may be from H: half the tolerance at 0, less elsewhere."""
    margin = min(margin, tolerance)
    at_zero = middle[int(np.searchsorted(-points, 0.0))]
    if not margin or not 0 < at_zero < 1:
        return np.full(middle.size, 0.5 * (tolerance - margin))
    # A tent; no side is so short that its width changes faster than H itself.
    side = np.where(middle < at_zero, max(at_zero, margin), max(1 - at_zero, margin))
    nearness = np.maximum(1 - np.abs(middle - at_zero) / side, 0.0)
    return 0.5 * (tolerance - margin * (1 - nearness))


def _band(owned: _Owned, points: FloatArray, middle: FloatArray, half: FloatArray) -> FloatArray:
    """Return the new scores of the blocks of one group.

    ``middle[m]`` is H on [points[m], points[m - 1]), so a score may lie in (or at the ends of) the
    gaps numbered from its upper to its lower one; a score that has to move goes to the middle of
    the outermost gap, where rounding cannot carry it across a point.
    """
    half = half + ROUNDING
    # H + half and H - half both rise, since half changes less than H does.
    upper = np.searchsorted(middle + half, owned.ends, side="left")  # sup is points[upper - 1]
    lower = np.searchsorted(middle - half, owned.starts, side="right") - 1  # inf is points[lower]
    # A block that owns more than its band goes where H passes its middle.
    center = 0.5 * (owned.starts + owned.ends)
    is_large = lower + 1 < upper
    upper = np.where(is_large, np.searchsorted(middle, center - ROUNDING, side="left"), upper)
    lower = np.where(is_large, np.searchsorted(middle, center + ROUNDING, side="right") - 1, lower)
    beyond = _beyond(points)
    tops = np.append(points[0] + 2 * beyond, points)
    bottoms = np.append(points, points[-1] - 2 * beyond)
    gaps = 0.5 * (tops + bottoms)
    highest = np.append(np.inf, points)[upper]
    lowest = np.append(points, -np.inf)[lower]
    new = np.where(owned.scores > highest, gaps[upper], owned.scores)
    new = np.where(owned.scores < lowest, gaps[lower], new)
    new = np.where(lowest >= highest, highest, new)  # a single point is left
    # Large blocks of all groups meet in the middle of their gap, on their side of 0.
    is_positive = owned.scores > 0
    low = np.where(is_large & is_positive, np.maximum(lowest, 0.0), lowest)
    high = np.where(is_large & ~is_positive, np.minimum(highest, 0.0), highest)
    new = np.where(is_large, 0.5 * (low + high), new)
    return np.minimum.accumulate(new)


def _beyond(scores: FloatArray) -> float:
    """Return a distance that is small but not nothing, on the scale of the scores."""
    return max(1e-3 * float(np.ptp(scores)), 1e-9 * float(np.abs(scores).max())) or 1e-6


def _knots(
    owned: _Owned, new: FloatArray, threshold: float, n_knots: int | None
) -> tuple[FloatArray, FloatArray]:
    """Return the knots of a map, rising: blocks that own a share, and the threshold.

    Rows that own none lie between, or move in parallel with the outermost; so they stay in order,
    and no clump of ties arises at the ends of the interval.
    """
    kept = np.arange(new.size)
    if new.size > 2:
        is_moved = new != owned.scores
        alike = (is_moved[1:] == is_moved[:-1]) & (~is_moved[1:] | (new[1:] == new[:-1]))
        kept = np.flatnonzero(np.concatenate([[True], ~(alike[:-1] & alike[1:]), [True]]))
    if n_knots is not None and kept.size > n_knots - 1:
        # Even in the shares of the interval, where the map has to be exact; both ends stay.
        covered = owned.ends[kept]
        wanted = np.linspace(covered[0], covered[-1], max(2, n_knots - 1))
        kept = kept[np.unique(np.searchsorted(covered, wanted).clip(0, kept.size - 1))]
    before, after = owned.before[kept][::-1], new[kept][::-1]
    place = int(np.searchsorted(before, threshold))
    if place < before.size and before[place] == threshold:
        return before.copy(), after.copy()
    return np.insert(before, place, threshold), np.insert(after, place, 0.0)
