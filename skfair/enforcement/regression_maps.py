r"""Monotone maps of predicted numbers, one for each group, which make the groups more similar.

The distribution to which groups are moved is their barycentre, whose quantiles are the mean of the
quantiles of the groups, weighted by their sizes: of all distributions that groups can be moved to
by monotone maps it is the nearest, in mean squared distance. A row that owns the shares [a, b] of
its group goes

- for the Wasserstein distance to the mean of the quantiles of the barycentre from a to b, or a
  share of the way to it: distances shrink in proportion;
- for the Kolmogorov-Smirnov distance, if the groups are known, only as far as it takes to be within
  half the limit of the distribution function of the barycentre: into the quantiles from
  b - limit / 2 to a + limit / 2.

Means of predictions and of residuals are moved by one shift for each group. Mean losses are brought
together by the best line through each group, and by shrinking the lines of the groups with the
smaller losses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.cuts import Blocks, score_blocks
from skfair.enforcement.group_maps import GroupMaps
from skfair.utils.threads import for_groups

# Directions in which estimated groups differ by less than this share of the largest are left out.
SMALLEST_SHARE = 1e-3
# No prediction is larger.
FAR = 1e300


class NumberRows(NamedTuple):
    """Rows of one attribute: what maps are made of."""

    targets: FloatArray  # (n_samples,): the true numbers
    codes: IntArray  # (n_samples,): the groups
    n_groups: int
    weights: FloatArray | None
    # (n_samples, n_groups): estimated probabilities of the groups; None if these may be used
    chances: FloatArray | None


def barycentre_maps(values: FloatArray, rows: NumberRows, limit: float) -> GroupMaps:
    """Return the maps onto the barycentre; ``limit`` is left to the share of the way."""
    blocks, middle, masses = _sorted(values, rows)
    ends = [1 - block.ends for block in blocks]  # shares below, descending like the scores
    # The area under the quantiles of a group, up to each of its shares.
    areas = [
        np.append(np.cumsum((-np.diff(shares) * block.scores)[::-1])[::-1], 0.0)
        for shares, block in zip(ends, blocks, strict=True)
    ]

    def of_group(own: FloatArray) -> FloatArray:
        parts = [
            mass * np.interp(own[::-1], shares[::-1], area[::-1])
            for mass, shares, area in zip(masses, ends, areas, strict=True)
        ]
        own = own[::-1]
        return np.asarray(np.diff(np.sum(parts, axis=0)) / np.diff(own))

    after = for_groups(of_group, ends, values.size)
    return _flat_beyond(_maps(blocks, after, middle))


def band_around_barycentre(values: FloatArray, rows: NumberRows, limit: float) -> GroupMaps:
    blocks, middle, masses = _sorted(values, rows)
    rising = [block.scores[::-1] for block in blocks]
    centres = [1 - 0.5 * (block.ends[1:] + block.ends[:-1])[::-1] for block in blocks]

    def quantiles(shares: FloatArray) -> FloatArray:
        parts = [
            mass * np.interp(shares, centre, scores)
            for mass, centre, scores in zip(masses, centres, rising, strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0))

    def of_group(block: Blocks) -> FloatArray:
        shares = 1 - block.ends[::-1]
        low, high = shares[1:] - 0.5 * limit, shares[:-1] + 0.5 * limit
        half = 0.5 * (low + high)
        low, high = np.minimum(low, half), np.maximum(high, half)
        lowest = np.where(low > 0, quantiles(low), -np.inf)
        highest = np.where(high < 1, quantiles(high), np.inf)
        return np.clip(block.scores[::-1], lowest, highest)

    return _maps(blocks, for_groups(of_group, blocks, values.size), middle)


def shifts_of_means(values: FloatArray, rows: NumberRows, limit: float) -> GroupMaps:
    """Return the shifts that put the mean of each group within the limit of all others."""
    masses = _masses(rows)
    means = _means(values, rows, masses)
    shifts = _into_interval(means, masses, limit) - means
    if rows.chances is not None:
        # What a row of each group is moved by on average is to be its shift.
        mixed = [_means(chances, rows, masses) for chances in rows.chances.T]
        shifts = np.asarray(np.linalg.lstsq(np.transpose(mixed), shifts, SMALLEST_SHARE)[0])
    return GroupMaps(np.zeros(means.size), [np.zeros(1)] * means.size, list(shifts[:, None]))


def lines_of_losses(values: FloatArray, rows: NumberRows, limit: float) -> GroupMaps:
    """Return lines that put the mean losses of the groups within the limit of each other."""
    masses = _masses(rows)
    z, y = _means(values, rows, masses), _means(rows.targets, rows, masses)
    moved, true = values - z[rows.codes], rows.targets - y[rows.codes]
    spread, common = (_means(moved * other, rows, masses) for other in (moved, true))
    slopes = np.divide(common, spread, out=np.zeros(z.size), where=spread > 0)
    slopes = np.maximum(slopes, 0.0)
    losses = _means(true * true, rows, masses) - slopes * common
    missing = np.maximum(losses.max() - limit - losses, 0.0)
    room = slopes**2 * spread
    slopes *= 1 - np.sqrt(np.divide(missing, room, out=np.zeros(z.size), where=room > 0)).clip(0, 1)
    ends = [values[rows.codes == g] for g in range(rows.n_groups)]
    before = [np.unique([ends_of_group.min(), ends_of_group.max()]) for ends_of_group in ends]
    after = [y[g] + slopes[g] * (points - z[g]) for g, points in enumerate(before)]
    return GroupMaps(np.zeros(z.size), before, after)


def expected(maps: GroupMaps, values: FloatArray, groups: IntArray | FloatArray) -> FloatArray:
    """Apply maps by known groups, or average them by the probabilities of the groups."""
    if groups.ndim == 1:
        return maps(values, np.asarray(groups))
    total = np.zeros(values.size)
    for g in range(groups.shape[1]):
        total += groups[:, g] * maps(values, np.full(values.size, g))
    return total


def _sorted(values: FloatArray, rows: NumberRows) -> tuple[Sequence[Blocks], float, FloatArray]:
    """Return the distinct values of each group less a middle one, that, and the groups' shares."""
    middle = float(np.average(values, weights=rows.weights))
    kept = slice(None) if rows.weights is None else rows.weights > 0
    weights = None if rows.weights is None else rows.weights[kept]
    scores, codes = (values - middle)[kept], rows.codes[kept]
    blocks = score_blocks(scores, codes, rows.n_groups, np.ones(scores.size), weights)
    masses = _masses(rows)
    return blocks, middle, masses / masses.sum()


def _maps(blocks: Sequence[Blocks], after: Sequence[FloatArray], middle: float) -> GroupMaps:
    """Return the maps whose knots are the distinct values of each group."""
    before = [block.scores[::-1] + middle for block in blocks]
    rising = [np.maximum.accumulate(values) + middle for values in after]
    return GroupMaps(np.zeros(len(blocks)), before, rising)


def _flat_beyond(maps: GroupMaps) -> GroupMaps:
    """Return maps that do not leave the range of the training rows: the barycentre has no more."""
    before = [np.concatenate([[-FAR], values, [FAR]]) for values in maps.before]
    after = [np.concatenate([values[:1], values, values[-1:]]) for values in maps.after]
    return GroupMaps(maps.thresholds, before, after)


def _masses(rows: NumberRows) -> FloatArray:
    return np.bincount(rows.codes, rows.weights, rows.n_groups).astype(np.float64)


def _means(values: FloatArray, rows: NumberRows, masses: FloatArray) -> FloatArray:
    weighted = values if rows.weights is None else values * rows.weights
    return np.asarray(np.bincount(rows.codes, weighted, rows.n_groups) / masses)


def _into_interval(means: FloatArray, masses: FloatArray, limit: float) -> FloatArray:
    """Clip means to the interval that keeps their overall mean, found by halving."""
    low, high = float(means.min()), float(means.max())
    for _ in range(60):  # then nothing is left to halve
        start = 0.5 * (low + high)
        moved = masses @ (np.clip(means, start, start + limit) - means)
        low, high = (start, high) if moved < 0 else (low, start)
    return np.clip(means, high, high + limit)
