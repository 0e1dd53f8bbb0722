"""Rounds of strict enforcement: solve, measure, move the bounds, and random moves.

Bounds on smooth values are moved by their difference from the true values, and every round starts
from the last solution. The problems and the ends of rounds differ: trained scores go through them
in :mod:`skfair.enforcement.erm.path`, decisions of any model in
:mod:`skfair.enforcement.decisions.offsets`, and families beside them in files of their own. Limits
within an interval have one tolerance, which is scaled.

True rates are steps: they have no slope, and smooth stand-ins lead near a point within the bounds,
not always into it. Where little is missed a point that misses nothing is mostly near, and random
moves find it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, TypeVar

import numpy as np

from skfair._typing import Callback, FloatArray, Seed

DAMPING = 0.7  # share of a newly seen difference of true and smooth values that bounds are moved by
MAX_ROUNDS = 6  # solves of one problem, whose bounds are moved between them

PATIENCE = 3  # rounds that may pass without gain

# Random moves, at most.
MOST_MOVES = 600
# Longest moves, in spreads of the scores.
LONGEST = 0.2
# Factors on the length of moves after one that gains something, and after one that loses; moves
# that are shorter than this share of the longest begin anew.
LONGER, SHORTER, SHORTEST = 1.5, 0.9, 0.005

P = TypeVar("P")


class SolveOptions(TypedDict, total=False):
    """How a solver is called; what is left out is its own choice."""

    tol: float
    max_iter: int
    random_state: Seed
    callback: Callback | None


def moved_bounds(
    lower: FloatArray,
    upper: FloatArray,
    offsets: FloatArray,  # by how much bounds are moved: true minus smooth values
    margin: FloatArray | float,  # how far inside is aimed at
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on smooth values that keep true ones inside; their middle where they cross."""
    lower, upper = lower - offsets + margin, upper - offsets - margin
    crossed = upper < lower
    middle = 0.5 * (upper + lower)
    return np.where(crossed, middle, lower), np.where(crossed, middle, upper)


def random_moves(
    current: P,
    missed: Callable[[P], float],  # ``missed(place) -> float``: 0 where nothing is left to look for
    # ``move(place, length) -> place``: a random place at this distance
    move: Callable[[P, float], P],
    *,
    most: int,
    longest: float,  # length of the first move
) -> P:
    """Move as long as no more is missed than before; return where that ends."""
    length, least = longest, missed(current)
    for _ in range(most):
        if least == 0:
            break
        moved = move(current, length)
        missed_moved = missed(moved)
        if missed_moved > least:
            length = SHORTER * length if length > SHORTEST * longest else longest
        else:
            # Places that miss as much lead out of dead ends.
            length *= LONGER if missed_moved < least else 1.0
            current, least = moved, missed_moved
    return current
