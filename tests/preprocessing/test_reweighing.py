"""Reweighing: group and class are independent under the weights, computed inside fit."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skfair.metrics import demographic_parity_difference
from skfair.preprocessing import Reweighing
from tests.seeds import generator


def people(n=600, seed=0):
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n, p=[0.3, 0.7])
    X = rng.normal(size=(n, 3)) + (sex == "m")[:, None] * [1, 0, 0]
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.5).astype(int), sex


def table(y, group, weights):
    return pd.crosstab(group, y, weights, aggfunc="sum", normalize=True).to_numpy()


@pytest.mark.parametrize("is_weighted", [False, True])
def test_group_and_class_are_independent_under_the_weights(is_weighted):
    X, y, sex = people()
    own = generator(1).random(y.size) if is_weighted else np.ones(y.size)
    given = own if is_weighted else None
    model = Reweighing().fit(X, y, given, sensitive_features=sex)
    found, before = table(y, sex, model.train_weights_), table(y, sex, own)
    assert np.allclose(found, np.outer(found.sum(axis=1), found.sum(axis=0)))
    assert np.allclose(found.sum(axis=0), before.sum(axis=0))
    assert np.allclose(found.sum(axis=1), before.sum(axis=1))
    assert model.train_weights_.sum() == pytest.approx(own.sum())
    by_hand = LogisticRegression().fit(X, y, sample_weight=model.train_weights_)
    assert np.array_equal(model.predict_proba(X), by_hand.predict_proba(X))
    assert np.array_equal(model.predict_log_proba(X), by_hand.predict_log_proba(X))
    assert np.array_equal(model.decision_function(X), by_hand.decision_function(X))
    assert model.score(X, y, given) == by_hand.score(X, y, given)


def test_groups_become_more_alike():
    X, _, sex = people(3000)
    X[:, 0] = sex == "m"
    y = (X @ [1.5, 1, 0] + generator(1).normal(size=3000) > 0.5).astype(int)
    gaps = [
        demographic_parity_difference(y, model.predict(X), sensitive_features=sex)
        for model in (
            LogisticRegression().fit(X, y),
            Reweighing().fit(X, y, sensitive_features=sex),
        )
    ]
    assert gaps[1] < 0.5 * gaps[0]


def test_a_search_weighs_the_training_rows_of_each_fold_only():
    X, y, sex = people()
    frame = pd.DataFrame(X, columns=list("abc")).assign(sex=sex)
    model = Reweighing(sensitive="sex")
    rows = np.arange(y.size)
    folds = [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(3)]
    found = cross_validate(model, frame, y, cv=folds, return_estimator=True)
    for (train, _), one in zip(folds, found["estimator"], strict=True):
        alone = clone(model).fit(frame.iloc[train], y[train])
        assert np.array_equal(one.train_weights_, alone.train_weights_)
    search = GridSearchCV(model.set_params(estimator=LogisticRegression()), {"estimator__C": [1]})
    assert search.fit(frame, y).best_score_ > 0.5
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(Reweighing(LogisticRegression()), {"estimator__C": [0.1, 1]})
        routed = search.fit(X, y, sensitive_features=sex)
    assert routed.best_estimator_.train_weights_.std() > 0


def test_estimators_without_weights_are_refused():
    X, y, sex = people(200)
    for one in (KNeighborsClassifier(), make_pipeline(StandardScaler(), LogisticRegression())):
        with pytest.raises(ValueError, match=f"{type(one).__name__} takes no sample_weight"):
            Reweighing(one).fit(X, y, sensitive_features=sex)
    inside = make_pipeline(StandardScaler(), Reweighing())
    inside.fit(X, y, reweighing__sensitive_features=sex)
    with config_context(enable_metadata_routing=True):
        steps = make_pipeline(
            StandardScaler(), LogisticRegression().set_fit_request(sample_weight=True)
        )
        steps[0].set_fit_request(sample_weight=False)
        routed = Reweighing(steps).fit(X, y, sensitive_features=sex)
        assert np.allclose(routed.predict_proba(X), inside.predict_proba(X))
        refused = LogisticRegression().set_fit_request(sample_weight=False)
        with pytest.raises(ValueError, match="takes no sample_weight"):
            Reweighing(refused).fit(X, y, sensitive_features=sex)


def test_methods_are_those_of_the_classifier():
    X, y, sex = people(200)
    model = Reweighing(LinearSVC())
    assert not hasattr(model, "predict_proba")
    assert model.fit(X, y, sensitive_features=sex).decision_function(X).shape == (200,)
