"""Lists of the cheapest moves between clusters, and moves that repair or improve labels.

``CostTable.list_moves`` calls ``cheapest_moves`` block by block, and ``Placement`` calls
``move_points`` on the lists. Letters: i is a point (a row), k its cluster, t the target of a move,
s a *cell*: the points of a cell belong to the same groups, and no constraint tells them apart.

Constraint r asks for ``matrix[r] @ counts[k] >= -slack[k, r]`` in every cluster k, with
``counts[k, s]`` the weight of the points of cell s. ``values[k, r]`` is the left side plus the
slack, so a negative value is a violation.

All memory comes from the caller: each kind of array that a kernel allocates takes a tenth of a
second to compile, and so does each function.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def cheapest_moves(distances, labels, cells, weights, start, row, cost, size):
    """List, per (cluster, target, cell), the points that are cheapest to move, in order of cost.

    A move of point i costs ``distances[i, t] - distances[i, k]`` per unit of weight. Writes ``row``
    and ``cost`` (n_clusters, n_clusters, n_cells, n_kept), sorted by insertion, and ``size``, the
    number of entries of each list. The points are a block of all rows, and ``start`` is the row of
    its first point. Points without weight are not listed.
    """
    n, n_clusters = distances.shape
    n_kept = row.shape[3]
    for i in range(n):
        if weights[i] <= 0.0:
            continue
        k = labels[i]
        s = cells[i]
        own = distances[i, k]
        for t in range(n_clusters):
            if t == k:
                continue
            c = distances[i, t] - own
            m = size[k, t, s]
            if m == n_kept:
                if c >= cost[k, t, s, m - 1]:
                    continue
                m -= 1
            else:
                size[k, t, s] = m + 1
            while m > 0 and cost[k, t, s, m - 1] > c:
                cost[k, t, s, m] = cost[k, t, s, m - 1]
                row[k, t, s, m] = row[k, t, s, m - 1]
                m -= 1
            cost[k, t, s, m] = c
            row[k, t, s, m] = start + i


@njit(cache=True)
def _learn(constraints, values, learnt, joins, k, s, weight, rounding):
    """Write into ``learnt`` by how much the violation of cluster k grows with one more point.

    The point is of cell s, and joins (``joins`` is 1) or leaves (0). ``learnt[0]`` keeps the weight
    that the entry is for, and ``learnt[1]`` the growth. ``constraints`` is ``(matrix, starts,
    which)``: ``which[starts[s] : starts[s + 1]]`` are the constraints that count cell s.
    """
    matrix, starts, which = constraints
    total, signed = 0.0, weight if joins else -weight
    for m in range(starts[s], starts[s + 1]):
        value = values[k, which[m]]
        after = value + signed * matrix[which[m], s]
        total += -after if after < -rounding else 0.0
        total -= -value if value < -rounding else 0.0
    learnt[0, joins, k, s], learnt[1, joins, k, s] = weight, total


@njit(cache=True)
def _best_move(repairs, constraints, values, counts, heads, learnt, k, t, unit, rounding):
    """Return the merit (the lower the better) of the best move from cluster k to t, and its place.

    If it ``repairs``, the merit is the cost of the move divided by the violation that it takes
    away. Otherwise it is what the move adds to the cost, which must be negative. The place is the
    cell of the move, or n_cells plus the cell for a swap of two points. A pair of clusters is only
    asked for swaps in one order, t > k. If there is no good move, the merit is infinite (repairs)
    or 0.

    Each list is represented by its head, the first listed point that is still in the cluster:
    ``heads[0]`` is its weight, and ``heads[1]`` what its move costs. ``learnt`` keeps the results
    of ``_learn`` for a cluster, cell and weight, because they are the same for all targets and
    computing them again would take most of the time.
    """
    least, place, n_cells = np.inf if repairs else 0.0, 0, counts.shape[1]
    slight = max(rounding, 1e-9 * unit)  # smaller changes of a violation are rounding
    for s in range(n_cells):
        weight, cost = heads[0, k, t, s], heads[1, k, t, s]
        if cost == np.inf or counts[k, s] <= 0.0:
            continue
        if repairs or cost < least:
            for joins in range(2):  # numba would compile _learn once for each literal
                near = t if joins else k
                if learnt[0, joins, near, s] != weight:
                    _learn(constraints, values, learnt, joins, near, s, weight, rounding)
            leave, join = learnt[1, 0, k, s], learnt[1, 1, t, s]
            if repairs:
                change = leave + join
                if change < -rounding and cost < least * -change:
                    least, place = cost / -change, s
            elif leave <= slight and join <= slight:
                least, place = cost, s
        cost += heads[1, t, k, s]
        if t > k and not repairs and weight == heads[0, t, k, s] and cost < least:
            least, place = cost, n_cells + s
    return least, place


@njit(cache=True)
def move_points(
    repairs,
    constraints,
    values,
    labels,
    weights,
    counts,
    lists,
    scratch,
    max_steps,
    rounding,
    limit,
):
    """Move points until no cluster violates a constraint, or while the cost falls.

    A step takes the move of the lowest merit below ``limit`` (see ``_best_move``). If it
    ``repairs``, that is the cheapest per unit of repair. Otherwise it is a move that violates no
    constraint further, or a swap of two points of the same weight and cell. The steps end if no
    listed move is good enough, or after ``max_steps``.

    ``lists`` are ``row, cost, size`` of ``cheapest_moves``, and ``constraints`` those of
    ``_learn``. Changes ``labels``, ``counts`` and ``values``. Returns the number of steps and the
    sum of their merits, which for improvements is what they add to the cost.

    The scratch space keeps what need not be computed again, because a step changes two clusters
    only. It then costs about 4 n_clusters n_cells. ``first[k, t, s]`` is the position of the head
    of a list, ``heads`` are its weight and cost (infinite if none is left), ``least[k, t]`` and
    ``place[k, t]`` are the best move of a pair of clusters, ``is_changed[k]`` says that cluster k
    changed in the last step, and ``learnt`` is that of ``_learn`` (NaN: unknown).
    """
    first, heads, least, place, is_changed, learnt = scratch
    row, cost, size = lists
    matrix, starts, which = constraints
    n_clusters, n_cells = counts.shape
    unit, steps, total, start, stop = weights[0], 0, 0.0, 0, n_cells
    while steps < max_steps:
        for k in range(n_clusters):
            for t in range(n_clusters):
                for s in range(start, stop if is_changed[k] else start):
                    m = first[k, t, s]
                    while m < size[k, t, s] and labels[row[k, t, s, m]] != k:
                        m += 1
                    first[k, t, s] = m
                    heads[1, k, t, s] = np.inf
                    if m < size[k, t, s]:
                        heads[0, k, t, s] = weights[row[k, t, s, m]]
                        heads[1, k, t, s] = heads[0, k, t, s] * cost[k, t, s, m]
        lowest, pair = limit, n_clusters * n_clusters
        for k in range(n_clusters):
            for t in range(n_clusters):
                if is_changed[k] or is_changed[t]:
                    least[k, t], place[k, t] = _best_move(
                        repairs, constraints, values, counts, heads, learnt, k, t, unit, rounding
                    )
                if least[k, t] < lowest:
                    lowest, pair = least[k, t], k * n_clusters + t
        if pair == n_clusters * n_clusters:
            break
        a, b = pair // n_clusters, pair % n_clusters
        start = place[a, b] % n_cells
        stop = start + 1
        i = row[a, b, start, first[a, b, start]]
        labels[i] = b
        if place[a, b] >= n_cells:
            labels[row[b, a, start, first[b, a, start]]] = a
        else:
            counts[a, start] -= weights[i]
            counts[b, start] += weights[i]
            for m in range(starts[start], starts[stop]):
                change = weights[i] * matrix[which[m], start]
                values[a, which[m]] -= change
                values[b, which[m]] += change
        for k in range(n_clusters):
            is_changed[k] = k in (a, b)
        learnt[0, :, a], learnt[0, :, b] = np.nan, np.nan
        total, steps = total + lowest, steps + 1
    return steps, total
