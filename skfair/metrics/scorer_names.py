"""Which scorers have names, and which response of a model each metric is computed from."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.metrics import accuracy_score

from skfair.metrics import clusters, labels, losses, partial_rates, rankings, scores
from skfair.metrics import partial as partial_metrics

# What each leading parameter of a metric stands for: which response it needs, if any.
RESPONSES: dict[str, str | tuple[str, ...] | None] = {
    "X": None,
    "y_true": None,
    "y_pred": "predict",
    "labels": "predict",
    "y_score": ("decision_function", "predict_proba"),
}

Metric = Callable[..., float]

_SMALLER_IS_BETTER: tuple[Metric, ...] = (
    scores.statistical_parity_gap,
    scores.wasserstein_gap,
    scores.group_auc_gap,
    scores.inter_group_pairwise_gap,
    scores.intra_group_pairwise_gap,
    losses.loss_parity_difference,
    losses.largest_group_loss,
    losses.excess_loss,
    losses.mean_score_difference,
    losses.mean_residual_difference,
    partial_metrics.partial_statistical_parity_gap,
    partial_metrics.partial_group_auc_gap,
    partial_metrics.partial_ccdf_gap,
    partial_rates.partial_demographic_parity_gap,
    partial_rates.partial_equal_opportunity_gap,
    partial_rates.partial_equalized_odds_gap,
    rankings.pair_error_gap,
    rankings.exposure_gap,
    rankings.rank_gap,
    clusters.share_deviation,
    clusters.kl_fairness_error,
    *(getattr(labels, name) for name in labels.LARGEST_RATES),
)
# Name of the scorer -> (metric, greater is better). As in scikit-learn, a metric that is better
# when smaller is negated, and its scorer's name says so.
SCORERS: dict[str, tuple[Metric, bool]] = {
    **{
        (name if spec.greater_is_better else f"neg_{name}"): (
            getattr(labels, name),
            spec.greater_is_better,
        )
        for name, spec in labels.LABEL_METRICS.items()
    },
    **{f"neg_{metric.__name__}": (metric, False) for metric in _SMALLER_IS_BETTER},
    # For group-aware models, to which scikit-learn's scorer of this name passes no groups.
    "accuracy": (accuracy_score, True),
    "ndcg": (rankings.ndcg, True),
    "balance_score": (clusters.balance_score, True),
    "share_ratio": (clusters.share_ratio, True),
}

# Response methods other than those above.
METHODS: dict[Metric, str | tuple[str, ...]] = {
    # The loss of a probability is not the loss of a score.
    losses.loss_parity_difference: "decision_function",
    losses.largest_group_loss: "decision_function",
    losses.excess_loss: "decision_function",
    **dict.fromkeys(
        (rankings.pair_error_gap, rankings.exposure_gap, rankings.rank_gap, rankings.ndcg),
        ("decision_function", "predict_proba", "predict"),
    ),
}
