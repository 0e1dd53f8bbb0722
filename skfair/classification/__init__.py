"""Fair classification estimators."""

from typing import TYPE_CHECKING

from skfair.classification.constrained_erm import ConstrainedERMClassifier
from skfair.classification.fair_decisions import FairDecisionClassifier
from skfair.classification.partial_calibrator import PartialParityCalibrator
from skfair.classification.partial_parity import PartialParityClassifier
from skfair.problems.partial.ranking import PairLoss
from skfair.utils.other_names import other_names

if not TYPE_CHECKING:
    __getattr__ = other_names(__name__)

__all__ = [
    "ConstrainedERMClassifier",
    "FairDecisionClassifier",
    "PartialParityCalibrator",
    "PartialParityClassifier",
    "PairLoss",
]
