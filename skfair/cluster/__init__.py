"""Fair clustering estimators."""

from skfair.cluster.fair_assignment import FairAssignment
from skfair.cluster.fair_kmeans import FairKMeans
from skfair.cluster.fair_spectral import FairSpectralClustering
from skfair.cluster.pareto_fair_kmeans import ParetoFairKMeans

__all__ = ["FairAssignment", "FairKMeans", "FairSpectralClustering", "ParetoFairKMeans"]
