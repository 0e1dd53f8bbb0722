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
def _missed_sums(gains, directions, effects, wanted, temperature, point, slopes, near, sums):
    """Write what soft and decided sums miss to ``sums`` (2, n_wanted); return the rows in between.

    These are listed in ``near``, with their slopes.
    """
    n_wanted, n_near = wanted.size, 0
    sums[:] = 0.0
    far = _FAR * temperature
    for i in range(gains.size):
        margin = gains[i]
        for j in range(point.size):
            margin -= directions[i, j] * point[j]
        if margin <= -far:
            continue
        if margin < far:
            soft = 1.0 / (1.0 + math.exp(-margin / temperature))
            slopes[n_near] = soft * (1.0 - soft) / temperature
            near[n_near] = i
            n_near += 1
            for j in range(n_wanted):
                sums[0, j] += soft * effects[i, j]
            if margin <= 0.0:
                continue
        else:
            for j in range(n_wanted):
                sums[0, j] += effects[i, j]
        for j in range(n_wanted):
            sums[1, j] += effects[i, j]
    for j in range(n_wanted):
        for way in range(2):
            missed = sums[way, j] - wanted["target"][j]
            outside = max(abs(missed) - wanted["tolerance"][j], 0.0)
            sums[way, j] = math.copysign(outside, missed) / wanted["error"][j]
    return n_near


@njit(cache=True)
def _newton_step(directions, effects, wanted, point, slopes, near, missed, step):
    """Write the step of Gauss and Newton to ``step``, no longer than ``_LONGEST``."""
    n = wanted.size
    jacobian = np.zeros((n, n))  # of unknown j in sum k
    for a in range(near.size):
        i = near[a]
        for j in range(n):
            change = slopes[a] * directions[i, j]
            if change != 0.0:
                for k in range(n):
                    jacobian[j, k] += change * effects[i, k]
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
    longest = 0.0
    for j in range(n - 1, -1, -1):
        for k in range(j + 1, n):
            step[j] -= curvature[k, j] * step[k]
        step[j] /= curvature[j, j]
        longest = max(longest, abs(step[j]))
    if longest > _LONGEST:
        for j in range(n):
            step[j] *= _LONGEST / longest


@njit(cache=True)
def point_of_sums(gains, directions, effects, wanted, temperatures, clearer, point):
    """Move ``point`` to where the sums of ``effects`` over soft decisions are nearest to wanted.

    The margin of row i is ``gains[i] - directions[i] @ point``; the first unknowns belong to the
    sums, one each, the others stay; ``wanted`` holds a record of ``WANTED`` for each sum. At the
    last temperature the point is taken at which decided rows miss least, if they miss less by
    ``clearer``.
    """
    n = wanted.size
    sums, step, trial, best = np.empty((2, n)), np.zeros(n), point.copy(), point.copy()
    slopes, near = np.empty(gains.size), np.empty(gains.size, np.int64)
    lowest, decided_cost = np.inf, np.inf
    for temperature in temperatures:
        cost, lowest, decided_cost, length = np.inf, np.inf, np.inf, 1.0
        trial[:] = point
        step[:] = 0.0
        for _ in range(_N_NEWTON):
            n_near = _missed_sums(
                gains, directions, effects, wanted, temperature, trial, slopes, near, sums
            )
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
                _newton_step(
                    directions, effects, wanted, point, slopes, near[:n_near], sums[0], step
                )
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
