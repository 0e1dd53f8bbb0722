"""The middle of the score distributions of groups in one sweep."""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def middle_levels(levels, groups, is_last, n_groups, middle):
    """Write the mean of the largest and smallest level over the groups, after each position.

    Positions are the score blocks of all groups by descending score; ``levels`` is that of the
    block's group below it. Blocks of equal score are taken together: ``is_last`` marks their end.
    """
    current = np.zeros(n_groups)
    largest, smallest, m = 0.0, 0.0, 0
    for i in range(levels.size):
        g = groups[i]
        was = current[g]
        current[g] = levels[i]
        largest = max(largest, levels[i])
        if was == smallest:
            smallest = current.min()
        if is_last[i]:
            middle[m] = 0.5 * (largest + smallest)
            m += 1
