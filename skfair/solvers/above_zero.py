"""Minimising a smooth function of numbers that may not be negative.

Steps of L-BFGS among the numbers that are free, cut off at 0 (the two-metric projection of
Bertsekas). It gets about as far per step as scipy's L-BFGS-B, which spends a tenth of a millisecond
of Python on each, and on its set-up microseconds for each number: as long as the pass over a few
thousand rows that one evaluation takes here, and other threads wait meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from skfair._typing import FloatArray

# Steps that are remembered, and lengths that are tried for one.
_MEMORY, _TRIALS = 10, 20
# Share of what the slope promises that a step has to gain, and by which it has to fall.
_ENOUGH, _LESS = 1e-4, 0.9
# By what factor a length grows that was too short, and how near to those that were too short and
# too long the next one may lie, in shares of their difference.
_LONGER, _INSIDE = 10.0, 0.1
# Where step and change of the slope are so close to a right angle (cosine), it is rounding.
_FLAT = 1e-10

Function = Callable[[FloatArray], tuple[float, FloatArray]]  # returns value and slope
Point = tuple[float, float, float]  # a length, the value there, and its slope by the length


def minimised_above_zero(
    function: Function,
    start: FloatArray,
    *,
    max_iter: int,
    least_gain: float,  # a step that gains less than this share of the value is the last
    tol: float,  # largest slope, of those that lead further, at the end
) -> FloatArray:
    """Return numbers >= 0 of low value."""
    from skfair._kernels.above_zero import lead_down, learn_step

    x, direction = start, np.empty_like(start)
    memory = (*np.empty((2, _MEMORY, start.size)), np.empty(_MEMORY))
    n_learnt = 0
    value, slope = function(x)
    for _ in range(max_iter):
        if lead_down(x, slope, *memory, n_learnt, direction) <= tol:
            break
        length = 1.0 if n_learnt else min(1.0, 1 / float(np.linalg.norm(direction)))
        step = _step(function, x, value, slope, direction, length)
        if step is None and not n_learnt:
            break
        if step is None:
            n_learnt = 0
            continue
        after, lower, new_slope = step
        n_learnt = learn_step(x, after, slope, new_slope, _FLAT, *memory, n_learnt)
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
    from skfair._kernels.above_zero import slope_along, step_above_zero

    near: Point | None = None  # the longest that is too near
    far: Point | None = None  # the shortest that is too far
    best = None
    for _ in range(_TRIALS):
        after = np.empty_like(x)
        promised = step_above_zero(x, direction, length, slope, after)
        lower, new_slope = function(after)
        going = slope_along(x, after, new_slope)
        if near is None:
            near = 0.0, value, promised / length
        if lower > value + _ENOUGH * promised:
            far = length, lower, going / length
        else:
            best = after, lower, new_slope
            if going >= _LESS * promised:
                break
            near = length, lower, going / length
        length = _LONGER * length if far is None else _between(near, far)
    return best


def _between(near: Point, far: Point) -> float:
    """Return the length where the cubic through two points, with their slopes, is lowest."""
    (a, at_a, slope_a), (b, at_b, slope_b) = near, far
    width = b - a
    middle = 3 * (at_a - at_b) / width + slope_a + slope_b
    root = float(np.sqrt(max(0.0, middle**2 - slope_a * slope_b)))
    bend = 2 * root - slope_a + slope_b
    share = 1 - (slope_b + root - middle) / bend if bend else 0.5
    return a + width * min(1 - _INSIDE, max(_INSIDE, share))
