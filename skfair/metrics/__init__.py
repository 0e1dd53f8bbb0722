"""Group metrics, reports and scorers.

All metrics have the same signature: ``metric(y_true, y_pred_or_score, *, sensitive_features, ...)``
for supervised models and ``metric(labels, *, sensitive_features, ...)`` for clusterings. They
import nothing that enforces fairness, so a model is never measured by the code that constrained it.

All of them accept Dask collections, except ``normalized_cut`` and the metrics of rankings: blocks
are read where they are, and only few weighted rows that stand for all others travel
(:mod:`skfair.groups.weighted_rows`).
"""

from typing import TYPE_CHECKING

from skfair.utils.deferred import deferred
from skfair.utils.wings import names_of_wings

if TYPE_CHECKING:
    from skfair.cluster.spectral.metrics import normalized_cut as normalized_cut
    from skfair.metrics._all import *
    from skfair.partial_parity.metrics import partial_ccdf_gap as partial_ccdf_gap
    from skfair.partial_parity.metrics import (
        partial_demographic_parity_gap as partial_demographic_parity_gap,
    )
    from skfair.partial_parity.metrics import (
        partial_equal_opportunity_gap as partial_equal_opportunity_gap,
    )
    from skfair.partial_parity.metrics import (
        partial_equalized_odds_gap as partial_equalized_odds_gap,
    )
    from skfair.partial_parity.metrics import partial_group_auc_gap as partial_group_auc_gap
    from skfair.partial_parity.metrics import (
        partial_statistical_parity_gap as partial_statistical_parity_gap,
    )
    from skfair.partial_parity.metrics import suggest_interval as suggest_interval
    from skfair.ranking.metrics import exposure_gap as exposure_gap
    from skfair.ranking.metrics import ndcg as ndcg
    from skfair.ranking.metrics import pair_error_gap as pair_error_gap
    from skfair.ranking.metrics import rank_gap as rank_gap
else:
    __getattr__, __dir__ = deferred(__name__)

__all__ = [
    # labels
    "demographic_parity_difference", "demographic_parity_ratio", "equal_opportunity_difference",
    "equal_opportunity_ratio", "false_positive_parity_difference", "false_positive_parity_ratio",
    "false_negative_parity_difference", "false_negative_parity_ratio", "equalized_odds_difference",
    "equalized_odds_ratio", "predictive_parity_difference", "predictive_parity_ratio",
    "false_omission_parity_difference", "false_omission_parity_ratio",
    "treatment_equality_difference", "treatment_equality_ratio", "accuracy_parity_difference",
    "accuracy_parity_ratio", "independence_gap", "separation_gap", "sufficiency_gap",
    "largest_selection_rate", "largest_false_positive_rate", "largest_false_negative_rate",
    # scores
    "statistical_parity_gap", "wasserstein_gap", "group_auc_gap", "inter_group_pairwise_gap",
    "intra_group_pairwise_gap", "calibration_difference", "expected_calibration_error",
    # losses and mean scores
    "loss_parity_difference", "largest_group_loss", "excess_loss", "mean_score_difference",
    "mean_residual_difference",
    # what random groups show
    "noise_floor",
    # adverse impact, from counts
    "impact_ratios", "selection_tests",
    # do limits hold for new people?
    "disparity_test", "disparity_upper_bound", "disparity_bounds", "outcome_bounds",
    "sample_size",
    # clusterings
    "balance_score", "cluster_balances", "share_deviation", "share_ratio", "kl_fairness_error",
    "kmeans_cost", "price_of_fairness", "hypervolume", "nondominated",
    # reports and scorers
    "group_report", "fairness_report", "make_fairness_scorer", "make_group_metric",
    "get_scorer", "get_scorer_names",
    # those of one family, such as rankings or spectral clustering, are in its folder
    *names_of_wings(__name__),
]  # fmt: skip
