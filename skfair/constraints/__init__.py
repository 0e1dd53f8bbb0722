"""Fairness constraints in score space: on rates, on losses, on scores.

A constraint is passed to an estimator by name or, with parameters of its own, as an object. New
constraints subclass :class:`Constraint`, or ``RateParity`` of :mod:`skfair.constraints.rates`; see
the developer guide.
"""

from skfair.constraints.base import Constraint
from skfair.constraints.conditional import ConditionalOn
from skfair.constraints.losses import (
    BoundedGroupLoss,
    ClassLossParity,
    ExcessLoss,
    LossParity,
    MeanExcessLoss,
    PositiveLossParity,
)
from skfair.constraints.rates import (
    AccuracyParity,
    BoundedFalseNegativeRate,
    BoundedFalsePositiveRate,
    BoundedSelectionRate,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    FalseNegativeParity,
    FalsePositiveParity,
    PredictiveParity,
)
from skfair.constraints.scores import (
    Kolmogorov,
    MeanResidualParity,
    MeanScoreParity,
    Wasserstein,
)

__all__ = [
    "DemographicParity",
    "EqualOpportunity",
    "FalsePositiveParity",
    "FalseNegativeParity",
    "EqualizedOdds",
    "AccuracyParity",
    "PredictiveParity",
    "LossParity",
    "PositiveLossParity",
    "ClassLossParity",
    "MeanScoreParity",
    "MeanResidualParity",
    "Wasserstein",
    "Kolmogorov",
    "BoundedSelectionRate",
    "BoundedFalsePositiveRate",
    "BoundedFalseNegativeRate",
    "BoundedGroupLoss",
    "ExcessLoss",
    "MeanExcessLoss",
    "ConditionalOn",
    "Constraint",
]
