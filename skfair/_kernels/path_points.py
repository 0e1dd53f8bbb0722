"""Gauss-Newton for the few offsets at which sums over many soft decisions come near to targets.

Called by ``skfair/enforcement/certified/gap_solver.py``, for which the sums are gaps between rates.
The unknowns x are a few numbers, together called the *point*. Row i has the margin

    m_i = gains[i] - sum_j x_j directions[j, i]

and the soft decision p_i = 1 / (1 + exp(-m_i / T)) at the temperature T; its hard decision is 1 if
m_i > 0, else 0. Sum k is S_k = sum_i effects[k, i] p_i. Its distance from the interval target +-
tolerance, in units of its standard error, is called missed_k. The *cost* of a point is

    sum_k missed_k^2 + sum_j ridge_j x_j^2

It is minimised at one temperature after another. Temperatures fall, so that soft decisions become
hard ones.
"""

import math

import numpy as np

from skfair._kernels.declaring import njit

# If a margin is more than this many temperatures from 0, the hard decision replaces the soft one,
# which differs from it by less than exp(-12), about 6e-6.
_FAR = 12.0
# At each temperature at most _N_NEWTON points are tried. A step changes no unknown by more than
# _LONGEST.
_N_NEWTON, _LONGEST = 20, 0.3
# The steps at a temperature end if a step lowers the cost by less than _ENOUGH, if the next one is
# not expected to lower it by more, or if a step that raised the cost has been shortened to less
# than the part _SHORTEST of its length. The cost is in squares of standard errors.
_ENOUGH, _SHORTEST = 1e-2, 0.1
# A record for each sum: its target, its standard error (``error``), the factor ridge_j of the
# unknown with the same number, and the distance from the target that costs nothing (``tolerance``).
WANTED = np.dtype([(name, np.float64) for name in ("target", "error", "ridge", "tolerance")])


@njit(cache=True)
def _missed_sums(gains, directions, effects, wanted, temperature, point, soft, sums):
    """Write the soft decisions to ``soft``, and missed_k of each sum to ``sums`` (2, n_wanted).

    Line 0 is for the soft decisions and line 1 for the hard ones. A number is negative if the sum
    is below its target.
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
    """Write the step of Gauss and Newton to ``step``, shortened to changes of at most ``_LONGEST``.

    ``slopes`` are the derivatives of soft decisions by their margins. J_jk is minus the derivative
    of missed_k by x_j, and R is the diagonal matrix of the ridge factors. The step solves
    (J J' + R) step = J missed - R x. Returns by how much the cost would fall on the whole step,
    before it is shortened, if the cost were quadratic.
    """
    n = wanted.size
    # A sum within its tolerance costs nothing, nor does it nearby, so its derivative is 0.
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
            # 1e-6 keeps the matrix invertible if a derivative and a ridge factor are both 0.
            total = wanted["ridge"][j] + 1e-6 if other == j else 0.0
            for k in range(n):
                total += jacobian[j, k] * jacobian[other, k]
            curvature[j, other] = total
    # The Cholesky factor L replaces the lower triangle. In the same loop, the first of the two
    # substitutions replaces ``step`` by L^-1 (J missed - R x).
    for j in range(n):
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
    # The squares of L^-1 (J missed - R x) add up to the expected fall.
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
    """Move ``point`` to where the cost of soft decisions is least, in place.

    ``wanted`` holds a record of ``WANTED`` for each sum. Unknown k belongs to sum k. Unknowns
    beyond the number of sums stay as they are. Soft decisions may reach targets that the hard ones
    at the same point do not. So if a point was tried at the last temperature whose hard decisions
    cost less by more than ``clearer``, ``point`` becomes that one.
    """
    n = wanted.size
    sums, step, trial, best = np.empty((2, n)), np.zeros(n), point.copy(), point.copy()
    soft = np.empty(gains.size)
    lowest, decided_cost = np.inf, np.inf
    for temperature in temperatures:
        # ``cost`` is the cost of soft decisions at ``point``, ``decided_cost`` that of hard ones.
        # ``lowest`` is the lowest cost of hard decisions at any tried point, which is ``best``.
        # ``length`` is the part of the step that is tried. The first trial is ``point`` itself,
        # which is accepted because ``cost`` is still infinite.
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
