"""Lists of the cheapest moves between clusters, and labels mended and improved by them.

Points of the same *cell* (atom of the group algebra) are interchangeable for every fairness rule.
``rules[r] @ counts[k]`` must be at least ``-slack[k, r]`` in every cluster k; ``counts[k, cell]``
is the weight of its points. ``values[k, r]`` is what cluster k has beyond that: negative is a
violation.
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
def entries_of_rules(rules):
    """Return the cells that each rule counts, rule by rule, and where each rule begins."""
    n_rules, n_cells = rules.shape
    starts = np.zeros(n_rules + 1, np.int64)
    which = np.empty(np.count_nonzero(rules), np.int64)
    m = 0
    for r in range(n_rules):
        for s in range(n_cells):
            if rules[r, s] != 0.0:
                which[m] = s
                m += 1
        starts[r + 1] = m
    return starts, which


@njit(cache=True)
def rules_of_cells(entries, n_cells):
    """Return which rules count each cell, one cell after the other, and where each begins."""
    begins, cells = entries
    starts = np.zeros(n_cells + 1, np.int64)
    starts[1:] = np.cumsum(np.bincount(cells, minlength=n_cells))
    place, which = starts[:-1].copy(), np.empty_like(cells)
    for r in range(begins.size - 1):
        for m in range(begins[r], begins[r + 1]):
            which[place[cells[m]]] = r
            place[cells[m]] += 1
    return starts, which


@njit(cache=True)
def rule_values(rules, entries, slack, counts, values):
    """Write what each cluster has of each rule: negative is a violation."""
    starts, which = entries
    for k in range(counts.shape[0]):
        for r in range(rules.shape[0]):
            total = slack[k, r]
            for m in range(starts[r], starts[r + 1]):
                total += rules[r, which[m]] * counts[k, which[m]]
            values[k, r] = total


@njit(cache=True)
def violation_change(rules, values_of_cluster, s, w, rounding):
    """Return how the violation of a cluster changes when weight w of cell s comes (or goes)."""
    matrix, (starts, which) = rules[0], rules[2]
    change = 0.0
    for m in range(starts[s], starts[s + 1]):
        r = which[m]
        before = values_of_cluster[r]
        after = before + w * matrix[r, s]
        if before < -rounding:
            change += before
        if after < -rounding:
            change -= after
    return change


@njit(cache=True)
def add_changes(matrix, entries, values_of_cluster, r, unit, rounding, sign, leave, join):
    """Add ``sign`` times how the violation of a rule changes when a point of weight unit moves.

    ``leave`` and ``join`` hold what it changes by, one number per cell, of one cluster.
    """
    starts, which = entries
    before = values_of_cluster[r]
    for m in range(starts[r], starts[r + 1]):
        s = which[m]
        for effect, step in ((leave, -unit), (join, unit)):
            after = before + step * matrix[r, s]
            if before < -rounding:
                effect[s] += sign * before
            if after < -rounding:
                effect[s] -= sign * after


@njit(cache=True)
def known_rules(matrix):
    """Return rules in the forms that are asked for: matrix, cells by rule, rules by cell, largest.

    The last is the largest coefficient of each rule: one that is met by more is far from a
    violation.
    """
    entries = entries_of_rules(matrix)
    largest = np.zeros(matrix.shape[0])
    for r in range(matrix.shape[0]):
        for m in range(entries[0][r], entries[0][r + 1]):
            largest[r] = max(largest[r], abs(matrix[r, entries[1][m]]))
    return matrix, entries, rules_of_cells(entries, matrix.shape[1]), largest


@njit(cache=True)
def start_of_moves(matrix, slack, weights, counts, rounding):
    """Return rules, and what ``repair`` and ``improve`` keep of them while they move points.

    That is: values, and how the violation of each cluster changes when a point of the weight of the
    first row leaves or joins.
    """
    rules = known_rules(matrix)
    n_clusters, n_cells = counts.shape
    values = np.empty((n_clusters, matrix.shape[0]))
    rule_values(matrix, rules[1], slack, counts, values)
    leave, join = np.zeros((2, n_clusters, n_cells))
    for k in range(n_clusters):
        for r in range(matrix.shape[0]):
            if values[k, r] < weights[0] * rules[3][r]:
                near = values[k], r, weights[0], rounding
                add_changes(matrix, rules[1], *near, 1.0, leave[k], join[k])
    return rules, (values, leave, join)


@njit(cache=True)
def count_point(rules, state, counts, k, s, w, unit, rounding):
    """Add weight w (negative: take it away) of cell s to cluster k, in counts and the state.

    Only rules that count the cell change, and few of them are so close to a violation that one
    point makes, mends or changes it.
    """
    matrix, entries, (starts, which), largest = rules
    values, leave, join = state
    counts[k, s] += w
    for m in range(starts[s], starts[s + 1]):
        r = which[m]
        if values[k, r] < unit * largest[r]:
            add_changes(matrix, entries, values[k], r, unit, rounding, -1.0, leave[k], join[k])
        values[k, r] += w * matrix[r, s]
        if values[k, r] < unit * largest[r]:
            add_changes(matrix, entries, values[k], r, unit, rounding, 1.0, leave[k], join[k])


@njit(cache=True)
def renew_heads(lists, labels, weights, heads, k, s):
    """Write the first point of each list of cluster k and cell s that is still in the cluster.

    ``heads`` are its row, its weight and what its move costs (infinite: no point is left).
    """
    row, cost, size, first = lists
    for t in range(row.shape[1]):
        m = first[k, t, s]
        while m < size[k, t, s] and labels[row[k, t, s, m]] != k:
            m += 1
        first[k, t, s] = m
        heads[2][k, t, s] = np.inf
        if m < size[k, t, s]:
            i = row[k, t, s, m]
            heads[0][k, t, s], heads[1][k, t, s] = i, weights[i]
            heads[2][k, t, s] = weights[i] * cost[k, t, s, m]


@njit(cache=True)
def start_of_heads(row, cost, size, labels, weights):
    """Return lists with the places of their first points, and these points."""
    lists = row, cost, size, np.zeros_like(size)
    heads = np.zeros_like(size), np.zeros(size.shape), np.empty(size.shape)
    for k in range(size.shape[0]):
        for s in range(size.shape[2]):
            renew_heads(lists, labels, weights, heads, k, s)
    return lists, heads


@njit(cache=True)
def best_repair(rules, state, members, heads, k, t, unit, rounding):
    """Return the least cost per unit of repair of moves from cluster k to t, and the cell."""
    values, leave, join = state
    weight, cost, leaves, joins = heads[1][k, t], heads[2][k, t], leave[k], join[t]
    least, place = np.inf, 0
    for s in range(cost.size):
        if cost[s] == np.inf or members[s] <= 0.0:
            continue
        change = leaves[s] + joins[s]
        if weight[s] != unit:
            change = violation_change(rules, values[k], s, -weight[s], rounding)
            change += violation_change(rules, values[t], s, weight[s], rounding)
        if change < -rounding and cost[s] < least * -change:
            least, place = cost[s] / -change, s
    return least, place


@njit(cache=True)
def best_improvement(rules, state, heads, k, t, unit, rounding):
    """Return what the best move from cluster k to t or swap between them adds to the cost.

    And its cell, and whether it is a swap; each pair of clusters is asked for swaps once.
    """
    values, leave, join = state
    weight, cost, leaves, joins = heads[1][k, t], heads[2][k, t], leave[k], join[t]
    back, other = heads[2][t, k], heads[1][t, k]
    rounding = max(rounding, 1e-9 * unit)  # that of what points of this weight change
    least, place, is_swap = 0.0, 0, False
    for s in range(cost.size):
        if cost[s] < least:
            if weight[s] == unit:
                is_allowed = leaves[s] <= rounding and joins[s] <= rounding
            else:
                w = weight[s]
                is_allowed = violation_change(rules, values[k], s, -w, rounding) <= rounding
                is_allowed &= violation_change(rules, values[t], s, w, rounding) <= rounding
            if is_allowed:
                least, place, is_swap = cost[s], s, False
        if t > k and weight[s] == other[s] and cost[s] + back[s] < least:
            least, place, is_swap = cost[s] + back[s], s, True
    return least, place, is_swap


@njit(cache=True)
def repair(matrix, slack, labels, weights, counts, row, cost, size, max_steps, rounding):
    """Move points until no cluster violates a rule, each time the cheapest per unit of repair.

    Uses the lists of ``cheapest_moves``; changes labels and counts and returns the number of steps.
    Stops early when no listed move helps. Only two clusters change in a step, so it costs about
    four n_clusters n_cells, and twice the rules that count the cell.
    """
    rules, state = start_of_moves(matrix, slack, weights, counts, rounding)
    lists, heads = start_of_heads(row, cost, size, labels, weights)
    n_clusters, unit = counts.shape[0], weights[0]
    least = np.full((n_clusters, n_clusters), np.inf)
    place = np.zeros((n_clusters, n_clusters), np.int64)
    steps, is_changed = 0, np.ones(n_clusters, np.bool_)
    while steps < max_steps:
        for k in range(n_clusters):
            for t in range(n_clusters):
                if is_changed[k] or is_changed[t]:
                    best = best_repair(rules, state, counts[k], heads, k, t, unit, rounding)
                    least[k, t], place[k, t] = best
        a, b = divmod(least.argmin(), n_clusters)
        if least[a, b] == np.inf:
            break
        s = place[a, b]
        i = heads[0][a, b, s]
        is_changed[:] = False
        is_changed[a] = is_changed[b] = True
        labels[i] = b
        count_point(rules, state, counts, a, s, -weights[i], unit, rounding)
        count_point(rules, state, counts, b, s, weights[i], unit, rounding)
        renew_heads(lists, labels, weights, heads, a, s)
        steps += 1
    return steps


@njit(cache=True)
def improve(
    matrix, slack, labels, weights, counts, row, cost, size, max_steps, rounding, least_gain
):
    """Lower the cost by moves that violate no rule further and by swaps within a cell.

    Uses the lists of ``cheapest_moves``; changes labels and counts and returns the gain. A swap
    exchanges two points of equal weight and cell between two clusters, so no count changes.
    """
    rules, state = start_of_moves(matrix, slack, weights, counts, rounding)
    lists, heads = start_of_heads(row, cost, size, labels, weights)
    n_clusters, unit = counts.shape[0], weights[0]
    least = np.zeros((n_clusters, n_clusters))
    place = np.zeros((n_clusters, n_clusters), np.int64)
    is_swap = np.zeros((n_clusters, n_clusters), np.bool_)
    gain, is_changed = 0.0, np.ones(n_clusters, np.bool_)
    for _ in range(max_steps):
        for k in range(n_clusters):
            for t in range(n_clusters):
                if is_changed[k] or is_changed[t]:
                    best = best_improvement(rules, state, heads, k, t, unit, rounding)
                    least[k, t], place[k, t], is_swap[k, t] = best
        a, b = divmod(least.argmin(), n_clusters)
        if least[a, b] >= -least_gain:
            break
        s = place[a, b]
        i = heads[0][a, b, s]
        is_changed[:] = False
        is_changed[a] = is_changed[b] = True
        if is_swap[a, b]:
            labels[heads[0][b, a, s]] = a
        else:
            count_point(rules, state, counts, a, s, -weights[i], unit, rounding)
            count_point(rules, state, counts, b, s, weights[i], unit, rounding)
        labels[i] = b
        gain -= least[a, b]
        renew_heads(lists, labels, weights, heads, a, s)
        renew_heads(lists, labels, weights, heads, b, s)
    return gain
