"""A room for each paper: its algorithms, and those that it compares with.

Nothing outside imports these rooms. A name such as ``solver="plada"`` finds its algorithm through
the registry of solvers, which looks here when it is first read.
"""

from typing import TYPE_CHECKING

from skfair.utils.deferred import deferred

if TYPE_CHECKING:
    from skfair.papers._all import *
else:
    __getattr__, __dir__ = deferred(__name__)

__all__ = [
    # safairkm
    "Swap",
    "Smooth",
    "alternating_gradient",
    # vfairkm
    "Variational",
    # fair_spectral_dc
    "DCADMM",
    "UFSC",
    "FFSC",
    # plada
    "Plada",
    "SSG",
    "IPPSSG",
    "IPPConEx",
    "PladaStochastic",
    "MultiplierModel",
    # benchmark
    "SSLALM",
    "Ghost",
    "SSw",
    "SGD",
    "Penalty",
    # idca
    "IDCA",
    "IDCAStochastic",
    "DCSSG",
    "DCPenalty",
]
