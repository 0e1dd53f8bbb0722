"""A soft k-means cost and a soft balance of soft assignments, with their gradients.

The formulas are those of ``smooth.py``: f_1, the cost, and f_2, the logarithm of the balance, as
functions of the centres and of the offsets that the groups pay for the clusters.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from skfair._typing import FloatArray, IntArray
from skfair.problems.clustering.points import squared_distances


def soft_cost(
    rows: FloatArray,
    codes: IntArray,
    masses: FloatArray,
    centers: FloatArray,
    offsets: FloatArray,
    temperature: float,
) -> tuple[float, FloatArray, FloatArray]:
    """Return f_1 and its gradients by the centres and by the offsets."""
    distances, logs = _soft_assign(rows, codes, centers, offsets, temperature)
    assigned = masses[:, None] * np.exp(logs)
    means = np.einsum("ik,ik->i", np.exp(logs), distances)
    by_logits = assigned * (distances - means[:, None])
    by_distances = assigned - by_logits / temperature
    return (
        float(masses @ means),
        _pull_back(by_distances, rows, centers),
        _by_group(-by_logits / temperature, codes, offsets),
    )


def soft_balance(
    rows: FloatArray,
    codes: IntArray,
    masses: FloatArray,
    centers: FloatArray,
    offsets: FloatArray,
    temperature: float,
    sharpness: float,
) -> tuple[float, FloatArray, FloatArray]:
    """Return f_2 and its gradients by the centres and by the offsets; every group needs a row.

    With a single group there are no pairs: the value is 0.
    """
    n_groups = offsets.shape[1]
    if n_groups < 2:
        return 0.0, np.zeros_like(centers), np.zeros_like(offsets)
    _, logs = _soft_assign(rows, codes, centers, offsets, temperature)
    parts = logs + np.log(masses)[:, None]  # logarithms of what each row adds to its count
    log_counts = np.array([logsumexp(parts[codes == j], axis=0) for j in range(n_groups)])
    exponents = -sharpness * (log_counts[:, None] - log_counts[None])  # j, h, k
    exponents[np.arange(n_groups), np.arange(n_groups)] = -np.inf
    total = float(logsumexp(exponents))
    worst = np.exp(exponents - total)  # weight of each pair in the soft minimum
    by_log_counts = worst.sum(axis=1) - worst.sum(axis=0)
    # d log n_kj / d log s_ik is the share of row i in the count.
    by_logs = np.exp(parts - log_counts[codes]) * by_log_counts[codes]
    by_logits = by_logs - np.exp(logs) * by_logs.sum(axis=1, keepdims=True)
    return (
        -total / sharpness,
        _pull_back(-by_logits / temperature, rows, centers),
        _by_group(-by_logits / temperature, codes, offsets),
    )


def _soft_assign(
    rows: FloatArray,
    codes: IntArray,
    centers: FloatArray,
    offsets: FloatArray,
    temperature: float,
) -> tuple[FloatArray, FloatArray]:
    """Return squared distances and the logarithms of the soft assignments."""
    distances = squared_distances(rows, centers)
    logs = -(distances + offsets.T[codes]) / temperature
    logs -= logs.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return distances, logs


def _pull_back(by_distances: FloatArray, rows: FloatArray, centers: FloatArray) -> FloatArray:
    """Turn derivatives by the squared distances into those by the centres."""
    return np.asarray(2 * (by_distances.sum(axis=0)[:, None] * centers - by_distances.T @ rows))


def _by_group(by_prices: FloatArray, codes: IntArray, offsets: FloatArray) -> FloatArray:
    """Add up the derivatives by the offset that each row pays, shape (n_clusters, n_groups)."""
    return np.stack([by_prices[codes == j].sum(axis=0) for j in range(offsets.shape[1])], axis=1)
