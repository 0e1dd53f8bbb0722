"""The middle of the score distributions of groups, for ``_middle`` in ``repair.py``."""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def middle_levels(levels, groups, is_last, n_groups, middle):
    """Write the mean of the largest and the smallest level of all groups at each distinct score.

    The level of a group at a score is the share of its interval above it. Entry i is a block of
    tied scores of group groups[i]. Entries are sorted by descending score. The level of the group
    is levels[i] just below the block, and 0 above its first block. is_last[i] says that entry i + 1
    has another score. Then one number is written into middle.
    """
    current = np.zeros(n_groups)
    largest, smallest, m = 0.0, 0.0, 0
    for i in range(levels.size):
        g = groups[i]
        was = current[g]
        current[g] = levels[i]
        largest = max(largest, levels[i])
        if was == smallest:  # levels only rise, so otherwise the smallest one is the same
            smallest = current.min()
        if is_last[i]:
            middle[m] = 0.5 * (largest + smallest)
            m += 1
