"""Bounded group loss: no group's mean loss is above a bound."""

from __future__ import annotations

from skfair.constraints.base import CONSTRAINTS, Constraint, TrainingRows
from skfair.constraints.bound import Comparison
from skfair.constraints.moments import MeanLoss, Moment


@CONSTRAINTS.register("bounded_group_loss")
class BoundedGroupLoss(Constraint):
    """Bound the mean loss of every group.

    Measured by :func:`skfair.metrics.largest_group_loss`; ``max_disparity`` is the largest mean
    loss allowed. Groups are not compared.

    Parameters
    ----------
    max_disparity : float, default=None
        The bound of this rule; None for that of the estimator.

    Examples
    --------
    >>> from skfair.constraints import BoundedGroupLoss
    >>> BoundedGroupLoss(0.5)
    BoundedGroupLoss(max_disparity=0.5)
    """

    tasks = frozenset({"classification", "regression"})

    def __init__(self, max_disparity: float | None = None) -> None:
        super().__init__(max_disparity)

    @property
    def comparison(self) -> Comparison:
        """Each group's loss is bounded by itself."""
        return "bounded"

    def moment(self, rows: TrainingRows) -> Moment:
        """Return what is averaged: the loss.

        Parameters
        ----------
        rows : TrainingRows
            Groups, targets, weights and loss.

        Returns
        -------
        moment : Moment
            A function of the scores.
        """
        return MeanLoss(rows.loss, rows.targets)
