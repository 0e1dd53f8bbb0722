"""Moves and exchanges of rows between clusters that lower the normalised cut of a graph.

The cut of K clusters is K minus the sum of ``within[k] / volume[k]``: the weights inside a cluster
over the degrees of its rows. ``links[k, i]`` is the weight between row i and cluster k, row i
itself included. ``constraints[r] @ counts[k] + slack[k, r]`` are the ``values`` for cluster k,
negative where one is broken.

Three tuples of arrays travel through the kernels: ``graph = (indptr, indices, data, dense)``, a CSR
matrix, or ``dense`` if that is not empty; ``rows = (degrees, diagonal, cells)``; and what changes,
``state = (labels, links, within, volume)``.
"""

import numpy as np

from skfair._kernels.declaring import njit

# How many rows of the other cluster are looked at, of the same cell, for an exchange.
_PARTNERS = 48


@njit(cache=True)
def _share_inside(within, volume):
    """Return the share of a cluster's weights that stay inside; nothing of no weight is cut."""
    return within / volume if volume > 0.0 else 1.0


@njit(cache=True)
def _breaks_more(constraints, values_of_cluster, s, sign):
    """Whether the violation of a cluster grows when a row of cell s comes (1) or goes (-1)."""
    change = 0.0
    for r in range(constraints.shape[0]):
        before = values_of_cluster[r]
        after = before + sign * constraints[r, s]
        if before < -1e-9:
            change += before
        if after < -1e-9:
            change -= after
    return change > 1e-12


@njit(cache=True)
def _relabel(i, t, graph, degrees, state):
    """Move row i to cluster t in labels, links, within and volume."""
    indptr, indices, data, dense = graph
    labels, links, within, volume = state
    k = labels[i]
    own = 0.0
    if dense.shape[0]:
        own = dense[i, i]
    else:
        for e in range(indptr[i], indptr[i + 1]):
            if indices[e] == i:
                own += data[e]
    within[k] += own - 2.0 * links[k, i]
    within[t] += own + 2.0 * links[t, i]
    volume[k] -= degrees[i]
    volume[t] += degrees[i]
    labels[i] = t
    if dense.shape[0]:
        lost, won, weight = links[k], links[t], dense[i]
        for j in range(labels.size):
            lost[j] -= weight[j]
            won[j] += weight[j]
    else:
        for e in range(indptr[i], indptr[i + 1]):
            links[k, indices[e]] -= data[e]
            links[t, indices[e]] += data[e]


@njit(cache=True)
def _best_move(i, rows, constraints, values, state):
    """Return where row i may go and what that wins (-1 if nowhere), and where it would like to."""
    degrees, diagonal, cells = rows
    labels, links, within, volume = state
    k, s, d, own = labels[i], cells[i], degrees[i], diagonal[i]
    left = _share_inside(within[k] - 2.0 * links[k, i] + own, volume[k] - d)
    loss = _share_inside(within[k], volume[k]) - left
    best, best_t = 1e-10, -1
    wished, wished_t = -np.inf, -1
    # The last row stays: a cluster without rows has nothing that could be cut.
    may_leave = volume[k] - d > 1e-9 * d and not _breaks_more(constraints, values[k], s, -1.0)
    for t in range(links.shape[0]):
        if t == k:
            continue
        gain = _share_inside(within[t] + 2.0 * links[t, i] + own, volume[t] + d)
        gain -= _share_inside(within[t], volume[t]) + loss
        if gain > wished:
            wished, wished_t = gain, t
        if gain > best and may_leave and not _breaks_more(constraints, values[t], s, 1.0):
            best, best_t = gain, t
    return best_t, best, (wished_t if wished > 0.0 else -1)


@njit(cache=True)
def _best_partner(i, t, others, weight, dense, rows, state, best):
    """Return the row of cluster t to exchange with row i (-1: none), and what that wins.

    ``others`` are the rows of the cell of row i, ``weight`` the edges of row i.
    """
    degrees, diagonal, _ = rows
    labels, links, within, volume = state
    k, d = labels[i], degrees[i]
    now = _share_inside(within[k], volume[k]) + _share_inside(within[t], volume[t])
    partner = -1
    n_seen = 0
    for step in range(others.size):
        j = others[(step + i) % others.size]
        if labels[j] != t:
            continue
        n_seen += 1
        w = dense[i, j] if dense.shape[0] else weight[j]
        both = diagonal[i] + diagonal[j] - 2.0 * w
        gain = _share_inside(
            within[k] - 2.0 * links[k, i] + 2.0 * links[k, j] + both, volume[k] - d + degrees[j]
        )
        gain += _share_inside(
            within[t] - 2.0 * links[t, j] + 2.0 * links[t, i] + both, volume[t] + d - degrees[j]
        )
        if gain - now > best:
            best, partner = gain - now, j
        if n_seen == _PARTNERS:
            break
    return partner, best


@njit(cache=True)
def improve_cut(graph, rows, members, constraints, values, order, state):
    """Pass once over the rows in ``order``; return by how much the cut fell.

    A row moves where the cut falls most without breaking a constraint further; if no move helps, it
    changes places with a row of its own cell, which no constraint notices. ``members`` are where
    the rows of each cell start, and these rows. Writes the state and values. O(n K) and the
    neighbours of the rows that move; exchanges look at a few partners per row.
    """
    indptr, indices, data, dense = graph
    degrees, cells, labels = rows[0], rows[2], state[0]
    cell_starts, cell_rows = members
    weight = np.zeros(labels.size)  # of the edges of the present row
    total = 0.0
    for i in order:
        k, s = labels[i], cells[i]
        if degrees[i] <= 0.0:
            continue
        t, won, wished = _best_move(i, rows, constraints, values, state)
        if t >= 0:
            for r in range(constraints.shape[0]):
                values[k, r] -= constraints[r, s]
                values[t, r] += constraints[r, s]
            _relabel(i, t, graph, degrees, state)
            total += won
            continue
        if wished < 0:
            continue
        edges = range(0) if dense.shape[0] else range(indptr[i], indptr[i + 1])
        for e in edges:
            weight[indices[e]] += data[e]
        others = cell_rows[cell_starts[s] : cell_starts[s + 1]]
        j, won = _best_partner(i, wished, others, weight, dense, rows, state, won)
        for e in edges:
            weight[indices[e]] = 0.0
        if j >= 0:
            t = wished
            _relabel(i, t, graph, degrees, state)
            _relabel(j, k, graph, degrees, state)
            total += won
    return total
