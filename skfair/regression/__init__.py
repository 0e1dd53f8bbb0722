"""Fair regression estimators."""

from typing import TYPE_CHECKING

from skfair.regression.constrained_erm import ConstrainedERMRegressor
from skfair.regression.fair_decisions import FairDecisionRegressor
from skfair.utils.other_names import other_names

if not TYPE_CHECKING:
    __getattr__ = other_names(__name__)

__all__ = ["ConstrainedERMRegressor", "FairDecisionRegressor"]
