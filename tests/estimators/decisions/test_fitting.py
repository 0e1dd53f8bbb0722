"""Steps of a fit of fair decisions: known groups, and second fits."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skfair.classification import FairDecisionClassifier
from skfair.constraints import DemographicParity
from skfair.enforcement.decisions.choose import Chosen
from skfair.enforcement.decisions.judge import Judge
from skfair.estimators.decisions.steps import LabelledRows, class_rules, report
from skfair.groups.encoding import encode_groups
from skfair.metrics import equalized_odds_difference


@pytest.fixture(scope="module")
def people():
    """Three classes; X tells much of the group."""
    rng = np.random.default_rng(0)
    n = 900
    sex = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 3)) + (sex == "m")[:, None] * [1.0, 0, 2]
    noisy = X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n)
    return X, np.digitize(noisy, [0.0, 1.0]), sex


def aware(group_estimator=None, **params):
    return FairDecisionClassifier(
        LogisticRegression(), group_aware=True, group_estimator=group_estimator, **params
    )


@pytest.mark.parametrize("limit", [0.03, 0.05])
def test_known_groups_are_not_estimated(people, limit):
    X, y, sex = people
    given = {"sensitive_features": sex}
    params = {"constraint": "equalized_odds", "max_disparity": limit, "cv": 3, "random_state": 0}
    one = aware(**params).fit(X, y, **given)
    other = aware(LogisticRegression(), **params).fit(X, y, **given)
    assert other.group_estimators_ == []
    assert (one.decision_function(X, **given) == other.decision_function(X, **given)).all()
    for label in range(3):
        gap = equalized_odds_difference(
            y == label, other.train_predictions_ == label, sensitive_features=sex
        )
        assert gap <= limit + 1e-9


def test_a_limit_that_is_reached_to_the_last_bit_is_kept():
    groups = np.repeat(["a", "b"], 10)
    predicted = np.concatenate([np.arange(10) < 6, np.arange(10) < 7]).astype(np.int64)
    y = np.tile([0, 1], 10)
    rows = LabelledRows(encode_groups(groups), y, np.array([0, 1]), None, None)
    for limit, status in ((0.1, "converged"), (0.0999, "infeasible")):
        rules = class_rules([DemographicParity()], rows, limit)
        judge = Judge(rules, y, rows.weights, np.eye(2))
        verdict = judge(predicted)
        chosen = Chosen(np.zeros(0), predicted, verdict, "prices")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = report(judge, chosen, 1, "")
        assert found["train_disparity_"] == pytest.approx(0.1)
        assert (found["status_"], len(said)) == (status, status == "infeasible")
