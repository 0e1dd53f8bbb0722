"""Decisions at prices: soft ones for the dual, and where a line search passes each row."""

import math

import numpy as np
from numba import njit


@njit(cache=True)
def _soften(row, weight, temperature):
    """Return weight times the soft maximum of a row, which becomes weight times soft decisions.

    The soft maximum is T log sum exp(margin / T) for the temperature T.
    """
    largest = row[0]
    for c in range(1, row.size):
        largest = max(largest, row[c])
    mass = 0.0
    for c in range(row.size):
        row[c] = 1.0 if row[c] == largest else math.exp((row[c] - largest) / temperature)
        mass += row[c]
    for c in range(row.size):
        row[c] *= weight / mass
    return weight * (largest + temperature * math.log(mass))


@njit(cache=True)
def soft_table_dense(values, shares, prices, weights, temperature, table):
    """Return the sum of the soft maxima of values minus priced shares.

    Writes to ``table`` (n_features, n_classes) how much of each feature goes to each class.
    """
    n_features, n_classes = prices.shape
    table[:] = 0.0
    row = np.empty(n_classes)
    total = 0.0
    for i in range(values.shape[0]):
        for c in range(n_classes):
            row[c] = values[i, c]
        for f in range(n_features):
            for c in range(n_classes):
                row[c] -= shares[i, f] * prices[f, c]
        total += _soften(row, weights[i], temperature)
        for f in range(n_features):
            for c in range(n_classes):
                table[f, c] += shares[i, f] * row[c]
    return total


@njit(cache=True)
def soft_table_sparse(values, indptr, indices, shares, prices, weights, temperature, table):
    """Return the sum of the soft maxima of values minus priced shares, of a sparse table by rows.

    Writes to ``table`` (n_features, n_classes) how much of each feature goes to each class.
    """
    n_classes = prices.shape[1]
    table[:] = 0.0
    row = np.empty(n_classes)
    total = 0.0
    for i in range(values.shape[0]):
        for c in range(n_classes):
            row[c] = values[i, c]
        for a in range(indptr[i], indptr[i + 1]):
            for c in range(n_classes):
                row[c] -= shares[a] * prices[indices[a], c]
        total += _soften(row, weights[i], temperature)
        for a in range(indptr[i], indptr[i + 1]):
            for c in range(n_classes):
                table[indices[a], c] += shares[a] * row[c]
    return total


@njit(cache=True)
def passing_points(margins, rows, direction, label, others, points):
    """Find how far the price of a class may rise before a row is no longer decided for it.

    Writes for each of ``rows`` the best other class, and the lead over it per unit of price.
    """
    n_classes = margins.shape[1]
    for j in range(rows.size):
        i = rows[j]
        best = 1 if label == 0 else 0
        for c in range(best + 1, n_classes):
            if c != label and margins[i, c] > margins[i, best]:
                best = c
        others[j] = best
        points[j] = (margins[i, label] - margins[i, best]) / direction[j]
