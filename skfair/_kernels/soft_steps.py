"""Smooth steps of scores at many thresholds: mean per group, and slopes of weighted sums of them.

kind 0 -> ramp, 1 -> smoothstep, 2 -> sigmoid; part 0 -> whole, 1 -> convex plus, 2 -> convex minus
(see skfair/constraints/partial/surrogates.py).
"""

import math

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def _corner(u, r):
    """Return max(u, 0) with a parabola within r of 0, and its slope."""
    if u <= -r:
        return 0.0, 0.0
    if u >= r:
        return u, 1.0
    return (u + r) * (u + r) / (4.0 * r), (u + r) / (2.0 * r)


@njit(cache=True)
def _whole(x, kind, width, rounding):
    """Return a step and its slope."""
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
    """Return a step, or one of its convex parts, and its slope."""
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
def _add_steps(scores, codes, weights, thetas, kind, width, part, sums):
    """Add the weighted steps without corners to sums (n_groups, n_thresholds), without branches."""
    half = 0.5 / width
    if part == 0 and kind == 0:
        for i in range(scores.size):
            z, w, row = scores[i], weights[i], sums[codes[i]]
            for p in range(thetas.size):
                row[p] += w * min(max((z - thetas[p]) * half + 0.5, 0.0), 1.0)
    elif part == 0:
        for i in range(scores.size):
            z, w, row = scores[i], weights[i], sums[codes[i]]
            for p in range(thetas.size):
                t = min(max((z - thetas[p]) * half + 0.5, 0.0), 1.0)
                row[p] += w * t * t * (3.0 - 2.0 * t)
    else:
        shift = 0.5 if part == 1 else -0.5
        for i in range(scores.size):
            z, w, row = scores[i], weights[i], sums[codes[i]]
            for p in range(thetas.size):
                row[p] += w * max((z - thetas[p]) * half + shift, 0.0)


@njit(cache=True)
def _add_slopes(scores, codes, weights, theta, kind, width, part, pull, slopes):
    """Add the slopes of steps without corners at one threshold to slopes; return their sum."""
    half = 0.5 / width
    total = 0.0
    if kind == 1:
        for i in range(scores.size):
            t = min(max((scores[i] - theta) * half + 0.5, 0.0), 1.0)
            slope = weights[i] * pull[codes[i]] * (6.0 * half) * t * (1.0 - t)
            slopes[i] += slope
            total += slope
        return total
    low = width if part == 2 else -width
    high = width if part == 0 else math.inf
    for i in range(scores.size):
        x = scores[i] - theta
        slope = weights[i] * pull[codes[i]] * (half if (x > low) & (x < high) else 0.0)
        slopes[i] += slope
        total += slope
    return total


@njit(cache=True)
def _is_plain(kind, rounding, part):
    """Return whether a step needs no branches: a sharp ramp, or the whole smoothstep."""
    return (kind == 0 and rounding == 0.0) or (kind == 1 and part == 0)


@njit(cache=True)
def soft_rates(scores, codes, weights, thetas, kind, width, rounding, part, out):
    """Add the weighted steps of every row at every threshold to out (n_thresholds, n_groups)."""
    if _is_plain(kind, rounding, part):
        sums = np.zeros((out.shape[1], thetas.size))
        _add_steps(scores, codes, weights, thetas, kind, width, part, sums)
        out += sums.T
        return
    for i in range(scores.size):
        z, g, w = scores[i], codes[i], weights[i]
        for p in range(thetas.size):
            x = z - thetas[p]
            if part == 0 and kind != 2:
                if x <= -width - rounding:
                    continue
                if x >= width + rounding:
                    out[p, g] += w
                    continue
            out[p, g] += w * _step(x, kind, width, rounding, part)[0]


@njit(cache=True)
def soft_rate_slopes(
    scores, codes, weights, thetas, kind, width, rounding, part, pull, slopes, theta_slopes
):
    """Write the slopes of sum(pull * rates) by the scores; add those by the thresholds."""
    if _is_plain(kind, rounding, part):
        slopes[:] = 0.0
        for p in range(thetas.size):
            if np.any(pull[p] != 0.0):
                theta_slopes[p] -= _add_slopes(
                    scores, codes, weights, thetas[p], kind, width, part, pull[p], slopes
                )
        return
    for i in range(scores.size):
        z, g, w = scores[i], codes[i], weights[i]
        total = 0.0
        for p in range(thetas.size):
            if pull[p, g] == 0.0:
                continue
            x = z - thetas[p]
            if part == 0 and kind != 2 and abs(x) >= width + rounding:
                continue
            slope = w * pull[p, g] * _step(x, kind, width, rounding, part)[1]
            total += slope
            theta_slopes[p] -= slope
        slopes[i] = total
