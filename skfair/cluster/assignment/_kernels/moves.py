"""Lists of the cheapest moves between clusters, and moves that repair or improve labels.

Points of the same *cell* (atom of the group algebra) are interchangeable for every fairness
constraint. ``matrix[r] @ counts[k]`` must be at least ``-slack[k, r]`` in every cluster k;
``counts[k, cell]`` is the weight of its points. ``values[k, r]`` is what cluster k has beyond that:
negative is a violation.

All memory comes from the caller: each kind of array that a kernel allocates takes a tenth of a
second to compile, and so does each function.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def cheapest_moves(distances, labels, cells, weights, start, row, cost, size):
    """List, per (cluster, target, cell), the points that are cheapest to move, in order of cost.

    ``row`` and ``cost`` have shape (n_clusters, n_clusters, n_cells, n_kept); ``size`` counts the
    entries. Cost is per unit of weight. Call it block by block; ``start`` is the row of the first
    point of the block.
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
    """Write what a point of this weight adds to the violations of cluster k: it joins or leaves."""
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
    """Return the merit of the best move from cluster k to t, and its cell.

    When it ``repairs``, that is the cost per unit of repair; otherwise what it adds to the cost. A
    swap between the clusters stands for n_cells plus its cell; each pair is asked for swaps once.
    What a point adds to violations when it leaves or joins is ``learnt`` for its weight, and serves
    all targets: to compute it again for each would take most of the time.
    """
    least, place, n_cells = np.inf if repairs else 0.0, 0, counts.shape[1]
    slight = max(rounding, 1e-9 * unit)  # the rounding of what points of this weight change
    for s in range(n_cells):
        weight, cost = heads[0, k, t, s], heads[1, k, t, s]
        if cost == np.inf or counts[k, s] <= 0.0:
            continue
        if repairs or cost < least:
            for joins in range(2):  # as literals, they would be compiled for each
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

    A repair takes the move that is cheapest per unit of repair, and stops early when no listed move
    helps. An improvement takes moves that violate no constraint further, and swaps of two points of
    equal weight and cell, whose merit is below ``limit``. ``lists`` are those of
    ``cheapest_moves``; ``constraints`` are the matrix and those that count each cell. ``heads``
    of the scratch space holds the weight of the first point of each list that is still in the
    cluster, and what its move costs (infinite: none is left). Changes labels, counts and
    values; returns the steps and what they add to the cost (repairs: to the sum of the merits).
    Only two clusters change in a step, so it costs about four n_clusters n_cells.
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
