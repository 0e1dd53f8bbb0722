"""Fair regression estimators."""

from skfair.regression.constrained_erm import ConstrainedERMRegressor

__all__ = ["ConstrainedERMRegressor"]
