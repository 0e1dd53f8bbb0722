"""Optimisation algorithms: one file per algorithm, each sees a problem and never an estimator.

A solver registers itself in :data:`SOLVERS` and has one method::

    solve(problem, theta0, multipliers0, *, tol, max_iter, random_state, callback) -> SolverResult

It asks the problem only for the methods that it lists in its class attribute ``needs``; a mismatch
is an error that names both. ``callback(theta) -> stop`` is called once after each iteration. A
solver never prints; it logs.
"""

from skfair.solvers.al_lbfgs import ALLBFGS
from skfair.solvers.al_newton import ALNewton
from skfair.solvers.alm import ALM
from skfair.solvers.alternating import alternating_gradient
from skfair.solvers.base import SOLVERS, SolverResult, check_needs
from skfair.solvers.dc import DC_SOLVERS
from skfair.solvers.dc_penalty import DCPenalty
from skfair.solvers.dc_ssg import DCSwitching
from skfair.solvers.ghost import Ghost
from skfair.solvers.idca import IDCA
from skfair.solvers.ipp_conex import IPPConEx
from skfair.solvers.ipp_ssg import IPPSSG
from skfair.solvers.penalty import Penalty
from skfair.solvers.plada import Plada
from skfair.solvers.sgd import SGD
from skfair.solvers.ssg import SSG
from skfair.solvers.ssl_alm import SSLALM
from skfair.solvers.ssw import SSw

__all__ = [
    # to full precision
    "ALNewton",
    "ALLBFGS",
    # full-batch methods of plada
    "Plada",
    "SSG",
    "IPPSSG",
    "IPPConEx",
    # stochastic methods of fairness_constrained_benchmark
    "ALM",
    "SSLALM",
    "Ghost",
    "SSw",
    "SGD",
    "Penalty",
    # difference-of-convex methods of partial_fairness_idca
    "IDCA",
    "DCSwitching",
    "DCPenalty",
    "DC_SOLVERS",
    # all by name, and what they share
    "SOLVERS",
    "SolverResult",
    "alternating_gradient",
    "check_needs",
]
