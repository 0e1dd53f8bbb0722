"""Cross-fitting for a certificate: who has seen which rows, and how many models it takes."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from skfair.classification import FairDecisionClassifier
from skfair.metrics import demographic_parity_difference
from tests.seeds import generator


class Memory(ClassifierMixin, BaseEstimator):
    """Says 1 of rows that it was fitted on, 0 of others."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        self.seen_ = set(X[:, 0].tolist())
        return self

    def predict_proba(self, X):
        seen = np.array([float(one in self.seen_) for one in X[:, 0].tolist()])
        return np.column_stack([1 - seen, seen])


X = np.arange(60.0)[:, None]
Y = np.arange(60) % 2


@pytest.mark.parametrize("n_folds", [3, 5])
def test_each_row_is_judged_by_the_model_of_the_other_folds(n_folds):
    splits = list(KFold(n_folds, shuffle=True, random_state=0).split(X))
    model = FairDecisionClassifier(Memory(), max_disparity=1.0, cv=splits)
    model.fit(X, Y, sensitive_features=np.arange(60) // 30)
    assert not model.train_predictions_.any()
    for inner, (train, _) in zip(model.estimators_, splits, strict=True):
        assert inner.seen_ == set(X[train, 0].tolist())
    assert model.predict(X).all()  # most models have seen them


class Counting(LogisticRegression):
    """Counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counting.fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("aware", [False, True])
def test_a_certificate_takes_as_many_fits_as_cross_fitting(aware):
    rng = generator(0)
    rows, groups = rng.normal(size=(500, 2)), rng.integers(0, 2, 500)
    y = (rows[:, 0] + groups + rng.normal(size=500) > 0.5).astype(int)
    Counting.fits = 0
    model = FairDecisionClassifier(
        Counting(), max_disparity=0.2, group_aware=aware, certificate=0.9, cv=4
    )
    model.fit(rows, y, sensitive_features=groups)
    assert Counting.fits == 4  # groups are estimated by others


class Disagreeing(ClassifierMixin, BaseEstimator):
    """Selects a third: of the first group the same in each fit, of the second one others."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.key_ = np.unique(y), int(X[:, 0].sum()) % 1000
        return self

    def predict_proba(self, X):
        of_all = X[:, 2] < 1 / 3
        own = np.sin(X[:, 0] * 7919.0 + 131.0 * self.key_) % 1 < 1 / 3
        chance = np.where(np.where(X[:, 1] == 0, of_all, own), 0.6, 0.3)
        return np.column_stack([1 - chance, chance])


def test_what_the_mean_of_the_models_changes_is_judged():
    """Each fold's model selects a third of both groups, and their mean nobody of the second one."""
    rng = generator(0)
    n = 3000
    groups = np.arange(n) % 2
    rows = np.column_stack([np.arange(n), groups, (np.arange(n) // 2 * 7 % 1500) / 1500])
    y = (rng.random(n) < 0.4).astype(int)
    model = FairDecisionClassifier(
        Disagreeing(), max_disparity=0.1, certificate=0.95, group_aware=True
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, y, sensitive_features=groups)
    for one in model.estimators_:
        selected = one.predict_proba(rows)[:, 1] > 0.5
        assert demographic_parity_difference(y, selected, sensitive_features=groups) < 0.08
    assert model.path_["disparity"][-1] < 0.08
    assert not model.path_["is_certified"][-1]
