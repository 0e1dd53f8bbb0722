"""Corrected probabilities of classes, for all rows or within known groups, and tied rows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from skfair.classification import FairDecisionClassifier
from skfair.estimators.probability_corrections import ProbabilityCorrections, fit_corrections
from skfair.metrics import equalized_odds_difference
from tests.naive.decisions import best_random_decisions
from tests.seeds import generator


def people(seed, n=6000, n_pairs=6):
    """Probabilities of three classes, those given the group too, classes and groups."""
    rng = generator(seed)
    scores = 0.8 * rng.normal(size=(n, 2)) @ rng.normal(size=(2, n_pairs))
    joint = softmax(scores + 0.5 * rng.normal(size=n_pairs), axis=1)
    pair = np.minimum((joint.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), n_pairs - 1)
    groups, y = pair // 3, pair % 3
    both = joint.reshape(n, 2, 3)
    given = both[np.arange(n), groups]
    return both.sum(axis=1), given / given.sum(axis=1, keepdims=True), y, groups


class Stored(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are the columns of X."""

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.asarray(X)

    def predict(self, X):
        return self.classes_[np.asarray(X).argmax(axis=1)]


def corrections(chances, y, groups):
    weights = np.full(y.size, 1 / y.size)
    return fit_corrections(chances, y, groups, 2, weights, np.random.RandomState(0))


def test_good_probabilities_stay_as_they_are():
    _, given, y, groups = people(1)
    assert corrections(given, y, groups) is None
    _, given, y, groups = people(2)
    chances = np.roll(given, 1, axis=1)  # those of other classes
    # Ten people are too few.
    rows = np.append(np.flatnonzero(groups == 0)[:10], np.flatnonzero(groups == 1))
    found = corrections(chances[rows], y[rows], groups[rows])
    assert found.groups.tolist() == [1]
    assert (found(chances[rows], groups[rows])[:10] == chances[rows[:10]]).all()


def test_rows_of_unknown_groups_are_not_corrected():
    chances = np.array([[0.2, 0.3, 0.5], [0.2, 0.3, 0.5]])
    found = ProbabilityCorrections(np.array([0]), True, np.zeros((1, 3, 3)), np.zeros((1, 3)))
    assert np.allclose(found(chances, np.array([0, -1])), [[1 / 3] * 3, [0.2, 0.3, 0.5]])
    assert (found(chances, None) == chances).all()
    of_all = replace(found, is_by_group=False)
    for groups in (None, np.array([0, -1])):
        assert np.allclose(of_all(chances, groups), 1 / 3)


@pytest.mark.parametrize("seed", range(2))
def test_equalized_odds_of_three_classes_come_near_random_decisions(seed):
    chances, _, y, groups = people(seed)
    inner, params = Stored().fit(chances, y), {"group_aware": True, "cv": "prefit"}
    model = FairDecisionClassifier(inner, "equalized_odds", 0.05, random_state=0, **params)
    model.fit(chances, y, sensitive_features=groups)
    found = model.train_predictions_
    for label in range(3):
        gap = equalized_odds_difference(y == label, found == label, sensitive_features=groups)
        assert gap <= 0.05 + 1e-9
    best = best_random_decisions(chances, y, groups, 0.05)
    assert np.mean(found == y) > best - 0.06
    # New rows are decided like these, and by the largest score.
    given = {"sensitive_features": groups}
    assert (model.predict(chances, **given) == found).all()
    assert (model.decision_function(chances, **given).argmax(axis=1) == found).all()
    assert np.allclose(model.predict_proba(chances), chances, atol=1e-12)
    again = model.fit(chances, y, **given)
    assert (again.train_predictions_ == found).all()
