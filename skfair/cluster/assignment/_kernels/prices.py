"""Costs of points in clusters, and their assignment at given prices.

Points of the same *cell* (atom of the group algebra) pay the same price ``price[cell, cluster]`` on
top of their distance.
"""

import math

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
def soft_assign(distances, price, cells, weights, temperature, value, near, counts, curvature):
    """Return the sum of soft minima of distance plus price; add the soft counts to ``counts``.

    ``curvature[s]`` (K, K) gets minus their derivatives by the prices of cell s, times the
    temperature.

    A cluster whose value is 30 temperatures above the smallest one adds less than 1e-13 and is
    skipped, which saves nearly all exponentials. ``value`` and ``near`` (K,) are scratch space: the
    shares of the other clusters, and which these are.
    """
    n, n_clusters = distances.shape
    total, reach = 0.0, 30.0 * temperature
    for i in range(n):
        s, w = cells[i], weights[i]
        lowest, second, nearest = np.inf, np.inf, 0
        for k in range(n_clusters):
            v = distances[i, k] + price[s, k]
            value[k] = v
            # Selections instead of branches, which the processor cannot foresee.
            is_less = v < lowest
            second = lowest if is_less else min(second, v)
            nearest = k if is_less else nearest
            lowest = v if is_less else lowest
        total += w * lowest
        if second > lowest + reach:
            counts[nearest, s] += w
            continue
        n_near = 0
        for k in range(n_clusters):
            near[n_near] = k
            n_near += value[k] <= lowest + reach
        norm = 0.0
        for j in range(n_near):
            value[j] = math.exp((lowest - value[near[j]]) / temperature)
            norm += value[j]
        for j in range(n_near):
            k, value[j] = near[j], value[j] / norm
            share = w * value[j]
            counts[k, s] += share
            curvature[s, k, k] += share - share * value[j]
            for m in range(j):
                both = share * value[m]
                curvature[s, k, near[m]] -= both
                curvature[s, near[m], k] -= both
        total -= w * temperature * math.log(norm)
    return total


@njit(cache=True)
def tell_apart(distances, price, cells, weights, reach, labels, near, counts):
    """Assign the points that are cheaper in one cluster than in all others by ``reach``.

    Write their labels, add to counts, and write the numbers of the others into ``near``. Returns
    how many others there are, and the weighted sum of the distances of those assigned.
    """
    n, n_clusters = distances.shape
    total, n_others = 0.0, 0
    for i in range(n):
        s = cells[i]
        lowest, second, nearest = np.inf, np.inf, 0
        for k in range(n_clusters):
            v = distances[i, k] + price[s, k]
            is_less = v < lowest
            second = lowest if is_less else min(second, v)
            nearest = k if is_less else nearest
            lowest = v if is_less else lowest
        if second < lowest + reach:
            near[n_others] = i
            n_others += 1
        else:  # also where distances are infinite, and nothing can be told apart
            labels[i] = nearest
            counts[nearest, s] += weights[i]
            total += weights[i] * distances[i, nearest]
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
def nearest(distances, prices, codes, unit, rounding, labels):
    """Write the first column of each row whose sum is as small as any but for rounding.

    To the distances the prices of the row's groups are added, in place. ``codes`` (n_attributes, n)
    may have no lines. Sums are made of numbers of the size of ``unit`` and of their own. There are
    selections instead of branches, and two minima, since each waits for the one before.
    """
    n, last = distances.shape[0], distances.shape[1] - 1
    for i in range(n):
        row = distances[i]
        for a in range(codes.shape[0]):
            price = prices[codes[a, i]]
            for k in range(last + 1):
                row[k] += price[k]
        least, other = row[0], row[last]
        for k in range(0, last, 2):
            least = row[k] if row[k] < least else least
            other = row[k + 1] if row[k + 1] < other else other
        least = min(least, other)
        least += rounding * (abs(least) + unit)
        label = 0
        for k in range(last, -1, -1):
            label = k if row[k] <= least else label
        labels[i] = label
