"""Slow twins of the score network: unit by unit, entry by entry."""

import numpy as np


def score(x, coefs, intercepts):
    """The score of one row."""
    units = list(x)
    for depth, (coef, intercept) in enumerate(zip(coefs, intercepts, strict=True)):
        sums = [
            sum(units[i] * coef[i, j] for i in range(len(units))) + intercept[j]
            for j in range(coef.shape[1])
        ]
        is_last = depth == len(coefs) - 1
        units = sums if is_last else [max(0.0, unit) for unit in sums]
    return units[0]


def rows_times(X, rows, weights):
    """Some rows of a dense table times a matrix."""
    out = np.zeros((len(rows), weights.shape[1]))
    for i, row in enumerate(rows):
        for j, x in enumerate(X[row]):
            out[i] += x * weights[j]
    return out


def transposed_rows_times(X, rows, slopes):
    """The transpose of some rows of a dense table times a matrix."""
    out = np.zeros((X.shape[1], slopes.shape[1]))
    for i, row in enumerate(rows):
        for j, x in enumerate(X[row]):
            out[j] += x * slopes[i]
    return out
