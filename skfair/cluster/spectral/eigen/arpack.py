"""ARPACK on the projected operator P M P (s-FSC of fair_spectral_dc), to machine precision.

M and P are those of ``group_cut.py``. A graph in several parts has repeated eigenvalues, and the
Krylov space of one vector holds only one copy of each. ARPACK finds the others by rounding errors
alone. Even to machine precision it misses some copies on one disconnected graph in five, and nearly
all with a loose tolerance. So on such graphs the search continues, orthogonal to the vectors found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh

from skfair._typing import FloatArray
from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS, EigenSolver, Pairs, Step, only_step
from skfair.cluster.spectral.eigen.dense import DenseEigh
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.exceptions import SolverError
from skfair.solvers.parameters import Count


@EIGEN_SOLVERS.register("arpack")
@dataclass
class Arpack(EigenSolver):
    """Implicitly restarted Lanczos method of ARPACK, to machine precision.

    It computes the leading eigenvectors of P M P, where M holds the normalised weights of the graph
    and P projects onto the group constraint.

    Parameters
    ----------
    max_iter : int, default=300
        Maximum number of restarts. A few restarts are enough if the eigenvalues are well separated.

    See Also
    --------
    DenseEigh : Direct computation for small graphs.
    Lanczos : Faster on large sparse graphs, to a tolerance.

    Examples
    --------
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.solvers import Arpack
    >>> FairSpectralClustering(3, solver=Arpack(max_iter=1000))
    FairSpectralClustering(n_clusters=3, solver=Arpack(max_iter=1000))
    """

    max_iter: Count = 300

    def steps(
        self, problem: GroupCut, n_vectors: int, rng: np.random.RandomState
    ) -> Iterator[Step]:
        if problem.n_free < 4 * n_vectors + 20:  # ARPACK needs room for its basis
            yield from DenseEigh().steps(problem, n_vectors, rng)
            return
        nothing = np.zeros((problem.n_samples, 0), problem.dtype)
        first = problem.random(1, rng).ravel()
        is_converged = True
        try:
            values, vectors = eigsh(
                _deflated(problem, nothing),
                n_vectors,
                which="LA",
                v0=first,
                maxiter=self.max_iter,
                **later_draws(rng),
            )
        except ArpackNoConvergence as error:
            is_converged, values, vectors = False, error.eigenvalues, error.eigenvectors
        except ArpackError:
            is_converged, values, vectors = False, np.zeros(0), nothing
        if values.size < n_vectors:
            raise SolverError(
                f"ARPACK found {values.size} of {n_vectors} eigenvectors in {self.max_iter} "
                "iterations: the eigenvalues are too close to each other. Use solver='lanczos', "
                "a wider kernel, or a larger max_iter."
            )
        if is_converged and problem.weights.n_components() > 1:
            values, vectors = _with_missed_copies(problem, values, vectors, rng)
        order = np.argsort(values)[::-1]
        pairs = Pairs(values[order].astype(np.float64), vectors[:, order])
        yield only_step(pairs, n_vectors, is_converged=is_converged)


def _with_missed_copies(
    problem: GroupCut, values: FloatArray, vectors: NDArray[Any], rng: np.random.RandomState
) -> tuple[FloatArray, NDArray[Any]]:
    """Look for eigenvalues above the smallest one found, orthogonal to the vectors found.

    Returns as many pairs as were given, the largest of all.
    """
    n_vectors, eps = values.size, np.finfo(problem.dtype).eps
    for _ in range(n_vectors):
        start = problem.random(1, rng)
        start -= vectors @ (vectors.T @ start)
        operator = _deflated(problem, vectors)
        try:
            value, vector = eigsh(
                operator, 1, which="LA", v0=start.ravel(), tol=np.sqrt(eps), **later_draws(rng)
            )
        except ArpackError:  # no convergence, because no remaining eigenvalue stands out
            break
        if value[0] <= values.min() + 100 * eps:
            break
        values, vectors = np.append(values, value), np.append(vectors, vector, axis=1)
    kept = np.argsort(values)[::-1][:n_vectors]
    return values[kept], vectors[:, kept]


def later_draws(rng: np.random.RandomState) -> dict[str, Any]:
    """Return the argument of ``eigsh`` that sets how ARPACK draws new vectors.

    ARPACK draws new vectors if a Krylov space ends early. Before SciPy 1.17 there is no such
    argument, because ARPACK had a random state of its own, which each call changed. ``papers``
    uses this function, too.
    """
    if "rng" not in signature(eigsh).parameters:
        return {}
    return {"rng": np.random.default_rng(rng.randint(2**31))}


def _deflated(problem: GroupCut, vectors: NDArray[Any]) -> LinearOperator:
    """Return P M P with the eigenvalue -2, below all others, for unwanted directions.

    These are the directions that violate the constraint, rows without edges, and ``vectors``, which
    were found before. With the eigenvalue 0 they would come before negative eigenvalues and mix
    with other vectors of eigenvalue 0.
    """
    n = problem.n_samples
    alone = np.flatnonzero(problem.scale == 0)

    def product(column: NDArray[Any]) -> NDArray[Any]:
        column = column.reshape(-1, 1)
        rest = problem.project(column.copy())
        rest[alone] = 0.0
        if vectors.shape[1]:
            rest -= vectors @ (vectors.T @ rest)
        result = problem.apply(rest)
        if vectors.shape[1]:
            result -= vectors @ (vectors.T @ result)
        result -= 2 * (column - rest)
        return result.ravel()

    return LinearOperator((n, n), matvec=product, dtype=problem.dtype)
