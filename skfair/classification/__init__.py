"""Fair classification estimators."""

from skfair.classification.constrained_erm import ConstrainedERMClassifier

__all__ = ["ConstrainedERMClassifier"]
