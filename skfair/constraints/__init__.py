"""Fairness rules in score space: one file per rule.

A rule is passed to an estimator by name or, with parameters of its own, as an object. New rules
subclass :class:`Constraint`; see the developer guide.
"""

from skfair.constraints.accuracy_parity import AccuracyParity
from skfair.constraints.base import CONSTRAINTS, Constraint
from skfair.constraints.bounded_group_loss import BoundedGroupLoss
from skfair.constraints.demographic_parity import DemographicParity
from skfair.constraints.equal_opportunity import EqualOpportunity
from skfair.constraints.equalized_odds import EqualizedOdds
from skfair.constraints.false_positive_parity import FalsePositiveParity
from skfair.constraints.loss_parity import ClassLossParity, LossParity, PositiveLossParity
from skfair.constraints.mean_score_parity import MeanScoreParity

__all__ = [
    "DemographicParity",
    "EqualOpportunity",
    "FalsePositiveParity",
    "EqualizedOdds",
    "AccuracyParity",
    "LossParity",
    "PositiveLossParity",
    "ClassLossParity",
    "BoundedGroupLoss",
    "MeanScoreParity",
    "Constraint",
    "CONSTRAINTS",
]
