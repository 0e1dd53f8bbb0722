"""Products of some rows of a CSR matrix with a dense one: the first layer of a network.

Called by :mod:`skfair.models.mlp`. The rows are read in X itself. Scipy would first copy them,
which costs more than the product.
"""

from skfair._kernels.declaring import njit


@njit(cache=True)
def rows_times(data, indices, indptr, rows, weights, out):
    """Write row ``rows[i]`` of a CSR matrix times ``weights`` to ``out[i]``.

    Four nonzeros are added at a time, so that a row of ``out`` is loaded and stored a quarter as
    often. Random rows are far apart in memory. A first loop reads only their ends, so that the
    processor fetches many at once and the second need not wait for each (256 rows of Adult: 60 us
    less).
    """
    touched = 0.0
    for i in range(rows.size):
        a, stop = indptr[rows[i]], indptr[rows[i] + 1]
        if a < stop:
            touched += data[a] + data[stop - 1] + indices[a] + indices[stop - 1]
    if touched == 0.5:  # uses the sum, so that the first loop is not optimised away; harmless
        out[:] = 0
    for i in range(rows.size):
        target = out[i]
        target[:] = 0
        a, stop = indptr[rows[i]], indptr[rows[i] + 1]
        while a + 4 <= stop:
            x0, x1, x2, x3 = data[a], data[a + 1], data[a + 2], data[a + 3]
            w0, w1 = weights[indices[a]], weights[indices[a + 1]]
            w2, w3 = weights[indices[a + 2]], weights[indices[a + 3]]
            for k in range(target.size):
                target[k] += (x0 * w0[k] + x1 * w1[k]) + (x2 * w2[k] + x3 * w3[k])
            a += 4
        while a < stop:
            x, w = data[a], weights[indices[a]]
            for k in range(target.size):
                target[k] += x * w[k]
            a += 1


@njit(cache=True)
def add_transposed_rows_times(data, indices, indptr, rows, slopes, out):
    """Add sum_i x_rows[i] slopes[i]' to ``out``, (n_columns, n_units), for rows of a CSR matrix."""
    for i in range(rows.size):
        slope = slopes[i]
        for a in range(indptr[rows[i]], indptr[rows[i] + 1]):
            x, target = data[a], out[indices[a]]
            for k in range(slope.size):
                target[k] += x * slope[k]
