"""Fair clustering estimators."""

from typing import TYPE_CHECKING

from skfair.cluster.fair_assignment import FairAssignment
from skfair.cluster.fair_kmeans import FairKMeans
from skfair.cluster.fair_spectral import FairSpectralClustering
from skfair.cluster.pareto_fair_kmeans import ParetoFairKMeans
from skfair.utils.other_names import other_names

if not TYPE_CHECKING:
    __getattr__ = other_names(__name__)

__all__ = ["FairAssignment", "FairKMeans", "FairSpectralClustering", "ParetoFairKMeans"]
