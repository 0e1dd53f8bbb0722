"""The soft assignments of the variational method, and the bound updates that lower its objective.

``Variational.run`` makes a :class:`SoftAssignment` and calls ``measure`` and ``start`` for the
first centres. In each iteration it calls ``update`` for the assignments s_ik, then ``means`` and
``measure`` for the centres. At the end ``slopes`` are the multipliers of the fit. The symbols m,
n_kj, u_j and L_j
and the derivation of the bound are in ``variational.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import rel_entr
from sklearn.utils import gen_batches

from skfair._typing import FloatArray, IntArray
from skfair.cluster.assignment.points import RepresentationProblem, squared_distances
from skfair.utils.pieces import NUMBERS
from skfair.utils.rounding import LAST_DIGITS, TINY

# Logarithm of the smallest assignment. A cluster that was left by all rows can grow again from it
# in at most 100 updates.
_FLOOR = -100.0
# Counts below this are raised to it, because they are divisors, and a group may have no rows.
_SMALLEST = 1e-150
# After an update whose bound held, the factors of the constants L_j are multiplied by this. Without
# it Adult (K=10, weight 0.5) needs 1050 updates instead of 230, and ends in a worse minimum.
_RELAX = 0.8
# A cluster of less mass counts as empty, and its centre stays.
_EMPTY = 1e-30
# With larger weights the cost would not matter any more, and numbers would overflow.
_LARGEST_WEIGHT = 1e50


class SoftAssignment:
    """The soft assignments with everything that depends on them: counts, bound, means, values.

    ``counts`` and ``slopes`` have one row per group, as rows of X look them up by their group.
    """

    def __init__(
        self, problem: RepresentationProblem, *, weight: float, target_shares: Any, lipschitz: float
    ) -> None:
        n, n_clusters, n_groups = problem.n_samples, problem.n_clusters, problem.n_groups
        self.problem, self.codes, self.masses = problem, problem.codes, problem.masses
        shares = np.bincount(self.codes, weights=self.masses, minlength=n_groups)
        target = _target(target_shares, shares.astype(np.float64))
        is_one_group = np.count_nonzero(shares) == 1  # then the divergence is always 0
        self.weight = 0.0 if is_one_group else min(float(weight), _LARGEST_WEIGHT)
        self.target = target[:, None]
        self.logs = np.zeros((n, n_clusters))  # logarithms of the assignments
        self.next_logs = np.empty((n, n_clusters))
        self.distances = np.empty((n, n_clusters))
        self.factors = np.full(target.size, float(lipschitz))  # each multiplies its constant L_j
        self.chunks = [
            (rows, _members(self.codes[rows], self.masses[rows], target.size))
            for rows in gen_batches(n, max(1, NUMBERS // n_clusters))
        ]

        # Weight of the assigned rows of each group (row) and cluster, n_kj: now, and after the
        # update that is tried.
        self.counts = self.next_counts = np.zeros((n_groups, n_clusters))
        # How far the update moves the rows of each group: the sum of m_i KL(s'_i | s_i).
        self.divergences = np.zeros(n_groups)
        self.cost = self.next_cost = 0.0  # the k-means cost of the assignments

    def measure(self, centers: FloatArray) -> None:
        """Compute the distances to the centres, and the cost of the current assignments."""
        self.cost = 0.0
        for rows, _ in self.chunks:
            self.distances[rows] = squared_distances(self.problem.in_full_precision(rows), centers)
            self.cost += self._chunk_cost(rows, np.exp(self.logs[rows]))

    def start(self) -> None:
        """Spread each row over the centres as a Gibbs distribution of its distances."""
        unit = float(self.masses @ self.distances.min(axis=1)) if self.weight else 0.0
        self._step(np.zeros((self.target.size, 1)), unit)
        self._accept()

    def update(self, n_updates: int, tol: float) -> int:
        """Update the assignments until the relative gain is at most ``tol``.

        It returns the number of updates. An update minimises the bound with the current factors of
        L_j. For groups where the bound does not hold at its minimum, ``is_low``, the factor is
        doubled, and the bound is minimised again. With weight 0 one update is exact.
        """
        if not self.weight:
            self._step(np.zeros((self.target.size, 1)), 0.0)
            self._accept()
            return 1
        n_done = 0
        gain = np.inf
        while n_done < n_updates and gain > tol * abs(self.objective()):
            n_done += 1
            slopes, constants = self.slopes(), self._pull().max(axis=1)
            while True:
                self._step(slopes, self.weight * self.factors * constants)
                # The bound holds for group j if the sum over the clusters of u_j (t - 1 - log t)
                # is at most L_j times its divergence, where t = n'_kj / n_kj.
                ratios = self.next_counts / self.counts
                growth = (self.target * (ratios - 1 - np.log(ratios))).sum(axis=1)
                is_low = growth > self.factors * constants * self.divergences + LAST_DIGITS
                if not is_low.any():
                    break
                self.factors[is_low] *= 2
            before = self.objective()
            self._accept()
            self.factors *= _RELAX
            gain = before - self.objective()
        return n_done

    def slopes(self) -> FloatArray:
        """Return the derivative of the penalty by the count of each group in each cluster."""
        return np.asarray(self.weight * (1 / self.counts.sum(axis=0) - self._pull()))

    def objective(self) -> float:
        """Return the value that is minimised."""
        return self.cost + self.weight * self.fairness_error()

    def fairness_error(self) -> float:
        """Return the sum of the divergences of the clusters' shares from the target."""
        shares = self.counts / self.counts.sum(axis=0)
        return max(0.0, float(rel_entr(self.target, shares).sum()))

    def means(self, centers: FloatArray) -> FloatArray:
        """Return the weighted means of the rows; a cluster without rows keeps its centre."""
        sums = np.zeros_like(centers)
        for rows, _ in self.chunks:
            sums += (
                np.exp(self.logs[rows]) * self.masses[rows, None]
            ).T @ self.problem.in_full_precision(rows)
        sizes = self.counts.sum(axis=0)[:, None]
        return np.where(sizes > _EMPTY, sums / sizes, centers)

    def _pull(self) -> FloatArray:
        """Return u_j / n_kj, the slope of the convex part of the penalty."""
        return np.asarray(self.target / self.counts)

    def _step(self, slopes: FloatArray, softness: Any) -> None:
        """Write the minimiser of the bound, with its counts, its cost and its divergences.

        The divergences are from the current assignments. If the softness is 0, the bound is linear,
        and a row goes to its cheapest clusters.
        """
        n_groups, n_clusters = self.target.size, self.logs.shape[1]
        self.next_counts = np.zeros((n_groups, n_clusters))
        self.divergences = np.zeros(n_groups)
        self.next_cost = 0.0
        # Updates divide by the softness. At TINY, as at 0, rows go only to the cheapest clusters.
        softness = np.maximum(np.broadcast_to(softness, n_groups), TINY)[:, None]
        for rows, members in self.chunks:
            codes = self.codes[rows]
            z = self.distances[rows] + slopes[codes]
            z -= z.min(axis=1, keepdims=True)
            with np.errstate(over="ignore"):
                z /= softness[codes]
            np.subtract(self.logs[rows], z, out=z)
            z -= z.max(axis=1, keepdims=True)
            np.maximum(z, _FLOOR, out=z)
            assigned = np.exp(z)
            sums = assigned.sum(axis=1, keepdims=True)
            assigned /= sums
            z -= np.log(sums)
            self.next_logs[rows] = z
            z -= self.logs[rows]
            self.next_counts += members @ assigned
            self.divergences += members @ np.einsum("ik,ik->i", assigned, z)
            self.next_cost += self._chunk_cost(rows, assigned)
        np.maximum(self.next_counts, _SMALLEST, out=self.next_counts)
        # Rounding makes divergences of tiny steps negative; no constant, however large, would then
        # satisfy the bound.
        np.maximum(self.divergences, 0.0, out=self.divergences)

    def _accept(self) -> None:
        self.logs, self.next_logs = self.next_logs, self.logs
        self.counts, self.cost = self.next_counts, self.next_cost

    def _chunk_cost(self, rows: slice, assigned: FloatArray) -> float:
        return float(self.masses[rows] @ np.einsum("ik,ik->i", assigned, self.distances[rows]))


def _target(target_shares: Any, shares: FloatArray) -> FloatArray:
    """Return the target shares; raise if they are not valid or ask for a group without rows."""
    if target_shares is None:
        return shares
    target = np.asarray(target_shares, dtype=np.float64)
    if target.shape != shares.shape or not (target >= 0).all() or not target.sum() > 0:
        raise ValueError(
            f"target_shares must be {shares.size} numbers, at least 0 and not all 0, one per "
            f"group; got {target_shares!r}."
        )
    absent = np.flatnonzero((target > 0) & (shares == 0))
    if absent.size:
        raise ValueError(
            f"target_shares asks for a share of group {absent[0]}, which has no rows. Set it to 0."
        )
    return np.asarray(target / target.sum())


def _members(codes: IntArray, masses: FloatArray, n_groups: int) -> Any:
    """Return the matrix (groups x rows) that sums rows by group."""
    return sparse.csc_array((masses, codes, np.arange(codes.size + 1)), (n_groups, codes.size))
