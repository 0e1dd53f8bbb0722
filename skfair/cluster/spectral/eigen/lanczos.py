"""Thick-restart block Lanczos on P M P: the default eigen-solver of fair spectral clustering.

M and P are those of ``group_cut.py``. The basis V has orthonormal columns, and ``T = V' P M V`` is
a small matrix. Its eigenvalues, the *Ritz values* theta, approximate those of P M P, and V times
its eigenvectors are the *Ritz vectors*.

V grows by a block of b columns per step, because one pass over a dense matrix costs nearly the same
for sixteen columns as for one. When V is full, its best Ritz vectors are kept and it grows again
(thick restart). In exact arithmetic the product of the last block is orthogonal to all blocks
except the last two, and in the first step after a restart to no block. So a first, short pass of
Gram-Schmidt subtracts the parts along the blocks it is not orthogonal to. A second pass against the
whole basis removes the errors of float32 rounding.

Ritz values are computed at restarts, and in between only if this costs little compared with a
product. An eigenvalue has several copies if the graph is disconnected. A single vector cannot find
them. A block finds as many as it has columns, so its width depends on the number of components.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from skfair._typing import FloatArray
from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS, EigenSolver, Pairs, Step
from skfair.cluster.spectral.eigen.dense import DenseEigh
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.solvers.parameters import Count, Positive

# Ritz values are computed in a step if a product costs at least this many times m^3, for m columns.
_CHECK = 20
# A block is orthonormalised once more if the smallest number on the diagonal of its Cholesky factor
# is below this share of the largest.
_WELL_CONDITIONED = 0.1
# The error of the cost is relative to the cost, which is zero for a graph in separate parts. So the
# cost per cluster counts as at least this much.
_SMALL_COST = 1e-3
# A change of the cost below this many times the machine precision per vector is noise.
_ROUNDING = 10


@EIGEN_SOLVERS.register("lanczos")
@dataclass
class Lanczos(EigenSolver):
    """Thick-restart block Lanczos method for large sparse graphs.

    It computes the leading eigenvectors of P M P, where M holds the normalised weights of the graph
    and P projects onto the group constraint. A step costs one product with ``block_size`` columns,
    and O(n m b) for a basis of m columns.

    Parameters
    ----------
    tol : float, default=3e-3
        Tolerance of the stopping test. The root mean square of the residuals ``|P M h - theta h|``
        must be at most ``tol`` times the largest Ritz value. The relaxed cost must also be within
        ``0.03 tol`` of its estimated limit, because residuals alone say little about a cost near
        zero.
    max_iter : int, default=300
        Maximum number of steps. It is increased if it is too small to compute all vectors.
    block_size : int, default=None
        Number of columns that are multiplied at a time. If None, it depends on the weights.

    See Also
    --------
    DenseEigh : Direct computation for small graphs.
    Arpack : To machine precision.

    Examples
    --------
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.solvers import Lanczos
    >>> FairSpectralClustering(3, solver=Lanczos(tol=1e-4))
    FairSpectralClustering(n_clusters=3, solver=Lanczos(tol=0.0001, ...))
    """

    tol: Positive = 3e-3
    max_iter: Count = 300
    block_size: Count | None = None

    def steps(
        self, problem: GroupCut, n_vectors: int, rng: np.random.RandomState
    ) -> Iterator[Step]:
        b = default_block_size(problem, n_vectors) if self.block_size is None else self.block_size
        # A restart keeps more Ritz vectors than are wanted, because convergence is faster the
        # farther the first eigenvalue that is dropped lies below the wanted ones.
        n_kept = n_vectors + max(8, n_vectors // 4)
        # Between two restarts V grows by about 64 columns, and by at least the three blocks that
        # ``cost_error`` compares.
        n_basis = n_kept + max(3, 64 // b) * b
        # Without room for a basis there are few rows, and a direct solver is fast.
        if problem.n_free < n_basis + 2 * b:
            yield from DenseEigh().steps(problem, n_vectors, rng)
            return
        basis = _Basis(problem, b, n_basis, rng)
        product_cost = 2.0 * b * problem.weights.n_entries
        # V needs this many steps to have ``n_vectors`` columns.
        max_iter = max(self.max_iter, -(-n_vectors // b))
        tol = max(self.tol, 100 * basis.eps)  # rounding keeps residuals above this
        for n_iter in range(1, max_iter + 1):
            basis.grow()
            m = basis.size
            may_look = m >= n_vectors + b and product_cost >= _CHECK * m**3
            pairs, is_whole = partial(basis.pairs, n_vectors), m >= n_vectors
            if basis.is_full or may_look or n_iter == max_iter:
                theta = basis.ritz()[0][:n_vectors]
                residual = basis.residual(n_vectors)
                is_small = residual <= tol * abs(float(theta[0]))
                is_converged = is_small and basis.cost_error(theta) <= 0.03 * tol
                yield Step(pairs, {"trace": float(theta.sum()), "residual": residual}, is_converged)
            else:
                yield Step(pairs, is_whole=is_whole)
            if basis.is_full:
                basis.restart(n_kept)


def default_block_size(problem: GroupCut, n_vectors: int) -> int:
    """Return the number of columns per product, b.

    Blocks are wide for dense matrices, because reading the matrix takes most of the time of a
    product. They are narrow for sparse matrices, but wide enough to find the eigenvalue 1 once per
    component of the graph.
    """
    if problem.weights.n_entries > problem.n_samples * 256:
        return 16
    return max(4 if n_vectors < 16 else 8, min(problem.weights.n_components(), n_vectors) + 2)


class _Basis:
    """Orthonormal columns V that satisfy the constraint, and ``T = V' P M V``.

    The first ``size`` columns have been multiplied with P M. The next b columns are the block that
    ``grow`` will multiply.
    """

    def __init__(
        self, problem: GroupCut, block_size: int, n_columns: int, rng: np.random.RandomState
    ) -> None:
        self._problem, self._b, self._rng = problem, block_size, rng
        n = n_columns + block_size
        self._V = np.empty((problem.n_samples, n), problem.dtype, order="F")
        self.T = np.zeros((n, n))
        self.size = self._n_restarted = 0
        self._ritz: tuple[FloatArray, FloatArray] | None = None
        self.eps = float(np.finfo(problem.dtype).eps)
        first = problem.random(block_size, rng)
        self._V[:, :block_size] = _orthonormal(first, self._V[:, :0], problem, rng)[0]

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another block."""
        return bool(self.size + 2 * self._b > self._V.shape[1])

    def grow(self) -> None:
        """Multiply the last block by P M, and append the part orthogonal to V as the next block."""
        m, b = self.size, self._b
        U = self._problem.apply(self._V[:, m : m + b])
        basis = self._V[:, : m + b]
        coupled = 0 if m == self._n_restarted else m - b
        C = basis[:, coupled:].T @ U
        U -= basis[:, coupled:] @ C
        correction = basis.T @ U
        U -= basis @ correction
        # Rounding leaves a part of U that violates the constraint. It is removed here, because if U
        # is short, making its columns orthonormal would enlarge this part.
        self._problem.project(U)
        T = self.T
        T[: m + b, m : m + b] = correction
        T[coupled : m + b, m : m + b] += C
        T[m : m + b, : m + b] = T[: m + b, m : m + b].T
        self._V[:, m + b : m + 2 * b], self._coupling = _orthonormal(
            U, basis, self._problem, self._rng
        )
        self.size = m + b
        self._ritz = None

    def ritz(self) -> tuple[FloatArray, FloatArray]:
        """Return Ritz values in falling order and their coordinates, kept until the next block."""
        if self._ritz is None:
            m = self.size
            theta, Y = eigh(self.T[:m, :m], driver="evd", check_finite=False)
            self._ritz = theta[::-1], Y[:, ::-1]
        return self._ritz

    def residual(self, n_vectors: int) -> float:
        """Return the root mean square of the residuals ``|P M h - theta h|`` of Ritz vectors h.

        In the last b columns ``P M V = V T + (the next block) R`` holds, and in all others
        ``P M V = V T``. So the residual of ``h = V y`` is the length of R times the last b entries
        of y.
        """
        last = self._coupling @ self.ritz()[1][self.size - self._b :, :n_vectors]
        return float(np.linalg.norm(last) / np.sqrt(n_vectors))

    def pairs(self, n_vectors: int) -> Pairs:
        """Return the first ``n_vectors`` Ritz values and vectors, and as many further vectors.

        The caller may use the latter as spare directions.
        """
        vectors = self._combine(2 * n_vectors)
        values = self.ritz()[0][:n_vectors]
        return Pairs(values, vectors[:, :n_vectors], vectors[:, n_vectors:])

    def cost_error(self, theta: FloatArray) -> float:
        """Estimate by which share the relaxed cost, ``k - sum(theta)``, would still fall.

        The Ritz values one and two steps ago are the eigenvalues of smaller leading parts of T.
        Aitken's rule takes the differences of the sums for a geometric sequence and adds up its
        remaining terms. The result is infinite if the smallest part has fewer than k columns. In
        the first step after a restart that part lies within the kept Ritz values, so the two
        earlier sums are equal, the ratio is 1, and the result is too large to count as converged.
        """
        T, m, b, k = self.T, self.size, self._b, theta.size
        if m - 2 * b < k:
            return np.inf
        last = theta.sum()
        before, earlier = (
            eigh(
                T[:s, :s], eigvals_only=True, subset_by_index=(s - k, s - 1), check_finite=False
            ).sum()
            for s in (m - b, m - 2 * b)
        )
        cost = max(k - last, _SMALL_COST * k)
        change = max(last - before, 0.0)
        if change <= max(1e-6 * cost, _ROUNDING * self.eps * k):
            return 0.0
        ratio = change / max(before - earlier, change)
        return float(change * ratio / max(1 - ratio, 1e-6) / cost)

    def _combine(self, n_vectors: int) -> NDArray[np.floating[Any]]:
        """Return the first ``n_vectors`` Ritz vectors, V times their coordinates."""
        Y = self.ritz()[1][:, :n_vectors].astype(self._V.dtype)
        combined: NDArray[np.floating[Any]] = self._V[:, : self.size] @ Y
        return combined

    def restart(self, n_kept: int) -> None:
        """Replace V by its first Ritz vectors and the block that comes next; T becomes diagonal."""
        m, b = self.size, self._b
        theta = self.ritz()[0][:n_kept]
        self._V[:, :n_kept] = self._combine(n_kept)
        self._V[:, n_kept : n_kept + b] = self._V[:, m : m + b].copy()
        self.T[:] = 0.0
        np.fill_diagonal(self.T[:n_kept, :n_kept], theta)
        self.size = self._n_restarted = n_kept
        self._ritz = None


def _orthonormal(
    U: NDArray[Any], basis: NDArray[Any], problem: GroupCut, rng: np.random.RandomState
) -> tuple[NDArray[Any], FloatArray]:
    """Return orthonormal columns Q and R with ``U = Q R``, for U orthogonal to the basis.

    With the Cholesky factor ``U'U = L L'``, Q is ``U L'^-1``. This is repeated if U is not well
    conditioned. Columns of U depend on each other if the basis contains an invariant space. Random
    directions orthogonal to the basis then replace them.
    """
    R = np.eye(U.shape[1])
    for _ in range(4):
        gram = (U.T @ U).astype(np.float64)
        try:
            L = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            break
        diagonal = np.diagonal(L)
        # The eigenvalues of M are at most 1, so columns of U below the second bound are noise.
        if diagonal.min() <= max(1e-6 * np.sqrt(np.trace(gram)), 1e4 * np.finfo(U.dtype).eps):
            break
        U = U @ np.linalg.inv(L).T.astype(U.dtype)
        R = L.T @ R
        if diagonal.min() >= _WELL_CONDITIONED * diagonal.max():
            return U, R
    return _with_fresh_directions(U, R, basis, problem, rng)


def _with_fresh_directions(
    U: NDArray[Any],
    R: FloatArray,
    basis: NDArray[Any],
    problem: GroupCut,
    rng: np.random.RandomState,
) -> tuple[NDArray[Any], FloatArray]:
    """Return Q and R as ``_orthonormal`` does, with random columns if U lacks full rank."""
    double = U.astype(np.float64)
    left, lengths, right = np.linalg.svd(double, full_matrices=False)
    eps = np.finfo(U.dtype).eps
    is_lost = lengths <= 100 * eps * max(1.0, lengths[0])
    fresh = problem.random(U.shape[1], rng).astype(np.float64)
    fresh = fresh[:, : np.count_nonzero(is_lost)]
    whole = np.concatenate([left[:, ~is_lost], fresh], axis=1)
    n_kept = int(np.count_nonzero(~is_lost))
    for _ in range(3):
        if basis.shape[1]:
            whole -= basis @ (basis.T @ whole)
        whole = problem.project(whole)
        whole = np.linalg.qr(whole)[0]
    inner = whole.T @ (left * lengths) @ right
    inner[n_kept:] = 0.0
    return whole.astype(U.dtype), inner @ R
