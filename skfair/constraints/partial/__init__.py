"""Rules within percentile intervals of the scores.

:class:`skfair.classification.PartialParityClassifier` takes them by name.
"""

from skfair.constraints.partial.base import (
    PARTIAL_RULES,
    BoundPartialRule,
    PartialRows,
    PartialRule,
    RankWithin,
    Values,
)
from skfair.constraints.partial.surrogates import Surrogate

__all__ = [
    "BoundPartialRule",
    "PARTIAL_RULES",
    "PartialRows",
    "PartialRule",
    "RankWithin",
    "Surrogate",
    "Values",
]
