"""Fair clustering estimators."""

from typing import TYPE_CHECKING

from skfair.cluster.fair_assignment import FairAssignment
from skfair.cluster.fair_kmeans import FairKMeans
from skfair.cluster.pareto_fair_kmeans import ParetoFairKMeans
from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

if TYPE_CHECKING:
    from skfair.cluster.spectral.fair_spectral import (
        FairSpectralClustering as FairSpectralClustering,
    )
else:
    __getattr__, __dir__ = deferred(__name__, takes_wings=True)

__all__ = ["FairAssignment", "FairKMeans", "ParetoFairKMeans", *names_of_wings(__name__)]
