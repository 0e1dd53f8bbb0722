"""Decisions between several classes along the path of a certificate."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from skfair.estimators.certified import paths
from tests.estimators.certified.test_several_classes import CLASSES, classifier, gap, people
from tests.naive.certified import naive_p_value


def test_every_class_is_tested_on_decisions_by_models_of_other_folds(monkeypatch):
    seen = {}
    original, decide = paths.walk, paths.Folds.decide

    def watched(rates, decisions, *args):
        seen["predicted"] = decisions
        return original(rates, decisions, *args)

    def noted(self, chances, shares, path):
        seen.setdefault("path", path)
        return decide(self, chances, shares, path)

    monkeypatch.setattr(paths, "walk", watched)
    monkeypatch.setattr(paths.Folds, "decide", noted)
    X, y, groups = people(900)
    folds = list(KFold(3).split(X))
    model = classifier(cv=folds).fit(X, y, sensitive_features=groups)
    p_values = model.path_["p_value"]
    for step in (0, 5, len(p_values) - 1):
        predicted = CLASSES[seen["predicted"][:, step]]
        naive = sum(naive_p_value(predicted == label, groups, 0.15) for label in CLASSES)
        # 200,000 draws, and the drawn test is a little more careful than the score test.
        assert p_values[step] == pytest.approx(min(naive, 1.0), abs=0.03)
        assert model.path_["accuracy"][step] == pytest.approx(np.mean(predicted == y))
        expected = gap("demographic_parity", y, predicted, groups)
        assert model.path_["disparity"][step] == pytest.approx(expected)
        # The offsets of the path, with the model of each fold, make these decisions.
        group = (groups == "b").astype(int)
        for k, (_, test) in enumerate(folds):
            chances = model.estimators_[k].predict_proba(X[test])
            offsets = seen["path"][step].reshape(2, 3, 3)
            margins = chances - np.einsum("ic,icd->id", chances, offsets[group[test]])
            assert np.array_equal(CLASSES[margins.argmax(axis=1)], predicted[test])
