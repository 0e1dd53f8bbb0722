"""The melded test by drawing betas, with plain counting."""

import numpy as np

from tests.seeds import generator


def naive_p_value(selected, groups, limit, n_draws=200_000):
    """P-value of "two groups differ by the limit or more": the sum of both ways."""
    rng = generator(0)
    names = np.unique(groups)
    k = [int(selected[groups == name].sum()) for name in names]
    n = [int((groups == name).sum()) for name in names]
    found = []
    for i, j in ((0, 1), (1, 0)):
        upper = rng.beta(k[i] + 1, n[i] - k[i], n_draws) if k[i] < n[i] else 1.0
        lower = rng.beta(k[j], n[j] - k[j] + 1, n_draws) if k[j] else 0.0
        found.append(np.mean(upper - lower >= limit))
    return min(sum(found), 1.0)
