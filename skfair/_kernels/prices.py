"""Assignment of points to clusters at given prices, and its repair by single moves and swaps.

Points of the same *cell* (atom of the group algebra) are interchangeable for every fairness rule and
pay the same price ``price[cell, cluster]`` on top of their distance. ``rules[r] @ counts[k]`` must be
at least ``-slack[k, r]`` in every cluster k; ``counts[k, cell]`` is the weight of its points.
"""

import numpy as np
from numba import njit


@njit(cache=True)
def soft_assign(distances, price, cells, weights, temperature, counts):
    """Return the sum of soft minima of distance plus price; add the soft counts to ``counts``.

    A cluster whose value is 30 temperatures above the smallest one adds less than 1e-13 and is
    skipped, which saves nearly all exponentials.
    """
    n, n_clusters = distances.shape
    value = np.empty(n_clusters)
    share = np.empty(n_clusters)
    total = 0.0
    cutoff = 30.0 * temperature
    for i in range(n):
        s = cells[i]
        lowest = np.inf
        for k in range(n_clusters):
            v = distances[i, k] + price[s, k]
            value[k] = v
            if v < lowest:
                lowest = v
        norm = 0.0
        for k in range(n_clusters):
            gap = value[k] - lowest
            if gap < cutoff:
                share[k] = np.exp(-gap / temperature)
                norm += share[k]
            else:
                share[k] = 0.0
        w = weights[i]
        for k in range(n_clusters):
            if share[k] > 0.0:
                counts[k, s] += w * share[k] / norm
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
def cluster_violation(rules, slack, counts_of_cluster):
    """Sum what a cluster's counts fall short of its rules."""
    total = 0.0
    for r in range(rules.shape[0]):
        value = slack[r]
        for s in range(rules.shape[1]):
            value += rules[r, s] * counts_of_cluster[s]
        if value < -1e-9:
            total -= value
    return total


@njit(cache=True)
def violation_change(rules, slack, counts_of_cluster, current, s, w):
    """Return how the violation of a cluster changes when weight w of cell s comes (or goes)."""
    counts_of_cluster[s] += w
    after = cluster_violation(rules, slack, counts_of_cluster)
    counts_of_cluster[s] -= w
    return after - current


@njit(cache=True)
def repair(rules, slack, labels, weights, counts, row, cost, size, max_steps):
    """Move points until no cluster violates a rule, each time the cheapest per unit of repair.

    Uses the lists of ``cheapest_moves``; changes labels and counts. Returns (steps, violation):
    stops early when no listed move helps.
    """
    n_clusters, n_cells = counts.shape
    first = np.zeros((n_clusters, n_clusters, n_cells), np.int64)
    violation = np.empty(n_clusters)
    total = 0.0
    for k in range(n_clusters):
        violation[k] = cluster_violation(rules, slack[k], counts[k])
        total += violation[k]
    steps = 0
    while total > 1e-9 and steps < max_steps:
        best = np.inf
        best_k = best_t = best_s = -1
        for k in range(n_clusters):
            for s in range(n_cells):
                if counts[k, s] <= 0.0:
                    continue
                for t in range(n_clusters):
                    if t == k or (violation[k] == 0.0 and violation[t] == 0.0):
                        continue
                    m = first[k, t, s]
                    while m < size[k, t, s] and labels[row[k, t, s, m]] != k:
                        m += 1
                    first[k, t, s] = m
                    if m == size[k, t, s]:
                        continue
                    w = weights[row[k, t, s, m]]
                    change = violation_change(
                        rules, slack[k], counts[k], violation[k], s, -w
                    ) + violation_change(rules, slack[t], counts[t], violation[t], s, w)
                    if change < -1e-9:
                        # Costs can be negative; a shift keeps cheap and effective moves in front.
                        price = w * cost[k, t, s, m] / -change
                        if price < best:
                            best = price
                            best_k, best_t, best_s = k, t, s
        if best_k < 0:
            break
        i = row[best_k, best_t, best_s, first[best_k, best_t, best_s]]
        labels[i] = best_t
        counts[best_k, best_s] -= weights[i]
        counts[best_t, best_s] += weights[i]
        for k in (best_k, best_t):
            total -= violation[k]
            violation[k] = cluster_violation(rules, slack[k], counts[k])
            total += violation[k]
        steps += 1
    return steps, violation.sum()  # not the running total, which drifts by rounding


@njit(cache=True)
def improve(rules, slack, labels, weights, counts, row, cost, size, max_steps):
    """Lower the cost by moves that break no rule and by swaps within a cell.

    Uses the lists of ``cheapest_moves``; changes labels and counts and returns the gain. A swap
    exchanges two points of equal weight and cell between two clusters, so no count changes.
    """
    n_clusters, n_cells = counts.shape
    first = np.zeros((n_clusters, n_clusters, n_cells), np.int64)
    gain = 0.0
    for _ in range(max_steps):
        best = -1e-12
        best_k = best_t = best_s = -1
        is_swap = False
        for k in range(n_clusters):
            for t in range(n_clusters):
                if t == k:
                    continue
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
                    if c < best and counts[k, s] > 0.0:
                        before_k = cluster_violation(rules, slack[k], counts[k])
                        before_t = cluster_violation(rules, slack[t], counts[t])
                        change_k = violation_change(rules, slack[k], counts[k], before_k, s, -w)
                        change_t = violation_change(rules, slack[t], counts[t], before_t, s, w)
                        if change_k <= 0.0 and change_t <= 0.0:
                            best = c
                            best_k, best_t, best_s = k, t, s
                            is_swap = False
                    if t > k:
                        m2 = first[t, k, s]
                        while m2 < size[t, k, s] and labels[row[t, k, s, m2]] != t:
                            m2 += 1
                        first[t, k, s] = m2
                        if m2 < size[t, k, s] and weights[row[t, k, s, m2]] == w:
                            c2 = c + w * cost[t, k, s, m2]
                            if c2 < best:
                                best = c2
                                best_k, best_t, best_s = k, t, s
                                is_swap = True
        if best_k < 0:
            break
        i = row[best_k, best_t, best_s, first[best_k, best_t, best_s]]
        labels[i] = best_t
        if is_swap:
            labels[row[best_t, best_k, best_s, first[best_t, best_k, best_s]]] = best_k
        else:
            counts[best_k, best_s] -= weights[i]
            counts[best_t, best_s] += weights[i]
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
