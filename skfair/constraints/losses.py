"""Constraints on mean losses.

- :class:`LossParity` limits the differences of mean losses between groups,
- :class:`BoundedGroupLoss` limits the mean loss of each group,
- :class:`ExcessLoss` limits the excess of a group's mean loss over the mean loss of all rows.

Table 1 of fairness_constrained_benchmark calls the parity constraints demographic parity, equal
opportunity and equalized odds. They limit losses, not rates: on COMPAS the plain model already
satisfies a limit of 0.02 while its selection rates differ by 0.245. Therefore they have other names
here. The third row of the table limits the sum of the absolute differences of both classes, which
is ``LossParity(subset="class", sum_classes="absolute")``. It is stricter than ``sum_classes=True``,
which limits the difference of the sums, and less strict than half the limit for each class.

``ExcessLoss`` is equation (18) of plada. The equation limits the mean over the groups
(``agg="mean"``), but the text of the paper limits every group (``agg="worst"``). The groups of that
paper overlap. With ``members_only=True``, the members of each group are limited, and the rows
outside a group are not a group of their own.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from skfair.constraints.base import CONSTRAINTS, Constraint, OneLimit, TrainingRows
from skfair.constraints.bound import BoundConstraint
from skfair.constraints.cells import AddsClasses
from skfair.constraints.comparisons import Comparison, Excess, MeanExcess
from skfair.constraints.documenting import documented
from skfair.constraints.moments import MeanLoss, Moment
from skfair.losses import Loss

_CLASSES = frozenset({"classification"})
_EVERYWHERE = _CLASSES | {"regression"}


class _OnLosses(Constraint):
    """The base of constraints on losses."""

    metric = "loss_parity_difference"

    def moment(self, rows: TrainingRows) -> Moment:
        return MeanLoss(rows.loss, rows.targets)

    @property
    def depends_on_pos_label(self) -> bool:
        # The loss of a row is the same whichever class is the positive one.
        return self.subset == "positive"

    def metric_options(self, loss: str | Loss, pos_label: object = None) -> dict[str, Any]:
        # Without a positive class, the task is regression.
        task = {"task": "regression"} if pos_label is None else {"pos_label": pos_label}
        return {**super().metric_options(loss), "loss": loss, "subset": self.subset, **task}


@CONSTRAINTS.register("loss_parity")
@documented(before="0.19", after="0.05")
class LossParity(_OnLosses):
    """Bound the difference of mean losses between groups.

    The loss is the one that the estimator minimises. For squared errors the limit applies to the
    whole squared error, although :class:`~skfair.regression.ConstrainedERMRegressor` minimises half
    of it. Equal losses do not imply equal selection rates.

    Parameters
    ----------
    subset : {"all", "positive", "class"}, default="all"
        Rows whose losses are compared: all rows, those of the positive class, or those of each
        class separately. "positive" and "class" are for classification.
    sum_classes : bool or "absolute", default=False
        With ``subset="class"``, how the two classes are combined. If False, each class is limited
        separately. If True, the mean losses of both classes are added before groups are compared,
        so a difference in one class may compensate for the opposite difference in the other. If
        "absolute", the absolute differences of both classes are added, so differences cannot
        compensate for each other. This is the third row of table 1 of
        fairness_constrained_benchmark.
    """

    def __init__(
        self,
        max_disparity: float | None = None,
        reference: Literal["pairwise", "overall"] = "pairwise",
        subset: Literal["all", "positive", "class"] = "all",
        sum_classes: AddsClasses = False,
    ) -> None:
        super().__init__(max_disparity, reference)
        self.subset = subset
        self.sum_classes = sum_classes

    @property
    def tasks(self) -> frozenset[str]:  # type: ignore[override]
        """Tasks for which the constraint can be used; a regression target has no classes."""
        if self.subset not in ("all", "positive", "class"):
            raise ValueError(f"subset must be 'all', 'positive' or 'class', got {self.subset!r}.")
        if self.subset != "all":
            return _CLASSES
        # FairDecisionRegressor can limit differences of losses by moving predictions.
        return _EVERYWHERE | {"predictions"}

    @property
    def adds_classes(self) -> AddsClasses:  # type: ignore[override]
        """Whether both classes are added up: their means, or the absolute differences."""
        if self.sum_classes not in (False, True, "absolute"):
            raise ValueError(
                f"sum_classes must be False, True or 'absolute', got {self.sum_classes!r}."
            )
        if self.sum_classes and self.subset != "class":
            raise ValueError(
                f"sum_classes={self.sum_classes!r} adds up both classes, which "
                f"subset={self.subset!r} does not compare. Set subset='class'."
            )
        return self.sum_classes

    def metric_options(  # noqa: D102 (inherited)
        self, loss: str | Loss, pos_label: object = None
    ) -> dict[str, Any]:
        options = super().metric_options(loss, pos_label)
        return options | ({"sum_classes": self.sum_classes} if self.subset == "class" else {})


@CONSTRAINTS.register("bounded_group_loss")
@documented(before="0.61", after="0.55", limit=0.55)
class BoundedGroupLoss(_OnLosses, OneLimit):
    """Bound the mean loss of every group.

    ``max_disparity`` is the largest mean loss that is allowed. Groups are not compared with each
    other.
    """

    comparison = "bounded"
    metric = "largest_group_loss"
    tasks = _EVERYWHERE


@CONSTRAINTS.register("excess_loss")
@documented(before="0.14", after="0.05")
class ExcessLoss(_OnLosses):
    """Bound the excess of each group's mean loss over the mean loss of all rows.

    Groups with smaller losses are not constrained.

    Parameters
    ----------
    agg : {"worst", "mean"}, default="worst"
        If "worst", each group is limited. If "mean", the mean excess of the groups is limited,
        which is equation (18) of plada. The loss of any one group may then still be large, and if
        groups have equal size and do not overlap, the limit is always satisfied.
    members_only : bool, default=False
        If True, each sensitive attribute marks the members of one group (1 or True) among all rows
        (0 or False), and only members are constrained, as in (18) of plada. Groups may overlap if
        several columns are passed with ``Sensitive(intersectional=False)``.
    """

    metric = "excess_loss"
    tasks = _EVERYWHERE

    def __init__(
        self,
        max_disparity: float | None = None,
        agg: Literal["worst", "mean"] = "worst",
        members_only: bool = False,
    ) -> None:
        super().__init__(max_disparity)
        self.agg = agg
        self.members_only = members_only

    @property
    def comparison(self) -> Comparison:  # type: ignore[override]
        """How the mean losses of groups become one number."""
        if self.agg not in ("worst", "mean"):
            raise ValueError(f"agg must be 'worst' or 'mean', got {self.agg!r}.")
        return MeanExcess() if self.agg == "mean" else Excess()

    def prepare(  # noqa: D102 (inherited)
        self, rows: TrainingRows, max_disparity: float
    ) -> BoundConstraint:
        bound = super().prepare(rows, max_disparity)
        if not self.members_only:
            return bound
        # Each attribute has two groups, members and all other rows. Only members are limited.
        which = np.flatnonzero(np.isin(bound.rate_groups, rows.groups.levels.members()))
        return bound.restricted(which, bound.max_disparity, bound.name)

    def metric_options(  # noqa: D102 (inherited)
        self, loss: str | Loss, pos_label: object = None
    ) -> dict[str, Any]:
        options = super().metric_options(loss, pos_label)
        del options["subset"]
        return {**options, "agg": self.agg, "members_only": self.members_only}
