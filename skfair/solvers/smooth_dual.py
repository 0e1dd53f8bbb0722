r"""The smooth dual: multipliers at which soft choices satisfy linear constraints.

Each row chooses among options that are worth something, less what multipliers charge for what the
choice adds to the constraints ``E table <= costs``. The multipliers minimise

.. math:: \sum_i w_i \, T \log \sum_c \exp((V_i - E' \lambda)_c / T) + costs' \lambda
   \quad \text{over} \quad \lambda \ge 0

by L-BFGS-B of SciPy. Its slope is what the limits leave: ``costs - E table``. Decisions
(:mod:`skfair.enforcement.decisions.dual`) say what a choice and its table are; clusters have few
multipliers and take steps of Newton's method (:mod:`skfair.solvers.clustering.assignment`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import Bounds, minimize

from skfair._typing import FloatArray

# A step that gains less than this share of the value is the last, and one after which all slopes
# that lead further are this small.
_LEAST_GAIN, _SMALL_SLOPE = 1e-9, 1e-6


def minimised_dual(
    # ``soft(prices)``: the sum of soft maxima, and how much is chosen of each option, flat
    soft: Callable[[FloatArray], tuple[float, FloatArray]],
    effects: Any,  # (n_multipliers, n_options): what a choice adds to each constraint
    costs: FloatArray,  # (n_multipliers,): the limits
    start: FloatArray,
    max_iter: int,
) -> FloatArray:
    """Return multipliers >= 0 of low value."""
    on_prices = effects.T if isinstance(effects, np.ndarray) else effects.T.tocsr()

    def dual(point: FloatArray) -> tuple[float, FloatArray]:
        value, table = soft(on_prices @ point)
        return value + float(costs @ point), costs - effects @ table

    options: Any = {"maxiter": max_iter, "ftol": _LEAST_GAIN, "gtol": _SMALL_SLOPE}
    bounds = Bounds(0.0, np.inf)
    solution = minimize(dual, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(solution.x)
