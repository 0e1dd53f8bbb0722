"""Nested cross-fitting: who has seen which rows."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import KFold

from skfair.estimators.certified import nested_chances, prefit_chances


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
    found = nested_chances(Memory(), X, Y, np.array([0, 1]), {}, splits, None)
    assert len(found.models) == n_folds
    assert not found.outer[:, 1].any()
    for k, (train, test) in enumerate(splits):
        assert not found.inner[k][train, 1].any()  # rows outside the fold: not seen either
        assert not found.inner[k][test].any()  # rows of the fold have no say in its path
        assert found.inner[k][train, 0].all()


def test_the_model_of_a_fold_has_seen_all_the_others():
    splits = list(KFold(4).split(X))
    found = nested_chances(Memory(), X, Y, np.array([0, 1]), {}, splits, None)
    for model, (train, _) in zip(found.models, splits, strict=True):
        assert model.seen_ == set(X[train, 0].tolist())


def test_a_fitted_model_is_asked_once():
    model = Memory().fit(X[:10], Y[:10])
    found = prefit_chances(model, X, np.array([0, 1]), 3)
    assert found.models == [model]
    assert all(one is found.outer for one in found.inner)
