"""False positive parity: nobody's group is wrongly selected more often."""

from __future__ import annotations

from skfair.constraints.base import CONSTRAINTS, Constraint, TrainingRows
from skfair.constraints.moments import Moment, Rate


@CONSTRAINTS.register("false_positive_parity")
class FalsePositiveParity(Constraint):
    """Bound the difference of false positive rates: selection among the negative class.

    Measured by :func:`skfair.metrics.false_positive_parity_difference`.

    Parameters
    ----------
    max_disparity : float, default=None
        The bound of this rule; None for that of the estimator.
    reference : {"pairwise", "overall"}, default="pairwise"
        What a group is compared with: the other groups of its attribute, or all rows.

    Examples
    --------
    >>> from skfair.constraints import FalsePositiveParity
    >>> FalsePositiveParity(reference="overall")
    FalsePositiveParity(reference='overall')
    """

    given = "negative"

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
