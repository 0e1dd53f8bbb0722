r"""Monotone maps of predicted numbers, one for each group, which make the groups more similar.

There is one function for each kind of limit. All are called by
:meth:`skfair.enforcement.regression_steps.NumberTask.step` as ``maps(values, rows, limit)``, with
the predictions, the rows of one attribute and the disparity to aim at. They return
:class:`~skfair.enforcement.group_maps.GroupMaps`:

- :func:`barycentre_maps` for the Wasserstein distance, and for the Kolmogorov-Smirnov distance if
  the groups are estimated,
- :func:`band_around_barycentre` for the Kolmogorov-Smirnov distance, and :func:`merged_ties` if its
  maps miss the limit because many rows are tied,
- :func:`shifts_of_means` for means of predictions and of residuals,
- :func:`lines_of_losses` for mean losses.

:func:`expected` applies maps, by known groups or by their probabilities.

The *barycentre* is the distribution whose quantiles are the mean of the quantiles of the groups,
weighted by their sizes. Monotone maps can move all groups to the same distribution. If it is the
barycentre, the mean squared distance of the moves is least. If the rows of a group are sorted by
value, each row *owns* an interval [a, b] of shares: a is the share of the group below the row, and
b - a is the share of the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from sklearn.isotonic import isotonic_regression

from skfair._typing import FloatArray, IntArray
from skfair.enforcement.cuts import Blocks, score_blocks
from skfair.enforcement.group_maps import GroupMaps
from skfair.utils.threads import for_groups

# Estimated groups may hardly differ in some directions. Singular values below this share of the
# largest count as 0 in least squares, which leaves these directions out.
SMALLEST_SHARE = 1e-3
# Stands for infinity in knots of maps: no prediction is larger.
FAR = 1e300


class NumberRows(NamedTuple):
    """The rows, and their groups by one attribute."""

    targets: FloatArray  # (n_samples,): the true numbers
    codes: IntArray  # (n_samples,): the groups
    n_groups: int
    weights: FloatArray | None
    # (n_samples, n_groups): estimated probabilities of the groups; None if predictions may use the
    # groups themselves
    chances: FloatArray | None


def barycentre_maps(values: FloatArray, rows: NumberRows, limit: float) -> GroupMaps:
    """Return the maps onto the barycentre, after which the groups have the same distribution.

    A row that owns [a, b] goes to the mean of the quantiles of the barycentre from a to b.
    ``limit`` is not used: the caller moves rows only a share of the way, and distances shrink in
    proportion.
    """
    blocks, middle, masses = _sorted(values, rows)
    ends = [1 - block.ends for block in blocks]  # share below each cut, falling like the scores
    # The integral of the quantiles of a group from 0 to each of these shares.
    areas = [
        np.append(np.cumsum((-np.diff(shares) * block.scores)[::-1])[::-1], 0.0)
        for shares, block in zip(ends, blocks, strict=True)
    ]

    def of_group(own: FloatArray) -> FloatArray:
        """Return the images of the values of a group, rising, given its shares below each cut."""
        parts = [
            mass * np.interp(own[::-1], shares[::-1], area[::-1])
            for mass, shares, area in zip(masses, ends, areas, strict=True)
        ]
        own = own[::-1]
        return np.asarray(np.diff(np.sum(parts, axis=0)) / np.diff(own))

    after = for_groups(of_group, ends, values.size)
    return _flat_beyond(_maps(blocks, after, middle))


def band_around_barycentre(values: FloatArray, rows: NumberRows, limit: float) -> GroupMaps:
    """Return the maps that bring each distribution function within limit / 2 of the barycentre.

    Rows move no further than necessary. A row that owns [a, b] is clipped to the quantiles of the
    barycentre from b - limit / 2 to a + limit / 2. Quantiles of shares below 0 and above 1 count as
    infinite, so that nothing is clipped there.
    """
    blocks, middle, masses = _sorted(values, rows)
    rising = [block.scores[::-1] for block in blocks]
    # The middle (a + b) / 2 of the shares that each value owns.
    centres = [1 - 0.5 * (block.ends[1:] + block.ends[:-1])[::-1] for block in blocks]

    def quantiles(shares: FloatArray) -> FloatArray:
        """Return quantiles of the barycentre, interpolated between the values of each group."""
        parts = [
            mass * np.interp(shares, centre, scores)
            for mass, centre, scores in zip(masses, centres, rising, strict=True)
        ]
        return np.asarray(np.sum(parts, axis=0))

    def of_group(block: Blocks) -> FloatArray:
        shares = 1 - block.ends[::-1]
        low, high = shares[1:] - 0.5 * limit, shares[:-1] + 0.5 * limit
        # A row that owns more than the limit has low > high: it goes to the middle of both.
        half = 0.5 * (low + high)
        low, high = np.minimum(low, half), np.maximum(high, half)
        lowest = np.where(low > 0, quantiles(low), -np.inf)
        highest = np.where(high < 1, quantiles(high), np.inf)
        return np.clip(block.scores[::-1], lowest, highest)

    return _maps(blocks, for_groups(of_group, blocks, values.size), middle)


def merged_ties(values: FloatArray, rows: NumberRows, limit: float) -> GroupMaps:
    """Return the maps that merge values until each distribution function is within the limit.

    A *cut* divides the values of each group into lower and higher ones. Distribution functions
    differ by at most the limit if all cuts between values do, in the shares that they leave below.
    The maps keep the cuts for which this is true. Rows between two neighbouring cuts all get their
    mean. If no cut is possible, all rows get the same value. For every share, and for every share
    plus half the limit, the nearest cuts of all groups are tried. So if there is any cut within the
    limit, one is found: shares between s and s + limit are the nearest ones of s + limit / 2.
    """
    # Values are not centred here, because rounding would separate rows that are to stay tied.
    blocks, middle, masses = _sorted(values, rows, middle=0.0)
    below = [1 - block.ends[::-1] for block in blocks]  # share below each cut of a group, rising
    tried = np.concatenate(below)
    tried = np.unique(np.append(tried, tried + 0.5 * limit))
    nearest = [np.searchsorted(0.5 * (own[1:] + own[:-1]), tried) for own in below]
    reached = [own[cut] for own, cut in zip(below, nearest, strict=True)]
    # (n_groups, n_cuts): how many values of each group are below each cut; none below the first
    # one, and all below the last one
    cuts = np.unique(np.stack(nearest)[:, np.ptp(reached, axis=0) <= limit], axis=1)
    mass, total = np.zeros(cuts.shape[1] - 1), np.zeros(cuts.shape[1] - 1)
    for own, block, share, cut in zip(below, blocks, masses, cuts, strict=True):
        mass += share * np.diff(own[cut])
        sums = np.append(0.0, np.cumsum(np.diff(own) * block.scores[::-1]))
        total += share * np.diff(sums[cut])
    # The means rise, unless the groups have other shares in one part than in the next.
    means = isotonic_regression(total / mass, sample_weight=mass)
    after = [
        means[np.searchsorted(cut, np.arange(block.scores.size), side="right") - 1]
        for block, cut in zip(blocks, cuts, strict=True)
    ]
    return _maps(blocks, after, middle)


def shifts_of_means(values: FloatArray, rows: NumberRows, limit: float) -> GroupMaps:
    """Return the shifts that put the mean of each group within the limit of all others."""
    masses = _masses(rows)
    means = _means(values, rows, masses)
    shifts = _into_interval(means, masses, limit) - means
    if rows.chances is not None:
        # A row is moved by the mean of the shifts, weighted by its probabilities. So the shifts
        # are those whose average over the rows of each group is the one that the group needs.
        mixed = [_means(chances, rows, masses) for chances in rows.chances.T]
        shifts = np.asarray(np.linalg.lstsq(np.transpose(mixed), shifts, SMALLEST_SHARE)[0])
    return GroupMaps(np.zeros(means.size), [np.zeros(1)] * means.size, list(shifts[:, None]))


def lines_of_losses(values: FloatArray, rows: NumberRows, limit: float) -> GroupMaps:
    """Return lines that put the mean squared errors of the groups within the limit of each other.

    Each group first gets its best line, the least squares fit of the targets to the predictions
    (but no falling one). Groups whose loss is then more than ``limit`` below the largest get a
    flatter line. If a slope b is multiplied by 1 - t, the loss grows by t**2 b**2 times the
    variance of the predictions.
    """
    masses = _masses(rows)
    # In each group, ``z`` and ``y`` are the means of predictions and of targets, ``spread`` is the
    # variance of the predictions, and ``common`` is their covariance with the targets.
    z, y = _means(values, rows, masses), _means(rows.targets, rows, masses)
    predicted, true = values - z[rows.codes], rows.targets - y[rows.codes]
    spread, common = (_means(predicted * other, rows, masses) for other in (predicted, true))
    slopes = np.divide(common, spread, out=np.zeros(z.size), where=spread > 0)
    slopes = np.maximum(slopes, 0.0)
    losses = _means(true * true, rows, masses) - slopes * common
    missing = np.maximum(losses.max() - limit - losses, 0.0)
    room = slopes**2 * spread  # rise of the loss if the line becomes flat
    slopes *= 1 - np.sqrt(np.divide(missing, room, out=np.zeros(z.size), where=room > 0)).clip(0, 1)
    by_group = [values[rows.codes == g] for g in range(rows.n_groups)]
    before = [np.unique([own.min(), own.max()]) for own in by_group]  # one knot if all are equal
    after = [y[g] + slopes[g] * (points - z[g]) for g, points in enumerate(before)]
    return GroupMaps(np.zeros(z.size), before, after)


def expected(maps: GroupMaps, values: FloatArray, groups: IntArray | FloatArray) -> FloatArray:
    """Return the mapped values, by known groups or averaged over the probabilities of groups.

    ``groups`` are codes of shape (n_samples,) or probabilities of shape (n_samples, n_groups).
    """
    if groups.ndim == 1:
        return maps(values, np.asarray(groups))
    total = np.zeros(values.size)
    for g in range(groups.shape[1]):
        total += groups[:, g] * maps(values, np.full(values.size, g))
    return total


def _sorted(
    values: FloatArray, rows: NumberRows, middle: float | None = None
) -> tuple[Sequence[Blocks], float, FloatArray]:
    """Return the sorted values of each group, minus ``middle``, then this number and shares.

    If ``middle`` is None, it is the overall mean. The shares are the weights of the groups, which
    add up to 1. Rows of weight 0 are left out.
    """
    if middle is None:
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
    """Return maps that are constant beyond their end knots, instead of rising with slope 1.

    The barycentre has no quantiles beyond those of the training rows.
    """
    before = [np.concatenate([[-FAR], values, [FAR]]) for values in maps.before]
    after = [np.concatenate([values[:1], values, values[-1:]]) for values in maps.after]
    return GroupMaps(maps.thresholds, before, after)


def _masses(rows: NumberRows) -> FloatArray:
    """Return the weight of each group."""
    return np.bincount(rows.codes, rows.weights, rows.n_groups).astype(np.float64)


def _means(values: FloatArray, rows: NumberRows, masses: FloatArray) -> FloatArray:
    """Return the weighted mean of the values in each group."""
    weighted = values if rows.weights is None else values * rows.weights
    return np.asarray(np.bincount(rows.codes, weighted, rows.n_groups) / masses)


def _into_interval(means: FloatArray, masses: FloatArray, limit: float) -> FloatArray:
    """Return the means clipped to an interval as long as the limit.

    The interval is the one that keeps the overall mean, weighted by ``masses``. Bisection finds
    where it begins.
    """
    low, high = float(means.min()), float(means.max())
    for _ in range(60):  # doubles have 53 digits, so more halvings would change nothing
        start = 0.5 * (low + high)
        moved = masses @ (np.clip(means, start, start + limit) - means)
        low, high = (start, high) if moved < 0 else (low, start)
    return np.clip(means, high, high + limit)
