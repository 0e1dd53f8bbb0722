"""Fair regression estimators."""

from skfair.regression.constrained_erm import ConstrainedERMRegressor
from skfair.regression.fair_decisions import FairDecisionRegressor

__all__ = ["ConstrainedERMRegressor", "FairDecisionRegressor"]
