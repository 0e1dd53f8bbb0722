"""Random moves, for the last bit of the way to true bounds.

True rates are steps: they have no slope, and smooth stand-ins of them lead near a point within the
bounds, not always into it. Where little is missed a point that misses nothing is mostly near.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

P = TypeVar("P")
MOST_MOVES = 600
# Longest moves, in spreads of the scores.
LONGEST = 0.2
# Factors on the length of moves after one that gains something, and after one that loses; moves
# that are shorter than this share of the longest begin anew.
LONGER, SHORTER, SHORTEST = 1.5, 0.9, 0.005


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
