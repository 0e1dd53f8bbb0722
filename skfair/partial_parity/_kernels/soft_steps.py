"""Smooth steps of scores at many thresholds: weighted sums per group, and their slopes.

``Surrogate`` (skfair/partial_parity/surrogates.py) calls them with part 0, and ``ConvexStep``
(skfair/papers/idca/parts.py) with parts 1 and 2. A step is a function of x = score - threshold,
and its width and rounding are in units of the score:

    kind 0  ramp        (x + width) / (2 width), cut off at 0 and 1; ``rounding`` > 0 replaces its
                        corners by parabolas that reach this far to both sides
    kind 1  smoothstep  t^2 (3 - 2 t) with t = (x + width) / (2 width), cut off at 0 and 1
    kind 2  sigmoid     1 / (1 + exp(-x / width))

    part 0  the step itself
    part 1  plus: the step for x <= 0, its tangent at 0 beyond
    part 2  minus: plus - step. Both parts are convex, and algorithms of papers need them

Whole smoothsteps, and ramps without rounding with their convex parts, are *plain*: they need no
branches. They have kernels of their own (plain_rates, plain_slopes), which compile in a third of
the time. Everything else uses soft_rates and soft_slopes.
"""

import math

from skfair._kernels.declaring import njit


@njit(cache=True)
def _corner(u, r):
    """Return max(u, 0), with a parabola instead of the corner for |u| < r, and its slope."""
    if u <= -r:
        return 0.0, 0.0
    if u >= r:
        return u, 1.0
    return (u + r) * (u + r) / (4.0 * r), (u + r) / (2.0 * r)


@njit(cache=True)
def _whole(x, kind, width, rounding):
    """Return a step (part 0) and its slope at x."""
    if kind == 2:
        small = math.exp(-abs(x) / width)
        value = 1.0 / (1.0 + small)
        if x < 0:
            value = small / (1.0 + small)
        return value, small / ((1.0 + small) * (1.0 + small) * width)
    if x <= -width - rounding:
        return 0.0, 0.0
    if x >= width + rounding:
        return 1.0, 0.0
    if kind == 1:
        t = (x + width) / (2.0 * width)
        return t * t * (3.0 - 2.0 * t), 3.0 * t * (1.0 - t) / width
    low, low_slope = _corner(x + width, rounding)
    high, high_slope = _corner(x - width, rounding)
    return (low - high) / (2.0 * width), (low_slope - high_slope) / (2.0 * width)


@njit(cache=True)
def _step(x, kind, width, rounding, part):
    """Return a step, or one of its convex parts, and its slope at x."""
    value, slope = _whole(x, kind, width, rounding)
    if part == 0:
        return value, slope
    if x <= 0:
        if part == 1:
            return value, slope
        return 0.0, 0.0
    middle = 0.75 / width if kind == 1 else (0.25 / width if kind == 2 else 0.5 / width)
    line = 0.5 + middle * x
    if part == 1:
        return line, middle
    return line - value, middle - slope


@njit(cache=True)
def steps(x, kind, width, rounding, part, out):
    """Write the steps at x into out."""
    for i in range(x.size):
        out[i] = _step(x[i], kind, width, rounding, part)[0]


@njit(cache=True)
def plain_rates(scores, codes, weights, thresholds, rise, shift, top, is_cubic, sums):
    """Add the weighted steps of every row at every threshold to sums (n_groups, n_thresholds).

    With t = (score - threshold) * rise + shift, cut off at 0 and top, a step is t (a ramp, or a
    convex part of one) or, if is_cubic, t^2 (3 - 2 t). rise is 1 / (2 width), the slope of the
    ramp. The whole step has shift 1/2 and top 1.
    """
    for i in range(scores.size):
        z, w, row = scores[i], weights[i], sums[codes[i]]
        if is_cubic:
            for p in range(thresholds.size):
                t = min(max((z - thresholds[p]) * rise + shift, 0.0), top)
                row[p] += w * t * t * (3.0 - 2.0 * t)
        else:
            for p in range(thresholds.size):
                row[p] += w * min(max((z - thresholds[p]) * rise + shift, 0.0), top)


@njit(cache=True)
def plain_slopes(
    scores, codes, weights, thresholds, rise, shift, top, is_cubic, pull, slopes, threshold_slopes
):
    """Add the slopes of V = sum_pg pull[p, g] rates[g, p] to slopes and threshold_slopes.

    pull (n_thresholds, n_groups) is the slope of an outer function by each rate. The slope of V by
    score i is added to slopes[i], and that by threshold p to threshold_slopes[p].
    """
    for p in range(thresholds.size):
        total, is_pulled, row = 0.0, False, pull[p]
        for g in range(row.size):
            is_pulled |= row[g] != 0.0
        if not is_pulled:
            continue
        for i in range(scores.size):
            t = (scores[i] - thresholds[p]) * rise + shift
            pulled = weights[i] * row[codes[i]]
            if is_cubic:
                t = min(max(t, 0.0), top)
                slope = pulled * (6.0 * rise) * t * (1.0 - t)
            else:
                slope = pulled * (rise if (t > 0.0) & (t < top) else 0.0)
            slopes[i] += slope
            total += slope
        threshold_slopes[p] -= total


@njit(cache=True)
def soft_rates(scores, codes, weights, thresholds, kind, width, rounding, part, sums):
    """Add the weighted steps of every row at every threshold to sums (n_groups, n_thresholds)."""
    for i in range(scores.size):
        z, g, w = scores[i], codes[i], weights[i]
        for p in range(thresholds.size):
            x = z - thresholds[p]
            if part == 0 and kind != 2:
                if x <= -width - rounding:
                    continue
                if x >= width + rounding:
                    sums[g, p] += w
                    continue
            sums[g, p] += w * _step(x, kind, width, rounding, part)[0]


@njit(cache=True)
def soft_slopes(
    scores, codes, weights, thresholds, kind, width, rounding, part, pull, slopes, threshold_slopes
):
    """Add the slopes of V = sum_pg pull[p, g] rates[g, p] to slopes and threshold_slopes.

    pull (n_thresholds, n_groups) is the slope of an outer function by each rate. The slope of V by
    score i is added to slopes[i], and that by threshold p to threshold_slopes[p].
    """
    for i in range(scores.size):
        z, g, w = scores[i], codes[i], weights[i]
        for p in range(thresholds.size):
            if pull[p, g] == 0.0:
                continue
            x = z - thresholds[p]
            if part == 0 and kind != 2 and abs(x) >= width + rounding:
                continue
            slope = w * pull[p, g] * _step(x, kind, width, rounding, part)[1]
            slopes[i] += slope
            threshold_slopes[p] -= slope
