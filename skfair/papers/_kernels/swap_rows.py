"""Passes over all rows for the swap solver: sums, counts, costs, nearest seeds.

``safairkm/swap_sample.py``, ``swap.py`` and ``swap_front.py`` call these kernels.

Three tuples of arrays travel through all kernels of swaps:

``data = (X, center, scale, codes)``: rows (n, d) in float32 or float64, the point that is
subtracted from each row, the number that multiplies the difference, and the group of each row.

``state = (labels, counts, sums)``: cluster of each row, rows per cluster and group (K, J), and the
sum of the shifted and scaled rows of each cluster (K, d). Centres are sums divided by sizes.

``cells = (order, place, starts)``: the rows of group ``g`` and cluster ``k`` are
``order[starts[g, k]:starts[g, k + 1]]`` and ``place`` is the inverse of ``order``. If ``order`` is
empty, nothing is kept sorted: the rows of group ``g`` are then the numbers from ``starts[g, 0]`` to
``starts[g, -1]``, and a member of a cell is found by walking on from a random row of the group.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def spread(X, center):
    """Return the largest absolute difference between an entry of X and the center."""
    largest = 0.0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            largest = max(largest, abs(X[i, j] - center[j]))
    return largest


@njit(cache=True)
def sum_of_squares(X, center, scale):
    """Return the sum of the squared entries of the shifted and scaled rows."""
    total = 0.0
    for i in range(X.shape[0]):
        row = 0.0
        for j in range(X.shape[1]):
            x = (X[i, j] - center[j]) * scale
            row += x * x
        total += row
    return total


@njit(cache=True)
def nearest_rows(data, seeds, block, scores, lowest, labels):
    """Write into ``labels`` the seed (a row number) that is closest to each row.

    ``block`` (d, b), ``scores`` (b,) and ``lowest`` (b,) are scratch space for b rows at a time.
    """
    X, center, scale, _ = data
    for first in range(0, X.shape[0], lowest.size):
        n_rows = min(lowest.size, X.shape[0] - first)
        for b in range(n_rows):
            lowest[b] = np.inf
            for j in range(center.size):
                block[j, b] = (X[first + b, j] - center[j]) * scale
        for k in range(seeds.size):
            scores[:n_rows] = 0.0
            for j in range(center.size):
                c = (X[seeds[k], j] - center[j]) * scale
                for b in range(n_rows):
                    gap = block[j, b] - c
                    scores[b] += gap * gap
            for b in range(n_rows):
                if scores[b] < lowest[b]:
                    lowest[b] = scores[b]
                    labels[first + b] = k


@njit(cache=True)
def count_and_sum(data, state):
    """Compute counts and sums of the state from its labels."""
    X, center, scale, codes = data
    labels, counts, sums = state
    counts[:] = 0
    sums[:] = 0.0
    for i in range(X.shape[0]):
        k = labels[i]
        counts[k, codes[i]] += 1
        for j in range(X.shape[1]):
            sums[k, j] += (X[i, j] - center[j]) * scale


@njit(cache=True)
def sort_cells(data, state, cells, rows):
    """Sort the rows by group and cluster: write order, place and starts.

    Within a cell they keep the order of ``rows``, a permutation.
    """
    codes = data[3]
    labels, counts, _ = state
    order, place, starts = cells
    n_clusters, n_groups = counts.shape
    filled = np.empty((n_groups, n_clusters), np.int64)
    total = 0
    for g in range(n_groups):
        for k in range(n_clusters):
            starts[g, k] = total
            filled[g, k] = total
            total += counts[k, g]
        starts[g, n_clusters] = total
    for i in rows:
        g, k = codes[i], labels[i]
        order[filled[g, k]] = i
        place[i] = filled[g, k]
        filled[g, k] += 1


@njit(cache=True)
def direct_cost(data, state):
    """Return the mean of ``mean_cost`` by a pass over the rows, which does not lose digits."""
    X, center, scale, _ = data
    labels, counts, sums = state
    sizes = counts.sum(axis=1)
    total = 0.0
    for i in range(X.shape[0]):
        k = labels[i]
        for j in range(X.shape[1]):
            gap = (X[i, j] - center[j]) * scale - sums[k, j] / sizes[k]
            total += gap * gap
    return total / X.shape[0]
