"""Decisions between several classes along the path of a certificate, fold by fold."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
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
        seen.setdefault("paths", []).append(path)
        return decide(self, chances, shares, path)

    monkeypatch.setattr(paths, "walk", watched)
    monkeypatch.setattr(paths.Folds, "decide", noted)
    X, y, groups = people(900)
    folds = list(KFold(3).split(X))
    model = classifier(cv=folds).fit(X, y, sensitive_features=groups)
    p_values = model.path_["p_value"]
    for step in (0, 5, len(p_values) - 1):
        predicted = CLASSES[seen["predicted"][:, step]]
        naive = [
            naive_p_value(predicted == label, groups, 0.15, precision=2 / 3) for label in CLASSES
        ]
        assert p_values[step] == pytest.approx(max(naive), abs=0.01)  # of 200,000 draws
        assert model.path_["accuracy"][step] == pytest.approx(np.mean(predicted == y))
        expected = gap("demographic_parity", y, predicted, groups)
        assert model.path_["disparity"][step] == pytest.approx(expected)
        # Offsets of a fold, with the model of that fold, make these decisions.
        group = (groups == "b").astype(int)
        for k, (_, test) in enumerate(folds):
            chances = model.estimators_[k].predict_proba(X[test])
            offsets = seen["paths"][k][step].reshape(2, 3, 3)
            margins = chances - np.einsum("ic,icd->id", chances, offsets[group[test]])
            assert np.array_equal(CLASSES[margins.argmax(axis=1)], predicted[test])


@pytest.mark.parametrize(
    "constraint", ["demographic_parity", pytest.param("equalized_odds", marks=pytest.mark.slow)]
)
def test_no_row_is_judged_by_a_path_that_has_seen_it(constraint, monkeypatch):
    """The labels of a fold do not change its offsets, if the model is a fitted one."""
    X, y, groups = people(600)
    base = FrozenEstimator(LogisticRegression().fit(*people(500, seed=3)[:2]))
    found = []
    original = paths._of_several

    def watched(*args):
        found.append(original(*args))
        return found[-1]

    monkeypatch.setattr(paths, "_of_several", watched)
    folds = list(KFold(3).split(X))
    for labels in (y, np.where(np.arange(600) < 200, np.roll(y, 1), y)):
        model = classifier(constraint, 0.3, cv=folds).set_params(estimator=base)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, labels, sensitive_features=groups)
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-9)
    if constraint == "equalized_odds":
        assert found[0][1] != pytest.approx(found[1][1], abs=1e-3)
