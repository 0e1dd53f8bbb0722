"""Thick-restart block Lanczos on P M P: the default eigen-solver of fair spectral clustering.

M and P are those of ``group_cut.py``. The basis V has orthonormal columns, and ``T = V' P M V`` is
a small matrix. Its eigenvalues, the *Ritz values* theta, approximate those of P M P, and V times
its eigenvectors are the *Ritz vectors*.

V grows by a block of b columns per step, because one pass over a dense matrix costs nearly the same
for sixteen columns as for one. When V is full, its best Ritz vectors are kept and it grows again
(thick restart). In exact arithmetic the product of the last block is orthogonal to all blocks but
the last two, or right after a restart to none. So a first, short pass of Gram-Schmidt subtracts
these, and a second one against the whole basis removes what float32 rounding leaves.

Ritz values are computed at restarts, and in between only if that costs little beside a product. A
single vector cannot find several copies of an eigenvalue (disconnected graphs). A block finds as
many as it has columns, so it is made wide enough for the components of the graph.
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
# Costs per cluster below this count as this much: graphs in separate parts have a cost of zero.
_SMALL_COST = 1e-3
# Changes of the cost below this many units of rounding per vector are noise.
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
        n_kept = n_vectors + max(8, n_vectors // 4)
        n_basis = n_kept + max(3, 64 // b) * b
        # Without room for a basis there are few rows, and a direct solver is fast.
        if problem.n_free < n_basis + 2 * b:
            yield from DenseEigh().steps(problem, n_vectors, rng)
            return
        basis = _Basis(problem, b, n_basis, rng)
        product_cost = 2.0 * b * problem.weights.n_entries
        # With fewer steps there would not be ``n_vectors`` columns.
        max_iter = max(self.max_iter, -(-n_vectors // b))
        tol = max(self.tol, 100 * basis.eps)  # rounding does not let residuals fall below
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

    Blocks are wide for dense matrices, whose products are bound by memory. They are narrow for
    sparse ones, but wide enough for one copy of the eigenvalue 1 per component of the graph.
    """
    if problem.weights.n_entries > problem.n_samples * 256:
        return 16
    return max(4 if n_vectors < 16 else 8, min(problem.weights.n_components(), n_vectors) + 2)


class _Basis:
    """Orthonormal columns V that satisfy the constraint, and ``T = V' P M V``.

    The first ``size`` columns have been multiplied with P M. After them comes the block that
    ``grow`` multiplies next.
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
        """Multiply the last block and append what is new in the product."""
        m, b = self.size, self._b
        U = self._problem.apply(self._V[:, m : m + b])
        basis = self._V[:, : m + b]
        coupled = 0 if m == self._n_restarted else m - b
        C = basis[:, coupled:].T @ U
        U -= basis[:, coupled:] @ C
        correction = basis.T @ U
        U -= basis @ correction
        # Rounding leaves a part that violates the constraint. If U is short, making its columns
        # orthonormal would enlarge it.
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

        ``P M V = V T + (the next block) R`` in its last columns, so the residual of ``h = V y`` is
        the length of R times the last b entries of y.
        """
        last = self._coupling @ self.ritz()[1][self.size - self._b :, :n_vectors]
        return float(np.linalg.norm(last) / np.sqrt(n_vectors))

    def pairs(self, n_vectors: int) -> Pairs:
        """Return the first Ritz values and vectors, and as many spare vectors."""
        vectors = self._combine(2 * n_vectors)
        values = self.ritz()[0][:n_vectors]
        return Pairs(values, vectors[:, :n_vectors], vectors[:, n_vectors:])

    def cost_error(self, theta: FloatArray) -> float:
        """Estimate how far the relaxed cost, ``k - sum(theta)``, is above its limit, as a share.

        The sums of Ritz values after the last three steps are those of leading parts of T. Aitken's
        rule takes their differences for a geometric sequence and adds up the rest of it. The result
        is infinite if there are not three steps yet.
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
        """Return the first Ritz vectors."""
        Y = self.ritz()[1][:, :n_vectors].astype(self._V.dtype)
        combined: NDArray[np.floating[Any]] = self._V[:, : self.size] @ Y
        return combined

    def restart(self, n_kept: int) -> None:
        """Keep the first Ritz vectors and the block that follows."""
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

    With the Cholesky factor ``U'U = L L'``, Q is ``U L'^-1``. That is repeated if U is not well
    conditioned. If columns of U depend on each other, because the basis holds an invariant space,
    random directions orthogonal to the basis take their place.
    """
    R = np.eye(U.shape[1])
    for _ in range(4):
        gram = (U.T @ U).astype(np.float64)
        try:
            L = np.linalg.cholesky(gram)
        except np.linalg.LinAlgError:
            break
        diagonal = np.diagonal(L)
        # Below the second bound U is noise: the eigenvalues of M are at most 1.
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
    """Return Q and R as ``_orthonormal`` does, with random directions for the lost rank of U."""
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
