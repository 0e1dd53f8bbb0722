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
def soft_assign(distances, price, cells, weights, temperature, value, counts, curvature):
    """Return the sum of soft minima of distance plus price; add the soft counts to ``counts``.

    ``curvature[s]`` (K, K) gets minus their derivatives by the prices of cell s, times the
    temperature.

    A cluster whose value is 30 temperatures above the smallest one adds less than 1e-13 and is
    skipped, which saves nearly all exponentials. ``value`` (K,) is scratch space.
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
        norm = 0.0
        for k in range(n_clusters):
            is_near = value[k] <= lowest + reach
            value[k] = math.exp((lowest - value[k]) / temperature) if is_near else 0.0
            norm += value[k]
        for k in range(n_clusters):
            share = w * value[k] / norm
            if share > 0.0:
                counts[k, s] += share
                curvature[s, k, k] += share
                for m in range(n_clusters):
                    curvature[s, k, m] -= share * value[m] / norm
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
