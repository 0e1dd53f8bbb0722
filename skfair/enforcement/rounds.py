"""Two steps of strict enforcement that several families share, and their constants.

Solvers need smooth values, but limits are on true ones: rates are counts of decisions, which have
no slope. So a solution of the smooth problem is only near a point that satisfies the limits.

- :func:`moved_bounds`: a *round* solves the smooth problem, measures the true values, moves the
  bounds on the smooth values by the difference, and starts again from the last solution. Each
  family writes the loop itself, because problems and stopping rules differ: trained scores in
  :mod:`skfair.enforcement.erm.path`, decisions in :mod:`skfair.enforcement.decisions.offsets`,
  rankings and intervals of scores in their wings. :mod:`skfair.partial_parity` scales one tolerance
  instead of moving bounds.
- :func:`random_moves`: if limits are violated only slightly, a point that satisfies them is usually
  close, and random steps find it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict, TypeVar

import numpy as np

from skfair._typing import Callback, FloatArray, Seed

# Bounds are moved by this share of a newly measured difference between true and smooth values.
DAMPING = 0.7
MAX_ROUNDS = 6  # largest number of rounds
PATIENCE = 3  # rounds that may pass without gain

MOST_MOVES = 600  # random moves, at most
LONGEST = 0.2  # length of the first random move, in standard deviations of the scores
# The length of random moves is multiplied by LONGER after a move that gains, and by SHORTER after
# one that loses. If it has fallen below SHORTEST times the first length, it becomes the first
# length again.
LONGER, SHORTER, SHORTEST = 1.5, 0.9, 0.005

P = TypeVar("P")


class SolveOptions(TypedDict, total=False):
    """Keyword arguments of ``Solver.solve``, which has a default for each."""

    tol: float
    max_iter: int
    random_state: Seed
    callback: Callback | None


def moved_bounds(
    lower: FloatArray,
    upper: FloatArray,
    offsets: FloatArray,  # true minus smooth values, as measured at the last solution
    margin: FloatArray | float,  # how far inside the bounds the true values should be
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the smooth values, given bounds on the true ones.

    If the margin makes a lower and an upper bound cross, both become their middle.
    """
    lower, upper = lower - offsets + margin, upper - offsets - margin
    crossed = upper < lower
    middle = 0.5 * (upper + lower)
    return np.where(crossed, middle, lower), np.where(crossed, middle, upper)


def random_moves(
    current: P,
    # ``missed(place)``: the number to be made small, such as the violation of limits plus the loss
    # in the objective. The search ends when it is 0
    missed: Callable[[P], float],
    # ``move(place, length)``: a random place at about this distance
    move: Callable[[P, float], P],
    *,
    most: int,  # number of moves, at most
    longest: float,  # length of the first move
) -> P:
    """Try random moves, keep those that miss no more than before, and return the last place.

    A place is whatever the caller searches over: P is its type.
    """
    length, least = longest, missed(current)
    for _ in range(most):
        if least == 0:
            break
        moved = move(current, length)
        missed_moved = missed(moved)
        if missed_moved > least:
            length = SHORTER * length if length > SHORTEST * longest else longest
        else:
            # Places that miss equally much are accepted, because they lead out of dead ends.
            length *= LONGER if missed_moved < least else 1.0
            current, least = moved, missed_moved
    return current
