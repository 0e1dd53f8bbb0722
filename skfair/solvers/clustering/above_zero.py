"""Minimising a smooth function of very many numbers that may not be negative.

Steps of L-BFGS among the numbers that are free, cut off at 0 (the two-metric projection of
Bertsekas). It gets as far per step as scipy's L-BFGS-B, whose set-up alone takes microseconds of
Python for each number and a third of the time for ten thousand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from skfair._typing import FloatArray

# Steps that are remembered, and lengths that are tried for one.
_MEMORY, _TRIALS = 10, 20
# Share of what the slope promises that a step has to gain, and by which it has to fall.
_ENOUGH, _LESS = 1e-4, 0.9
# Where step and change of the slope are so close to a right angle (cosine), it is rounding.
_FLAT = 1e-10

Function = Callable[[FloatArray], tuple[float, FloatArray]]  # returns value and slope
Pair = tuple[FloatArray, FloatArray, float]  # a step, the change of the slope, 1 / their product


def minimised_above_zero(
    function: Function,
    start: FloatArray,
    *,
    max_iter: int,
    least_gain: float,  # a step that gains less than this share of the value is the last
    tol: float,  # largest slope, of those that lead further, at the end
) -> FloatArray:
    """Return numbers >= 0 of low value."""
    x, pairs = start, deque[Pair](maxlen=_MEMORY)
    value, slope = function(x)
    for _ in range(max_iter):
        is_free = (x > 0) | (slope < 0)
        if np.abs(np.where(slope > 0, np.minimum(x, slope), slope)).max() <= tol:
            break
        direction = np.where(is_free, _newton_like(np.where(is_free, slope, 0.0), pairs), 0.0)
        length = 1.0 if pairs else min(1.0, 1 / float(np.linalg.norm(direction)))
        step = _step(function, x, value, slope, direction, length)
        if step is None and not pairs:
            break
        if step is None:
            pairs.clear()
            continue
        after, lower, new_slope = step
        moved, bent = after - x, new_slope - slope
        product = float(moved @ bent)
        if product > _FLAT * float(np.linalg.norm(moved) * np.linalg.norm(bent)):
            pairs.append((moved, bent, 1 / product))
        gain = value - lower
        x, value, slope = after, lower, new_slope
        if gain <= least_gain * max(1.0, abs(value)):
            break
    return x


def _step(
    function: Function,
    x: FloatArray,
    value: float,
    slope: FloatArray,
    direction: FloatArray,
    length: float,
) -> tuple[FloatArray, float, FloatArray] | None:
    """Return numbers further down, their value and slope: neither too far nor too near.

    Too near is where it goes down nearly as fast as here; None if no length is good.
    """
    shortest, longest, best = 0.0, np.inf, None
    for _ in range(_TRIALS):
        after = np.maximum(x - length * direction, 0.0)
        lower, new_slope = function(after)
        promised = float(slope @ (after - x))
        if lower > value + _ENOUGH * promised:
            longest = length
        else:
            best = after, lower, new_slope
            if float(new_slope @ (after - x)) >= _LESS * promised:
                break
            shortest = length
        length = 2 * length if longest == np.inf else (shortest + longest) / 2
    return best


def _newton_like(slope: FloatArray, pairs: deque[Pair]) -> FloatArray:
    """Multiply a slope by the inverse second derivatives that the last steps tell of."""
    direction, shares = slope.copy(), []
    for moved, bent, inverse in reversed(pairs):
        shares.append(inverse * float(moved @ direction))
        direction -= shares[-1] * bent
    if pairs:
        _, bent, inverse = pairs[-1]
        direction /= inverse * float(bent @ bent)
    for (moved, bent, inverse), share in zip(pairs, reversed(shares), strict=True):
        direction += (share - inverse * float(bent @ direction)) * moved
    return direction
