"""A soft k-means cost and a soft balance of soft assignments, with their gradients.

``smooth.py`` calls these functions and explains the formulas: f_1, the cost, and f_2, the logarithm
of the balance, as functions of the centres and of the offsets. An offset is added to the squared
distances of a group from a centre.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from skfair._typing import FloatArray, IntArray
from skfair.cluster.assignment.points import squared_distances


class SoftRows(NamedTuple):
    """Rows with the centres, offsets and temperature that determine their soft assignments."""

    rows: FloatArray  # (n, n_features)
    codes: IntArray  # (n,): group of each row
    masses: FloatArray  # (n,): share of each row in the total weight
    centers: FloatArray  # (n_clusters, n_features)
    offsets: FloatArray  # (n_clusters, n_groups)
    temperature: float

    def assigned(self) -> tuple[FloatArray, FloatArray]:
        """Return squared distances and the logarithms of the soft assignments."""
        distances = squared_distances(self.rows, self.centers)
        logs = -(distances + self.offsets.T[self.codes]) / self.temperature
        logs -= logs.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        return distances, logs

    def gradients(
        self, by_distances: FloatArray, by_prices: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradients by centres and offsets, from the derivatives by row and cluster.

        ``by_distances`` are derivatives by the squared distances, ``by_prices`` by the offsets that
        are added to them.
        """
        by_centers = by_distances.sum(axis=0)[:, None] * self.centers - by_distances.T @ self.rows
        groups = range(self.offsets.shape[1])
        paid = [by_prices[self.codes == j].sum(axis=0) for j in groups]
        return 2 * by_centers, np.stack(paid, axis=1)


def soft_cost(soft: SoftRows) -> tuple[float, FloatArray, FloatArray]:
    """Return f_1 and its gradients by the centres and by the offsets."""
    distances, logs = soft.assigned()
    assigned = soft.masses[:, None] * np.exp(logs)
    means = np.einsum("ik,ik->i", np.exp(logs), distances)
    by_logits = assigned * (distances - means[:, None])
    by_prices = -by_logits / soft.temperature
    return float(soft.masses @ means), *soft.gradients(assigned + by_prices, by_prices)


def soft_balance(soft: SoftRows, sharpness: float) -> tuple[float, FloatArray, FloatArray]:
    """Return f_2 and its gradients by the centres and by the offsets.

    Every group needs a row. With a single group there are no pairs, and the value is 0.
    """
    codes, n_groups = soft.codes, soft.offsets.shape[1]
    if n_groups < 2:
        return 0.0, np.zeros_like(soft.centers), np.zeros_like(soft.offsets)
    _, logs = soft.assigned()
    parts = logs + np.log(soft.masses)[:, None]  # log of each row's part of its group's counts
    log_counts = np.array([logsumexp(parts[codes == j], axis=0) for j in range(n_groups)])
    exponents = -sharpness * (log_counts[:, None] - log_counts[None])  # j, h, k
    exponents[np.arange(n_groups), np.arange(n_groups)] = -np.inf
    total = float(logsumexp(exponents))
    worst = np.exp(exponents - total)  # weight of each pair in the soft minimum
    by_log_counts = worst.sum(axis=1) - worst.sum(axis=0)
    # d log n_kj / d log s_ik is the share of row i in the count.
    by_logs = np.exp(parts - log_counts[codes]) * by_log_counts[codes]
    by_logits = by_logs - np.exp(logs) * by_logs.sum(axis=1, keepdims=True)
    by_prices = -by_logits / soft.temperature
    return -total / sharpness, *soft.gradients(by_prices, by_prices)
