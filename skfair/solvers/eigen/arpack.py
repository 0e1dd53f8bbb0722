"""ARPACK on the projected operator P M P (s-FSC of fair_spectral_dc), to machine precision.

The Krylov space of one vector holds one copy of a repeated eigenvalue. ARPACK meets the others
through rounding errors only: hardly ever with a loose tolerance, and without any it still misses
some on one disconnected graph in five. So there the search goes on, orthogonal to what was found.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from skfair._typing import FloatArray
from skfair.exceptions import SolverError
from skfair.problems.cut.group_cut import GroupCut
from skfair.solvers.base import Status
from skfair.solvers.eigen.base import EIGEN_SOLVERS, EigenResult
from skfair.solvers.eigen.dense import solve_dense
from skfair.utils.history import History

# Restarts; where eigenvalues lie apart, a few are enough.
_MAX_ITER = 300


@EIGEN_SOLVERS.register("arpack")
def solve_arpack(
    problem: GroupCut,
    n_vectors: int,
    *,
    max_iter: int | None = None,
    rng: np.random.RandomState,
    **_unused: Any,
) -> EigenResult:
    """Find the leading eigenvectors of P M P by implicitly restarted Lanczos, one column a time."""
    if problem.n_free < 4 * n_vectors + 20:  # ARPACK needs room for its basis
        return solve_dense(problem, n_vectors, rng=rng)

    history = History()
    max_iter = _MAX_ITER if max_iter is None else max_iter
    nothing = np.zeros((problem.n_samples, 0), problem.dtype)
    operator = _deflated(problem, nothing)
    status: Status = "converged"
    try:
        values, vectors = eigsh(
            operator, n_vectors, which="LA", v0=problem.random(1, rng).ravel(), maxiter=max_iter
        )
    except ArpackError as error:
        status = "max_iter"
        values = getattr(error, "eigenvalues", np.zeros(0))
        vectors = getattr(error, "eigenvectors", nothing)
        if values.size < n_vectors:
            raise SolverError(
                f"ARPACK found {values.size} of {n_vectors} eigenvectors in {max_iter} iterations: "
                "the eigenvalues are too close to each other. Use solver='lanczos', a wider "
                "kernel, or a larger max_iter."
            ) from None
    if status == "converged" and problem.affinity.n_components() > 1:
        values, vectors = _with_missed_copies(problem, values, vectors, rng)
    order = np.argsort(values)[::-1]
    values = values[order].astype(np.float64)
    history.record(trace=float(values.sum()))
    return EigenResult(vectors[:, order], values, 1, status, history.as_dict())


def _with_missed_copies(
    problem: GroupCut, values: FloatArray, vectors: NDArray[Any], rng: np.random.RandomState
) -> tuple[FloatArray, NDArray[Any]]:
    """Look for eigenvalues above the last one among the vectors orthogonal to those found."""
    n_vectors, eps = values.size, np.finfo(problem.dtype).eps
    for _ in range(n_vectors):
        start = problem.random(1, rng)
        start -= vectors @ (vectors.T @ start)
        operator = _deflated(problem, vectors)
        try:
            value, vector = eigsh(operator, 1, which="LA", v0=start.ravel(), tol=np.sqrt(eps))
        except ArpackError:  # nothing stands out among the rest
            break
        if value[0] <= values.min() + 100 * eps:
            break
        values, vectors = np.append(values, value), np.append(vectors, vector, axis=1)
    kept = np.argsort(values)[::-1][:n_vectors]
    return values[kept], vectors[:, kept]


def _deflated(problem: GroupCut, found: NDArray[Any]) -> LinearOperator:
    """Return P M P with everything that is not asked for moved to the end of the spectrum.

    That is what violates the constraint, rows without edges, and vectors found before; with the
    eigenvalue 0 they would come before negative ones and mix with other zeros.
    """
    n = problem.n_samples
    alone = np.flatnonzero(problem.scale == 0)

    def product(column: NDArray[Any]) -> NDArray[Any]:
        column = column.reshape(-1, 1)
        rest = problem.project(column.copy())
        rest[alone] = 0.0
        if found.shape[1]:
            rest -= found @ (found.T @ rest)
        result = problem.apply(rest)
        if found.shape[1]:
            result -= found @ (found.T @ result)
        return (result - 2 * (column - rest)).ravel()

    return LinearOperator((n, n), matvec=product, dtype=problem.dtype)
