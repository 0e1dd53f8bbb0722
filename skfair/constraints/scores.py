"""Constraints on numbers: mean scores, mean residuals, and whole distributions of predictions.

Models can be trained under :class:`MeanScoreParity`. The others have no moment: they are for
post-processing by :class:`skfair.regression.FairDecisionRegressor`, which moves the predictions of
a fitted model until they are satisfied (``skfair/enforcement/regression_maps.py``).
"""

from __future__ import annotations

from skfair.constraints.base import CONSTRAINTS, Constraint, OneLimit, TrainingRows
from skfair.constraints.documenting import documented
from skfair.constraints.moments import MeanScore, Moment

# Further names that the package ``skfair.constraints`` offers, all for FairDecisionRegressor.
__all__ = ["Kolmogorov", "MeanResidualParity", "Wasserstein"]


@CONSTRAINTS.register("mean_score_parity")
@documented(before="1.37", after="0.05", loose=2.0)
class MeanScoreParity(Constraint):
    """Bound the difference of mean scores between groups.

    Scores are the predictions of a regressor, or the ``decision_function`` of a classifier.
    """

    metric = "mean_score_difference"
    tasks = frozenset({"classification", "regression", "predictions"})

    def moment(self, rows: TrainingRows) -> Moment:
        return MeanScore()


class _OfPredictions(OneLimit):
    """The base of constraints that limit predictions after a fit."""

    tasks = frozenset({"predictions"})
    taken_by = "FairDecisionRegressor"


@CONSTRAINTS.register("mean_residual_parity")
@documented(before="0.26", after="0.05")
class MeanResidualParity(_OfPredictions):
    """Bound the difference of mean residuals between groups.

    The residual is the prediction minus the target, so predictions for one group may not be
    systematically too high compared with another group.
    """

    metric = "mean_residual_difference"


@CONSTRAINTS.register("wasserstein")
@documented(before="1.00", after="0.50", loose=2.0, limit=0.5)
class Wasserstein(_OfPredictions):
    """Bound the Wasserstein distance between the predictions of groups.

    The distance is the mean distance by which the predictions of one group would have to be moved
    to obtain the distribution of the other group. It is measured in units of the predictions.
    """

    metric = "wasserstein_gap"


@CONSTRAINTS.register("kolmogorov")
@documented(before="0.33", after="0.30", limit=0.3)
class Kolmogorov(_OfPredictions):
    """Bound the difference of selection rates between groups at every threshold.

    This is the Kolmogorov-Smirnov distance between the distributions of predictions.
    """

    metric = "statistical_parity_gap"
