"""What ``skfair.solvers`` offers; imported when one of these names is first asked for there."""

from skfair.solvers.clustering.prices import Prices
from skfair.solvers.eigen.arpack import Arpack
from skfair.solvers.eigen.dense import DenseEigh
from skfair.solvers.eigen.lanczos import Lanczos
from skfair.solvers.erm.al_lbfgs import ALLBFGS
from skfair.solvers.erm.al_newton import ALNewton
from skfair.solvers.erm.alm import ALM

__all__ = [
    # classifiers, regressors, rankings
    "ALNewton",
    "ALLBFGS",
    "ALM",
    # eigenvectors of spectral clustering
    "Lanczos",
    "DenseEigh",
    "Arpack",
    # clusterings
    "Prices",
    # for a solver of your own
]
