"""Labels that lower the cut of a graph plus a penalty on uneven groups, row by row.

FFSC (``papers/fair_spectral_dc/ffsc.py``) calls ``descend_fair_cut``.

The cost of a cluster is ``(volume - within + weight |surplus|^2) / volume``. Here ``within`` are
the weights between its rows, ``volume`` is the sum of their degrees, and ``surplus`` the sum of
their ``centred`` groups (the groups of a row minus the shares of the groups).
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def _cost_with_groups(within, volume, surplus, weight):
    """Return the share of a cluster's weights that is cut, plus its squared surplus of groups."""
    squared = 0.0
    for g in range(surplus.size):
        squared += surplus[g] * surplus[g]
    return (volume - within + weight * squared) / volume


@njit(cache=True)
def _links_of(i, graph, rows, labels, links):
    """Write the sum of the weights between row i and each cluster; return its own weight."""
    indptr, indices, data, dense = graph
    links[:] = 0.0
    if dense.shape[0] > 0:
        for j in rows:
            links[labels[j]] += dense[i, j]
        return float(dense[i, i])
    own = 0.0
    for e in range(indptr[i], indptr[i + 1]):
        links[labels[indices[e]]] += data[e]
        if indices[e] == i:
            own += data[e]
    return own


@njit(cache=True)
def descend_fair_cut(graph, degrees, centred, weight, order, labels, n_clusters):
    """Move each row of ``order`` to the cluster where the objective is smallest.

    The objective is the sum of the costs of the clusters. ``graph`` is the tuple of
    :mod:`skfair.cluster.spectral._kernels.cuts`. Writes labels; returns the number of moved rows
    and the objective. The last row of a cluster stays.
    """
    within, volume = np.zeros(n_clusters), np.zeros(n_clusters)
    surplus = np.zeros((n_clusters, centred.shape[1]))
    sizes = np.zeros(n_clusters, np.int64)
    links, changed = np.zeros(n_clusters), np.zeros(centred.shape[1])
    for i in order:
        _links_of(i, graph, order, labels, links)
        within[labels[i]] += links[labels[i]]
        volume[labels[i]] += degrees[i]
        surplus[labels[i]] += centred[i]
        sizes[labels[i]] += 1
    cost = np.zeros(n_clusters)
    for k in range(n_clusters):
        cost[k] = _cost_with_groups(within[k], volume[k], surplus[k], weight)
    n_moved = 0
    for i in order:
        k, d = labels[i], degrees[i]
        if sizes[k] == 1:
            continue
        own = _links_of(i, graph, order, labels, links)
        changed[:] = surplus[k] - centred[i]
        left = within[k] - 2.0 * links[k] + own
        without = _cost_with_groups(left, volume[k] - d, changed, weight)
        best, t, best_cost = -1e-10, -1, 0.0
        for other in range(n_clusters):
            if other == k:
                continue
            changed[:] = surplus[other] + centred[i]
            joined = _cost_with_groups(
                within[other] + 2.0 * links[other] + own, volume[other] + d, changed, weight
            )
            change = joined - cost[other] + without - cost[k]
            if change < best:
                best, t, best_cost = change, other, joined
        if t < 0:
            continue
        within[k] += own - 2.0 * links[k]
        within[t] += own + 2.0 * links[t]
        volume[k] -= d
        volume[t] += d
        surplus[k] -= centred[i]
        surplus[t] += centred[i]
        sizes[k] -= 1
        sizes[t] += 1
        cost[k], cost[t] = without, best_cost
        labels[i] = t
        n_moved += 1
    return n_moved, cost.sum()
