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
def violation_change(rules, counted, values_of_cluster, s, w):
    """Return how the violation of a cluster changes when weight w of cell s comes (or goes)."""
    starts, which = counted
    change = 0.0
    for m in range(starts[s], starts[s + 1]):
        r = which[m]
        before = values_of_cluster[r]
        after = before + w * rules[r, s]
        if before < -1e-9:
            change += before
        if after < -1e-9:
            change -= after
    return change


@njit(cache=True)
def tabulate_changes(rules, entries, largest, values, k, unit, leave, join):
    """Write how the violation of cluster k changes when a point of weight unit leaves or joins.

    Few rules are so close to a violation that one point makes, mends or changes it.
    """
    starts, which = entries
    leave[k, :] = 0.0
    join[k, :] = 0.0
    for r in range(rules.shape[0]):
        before = values[k, r]
        if before >= unit * largest[r]:
            continue
        for m in range(starts[r], starts[r + 1]):
            s = which[m]
            for effect, step in ((leave, -unit), (join, unit)):
                after = before + step * rules[r, s]
                if before < -1e-9:
                    effect[k, s] += before
                if after < -1e-9:
                    effect[k, s] -= after


@njit(cache=True)
def move_point(rules, counted, values, counts, labels, i, k, t, s, w):
    """Move point i of cell s and weight w from cluster k to t, in labels, counts and values."""
    labels[i] = t
    counts[k, s] -= w
    counts[t, s] += w
    starts, which = counted
    for m in range(starts[s], starts[s + 1]):
        r = which[m]
        values[k, r] -= w * rules[r, s]
        values[t, r] += w * rules[r, s]


@njit(cache=True)
def total_violation(values):
    """Sum what all clusters fall short of their rules."""
    total = 0.0
    for k in range(values.shape[0]):
        for r in range(values.shape[1]):
            if values[k, r] < -1e-9:
                total -= values[k, r]
    return total


@njit(cache=True)
def start_of_moves(rules, slack, weights, counts, size):
    """Return what ``repair`` and ``improve`` keep while they move points.

    That is: values, entries of the rules, rules of the cells, effects of a point of the weight of
    the first row that leaves or joins, places in lists.
    """
    n_clusters, n_cells = counts.shape
    entries = entries_of_rules(rules)
    largest = np.zeros(rules.shape[0])  # coefficient of each rule
    for r in range(rules.shape[0]):
        for m in range(entries[0][r], entries[0][r + 1]):
            largest[r] = max(largest[r], abs(rules[r, entries[1][m]]))
    values = np.empty((n_clusters, rules.shape[0]))
    rule_values(rules, entries, slack, counts, values)
    leave, join = np.empty((n_clusters, n_cells)), np.empty((n_clusters, n_cells))
    for k in range(n_clusters):
        tabulate_changes(rules, entries, largest, values, k, weights[0], leave, join)
    counted = rules_of_cells(entries, n_cells)
    return values, (entries, largest), counted, leave, join, np.zeros_like(size)


@njit(cache=True)
def next_listed(row, size, labels, first, k, t, s):
    """Return the place of the cheapest point in a list that is still in cluster k, or its size."""
    m = first[k, t, s]
    while m < size[k, t, s] and labels[row[k, t, s, m]] != k:
        m += 1
    first[k, t, s] = m
    return m


@njit(cache=True)
def repair(rules, slack, labels, weights, counts, row, cost, size, max_steps):
    """Move points until no cluster violates a rule, each time the cheapest per unit of repair.

    Uses the lists of ``cheapest_moves``; changes labels and counts. Returns (steps, violation):
    stops early when no listed move helps. Only two clusters change in a step, so it costs about
    four n_clusters n_cells and twice n_cells n_rules.
    """
    n_clusters, n_cells = counts.shape
    values, known, counted, leave, join, first = start_of_moves(rules, slack, weights, counts, size)
    price = np.full((n_clusters, n_cells, n_clusters), np.inf)
    steps, a, b = 0, -1, -1  # the clusters that changed last
    while steps < max_steps:
        for k in range(n_clusters):
            for t in range(n_clusters):
                if steps > 0 and k != a and k != b and t != a and t != b:
                    continue
                for s in range(n_cells):
                    price[k, s, t] = np.inf
                    m = next_listed(row, size, labels, first, k, t, s)
                    if m == size[k, t, s] or counts[k, s] <= 0.0:
                        continue
                    w = weights[row[k, t, s, m]]
                    if w == weights[0]:
                        change = leave[k, s] + join[t, s]
                    else:
                        change = violation_change(rules, counted, values[k], s, -w)
                        change += violation_change(rules, counted, values[t], s, w)
                    if change < -1e-9:
                        price[k, s, t] = w * cost[k, t, s, m] / -change
        best = price.argmin()
        if price.ravel()[best] == np.inf:
            break
        a, s, b = best // (n_cells * n_clusters), best // n_clusters % n_cells, best % n_clusters
        i = row[a, b, s, first[a, b, s]]
        move_point(rules, counted, values, counts, labels, i, a, b, s, weights[i])
        tabulate_changes(rules, known[0], known[1], values, a, weights[0], leave, join)
        tabulate_changes(rules, known[0], known[1], values, b, weights[0], leave, join)
        steps += 1
    rule_values(rules, known[0], slack, counts, values)  # without the rounding of many steps
    return steps, total_violation(values)


@njit(cache=True)
def improve(rules, slack, labels, weights, counts, row, cost, size, max_steps):
    """Lower the cost by moves that violate no rule further and by swaps within a cell.

    Uses the lists of ``cheapest_moves``; changes labels and counts and returns the gain. A swap
    exchanges two points of equal weight and cell between two clusters, so no count changes.
    """
    n_clusters, n_cells = counts.shape
    values, known, counted, leave, join, first = start_of_moves(rules, slack, weights, counts, size)
    change = np.zeros((n_clusters, n_clusters, n_cells))  # what the better of both adds to the cost
    is_swap = np.zeros((n_clusters, n_clusters, n_cells), np.bool_)
    gain, a, b = 0.0, -1, -1  # the clusters that changed last
    for step in range(max_steps):
        for k in range(n_clusters):
            for t in range(n_clusters):
                if step > 0 and k != a and k != b and t != a and t != b:
                    continue
                for s in range(n_cells):
                    change[k, t, s], is_swap[k, t, s] = 0.0, False
                    m = next_listed(row, size, labels, first, k, t, s)
                    if m == size[k, t, s]:
                        continue
                    w = weights[row[k, t, s, m]]
                    c = w * cost[k, t, s, m]
                    if c < 0.0:
                        if w == weights[0]:
                            is_allowed = leave[k, s] <= 0.0 and join[t, s] <= 0.0
                        else:
                            is_allowed = violation_change(rules, counted, values[k], s, -w) <= 0.0
                            is_allowed &= violation_change(rules, counted, values[t], s, w) <= 0.0
                        change[k, t, s] = c if is_allowed else 0.0
                    if t > k:
                        back = next_listed(row, size, labels, first, t, k, s)
                        if back < size[t, k, s] and weights[row[t, k, s, back]] == w:
                            both = c + w * cost[t, k, s, back]
                            if both < change[k, t, s]:
                                change[k, t, s], is_swap[k, t, s] = both, True
        best = change.argmin()
        least = change.ravel()[best]
        if least >= -1e-12:
            break
        a, b, s = best // (n_clusters * n_cells), best // n_cells % n_clusters, best % n_cells
        i = row[a, b, s, first[a, b, s]]
        if is_swap[a, b, s]:
            labels[row[b, a, s, first[b, a, s]]] = a
            labels[i] = b
        else:
            move_point(rules, counted, values, counts, labels, i, a, b, s, weights[i])
            tabulate_changes(rules, known[0], known[1], values, a, weights[0], leave, join)
            tabulate_changes(rules, known[0], known[1], values, b, weights[0], leave, join)
        gain -= least
    return gain
