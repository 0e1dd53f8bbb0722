"""One fit of every solver in every estimator that takes it, on real data, counted by hand.

What is asserted is the formula of the paper that the estimator follows, written in plain numpy.
Solvers come from the registries, so that a new one is tested without editing this file: it is
fitted in every estimator, and must either do what is asserted there or be refused for what the
problem lacks. Estimators come from the packages; one that takes a solver must be listed here.
"""

import importlib
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
from skfair.ranking import FairRanker
from skfair.regression import ConstrainedERMRegressor
from tests.families import by_families
from tests.naive import ranking
from tests.public import names_in
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
# What problems lack, so that solvers that need it are refused.
NOT_IN_RANKINGS = {"hessian"}
RANKING_SOLVERS = [name for name in SOLVERS if not NOT_IN_RANKINGS & set(SOLVERS[name].needs)]
# The estimators that take a solver, and the tests of theirs below.
TESTS = {
    "ConstrainedERMClassifier": "test_decisions_keep_the_limit",
    "ConstrainedERMRegressor": "test_mean_predictions_keep_the_limit",
    "FairRanker": "test_disparities_of_queries_are_those_of_all_pairs",
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


@cache
def states(n_states=6):
    """Communities of some states: columns, thirds of the crime rate, state, group."""
    data = load_local("communities_crime")
    table = data.frame[
        data.frame["state"].isin(data.frame["state"].value_counts().index[:n_states])
    ]
    columns = data.data.loc[table.index].dropna(axis=1)
    X = StandardScaler().fit_transform(columns.select_dtypes("number"))[:, :30]
    grades = np.digitize(data.target.loc[table.index], [0.1, 0.3])
    group = data.sensitive_features["black_median"].loc[table.index].to_numpy(str)
    state = table["state"].to_numpy()
    kept = np.flatnonzero(pd.Series(state).groupby(state).cumcount() < 40)
    return X[kept], grades[kept], state[kept], group[kept]


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


@each(SOLVERS, RANKING_SOLVERS)
def test_disparities_of_queries_are_those_of_all_pairs(solver):
    """Section D.3 of plada: errors on pairs of either direction, for each query."""
    X, y, query, group = states()
    model = FairRanker(0.15, solver=solver, query_share=None, max_iter=300, random_state=0)
    quietly(model, X, y, query, sensitive_features=group)
    scores = model.predict(X)
    gaps = np.array(ranking.pair_error_gaps(y, scores, query, group), dtype=float)
    np.testing.assert_allclose(model.disparity_by_query_, gaps, atol=1e-12)
    assert model.train_disparity_ == pytest.approx(np.nanmax(gaps), abs=1e-12)
    within = np.mean(gaps[np.isfinite(gaps)] <= 0.15 + 1e-9)
    assert model.share_within_ == pytest.approx(within, abs=1e-12)
    errors = [
        ranking.pair_error_rate(y, scores, rows, rows, rows)
        for rows in (ranking.rows_of(query, name) for name in np.unique(query))
    ]
    assert np.mean(errors) < 0.5  # of constant scores


def test_each_estimator_that_takes_a_solver_is_tested():
    found = set()
    for package in ("classification", "regression", "cluster", "ranking"):
        module = importlib.import_module(f"skfair.{package}")
        kinds = [getattr(module, name) for name in module.__all__]
        found |= {
            kind.__name__
            for kind in kinds
            if inspect.isclass(kind) and "solver" in inspect.signature(kind).parameters
        }
    assert found == {*TESTS, *by_families("SOLVER_TESTS")}
    assert all(callable(globals()[name]) for name in TESTS.values())


@each_solver
def test_a_solver_that_is_not_tested_in_an_estimator_is_refused_there(solver):
    """It needs what the problem lacks; so no solver is left out by mistake."""
    if solver not in RANKING_SOLVERS:
        X, y, query, group = states()
        with pytest.raises(TypeError, match="cannot solve"):
            quietly(FairRanker(solver=solver), X, y, query, sensitive_features=group)
