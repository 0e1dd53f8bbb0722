"""Soft decisions and their values, for the dual problem of post-processing.

Called by ``skfair/enforcement/decisions/dual.py``. For a row, each class has a utility minus an
offset. The *lead* of a class says by how much this number exceeds the number of the first class.
The lead of the first class is 0 and is not stored.
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
    T log(1 + sum_c exp(l_c / T)). Each l_c is replaced by w times the derivative of the soft
    maximum by l_c, which is the soft decision for the class c. The largest lead is subtracted
    before exponentials are taken, so that none overflows.
    """
    total, n_others = 0.0, leads.shape[1]
    for i in range(leads.shape[0]):
        # ``largest`` and ``second`` become the two largest numbers among 0 and the leads, and
        # ``first`` the class with the largest lead. It stays -1 if no lead is above 0.
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
