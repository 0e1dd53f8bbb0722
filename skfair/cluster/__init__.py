"""Fair clustering estimators."""

from skfair.cluster.fair_kmeans import FairKMeans

__all__ = ["FairKMeans"]
