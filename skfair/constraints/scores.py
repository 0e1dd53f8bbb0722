"""Rules on mean scores."""

from __future__ import annotations

from skfair.constraints.base import CONSTRAINTS, Constraint, TrainingRows, documented
from skfair.constraints.moments import MeanScore, Moment


@CONSTRAINTS.register("mean_score_parity")
@documented
class MeanScoreParity(Constraint):
    """Bound the difference of mean scores between groups.

    Scores are predictions of a regressor, the ``decision_function`` of a classifier.
    """

    metric = "mean_score_difference"
    tasks = frozenset({"classification", "regression"})

    def moment(self, rows: TrainingRows) -> Moment:  # noqa: D102 (inherited)
        return MeanScore()
