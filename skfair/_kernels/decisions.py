"""Decisions at prices: soft ones for the dual, and where a line search passes each row."""

import math

import numpy as np

from skfair._kernels.declaring import njit

# exp(-_CERTAIN) is nothing beside 1.
_CERTAIN = 38.0


@njit(cache=True)
def _soften(leads, weight, temperature):
    """Return weight times the soft maximum of 0 and leads, which become weights of decisions.

    The soft maximum is T log sum exp(lead / T) for the temperature T.
    """
    largest = 0.0
    for c in range(leads.size):
        largest = max(largest, leads[c])
    # Most rows are far from a tie: what is beyond rounding needs no exponential.
    least = largest - _CERTAIN * temperature
    mass = 0.0
    if largest == 0.0:
        mass = 1.0
    elif least < 0.0:
        mass = math.exp(-largest / temperature)
    for c in range(leads.size):
        if leads[c] == largest:
            leads[c] = 1.0
        else:
            leads[c] = math.exp((leads[c] - largest) / temperature) if leads[c] > least else 0.0
        mass += leads[c]
    if mass == 1.0:
        for c in range(leads.size):
            leads[c] *= weight
        return weight * largest
    for c in range(leads.size):
        leads[c] *= weight / mass
    return weight * (largest + temperature * math.log(mass))


@njit(cache=True)
def soft_table_dense(values, shares, prices, weights, temperature, table):
    """Return the sum of the soft maxima of 0 and of values minus priced shares.

    Values (n, n_classes - 1) and prices (n_classes - 1, n_features) are relative to class 0. Writes
    to ``table`` how much of each feature goes to each other class.
    """
    n_others, n_features = prices.shape
    table[:] = 0.0
    leads = np.empty(n_others)
    total = 0.0
    for i in range(values.shape[0]):
        for c in range(n_others):
            cost = 0.0
            for f in range(n_features):
                cost += shares[i, f] * prices[c, f]
            leads[c] = values[i, c] - cost
        total += _soften(leads, weights[i], temperature)
        for c in range(n_others):
            if leads[c] != 0.0:
                for f in range(n_features):
                    table[c, f] += shares[i, f] * leads[c]
    return total


@njit(cache=True)
def soft_table_sparse(values, indptr, indices, shares, prices, weights, temperature, table):
    """Return the same for shares that are sparse by rows; writes to ``table``."""
    n_others = prices.shape[0]
    table[:] = 0.0
    leads = np.empty(n_others)
    total = 0.0
    for i in range(values.shape[0]):
        for c in range(n_others):
            leads[c] = values[i, c]
            for a in range(indptr[i], indptr[i + 1]):
                leads[c] -= shares[a] * prices[c, indices[a]]
        total += _soften(leads, weights[i], temperature)
        for c in range(n_others):
            if leads[c] != 0.0:
                for a in range(indptr[i], indptr[i + 1]):
                    table[c, indices[a]] += shares[a] * leads[c]
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
