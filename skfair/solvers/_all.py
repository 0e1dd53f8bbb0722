"""What ``skfair.solvers`` offers; imported when one of these names is first asked for there."""

from skfair.solvers.base import (
    SOLVERS,
    Answer,
    IterativeSolver,
    Solver,
    SolverResult,
    Step,
    check_needs,
)
from skfair.solvers.clustering.alternating import alternating_gradient
from skfair.solvers.clustering.base import CLUSTERING_SOLVERS
from skfair.solvers.clustering.prices import Prices
from skfair.solvers.clustering.smooth import Smooth
from skfair.solvers.clustering.swap import Swap
from skfair.solvers.clustering.variational import Variational
from skfair.solvers.dc.base import DC_SOLVERS
from skfair.solvers.dc.dc_penalty import DCPenalty
from skfair.solvers.dc.dc_ssg import DCSwitching
from skfair.solvers.dc.idca import IDCA
from skfair.solvers.dc.idca_stochastic import StochasticIDCA
from skfair.solvers.eigen.arpack import Arpack
from skfair.solvers.eigen.auto import AutoEigen
from skfair.solvers.eigen.base import EIGEN_SOLVERS, EigenResult
from skfair.solvers.eigen.dc_admm import DCADMM
from skfair.solvers.eigen.dense import DenseEigh
from skfair.solvers.eigen.ffsc import FFSC
from skfair.solvers.eigen.lanczos import Lanczos
from skfair.solvers.eigen.ufsc import UFSC
from skfair.solvers.erm.al_lbfgs import ALLBFGS
from skfair.solvers.erm.al_newton import ALNewton
from skfair.solvers.erm.alm import ALM
from skfair.solvers.erm.ghost import Ghost
from skfair.solvers.erm.ipp_conex import IPPConEx
from skfair.solvers.erm.ipp_ssg import IPPSSG
from skfair.solvers.erm.multiplier_model import MultiplierModel
from skfair.solvers.erm.penalty import Penalty
from skfair.solvers.erm.plada import Plada
from skfair.solvers.erm.plada_stochastic import PladaStochastic
from skfair.solvers.erm.sgd import SGD
from skfair.solvers.erm.ssg import SSG
from skfair.solvers.erm.ssl_alm import SSLALM
from skfair.solvers.erm.ssw import SSw

__all__ = [
    # to full precision
    "ALNewton",
    "ALLBFGS",
    # full-batch methods of plada
    "Plada",
    "SSG",
    "IPPSSG",
    "IPPConEx",
    # for very many constraints, on batches
    "PladaStochastic",
    "MultiplierModel",
    # stochastic methods of fairness_constrained_benchmark
    "ALM",
    "SSLALM",
    "Ghost",
    "SSw",
    "SGD",
    "Penalty",
    # difference-of-convex methods of partial_fairness_idca
    "IDCA",
    "StochasticIDCA",
    "DCSwitching",
    "DCPenalty",
    "DC_SOLVERS",
    # eigen-solvers of fair spectral clustering
    "Lanczos",
    "DenseEigh",
    "Arpack",
    "DCADMM",
    "AutoEigen",
    "UFSC",
    "FFSC",
    "EigenResult",
    "EIGEN_SOLVERS",
    # clustering: our own, and those of safairkm and its peers
    "Prices",
    "Swap",
    "Variational",
    "Smooth",
    "CLUSTERING_SOLVERS",
    # all by name, and what they share
    "SOLVERS",
    "Answer",
    "IterativeSolver",
    "Solver",
    "SolverResult",
    "Step",
    "alternating_gradient",
    "check_needs",
]
