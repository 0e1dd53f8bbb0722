"""Decision cuts of groups in one sweep."""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def best_cuts(levels, gains, starts, lows, tolerance, cuts):
    """Write the cut of each group, all levels within [low, low + tolerance], of largest total gain.

    Group g has the cuts starts[g]:starts[g + 1], with levels that do not fall. ``lows`` rise. The
    largest gain within a sliding window is kept in a queue of falling gains. Returns the total.
    """
    n_groups = starts.size - 1
    queue = np.empty(levels.size, np.int64)
    head = starts[:-1].copy()  # the queue of g occupies queue[head[g]:tail[g]]
    tail = starts[:-1].copy()
    entered = starts[:-1].copy()
    best = -np.inf
    for low in lows:
        total = 0.0
        for g in range(n_groups):
            while entered[g] < starts[g + 1] and levels[entered[g]] <= low + tolerance:
                j = entered[g]
                while tail[g] > head[g] and gains[queue[tail[g] - 1]] < gains[j]:
                    tail[g] -= 1
                queue[tail[g]] = j
                tail[g] += 1
                entered[g] += 1
            while head[g] < tail[g] and levels[queue[head[g]]] < low:
                head[g] += 1
            if head[g] == tail[g]:
                total = -np.inf
                break
            total += gains[queue[head[g]]]
        if total > best:
            best = total
            for g in range(n_groups):
                cuts[g] = queue[head[g]] - starts[g]
    return best
