"""Columns of X that tell the group, or whose row it is."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.exceptions import GroupColumnWarning, RepeatedRowsWarning
from skfair.groups.telling_columns import columns_that_tell
from skfair.regression import ConstrainedERMRegressor, FairDecisionRegressor
from tests.families import by_families
from tests.seeds import generator

BLIND = {
    "decisions": FairDecisionClassifier(max_disparity=0.5),
    "constrained": ConstrainedERMClassifier(max_disparity=0.5),
    **by_families("BLIND"),
    "means": ConstrainedERMRegressor(max_disparity=5.0),
    "numbers": FairDecisionRegressor(LinearRegression(), max_disparity=5.0),
}
AWARE = {
    "decisions": FairDecisionClassifier(max_disparity=0.5, group_aware=True),
    **by_families("AWARE"),
    "kept": FairDecisionClassifier(max_disparity=0.5, sensitive=Sensitive("sex", keep=True)),
}


def people(n=400, seed=0):
    rng = generator(seed)
    sex = rng.choice(["f", "m"], n)
    table = pd.DataFrame({"x": rng.normal(size=n), "z": rng.integers(0, 3, n)})
    return table, (table["x"] + rng.logistic(size=n) > 0).astype(int), sex


def named(recwarn):
    return [str(w.message) for w in recwarn if w.category is GroupColumnWarning]


@pytest.mark.parametrize("model", BLIND.values(), ids=BLIND)
def test_a_column_that_tells_the_groups_of_a_blind_model_is_named_once(model, recwarn):
    X, y, sex = people()
    told = X.assign(gender=np.where(sex == "m", 7.0, 3.0))
    model.fit(X, y, sensitive_features={"sex": sex})
    assert named(recwarn) == []
    model.fit(told, y, sensitive_features={"sex": sex})
    (message,) = named(recwarn)
    assert "gender tells sex" in message


def test_the_column_of_sensitive_is_no_feature_but_its_copy_is(recwarn):
    X, y, sex = people()
    X = X.assign(sex=(sex == "m") * 1)
    model = FairDecisionClassifier(max_disparity=0.5, sensitive="sex")
    model.fit(X, y)
    assert named(recwarn) == []
    model.fit(X.assign(gender=sex == "f"), y)
    assert "gender tells sex" in named(recwarn)[0]


@pytest.mark.parametrize("model", AWARE.values(), ids=AWARE)
def test_models_that_may_use_the_group_are_not_warned_of(model, recwarn):
    X, y, sex = people()
    given = {} if model.sensitive is not None else {"sensitive_features": sex}
    model.fit(X.assign(sex=(sex == "m") * 1), y, **given)
    assert named(recwarn) == []


def test_what_tells_a_group_and_what_does_not():
    rng = generator(0)
    n = 3000
    race = rng.choice(["a", "b", "c"], n, p=[0.6, 0.35, 0.05])
    age = rng.integers(18, 90, n)
    nearly = np.where(rng.random(n) < 0.001, "a", race)
    columns = {
        "same": race,
        "coded": pd.factorize(race)[0] * 10.5,
        "nearly": nearly,
        "one hot": (race == "b") * 1,
        "finer": np.char.add(race, rng.integers(0, 9, n).astype(str)),
        "mostly missing": np.where(race == "c", None, "known"),
        "often": np.where(rng.random(n) < 0.1, "a", race),
        "constant": np.zeros(n),
        "noise": rng.normal(size=n),
        "levels": rng.integers(0, 40, n),
        "identifier": rng.permutation(n),
        "shifted": rng.normal(size=n) + 2 * (race == "a"),
        "lists": [[1]] * n,
    }
    X = pd.DataFrame(columns)
    told = columns_that_tell(X, X.columns.to_numpy(), [("race", race)])
    assert set(told) == {"same", "coded", "nearly", "one hot", "finer", "mostly missing"}
    assert set(told.values()) == {"race"}
    band = np.where(age < 40, "young", "old")
    ages = {"age": age, "exact": age + rng.random(n), "near": age + rng.normal(size=n)}
    ages = pd.DataFrame(ages)
    told = columns_that_tell(ages, ages.columns.to_numpy(), [("band", band)])
    assert set(told) == {"age", "exact"}
    # A group of nearly everybody is not told by a column that says the same of everybody.
    rare = np.where(np.arange(n) < 25, "x", "y")
    assert columns_that_tell(X[["constant", "noise"]], X.columns.to_numpy(), [(None, rare)]) == {}


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array])
def test_columns_of_sparse_rows(kind):
    rng = generator(0)
    race = rng.integers(0, 3, 900)
    dense = np.column_stack([rng.random((900, 4)) < 0.1, np.eye(3)[race], np.zeros((900, 1))])
    told = columns_that_tell(kind(dense), np.arange(8), [("race", race)])
    assert set(told) == {"4", "5", "6"}


def test_each_attribute_is_compared_and_rows_without_a_group_are_left_out(recwarn):
    X, y, sex = people()
    old = generator(1).integers(0, 2, 400)
    both = {"sex": sex, "old": old}
    FairDecisionClassifier(max_disparity=0.5).fit(X.assign(aged=old), y, sensitive_features=both)
    assert "aged tells old" in named(recwarn)[0]
    recwarn.clear()
    some = pd.Series(sex).where(np.arange(400) % 4 > 0)
    model = FairDecisionClassifier(max_disparity=0.5, sensitive=Sensitive(missing="loss"))
    model.fit(X.assign(gender=sex == "m"), y, sensitive_features=some.rename("sex"))
    assert "gender tells sex" in named(recwarn)[0]


def test_audits_of_models_name_the_column(recwarn):
    audit = pytest.importorskip("skfair.report").Audit
    X, y, sex = people()
    told = X.assign(gender=(sex == "m") * 1)
    plain = make_pipeline(StandardScaler(), LogisticRegression())
    given = {"sensitive_features": {"sex": sex}, "n_simulations": 20}
    audit.from_estimator(plain.fit(X, y), X, y, **given)
    assert named(recwarn) == []
    audit.from_estimator(plain.fit(told, y), told, y, **given)
    assert "gender tells sex" in named(recwarn)[0]
    fair = FairDecisionClassifier(max_disparity=0.5, sensitive="gender").fit(told, y)
    recwarn.clear()
    audit.from_estimator(fair, told, y, **given)
    assert named(recwarn) == []


def test_a_column_of_people_is_named_whatever_it_is_called(recwarn):
    rng = generator(0)
    person = rng.integers(0, 300, 1200)
    sex, x = rng.choice(["f", "m"], 300)[person], rng.normal(size=1200)
    y = (x + rng.logistic(size=1200) > 0).astype(int)
    numbers = rng.permutation(10**6)[:300][person]
    model = ConstrainedERMClassifier(max_disparity=0.5, certificate=0.9)

    def said(column, **given):
        recwarn.clear()
        X = pd.DataFrame({"x": x, "file": column})
        model.fit(X, y, sensitive_features=sex, **given)
        return [str(w.message) for w in recwarn if w.category is RepeatedRowsWarning]

    assert "the column file" in said(numbers)[0]
    assert said(numbers, units=person) == []
    assert said(rng.permutation(numbers)) == []
    # Its values are bands of the groups, not people.
    assert said(np.where(sex == "m", 100, 0) + rng.integers(0, 60, 1200)) == []
