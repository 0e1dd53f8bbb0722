"""Soft decisions and their values, for the dual of post-processing.

Called by ``skfair/enforcement/decisions/dual.py``. The *lead* of a class for a row is its utility
minus offset, compared with that of the first class, whose lead is therefore 0.
"""

import math

import numpy as np

from skfair._kernels.declaring import njit

# exp(-_CERTAIN) added to 1 is 1 in double precision.
_CERTAIN = 38.0


@njit(cache=True)
def soften(leads, weights, temperature):
    """Return the weighted sum of soft maxima of 0 and ``leads``, and overwrite ``leads``.

    For a row with the leads l_c and the weight w, at the temperature T, the soft maximum is
    T log(1 + sum_c exp(l_c / T)). Written in place of l_c is w times its derivative by l_c, the
    soft decision for the class c. The largest lead is subtracted before exponentials are taken, so
    that none overflows.
    """
    total, n_others = 0.0, leads.shape[1]
    for i in range(leads.shape[0]):
        # The largest and the second largest of 0 and the leads; the class of the largest, or -1 if
        # that is 0.
        weight, largest, second, first = weights[i], 0.0, -np.inf, -1
        for c in range(n_others):
            # Conditional values instead of branches, which the processor would mispredict.
            lead = leads[i, c]
            is_more = lead > largest
            second = largest if is_more else max(second, lead)
            first = c if is_more else first
            largest = lead if is_more else largest
        # Most rows are far from a tie: one decision has all the weight, and no exponential is
        # needed.
        if second <= largest - _CERTAIN * temperature:
            for c in range(n_others):
                leads[i, c] = weight if c == first else 0.0
            total += weight * largest
            continue
        mass = math.exp(-largest / temperature)
        for c in range(n_others):
            leads[i, c] = math.exp((leads[i, c] - largest) / temperature)
            mass += leads[i, c]
        for c in range(n_others):
            leads[i, c] *= weight / mass
        total += weight * (largest + temperature * math.log(mass))
    return total
