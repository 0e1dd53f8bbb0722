"""Constraints on mean losses: a limit on their differences, or on the largest mean loss.

Table 1 of fairness_constrained_benchmark calls the parity constraints demographic parity, equal
opportunity and equalized odds. They are not: on COMPAS the plain model already meets 0.02 while its
selection rates differ by 0.245. Hence the names. The third row of the table bounds the sum of the
absolute differences of both classes, ``ClassLossParity(sum_classes="absolute")``: more than
``ClassLossParity(sum_classes=True)``, which limits the difference of the sums, and less than
``ClassLossParity`` with half the limit. The excess constraints are (18) of plada: the mean over the
groups, and, as its text has it, every group by itself. Its groups overlap; ``members_only=True``
limits those who are in each of them, and not those who are not.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from skfair.constraints.base import CONSTRAINTS, Constraint, OneLimit, TrainingRows, documented
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.cells import AddsClasses
from skfair.constraints.comparisons import Comparison, Excess, MeanExcess
from skfair.constraints.moments import MeanLoss, Moment
from skfair.losses import Loss

_EVERYWHERE = frozenset({"classification", "regression"})


class _OnLosses(Constraint):
    """The base of constraints on losses."""

    metric = "loss_parity_difference"

    def moment(self, rows: TrainingRows) -> Moment:
        return MeanLoss(rows.loss, rows.targets)

    @property
    def depends_on_pos_label(self) -> bool:
        return self.subset == "positive"  # the loss of a row is the same for both

    def metric_options(self, loss: str | Loss, pos_label: object = None) -> dict[str, Any]:
        task = {"task": "regression"} if pos_label is None else {"pos_label": pos_label}
        return {**super().metric_options(loss), "loss": loss, "subset": self.subset, **task}


@CONSTRAINTS.register("loss_parity")
@documented("0.19", "0.05")
class LossParity(_OnLosses):
    """Bound the difference of mean losses between groups.

    The loss is the one that the estimator minimises. For squared errors the limit applies to the
    whole squared error, although :class:`~skfair.regression.ConstrainedERMRegressor` minimises half
    of it. Equal losses do not imply equal selection rates.
    """

    tasks = _EVERYWHERE | {"predictions"}


@CONSTRAINTS.register("positive_loss_parity")
@documented("0.58", "0.05")
class PositiveLossParity(LossParity):
    """Bound the difference of mean losses between groups among the positive class."""

    subset = "positive"
    tasks = frozenset({"classification"})


@CONSTRAINTS.register("class_loss_parity")
@documented("0.58", "0.05")
class ClassLossParity(LossParity):
    """Bound the difference of mean losses between groups within each class.

    Parameters
    ----------
    sum_classes : bool or "absolute", default=False
        If False, each class is limited separately. If True, the mean losses of both classes are
        added before groups are compared, so a difference in one class may compensate for the
        opposite difference in the other. If "absolute", the absolute differences of both classes
        are added, so differences cannot compensate for each other. This is the third row of table 1
        of fairness_constrained_benchmark.
    """

    subset = "class"
    tasks = frozenset({"classification"})

    def __init__(
        self,
        max_disparity: float | None = None,
        reference: Literal["pairwise", "overall"] = "pairwise",
        sum_classes: AddsClasses = False,
    ) -> None:
        super().__init__(max_disparity, reference)
        self.sum_classes = sum_classes

    @property
    def adds_classes(self) -> AddsClasses:  # type: ignore[override]
        """Whether both classes are added up: their means, or the absolute differences."""
        if self.sum_classes not in (False, True, "absolute"):
            raise ValueError(
                f"sum_classes must be False, True or 'absolute', got {self.sum_classes!r}."
            )
        return self.sum_classes

    def metric_options(  # noqa: D102 (inherited)
        self, loss: str | Loss, pos_label: object = None
    ) -> dict[str, Any]:
        return {**super().metric_options(loss, pos_label), "sum_classes": self.sum_classes}


@CONSTRAINTS.register("bounded_group_loss")
@documented("0.61", "0.55", limit=0.55)
class BoundedGroupLoss(_OnLosses, OneLimit):
    """Bound the mean loss of every group.

    ``max_disparity`` is the largest mean loss that is allowed. Groups are not compared with each
    other.
    """

    comparison = "bounded"
    metric = "largest_group_loss"
    tasks = _EVERYWHERE


class _OnExcess(_OnLosses):
    """The base of constraints on the excess of the groups' losses over the mean loss."""

    metric = "excess_loss"
    tasks = _EVERYWHERE
    comparison = Excess()

    def __init__(
        self,
        max_disparity: float | None = None,
        reference: Literal["overall"] = "overall",
        members_only: bool = False,
    ) -> None:
        super().__init__(max_disparity)
        self.reference: Literal["overall"] = reference
        self.members_only = members_only

    def prepare(self, rows: TrainingRows, max_disparity: float) -> BoundConstraint:
        bound = super().prepare(rows, max_disparity)
        if not self.members_only:
            return bound
        which = np.flatnonzero(np.isin(bound.rate_groups, rows.groups.levels.members()))
        return bound.restricted(which, bound.max_disparity, bound.name)

    def compared(self) -> Comparison:
        """Return how the rates of groups become one number."""
        if self.reference != "overall":
            raise ValueError(
                f"{type(self).__name__} compares the groups with all rows, reference='overall'; "
                f"got {self.reference!r}. LossParity compares pairs of groups."
            )
        return super().compared()

    def metric_options(self, loss: str | Loss, pos_label: object = None) -> dict[str, Any]:
        options = super().metric_options(loss, pos_label)
        del options["subset"], options["reference"]
        return {**options, "members_only": self.members_only}


@CONSTRAINTS.register("excess_loss")
@documented("0.14", "0.05")
class ExcessLoss(_OnExcess):
    """Bound the excess of each group's mean loss over the mean loss of all rows.

    Groups with smaller losses are not constrained.

    Parameters
    ----------
    reference : {"overall"}, default="overall"
        Each group is compared with all rows. No other value is allowed.
    members_only : bool, default=False
        If True, each sensitive attribute marks the members of one group (1 or True) among all rows
        (0 or False), and only members are constrained, as in (18) of plada. Groups may overlap if
        several columns are passed with ``Sensitive(crossed=False)``.
    """


@CONSTRAINTS.register("mean_excess_loss")
@documented("0.05", "0.02", limit=0.02)
class MeanExcessLoss(_OnExcess):
    """Bound the mean excess of the groups' losses over the mean loss of all rows.

    This is equation (18) of plada. The constraint limits a single number, so the loss of any one
    group may still be large. It is always satisfied if groups have equal size and do not overlap.

    Parameters
    ----------
    reference : {"overall"}, default="overall"
        Each group is compared with all rows. No other value is allowed.
    members_only : bool, default=False
        If True, each sensitive attribute marks the members of one group (1 or True) among all rows
        (0 or False), and only members are constrained, as in (18) of plada. Groups may overlap if
        several columns are passed with ``Sensitive(crossed=False)``.
    """

    comparison = MeanExcess()

    def metric_options(  # noqa: D102 (inherited)
        self, loss: str | Loss, pos_label: object = None
    ) -> dict[str, Any]:
        return {**super().metric_options(loss, pos_label), "agg": "mean"}
