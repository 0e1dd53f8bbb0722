"""Constraints on numbers: mean scores, mean residuals, and whole distributions of predictions.

No model is trained under the last two: :class:`skfair.regression.FairDecisionRegressor` moves the
predictions of a fitted one until they are satisfied.
"""

from __future__ import annotations

from skfair.constraints.base import CONSTRAINTS, Constraint, OneLimit, TrainingRows, documented
from skfair.constraints.moments import MeanScore, Moment

# What FairDecisionRegressor takes besides; all of them can be imported from skfair.constraints.
__all__ = ["Kolmogorov", "MeanResidualParity", "Wasserstein"]


@CONSTRAINTS.register("mean_score_parity")
@documented
class MeanScoreParity(Constraint):
    """Bound the difference of mean scores between groups.

    Scores are predictions of a regressor, the ``decision_function`` of a classifier.
    """

    metric = "mean_score_difference"
    tasks = frozenset({"classification", "regression", "predictions"})

    def moment(self, rows: TrainingRows) -> Moment:
        return MeanScore()


class _OfPredictions(OneLimit):
    """What constraints share that limit predictions after a fit."""

    tasks = frozenset({"predictions"})


@CONSTRAINTS.register("mean_residual_parity")
@documented
class MeanResidualParity(_OfPredictions):
    """Bound the difference of mean residuals: no group is overrated against another."""

    metric = "mean_residual_difference"


@CONSTRAINTS.register("wasserstein")
@documented
class Wasserstein(_OfPredictions):
    """Bound the mean distance by which predictions of two groups would have to be moved."""

    metric = "wasserstein_gap"


@CONSTRAINTS.register("kolmogorov")
@documented
class Kolmogorov(_OfPredictions):
    """Bound the difference of selection rates at every threshold."""

    metric = "statistical_parity_gap"
