"""Minimising a smooth function of numbers that may not be negative, by L-BFGS-B of SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from skfair._typing import FloatArray

# A step that gains less than this share of the value is the last, and one after which all slopes
# that lead further are this small.
_LEAST_GAIN, _SMALL_SLOPE = 1e-9, 1e-6


def minimised_above_zero(
    function: Callable[[FloatArray], tuple[float, FloatArray]],  # returns value and slope
    start: FloatArray,
    max_iter: int,
) -> FloatArray:
    """Return numbers >= 0 of low value."""
    options: Any = {"maxiter": max_iter, "ftol": _LEAST_GAIN, "gtol": _SMALL_SLOPE}
    bounds = Bounds(0.0, np.inf)
    solution = minimize(
        function, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return np.asarray(solution.x)
