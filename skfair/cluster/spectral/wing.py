"""Spectral clustering as a wing, read by ``skfair.utils.wings``.

``NAMES`` lists the names that each public package gets, with the module of this folder that defines
each name.
:func:`warm` is called by ``python -m skfair warm``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

NAMES = {
    "skfair.cluster": {"FairSpectralClustering": "fair_spectral"},
    "skfair.cluster.affinities": {
        "Kernel": "affinities.kernels",
        "Landmark": "affinities.landmarks",
        "NeighborGraph": "affinities.graphs",
        "Precomputed": "affinities.graphs",
    },
    "skfair.datasets": {"make_fair_sbm": "generator"},
    "skfair.metrics": {"normalized_cut": "metrics"},
    "skfair.solvers": {
        "Arpack": "eigen.arpack",
        "DenseEigh": "eigen.dense",
        "Lanczos": "eigen.lanczos",
    },
}


def warm(rows: Any, groups: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield (model, X, y, groups) whose fits compile all kernels: graphs of every kind."""
    import numpy as np

    from skfair.cluster.spectral.affinities.graphs import NeighborGraph
    from skfair.cluster.spectral.affinities.kernels import Kernel
    from skfair.cluster.spectral.affinities.landmarks import Landmark
    from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS
    from skfair.cluster.spectral.fair_spectral import FairSpectralClustering

    cutter = partial(FairSpectralClustering, 2, n_init=1, random_state=0)
    for affinity in (Landmark(20), Kernel("rbf", dtype="float64"), NeighborGraph()):
        yield cutter(affinity=affinity), rows, None, groups
    for solver in EIGEN_SOLVERS:
        yield cutter(solver=solver), rows, None, groups
    links = np.exp(-((rows[:, :1] - rows[:, 0]) ** 2))
    yield FairSpectralClustering(2, affinity="precomputed"), links, None, groups
