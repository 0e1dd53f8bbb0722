"""The default eigen-solver, ``solver="auto"``, which chooses by the size of the problem."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS, Step
from skfair.cluster.spectral.eigen.dense import DenseEigh
from skfair.cluster.spectral.eigen.lanczos import Lanczos
from skfair.cluster.spectral.group_cut import GroupCut

# Up to this many rows a direct eigen-solver takes milliseconds.
_SMALL = 1000


@EIGEN_SOLVERS.register("auto")
@dataclass
class AutoEigen(Lanczos):
    """:class:`DenseEigh` up to 1000 rows and for factors, and otherwise :class:`Lanczos`.

    Parameters
    ----------
    tol : float, default=3e-3
        As of :class:`Lanczos`; a direct solver needs none of these.
    max_iter : int, default=300
        Largest number of steps.
    block_size : int, default=None
        Columns that are multiplied at a time.

    Examples
    --------
    >>> from skfair.cluster import FairSpectralClustering
    >>> from skfair.cluster.spectral.eigen.auto import AutoEigen
    >>> FairSpectralClustering(3, solver=AutoEigen(tol=1e-4)).solver.max_iter
    300
    """

    def steps(
        self, problem: GroupCut, n_vectors: int, rng: np.random.RandomState
    ) -> Iterator[Step]:
        if problem.n_samples <= _SMALL or problem.weights.factor is not None:
            yield from DenseEigh().steps(problem, n_vectors, rng)
        else:
            yield from super().steps(problem, n_vectors, rng)
