"""Fair classification estimators."""

from typing import TYPE_CHECKING

from skfair.classification.constrained_erm import ConstrainedERMClassifier
from skfair.classification.fair_decisions import FairDecisionClassifier
from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

if TYPE_CHECKING:
    from skfair.partial_parity.calibrator import PartialParityCalibrator as PartialParityCalibrator
    from skfair.partial_parity.classifier import PartialParityClassifier as PartialParityClassifier
    from skfair.partial_parity.pair_losses import PairLoss as PairLoss
else:
    __getattr__, __dir__ = deferred(__name__)

__all__ = [
    "ConstrainedERMClassifier",
    "FairDecisionClassifier",
    *names_of_wings(__name__),
]
