"""Fair classification estimators."""

from skfair.classification.constrained_erm import ConstrainedERMClassifier
from skfair.classification.fair_decisions import FairDecisionClassifier
from skfair.classification.partial_calibrator import PartialParityCalibrator
from skfair.classification.partial_parity import PartialParityClassifier
from skfair.problems.partial.ranking import PairLoss

__all__ = [
    "ConstrainedERMClassifier",
    "FairDecisionClassifier",
    "PartialParityCalibrator",
    "PartialParityClassifier",
    "PairLoss",
]
