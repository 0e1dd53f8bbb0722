"""A symmetric matrix times a few columns, and the pass that reads it first.

A library's general product first packs the large matrix into another layout, which pays for many
columns only. Here every entry is read once and used for all columns: measured for n = 5000 in
float32, half the time for 8 columns, 0.7 for 16, nothing gained from 32 on.
"""

from skfair._kernels.declaring import njit

# Columns of the matrix per pass: the results of one pass stay in the second cache.
_COLUMNS = 5120
# The same for sums, whose results stay in the first cache.
_SUMMED = 2048


@njit(cache=True)
def add_narrow_product(weights, rows, first, last, out):
    """Add columns of ``rows @ weights`` to ``out``, for rows in fours, weights with rows in eights.

    Eight rows of the weights meet four of ``rows`` at a time, so that each number that is loaded is
    used often enough. Weights beyond the last eight, and rows beyond the last four, are left out.
    """
    b = rows.shape[0]
    for start in range(first, last, _COLUMNS):
        stop = min(last, start + _COLUMNS)
        for i in range(0, weights.shape[0] - 7, 8):
            w0, w1 = weights[i, start:stop], weights[i + 1, start:stop]
            w2, w3 = weights[i + 2, start:stop], weights[i + 3, start:stop]
            w4, w5 = weights[i + 4, start:stop], weights[i + 5, start:stop]
            w6, w7 = weights[i + 6, start:stop], weights[i + 7, start:stop]
            for r in range(0, b - 3, 4):
                a, b_, c, d = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
                a0, a1, a2, a3 = a[i], a[i + 1], a[i + 2], a[i + 3]
                a4, a5, a6, a7 = a[i + 4], a[i + 5], a[i + 6], a[i + 7]
                b0, b1, b2, b3 = b_[i], b_[i + 1], b_[i + 2], b_[i + 3]
                b4, b5, b6, b7 = b_[i + 4], b_[i + 5], b_[i + 6], b_[i + 7]
                c0, c1, c2, c3 = c[i], c[i + 1], c[i + 2], c[i + 3]
                c4, c5, c6, c7 = c[i + 4], c[i + 5], c[i + 6], c[i + 7]
                d0, d1, d2, d3 = d[i], d[i + 1], d[i + 2], d[i + 3]
                d4, d5, d6, d7 = d[i + 4], d[i + 5], d[i + 6], d[i + 7]
                out_a, out_b = out[r, start:stop], out[r + 1, start:stop]
                out_c, out_d = out[r + 2, start:stop], out[r + 3, start:stop]
                for j in range(stop - start):
                    x0, x1, x2, x3 = w0[j], w1[j], w2[j], w3[j]
                    x4, x5, x6, x7 = w4[j], w5[j], w6[j], w7[j]
                    low = (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3)
                    out_a[j] += low + ((a4 * x4 + a5 * x5) + (a6 * x6 + a7 * x7))
                    low = (b0 * x0 + b1 * x1) + (b2 * x2 + b3 * x3)
                    out_b[j] += low + ((b4 * x4 + b5 * x5) + (b6 * x6 + b7 * x7))
                    low = (c0 * x0 + c1 * x1) + (c2 * x2 + c3 * x3)
                    out_c[j] += low + ((c4 * x4 + c5 * x5) + (c6 * x6 + c7 * x7))
                    low = (d0 * x0 + d1 * x1) + (d2 * x2 + d3 * x3)
                    out_d[j] += low + ((d4 * x4 + d5 * x5) + (d6 * x6 + d7 * x7))


@njit(cache=True)
def add_row_sums(weights, rows, starts, sign, first, last, out):
    """Add ``sign`` times the sums of some rows of the weights to ``out``, cluster by cluster.

    ``rows[starts[k] : starts[k + 1]]`` are the rows of cluster k, whose sum is added to ``out[k]``,
    in columns ``first`` to ``last``. Every entry is read once and used once.
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
    """Copy rows of a matrix into another precision, and look at them; return if any is negative.

    ``X`` are the rows from number ``first`` on. Their ``sums`` and products with ``factors``
    (``forward``) are set; ``factors`` times them is added to ``backward``. Rows are read in fours,
    the last one again where there are fewer. Everything is read once: memory is what takes time.
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
