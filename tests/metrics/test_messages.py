"""What metrics say of wrong calls, beyond what ``test_every_metric`` asks of each of them."""

import numpy as np

from skfair import metrics
from skfair.metrics import (
    cluster_balances,
    hypervolume,
    kmeans_cost,
    nondominated,
    price_of_fairness,
)
from tests.messages import messages, of_calls

GROUPS = ["f", "m"]


def odds(y, p, **options):
    metrics.equal_opportunity_difference(y, p, sensitive_features=GROUPS, **options)


def loss(y=(0, 1), metric=metrics.loss_parity_difference, **options):
    metric(y, [1.0, 2.0], sensitive_features=GROUPS, **options)


def balances(labels=(0, 1), metric=cluster_balances, **options):
    metric(labels, sensitive_features=GROUPS, **options)


def parity(s=(1, 2), groups=("a", "b"), metric=metrics.statistical_parity_gap, **options):
    metric(None, s, sensitive_features=groups, **options)


def chance(metric, **options):
    metric(np.tile([0, 1], 50), np.append(-2.0, np.ones(99)), **options)


NUMBERS = {"task": "regression", "loss": "squared_error"}
test_metrics_say_what_is_wrong = messages(
    *of_calls(
        odds,
        ("'no', 'yes'.* none in common", {"y": [0, 1], "p": ["no", "yes"]}),
        ("y_pred has the labels 0, 2, which do not", {"y": [0, 1], "p": [0, 2]}),
        ("pos_label='yes' is not one", {"y": [0, 0], "p": [0, 0], "pos_label": "yes"}),
        ("pos_label='yes' is not one", {"y": ["n"] * 2, "p": ["n", "y"], "pos_label": "yes"}),
        ("none in common", {"y": ["n", "y"], "p": ["N", "Y"], "pos_label": "y"}),
    ),
    *of_calls(
        parity,
        ("selection rate is 0 in both", {"metric": metrics.demographic_parity_ratio, "s": [0, 0]}),
        ("ties must be 'half' or 'geq'", {"metric": metrics.group_auc_gap, "ties": "none"}),
    ),
    *of_calls(
        chance,
        (
            "from -2 to 1.*Pass the output of predict_proba",
            {"metric": metrics.calibration_difference, "sensitive_features": GROUPS * 50},
        ),
        ("from -2 to 1.*Pass the output", {"metric": metrics.expected_calibration_error}),
    ),
    *of_calls(
        loss,
        ("Pass one of them as pos_label", {"y": [0, 2]}),
        ("y_true has 1 value", {"y": [0.5, np.nan]} | NUMBERS),
        ("y_true has 1 rows", {"y": [0]} | NUMBERS),
        ("subset='class' needs classes", {"subset": "class"} | NUMBERS),
        ("loss must be one of 'log_loss', .*got 'zero_one'.$", {"loss": "zero_one"}),
        ("'absolute_error' is for task='regression'", {"loss": "absolute_error"}),
        ("'log_loss' is for task='classification'", {"task": "regression"}),
        ("task must be 'classification' or 'regression'", {"task": "ranking"}),
        ("subset must be 'all', 'positive' or 'class'", {"subset": "negative"}),
        (r"a function loss\(y_true, y_score\).*a method exact", {"loss": int}),
        ("loss must be one of 'log_loss'.*got 3", {"loss": 3}),
        (r"one number for each of 2 rows, .* shape \(\)", {"loss": lambda *_: 1.0}),
        ("loss has 1 value that are NaN or infinite", {"loss": lambda t, _: np.array([0, np.nan])}),
    ),
    *of_calls(
        loss,
        ("called with scores and targets", {"loss": len, "metric": metrics.excess_loss}),
        error=TypeError,
    ),
    *of_calls(
        balances,
        ("labels is empty", {"labels": []}),
        (r"labels must be 1-dimensional, .* shape \(2, 2\)", {"labels": [[0, 1], [1, 0]]}),
        ("labels has 1 missing value in 2 rows", {"labels": [0.0, np.nan]}),
        ("n_clusters must be an integer", {"n_clusters": True}),
        (r"integers from 0 to 1, got 2\. Renumber", {"labels": [0, 2], "n_clusters": 2}),
        ("integers from 0 to 1, got", {"labels": ["a", 0.5], "n_clusters": 2}),
        ("'n_clusters' parameter of cluster_balances", {"n_clusters": 0}),
        ("'relative' parameter of cluster_balances", {"relative": "yes"}),
        (
            "'intersectional' parameter of share_ratio",
            {"metric": metrics.share_ratio, "intersectional": "no"},
        ),
    ),
)


def cost(X=((1.0,), (0.0,)), labels=(0, 1), **options):
    kmeans_cost(X, labels, **options)


def front(costs=(1.0,), balances=(0.5,)):
    nondominated(costs, balances)


def volume(costs=(1.0,), balances=(0.5,), ref_cost=2.0, **box):
    hypervolume(costs, balances, ref_cost=ref_cost, **box)


FRONTS = [
    ("costs has 2 points but balances has 1", {"costs": [1.0, 2.0]}),
    ("costs has 1 points but balances has 0", {"balances": []}),
    ("costs has 1 value", {"costs": [np.nan]}),
    ("balances has 1 value that are NaN or infinite", {"balances": [np.inf]}),
    ("costs must be 1-dimensional", {"costs": [[1.0, 2.0]]}),
    ("costs must be numeric", {"costs": ["a"]}),
    ("costs is None", {"costs": None}),
]
test_costs_and_fronts_say_what_is_wrong = messages(
    *of_calls(
        cost,
        ("Input X contains NaN", {"X": [[np.nan], [0.0]]}),
        ("labels has 3 rows but the other arguments have 2", {"labels": [0, 1, 1]}),
        ("centers has 2 features but X has 1", {"centers": [[1.0, 2.0]]}),
        ("integers from 0 to 0, got 1", {"centers": [[1.0]]}),
        ("Input centers contains NaN", {"centers": [[np.nan]]}),
        ("negative values", {"sample_weight": [1, -1]}),
        ("'mean' parameter of kmeans_cost", {"mean": 3}),
    ),
    *of_calls(
        price_of_fairness,
        ("'reference_cost' parameter of price", {"cost": 1.0, "reference_cost": 0.0}),
        (r"range \(0.0, inf\)\. Got -2.0 instead", {"cost": 1.0, "reference_cost": -2.0}),
        ("'reference_cost' parameter of price", {"cost": 1.0, "reference_cost": np.nan}),
        ("'cost' parameter of price", {"cost": -1.0, "reference_cost": 1.0}),
        ("'cost' parameter of price", {"cost": np.inf, "reference_cost": 1.0}),
        ("'cost' parameter of price", {"cost": "1", "reference_cost": 1.0}),
    ),
    *of_calls(front, *FRONTS),
    *of_calls(volume, *FRONTS),
    *of_calls(
        volume,
        ("go together, got ideal_cost=1.0", {"ideal_cost": 1.0}),
        ("go together, got ideal_cost=None", {"ideal_balance": 1.0}),
        (r"got ideal_cost=2\.0 for ref_cost=2\.0", {"ideal_cost": 2.0, "ideal_balance": 1.0}),
        (
            r"ideal_balance=0\.5 for ref_balance=0\.5\. Pass an ideal_cost below",
            {"ref_balance": 0.5, "ideal_cost": 1.0, "ideal_balance": 0.5},
        ),
        ("'ref_cost' parameter of hypervolume", {"ref_cost": np.inf}),
        ("'ref_balance' parameter of hypervolume", {"ref_balance": np.nan}),
        ("'ideal_cost' parameter of hypervolume", {"ideal_cost": "1"}),
        ("'ideal_balance' parameter of hypervolume", {"ideal_balance": np.nan}),
    ),
)
