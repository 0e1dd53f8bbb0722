"""Exact eigen-solver for small graphs and factored weights (o-FSC of fair_spectral_dc).

W, D, M, F, Q and P are those of ``group_cut.py``. The paper makes an n x (n - h) basis of the null
space of F'. Here the directions Q that violate the constraint get the eigenvalue -2 instead, below
all others: ``P M P - 2 Q Q'`` has the same leading eigenvectors. If the weights are given by a
factor, ``W = Z Z'`` of rank m, it is enough to decompose the m x m matrix ``S' P S`` with
``S = D^-1/2 Z``.

The other solvers call this one if there are too few rows for their own method.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from skfair._typing import FloatArray, Rows
from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS, EigenSolver, Pairs, Step, only_step
from skfair.cluster.spectral.group_cut import RANK_TOL, GroupCut
from skfair.cluster.spectral.weights import FactoredWeights


@EIGEN_SOLVERS.register("dense")
@dataclass
class DenseEigh(EigenSolver):
    """Direct computation of the leading eigenvectors, for small graphs.

    It costs O(n^3), or O(n m^2) if the weights are given as a factor with m columns.

    See Also
    --------
    Lanczos : For large sparse graphs.
    Arpack : To machine precision.

    Examples
    --------
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.solvers import DenseEigh
    >>> FairSpectralClustering(3, solver=DenseEigh())
    FairSpectralClustering(n_clusters=3, solver=DenseEigh())
    """

    def steps(
        self, problem: GroupCut, n_vectors: int, rng: np.random.RandomState
    ) -> Iterator[Step]:
        n_wanted = min(2 * n_vectors, max(problem.n_free, n_vectors))
        factor = problem.weights.factor
        if factor is None:
            values, vectors = _leading(_shifted_matrix(problem), n_wanted)
        else:
            values, vectors = _from_factor(problem, factor, n_vectors, n_wanted)
        yield only_step(Pairs(values, vectors), n_vectors)


def _leading(A: FloatArray, n_vectors: int) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues in falling order, and their vectors."""
    n = A.shape[0]
    values, vectors = eigh(A, subset_by_index=(n - n_vectors, n - 1))
    if values.size < n_vectors:  # LAPACK finds too few if A is close to a multiple of identity
        values, vectors = eigh(A, driver="evd")
    return values[::-1][:n_vectors], vectors[:, ::-1][:, :n_vectors]


def _shifted_matrix(problem: GroupCut) -> FloatArray:
    """Return ``P M P - 2 Q Q'``, and -2 for rows without edges, as a dense matrix."""
    M = problem.weights.dense() * problem.scale * problem.scale[:, None]
    Q = problem.basis.astype(np.float64)
    QM = Q.T @ M
    M -= Q @ QM
    M -= (QM - (QM @ Q) @ Q.T).T @ Q.T
    M -= 2 * Q @ Q.T
    M[np.diag_indices_from(M)] -= 2.0 * (problem.scale == 0)
    problem.n_products += Q.shape[1]
    return (M + M.T) / 2


def _from_factor(
    problem: GroupCut, factor: FactoredWeights, n_vectors: int, n_wanted: int
) -> tuple[FloatArray, NDArray[Any]]:
    """Return the pairs from ``S' P S = U diag(values) U'``; the vectors are ``P S U values^-1/2``.

    At least ``n_vectors`` pairs are needed. ``n_wanted`` includes spare ones, for which the rank
    may be too small.
    """
    gram = np.zeros((factor.rank, factor.rank))
    inner = np.zeros((factor.rank, problem.basis.shape[1]))
    for rows, z in factor.blocks():
        scaled = _scaled(z, problem.scale[rows].astype(factor.dtype))
        part = scaled.T @ scaled
        gram += part if isinstance(part, np.ndarray) else part.toarray()
        inner += scaled.T @ problem.basis[rows]
    gram -= inner @ inner.T
    values, U = _leading((gram + gram.T) / 2, min(n_wanted, factor.rank))
    # Directions with smaller eigenvalues are rounding errors.
    usable = values > RANK_TOL * max(values[0], 0.0)
    values, U = values[usable], U[:, usable]
    if values.size < n_vectors:
        raise ValueError(
            f"The factored affinity has {values.size} usable directions, fewer than the "
            f"{n_vectors} that are needed. Use more landmarks, a larger gamma, or fewer clusters."
        )
    H = factor.spread(U / np.sqrt(values))
    H *= problem.scale[:, None].astype(H.dtype)
    return values, problem.project(H)


def _scaled(z: Rows, scale: NDArray[Any]) -> Rows:
    """Multiply each row of a dense or sparse block."""
    if isinstance(z, np.ndarray):
        return np.asarray(z * scale[:, None])
    return sparse.csr_array(sparse.diags_array(scale) @ z)
