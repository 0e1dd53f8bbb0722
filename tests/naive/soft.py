"""Slow twins of the soft clustering objectives and of alternating gradient descent.

Plain loops over rows, clusters and groups, straight from the formulas.
"""

import numpy as np


def masses(weights, n):
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    return weights / weights.sum()


def total_variance(X, weights=None):
    m = masses(weights, len(X))
    mean = sum(m[i] * X[i] for i in range(len(X)))
    return sum(m[i] * np.sum((X[i] - mean) ** 2) for i in range(len(X)))


def soft_counts(assignment, codes, n_groups, weights=None):
    """Mass of each group (columns) in each cluster (rows)."""
    n, n_clusters = assignment.shape
    m = masses(weights, n)
    counts = np.zeros((n_clusters, n_groups))
    for i in range(n):
        for k in range(n_clusters):
            counts[k, codes[i]] += m[i] * assignment[i, k]
    return counts


def soft_cost(X, assignment, centers, weights=None):
    m = masses(weights, len(X))
    return sum(
        m[i] * assignment[i, k] * np.sum((X[i] - centers[k]) ** 2)
        for i in range(len(X))
        for k in range(len(centers))
    )


def divergence(counts, target):
    """Sum over the clusters of KL(target || shares of the groups)."""
    total = 0.0
    for row in counts:
        for j in range(target.size):
            if target[j] > 0:
                total += target[j] * np.log(target[j] / (row[j] / row.sum()))
    return total


def penalised(X, codes, n_groups, assignment, centers, fairness_weight, target=None, weights=None):
    """The objective of the variational method."""
    counts = soft_counts(assignment, codes, n_groups, weights)
    target = counts.sum(axis=0) if target is None else np.asarray(target)
    cost = soft_cost(X, assignment, centers, weights) / total_variance(X, weights)
    return cost + fairness_weight * divergence(counts, target)


def lloyd(X, centers, n_iter, weights=None):
    """k-means by the book; a cluster without rows keeps its centre."""
    m = masses(weights, len(X))
    centers = np.array(centers, dtype=float)
    for _ in range(n_iter):
        labels = np.array([np.argmin([np.sum((x - c) ** 2) for c in centers]) for x in X])
        for k in range(len(centers)):
            inside = labels == k
            if m[inside].sum() > 0:
                centers[k] = (m[inside, None] * X[inside]).sum(axis=0) / m[inside].sum()
    return labels, centers


def softmax_assignment(X, codes, centers, offsets, temperature):
    assignment = np.empty((len(X), len(centers)))
    for i, x in enumerate(X):
        for k, center in enumerate(centers):
            offset = np.sum((x - center) ** 2) + offsets[k, codes[i]]
            assignment[i, k] = np.exp(-offset / temperature)
        assignment[i] /= assignment[i].sum()
    return assignment


def soft_balance(counts, sharpness):
    """The soft minimum over clusters and pairs of groups of the logarithm of n_kj / n_kh."""
    exponents = []
    for row in counts:
        for j in range(row.size):
            for h in range(row.size):
                if j != h:
                    exponents.append(-sharpness * (np.log(row[j]) - np.log(row[h])))
    top = max(exponents)  # the power of e may be too large for a float
    return -(top + np.log(sum(np.exp(one - top) for one in exponents))) / sharpness


def alternate(grad_a, grad_b, x0, n_a, n_b, lengths, rng):
    """Algorithm 4, line by line."""
    x = np.array(x0, dtype=float)
    for alpha in lengths:
        for _ in range(n_a):
            x = x - alpha * grad_a(x, rng)
        for _ in range(n_b):
            x = x - alpha * grad_b(x, rng)
    return x


def finite_differences(function, x, h=1e-6):
    gradient = np.empty_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += h
        down[place] -= h
        gradient[place] = (function(up) - function(down)) / (2 * h)
    return gradient
