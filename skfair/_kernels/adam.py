"""One step of Adam, in one pass over the parameters instead of nine."""

import math

from skfair._kernels.declaring import njit


@njit(cache=True)
def adam_step(point, gradient, first, second, decay1, decay2, epsilon, rate, unbias):
    """Renew both running means and move ``point``; all three in place.

    The step is ``rate * first / (unbias * sqrt(second) + epsilon)``.
    """
    for i in range(point.size):
        g = gradient[i]
        first[i] += (1 - decay1) * (g - first[i])
        second[i] += (1 - decay2) * (g * g - second[i])
        point[i] -= rate * first[i] / (unbias * math.sqrt(second[i]) + epsilon)
