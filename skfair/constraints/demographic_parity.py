"""Demographic parity: all groups are selected at the same rate."""

from __future__ import annotations

from skfair.constraints.base import CONSTRAINTS, Constraint, TrainingRows
from skfair.constraints.moments import Moment, Rate


@CONSTRAINTS.register("demographic_parity")
class DemographicParity(Constraint):
    """Bound the difference of selection rates, the shares of positive predictions.

    Measured by :func:`skfair.metrics.demographic_parity_difference`.

    Parameters
    ----------
    max_disparity : float, default=None
        The bound of this rule; None for that of the estimator.
    reference : {"pairwise", "overall"}, default="pairwise"
        What a group is compared with: the other groups of its attribute, or all rows.

    Examples
    --------
    >>> from skfair.constraints import DemographicParity
    >>> DemographicParity(reference="overall")
    DemographicParity(reference='overall')
    """

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
