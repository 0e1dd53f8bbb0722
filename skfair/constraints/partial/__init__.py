"""Moments of constraints within percentile intervals of the scores.

:class:`skfair.classification.PartialParityClassifier` takes the constraints by name, as objects, or
as an :class:`IntervalConstraint` that says more.
"""

from skfair.constraints.partial.base import RankedMoment, Values
from skfair.constraints.partial.group_auc import GroupAUC
from skfair.constraints.partial.interval import IntervalConstraint, read_constraint
from skfair.constraints.partial.statistical_parity import StatisticalParity
from skfair.constraints.partial.surrogates import Surrogate

__all__ = [
    "GroupAUC",
    "IntervalConstraint",
    "RankedMoment",
    "StatisticalParity",
    "Surrogate",
    "Values",
    "read_constraint",
]
