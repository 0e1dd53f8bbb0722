"""Probabilities of group and class: classes as the classifier says, groups as the models say."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from skfair.classification import FairDecisionClassifier
from skfair.metrics import equal_opportunity_difference
from tests.seeds import generator


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
    rng = generator(0)
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
    assert right[1] >= right[0] - 0.02  # pairs alone turn a quarter of the classes
