"""Limits on decisions between several classes that hold for new people."""

from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skfair import Sensitive
from skfair.classification import FairDecisionClassifier
from skfair.constraints import ConditionalOn, DemographicParity
from tests.seeds import generator

CLASSES = np.array(["high", "low", "middle"])


def people(n, seed=0, shift=0.8):
    rng = generator(seed)
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += shift * group
    score = X[:, 0] + X[:, 1] + rng.normal(size=n)
    return X, CLASSES[np.digitize(score, [0.0, 1.0])], np.array(["a", "b"])[group]


def gap(constraint, y, predicted, groups):
    """The largest difference of rates between the groups, of each class against the rest."""
    found = []
    for label in CLASSES:
        cells = {"demographic_parity": [np.ones(y.size, bool)], "accuracy_parity": [y == label]}
        cells["equalized_odds"] = [y == label, y != label]
        for cell in cells[constraint]:
            rates = [np.mean(predicted[cell & (groups == name)] == label) for name in ("a", "b")]
            found.append(abs(rates[0] - rates[1]))
    return max(found)


def classifier(constraint="demographic_parity", limit=0.15, **options):
    options = {"certificate": 0.95, "cv": 3, "random_state": 0, "group_aware": True, **options}
    return FairDecisionClassifier(LogisticRegression(), constraint, limit, **options)


@cache
def fitted(constraint="demographic_parity", limit=0.3, **options):
    """Fit to groups that differ by much, at a confidence that chance does not break."""
    X, y, groups = people(3000, shift=2)
    options = {"certificate": 1 - 1e-7, **options}
    return classifier(constraint, limit, **options).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize(
    ("constraint", "limit", "aware"),
    [
        ("demographic_parity", 0.3, True),
        pytest.param("equalized_odds", 0.5, False, marks=pytest.mark.slow),
    ],
)
def test_limits_hold_for_new_people(constraint, limit, aware):
    model = fitted(constraint, limit, group_aware=aware)
    X, y, groups = people(100_000, seed=1, shift=2)
    predicted = model.predict(X, **({"sensitive_features": groups} if aware else {}))
    assert model.status_ == "certified"
    assert gap(constraint, y, predicted, groups) <= limit
    assert (predicted == y).mean() > 0.5
    assert model.p_value_ <= 1e-7
    assert model.certified_disparity_ <= limit + 1e-6
    assert model.offsets_.shape == (2, 1, 3, 3)
    free = CLASSES[model.predict_proba(X).argmax(axis=1)]
    assert gap(constraint, y, free, groups) > (limit if aware else 0.2)


def test_steps_come_nearer_to_the_free_decisions():
    path = fitted().path_
    assert path["accuracy"][-1] > path["accuracy"][0]
    assert path["disparity"][0] < 0.1 < 0.3 < path["disparity"][-1]
    last = int(path["is_certified"].sum())
    # A step that passes may still be one whose decisions by the mean of the models do not.
    assert np.flatnonzero(path["p_value"] > 1e-7)[0] >= last > 0
    assert (path["bound"] > path["disparity"]).all()


def test_decisions_that_keep_limits_as_they_are_have_no_offset():
    X, y, groups = people(1000)
    model = classifier(limit=0.9).fit(X, y, sensitive_features=groups)
    assert model.path_["is_certified"].all()
    assert not model.offsets_.any()
    predicted = model.predict(X, sensitive_features=groups)
    assert np.array_equal(predicted, CLASSES[model.predict_proba(X).argmax(axis=1)])
    assert model.price_of_fairness_ == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("n", "limit", "said"),
    [(200, 0.02, r"about \d+ more people"), (900, 0.1, "same decision for everybody")],
)
def test_nothing_shown_or_the_same_decision_for_all_is_no_solution(n, limit, said):
    X, y, groups = people(n)
    if n == 900:  # a class of 4 rows of 5, which X says nothing of
        y = CLASSES[np.where(np.arange(n) % 5, 0, 1 + np.arange(n) // 5 % 2)]
        X = np.zeros((n, 1))
    with pytest.warns(ConvergenceWarning, match=said):
        model = classifier(limit=limit).fit(X, y, sensitive_features=groups)
    assert model.status_ == "no_solution"
    assert n == 900 or model.certified_disparity_ > limit
    assert set(model.predict(X, sensitive_features=groups)) <= set(CLASSES)


def test_constraints_of_several_kinds_are_certified():
    X, y, groups = people(1000)
    rng = generator(3)
    job, age = rng.choice(["u", "v"], 1000), rng.choice(["old", "young"], 1000)
    model = classifier(ConditionalOn("demographic_parity"), 0.4)
    model.fit(X, y, sensitive_features=groups, control_features=job)
    assert model.status_ == "certified"
    predicted = model.predict(X, sensitive_features=groups, control_features=job)
    for name in ("u", "v"):
        part = job == name
        assert gap("demographic_parity", y[part], predicted[part], groups[part]) <= 0.4
    model = classifier(limit={"sex": 0.3, "age": 0.3}, sensitive=Sensitive(intersectional=False))
    model.fit(X, y, sensitive_features={"sex": groups, "age": age})
    assert model.status_ == "certified"
    assert model.offsets_.shape == (4, 1, 3, 3)


def test_accuracy_and_ratios_are_certified():
    X, y, groups = people(1500)
    given = {"sensitive_features": groups}
    model = classifier("accuracy_parity", 0.3).fit(X, y, **given)
    right = model.predict(X, **given) == y
    assert model.status_ == "certified"
    assert abs(right[groups == "a"].mean() - right[groups == "b"].mean()) <= 0.3
    y = CLASSES[np.digitize(X[:, 0] + X[:, 1], [0.0, 1.0])]  # all classes are decided for
    model = classifier(DemographicParity(comparison="ratio"), 0.8).fit(X, y, **given)
    selected = model.predict(X, **given)[:, None] == CLASSES
    rates = [selected[groups == name].mean(axis=0) for name in ("a", "b")]
    assert model.status_ == "certified"
    assert (np.min(rates, axis=0) / np.max(rates, axis=0)).min() >= 0.2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of so few rows
def test_weighted_rows_are_worth_fewer():
    X, y, groups = people(1000)
    uneven = np.where(np.arange(1000) % 10, 1.0, 1000.0)  # as few as 100 rows
    first = [
        classifier(limit=0.3).fit(X, y, weights, sensitive_features=groups).path_
        for weights in (None, np.full(1000, 3.0), uneven)
    ]
    assert first[0]["bound"][0] == pytest.approx(first[1]["bound"][0], abs=0.02)
    assert first[2]["p_value"][0] > first[0]["p_value"][0]


def test_a_fitted_model_is_certified_as_it_is():
    X, y, groups = people(600)
    base = LogisticRegression().fit(*people(500, seed=3)[:2])
    model = FairDecisionClassifier(
        FrozenEstimator(base), max_disparity=0.5, certificate=0.9, group_aware=True, random_state=0
    ).fit(X, y, sensitive_features=groups)
    assert model.status_ == "certified"
    assert model.estimators_[0].estimator is base


def test_a_class_that_is_rare_has_offsets_too():
    X, y, groups = people(1200)
    y = y.astype(object)
    y[:4] = "rare"
    model = classifier(limit=0.4).fit(X, y, sensitive_features=groups)
    assert model.offsets_.shape == (2, 1, 4, 4)
