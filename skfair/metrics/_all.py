"""The public names of ``skfair.metrics``, imported when one of them is first used."""

from skfair.metrics.clusters import balance_score as balance_score
from skfair.metrics.clusters import cluster_balances as cluster_balances
from skfair.metrics.clusters import kl_fairness_error as kl_fairness_error
from skfair.metrics.clusters import kmeans_cost as kmeans_cost
from skfair.metrics.clusters import normalized_cut as normalized_cut
from skfair.metrics.clusters import price_of_fairness as price_of_fairness
from skfair.metrics.clusters import share_deviation as share_deviation
from skfair.metrics.clusters import share_ratio as share_ratio
from skfair.metrics.disparity_tests import disparity_test as disparity_test
from skfair.metrics.disparity_tests import disparity_upper_bound as disparity_upper_bound
from skfair.metrics.disparity_tests import sample_size as sample_size
from skfair.metrics.fronts import hypervolume as hypervolume
from skfair.metrics.fronts import nondominated as nondominated
from skfair.metrics.intervals import noise_floor as noise_floor
from skfair.metrics.intervals import suggest_interval as suggest_interval
from skfair.metrics.labels import accuracy_parity_difference as accuracy_parity_difference
from skfair.metrics.labels import accuracy_parity_ratio as accuracy_parity_ratio
from skfair.metrics.labels import demographic_parity_difference as demographic_parity_difference
from skfair.metrics.labels import demographic_parity_ratio as demographic_parity_ratio
from skfair.metrics.labels import equal_opportunity_difference as equal_opportunity_difference
from skfair.metrics.labels import equal_opportunity_ratio as equal_opportunity_ratio
from skfair.metrics.labels import equalized_odds_difference as equalized_odds_difference
from skfair.metrics.labels import equalized_odds_ratio as equalized_odds_ratio
from skfair.metrics.labels import (
    false_negative_parity_difference as false_negative_parity_difference,
)
from skfair.metrics.labels import false_negative_parity_ratio as false_negative_parity_ratio
from skfair.metrics.labels import (
    false_positive_parity_difference as false_positive_parity_difference,
)
from skfair.metrics.labels import false_positive_parity_ratio as false_positive_parity_ratio
from skfair.metrics.labels import independence_gap as independence_gap
from skfair.metrics.labels import largest_false_negative_rate as largest_false_negative_rate
from skfair.metrics.labels import largest_false_positive_rate as largest_false_positive_rate
from skfair.metrics.labels import largest_selection_rate as largest_selection_rate
from skfair.metrics.labels import predictive_parity_difference as predictive_parity_difference
from skfair.metrics.labels import predictive_parity_ratio as predictive_parity_ratio
from skfair.metrics.labels import separation_gap as separation_gap
from skfair.metrics.labels import sufficiency_gap as sufficiency_gap
from skfair.metrics.labels import treatment_equality_difference as treatment_equality_difference
from skfair.metrics.labels import treatment_equality_ratio as treatment_equality_ratio
from skfair.metrics.losses import excess_loss as excess_loss
from skfair.metrics.losses import largest_group_loss as largest_group_loss
from skfair.metrics.losses import loss_parity_difference as loss_parity_difference
from skfair.metrics.losses import mean_residual_difference as mean_residual_difference
from skfair.metrics.losses import mean_score_difference as mean_score_difference
from skfair.metrics.own_metrics import make_group_metric as make_group_metric
from skfair.metrics.partial import partial_ccdf_gap as partial_ccdf_gap
from skfair.metrics.partial import partial_demographic_parity_gap as partial_demographic_parity_gap
from skfair.metrics.partial import partial_equal_opportunity_gap as partial_equal_opportunity_gap
from skfair.metrics.partial import partial_equalized_odds_gap as partial_equalized_odds_gap
from skfair.metrics.partial import partial_group_auc_gap as partial_group_auc_gap
from skfair.metrics.partial import partial_statistical_parity_gap as partial_statistical_parity_gap
from skfair.metrics.proxy_bounds import disparity_bounds as disparity_bounds
from skfair.metrics.rankings import exposure_gap as exposure_gap
from skfair.metrics.rankings import ndcg as ndcg
from skfair.metrics.rankings import pair_error_gap as pair_error_gap
from skfair.metrics.rankings import rank_gap as rank_gap
from skfair.metrics.reports import Report as Report
from skfair.metrics.reports import fairness_report as fairness_report
from skfair.metrics.reports import group_report as group_report
from skfair.metrics.scorers import get_scorer as get_scorer
from skfair.metrics.scorers import get_scorer_names as get_scorer_names
from skfair.metrics.scorers import make_fairness_scorer as make_fairness_scorer
from skfair.metrics.scores import group_auc_gap as group_auc_gap
from skfair.metrics.scores import inter_group_pairwise_gap as inter_group_pairwise_gap
from skfair.metrics.scores import intra_group_pairwise_gap as intra_group_pairwise_gap
from skfair.metrics.scores import statistical_parity_gap as statistical_parity_gap
from skfair.metrics.scores import wasserstein_gap as wasserstein_gap
from skfair.metrics.selection import impact_ratios as impact_ratios
from skfair.metrics.selection import selection_tests as selection_tests
