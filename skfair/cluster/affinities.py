"""Objects for ``affinity=`` of FairSpectralClustering, which have more parameters than names."""

from skfair.problems.cut.affinities.graphs import NeighborGraph, Precomputed
from skfair.problems.cut.affinities.kernels import Kernel
from skfair.problems.cut.affinities.landmarks import Landmark

__all__ = ["Kernel", "Landmark", "NeighborGraph", "Precomputed"]
