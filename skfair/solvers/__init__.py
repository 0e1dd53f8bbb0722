"""Optimisation algorithms: one file per algorithm, each sees a problem and never an estimator.

A solver registers itself in :data:`SOLVERS` and writes down its steps;
:class:`IterativeSolver` makes a run of them. It says what it needs of a problem in its class
attribute ``needs``; a mismatch is an error that names both. A solver never prints.
"""

from typing import TYPE_CHECKING

from skfair.utils.deferred import deferred

if TYPE_CHECKING:
    from skfair.solvers._all import *
else:
    __getattr__, __dir__ = deferred(__name__)

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
