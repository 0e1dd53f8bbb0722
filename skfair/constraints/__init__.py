"""Fairness constraints in score space: on rates, on losses, on scores.

A constraint is passed to an estimator by name or, with parameters of its own, as an object. New
constraints subclass :class:`Constraint`, or ``RateParity`` of :mod:`skfair.constraints.rates`; see
the developer guide.
"""

from typing import TYPE_CHECKING

from skfair.constraints.base import Constraint
from skfair.constraints.conditional import ConditionalOn
from skfair.constraints.losses import (
    BoundedGroupLoss,
    ExcessLoss,
    LossParity,
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
from skfair.constraints.scores import Kolmogorov as Kolmogorov
from skfair.constraints.scores import MeanResidualParity as MeanResidualParity
from skfair.constraints.scores import MeanScoreParity
from skfair.constraints.scores import Wasserstein as Wasserstein
from skfair.utils.other_names import other_names

if not TYPE_CHECKING:
    __getattr__ = other_names(__name__)

__all__ = [
    "DemographicParity",
    "EqualOpportunity",
    "FalsePositiveParity",
    "FalseNegativeParity",
    "EqualizedOdds",
    "AccuracyParity",
    "PredictiveParity",
    "LossParity",
    "MeanScoreParity",
    "BoundedSelectionRate",
    "BoundedFalsePositiveRate",
    "BoundedFalseNegativeRate",
    "BoundedGroupLoss",
    "ExcessLoss",
    "ConditionalOn",
    "Constraint",
]
