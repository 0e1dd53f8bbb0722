"""Probabilities of group and class: classes as the classifier says, groups as the models say."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skfair.classification import FairDecisionClassifier
from skfair.estimators.group_chances import GroupModels
from skfair.metrics import equal_opportunity_difference


def models(of_rows, size, n_classes):
    labels = [np.arange(size * n_classes)]
    return GroupModels([[]], labels, (size,), n_classes, [of_rows])


def test_classes_are_those_of_the_classifier_and_groups_those_of_the_pairs():
    rng = np.random.default_rng(0)
    pairs, chances = rng.dirichlet(np.ones(6), 50), rng.dirichlet(np.ones(3), 50)
    joint = models(pairs, 2, 3).joint_of_rows(chances)
    assert np.allclose(joint.sum(axis=1), chances)
    for row, expected in zip(joint, pairs.reshape(50, 2, 3), strict=True):
        for k in range(3):
            assert np.allclose(row[:, k] / row[:, k].sum(), expected[:, k] / expected[:, k].sum())


def test_a_class_that_pairs_rule_out():
    pairs = np.array([[0.3, 0.0, 0.7, 0.0]])  # group 0 and 1, class 0 for certain
    joint = models(pairs, 2, 2).joint_of_rows(np.array([[0.4, 0.6]]))
    assert np.allclose(joint, [[[0.12, 0.18], [0.28, 0.42]]])


class Columns(ClassifierMixin, BaseEstimator):
    """Probabilities that are columns of X."""

    def __init__(self, which):
        self.which = which

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return X[:, self.which]

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def test_poor_models_of_pairs_cost_no_accuracy_where_groups_are_certain():
    """With groups that X tells, decisions without the group are as good as with it."""
    rng = np.random.default_rng(0)
    n = 4000
    sex = rng.integers(0, 2, n)
    chance = 1 / (1 + np.exp(-(1.5 * rng.normal(size=n) + sex - 0.5)))
    y = (rng.random(n) < chance).astype(int)
    noisy = 1 / (1 + np.exp(-(np.log(chance / (1 - chance)) + 1.5 * rng.normal(size=n))))
    own = np.column_stack([1 - noisy, noisy])
    pairs = (np.eye(2)[sex][:, :, None] * own[:, None, :]).reshape(n, 4)
    X = np.column_stack([1 - chance, chance, pairs])
    classes, groups = Columns([0, 1]), Columns([2, 3, 4, 5])
    right = []
    for aware in (True, False):
        model = FairDecisionClassifier(
            classes,
            "equal_opportunity",
            0.02,
            group_aware=aware,
            group_estimator=None if aware else groups,
            cv=2,
            random_state=0,
        ).fit(X, y, sensitive_features=sex)
        found = model.train_predictions_
        assert equal_opportunity_difference(y, found, sensitive_features=sex) <= 0.02 + 1e-9
        right.append((found == y).mean())
    assert right[1] >= right[0] - 0.002
