"""What all rounds of strict enforcement share: solve, measure, move the bounds, solve again.

Bounds on smooth stand-ins are moved by what the truth is seen to be, and every round starts from
the last solution. Scores of trained models go through them in :mod:`skfair.enforcement.erm.path`,
decisions of any model in :mod:`skfair.enforcement.decisions.prices`, limits within an interval in
:mod:`skfair.enforcement.partial.strict` and rankings in :mod:`skfair.ranking.strict`.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np

from skfair._typing import Callback, FloatArray, Seed

DAMPING = 0.7  # share of a newly seen difference of true and smooth values that is believed
MAX_ROUNDS = 6  # solves of one problem, whose bounds are moved between them

PATIENCE = 3  # rounds that may pass without gain


class SolveOptions(TypedDict, total=False):
    """How a solver is called; what is left out is its own choice."""

    tol: float
    max_iter: int
    random_state: Seed
    callback: Callback | None


def moved_bounds(
    lower: FloatArray,
    upper: FloatArray,
    offsets: FloatArray,  # true minus smooth values, as far as they are believed
    margin: FloatArray | float,  # how far inside is aimed at
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on smooth values that keep true ones inside; their middle where they cross."""
    lower, upper = lower - offsets + margin, upper - offsets - margin
    crossed = upper < lower
    middle = 0.5 * (upper + lower)
    return np.where(crossed, middle, lower), np.where(crossed, middle, upper)
