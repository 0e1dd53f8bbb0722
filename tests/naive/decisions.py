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


def exchanged(counted, rows, label, others, before):
    """Return gains, cells and steps of a class in place of others, and what others change."""
    n_rules = counted.cells.shape[0]
    gains, cells = [], np.zeros((n_rules, len(rows)), int)
    steps, base, worth = np.zeros(cells.shape), np.zeros((n_rules, counted.cells.max() + 1)), 0.0
    for j, i in enumerate(rows):
        value = counted.weights[i] * counted.values[i]
        gains.append(value[label] - value[others[j]])
        worth += value[others[j]] - value[before[j]]
        for k, selecting in enumerate(counted.selecting):
            chosen = counted.classes[i] if selecting < 0 else selecting
            cells[k, j] = counted.cells[k, i]
            size = {c: counted.steps[k, i] if c == chosen else 0.0 for c in range(value.size)}
            steps[k, j] = size[label] - size[others[j]]
            base[k, cells[k, j]] += size[others[j]] - size[before[j]]
    return gains, cells, steps, base, worth
