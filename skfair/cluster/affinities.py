"""Public names of the affinities of spectral clustering, as objects for ``affinity=``.

The classes are in ``cluster/spectral/affinities``, and load on first use.
"""

from typing import TYPE_CHECKING

from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

if TYPE_CHECKING:
    from skfair.cluster.spectral.affinities.graphs import NeighborGraph as NeighborGraph
    from skfair.cluster.spectral.affinities.graphs import Precomputed as Precomputed
    from skfair.cluster.spectral.affinities.kernels import Kernel as Kernel
    from skfair.cluster.spectral.affinities.landmarks import Landmark as Landmark
else:
    __getattr__, __dir__ = deferred(__name__)

__all__ = [*names_of_wings(__name__)]
