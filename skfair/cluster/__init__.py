"""Fair clustering estimators. The names in the folders kmeans and spectral load on first use."""

from typing import TYPE_CHECKING

from skfair.cluster.fair_assignment import FairAssignment
from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

if TYPE_CHECKING:
    from skfair.cluster.kmeans.fair_kmeans import FairKMeans as FairKMeans
    from skfair.cluster.kmeans.pareto_fair_kmeans import ParetoFairKMeans as ParetoFairKMeans
    from skfair.cluster.spectral.fair_spectral import (
        FairSpectralClustering as FairSpectralClustering,
    )
else:
    __getattr__, __dir__ = deferred(__name__)

__all__ = ["FairAssignment", *names_of_wings(__name__)]
