"""Cross-fitting for a certificate: who has seen which rows, and how many models it takes."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from skfair.classification import FairDecisionClassifier
from skfair.estimators.chances import cross_fit


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
def test_no_model_scores_a_row_that_it_has_seen(n_folds):
    splits = list(KFold(n_folds, shuffle=True, random_state=0).split(X))
    found = cross_fit(Memory(), X, Y, {}, splits, np.array([0, 1]), None)
    assert len(found.models) == n_folds
    assert not found.chances[:, 1].any()
    assert found.chances[:, 0].all()


def test_the_model_of_a_fold_has_seen_all_the_others():
    splits = list(KFold(4).split(X))
    found = cross_fit(Memory(), X, Y, {}, splits, np.array([0, 1]), None)
    for model, (train, _) in zip(found.models, splits, strict=True):
        assert model.seen_ == set(X[train, 0].tolist())


class Counting(LogisticRegression):
    """Counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Counting.fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("aware", [False, True])
def test_a_certificate_takes_as_many_fits_as_cross_fitting(aware):
    rng = np.random.default_rng(0)
    rows, groups = rng.normal(size=(500, 2)), rng.integers(0, 2, 500)
    y = (rows[:, 0] + groups + rng.normal(size=500) > 0.5).astype(int)
    Counting.fits = 0
    model = FairDecisionClassifier(
        Counting(), max_disparity=0.2, group_aware=aware, confidence=0.9, cv=4
    )
    model.fit(rows, y, sensitive_features=groups)
    assert Counting.fits == (4 if aware else 8)  # besides, one of groups for each fold


def uneven(n, seed):
    """Two groups whose positives are rare and hard to tell, as trees see them."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, 8)), rng.random(n) < 0.33
    score = 0.9 * X[:, 0] + 0.6 * X[:, 1] * X[:, 2] + 0.3 * ~groups + 0.7 * rng.logistic(size=n)
    return X, (score > 1.3).astype(int), groups


@pytest.mark.parametrize("seed", [0, 1, 5])
def test_what_predicts_selects_as_many_as_what_was_tested(seed):
    """Each of the trees' models is certain of other people, and their mean of hardly anybody."""
    X, y, groups = uneven(3000, seed)
    trees = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=15, random_state=0)
    model = FairDecisionClassifier(
        trees, "equal_opportunity", max_disparity=0.05, confidence=0.95, group_aware=False
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=groups)
    if model.status_ == "certified":
        tested = model.path_["selection_rate"][model.path_["is_certified"]][-1]
        assert model.predict(uneven(20_000, 99)[0]).mean() > 0.6 * tested
    else:
        assert any("the models of the folds disagree" in str(one.message) for one in caught)
        assert not model.path_["is_certified"].any()
