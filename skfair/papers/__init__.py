"""A room for each paper: its algorithms, and those that it compares with.

Importing this package registers all of them, so that names such as ``solver="plada"`` find them.
Nothing else of skfair imports it, but for the registries, when they are asked for a name that they
do not know or for all names: skfair works without this folder.
"""

from skfair.papers.benchmark.ghost import Ghost
from skfair.papers.benchmark.penalty import Penalty
from skfair.papers.benchmark.sgd import SGD
from skfair.papers.benchmark.ssl_alm import SSLALM
from skfair.papers.benchmark.ssw import SSw
from skfair.papers.fair_spectral_dc.dc_admm import DCADMM
from skfair.papers.fair_spectral_dc.ffsc import FFSC
from skfair.papers.fair_spectral_dc.ufsc import UFSC
from skfair.papers.idca.dc_penalty import DCPenalty
from skfair.papers.idca.dc_ssg import DCSSG
from skfair.papers.idca.idca import IDCA
from skfair.papers.idca.idca_stochastic import IDCAStochastic
from skfair.papers.plada.ipp_conex import IPPConEx
from skfair.papers.plada.ipp_ssg import IPPSSG
from skfair.papers.plada.multiplier_model import MultiplierModel
from skfair.papers.plada.plada import Plada
from skfair.papers.plada.plada_stochastic import PladaStochastic
from skfair.papers.plada.ssg import SSG
from skfair.papers.safairkm.alternating import alternating_gradient
from skfair.papers.safairkm.smooth import Smooth
from skfair.papers.safairkm.swap import Swap
from skfair.papers.vfairkm.variational import Variational

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
