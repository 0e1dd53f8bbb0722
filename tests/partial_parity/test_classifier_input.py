"""PartialParityClassifier: bad input, input in other forms, and scikit-learn around it."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate

from skfair import Sensitive, metrics
from skfair.classification import PartialParityClassifier
from skfair.constraints.partial import IntervalConstraint
from skfair.model_selection import fairness_path
from tests.seeds import generator

PAIR = (0.1, 0.6)
AWARE = {"group_aware": True}
BLIND = {"constraint": "demographic_parity"}


def people(seed=0, n=400):
    rng = generator(seed)
    group = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3))
    X[:, 0] += group
    y = (X[:, 0] + X[:, 1] + rng.normal(size=n) > 1).astype(int)
    return X, y, np.array(["a", "b"])[group]


X, Y, GROUP = people()
TABLE = pd.DataFrame(X, columns=list("pqr")).assign(sex=GROUP)


def fit(X=X, y=Y, group=GROUP, sample_weight=None, **params):
    params = {"interval": PAIR, "max_disparity": 0.1, **params}
    return PartialParityClassifier(**params).fit(X, y, sample_weight, sensitive_features=group)


def groups_for(model, group=GROUP):
    return {"sensitive_features": group if model.is_group_aware_ else None}


def gap(scores, group=GROUP, interval=PAIR):
    return metrics.partial_statistical_parity_gap(
        None, scores, sensitive_features=group, interval=interval
    )


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {"solver": "repair"},
        {"constraint": IntervalConstraint("group_auc", surrogate="sigmoid")},
    ],
)
def test_what_blind_models_cannot_do(params):
    assert fit(**params, **AWARE).is_within_limit_


@pytest.mark.parametrize("aware", [True, False])
def test_a_class_that_a_group_lacks(aware):
    y = np.where(GROUP == "a", 0, Y)
    for constraint in ("equal_opportunity", "equalized_odds"):
        with pytest.raises(ValueError, match=r"1 cell: group 'a' with y=1.*Merge small groups"):
            fit(y=y, constraint=constraint, group_aware=aware)
    assert fit(y=y, constraint="group_auc", group_aware=aware).is_within_limit_
    y = np.where(GROUP == "a", 1, Y)
    assert fit(y=y, constraint="equal_opportunity", group_aware=aware).is_within_limit_


@pytest.mark.parametrize("params", [AWARE, {}])
def test_a_bound_below_one_row_is_raised(params):
    smallest = min(np.sum(GROUP == "a"), np.sum(GROUP == "b"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(max_disparity=1e-3, **params, max_iter=5)
    assert model.effective_disparity_ == pytest.approx(1 / (0.5 * smallest))
    assert f"{model.effective_disparity_:.4g} is used" in str(caught[0].message)
    measured = gap(model.decision_function(X, **groups_for(model)))
    assert model.is_within_limit_ == (measured <= model.effective_disparity_ + 1e-9)
    assert model.is_within_limit_ or not params


@pytest.mark.parametrize(
    ("constraint", "scale"),
    [
        *product(["statistical_parity", "demographic_parity"], ["conditional", "ccdf"]),
        ("group_auc", "conditional"),  # no share, so it has no other unit
    ],
)
def test_constant_columns(constraint, scale):
    model = fit(X=np.ones_like(X), constraint=constraint, scale=scale)
    assert model.is_within_limit_
    assert np.ptp(model.decision_function(X)) < 1e-9
    model = fit(X=np.ones_like(X), constraint=constraint, scale=scale, max_disparity=1.0, **AWARE)
    assert model.is_within_limit_


def test_scores_that_are_constant_in_each_group_can_be_made_one():
    model = fit(X=np.ones_like(X), **AWARE)
    assert model.train_disparity_ <= 0.1


@pytest.mark.parametrize("scale", ["conditional", "ccdf"])
def test_ties_across_the_ends_of_the_interval(scale):
    """A block of ties cannot be split: the bound gives way as far as it has to, and says so."""
    n_raised = 0
    for seed in range(12):
        X, y, group = people(seed)
        values = (X[:, :2] > 0).astype(float)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = fit(values, y, group, interval=(0.0, 0.3), scale=scale, **AWARE)
        said = [text for w in caught if "Because of ties, the" in (text := str(w.message))]
        scores = model.decision_function(values, sensitive_features=group)
        metric = {
            "conditional": metrics.partial_statistical_parity_gap,
            "ccdf": metrics.partial_ccdf_gap,
        }[scale]
        measured = metric(None, scores, sensitive_features=group, interval=(0.0, 0.3))
        assert model.train_disparity_ == pytest.approx(measured, abs=1e-9)
        assert (measured > 0.1 + 1e-9) == bool(said)
        assert measured <= model.effective_disparity_ + 1e-9
        assert all(f"{model.effective_disparity_:.4g}" in text for text in said)
        assert model.is_within_limit_
        n_raised += bool(said)
    assert n_raised >= 3


def test_intervals_of_equal_length():
    fit(interval={"a": (0.0, 0.3), "b": (0.1, 0.4)}, scale="ccdf", **BLIND, **AWARE)


def test_an_unfinished_fit_is_warned_about():
    with pytest.warns(ConvergenceWarning):
        model = fit(max_iter=1, **AWARE)
    assert model.status_ == "max_iter"


# --- the same data in other forms -------------------------------------------------------------


@pytest.mark.parametrize("params", [AWARE, {}])
def test_units_of_columns(params):
    units = np.array([2.0**-20, 2.0**20, 1.0])  # so that rounding hardly differs
    model, scaled = fit(alpha=0.0, **params), fit(X=X * units, alpha=0.0, **params)
    of_model = model.decision_function(X, **groups_for(model))
    of_scaled = scaled.decision_function(X * units, **groups_for(scaled))
    if params:
        np.testing.assert_allclose(of_scaled, of_model, atol=1e-4)
    # Blind models solve problems that are not convex, so that roundings end beside each other.
    assert np.corrcoef(of_scaled, of_model)[0, 1] > 0.99
    assert scaled.objective_ == pytest.approx(model.objective_, rel=0.02)
    assert scaled.is_within_limit_ == model.is_within_limit_
    assert np.isfinite(fit(X=X * units, **params).coef_).all()


@pytest.mark.parametrize("params", [AWARE, {"max_disparity": 0.3, "max_iter": 20}])
def test_more_columns_than_rows(params):
    wide = generator(0).normal(size=(100, 150))
    model = fit(wide, Y[:100], GROUP[:100], **params)
    scores = model.decision_function(wide, **groups_for(model, GROUP[:100]))
    measured = gap(scores, GROUP[:100])
    assert model.train_disparity_ == pytest.approx(measured, abs=1e-9)


@pytest.mark.slow
def test_a_refit_leaves_nothing_behind():
    settings = [
        {**AWARE, "max_disparity": 0.1},
        {
            "solver": "al_lbfgs",
            "max_disparity": 0.9,
            "certificate": 0.5,
            "max_iter": 10,
            "random_state": 0,
        },
        {"constraint": "group_auc", "max_disparity": 0.2},
        {**AWARE, "constraint": "demographic_parity", "loss": "squared_error"},
    ]
    model = fit(TABLE[list("pqr")], **AWARE)
    for params in settings:
        fresh = fit(**params)
        model.set_params(**fresh.get_params()).fit(X, Y, sensitive_features=GROUP)
        assert set(vars(model)) == set(vars(fresh))
        assert (model.calibration_ is None) == (fresh.calibration_ is None)
        np.testing.assert_array_equal(model.multipliers_, fresh.multipliers_)
        if hasattr(fresh, "noise_floor_"):  # simulated and kept when asked for
            assert model.noise_floor_ == fresh.noise_floor_
        np.testing.assert_array_equal(
            model.decision_function(X, **groups_for(model)),
            fresh.decision_function(X, **groups_for(fresh)),
        )


# --- scikit-learn around it -------------------------------------------------------------------


def test_search_without_routing():
    scorer = metrics.make_fairness_scorer(
        metrics.partial_statistical_parity_gap, interval=PAIR, sensitive="sex"
    )
    model = PartialParityClassifier(PAIR, sensitive="sex")
    search = GridSearchCV(model, {"max_disparity": [0.1, 0.9]}, scoring=scorer, cv=2)
    search.fit(TABLE, Y)
    assert scorer(search, TABLE, Y) == pytest.approx(-gap(search.decision_function(TABLE)))
    splits, expected, accuracies = list(StratifiedKFold(2).split(X, Y)), [], []
    for limit in (0.1, 0.9):
        models = [fit(X[k], Y[k], GROUP[k], max_disparity=limit) for k, _ in splits]
        tested = [(model, test) for model, (_, test) in zip(models, splits, strict=True)]
        gaps = [gap(model.decision_function(X[test]), GROUP[test]) for model, test in tested]
        expected.append(-np.mean(gaps))
        accuracies.append([model.score(X[test], Y[test]) for model, test in tested])
    # Of 200 rows each, rounding may move some.
    assert search.cv_results_["mean_test_score"] == pytest.approx(expected, abs=0.05)
    accuracy = cross_validate(search.best_estimator_, TABLE, Y, cv=2)["test_score"]
    assert accuracy == pytest.approx(accuracies[search.best_index_], abs=0.02)


@pytest.mark.filterwarnings("error:max_disparity=.* is below the noise floor")
@pytest.mark.filterwarnings("ignore:The solver stopped")  # under the surrogate, near its limit
def test_limits_of_overlapping_attributes_below_the_noise_floor():
    rng = generator(0)
    X = rng.normal(size=(8000, 2))
    A = pd.DataFrame({"sex": rng.integers(0, 2, 8000), "age": rng.integers(0, 3, 8000)})
    y = (X[:, 0] + rng.normal(size=8000) > 0).astype(int)
    model = PartialParityClassifier(
        (0.1, 0.9), sensitive=Sensitive(intersectional=False), enforce="surrogate"
    )
    model.set_params(max_disparity={"sex": 0.3, "age": 0.3}).fit(X, y, sensitive_features=A)
    with pytest.warns(UserWarning, match=r"max_disparity=0.015 is below the noise floor"):
        model.set_params(max_disparity={"sex": 0.3, "age": 0.015}).fit(X, y, sensitive_features=A)
    assert 0.015 < model.noise_floor_ < 0.3


def test_a_model_without_disparities_by_attribute_has_no_path():
    rng = generator(0)
    both = pd.DataFrame({"sex": rng.choice(["f", "m"], 400), "age": rng.choice(["o", "y"], 400)})
    model = PartialParityClassifier(
        max_disparity={"sex": 0.05, "age": 0.1}, sensitive=Sensitive(intersectional=False)
    )
    rows = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    with pytest.raises(TypeError, match="does not say which disparity each attribute has"):
        fairness_path(model, *rows, max_disparities=[4], sensitive_features=both)
