"""Thresholds of groups: the most accurate ones whose rates are within a limit of each other.

Groups must be known, and must not overlap. A caller takes three steps:

1. It sorts the scores of each group, for example with :func:`score_blocks`. A threshold is a *cut*
   between two distinct scores. Cut j has the j highest of them above it.
2. It computes the *gain* of each cut (what all rows above it add to the objective) and the rates
   that are limited, as :class:`GroupCuts`.
3. It calls :func:`best_cuts`, which returns one cut per group.

:mod:`skfair.enforcement.decisions.windows` does this for decisions, and
:mod:`skfair.partial_parity.thresholds` for scores within intervals. The maps of
:mod:`skfair.enforcement.regression_maps` use the sorted scores only.

If the rates of all groups are within a limit of each other, they lie in a *window* of that length,
an interval that may begin at any of the rates. For one rate a sweep over all windows is exact. For
two rates (equalized odds) there is a pair of windows. The rates rise from cut to cut, so the cuts
of a group inside both windows are a range, and :class:`RangeMaxima` finds the largest gain in a
range at once. Branch and bound over pairs of windows asks it a few thousand times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.utils.rounding import ROUNDING
from skfair.utils.threads import for_groups


class Blocks(NamedTuple):
    """The distinct scores of one group, in descending order.

    A block holds the rows whose scores count as equal.
    """

    scores: FloatArray  # (n_blocks,): the lowest score of each block
    highest: FloatArray  # (n_blocks,): the highest score of each block
    # (n_blocks + 1,): share of the group's weight above each cut, from 0 to 1; cut j has the first
    # j blocks above it
    ends: FloatArray
    # (n_blocks + 1,): weight of positive minus that of negative rows above each cut, as a
    # share of all rows
    gains: FloatArray
    # (n_blocks + 1,): share of the group's positives, and of its negatives, above each cut
    positive: FloatArray
    negative: FloatArray


def score_blocks(
    scores: FloatArray,  # (n_samples,)
    codes: IntArray,  # (n_samples,): number of the group of each row
    n_groups: int,
    targets: FloatArray,  # (n_samples,): the classes, -1 and 1
    weights: FloatArray | None = None,  # (n_samples,): weights of the rows
    min_gap: float = 0.0,  # neighbours that are not further apart count as tied
) -> list[Blocks]:
    """Return the sorted scores of each group, neighbours within ``min_gap`` merged, O(n log n)."""
    from skfair._kernels.sorted_pairs import counting_sort

    starts = np.concatenate(([0], np.cumsum(np.bincount(codes, minlength=n_groups))))
    order = np.empty(codes.size, np.int64)
    counting_sort(codes, starts, order)
    total = float(scores.size if weights is None else weights.sum())

    def of_group(g: int) -> Blocks:
        rows = order[starts[g] : starts[g + 1]]
        if weights is not None and (counted := rows[weights[rows] > 0]).size:
            rows = counted  # rows of weight 0 make no cut, unless the group has no others
        rows = rows[np.argsort(-scores[rows], kind="stable")]
        mine = scores[rows]
        mass = np.ones(rows.size) if weights is None else weights[rows]
        is_last = np.append(mine[:-1] - mine[1:] > min_gap, True)
        is_positive = targets[rows] > 0

        def above(values: FloatArray) -> FloatArray:
            """Return the sum of the values above each cut."""
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
    """Return sums as shares of the last one, or as they are if that is 0."""
    return above / above[-1] if above[-1] > 0 else above


class Rate(NamedTuple):
    """A limited rate of one group, at every cut of the group."""

    # Rates of the groups with the same number have to lie in one window. -1 if the rate has a cap
    # instead and is compared with no other
    window: int
    # (n_cuts,): the rate at each cut, which does not fall from cut to cut. A rate that falls (such
    # as a false negative rate) is stored as minus the rate
    rising: FloatArray
    length: float  # length of the window, the same for all its groups; or the cap
    is_falling: bool = False  # whether ``rising`` is minus the rate; windows need not know


@dataclass(frozen=True, eq=False)
class GroupCuts:
    """The gain of each cut of a group, and its limited rates."""

    gains: FloatArray  # (n_cuts,): what all rows above the cut add to the objective
    rates: tuple[Rate, ...]

    def extent(self) -> tuple[int, int]:
        """Return the range of the cuts that all caps allow: its first, and the one after its last.

        The range is empty (first >= end) if the caps exclude each other.
        """
        first, end = 0, self.gains.size
        for rate in self.rates:
            if rate.window < 0 and rate.is_falling:
                first = max(first, int(np.searchsorted(rate.rising, -rate.length)))
            elif rate.window < 0:
                end = min(end, int(np.searchsorted(rate.rising, rate.length, side="right")))
        return first, end

    def rate(self, window: int) -> Rate | None:
        """Return the rate that belongs to a window; None if the window does not limit the group."""
        return next((rate for rate in self.rates if rate.window == window), None)


def best_cuts(groups: Sequence[GroupCuts]) -> list[int] | None:
    """Return the cuts with the largest total gain that are within all limits, one for each group.

    If no cuts are within the limits, the result is None. The groups may have rates of at most two
    windows. With one window this takes O(n G), for n cuts of G groups.
    """
    extents = [group.extent() for group in groups]
    if any(first >= end for first, end in extents):
        return None
    windows = sorted({rate.window for group in groups for rate in group.rates if rate.window >= 0})
    if not windows:
        return [_best_inside(group, *extent) for group, extent in zip(groups, extents, strict=True)]
    if len(windows) == 1:
        return _best_in_one_window(groups, extents, windows[0])
    return _best_in_two_windows(groups, extents, *windows)


def _best_inside(group: GroupCuts, first: int, end: int) -> int:
    """Return the cut of the largest gain in a range that is not empty."""
    return first + int(np.argmax(group.gains[first:end]))


def _best_in_one_window(
    groups: Sequence[GroupCuts], extents: Sequence[tuple[int, int]], window: int
) -> list[int] | None:
    """Return the best cuts, or None, by moving the window over all places where it may begin.

    Groups without a rate in the window get their best cut within their caps.
    """
    from skfair._kernels.cuts import best_cuts

    chosen = [_best_inside(group, *extent) for group, extent in zip(groups, extents, strict=True)]
    rates = [group.rate(window) for group in groups]
    limited = [g for g, rate in enumerate(rates) if rate is not None]
    parts = [slice(*extents[g]) for g in limited]
    levels = [rates[g].rising[part] for g, part in zip(limited, parts, strict=True)]  # type: ignore[union-attr]
    gains = [groups[g].gains[part] for g, part in zip(limited, parts, strict=True)]
    lows = np.unique(np.concatenate(levels))
    starts = np.cumsum([0, *(level.size for level in levels)])
    length = min(rate.length for rate in rates if rate is not None)
    cuts = np.zeros(len(limited), np.int64)
    arrays = np.concatenate(levels), np.concatenate(gains), starts
    if not np.isfinite(best_cuts(*arrays, lows, length, cuts)):
        return None
    for g, part, cut in zip(limited, parts, cuts.tolist(), strict=True):
        chosen[g] = part.start + cut
    return chosen


def _best_in_two_windows(
    groups: Sequence[GroupCuts], extents: Sequence[tuple[int, int]], left: int, right: int
) -> list[int] | None:
    """Return the best cuts, or None, by branch and bound over all pairs of windows.

    ``lows`` are the places where each of the two windows may begin: all rates of all groups. A
    *box* is a range of places for the left window times a range for the right one. No pair of
    windows in a box gains more than the best cut of each group in the union of the windows. If
    these cuts are within the limits, they are the best of the box. If they gain no more than the
    best cuts known, the box is dropped. All other boxes are split into four, down to single pairs,
    whose best cuts are always within the limits. Boxes stay few (at most 2,200 in a round, for
    3,000 to a million rows, 2 to 100 groups and limits from 0 to 0.2).
    """
    maxima = for_groups(
        lambda group: RangeMaxima(group.gains), groups, sum(group.gains.size for group in groups)
    )
    lows = [_all_rates(groups, window) for window in (left, right)]
    rates = [[group.rate(window) for window in (left, right)] for group in groups]
    places = [[_places(rate, low) for rate, low in zip(own, lows, strict=True)] for own in rates]

    def judged(boxes: IntArray) -> tuple[FloatArray, list[IntArray], BoolArray]:
        """Return upper bounds on the gains of boxes, the cuts that reach them, and which fit.

        The cuts of a box fit if they are within the limits. The bound is -inf if a group has no cut
        in the union of the windows.
        """
        gains, chosen = np.zeros(len(boxes)), []
        for group, extent, of_group in zip(maxima, extents, places, strict=True):
            first, last = (np.full(len(boxes), end) for end in extent)
            for (firsts, lasts), (begin, end) in zip(
                of_group, boxes.transpose(1, 2, 0), strict=True
            ):
                first = np.maximum(first, firsts[begin])
                last = np.minimum(last, lasts[end])
            cuts, own = group(first, last)
            gains += own
            chosen.append(cuts)
        fits = np.isfinite(gains)
        for k in range(2):
            pairs = [(own[k], cuts) for own, cuts in zip(rates, chosen, strict=True)]
            limited = [(rate, cuts) for rate, cuts in pairs if rate is not None]
            levels = [rate.rising[cuts] for rate, cuts in limited]
            length = min(rate.length for rate, _ in limited)
            fits &= np.max(levels, axis=0) <= np.min(levels, axis=0) + length
        return gains, chosen, fits

    best, most = None, -np.inf
    # The search begins with one box of all pairs, and with the four single pairs at its corners.
    ends = np.array([low.size - 1 for low in lows])
    corners = [[[end * k] * 2 for end, k in zip(ends, at, strict=True)] for at in np.ndindex(2, 2)]
    # (n_boxes, 2 windows, 2): the first and the last place of each window
    boxes = np.array([[[0, end] for end in ends], *corners])
    while len(boxes):
        gains, chosen, fits = judged(boxes)
        reached = np.where(fits, gains, -np.inf)
        top = int(np.argmax(reached))
        if reached[top] > most:
            best, most = [int(cuts[top]) for cuts in chosen], float(reached[top])
        boxes = _split(boxes[~fits & (gains > most + ROUNDING)])
    return best


def _places(rate: Rate | None, lows: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the first cut of a group inside the window from each of ``lows``, and the end.

    The end is one after the last cut inside the window.
    """
    if rate is None:  # the window does not limit this group
        return np.zeros(lows.size, np.int64), np.full(lows.size, np.iinfo(np.int64).max)
    inside = np.searchsorted(rate.rising, lows + rate.length, side="right")
    return np.searchsorted(rate.rising, lows), inside


def _split(boxes: IntArray) -> IntArray:
    """Halve both sides of each box; a side of a single place stays as it is."""
    for side in range(2):
        first, last = boxes[:, side].T
        halves = np.repeat(boxes, 2, axis=0)
        halves[::2, side, 1] = (first + last) // 2
        halves[1::2, side, 0] = (first + last) // 2 + 1
        boxes = halves[halves[:, side, 0] <= halves[:, side, 1]]
    return boxes


def _all_rates(groups: Sequence[GroupCuts], window: int) -> FloatArray:
    """Return the rates that share a window, of all cuts and groups, rising, without repetitions."""
    rates = (group.rate(window) for group in groups)
    return np.unique(np.concatenate([rate.rising for rate in rates if rate is not None]))


class RangeMaxima:
    """Finds the largest of ``values[first:last]`` for many ranges, by a sparse table.

    Table k holds, for each i, the place of the largest of the ``2**k`` values from i on. Any range
    is the union of two such stretches, which may overlap: one from its first value on, and one up
    to its last. The table takes O(n log n), each question O(1).
    """

    def __init__(self, values: FloatArray) -> None:
        self.values = values
        self._tables = [np.arange(values.size)]
        while 2 ** len(self._tables) <= values.size:
            half = 2 ** (len(self._tables) - 1)
            self._tables.append(self._larger(self._tables[-1][:-half], self._tables[-1][half:]))

    def __call__(self, first: IntArray, last: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the place of the largest value of each range, the first if equal, and the value.

        For empty ranges these are 0 and minus infinity.
        """
        is_empty = last <= first
        # The largest k with 2**k <= last - first.
        power = np.frexp(np.where(is_empty, 0, last - first).astype(np.float64))[1] - 1
        place = np.zeros_like(first)
        for k in np.unique(power[~is_empty]).tolist():
            of_power = (power == k) & ~is_empty
            table = self._tables[k]
            place[of_power] = self._larger(table[first[of_power]], table[last[of_power] - 2**k])
        return place, np.where(is_empty, -np.inf, self.values[place])

    def _larger(self, places: IntArray, other: IntArray) -> IntArray:
        """Return, for each pair of places, the one with the larger value; the first if equal."""
        return np.where(self.values[places] >= self.values[other], places, other)
