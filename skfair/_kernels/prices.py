"""Costs of points in clusters, and their assignment at given prices.

Points of the same *cell* (atom of the group algebra) pay the same price ``price[cell, cluster]`` on
top of their distance.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def scaled_rows(X, mean, inverse, out):
    """Write the rows of X relative to the mean, times the inverse of the unit.

    They are computed in the precision of X, mean and inverse. A division would take three times as
    long as a product.
    """
    n, d = X.shape
    for i in range(n):
        for j in range(d):
            out[i, j] = (X[i, j] - mean[j]) * inverse


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


# A call would take as long as the work: telling points apart took up to twice the time.
@njit(cache=True, inline="always")
def write_values(distances, price, i, s, value):
    """Write distance plus price of point i in each cluster; return the smallest.

    Four running minima instead of one keep the processor from waiting for the last comparison: a
    quarter less time.
    """
    n_clusters = value.size
    in_fours = n_clusters - n_clusters % 4
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
    return min(min(a, b), min(c, d))


@njit(cache=True)
def soft_assign(distances, price, cells, weights, temperature, counts):
    """Return the sum of soft minima of distance plus price; add the soft counts to ``counts``.

    A cluster whose value is 30 temperatures above the smallest one adds less than 1e-13 and is
    skipped, which saves nearly all exponentials.
    """
    n, n_clusters = distances.shape
    value = np.empty(n_clusters)
    total = 0.0
    for i in range(n):
        s = cells[i]
        lowest = write_values(distances, price, i, s, value)
        limit = lowest + 30.0 * temperature  # the same number if prices are so large
        w = weights[i]
        n_near = 0
        for k in range(n_clusters):
            if value[k] <= limit:
                n_near += 1
                nearest = k
        if n_near == 1:
            counts[nearest, s] += w
            total += w * lowest
            continue
        norm = 0.0
        for k in range(n_clusters):
            if value[k] <= limit:
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
    total, n_others = 0.0, 0
    for i in range(n):
        s = cells[i]
        limit = write_values(distances, price, i, s, value) + reach
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
def cluster_sums(X, labels, weights, sums, mass):
    """Add the weighted sum of the rows and the weight of each cluster."""
    n, d = X.shape
    for i in range(n):
        k = labels[i]
        w = weights[i]
        mass[k] += w
        for j in range(d):
            sums[k, j] += w * X[i, j]


@njit(cache=True)
def nearest(distances, unit, rounding, labels):
    """Write the first column of each row whose distance is as small as any but for rounding.

    Distances are sums of numbers of the size of ``unit`` and of their own.
    """
    for i in range(distances.shape[0]):
        least = distances[i, 0]
        for k in range(1, distances.shape[1]):
            least = min(least, distances[i, k])
        least += rounding * (abs(least) + unit)
        k = 0
        while distances[i, k] > least:
            k += 1
        labels[i] = k
