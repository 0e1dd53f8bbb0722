"""One step of Adam, in one pass over the parameters instead of nine with numpy.

Called by the stochastic solvers (``skfair/solvers/erm/stochastic.py``).
"""

import math

from skfair._kernels.declaring import njit


@njit(cache=True)
def adam_step(point, gradient, first, second, decay1, decay2, epsilon, rate, unbias):
    """Update the running means of the gradient and of its square, and move ``point``, in place.

    ``first`` and ``second`` are these means, with the factors ``decay1`` and ``decay2`` per step.
    The step is ``-rate * first / (unbias * sqrt(second) + epsilon)``. Both means start at 0, which
    the caller makes up for by ``rate`` and ``unbias``.
    """
    for i in range(point.size):
        g = gradient[i]
        first[i] += (1 - decay1) * (g - first[i])
        second[i] += (1 - decay2) * (g * g - second[i])
        point[i] -= rate * first[i] / (unbias * math.sqrt(second[i]) + epsilon)
