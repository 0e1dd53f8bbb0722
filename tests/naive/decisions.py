"""Prices of decisions, row by row."""

import numpy as np
from scipy.special import logsumexp, softmax


def soft_table(values, shares, prices, weights, temperature):
    """Return the sum of soft maxima, and how much of each feature goes to each class."""
    total, table = 0.0, np.zeros(prices.shape)
    for value, share, weight in zip(values, shares, weights, strict=True):
        margin = (value - share @ prices) / temperature
        total += weight * temperature * logsumexp(margin)
        table += weight * np.outer(share, softmax(margin))
    return total, table


def passing_points(margins, rows, direction, label):
    """Return the best other class of each row, and its lead over it per unit of price."""
    others, points = [], []
    for row, step in zip(margins[rows], direction, strict=True):
        rest = [c for c in range(row.size) if c != label]
        best = max(rest, key=lambda c: (row[c], -c))
        others.append(best)
        points.append((row[label] - row[best]) / step)
    return others, points
