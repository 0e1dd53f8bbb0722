"""What ``skfair.metrics`` offers; imported when one of these names is first asked for there."""

from skfair.metrics.clusters import (
    balance_score,
    cluster_balances,
    kl_fairness_error,
    kmeans_cost,
    normalized_cut,
    price_of_fairness,
    share_deviation,
    share_ratio,
)
from skfair.metrics.disparity_tests import disparity_test, disparity_upper_bound, sample_size
from skfair.metrics.fronts import hypervolume, nondominated
from skfair.metrics.intervals import noise_floor, suggest_interval
from skfair.metrics.labels import (
    accuracy_parity_difference,
    accuracy_parity_ratio,
    demographic_parity_difference,
    demographic_parity_ratio,
    equal_opportunity_difference,
    equal_opportunity_ratio,
    equalized_odds_difference,
    equalized_odds_ratio,
    false_negative_parity_difference,
    false_negative_parity_ratio,
    false_positive_parity_difference,
    false_positive_parity_ratio,
    independence_gap,
    largest_false_negative_rate,
    largest_false_positive_rate,
    largest_selection_rate,
    predictive_parity_difference,
    predictive_parity_ratio,
    separation_gap,
    sufficiency_gap,
    treatment_equality_difference,
    treatment_equality_ratio,
)
from skfair.metrics.losses import (
    excess_loss,
    largest_group_loss,
    loss_parity_difference,
    mean_residual_difference,
    mean_score_difference,
)
from skfair.metrics.own_metrics import make_group_metric
from skfair.metrics.partial import (
    partial_ccdf_gap,
    partial_demographic_parity_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
)
from skfair.metrics.proxy_bounds import disparity_bounds
from skfair.metrics.rankings import exposure_gap, ndcg, pair_error_gap, rank_gap
from skfair.metrics.reports import Report, fairness_report, group_report
from skfair.metrics.scorers import get_scorer, get_scorer_names, make_fairness_scorer
from skfair.metrics.scores import (
    group_auc_gap,
    inter_group_pairwise_gap,
    intra_group_pairwise_gap,
    statistical_parity_gap,
    wasserstein_gap,
)
from skfair.metrics.selection import impact_ratios, selection_tests

__all__ = [
    # labels
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "equal_opportunity_ratio",
    "false_positive_parity_difference",
    "false_positive_parity_ratio",
    "false_negative_parity_difference",
    "false_negative_parity_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "predictive_parity_difference",
    "predictive_parity_ratio",
    "treatment_equality_difference",
    "treatment_equality_ratio",
    "accuracy_parity_difference",
    "accuracy_parity_ratio",
    "independence_gap",
    "separation_gap",
    "sufficiency_gap",
    "largest_selection_rate",
    "largest_false_positive_rate",
    "largest_false_negative_rate",
    # scores
    "statistical_parity_gap",
    "wasserstein_gap",
    "group_auc_gap",
    "inter_group_pairwise_gap",
    "intra_group_pairwise_gap",
    # losses and mean scores
    "loss_parity_difference",
    "largest_group_loss",
    "excess_loss",
    "mean_score_difference",
    "mean_residual_difference",
    # scores within a percentile interval
    "partial_statistical_parity_gap",
    "partial_demographic_parity_gap",
    "partial_group_auc_gap",
    "partial_equal_opportunity_gap",
    "partial_equalized_odds_gap",
    "partial_ccdf_gap",
    "noise_floor",
    "suggest_interval",
    # adverse impact, from counts
    "impact_ratios",
    "selection_tests",
    # do limits hold for new people?
    "disparity_test",
    "disparity_upper_bound",
    "disparity_bounds",
    "sample_size",
    # rankings of queries
    "pair_error_gap",
    "exposure_gap",
    "rank_gap",
    "ndcg",
    # clusterings
    "balance_score",
    "cluster_balances",
    "share_deviation",
    "share_ratio",
    "kl_fairness_error",
    "kmeans_cost",
    "normalized_cut",
    "price_of_fairness",
    "hypervolume",
    "nondominated",
    # reports and scorers
    "group_report",
    "fairness_report",
    "Report",
    "make_fairness_scorer",
    "make_group_metric",
    "get_scorer",
    "get_scorer_names",
]
