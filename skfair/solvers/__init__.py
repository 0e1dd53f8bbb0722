"""Optimisation algorithms: one file per algorithm, each sees a problem and never an estimator.

This folder has the algorithms that a default may choose. Algorithms of papers are in
:mod:`skfair.papers`. A solver is registered in ``skfair.solvers.base.SOLVERS`` and writes down its
steps as a generator. ``skfair.solvers.base.Solver.solve`` runs them. The class attribute ``needs``
of a solver lists what a problem must offer, and an error names both if they do not fit. A solver
never prints.
"""

from typing import TYPE_CHECKING

from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

if TYPE_CHECKING:
    from skfair.cluster.kmeans.prices import Prices as Prices
    from skfair.cluster.spectral.eigen.arpack import Arpack as Arpack
    from skfair.cluster.spectral.eigen.dense import DenseEigh as DenseEigh
    from skfair.cluster.spectral.eigen.lanczos import Lanczos as Lanczos
    from skfair.solvers._all import *
else:
    __getattr__, __dir__ = deferred(__name__)

__all__ = [
    # Solvers for classifiers, regressors and rankings, then those of wings
    "ALNewton",
    "ALLBFGS",
    "ALM",
    *names_of_wings(__name__),
]
