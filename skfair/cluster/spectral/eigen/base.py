"""The base of the eigen-solvers of fair spectral clustering: the loop, and the result.

A solver is a dataclass of its parameters. It writes ``steps``, which yields a :class:`Step` per
iteration. ``embedding.py`` calls :meth:`EigenSolver.solve`, the loop over these steps. It keeps the
history, calls the callback and reports how the run ended.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.solvers.parameters import check_parameters
from skfair.utils.docs import documented
from skfair.utils.endings import Status
from skfair.utils.history import History
from skfair.utils.registry import PAPERS, Registry
from skfair.utils.signatures import ReadableSignature

# A function that gets the current vectors, or None if they are not at hand without further work. If
# it returns True, the solver stops.
Callback = Callable[[NDArray[Any] | None], bool]

# The largest violation of the group constraint, ``|Q'H|``, of vectors that satisfy it. Rounding in
# float32 is far below it.
KEPT = 1e-4


class Pairs(NamedTuple):
    """Eigenvalues in falling order, and their orthonormal vectors."""

    values: FloatArray
    vectors: NDArray[Any]
    # The next eigenvectors, approximately, if the solver has them without further work.
    spare: NDArray[Any] | None = None
    # Cluster of each row, if the solver also finds labels.
    labels: IntArray | None = None


class Step(NamedTuple):
    """An iteration of an eigen-solver, as :meth:`EigenSolver.steps` yields it."""

    pairs: Callable[[], Pairs]  # computes the result; only called for the last step
    columns: Mapping[str, float] = MappingProxyType({})  # columns of the history
    is_converged: bool = False
    vectors: NDArray[Any] | None = None  # vectors for the callback, if they are at hand
    # Whether there are enough vectors already. Before that the callback is not called
    is_whole: bool = True


def only_step(ritz: Pairs, n_vectors: int, *, is_converged: bool = True) -> Step:
    """Return the only step of a solver that finds all eigenpairs at once.

    ``ritz`` may have more than ``n_vectors`` pairs. The vectors of the others are spare vectors.
    """
    k = n_vectors
    pairs = Pairs(ritz.values[:k], ritz.vectors[:, :k], ritz.vectors[:, k:])
    columns = {"trace": float(pairs.values.sum())}
    return Step(lambda: pairs, columns, is_converged, pairs.vectors)


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
        The reason why the solver ended. It is "infeasible" if it converged but violates the
        constraint.
    history : dict of ndarray
        One row per iteration.
    spare : ndarray of shape (n_samples, n) or None
        Further vectors that the solver found on the way. They are approximate.
    residual : float
        ``|Q'H|``: how far the vectors are from the group constraint.
    labels : ndarray of shape (n_samples,) or None
        The cluster of each row, if the solver finds clusters together with the vectors, else None.
    """

    vectors: NDArray[Any]
    values: FloatArray
    n_iter: int
    status: Status
    history: dict[str, NDArray[Any]]
    spare: NDArray[Any] | None = None
    residual: float = 0.0
    labels: IntArray | None = None


@documented
@dataclass
class EigenSolver(ABC):
    """Finds the leading eigenvectors of ``P M P``, see :class:`GroupCut`."""

    __signature__ = ReadableSignature()

    @abstractmethod
    def steps(
        self, problem: GroupCut, n_vectors: int, rng: np.random.RandomState
    ) -> Iterator[Step]:
        """Yield at most ``max_iter`` iterations of the method.

        Yields
        ------
        step : Step
            The state of the solver after each iteration.
        """

    def solve(
        self,
        problem: GroupCut,
        n_vectors: int,
        *,
        rng: np.random.RandomState,
        callback: Callback | None = None,
    ) -> EigenResult:
        """Find the leading eigenvectors under the group constraint.

        Parameters
        ----------
        problem : GroupCut
            The problem with its weights and its group constraint.
        n_vectors : int
            Number of eigenvectors.
        rng : RandomState
            Random number generator.
        callback : callable, default=None
            Function that is called as ``callback(vectors)`` after each iteration, with None if
            there are no vectors yet. The solver stops if it returns True.

        Returns
        -------
        result : EigenResult
            The eigenvectors, their eigenvalues and the status of the solver.
        """
        check_parameters(self)
        history, is_stopped = History(), False
        for step in self.steps(problem, n_vectors, rng):
            is_stopped = callback is not None and step.is_whole and callback(step.vectors)
            if is_stopped or step.is_converged:
                break
            history.record(**step.columns)
        values, vectors, spare, labels = step.pairs()
        # If a run ends early, its last step is recorded here, with the trace of the result.
        if is_stopped or step.is_converged:
            history.record(**{"trace": float(values.sum()), **step.columns})
        residual = problem.residuals(vectors.astype(np.float64))[0]
        status: Status = "stopped" if is_stopped else "max_iter"
        if step.is_converged:
            status = "converged" if residual <= KEPT else "infeasible"
        return EigenResult(
            vectors, values, len(history), status, history.as_dict(), spare, residual, labels
        )


# The class of each solver by its name, for ``FairSpectralClustering(solver="lanczos")``.
EIGEN_SOLVERS: Registry[type[EigenSolver]] = Registry(
    "eigen-solver", "skfair.cluster.spectral.eigen", PAPERS
)
