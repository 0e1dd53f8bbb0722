"""Newton's method for smooth duals: multipliers at which soft choices satisfy linear constraints.

Each row chooses among options that are worth something, less what multipliers charge for what the
choice adds to the constraints, and the maximum over the options is a soft one. The dual is convex;
its slope is what the limits leave, its curvature comes from the rows near a tie. With few
multipliers a step costs little more than a slope. Clusters
(:mod:`skfair.solvers.clustering.assignment`) say what a choice is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from skfair._typing import FloatArray, IntArray

# How many multipliers a step changes at most, those with the steepest slopes.
MANY = 200

Second: TypeAlias = Callable[[tuple[IntArray, ...]], FloatArray]


def lowered(
    # value, slope and ``second(free)``, the second derivatives in some of the multipliers
    dual: Callable[[FloatArray], tuple[float, FloatArray, Second]],
    start: FloatArray,
    slight: float,  # slopes that need no further step
    max_iter: int,
    largest: float = np.inf,  # limits that contradict each other have multipliers without end
) -> FloatArray:
    """Return multipliers from 0 to the largest one at which a dual is low.

    A step is damped as if it could go ``reach`` where the dual is straight, and its end moved into
    the bounds. How well the slope and the curvature foretold what was gained says how far the next
    one may go.
    """
    lam, (value, slope, second), reach = start, dual(start), 1.0
    for _ in range(max_iter):
        can_move = ((lam > 0) | (slope < 0)) & ((lam < largest) | (slope > 0))
        pull = np.where(can_move, np.abs(slope), 0.0)
        steepest = pull.max()
        if steepest <= slight:
            break
        if np.count_nonzero(pull) > MANY:
            pull[pull < np.partition(pull, -MANY, axis=None)[-MANY]] = 0.0
        free = np.nonzero(pull)
        curvature = second(free)
        damped = curvature + np.eye(len(curvature)) * (steepest / reach)
        end = np.clip(lam[free] - np.linalg.solve(damped, slope[free]), 0.0, largest)
        change = end - lam[free]
        other = lam.copy()
        other[free] += change
        reached = dual(other)
        foretold = change @ (slope[free] + curvature @ change / 2)
        share = (reached[0] - value) / foretold if foretold < 0 else 0.0
        reach = min(reach * (3.0 if share > 0.6 else 0.3 if share < 0.2 else 1.0), 30.0)
        if reached[0] < value:
            lam, (value, slope, second) = other, reached
    return lam
