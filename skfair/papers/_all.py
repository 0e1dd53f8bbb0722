"""The names of ``skfair.papers``; imported when one of them is first asked for there."""

from skfair.papers.benchmark.ghost import Ghost as Ghost
from skfair.papers.benchmark.penalty import Penalty as Penalty
from skfair.papers.benchmark.sgd import SGD as SGD
from skfair.papers.benchmark.ssl_alm import SSLALM as SSLALM
from skfair.papers.benchmark.ssw import SSw as SSw
from skfair.papers.fair_spectral_dc.dc_admm import DCADMM as DCADMM
from skfair.papers.fair_spectral_dc.ffsc import FFSC as FFSC
from skfair.papers.fair_spectral_dc.ufsc import UFSC as UFSC
from skfair.papers.idca.dc_penalty import DCPenalty as DCPenalty
from skfair.papers.idca.dc_ssg import DCSSG as DCSSG
from skfair.papers.idca.idca import IDCA as IDCA
from skfair.papers.idca.idca_stochastic import IDCAStochastic as IDCAStochastic
from skfair.papers.plada.ipp_conex import IPPConEx as IPPConEx
from skfair.papers.plada.ipp_ssg import IPPSSG as IPPSSG
from skfair.papers.plada.multiplier_model import MultiplierModel as MultiplierModel
from skfair.papers.plada.plada import Plada as Plada
from skfair.papers.plada.plada_stochastic import PladaStochastic as PladaStochastic
from skfair.papers.plada.ssg import SSG as SSG
from skfair.papers.safairkm.alternating import alternating_gradient as alternating_gradient
from skfair.papers.safairkm.smooth import Smooth as Smooth
from skfair.papers.safairkm.swap import Swap as Swap
from skfair.papers.vfairkm.variational import Variational as Variational
