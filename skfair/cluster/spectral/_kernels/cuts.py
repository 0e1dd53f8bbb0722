"""Moves and exchanges of rows between clusters that lower the normalised cut of a graph.

``improve_by_moves`` in ``fair_cut.py`` calls :func:`improve_cut`, a pass over all rows. Letters: i
and j are rows, k is the cluster of row i, t another cluster, s the cell of row i (the rows of the
same groups), r a constraint.

The cut of K clusters is ``K - sum_k within[k] / volume[k]``, with ``within[k]`` the weights between
rows of the cluster and ``volume[k]`` the sum of their degrees. ``links[k, i]`` is the weight
between row i and the rows of cluster k, itself included. If row i leaves cluster k, ``within[k]``
changes by ``own - 2 links[k, i]``, with ``own`` the weight of row i with itself. If it joins t,
``within[t]`` changes by ``own + 2 links[t, i]``. So the effect of a move is computed in O(1).

``values[k, r] = constraints[r] @ counts[k] + slack[k, r]`` is negative if cluster k violates
constraint r.

Three tuples of arrays go through the kernels: ``graph = (indptr, indices, data, dense)``, a CSR
matrix, or a dense one if ``dense`` is not empty; ``rows = (degrees, diagonal, cells)``, which do
not change; and ``state = (labels, links, within, volume)``, which does.
"""

import numpy as np

from skfair._kernels.declaring import njit

# For an exchange, at most this many rows of the same cell in the other cluster are compared.
_PARTNERS = 48


@njit(cache=True)
def _share_inside(within, volume):
    """Return the share of a cluster's weights that stay inside; 1 if it has no weights."""
    return within / volume if volume > 0.0 else 1.0


@njit(cache=True)
def _breaks_more(constraints, values_of_cluster, s, sign):
    """Return whether the violation grows if a row of cell s joins (sign 1) or leaves (sign -1).

    ``values_of_cluster`` is a row of ``values``.
    """
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
    """Move row i to cluster t: write labels, links, within and volume."""
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
    """Return (best cluster within the constraints, fall of the cut, best without constraints).

    They are for a move of row i. A cluster is -1 if no move lowers the cut.
    """
    degrees, diagonal, cells = rows
    labels, links, within, volume = state
    k, s, d, own = labels[i], cells[i], degrees[i], diagonal[i]
    left = _share_inside(within[k] - 2.0 * links[k, i] + own, volume[k] - d)
    loss = _share_inside(within[k], volume[k]) - left
    best, best_t = 1e-10, -1
    wished, wished_t = -np.inf, -1
    # The last row stays. Emptying a cluster would lower the cut, because nothing of it is cut.
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
    """Return the best row of cluster t to exchange with row i (-1: none), and the fall of the cut.

    ``others`` are the rows of the cell of row i, in all clusters. They are visited from a place
    that depends on i. ``weight`` (n,) holds the edges of row i if the graph is sparse. Only
    exchanges that lower the cut by more than ``best`` count.
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

    A row moves to the cluster where the cut falls most without violating a constraint further. If
    no such move helps, it changes places with a row of its own cell in the cluster that is best
    without constraints. No count by cell changes, so constraints allow this. ``members = (starts,
    rows)``: the rows of cell s are ``rows[starts[s] : starts[s + 1]]``. Writes the state and
    values. A pass costs O(n K), plus the neighbours of the rows that move and a few partners per
    row.
    """
    indptr, indices, data, dense = graph
    degrees, cells, labels = rows[0], rows[2], state[0]
    cell_starts, cell_rows = members
    weight = np.zeros(labels.size)  # weights of the edges of row i
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
