"""Products of a matrix of rows that BLAS has no call for.

Called by :mod:`skfair.models.linear` and :mod:`skfair.models.units`. X is a dense matrix, or a CSR
matrix as the arrays ``data``, ``indices`` and ``indptr``; w_i is the weight of row x_i.

- :func:`sparse_gram` computes sum_i w_i x_i x_i' for CSR rows. BLAS computes it for dense rows,
  which :func:`signed_rows` prepares.
- Names with ``scores`` compute x_i'c, and names with ``row_sums`` sum_i w_i x_i. They are used for
  rows in single precision and for chosen rows of a CSR matrix.
- Names with ``cell_sums`` compute one such sum for each cell, the rows with the same number in
  ``cells``.
- :func:`dense_column_sums` computes the sums from which means and deviations of columns are made.

All sums are in float64, whatever the type of the data.
"""

import numpy as np

from skfair._kernels.declaring import njit


@njit(cache=True)
def sparse_gram(data, indices, indptr, weights, out):
    """Add the upper triangle of ``X' diag(weights) X`` of a CSR matrix to ``out``.

    The column indices of each row must be sorted. Indices are unsigned, because numba checks of
    each signed one whether it is negative and counts from the end, which takes longer than the sum.
    """
    n_columns, sums = np.uint64(out.shape[1]), out.ravel()
    for i in range(indptr.size - 1):
        w = weights[i]
        if w == 0.0:
            continue
        end = np.uint64(indptr[i + 1])
        for a in range(np.uint64(indptr[i]), end):
            row = np.uint64(indices[a]) * n_columns
            x = w * data[a]
            for b in range(a, end):
                sums[row + np.uint64(indices[b])] += x * data[b]


@njit(cache=True)
def dense_row_scores(X, coef, out):
    """Write each row of a dense matrix times ``coef`` to ``out``, in double precision.

    A score depends on its row only. BLAS may round it in another way if the row has another place
    in the matrix. There are four sums at a time, because each addition waits for the one before.
    """
    n, d = X.shape
    rest = d - d % 4
    for i in range(n):
        row = X[i]
        a, b, c, e = 0.0, 0.0, 0.0, 0.0
        for j in range(0, rest, 4):
            a += np.float64(row[j]) * coef[j]
            b += np.float64(row[j + 1]) * coef[j + 1]
            c += np.float64(row[j + 2]) * coef[j + 2]
            e += np.float64(row[j + 3]) * coef[j + 3]
        for j in range(rest, d):
            a += np.float64(row[j]) * coef[j]
        out[i] = (a + b) + (c + e)


@njit(cache=True)
def dense_row_sums(X, slopes, out):
    """Add sum_i slopes[i] x_i of a dense matrix to ``out``, in double precision.

    Four rows are added at a time, so that ``out`` is read and written once for all four.
    """
    n, d = X.shape
    rest = n - n % 4
    for i in range(0, rest, 4):
        a, b, c, e = slopes[i], slopes[i + 1], slopes[i + 2], slopes[i + 3]
        first, second, third, fourth = X[i], X[i + 1], X[i + 2], X[i + 3]
        for j in range(d):
            out[j] += (a * first[j] + b * second[j]) + (c * third[j] + e * fourth[j])
    for i in range(rest, n):
        for j in range(d):
            out[j] += slopes[i] * X[i, j]


@njit(cache=True)
def signed_rows(X, mean, inverse, weights, out):
    """Write sqrt(abs(w_i)) times the standardised row (x_i - mean) * inverse to ``out``.

    Rows with a positive weight come first, ``out[:front]``, and those with a negative one last,
    ``out[back:]``, so that out[:front]'out[:front] - out[back:]'out[back:] is the weighted Gram
    matrix. Rows of weight 0 are left out. If ``out`` has one more column than X, for the
    intercept, its entries are sqrt(abs(w_i)). Returns ``front`` and ``back``.
    """
    n, d = X.shape
    front, back = 0, n
    for i in range(n):
        w = weights[i]
        if w == 0.0:
            continue
        if w > 0.0:
            target = out[front]
            front += 1
        else:
            back -= 1
            target = out[back]
        target[0] = np.sqrt(abs(w))  # stored and read back: rounded to the precision of ``out``
        row, r = X[i], target[0]
        for j in range(d):
            target[j] = (row[j] - mean[j]) * inverse[j] * r
        for j in range(d, target.size):
            target[j] = r
    return front, back


@njit(cache=True)
def sparse_cell_sums(data, indices, indptr, cells, weights, out):
    """Add ``weights[i]`` times row i of a CSR matrix to ``out[cells[i]]``."""
    for i in range(indptr.size - 1):
        w = weights[i]
        if w == 0.0:
            continue
        target = out[cells[i]]
        for a in range(indptr[i], indptr[i + 1]):
            target[indices[a]] += w * data[a]


@njit(cache=True)
def dense_cell_sums(X, cells, weights, out):
    """Add ``weights[i]`` times row i of a dense matrix to ``out[cells[i]]``."""
    for i in range(X.shape[0]):
        w = weights[i]
        if w == 0.0:
            continue
        target = out[cells[i]]
        row = X[i]
        for j in range(row.size):
            target[j] += w * row[j]


@njit(cache=True)
def dense_column_sums(X, weights, origin, first, second):
    """Add sum_i w_i (x_i - origin) to ``first``, and the sum of w_i (x_i - origin)^2 to ``second``.

    Both sums are over the rows, for each column by itself.
    """
    for i in range(X.shape[0]):
        w, row = weights[i], X[i]
        for j in range(row.size):
            apart = np.float64(row[j]) - origin[j]
            first[j] += w * apart
            second[j] += w * (apart * apart)


@njit(cache=True)
def sparse_scores(data, indices, indptr, coef, out):
    """Write each row of a CSR matrix times ``coef`` to ``out``, in double precision."""
    end = np.uint64(0)
    for i in range(out.size):
        total, start, end = 0.0, end, np.uint64(indptr[i + 1])
        for a in range(start, end):
            total += data[a] * coef[np.uint64(indices[a])]
        out[i] = total


@njit(cache=True)
def sparse_row_scores(data, indices, indptr, rows, coef, out):
    """Write row ``rows[i]`` of a CSR matrix times ``coef`` to ``out[i]``.

    Random rows are far apart in memory. A first loop reads only the ends of each row, so that the
    processor fetches many rows at once, and the second loop need not wait for them one by one.
    """
    touched = 0.0
    for i in range(rows.size):
        a, stop = indptr[rows[i]], indptr[rows[i] + 1]
        if a < stop:
            touched += data[a] + data[stop - 1] + indices[a] + indices[stop - 1]
    if touched == 0.5:  # uses the sum, so that the first loop is not optimised away; harmless
        out[:] = 0
    for i in range(rows.size):
        total = 0.0
        for a in range(indptr[rows[i]], indptr[rows[i] + 1]):
            total += data[a] * coef[indices[a]]
        out[i] = total


@njit(cache=True)
def sparse_row_sums(data, indices, indptr, rows, slopes, out):
    """Add ``slopes[i]`` times row ``rows[i]`` of a CSR matrix to ``out``."""
    for i in range(rows.size):
        for a in range(indptr[rows[i]], indptr[rows[i] + 1]):
            out[indices[a]] += slopes[i] * data[a]
