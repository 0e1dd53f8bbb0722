"""Moments of constraints within percentile intervals of the scores.

:class:`skfair.classification.PartialParityClassifier` takes the constraints by name, as objects, or
as an :class:`IntervalConstraint` that says more.
"""

from skfair.constraints.partial.base import RankedMoment, Values
from skfair.constraints.partial.interval import IntervalConstraint, read_constraint
from skfair.constraints.partial.surrogates import Surrogate

__all__ = ["IntervalConstraint", "RankedMoment", "Surrogate", "Values", "read_constraint"]
