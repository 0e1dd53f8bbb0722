"""Mean-score parity: the groups' mean predictions are alike."""

from __future__ import annotations

from skfair.constraints.base import CONSTRAINTS, Constraint, TrainingRows
from skfair.constraints.moments import MeanScore, Moment


@CONSTRAINTS.register("mean_score_parity")
class MeanScoreParity(Constraint):
    """Bound the difference of mean scores between groups.

    Measured by :func:`skfair.metrics.mean_score_difference`: on predictions for a regressor, on
    ``decision_function`` for a classifier.

    Parameters
    ----------
    max_disparity : float, default=None
        The bound of this rule; None for that of the estimator.
    reference : {"pairwise", "overall"}, default="pairwise"
        What a group is compared with: the other groups of its attribute, or all rows.

    Examples
    --------
    >>> from skfair.constraints import MeanScoreParity
    >>> MeanScoreParity()
    MeanScoreParity()
    """

    tasks = frozenset({"classification", "regression"})

    def moment(self, rows: TrainingRows) -> Moment:
        """Return what is averaged: the score.

        Parameters
        ----------
        rows : TrainingRows
            Groups, targets, weights and loss.

        Returns
        -------
        moment : Moment
            A function of the scores.
        """
        return MeanScore()
