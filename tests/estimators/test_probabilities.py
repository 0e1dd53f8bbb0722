"""Limits for groups that are known by probability, as metrics of these groups count them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier

from skfair import GroupProbabilities, Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)
from tests.seeds import generator

N, LIMIT = 600, 0.03
MEASURES = {
    "demographic_parity": demographic_parity_difference,
    "equal_opportunity": equal_opportunity_difference,
    "equalized_odds": equalized_odds_difference,
}
MODELS = [
    lambda constraint: ConstrainedERMClassifier(constraint, LIMIT),
    lambda constraint: FairDecisionClassifier(None, constraint, LIMIT, random_state=0),
]


@pytest.fixture
def people():
    rng = generator(0)
    groups = rng.integers(0, 2, N)
    X = rng.normal(size=(N, 3)) + groups[:, None] * [1.5, 0.0, 1.5]
    y = (X[:, 0] + X[:, 1] + rng.normal(size=N) > 0.5).astype(int)
    chances = LogisticRegression().fit(X, groups).predict_proba(X)
    return X, y, np.array(["a", "b"])[groups], GroupProbabilities(chances, ["a", "b"])


def certain(groups):
    return GroupProbabilities(pd.get_dummies(pd.Series(groups)).astype(float))


def trained(model, X):
    return getattr(model, "train_predictions_", model.predict(X))


@pytest.mark.parametrize("make", MODELS, ids=["linear", "decisions"])
@pytest.mark.parametrize("constraint", MEASURES)
def test_limits_hold_for_the_weighted_rates(make, constraint, people):
    X, y, _, table = people
    weights = generator(1).uniform(0.5, 2, N)
    measure = MEASURES[constraint]
    for w in (None, weights):
        model = make(constraint)
        free = LogisticRegression().fit(X, y).predict(X)
        given = {"sensitive_features": table, "sample_weight": w}
        model.fit(X, y, **given)
        assert measure(y, free, **given) > LIMIT
        assert measure(y, trained(model, X), **given) <= LIMIT + 1e-12
        assert (trained(model, X) == y).mean() > 0.6
        assert model.groups_.tolist() == ["a", "b"]


@pytest.mark.parametrize("make", MODELS, ids=["linear", "decisions"])
def test_certain_groups_give_the_same_model(make, people):
    X, y, groups, _ = people
    plain = make("demographic_parity").fit(X, y, sensitive_features=groups)
    found = make("demographic_parity").fit(X, y, sensitive_features=certain(groups))
    np.testing.assert_array_equal(plain.predict(X), found.predict(X))
    score = "decision_function" if hasattr(plain, "coef_") else "predict_proba"
    if hasattr(plain, score):
        np.testing.assert_allclose(getattr(plain, score)(X), getattr(found, score)(X), atol=1e-12)


def test_the_linear_model_is_that_of_rows_repeated_by_hand(people):
    X, y, _, table = people
    owners, weights, groups = table.spread()
    names = np.array(["a", "b"])[groups.codes[0]]
    found = ConstrainedERMClassifier("equalized_odds", LIMIT).fit(X, y, sensitive_features=table)
    by_hand = ConstrainedERMClassifier("equalized_odds", LIMIT).fit(
        X[owners],
        y[owners],
        sample_weight=weights,
        sensitive_features=names,
    )
    np.testing.assert_allclose(found.coef_, by_hand.coef_, atol=1e-12)


def test_the_classifier_inside_sees_each_person_once(people):
    X, y, _, table = people
    model = FairDecisionClassifier(
        KNeighborsClassifier(15), max_disparity=LIMIT, group_estimator=LogisticRegression()
    )
    model.fit(X, y, sensitive_features=table)
    assert sum(fold.n_samples_fit_ for fold in model.estimators_) == 4 * N
    assert model.train_predictions_.shape == (N,)


def test_models_of_groups_never_judge_people_they_have_seen(people):
    """A nearest neighbour would know the row of a person by the other one."""
    X, y, _, table = people

    class Misleading(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            self.seen_ = {tuple(row) for row in X}
            return super().fit(X, y, sample_weight)

        def predict_proba(self, X):
            chances = super().predict_proba(X)
            is_seen = [tuple(row) in self.seen_ for row in X]
            chances[is_seen] = chances[is_seen][:, ::-1]
            return chances

    # Close calls ask what models say of people they have seen; the offsets do not depend on it.
    offsets = [
        FairDecisionClassifier(max_disparity=LIMIT, group_estimator=inner)
        .fit(X, y, sensitive_features=table)
        .offsets_
        for inner in (LogisticRegression(), Misleading())
    ]
    np.testing.assert_allclose(*offsets)


def test_columns_of_X_in_a_search(people):
    X, y, _, table = people
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(
        a=table.values[:, 0], b=table.values[:, 1]
    )
    sensitive = Sensitive(["a", "b"], probabilities=True)
    model = ConstrainedERMClassifier(max_disparity=LIMIT, sensitive=sensitive)
    search = GridSearchCV(model, {"alpha": [0.01, 0.1]}, cv=3).fit(frame, y)
    best = search.best_estimator_
    assert best.model_features_.tolist() == ["u", "v", "w"]
    predicted = best.predict(frame)
    assert demographic_parity_difference(y, predicted, sensitive_features=table) <= LIMIT + 1e-12
    np.testing.assert_array_equal(predicted, best.predict(frame[["u", "v", "w"]]))
    beside = ConstrainedERMClassifier(
        max_disparity=LIMIT, alpha=best.alpha, sensitive=Sensitive(probabilities=True)
    )
    beside.fit(X, y, sensitive_features=frame[["a", "b"]])
    np.testing.assert_array_equal(predicted, beside.predict(X))
