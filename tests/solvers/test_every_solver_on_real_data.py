"""One fit of every solver in every estimator that takes it, on real data, counted by hand.

What is asserted is the formula of the paper that the estimator follows, written in plain numpy.
Solvers come from the registries, so that a new one is tested without editing this file: it is
fitted in every estimator, and must either do what is asserted there or be refused for what the
problem lacks. Estimators come from the packages; one that takes a solver must be listed here.
"""

import inspect
import os
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.preprocessing import StandardScaler

from skfair.classification import ConstrainedERMClassifier
from skfair.datasets import load_local
from skfair.regression import ConstrainedERMRegressor
from tests.families import by_families
from tests.public import discover_estimators, names_in
from tests.registries import SOLVERS
from tests.seeds import generator

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("SKFAIR_DATA"), reason="needs the folder of data sets"),
]


def each(registry, names=None):
    """Return a mark for each name of a registry; those of papers are slow."""
    papers = {*names_in(registry, of_papers=True)}
    return pytest.mark.parametrize(
        "solver",
        [
            pytest.param(name, marks=pytest.mark.slow if name in papers else ())
            for name in (registry if names is None else names)
        ],
    )


each_solver = each(SOLVERS)
# The estimators that take a solver, and the tests of theirs below.
TESTS = {
    "ConstrainedERMClassifier": "test_decisions_keep_the_limit",
    "ConstrainedERMRegressor": "test_mean_predictions_keep_the_limit",
}


@cache
def people(n=600):
    """COMPAS: columns, classes, sex."""
    data = load_local("compas")
    rows = generator(0).choice(len(data.data), n, replace=False)
    X = pd.get_dummies(data.data).to_numpy(dtype=float)[rows]
    X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
    return X, data.target.to_numpy()[rows], data.sensitive_features["sex"].iloc[rows].to_numpy(str)


@cache
def points(n=200):
    """Numbers of Adult, standardised, and sex."""
    data = load_local("adult")
    rows = generator(0).choice(len(data.data), n, replace=False)
    X = data.data.select_dtypes("number").to_numpy(dtype=float)[rows]
    X = StandardScaler().fit_transform(X)
    return X, data.sensitive_features["sex"].iloc[rows].to_numpy(str)


def quietly(model, *args, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(*args, **params)


def difference(values, group):
    one, other = (values[group == g].mean() for g in np.unique(group))
    return abs(one - other)


@each_solver
def test_decisions_keep_the_limit(solver):
    """Demographic parity of decisions; the objective is no worse than that of constant scores."""
    X, y, group = people()
    model = ConstrainedERMClassifier(
        max_disparity=0.05, solver=solver, random_state=0, max_iter=100
    )
    quietly(model, X, y, sensitive_features=group)
    assert difference(model.predict(X) == model.classes_[1], group) <= 0.05 + 1e-9
    assert model.train_disparity_ == pytest.approx(
        difference(model.predict(X) == model.classes_[1], group), abs=1e-9
    )


@each_solver
def test_smooth_rates_keep_the_limit(solver):
    """(16) of plada, means of sigmoids; (8) of the benchmark paper for the stochastic ones."""
    X, y, group = people()
    model = ConstrainedERMClassifier(
        max_disparity=0.05, solver=solver, enforce="surrogate", random_state=0, max_iter=300
    )
    quietly(model, X, y, sensitive_features=group)
    scores = model.decision_function(X)
    losses = np.logaddexp(0, -np.where(y == model.classes_[1], 1, -1) * scores)
    assert np.isfinite(losses).all()
    if solver == "sgd":  # it is told of no constraint
        assert losses.mean() < np.log(2)
        return
    assert difference(expit(scores), group) <= 0.05 + (
        0.02 if SOLVERS[solver].is_stochastic else 5e-3
    )


@each_solver
def test_mean_predictions_keep_the_limit(solver):
    X, _, group = people()
    response = X[:, 0] + 0.5 * X[:, 1] + 0.5 * (group == group[0])
    model = ConstrainedERMRegressor(
        "mean_score_parity", 0.1, solver=solver, random_state=0, max_iter=250
    )
    quietly(model, X, response, sensitive_features=group)
    gap = difference(model.predict(X), group)
    assert model.train_disparity_ == pytest.approx(gap, abs=1e-9)
    if model.status_ != "infeasible":
        assert gap <= 0.1 + 1e-9
    else:
        assert SOLVERS[solver].is_stochastic


def test_each_estimator_that_takes_a_solver_is_tested():
    found = {
        name
        for name, kind in discover_estimators().items()
        if "solver" in inspect.signature(kind).parameters
    }
    assert found == {*TESTS, *by_families("SOLVER_TESTS")}
    assert all(callable(globals()[name]) for name in TESTS.values())
