"""The best cuts of groups whose rates lie in one window, in one sweep.

Called by :func:`skfair.enforcement.cuts.best_cuts`, which explains cuts and windows.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def best_cuts(levels, gains, starts, lows, tolerance, cuts):
    """Write to ``cuts`` the cut of each group, with all levels in one window and the largest gain.

    A window is [low, low + tolerance] for one of ``lows``, which rise. Group g has the cuts
    starts[g]:starts[g + 1], whose ``levels`` (rates) do not fall. ``cuts`` are counted from
    starts[g]. Returns the gain of all groups, or -inf if no window has a cut of every group.

    The window slides upwards. Each group has a queue of those cuts inside it that may still become
    the best: a cut leaves when a later one gains more. So gains never rise along the queue, and
    its head is the best cut. Each cut enters and leaves once.
    """
    n_groups = starts.size - 1
    queue = np.empty(levels.size, np.int64)
    head = starts[:-1].copy()  # the queue of g is queue[head[g]:tail[g]]
    tail = starts[:-1].copy()
    entered = starts[:-1].copy()  # the first cut of g that has not entered yet
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
