"""Thick-restart block Lanczos on P M P: the default eigen-solver of fair spectral clustering.

A block of columns is multiplied at a time, because one pass over a dense matrix costs nearly the
same for one column as for sixteen. The basis V grows by one block per step; when it is full, its
best Ritz vectors are kept and it grows again (thick restart). In exact arithmetic the new block is
coupled to the last two blocks only, and right after a restart to everything; a first, short pass of
Gram-Schmidt removes that, a second one against the whole basis keeps float32 honest.

Ritz values are computed at restarts, and in between only while that costs little beside a product.
A single vector cannot see repeated eigenvalues (disconnected graphs), a block sees as many copies
as it has columns; so it is made wide enough for the components of the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from skfair._typing import FloatArray
from skfair.problems.cut.group_cut import GroupCut
from skfair.solvers.base import Status
from skfair.solvers.eigen.base import EIGEN_SOLVERS, Callback, EigenResult
from skfair.solvers.eigen.dense import solve_dense
from skfair.utils.history import History

# Steps, if nothing else is asked for.
_MAX_ITER = 300
# Ritz values are looked at when a product costs this many times their m^3.
_CHECK = 20
# A diagonal of the Cholesky factor that falls below this share is orthonormalised twice.
_WELL_CONDITIONED = 0.1
# A cost per cluster below this is zero: that of a graph in separate parts.
_SMALL_COST = 1e-3
# Changes of the cost below this many units of rounding per vector say nothing.
_ROUNDING = 10


@EIGEN_SOLVERS.register("lanczos")
def solve_lanczos(
    problem: GroupCut,
    n_vectors: int,
    *,
    tol: float = 3e-3,
    max_iter: int | None = None,
    block_size: int | None = None,
    rng: np.random.RandomState,
    callback: Callback | None = None,
) -> EigenResult:
    """Find the leading eigenvectors of P M P.

    Ends when the residuals ``|P M h - theta h|`` are at most ``tol`` times the largest Ritz value
    (root mean square over the vectors), and the relaxed cost is within ``0.03 tol`` of its limit
    as far as its last steps tell; residuals alone say little about a cost near zero. A step costs
    one product with ``block_size`` columns and O(n m b) for a basis of m columns. ``max_iter``
    (default 300) bounds the steps.
    """
    b = default_block_size(problem, n_vectors) if block_size is None else block_size
    n_kept = n_vectors + max(8, n_vectors // 4)
    n_basis = n_kept + max(3, 64 // b) * b
    if problem.n_free < n_basis + 2 * b:  # no room for a basis: small enough to be solved directly
        return solve_dense(problem, n_vectors, rng=rng)
    eps = float(np.finfo(problem.dtype).eps)
    tol = max(tol, 100 * eps)  # what rounding leaves of a residual
    # Fewer steps would not even hold all vectors.
    max_iter = max(_MAX_ITER if max_iter is None else max_iter, -(-n_vectors // b))
    history = History()
    basis = _Basis(problem, b, n_basis, rng)
    product_cost = 2.0 * b * problem.affinity.n_entries
    status: Status = "max_iter"
    for n_iter in range(1, max_iter + 1):
        basis.grow()
        m = basis.size
        is_stopped = callback is not None and m >= n_vectors and callback(None)
        is_last = is_stopped or n_iter == max_iter
        may_look = m >= n_vectors + b and product_cost >= _CHECK * m**3
        if not (basis.is_full or may_look or is_last):
            history.record()
            continue
        theta, Y = basis.ritz()
        residual = basis.residual(Y[:, :n_vectors])
        history.record(trace=float(theta[:n_vectors].sum()), residual=residual)
        is_small = residual <= tol * abs(theta[0])
        if is_small and _cost_error(basis.T, m, b, theta[:n_vectors], eps) <= 0.03 * tol:
            status = "converged"
        elif is_stopped:
            status = "stopped"
        if is_last or status == "converged":
            break
        if basis.is_full:
            basis.restart(theta[:n_kept], Y[:, :n_kept])
    vectors = basis.combine(Y[:, : 2 * n_vectors])
    return EigenResult(
        vectors[:, :n_vectors],
        theta[:n_vectors],
        n_iter,
        status,
        history.as_dict(),
        vectors[:, n_vectors:],
    )


def default_block_size(problem: GroupCut, n_vectors: int) -> int:
    """Return the number of columns per product.

    Wide for dense matrices, whose products are bound by memory; narrow for sparse ones, but wide
    enough for one copy of the eigenvalue 1 per component.
    """
    if problem.affinity.n_entries > problem.n_samples * 256:
        if problem.affinity.is_fast_when_narrow:
            return 12
        return 16 if n_vectors <= 32 else 32
    return max(4 if n_vectors < 16 else 8, min(problem.affinity.n_components(), n_vectors) + 2)


class _Basis:
    """Orthonormal columns V that satisfy the constraint, and ``T = V' P M V``.

    ``size`` columns have been multiplied; one more block, the next to be, follows them.
    """

    def __init__(
        self, problem: GroupCut, block_size: int, n_columns: int, rng: np.random.RandomState
    ) -> None:
        self._problem, self._b, self._rng = problem, block_size, rng
        n = n_columns + block_size
        self._V = np.empty((problem.n_samples, n), problem.dtype, order="F")
        self.T = np.zeros((n, n))
        self.size = self._n_restarted = 0
        first = problem.random(block_size, rng)
        self._V[:, :block_size] = _orthonormal(first, self._V[:, :0], problem, rng)[0]

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another block."""
        return self.size + 2 * self._b > self._V.shape[1]

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
        self._problem.project(U)  # small couplings would blow up what rounding left outside
        T = self.T
        T[: m + b, m : m + b] = correction
        T[coupled : m + b, m : m + b] += C
        T[m : m + b, : m + b] = T[: m + b, m : m + b].T
        self._V[:, m + b : m + 2 * b], self._coupling = _orthonormal(
            U, basis, self._problem, self._rng
        )
        self.size = m + b

    def ritz(self) -> tuple[FloatArray, FloatArray]:
        """Return Ritz values in falling order and their coordinates."""
        m = self.size
        theta, Y = eigh(self.T[:m, :m], driver="evd", check_finite=False)
        return theta[::-1], Y[:, ::-1]

    def residual(self, Y: FloatArray) -> float:
        """Return the root mean square residual of Ritz vectors."""
        last = self._coupling @ Y[self.size - self._b :]
        return float(np.linalg.norm(last) / np.sqrt(Y.shape[1]))

    def combine(self, Y: FloatArray) -> NDArray[Any]:
        """Return the vectors with coordinates Y."""
        combined: NDArray[Any] = self._V[:, : self.size] @ Y.astype(self._V.dtype)
        return combined

    def restart(self, theta: FloatArray, Y: FloatArray) -> None:
        """Keep Ritz vectors and the block that follows."""
        kept, m, b = theta.size, self.size, self._b
        self._V[:, :kept] = self.combine(Y)
        self._V[:, kept : kept + b] = self._V[:, m : m + b].copy()
        self.T[:] = 0.0
        np.fill_diagonal(self.T[:kept, :kept], theta)
        self.size = self._n_restarted = kept


def _cost_error(T: FloatArray, m: int, b: int, theta: FloatArray, eps: float) -> float:
    """Estimate how far the relaxed cost is above its limit, relative to itself.

    The traces after the last three steps are those of leading parts of T; Aitken's rule continues
    the geometric sequence of their differences.
    """
    k = theta.size
    if m - 2 * b < k:
        return np.inf
    last = theta.sum()
    before, earlier = (
        eigh(T[:s, :s], eigvals_only=True, subset_by_index=(s - k, s - 1), check_finite=False).sum()
        for s in (m - b, m - 2 * b)
    )
    cost = max(k - last, _SMALL_COST * k)
    change = max(last - before, 0.0)
    if change <= max(1e-6 * cost, _ROUNDING * eps * k):
        return 0.0
    ratio = change / max(before - earlier, change)
    return float(change * ratio / max(1 - ratio, 1e-6) / cost)


def _orthonormal(
    U: NDArray[Any], basis: NDArray[Any], problem: GroupCut, rng: np.random.RandomState
) -> tuple[NDArray[Any], FloatArray]:
    """Return orthonormal columns Q, orthogonal to the basis, and R with ``U = Q R``.

    Cholesky of the Gram matrix, twice if it is not well conditioned. Where columns of U depend on
    each other (an invariant space was found), fresh random directions take their place.
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
    """Replace what U lacks in rank by random directions."""
    double = U.astype(np.float64)
    left, lengths, right = np.linalg.svd(double, full_matrices=False)
    eps = np.finfo(U.dtype).eps
    lacks = lengths <= 100 * eps * max(1.0, lengths[0])
    fresh = problem.random(U.shape[1], rng).astype(np.float64)
    fresh = fresh[:, : np.count_nonzero(lacks)]
    whole = np.concatenate([left[:, ~lacks], fresh], axis=1)
    n_found = int(np.count_nonzero(~lacks))
    for _ in range(3):
        if basis.shape[1]:
            whole -= basis @ (basis.T @ whole)
        whole = problem.project(whole)
        whole = np.linalg.qr(whole)[0]
    inner = whole.T @ (left * lengths) @ right
    inner[n_found:] = 0.0
    return whole.astype(U.dtype), inner @ R
