"""Rules within percentile intervals of the scores.

:class:`skfair.classification.PartialParityClassifier` takes them by name, or an
:class:`IntervalConstraint` that says more.
"""

from skfair.constraints.partial.base import (
    PARTIAL_RULES,
    BoundPartialRule,
    IntervalConstraint,
    PartialRows,
    PartialRule,
    RankWithin,
    Values,
    read_constraint,
)
from skfair.constraints.partial.surrogates import Surrogate

__all__ = [
    "BoundPartialRule",
    "IntervalConstraint",
    "PARTIAL_RULES",
    "PartialRows",
    "PartialRule",
    "RankWithin",
    "Surrogate",
    "Values",
    "read_constraint",
]
