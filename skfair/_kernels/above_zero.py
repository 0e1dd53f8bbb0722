"""Directions of L-BFGS among numbers that may not be negative.

``steps`` and ``bends`` (n_kept, n) hold the last steps and by how much they changed the slope,
``inverses`` one divided by their products. ``n_learnt`` have been entered in turn, the oldest are
overwritten.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def lead_down(x, slope, steps, bends, inverses, n_learnt, direction):
    """Write what leads down when it is subtracted; return the largest slope that leads further.

    A number is free if it is above 0 or its slope draws it there; others stay. The slope of the
    free ones is multiplied by the inverse second derivatives that the last steps tell of. O(n) for
    each step that is kept.
    """
    n, n_kept = x.size, min(n_learnt, inverses.size)
    steepest = 0.0
    for j in range(n):
        g = slope[j]
        steepest = max(steepest, -g if g < 0.0 else min(x[j], g))
        direction[j] = g if g < 0.0 or x[j] > 0.0 else 0.0
    shares = np.empty(n_kept)
    for k in range(n_kept):  # the newest first
        m = (n_learnt - 1 - k) % inverses.size
        shares[k] = 0.0
        for j in range(n):
            shares[k] += inverses[m] * steps[m, j] * direction[j]
        for j in range(n):
            direction[j] -= shares[k] * bends[m, j]
    if n_kept:
        m = (n_learnt - 1) % inverses.size
        squares = 0.0
        for j in range(n):
            squares += bends[m, j] * bends[m, j]
        for j in range(n):
            direction[j] /= inverses[m] * squares
    for k in range(n_kept - 1, -1, -1):
        m = (n_learnt - 1 - k) % inverses.size
        share = shares[k]
        for j in range(n):
            share -= inverses[m] * bends[m, j] * direction[j]
        for j in range(n):
            direction[j] += share * steps[m, j]
    for j in range(n):
        if slope[j] >= 0.0 and x[j] <= 0.0:
            direction[j] = 0.0
    return steepest


@njit(cache=True)
def step_above_zero(x, direction, length, slope, after):
    """Write the numbers after a step, none below 0; return what the slope promises of it."""
    promised = 0.0
    for j in range(x.size):
        after[j] = max(x[j] - length * direction[j], 0.0)
        promised += slope[j] * (after[j] - x[j])
    return promised


@njit(cache=True)
def slope_along(x, after, slope):
    """Return the slope, times the step."""
    total = 0.0
    for j in range(x.size):
        total += slope[j] * (after[j] - x[j])
    return total


@njit(cache=True)
def learn_step(x, after, slope, new_slope, flat, steps, bends, inverses, n_learnt):
    """Enter a step and what it changed; return how many have been.

    A step whose angle to the change of the slope has a cosine of no more than ``flat`` tells of
    rounding, and is left out.
    """
    m = n_learnt % inverses.size
    product = moved = bent = 0.0
    for j in range(x.size):
        step, bend = after[j] - x[j], new_slope[j] - slope[j]
        product += step * bend
        moved += step * step
        bent += bend * bend
    if not product > flat * np.sqrt(moved) * np.sqrt(bent):
        return n_learnt
    for j in range(x.size):
        steps[m, j], bends[m, j] = after[j] - x[j], new_slope[j] - slope[j]
    inverses[m] = 1.0 / product
    return n_learnt + 1
