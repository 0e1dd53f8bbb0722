"""Pictures of what a model does to groups, in the manner of scikit-learn's displays.

Each display stores plain numbers and draws them with ``plot``; ``from_estimator`` and
``from_predictions`` compute the numbers first. A display plotted on the axes of another one
(``plot(ax=display.ax_, name=...)``) continues its colours and markers, so that two models can be
compared in one picture. Two groups never differ by colour alone.

Each display has its own file, which explains what its numbers are, how they are computed and how
they are drawn. Shared parts are in ``_display`` (their base, checks of arguments) and ``_style``
(colours, lines and legends). ``_scores`` has the densities and intervals of two displays.
Displays of one family only are in the file ``display.py`` of its folder, and are imported when they
are first used.

matplotlib is imported when something is drawn: ``pip install "skfair-suite[plot]"``.
"""

from typing import TYPE_CHECKING

from skfair.inspection.calibration import GroupCalibrationDisplay
from skfair.inspection.ccdf import CCDFCurveDisplay
from skfair.inspection.certificate import CertificateDisplay
from skfair.inspection.composition import ClusterCompositionDisplay
from skfair.inspection.convergence import ConvergenceDisplay
from skfair.inspection.front import FairnessFrontDisplay
from skfair.inspection.monitor import MonitorDisplay
from skfair.inspection.path import FairnessPathDisplay
from skfair.inspection.rates import GroupRatesDisplay
from skfair.inspection.score_densities import GroupScoreDisplay
from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

if TYPE_CHECKING:
    from skfair.ranking.display import RankingGapDisplay as RankingGapDisplay
else:
    __getattr__, __dir__ = deferred(__name__)

__all__ = [
    "GroupRatesDisplay",
    "GroupScoreDisplay",
    "GroupCalibrationDisplay",
    "CCDFCurveDisplay",
    "ClusterCompositionDisplay",
    "FairnessFrontDisplay",
    "FairnessPathDisplay",
    "ConvergenceDisplay",
    "CertificateDisplay",
    "MonitorDisplay",
    *names_of_wings(__name__),
]
