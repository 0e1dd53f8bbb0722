"""Gauss-Newton for the few offsets at which sums over many soft decisions come near to targets."""

import math

import numpy as np

from skfair._kernels.declaring import njit

# Rows with margins of this many temperatures are decided.
_FAR = 12.0
_N_NEWTON, _LONGEST = 20, 0.3
# Squares of missed sums that are not worth another step, and the shortest part of a step.
_ENOUGH, _SHORTEST = 1e-2, 0.1
# What is wanted of a sum: its target, its standard error, the factor on the square of the unknown
# that belongs to it, and how far off it may be at no cost.
WANTED = np.dtype([(name, np.float64) for name in ("target", "error", "ridge", "tolerance")])


@njit(cache=True)
def _missed_sums(gains, directions, effects, wanted, temperature, point, soft, sums):
    """Write how far rows are selected to ``soft``, and what sums miss to ``sums`` (2, n_wanted).

    The second ones are the sums of decided rows.
    """
    margins, far = gains - point @ directions, _FAR * temperature
    decided = np.empty(gains.size)
    for i in range(gains.size):
        decided[i] = 1.0 if margins[i] > 0.0 else 0.0
        soft[i] = decided[i]
        if abs(margins[i]) < far:
            soft[i] = 1.0 / (1.0 + math.exp(-margins[i] / temperature))
    n_wanted = wanted.size
    sums[0], sums[1] = effects[:n_wanted] @ soft, effects[:n_wanted] @ decided
    for j in range(n_wanted):
        for way in range(2):
            missed = sums[way, j] - wanted["target"][j]
            outside = max(abs(missed) - wanted["tolerance"][j], 0.0)
            sums[way, j] = math.copysign(outside, missed) / wanted["error"][j]


@njit(cache=True)
def _newton_step(directions, effects, wanted, point, slopes, missed, step):
    """Write the step of Gauss and Newton to ``step``, no longer than ``_LONGEST``.

    Returned is by how much the squares are expected to fall on the whole step.
    """
    n = wanted.size
    # Of unknown j in sum k
    jacobian = (directions[:n] * slopes) @ effects[:n].T
    for j in range(n):
        for k in range(n):
            is_inside = wanted["tolerance"][k] > 0.0 and missed[k] == 0.0
            jacobian[j, k] = 0.0 if is_inside else jacobian[j, k] / wanted["error"][k]
    curvature = np.empty((n, n))
    for j in range(n):
        step[j] = -wanted["ridge"][j] * point[j]
        for k in range(n):
            step[j] += jacobian[j, k] * missed[k]
        for other in range(j + 1):
            total = wanted["ridge"][j] + 1e-6 if other == j else 0.0
            for k in range(n):
                total += jacobian[j, k] * jacobian[other, k]
            curvature[j, other] = total
    for j in range(n):  # Cholesky, and the first of two substitutions
        for other in range(j + 1):
            for k in range(other):
                curvature[j, other] -= curvature[j, k] * curvature[other, k]
            if other < j:
                curvature[j, other] /= curvature[other, other]
        curvature[j, j] = math.sqrt(max(curvature[j, j], 1e-300))
        for k in range(j):
            step[j] -= curvature[j, k] * step[k]
        step[j] /= curvature[j, j]
    longest = expected = 0.0
    for j in range(n):
        expected += step[j] ** 2
    for j in range(n - 1, -1, -1):
        for k in range(j + 1, n):
            step[j] -= curvature[k, j] * step[k]
        step[j] /= curvature[j, j]
        longest = max(longest, abs(step[j]))
    if longest > _LONGEST:
        for j in range(n):
            step[j] *= _LONGEST / longest
    return expected


@njit(cache=True)
def point_of_sums(gains, directions, effects, wanted, temperatures, clearer, point):
    """Move ``point`` to where the sums of ``effects`` over soft decisions are nearest to wanted.

    The margin of row i is ``gains[i] - point @ directions[:, i]``, and it adds ``effects[:, i]`` to
    the sums. The first unknowns belong to the sums, one each, and the others stay; ``wanted`` holds
    a record of ``WANTED`` for each sum. At the last temperature the point is taken at which decided
    rows miss least, if they miss less by ``clearer``.
    """
    n = wanted.size
    sums, step, trial, best = np.empty((2, n)), np.zeros(n), point.copy(), point.copy()
    soft = np.empty(gains.size)
    lowest, decided_cost = np.inf, np.inf
    for temperature in temperatures:
        cost, lowest, decided_cost, length = np.inf, np.inf, np.inf, 1.0
        trial[:] = point
        step[:] = 0.0
        for _ in range(_N_NEWTON):
            _missed_sums(gains, directions, effects, wanted, temperature, trial, soft, sums)
            after = after_decided = 0.0
            for j in range(n):
                prior_cost = wanted["ridge"][j] * trial[j] ** 2
                after += sums[0, j] ** 2 + prior_cost
                after_decided += sums[1, j] ** 2 + prior_cost
            if after_decided < lowest:
                lowest = after_decided
                best[:] = trial
            if after < cost:
                is_done = cost - after < _ENOUGH
                cost, decided_cost, length = after, after_decided, 1.0
                point[:] = trial
                if is_done:
                    break
                slopes = soft * (1.0 - soft) / temperature
                expected = _newton_step(directions, effects, wanted, point, slopes, sums[0], step)
                if expected < _ENOUGH:
                    break
            else:
                length *= 0.4
                if length < _SHORTEST:
                    break
            for j in range(n):
                trial[j] = point[j] + length * step[j]
    if lowest < decided_cost - clearer:
        point[:] = best


@njit(cache=True)
def points_of_sums(gains, directions, effects, wanted, temperatures, clearer, points, folds):
    """Move the points of some ``folds``, as :func:`point_of_sums` does with their own effects."""
    for k in folds:
        point_of_sums(gains, directions, effects[k], wanted[k], temperatures, clearer, points[k])
