"""All registered parts of the package, for tests that go over them: one file knows the places."""

from functools import partial

from skfair.constraints import ExcessLoss, LossParity
from skfair.constraints.base import CONSTRAINTS
from skfair.datasets.local import local_datasets
from skfair.losses import LOSSES
from skfair.metrics.labels import LABEL_METRICS, LARGEST_RATES
from skfair.solvers.base import SOLVERS

__all__ = [
    "CONSTRAINTS",
    "CONSTRAINT_KINDS",
    "LABEL_METRICS",
    "LARGEST_RATES",
    "LOSSES",
    "SOLVERS",
    "local_datasets",
]

# What makes each registered constraint, and those whose options change what they limit.
CONSTRAINT_KINDS = {
    **{name: CONSTRAINTS[name] for name in CONSTRAINTS},
    "positive_loss_parity": partial(LossParity, subset="positive"),
    "class_loss_parity": partial(LossParity, subset="class"),
    "mean_excess_loss": partial(ExcessLoss, agg="mean"),
}
