"""Limits on decisions between several classes that hold for new people."""

import pickle
from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skfair import Sensitive
from skfair.classification import FairDecisionClassifier
from skfair.constraints import ConditionalOn, DemographicParity

CLASSES = np.array(["high", "low", "middle"])


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += 0.8 * group
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
    options = {"confidence": 0.95, "cv": 3, "random_state": 0, "group_aware": True, **options}
    return FairDecisionClassifier(LogisticRegression(), constraint, limit, **options)


@cache
def fitted(constraint="demographic_parity", limit=0.15, n=2000, **options):
    X, y, groups = people(n)
    return classifier(constraint, limit, **options).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize(
    ("constraint", "limit", "aware"),
    [("demographic_parity", 0.15, True), ("equalized_odds", 0.135, False)],
)
def test_limits_hold_for_new_people(constraint, limit, aware):
    model = fitted(constraint, limit, group_aware=aware)
    X, y, groups = people(100_000, seed=1)
    predicted = model.predict(X, **({"sensitive_features": groups} if aware else {}))
    assert model.status_ == "certified"
    assert gap(constraint, y, predicted, groups) <= limit
    assert (predicted == y).mean() > 0.58  # the most frequent class has .39
    assert model.p_value_ <= 0.05
    assert model.certified_disparity_ <= limit + 1e-6
    assert model.offsets_.shape == (2, 1, 3, 3)
    free = CLASSES[model.predict_proba(X).argmax(axis=1)]
    assert gap(constraint, y, free, groups) > limit


def test_steps_come_nearer_to_the_free_decisions():
    path = fitted().path_
    assert path["accuracy"][-1] == max(path["accuracy"])
    assert path["disparity"][0] < 0.05 < 0.2 < path["disparity"][-1]
    last = int(path["is_certified"].sum())
    assert np.flatnonzero(path["p_value"] > 0.05)[0] == last > 0
    assert (path["bound"] > path["disparity"]).all()


def test_decisions_that_keep_limits_as_they_are_have_no_offset():
    model = fitted(limit=0.9)
    X, _, groups = people(2000)
    assert model.path_["is_certified"].all()
    assert not model.offsets_.any()
    predicted = model.predict(X, sensitive_features=groups)
    assert np.array_equal(predicted, CLASSES[model.predict_proba(X).argmax(axis=1)])
    assert model.price_of_fairness_ == pytest.approx(0.0)


def test_few_people_are_told_how_many_more():
    X, y, groups = people(200)
    with pytest.warns(ConvergenceWarning, match=r"About \d+ more people"):
        model = classifier(limit=0.02).fit(X, y, sensitive_features=groups)
    assert model.status_ == "no_solution"
    assert model.certified_disparity_ > 0.02
    assert set(model.predict(X, sensitive_features=groups)) <= set(CLASSES)


def test_the_same_decision_for_all_is_no_solution():
    rng = np.random.default_rng(0)
    y = rng.choice(CLASSES, 900, p=[0.8, 0.1, 0.1])
    with pytest.warns(ConvergenceWarning, match="same decision for everybody"):
        model = classifier(limit=0.1).fit(
            rng.normal(size=(900, 2)), y, sensitive_features=rng.choice(["a", "b"], 900)
        )
    assert model.status_ == "no_solution"


def test_strata_weights_attributes_and_constraints_of_several_kinds():
    X, y, groups = people(1500)
    rng = np.random.default_rng(3)
    job, age = rng.choice(["u", "v"], 1500), rng.choice(["old", "young"], 1500)
    model = classifier(ConditionalOn("demographic_parity"), 0.3)
    model.fit(X, y, sensitive_features=groups, control_features=job)
    assert model.status_ == "certified"
    predicted = model.predict(X, sensitive_features=groups, control_features=job)
    for name in ("u", "v"):
        part = job == name
        assert gap("demographic_parity", y[part], predicted[part], groups[part]) <= 0.3
    model = classifier(limit={"sex": 0.15, "age": 0.2}, sensitive=Sensitive(crossed=False))
    model.fit(X, y, sensitive_features={"sex": groups, "age": age})
    assert model.status_ == "certified"
    assert model.offsets_.shape == (4, 1, 3, 3)
    found = [
        fitted_with.path_["p_value"][0]
        for fitted_with in (
            classifier().fit(X, y, weights, sensitive_features=groups)
            for weights in (None, np.full(1500, 3.0), np.exp(rng.normal(size=1500)))
        )
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-4)
    assert found[2] > found[0] * 1.5  # weighted rows are worth fewer
    model = classifier("accuracy_parity", 0.2).fit(X, y, sensitive_features=groups)
    right = model.predict(X, sensitive_features=groups) == y
    assert model.status_ == "certified"
    assert abs(right[groups == "a"].mean() - right[groups == "b"].mean()) <= 0.2
    ratio = classifier(DemographicParity(comparison="ratio"), 0.6)
    assert ratio.fit(X, y, sensitive_features=groups).status_ == "certified"


def test_a_fitted_model_and_a_copy_decide_alike():
    X, y, groups = people(1200)
    base = LogisticRegression().fit(*people(500, seed=3)[:2])
    model = FairDecisionClassifier(
        FrozenEstimator(base), max_disparity=0.2, confidence=0.9, group_aware=True, random_state=0
    ).fit(X, y, sensitive_features=groups)
    assert model.status_ == "certified"
    assert model.estimators_[0].estimator is base
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(*(one.predict(X, sensitive_features=groups) for one in (model, again)))


def test_a_class_that_is_rare_and_a_group_of_its_own():
    X, y, groups = people(1200)
    y = y.astype(object)
    y[:4] = "rare"
    model = classifier(limit=0.25).fit(X, y, sensitive_features=groups)
    assert model.offsets_.shape == (2, 1, 4, 4)
    with pytest.warns(UserWarning, match="single group"):
        alone = classifier().fit(X, y, sensitive_features=["a"] * 1200)
    assert not hasattr(alone, "path_")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("limit", [{"sex": None, "job": None}, {"sex": None, "job": 0.1}])
def test_no_limit_on_two_groups_has_nothing_to_certify(n_classes, limit):
    """It was "no_solution" with two classes."""
    X, y, groups = people(400)
    y = y if n_classes == 3 else y == "low"
    model = classifier(limit=limit, sensitive=Sensitive(crossed=False))
    model.fit(X, y, sensitive_features={"sex": groups, "job": np.zeros(400, int)})
    assert model.status_ == "converged"
    assert not hasattr(model, "path_")
