"""Soft decisions: how much of each row goes to each class at given prices."""

import math

from skfair._kernels.declaring import njit


@njit(cache=True)
def soft_decisions(margins, weights, temperature):
    """Return the weighted sum of soft maxima; ``margins`` become weights times soft decisions.

    The soft maximum of a row is T log sum exp(margin / T) for the temperature T.
    """
    n, n_classes = margins.shape
    total = 0.0
    for i in range(n):
        largest = margins[i, 0]
        for c in range(1, n_classes):
            largest = max(largest, margins[i, c])
        mass = 0.0
        for c in range(n_classes):
            margins[i, c] = math.exp((margins[i, c] - largest) / temperature)
            mass += margins[i, c]
        total += weights[i] * (largest + temperature * math.log(mass))
        for c in range(n_classes):
            margins[i, c] *= weights[i] / mass
    return total
