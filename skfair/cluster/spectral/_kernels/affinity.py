"""Distances between rows for ``affinities/kernels.py`` and ``landmarks.py``, and nearest landmarks.

Differences are squared directly. The usual ``|x|^2 - 2 x'y + |y|^2`` loses the digits of small
distances far from the origin, and with the few features of such data it is not faster.
"""

from skfair._kernels.declaring import njit

# Columns per pass: a row of results stays in the innermost cache.
_COLUMNS = 2048


@njit(cache=True)
def minus_squared_distances(X, Y_t, first, out):
    """Write ``out[i, j] = -sum_f (X[i, f] - Y_t[f, j])^2`` for all columns j >= first.

    The sign is minus because Gaussian weights are ``exp`` of the result, and because the nearest
    points then have the largest numbers, for ``largest_columns``. The result is in the square of
    the unit of X. (``affinities/kernels.py`` multiplies X by the root of gamma beforehand.)
    ``Y_t`` (d, m) has points as columns, so that the inner loop reads neighbouring numbers.
    Features are added four at a time.
    """
    n, d = X.shape
    m = Y_t.shape[1]
    for start in range(first, m, _COLUMNS):
        stop = min(m, start + _COLUMNS)
        for i in range(n):
            row = out[i, start:stop]
            f = d % 4
            row[:] = 0.0
            for g in range(f):
                x0, y0 = X[i, g], Y_t[g, start:stop]
                for j in range(stop - start):
                    a = x0 - y0[j]
                    row[j] -= a * a
            while f < d:
                x0, x1, x2, x3 = X[i, f], X[i, f + 1], X[i, f + 2], X[i, f + 3]
                y0, y1 = Y_t[f, start:stop], Y_t[f + 1, start:stop]
                y2, y3 = Y_t[f + 2, start:stop], Y_t[f + 3, start:stop]
                for j in range(stop - start):
                    a, b, c, e = x0 - y0[j], x1 - y1[j], x2 - y2[j], x3 - y3[j]
                    row[j] -= (a * a + b * b) + (c * c + e * e)
                f += 4


@njit(cache=True)
def largest_columns(values, index, value):
    """Write the positions and values of the largest entries of each row, in falling order.

    ``index`` and ``value`` (n, n_kept) are written. Entries are sorted by insertion, and equal
    entries keep their order.
    """
    n, m = values.shape
    n_kept = index.shape[1]
    for i in range(n):
        size = 0
        for j in range(m):
            v = values[i, j]
            if size == n_kept:
                if v <= value[i, size - 1]:
                    continue
                size -= 1
            t = size
            while t > 0 and value[i, t - 1] < v:
                value[i, t] = value[i, t - 1]
                index[i, t] = index[i, t - 1]
                t -= 1
            value[i, t] = v
            index[i, t] = j
            size += 1
