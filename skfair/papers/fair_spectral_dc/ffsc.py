"""FFSC, "fast fair spectral clustering" without eigenvectors: a reconstruction.

Feng, Zhong and Pan (Symmetry 17, 2024) move rows between clusters, one at a time, and add a
fairness term to the objective in place of a constraint. The paper of this folder compares with
their method but does not print their objective. The objective here agrees with its description.
Over labels, with the indicator ``y_k`` of cluster k,

    minimise  sum over k of  (y_k' L y_k + weight |F' y_k|^2) / y_k' D y_k,

where ``L = D - W`` and F marks the members of each group minus the group's share. Rows with
edges start from random labels of equal numbers, and are visited in a random order until none moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS, EigenSolver, Pairs, Step
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.cluster.spectral.weights import DenseWeights
from skfair.solvers.parameters import Count, Positive


@EIGEN_SOLVERS.register("ffsc")
@dataclass
class FFSC(EigenSolver):
    """Coordinate descent on labels, a reconstruction of FFSC (table 4 of fair_spectral_dc).

    It computes labels and no eigenvectors. The embedding is made of the labels, as ``D^1/2 Y`` with
    columns of length 1. A pass costs O(nnz(W) + n n_clusters n_groups).

    Parameters
    ----------
    fairness_weight : float, default=1.0
        Weight of the fairness term, which asks for the shares of the data in each cluster, against
        the cut. Labels are a local optimum, so a larger weight need not bring the shares closer,
        and those above about 10 often do worse.
    max_iter : int, default=100
        Maximum number of passes over the rows.

    See Also
    --------
    UFSC : Alternating updates of graph, embedding and labels.
    DCADMM : ADMM for a difference of convex functions.

    Examples
    --------
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.papers import FFSC
    >>> FairSpectralClustering(3, solver=FFSC(fairness_weight=2.0)).solver.fairness_weight
    2.0
    """

    fairness_weight: Positive = 1.0
    max_iter: Count = 100

    def steps(
        self, problem: GroupCut, n_vectors: int, rng: np.random.RandomState
    ) -> Iterator[Step]:
        from skfair.papers._kernels.fair_labels import descend_fair_cut

        weights = problem.weights
        entries = weights.entries() or DenseWeights(weights.dense()).entries()
        connected = np.flatnonzero(problem.scale > 0)
        labels = np.zeros(problem.n_samples, np.int64)
        labels[rng.permutation(connected)] = np.arange(connected.size) % n_vectors
        centred = problem.centred_groups()
        for _ in range(self.max_iter):
            order = rng.permutation(connected)
            n_moved, objective = descend_fair_cut(
                entries, weights.degrees, centred, self.fairness_weight, order, labels, n_vectors
            )
            H = _indicators(problem, labels, n_vectors)
            pairs = partial(_pairs, problem, H, labels)
            columns = {"objective": objective, "moved": float(n_moved)}
            columns["trace"] = float(np.sum(H * problem.multiply(H)))
            yield Step(pairs, columns, n_moved == 0, H)


def _indicators(problem: GroupCut, labels: IntArray, n_clusters: int) -> FloatArray:
    """Return ``D^1/2`` times the membership of rows in clusters, with columns of length 1.

    Rows without edges are 0.
    """
    rows = np.flatnonzero(problem.scale > 0)
    H = np.zeros((problem.n_samples, n_clusters))
    H[rows, labels[rows]] = 1 / problem.scale[rows]
    H /= np.linalg.norm(H, axis=0)
    return H


def _pairs(problem: GroupCut, H: FloatArray, labels: IntArray) -> Pairs:
    """Return labels as an embedding: a value and a column of H for each cluster.

    The value is the share of the cluster's weights that lie inside it. The largest comes first.
    """
    inside: FloatArray = (H * problem.multiply(H)).sum(axis=0)
    order = np.argsort(-inside, kind="stable")
    return Pairs(inside[order], H[:, order], labels=np.argsort(order)[labels])
