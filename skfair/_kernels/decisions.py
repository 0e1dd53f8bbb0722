"""Soft decisions at offsets, for the dual."""

import math

import numpy as np

from skfair._kernels.declaring import njit

# exp(-_CERTAIN) is nothing beside 1.
_CERTAIN = 38.0


@njit(cache=True)
def soften(leads, weights, temperature):
    """Return the weighted sum of soft maxima of 0 and leads, which become weights of decisions.

    The soft maximum is T log sum exp(lead / T) for the temperature T.
    """
    total, n_others = 0.0, leads.shape[1]
    for i in range(leads.shape[0]):
        weight, largest, second, first = weights[i], 0.0, -np.inf, -1
        for c in range(n_others):
            # Selections instead of branches, which the processor cannot foresee.
            lead = leads[i, c]
            is_more = lead > largest
            second = largest if is_more else max(second, lead)
            first = c if is_more else first
            largest = lead if is_more else largest
        # Most rows are far from a tie: what is beyond rounding needs no exponential.
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
