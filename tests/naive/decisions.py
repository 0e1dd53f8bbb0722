"""Offsets of decisions, row by row."""

import numpy as np
from scipy.optimize import linprog
from scipy.special import logsumexp, softmax
from sklearn.cluster import KMeans


def soft_table(values, shares, offsets, weights, temperature):
    """Return the sum of soft maxima, and how much of each feature goes to each class."""
    total, table = 0.0, np.zeros(offsets.shape)
    for value, share, weight in zip(values, shares, weights, strict=True):
        margin = (value - share @ offsets) / temperature
        total += weight * temperature * logsumexp(margin)
        table += weight * np.outer(share, softmax(margin))
    return total, table


def passing_points(margins, rows, direction, label):
    """Return the best other class of each row, and its lead over it per unit of offset."""
    others, points = [], []
    for row, step in zip(margins[rows], direction, strict=True):
        rest = [c for c in range(row.size) if c != label]
        best = max(rest, key=lambda c: (row[c], -c))
        others.append(best)
        points.append((row[label] - row[best]) / step)
    return others, points


def best_random_decisions(chances, classes, groups, limit, n_cells=25):
    """Return the accuracy of the best random decisions under equalized odds of each class.

    Rows of a group with similar probabilities are one cell, which is decided for each class with
    some probability: a linear programme.
    """
    n, n_classes = chances.shape
    cells, n_found = np.zeros(n, int), 0
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        cells[rows] = n_found + KMeans(n_cells, random_state=0).fit_predict(chances[rows])
        n_found += n_cells
    counts = np.zeros((n_found, n_classes))
    np.add.at(counts, (cells, classes), 1)
    of_group = np.zeros(n_found, int)
    of_group[cells] = np.searchsorted(np.unique(groups), groups)
    lines = []
    for label in range(n_classes):
        for counted in (np.arange(n_classes) == label, np.arange(n_classes) != label):
            rates = np.zeros((2, n_found, n_classes))
            for group in (0, 1):
                people = counts[:, counted].sum(axis=1) * (of_group == group)
                rates[group, :, label] = people / people.sum()
            lines += [(rates[0] - rates[1]).ravel(), (rates[1] - rates[0]).ravel()]
    whole = np.kron(np.eye(n_found), np.ones(n_classes))
    found = linprog(
        -counts.ravel() / n, np.array(lines), np.full(len(lines), limit), whole, np.ones(n_found)
    )
    return -found.fun
