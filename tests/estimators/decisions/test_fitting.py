"""Steps of a fit of fair decisions: known groups, and second fits."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from skfair.classification import FairDecisionClassifier
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
