"""Objects for ``affinity=`` of FairSpectralClustering, which have more parameters than names."""

from skfair.problems.cut.affinities.graphs import NeighborGraph, Precomputed, PrecomputedNeighbors
from skfair.problems.cut.affinities.kernels import Kernel, Rbf
from skfair.problems.cut.affinities.landmarks import Landmark, Nystroem

__all__ = [
    "Kernel",
    "Landmark",
    "NeighborGraph",
    "Nystroem",
    "Precomputed",
    "PrecomputedNeighbors",
    "Rbf",
]
