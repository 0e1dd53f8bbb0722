"""Equalized odds: equal true and false positive rates, (17) of plada."""

from __future__ import annotations

from skfair.constraints.base import CONSTRAINTS, Constraint, TrainingRows
from skfair.constraints.moments import Moment, Rate


@CONSTRAINTS.register("equalized_odds")
class EqualizedOdds(Constraint):
    """Bound the differences of true positive and of false positive rates, the larger of both.

    Measured by :func:`skfair.metrics.equalized_odds_difference`.

    Parameters
    ----------
    max_disparity : float, default=None
        The bound of this rule; None for that of the estimator.
    reference : {"pairwise", "overall"}, default="pairwise"
        What a group is compared with: the other groups of its attribute, or all rows.

    Examples
    --------
    >>> from skfair.constraints import EqualizedOdds
    >>> EqualizedOdds(reference="overall")
    EqualizedOdds(reference='overall')
    """

    given = "class"

    def moment(self, rows: TrainingRows) -> Moment:
        """Return what is averaged: positive predictions.

        Parameters
        ----------
        rows : TrainingRows
            Groups, targets, weights and loss.

        Returns
        -------
        moment : Moment
            A function of the scores.
        """
        return Rate()
