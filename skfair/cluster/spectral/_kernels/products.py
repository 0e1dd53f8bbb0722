"""Passes over a dense matrix of weights: sums of rows by cluster, and the first reading of it.

``DenseWeights`` calls ``add_row_sums`` for *links*, the sums of the weights between each row and
each cluster. ``check_dense`` calls ``read_rows`` for a matrix that a user passed, before it is
known to be symmetric. Reading memory takes most of the time of both, so they read each entry once
and take four rows at a time.
"""

from skfair._kernels.declaring import njit

# Columns of the matrix per pass. The sums of a cluster in these columns take 16 KB in double
# precision, which fit into the innermost cache.
_SUMMED = 2048


@njit(cache=True)
def add_row_sums(weights, rows, starts, sign, first, last, out):
    """Add to ``out[k, j]`` the sum of ``sign * weights[i, j]`` over given rows i of cluster k.

    The rows of cluster k are ``rows[starts[k] : starts[k + 1]]``, and ``sign`` is 1 or -1, for rows
    that enter or leave it. Only columns j from ``first`` to ``last`` are
    written, so that threads can share the columns.
    """
    for start in range(first, last, _SUMMED):
        stop = min(last, start + _SUMMED)
        for k in range(out.shape[0]):
            total = out[k, start:stop]
            whole = starts[k + 1] - (starts[k + 1] - starts[k]) % 4
            for i in range(starts[k], whole, 4):
                w0, w1 = weights[rows[i], start:stop], weights[rows[i + 1], start:stop]
                w2, w3 = weights[rows[i + 2], start:stop], weights[rows[i + 3], start:stop]
                for j in range(stop - start):
                    total[j] += sign * ((w0[j] + w1[j]) + (w2[j] + w3[j]))
            for i in range(whole, starts[k + 1]):
                w0 = weights[rows[i], start:stop]
                for j in range(stop - start):
                    total[j] += sign * w0[j]


@njit(cache=True)
def read_rows(X, first, factors, read, sums, forward, backward):
    """Copy rows of a square matrix A, and return whether an entry of them is negative.

    ``X`` holds the rows of A from number ``first`` on. The copy ``read`` may have another precision
    than A. With f the ``factors`` and i a row of X,

        read[i] = X[i],   sums[i] = sum_j X[i, j],   forward[i] = sum_j X[i, j] f[j],
        backward[j] += sum_i f[first + i] X[i, j]

    so that after all rows ``forward`` is A f and ``backward`` is A'f: equal if A is symmetric. Rows
    are read in fours. If fewer are left, the last one is read again, with the factor 0.
    """
    n_rows, n_columns = X.shape
    n_negative = 0
    for i in range(0, n_rows, 4):
        b, c, d = min(i + 1, n_rows - 1), min(i + 2, n_rows - 1), min(i + 3, n_rows - 1)
        w0, w1, w2, w3 = X[i], X[b], X[c], X[d]
        out0, out1, out2, out3 = read[i], read[b], read[c], read[d]
        f0 = factors[first + i]
        f1 = factors[first + b] if b == i + 1 else 0.0
        f2 = factors[first + c] if c == i + 2 else 0.0
        f3 = factors[first + d] if d == i + 3 else 0.0
        s0 = s1 = s2 = s3 = p0 = p1 = p2 = p3 = 0.0
        for j in range(n_columns):
            f, x0, x1, x2, x3 = factors[j], w0[j], w1[j], w2[j], w3[j]
            s0, s1, s2, s3 = s0 + x0, s1 + x1, s2 + x2, s3 + x3
            p0, p1, p2, p3 = p0 + x0 * f, p1 + x1 * f, p2 + x2 * f, p3 + x3 * f
        for j in range(n_columns):
            x0, x1, x2, x3 = w0[j], w1[j], w2[j], w3[j]
            out0[j], out1[j], out2[j], out3[j] = x0, x1, x2, x3
            backward[j] += (x0 * f0 + x1 * f1) + (x2 * f2 + x3 * f3)
            n_negative += (x0 < 0) | (x1 < 0) | (x2 < 0) | (x3 < 0)
        sums[i], sums[b], sums[c], sums[d] = s0, s1, s2, s3
        forward[i], forward[b], forward[c], forward[d] = p0, p1, p2, p3
    return n_negative > 0
