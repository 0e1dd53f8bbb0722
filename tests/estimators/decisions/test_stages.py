"""Three stages of decisions: the model itself, the best ones without limits, and within limits."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.svm import LinearSVC

from skfair import Objective
from skfair.classification import FairDecisionClassifier
from skfair.exceptions import SelectionRateWarning
from tests.seeds import generator


def rare_positives(n=1500):
    """Return rows of which few are positive, so that balanced class weights move many decisions."""
    rng = generator()
    groups = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 3))
    risk = X[:, 0] + X[:, 1] + 0.2 * (groups == "m") + 1.5 * rng.logistic(size=n)
    return X, (risk > np.quantile(risk, 0.85)).astype(int), groups


def fitted(model, X, y, groups, weights=None, **options):
    """Return the fitted model, and what was warned of the selection rate."""
    options = {"random_state": 0, **options}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        own = FairDecisionClassifier(model, **options)
        own.fit(X, y, weights, sensitive_features=groups)
    said = [str(w.message) for w in caught if w.category is SelectionRateWarning]
    return own, said


BALANCED = LogisticRegression(class_weight="balanced")
MODELS = [
    BALANCED,
    HistGradientBoostingClassifier(max_iter=10, class_weight="balanced"),
    FixedThresholdClassifier(LogisticRegression(), threshold=0.1),
]


@pytest.mark.parametrize("group_aware", [False, True])
@pytest.mark.parametrize("inner", MODELS, ids=lambda model: type(model).__name__)
def test_the_stages_are_the_model_the_objective_and_the_limits(inner, group_aware):
    X, y, groups = rare_positives()
    weights = generator(1).integers(1, 4, len(y)).astype(float)
    inner = FrozenEstimator(inner.fit(X, y))
    given = {"group_aware": group_aware, "max_disparity": 0.01}
    own, _ = fitted(inner, X, y, groups, weights, **given)
    free, _ = fitted(inner, X, y, groups, weights, **{**given, "max_disparity": 1.0})
    change = own.changes_["selection rate"]
    stages = [inner.predict(X), free.train_predictions_, own.train_predictions_]
    assert [change.before, change.without_limits, change.after] == pytest.approx(
        [np.average(labels, weights=weights) for labels in stages]
    )
    for group, of_group in change.by_group.items():
        rows = groups == group
        assert of_group == pytest.approx(
            [np.average(labels[rows], weights=weights[rows]) for labels in stages]
        )
    moved = stages[2] - stages[0]
    assert (change.rows_up, change.rows_down) == ((moved > 0).sum(), (moved < 0).sum())
    slack = free.changes_["selection rate"]
    assert slack.without_limits == slack.after


def test_scores_decide_by_themselves_where_there_are_no_probabilities():
    """Probabilities are made of the scores, which balanced weights have moved."""
    X, y, groups = rare_positives()
    inner = LinearSVC(class_weight="balanced")
    own, _ = fitted(inner, X, y, groups, max_disparity=1.0)
    change, itself = own.changes_["selection rate"], inner.fit(X, y).predict(X).mean()
    assert change.before == pytest.approx(itself, abs=0.05)
    assert change.after < itself - 0.1


@pytest.mark.parametrize("group_aware", [False, True])
def test_the_objective_is_blamed_for_what_it_does_and_the_limits_for_what_they_do(group_aware):
    X, y, groups = rare_positives()
    given = {"group_aware": group_aware, "max_disparity": 1.0}
    own, said = fitted(BALANCED, X, y, groups, **given)
    change = own.changes_["selection rate"]
    assert change.before - change.after > 0.1
    (text,) = said
    assert f"from {change.before:.1%} to {change.without_limits:.1%} before any limit" in text
    assert "objective='balanced_accuracy'" in text
    assert "selection_rate='as before'" in text
    assert "The limits" not in text
    assert "max_disparity" not in text
    line = f"{change.before:.1%} by the model itself, {change.after:.1%} by the objective"
    assert line in own.summary_
    for remedy in ({"selection_rate": "as before"}, {"objective": "balanced_accuracy"}):
        mended, said = fitted(BALANCED, X, y, groups, **given, **remedy)
        kept = mended.changes_["selection rate"]
        assert said == []
        assert kept.before == change.before
        if "selection_rate" in remedy:
            assert kept.after == pytest.approx(kept.before, abs=0.5 / len(y) + 1e-6)
        else:  # balanced weights, corrected, do not count the rare class a second time
            plain, _ = fitted(LogisticRegression(), X, y, groups, **given, **remedy)
            scores = [balanced_accuracy_score(y, m.train_predictions_) for m in (mended, plain)]
            assert scores[0] == pytest.approx(scores[1], abs=0.03)


def test_an_objective_that_is_asked_for_by_name_may_change_the_rate():
    X, y, groups = rare_positives()
    plain = LogisticRegression()
    for objective in ("balanced_accuracy", "f1", [[0, 1], [8, 0]]):
        own, said = fitted(plain, X, y, groups, max_disparity=1.0, objective=objective)
        assert own.changes_["selection rate"].after > own.changes_["selection rate"].before + 0.05
        assert said == []


@pytest.mark.parametrize("group_aware", [False, True])
def test_each_group_keeps_the_rate_that_the_model_gives_it(group_aware):
    X, y, groups = rare_positives()
    inner = FrozenEstimator(BALANCED.fit(X, y))
    own, _ = fitted(
        inner, X, y, groups, max_disparity=0.05, min_rate="as before", group_aware=group_aware
    )
    for group, stages in own.changes_["selection rate"].by_group.items():
        assert stages.before == pytest.approx(inner.predict(X)[groups == group].mean())
        assert stages.after >= stages.before - 1e-9


def test_the_price_of_fairness_is_that_of_the_limits_alone():
    X, y, groups = rare_positives()
    free, _ = fitted(BALANCED, X, y, groups, max_disparity=1.0)
    assert free.price_of_fairness_ == 0
    own, _ = fitted(BALANCED, X, y, groups, max_disparity=0.001, group_aware=True)
    free, _ = fitted(BALANCED, X, y, groups, max_disparity=1.0, group_aware=True)
    lost = free.train_objective_ - own.train_objective_
    assert own.price_of_fairness_ == pytest.approx(lost, abs=1e-12)


def test_the_smallest_disparity_has_the_same_stages():
    X, y, groups = rare_positives()
    inner = FrozenEstimator(BALANCED.fit(X, y))
    objective = Objective("balanced_accuracy", at_least=0.55)
    own, _ = fitted(inner, X, y, groups, max_disparity=None, objective=objective, group_aware=True)
    change = own.changes_["selection rate"]
    assert change.before == pytest.approx(inner.predict(X).mean())
    assert change.after == pytest.approx(own.train_predictions_.mean())
