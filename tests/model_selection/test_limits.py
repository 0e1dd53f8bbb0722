import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from skfair import Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.constraints import FalsePositiveParity
from skfair.model_selection import fairness_path
from tests.seeds import generator

LIMITS = {"sex": 0.05, "age": 0.1}
STEPS = (3, 1, 2)


@pytest.fixture(scope="module")
def data():
    rng = generator(0)
    groups = pd.DataFrame(
        {"sex": rng.choice(["f", "m"], 600), "age": rng.choice(["young", "middle", "old"], 600)}
    )
    shift = 1.2 * (groups["sex"] == "m") + 0.8 * (groups["age"] == "old")
    X = np.column_stack([rng.normal(size=600) + shift, rng.normal(size=600), shift])
    y = (X[:, 0] + rng.normal(size=600) > 0.8).astype(int)
    return X[:400], y[:400], groups[:400], X[400:], y[400:], groups[400:]


def largest_share(selected, groups, limits):
    """Count by hand: the largest difference of selection rates, each as a share of its limit."""
    shares = []
    for name, limit in limits.items():
        if limit is not None:
            rates = [selected[(groups[name] == g).to_numpy()].mean() for g in groups[name].unique()]
            shares.append((max(rates) - min(rates)) / limit)
    return max(shares)


def path_of(data, model, **options):
    X, y, groups, *test = data
    tested = dict(zip(("X_test", "y_test", "sensitive_features_test"), test, strict=True))
    given = {"max_disparities": STEPS, "sensitive_features": groups, **tested, **options}
    return fairness_path(model, X, y, **given)


@pytest.mark.parametrize("limits", [LIMITS, {"sex": 0.04, "age": None}])
def test_each_step_multiplies_all_limits(data, limits):
    X, _, groups, X_test, _, groups_test = data
    path = path_of(
        data,
        ConstrainedERMClassifier(max_disparity=limits, sensitive=Sensitive(intersectional=False)),
    )
    assert path.max_disparities.tolist() == [3, 2, 1]
    assert path.limits == limits
    for k, (step, model) in enumerate(zip(path.max_disparities, path.estimators, strict=True)):
        assert model.max_disparity == {
            name: None if limit is None else limit * step for name, limit in limits.items()
        }
        share = largest_share(model.predict(X) == 1, groups, limits)
        assert path.train_disparities[k] == pytest.approx(share)
        assert share <= step + 1e-9
        tested = largest_share(model.predict(X_test) == 1, groups_test, limits)
        assert path.test_disparities[k] == pytest.approx(tested)
    inspection = pytest.importorskip("skfair.inspection")
    display = inspection.FairnessPathDisplay.from_path(path, X_test, sensitive_features=groups_test)
    title, reached = display.ax_[0].get_title(loc="left").split("\n")
    assert title == "limit 3 times the limits"
    assert not reached  # the groups of two attributes overlap: they have no gap in common


def test_constraints_with_a_limit_of_their_own_do_not_count(data):
    """They have no multiple: a path measures what its steps limit, on both samples."""
    X, _, groups, X_test, _, groups_test = data
    constraints = [FalsePositiveParity(max_disparity=0.5), "demographic_parity"]
    limits = {"sex": 0.1, "age": 0.15}
    model = ConstrainedERMClassifier(constraints, limits, sensitive=Sensitive(intersectional=False))
    path = path_of(data, model, max_disparities=(3, 2))
    for k, model in enumerate(path.estimators):
        train, test = (
            largest_share(model.predict(rows) == 1, by, limits)
            for rows, by in ((X, groups), (X_test, groups_test))
        )
        assert path.train_disparities[k] == pytest.approx(train)
        assert path.test_disparities[k] == pytest.approx(test)


def test_models_that_take_groups_get_those_of_all_attributes(data):
    *_, X_test, _, groups_test = data
    apart = Sensitive(intersectional=False)
    options = {"group_aware": True, "sensitive": apart, "cv": 2, "random_state": 0}
    model = FairDecisionClassifier(LogisticRegression(), max_disparity=LIMITS, **options)
    path = path_of(data, model)
    assert (path.train_disparities <= path.max_disparities + 1e-9).all()
    for tested, model in zip(path.test_disparities, path.estimators, strict=True):
        selected = model.predict(X_test, sensitive_features=groups_test) == 1
        assert tested == pytest.approx(largest_share(selected, groups_test, LIMITS))


def test_select_takes_a_limit_for_each_attribute(data):
    X, y, groups, *_ = data
    model = ConstrainedERMClassifier(
        max_disparity=LIMITS, sensitive=Sensitive(intersectional=False)
    )
    path = fairness_path(model, X, y, max_disparities=STEPS, sensitive_features=groups)
    assert path.select(max_disparity=LIMITS) is path.select(max_disparity=1)
    # Twice the limit of sex, but only once that of age.
    assert path.select(max_disparity={"sex": 0.1, "age": 0.1}) is path.select(max_disparity=1)
    assert path.select(max_disparity={"sex": 0.1, "age": 0.25}) is path.select(max_disparity=2)
