"""Costs of points in clusters, and their assignment at given prices.

``points.py`` and ``kmeans/prediction.py`` compute distances by ``scaled_rows``, a product of
matrices and ``complete_distances``. ``cost_table.py`` sums over points by ``soft_assign`` and
``tell_apart``. Letters: i is a point (a row), k a cluster, s the *cell* of a point. The points of a
cell belong to the same groups, and a price ``price[s, k]`` is added to their distance from cluster
k.
"""

import math

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def scaled_rows(X, mean, inverse, out):
    """Write ``out = (X - mean) * inverse``, with ``inverse`` 1 over the unit.

    X, mean and inverse have the same precision, in which this is computed. A division would take
    three times as long as a product.
    """
    n, d = X.shape
    for i in range(n):
        for j in range(d):
            out[i, j] = (X[i, j] - mean[j]) * inverse


@njit(cache=True)
def complete_distances(block, center_norms, row_norms):
    """Turn ``block = -2 x'c``, for rows x and centres c, into ``|x|^2 - 2 x'c + |c|^2`` in place.

    Rounding may leave -1e-17 for a point at its centre. This becomes 0.
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
    """Return the sum of soft minima of distance plus price; add soft counts and their curvature.

    With v_ik = distances[i, k] + price[s_i, k], weights w_i and the temperature T,

        p_ik = exp(-v_ik / T) / sum_j exp(-v_ij / T)
        returned       -T sum_i w_i log sum_k exp(-v_ik / T)
        counts[k, s]   += sum over i in s of  w_i p_ik
        curvature[s]   += sum over i in s of  w_i (diag(p_i) - p_i p_i')

    counts is the derivative of the sum by the prices, and curvature, (n_clusters, n_clusters) for
    each cell, is minus T times the derivative of the counts.

    A cluster whose v is 30 T above the smallest one has a share p below 1e-13 and is skipped, which
    saves nearly all exponentials. ``value`` and ``near`` (n_clusters,) are scratch space: the v of
    a point, then the shares of its near clusters, and which clusters these are.
    """
    n, n_clusters = distances.shape
    total, reach, inverse = 0.0, 30.0 * temperature, 1.0 / temperature
    for i in range(n):
        s, w = cells[i], weights[i]
        lowest, second, nearest = np.inf, np.inf, 0
        for k in range(n_clusters):
            v = distances[i, k] + price[s, k]
            value[k] = v
            # These are selections, because the processor cannot predict branches here.
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
            value[j] = math.exp((lowest - value[near[j]]) * inverse)
            norm += value[j]
        scale = 1.0 / norm
        for j in range(n_near):
            k, value[j] = near[j], value[j] * scale
            share, own = w * value[j], curvature[s, k]
            counts[k, s] += share
            own[k] += share - share * value[j]
            for m in range(j):
                own[near[m]] -= share * value[m]
        total -= w * temperature * math.log(norm)
    for s in range(curvature.shape[0]):  # so far, only numbers below the diagonal were added to
        for k in range(n_clusters):
            for m in range(k):
                curvature[s, m, k] = curvature[s, k, m]
    return total


@njit(cache=True)
def tell_apart(distances, price, cells, weights, reach, labels, near, counts):
    """Assign the points whose distance plus price is lower in one cluster by ``reach``.

    Writes their labels, adds their weights to counts, and writes the numbers of the other points
    into ``near``. Returns the number of other points, and the weighted sum of the distances,
    without prices, of the assigned points. With a ``reach`` of -inf, all points are assigned.
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
        else:  # reached also if all distances are infinite: inf < inf is false
            labels[i] = nearest
            counts[nearest, s] += weights[i]
            total += weights[i] * distances[i, nearest]
    return n_others, total


@njit(cache=True)
def cluster_sums(X, labels, weights, sums, mass):
    """Add ``w_i x_i`` to the sums (n_clusters, d) of the cluster of row i, and w_i to its mass."""
    n, d = X.shape
    for i in range(n):
        k = labels[i]
        w = weights[i]
        mass[k] += w
        for j in range(d):
            sums[k, j] += w * X[i, j]


@njit(cache=True)
def nearest(distances, prices, codes, unit, rounding, labels):
    """Write the label of each point: the cluster of the smallest distance plus prices.

    The prices ``prices[g, k]`` of the groups of a point are added to ``distances``, in place.
    ``codes`` (n_attributes, n) are its groups, with no lines if there are no prices. If sums differ
    by rounding only, the first cluster is taken. The rounding of a sum v is ``rounding`` times
    ``|v| + unit``, with ``unit`` the size of the numbers that were added up.

    For speed there are selections instead of branches, and two minima are found in turn, because
    each comparison waits for the previous one of the same minimum.
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
