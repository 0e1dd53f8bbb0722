"""What the eigen-solvers of fair spectral clustering share: their registry and their result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.solvers.base import Status
from skfair.utils.registry import Registry

Callback = Callable[[Any], bool]

# Name -> solve(problem, n_vectors, *, tol, max_iter, block_size, rng, callback) -> EigenResult.
EIGEN_SOLVERS: Registry[Any] = Registry("eigen-solver", "skfair.solvers.eigen")


class EigenResult(NamedTuple):
    """Leading eigenvectors of the normalised weights under the group constraint.

    Attributes
    ----------
    vectors : ndarray of shape (n_samples, n_vectors)
        Orthonormal columns H, best first.
    values : ndarray of shape (n_vectors,)
        Their eigenvalues, or Ritz values, in falling order.
    n_iter : int
        Number of iterations; 1 for direct solvers.
    status : {"converged", "max_iter", "stopped", "infeasible"}
        Why the solver ended; "infeasible" if the constraint is missed.
    history : dict of ndarray
        One row per iteration.
    spare : ndarray of shape (n_samples, n) or None
        The vectors that follow, as far as they came for free: approximate, or none.
    """

    vectors: NDArray[Any]
    values: FloatArray
    n_iter: int
    status: Status
    history: dict[str, NDArray[Any]]
    spare: NDArray[Any] | None = None
