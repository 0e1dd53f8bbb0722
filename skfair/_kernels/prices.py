"""Assignment of points to clusters at given prices, and its repair by single moves and swaps.

Points of the same *cell* (atom of the group algebra) are interchangeable for every fairness rule
and pay the same price ``price[cell, cluster]`` on top of their distance. ``rules[r] @ counts[k]``
must be at least ``-slack[k, r]`` in every cluster k; ``counts[k, cell]`` is the weight of its
points. ``values[k, r]`` is what cluster k has beyond that: negative is a violation.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def centred_rows(X, mean, out):
    """Write the rows of X relative to the mean, in their precision."""
    n, d = X.shape
    for i in range(n):
        for j in range(d):
            out[i, j] = X[i, j] - mean[j]


@njit(cache=True)
def complete_distances(block, center_norms, row_norms):
    """Turn minus twice the products of rows and centres, in place, into squared distances.

    Rounding may leave a point that sits on its centre at -1e-17: it is put at 0.
    """
    zero = block.dtype.type(0)
    n, n_clusters = block.shape
    for i in range(n):
        row, own = block[i], row_norms[i]
        for k in range(n_clusters):
            v = row[k] + center_norms[k] + own
            row[k] = v if v > zero else zero


@njit(cache=True)
def sum_of_minima(distances, weights):
    """Return the weighted sum of the smallest distance of each row."""
    n, n_clusters = distances.shape
    in_fours = n_clusters - n_clusters % 4
    total = 0.0
    for i in range(n):
        row = distances[i]
        a = b = c = d = row[0]
        for k in range(0, in_fours, 4):
            a = row[k] if row[k] < a else a
            b = row[k + 1] if row[k + 1] < b else b
            c = row[k + 2] if row[k + 2] < c else c
            d = row[k + 3] if row[k + 3] < d else d
        for k in range(in_fours, n_clusters):
            a = row[k] if row[k] < a else a
        total += weights[i] * min(min(a, b), min(c, d))
    return total


@njit(cache=True)
def sum_of_own(distances, labels, weights):
    """Return the weighted sum of the distance of each row to its own cluster."""
    total = 0.0
    for i in range(distances.shape[0]):
        total += weights[i] * distances[i, labels[i]]
    return total


@njit(cache=True)
def soft_assign(distances, price, cells, weights, temperature, counts):
    """Return the sum of soft minima of distance plus price; add the soft counts to ``counts``.

    A cluster whose value is 30 temperatures above the smallest one adds less than 1e-13 and is
    skipped, which saves nearly all exponentials. Four running minima instead of one keep the
    processor from waiting for the last comparison: a quarter less time.
    """
    n, n_clusters = distances.shape
    value = np.empty(n_clusters)
    in_fours = n_clusters - n_clusters % 4
    total = 0.0
    for i in range(n):
        s = cells[i]
        a = b = c = d = np.inf
        for k in range(0, in_fours, 4):
            v0 = distances[i, k] + price[s, k]
            v1 = distances[i, k + 1] + price[s, k + 1]
            v2 = distances[i, k + 2] + price[s, k + 2]
            v3 = distances[i, k + 3] + price[s, k + 3]
            value[k], value[k + 1], value[k + 2], value[k + 3] = v0, v1, v2, v3
            a = v0 if v0 < a else a
            b = v1 if v1 < b else b
            c = v2 if v2 < c else c
            d = v3 if v3 < d else d
        for k in range(in_fours, n_clusters):
            value[k] = distances[i, k] + price[s, k]
            a = value[k] if value[k] < a else a
        a = b if b < a else a
        c = d if d < c else c
        lowest = c if c < a else a
        limit = lowest + 30.0 * temperature
        w = weights[i]
        n_near = 0
        for k in range(n_clusters):
            if value[k] < limit:
                n_near += 1
                nearest = k
        if n_near == 1:
            counts[nearest, s] += w
            total += w * lowest
            continue
        norm = 0.0
        for k in range(n_clusters):
            if value[k] < limit:
                value[k] = np.exp((lowest - value[k]) / temperature)
                norm += value[k]
            else:
                value[k] = 0.0
        for k in range(n_clusters):
            if value[k] > 0.0:
                counts[k, s] += w * value[k] / norm
        total += w * (lowest - temperature * np.log(norm))
    return total


@njit(cache=True)
def hard_assign(distances, price, cells, weights, labels, counts):
    """Assign each point to its cheapest cluster; write labels, add to counts, return the sum."""
    n, n_clusters = distances.shape
    total = 0.0
    for i in range(n):
        s = cells[i]
        best = 0
        lowest = distances[i, 0] + price[s, 0]
        for k in range(1, n_clusters):
            v = distances[i, k] + price[s, k]
            if v < lowest:
                lowest = v
                best = k
        labels[i] = best
        counts[best, s] += weights[i]
        total += weights[i] * lowest
    return total


@njit(cache=True)
def tell_apart(distances, price, cells, weights, reach, labels, near, counts):
    """Assign the points that are cheaper in one cluster than in all others by ``reach``.

    Write their labels, add to counts, and write the numbers of the others into ``near``. Returns
    how many others there are, and the weighted sum of the distances of those assigned.
    """
    n, n_clusters = distances.shape
    value = np.empty(n_clusters)
    in_fours = n_clusters - n_clusters % 4
    total, n_others = 0.0, 0
    for i in range(n):
        s = cells[i]
        a = b = c = d = np.inf
        for k in range(0, in_fours, 4):
            v0 = distances[i, k] + price[s, k]
            v1 = distances[i, k + 1] + price[s, k + 1]
            v2 = distances[i, k + 2] + price[s, k + 2]
            v3 = distances[i, k + 3] + price[s, k + 3]
            value[k], value[k + 1], value[k + 2], value[k + 3] = v0, v1, v2, v3
            a = v0 if v0 < a else a
            b = v1 if v1 < b else b
            c = v2 if v2 < c else c
            d = v3 if v3 < d else d
        for k in range(in_fours, n_clusters):
            value[k] = distances[i, k] + price[s, k]
            a = value[k] if value[k] < a else a
        limit = min(min(a, b), min(c, d)) + reach
        n_near = 0
        for k in range(n_clusters):
            if value[k] < limit:
                n_near += 1
                nearest = k
        if n_near == 1:
            labels[i] = nearest
            counts[nearest, s] += weights[i]
            total += weights[i] * distances[i, nearest]
        else:
            near[n_others] = i
            n_others += 1
    return n_others, total


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
def rule_values(rules, slack, counts, values):
    """Write what each cluster has of each rule: negative is a violation."""
    for k in range(counts.shape[0]):
        for r in range(rules.shape[0]):
            total = slack[k, r]
            for s in range(rules.shape[1]):
                total += rules[r, s] * counts[k, s]
            values[k, r] = total


@njit(cache=True)
def rules_of_cells(rules):
    """Return which rules count each cell, one cell after the other, and where each begins."""
    n_rules, n_cells = rules.shape
    starts = np.zeros(n_cells + 1, np.int64)
    which = np.empty(np.count_nonzero(rules), np.int64)
    for s in range(n_cells):
        m = starts[s]
        for r in range(n_rules):
            if rules[r, s] != 0.0:
                which[m] = r
                m += 1
        starts[s + 1] = m
    return starts, which


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
def tabulate_changes(rules, counted, values, k, unit, leave, join):
    """Write how the violation of cluster k changes when a point of weight unit leaves or joins."""
    for s in range(rules.shape[1]):
        leave[k, s] = violation_change(rules, counted, values[k], s, -unit)
        join[k, s] = violation_change(rules, counted, values[k], s, unit)


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
def repair(rules, slack, labels, weights, counts, row, cost, size, max_steps):
    """Move points until no cluster violates a rule, each time the cheapest per unit of repair.

    Uses the lists of ``cheapest_moves``; changes labels and counts. Returns (steps, violation):
    stops early when no listed move helps. A step costs O(n_clusters^2 n_cells) and twice n_cells
    n_rules: only two clusters change, and points of the usual weight share their table.
    """
    n_clusters, n_cells = counts.shape
    first = np.zeros((n_clusters, n_clusters, n_cells), np.int64)
    values = np.empty((n_clusters, rules.shape[0]))
    rule_values(rules, slack, counts, values)
    counted = rules_of_cells(rules)
    unit = weights[0]
    leave, join = np.empty((n_clusters, n_cells)), np.empty((n_clusters, n_cells))
    for k in range(n_clusters):
        tabulate_changes(rules, counted, values, k, unit, leave, join)
    steps = 0
    while steps < max_steps:
        best = np.inf
        best_k = best_t = best_s = -1
        for k in range(n_clusters):
            for s in range(n_cells):
                if counts[k, s] <= 0.0:
                    continue
                for t in range(n_clusters):
                    m = first[k, t, s]
                    while m < size[k, t, s] and labels[row[k, t, s, m]] != k:
                        m += 1
                    first[k, t, s] = m
                    if m == size[k, t, s]:
                        continue
                    w = weights[row[k, t, s, m]]
                    if w == unit:
                        change = leave[k, s] + join[t, s]
                    else:
                        change = violation_change(rules, counted, values[k], s, -w)
                        change += violation_change(rules, counted, values[t], s, w)
                    if change < -1e-9:
                        price = w * cost[k, t, s, m] / -change
                        if price < best:
                            best = price
                            best_k, best_t, best_s = k, t, s
        if best_k < 0:
            break
        i = row[best_k, best_t, best_s, first[best_k, best_t, best_s]]
        move_point(rules, counted, values, counts, labels, i, best_k, best_t, best_s, weights[i])
        tabulate_changes(rules, counted, values, best_k, unit, leave, join)
        tabulate_changes(rules, counted, values, best_t, unit, leave, join)
        steps += 1
    rule_values(rules, slack, counts, values)  # without the rounding of many steps
    return steps, total_violation(values)


@njit(cache=True)
def improve(rules, slack, labels, weights, counts, row, cost, size, max_steps):
    """Lower the cost by moves that violate no rule further and by swaps within a cell.

    Uses the lists of ``cheapest_moves``; changes labels and counts and returns the gain. A swap
    exchanges two points of equal weight and cell between two clusters, so no count changes.
    """
    n_clusters, n_cells = counts.shape
    first = np.zeros((n_clusters, n_clusters, n_cells), np.int64)
    values = np.empty((n_clusters, rules.shape[0]))
    rule_values(rules, slack, counts, values)
    counted = rules_of_cells(rules)
    unit = weights[0]
    leave, join = np.empty((n_clusters, n_cells)), np.empty((n_clusters, n_cells))
    for k in range(n_clusters):
        tabulate_changes(rules, counted, values, k, unit, leave, join)
    gain = 0.0
    for _ in range(max_steps):
        best, is_swap = -1e-12, False
        best_k = best_t = best_s = -1
        for k in range(n_clusters):
            for t in range(n_clusters):
                for s in range(n_cells):
                    m = first[k, t, s]
                    while m < size[k, t, s] and labels[row[k, t, s, m]] != k:
                        m += 1
                    first[k, t, s] = m
                    if m == size[k, t, s]:
                        continue
                    i = row[k, t, s, m]
                    w = weights[i]
                    c = w * cost[k, t, s, m]
                    if c < best:
                        if w == unit:
                            is_allowed = leave[k, s] <= 0.0 and join[t, s] <= 0.0
                        else:
                            is_allowed = violation_change(rules, counted, values[k], s, -w) <= 0.0
                            is_allowed &= violation_change(rules, counted, values[t], s, w) <= 0.0
                        if is_allowed:
                            best = c
                            best_k, best_t, best_s = k, t, s
                            is_swap = False
                    if t > k:
                        back = first[t, k, s]
                        while back < size[t, k, s] and labels[row[t, k, s, back]] != t:
                            back += 1
                        first[t, k, s] = back
                        if back < size[t, k, s] and weights[row[t, k, s, back]] == w:
                            both = c + w * cost[t, k, s, back]
                            if both < best:
                                best = both
                                best_k, best_t, best_s = k, t, s
                                is_swap = True
        if best_k < 0:
            break
        i = row[best_k, best_t, best_s, first[best_k, best_t, best_s]]
        if is_swap:
            labels[row[best_t, best_k, best_s, first[best_t, best_k, best_s]]] = best_k
            labels[i] = best_t
        else:
            w = weights[i]
            move_point(rules, counted, values, counts, labels, i, best_k, best_t, best_s, w)
            tabulate_changes(rules, counted, values, best_k, unit, leave, join)
            tabulate_changes(rules, counted, values, best_t, unit, leave, join)
        gain -= best
    return gain


@njit(cache=True)
def cluster_sums(X, labels, weights, sums, mass):
    """Add the weighted sum of the rows and the weight of each cluster."""
    n, d = X.shape
    for i in range(n):
        k = labels[i]
        w = weights[i]
        mass[k] += w
        for j in range(d):
            sums[k, j] += w * X[i, j]
