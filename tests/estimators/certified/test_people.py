"""Certificates of people who have several rows: fit(units=)."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Certificate
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.estimators.certified.refits import in_folds, in_parts
from skfair.exceptions import RepeatedRowsWarning
from skfair.groups.encoding import encode_groups
from skfair.groups.row_units import read_units
from skfair.groups.training_data import TrainingData
from skfair.read import _warn_of_repeats
from skfair.regression import ConstrainedERMRegressor
from tests.families import by_families
from tests.seeds import generator

# Limits on small samples are tight here. tests/estimators/test_explained.py is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:The limits lower R2")

SPLIT = Certificate(0.9, by="split")
FREE = LogisticRegression(C=np.inf)
CROSSED = {
    "aware": FairDecisionClassifier(FREE, max_disparity=0.2, group_aware=True, certificate=0.9),
    "blind": FairDecisionClassifier(FREE, max_disparity=0.2, certificate=0.9, group_estimator=FREE),
    "constrained": ConstrainedERMClassifier(max_disparity=0.2, alpha=0, certificate=0.9),
    "means": ConstrainedERMRegressor(max_disparity=0.3, alpha=0, certificate=0.9, random_state=0),
}
HALVED = {
    "constrained split": ConstrainedERMClassifier(
        max_disparity=0.9, alpha=0, certificate=SPLIT, random_state=0
    ),
    "means split": ConstrainedERMRegressor(
        max_disparity=2.0, alpha=0, certificate=SPLIT, random_state=0
    ),
    **by_families("CERTIFIED_BY_HALVES"),
}
MODELS = CROSSED | HALVED


def people(n=400, seed=0):
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    X = rng.normal(size=(n, 2)) + 0.5 * (sex == "m")[:, None]
    return X, (X[:, 0] + rng.logistic(size=n) > 0.5).astype(int), sex


def fitted(model, X, y, sex, **given):
    model = clone(model)
    targets = X[:, 0] + y if is_regressor(model) else y
    return model.fit(X, targets, sensitive_features=sex, **given)


def visits(n=400, n_times=3):
    """Return rows of people who come several times, a little different each time."""
    X, y, sex = people(n)
    person = np.repeat(np.arange(n), n_times)
    X = X[person] + 0.1 * generator(1).normal(size=(person.size, 2))
    return X, y[person], sex[person], person


# "partial odds" is of the same kind and takes a third of the time.
each_model = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in ("partial", "calibrated") else ())
        for name in MODELS
    ],
)


@each_model
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_people_with_one_row_each_change_nothing(name):
    model, rows = MODELS[name], people()
    without, each = fitted(model, *rows), fitted(model, *rows, units=np.arange(400))
    assert each.certified_disparity_ == without.certified_disparity_
    assert each.status_ == without.status_


@each_model
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_copies_of_rows_say_as_much_as_the_rows_once(name):
    """Bounds are as far above what is reached; parts of the rows are others."""
    X, y, sex = people(800)
    person = np.tile(np.arange(800), 3)
    step = 0 if is_regressor(MODELS[name]) else -1

    def margin(rows, **given):
        path = fitted(MODELS[name], X[rows], y[rows], sex[rows], **given).path_
        return path["bound"][step] - path["disparity"][step]

    once = margin(np.arange(800))
    exactly = {"abs": 1e-4} if name in CROSSED else {"rel": 0.4}
    assert margin(person, units=person) == pytest.approx(once, **exactly)
    with pytest.warns(RepeatedRowsWarning):
        assert margin(person) < 0.8 * once  # 0.58 of it


@pytest.mark.parametrize("model", CROSSED.values(), ids=CROSSED)
def test_names_of_people_and_the_order_of_rows_change_nothing(model):
    X, y, sex, person = visits()
    expected = fitted(model, X, y, sex, units=person).certified_disparity_
    order = generator(2).permutation(person.size)
    names = generator(3).permutation(400)[person].astype(str)
    found = fitted(model, X[order], y[order], sex[order], units=names[order])
    assert found.certified_disparity_ == pytest.approx(expected, abs=1e-6)


def test_parts_and_folds_keep_people_whole():
    X, y, sex, person = visits()
    units, groups = read_units(person, person.size), encode_groups(sex)
    fitted_on, judging = in_parts(groups.codes[0], 0, 0.3, units)
    assert np.intersect1d(person[fitted_on], person[judging]).size == 0
    assert np.array_equal(np.sort(np.append(fitted_on, judging)), np.arange(person.size))
    of_group = np.unique(sex, return_counts=True)[1]
    assert np.abs(np.unique(sex[judging], return_counts=True)[1] - 0.3 * of_group).max() <= 3
    data = TrainingData(X, y.astype(float), None, groups, units=units)
    for train, test in in_folds(data, 0):
        assert np.intersect1d(person[train], person[test]).size == 0


@pytest.mark.parametrize(
    "name",
    [
        "aware",
        "constrained",
        "means split",
        pytest.param("partial odds", marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_people_are_routed_through_pipelines_and_searches(name):
    model, (X, y, sex, person) = MODELS[name], visits(200)
    own = {} if is_regressor(model) else {"scoring": lambda model, X, y: 0.0}
    y = y + X[:, 0] if is_regressor(model) else y
    given = {"sensitive_features": sex, "units": person}
    searched = clone(model).set_params(max_disparity=0.99)
    expected = clone(searched).fit(StandardScaler().fit_transform(X), y, **given)
    with config_context(enable_metadata_routing=True):
        piped = make_pipeline(StandardScaler(), clone(searched)).fit(X, y, **given)
        assert piped[-1].certified_disparity_ == expected.certified_disparity_
        grid = {"max_disparity": [0.99]}
        search = GridSearchCV(searched, grid, cv=GroupKFold(2), error_score="raise", **own)
        search.fit(StandardScaler().fit_transform(X), y, groups=person, **given)
        assert search.best_estimator_.certified_disparity_ == expected.certified_disparity_
        how = {
            "cv": GroupKFold(2),
            "params": {**given, "groups": person},
            "return_estimator": True,
            **own,
        }
        ones = cross_validate(searched, X, y, error_score="raise", **how)["estimator"]
    for (train, _), one in zip(GroupKFold(2).split(X, y, person), ones, strict=True):
        own = {name: column[train] for name, column in given.items()}
        other = clone(searched).fit(X[train], y[train], **own)
        assert one.certified_disparity_ == other.certified_disparity_


@pytest.mark.parametrize("name", ["aware", "constrained split", "means"])
def test_a_summary_counts_people(name):
    X, y, sex, person = visits(120, 10)
    model = clone(MODELS[name]).set_params(max_disparity=0.9)
    assert ", rows 1200 of 120 people," in fitted(model, X, y, sex, units=person).summary_
    assert "people" not in fitted(model, X, y, sex, units=np.arange(y.size)).summary_


@pytest.mark.parametrize("name", ["aware", "constrained", "means"])
def test_rows_that_look_like_people_who_repeat_are_warned_of_once(name, recwarn):
    X, y, sex, person = visits(100)
    table = pd.DataFrame(X).assign(customerID=person).rename(columns=str)

    def said(rows, **given):
        recwarn.clear()
        targets = y + X[:, 0] if name == "means" else y
        clone(MODELS[name]).fit(rows, targets, sensitive_features=sex, **given)
        return [str(w.message) for w in recwarn if w.category is RepeatedRowsWarning]

    assert said(X) == said(X, units=person) == said(table, units=person) == []
    indexed = pd.DataFrame(X, index=pd.Index(person, name="customer_id")).rename(columns=str)
    (message,) = said(indexed)
    assert "the column customer_id has 100 values in 300 rows" in message
    assert said(indexed.reset_index(drop=True)) == []
    (message,) = said(table)
    assert "the column customerID has 100 values in 300 rows" in message
    assert "pass units=" in message
    assert "different people, ignore this" in message


@pytest.mark.parametrize("other", ["income_per_person", "covid"])
def test_the_values_of_a_column_say_whether_it_is_of_people(other):
    X, y, sex, person = visits()

    def names(of_rows, name="customerID"):
        rows = np.column_stack([X, of_rows])
        _warn_of_repeats(y, rows, np.array(["a", "b", name]), encode_groups(sex), None)

    shuffled = generator(0).permutation(person)  # values that repeat, not of people
    names(shuffled, other)  # a warning would be an error
    names(person % 40)
    with pytest.warns(RepeatedRowsWarning, match=f"the column {other} has 400 values"):
        names(person, other)


def repeats(X, y, sex, **groups):
    names = np.arange(X.shape[1])
    _warn_of_repeats(y, X, names, encode_groups(sex), groups.get("sensitive_features"))


def test_people_among_the_sensitive_features_are_warned_of():
    X, y, sex, person = visits(100)
    patient = np.array([f"p{k}" for k in range(100)])[person]
    with pytest.warns(RepeatedRowsWarning, match="column patient has 100 values in 300 rows"):
        repeats(X, y, sex, sensitive_features={"sex": sex, "patient": patient})
    repeats(X, y, sex, sensitive_features={"sex": sex, "patience": patient})  # no warning


def test_twins_must_be_alike_in_target_and_group_as_well():
    X = np.repeat(np.arange(200.0), 2)[:, None]
    sex, y = np.tile(["f", "m"], 200), generator(0).integers(0, 2, 400)
    repeats(X, y, sex)  # a warning would be an error
    with pytest.warns(RepeatedRowsWarning, match="column 0 .*same value are of the same group"):
        repeats(X, np.tile([0, 1], 200), np.repeat(sex[:200], 2))  # a column of people, no twins
    with pytest.warns(RepeatedRowsWarning, match="400 of 400 rows have a twin in X, y and group"):
        repeats(X, np.repeat(y[:200], 2), np.repeat(sex[:200], 2))


def test_coarse_columns_of_different_people_are_not_taken_for_people_who_repeat():
    rng = generator(0)
    coarse = np.column_stack([rng.integers(18, 66, 4000), rng.integers(0, 3, (4000, 2))])
    y, sex = rng.integers(0, 2, 4000), np.array(["f", "m"])[rng.integers(0, 2, 4000)]
    exact = np.column_stack([coarse, rng.normal(size=4000)])
    repeats(coarse.astype(float), y, sex)  # a warning would be an error
    with pytest.warns(RepeatedRowsWarning, match="have a twin"):
        repeats(*(np.repeat(values[:2000], 2, axis=0) for values in (exact, y, sex)))
