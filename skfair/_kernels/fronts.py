"""Fronts of points that minimise a cost and maximise a balance."""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def thin(costs, balances, n_kept, kept):
    """Clear ``kept`` for one point after another, always the one that costs least hypervolume.

    The points are a front, both arrays ascending. Its two ends are never cleared.
    """
    n = costs.size
    before, after = np.arange(n) - 1, np.arange(n) + 1
    loss = np.full(n, np.inf)
    for i in range(1, n - 1):
        loss[i] = (costs[i + 1] - costs[i]) * (balances[i] - balances[i - 1])
    for _ in range(n - n_kept):
        worst = 0
        for i in range(1, n):
            if loss[i] < loss[worst]:
                worst = i
        if loss[worst] == np.inf:
            break
        kept[worst] = False
        loss[worst] = np.inf
        a, b = before[worst], after[worst]
        after[a], before[b] = b, a
        if a > 0:
            loss[a] = (costs[b] - costs[a]) * (balances[a] - balances[before[a]])
        if b < n - 1:
            loss[b] = (costs[after[b]] - costs[b]) * (balances[b] - balances[a])
