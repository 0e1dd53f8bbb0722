"""Accuracy parity: the model is right equally often in all groups."""

from __future__ import annotations

import numpy as np

from skfair.constraints.base import CONSTRAINTS, Constraint, TrainingRows
from skfair.constraints.moments import Moment, Rate


@CONSTRAINTS.register("accuracy_parity")
class AccuracyParity(Constraint):
    """Bound the difference of accuracies, the shares of right predictions.

    Measured by :func:`skfair.metrics.accuracy_parity_difference`.

    Parameters
    ----------
    max_disparity : float, default=None
        The bound of this rule; None for that of the estimator.
    reference : {"pairwise", "overall"}, default="pairwise"
        What a group is compared with: the other groups of its attribute, or all rows.

    Examples
    --------
    >>> from skfair.constraints import AccuracyParity
    >>> AccuracyParity(reference="overall")
    AccuracyParity(reference='overall')
    """

    def moment(self, rows: TrainingRows) -> Moment:
        """Return what is averaged: right predictions.

        Parameters
        ----------
        rows : TrainingRows
            Groups, targets, weights and loss.

        Returns
        -------
        moment : Moment
            A function of the scores.
        """
        return Rate(np.sign(rows.targets))
