"""Steps of a fit of fair decisions: known groups, and second fits."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from skfair.classification import FairDecisionClassifier
from skfair.constraints import DemographicParity
from skfair.enforcement.decisions.choose import Chosen
from skfair.enforcement.decisions.judge import Judge
from skfair.estimators.decisions import LabelledRows, class_rules, report
from skfair.groups.encoding import encode_groups
from skfair.metrics import demographic_parity_difference, equalized_odds_difference


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


class Memory(ClassifierMixin, BaseEstimator):
    """A logistic regression that keeps its weights."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.n_features_in_ = np.unique(y), X.shape[1]
        self.weights_ = sample_weight
        self.inner_ = LogisticRegression().fit(X, y, sample_weight)
        return self

    def predict_proba(self, X):
        return self.inner_.predict_proba(X)

    def predict(self, X):
        return self.inner_.predict(X)


@pytest.mark.parametrize("is_aware", [True, False])
def test_a_second_fit_is_kept_only_if_it_is_better(is_aware):
    kept = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        n = 600
        sex = rng.choice(["f", "m"], n)
        z = rng.normal(size=(n, 2)) + (sex == "m")[:, None] * [0.7, 0]
        chance = 1 / (1 + np.exp(-(3 * z[:, 0] + 3 * z[:, 1] - 1)))
        # A linear model is wrong here: far rows, which no decision depends on, bend it.
        X = np.column_stack([np.sign(z[:, 0]) * z[:, 0] ** 4, z[:, 1]])
        y = (rng.random(n) < chance).astype(int)
        given = {"sensitive_features": sex}
        params = {"group_aware": is_aware, "cv": 3, "random_state": 0}
        plain = FairDecisionClassifier(Memory(), **params).fit(X, y, **given)
        again = FairDecisionClassifier(Memory(), refit_with_prices=True, **params)
        again.fit(X, y, **given)
        right = [(model.train_predictions_ == y).mean() for model in (plain, again)]
        disparity = demographic_parity_difference(y, again.train_predictions_, **given)
        assert disparity <= 0.05 + 1e-9
        assert plain.estimators_[0].weights_ is None
        assert not plain.is_refitted_
        assert again.is_refitted_ == (right[1] > right[0])
        if again.is_refitted_:
            weights = again.estimators_[0].weights_
            assert weights.max() > 2 * weights.min() > 0
            # What is given up is told against the classifier as it was.
            free = plain.price_of_fairness_ + right[0]
            assert again.price_of_fairness_ == pytest.approx(free - right[1])
        else:
            assert again.estimators_[0].weights_ is None
            assert (again.predict_proba(X) == plain.predict_proba(X)).all()
        kept += again.is_refitted_
    assert kept


def test_where_there_is_no_second_fit(people):
    X, y, sex = people
    given = {"sensitive_features": sex}
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    for inner, reason in ((KNeighborsClassifier(), "takes no sample_weight"), (frozen, "fitted")):
        model = FairDecisionClassifier(inner, cv=3, refit_with_prices=True, group_aware=True)
        with pytest.warns(UserWarning, match=reason):
            model.fit(X, y, **given)
        assert not model.is_refitted_
    free = FairDecisionClassifier(GaussianNB(), max_disparity=1.0, cv=3, refit_with_prices=True)
    assert not free.fit(X, y, **given).is_refitted_  # nothing to say: no limit binds
    two = y == 1
    certain = FairDecisionClassifier(confidence=0.5, refit_with_prices=True, group_aware=True)
    with pytest.raises(ValueError, match="refit_with_prices"):
        certain.fit(X, two, **given)


def test_a_limit_that_is_reached_to_the_last_bit_is_kept():
    groups = np.repeat(["a", "b"], 10)
    predicted = np.concatenate([np.arange(10) < 6, np.arange(10) < 7]).astype(np.int64)
    y = np.tile([0, 1], 10)
    rows = LabelledRows(encode_groups(groups), y, np.array([0, 1]), None, None)
    for limit, status in ((0.1, "converged"), (0.0999, "infeasible")):
        rules = class_rules([DemographicParity()], rows, limit)
        judge = Judge(rules, y, rows.weights, np.eye(2))
        verdict = judge(predicted)
        chosen = Chosen(np.zeros(0), predicted, verdict, verdict, "prices", np.zeros(0))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = report(judge, chosen, 1, "")
        assert found["train_disparity_"] == pytest.approx(0.1)
        assert (found["status_"], len(said)) == (status, status == "infeasible")
