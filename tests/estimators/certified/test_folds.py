"""Regressors certified on folds: what is judged, what is returned, and what it is worth."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skfair import Certificate, Sensitive, metrics
from skfair.constraints import ConditionalOn, MeanScoreParity
from skfair.constraints.base import make_constraints
from skfair.estimators.certificate import SHARES
from skfair.estimators.certified.linear_folds import linear_refits, mean_model
from skfair.estimators.certified.refits import HeldOut, in_folds
from skfair.estimators.erm.bind import bind
from skfair.estimators.erm.task import regression_task
from skfair.read import ROW_CHECKS, read_rows
from skfair.regression import ConstrainedERMRegressor
from skfair.regression.certifying import MOST_ROWS_IN_FOLDS
from tests.seeds import generator

# Limits on small samples are tight here. tests/estimators/test_explained.py is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:The limits lower R2")


def people(n, seed=0, d=8):
    rng = generator(seed)
    groups = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(n, d))
    X[:, 0] += 0.8 * (groups == "b")
    return X, 2 * X[:, 0] + X[:, 1] + 2 * rng.normal(size=n), groups


X, Y, GROUPS = people(400)


def regressor(limit=1.0, by="auto", **options):
    certificate = Certificate(0.95, by=by)
    return ConstrainedERMRegressor(
        max_disparity=limit, **{"certificate": certificate, "random_state": 0, **options}
    )


def folds_of(model, rows=X, seed=0, **metadata):
    data = read_rows(model, rows, Y, **{"sensitive_features": GROUPS, **metadata}, **ROW_CHECKS)
    task = regression_task(data.y, None, model._settings())
    constraints = make_constraints(model.constraint, "regression")
    splits = in_folds(data, seed)
    problem = bind(data, task, constraints)
    folds = (linear_refits(task.settings, data, problem, task.scale.spread, i) for i, _ in splits)
    return HeldOut(data.X, data.y, splits), zip(*folds, strict=True)


def gap(values, groups):
    return metrics.mean_score_difference(None, values, sensitive_features=groups)


def test_each_row_is_judged_once_by_a_model_that_has_not_seen_it():
    folds, path = folds_of(regressor())
    assert len(folds.splits) == 10
    assert sorted(np.concatenate([judging for _, judging in folds.splits])) == list(range(400))
    for fitted, judging in folds.splits:
        assert not set(fitted) & set(judging)
        for name in "abc":  # groups are divided alike
            share = np.mean(GROUPS[judging] == name), np.mean(name == GROUPS)
            assert share[0] == pytest.approx(share[1], abs=0.03)
    *_, models = path
    predicted = dict(zip(folds.judging.tolist(), folds.predictions(models), strict=True))
    for fitted, judging in folds.splits:
        own = regressor(certificate=None).fit(
            X[fitted], Y[fitted], sensitive_features=GROUPS[fitted]
        )
        found = [predicted[row] for row in judging]
        assert found == pytest.approx(own.predict(X[judging]), abs=1e-6)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({}, 1e-6),
        ({"fit_intercept": False}, 1e-6),
        ({"solver": "al_lbfgs", "tol": 1e-8}, 1e-5),
        ({"loss": "absolute_error"}, 1e-4),
        ({"constraint": MeanScoreParity(max_disparity=1.5), "limit": None}, 1e-6),
    ],
)
def test_each_step_of_a_path_is_the_fit_under_that_limit(options, error, is_sparse):
    rows = sparse.csr_array(np.where(X > 0.8, X, 0.0)) if is_sparse else X
    folds, path = folds_of(regressor(**options), rows)
    fitted, _ = folds.splits[0]
    own = regressor(**{"certificate": None, **options})
    steps = list(path)
    for step in (0, 4, 10):
        if "constraint" in options:
            own.set_params(constraint__max_disparity=1.5 * SHARES[step])
        else:
            own.set_params(max_disparity=SHARES[step])
        own.fit(rows[fitted], Y[fitted], sensitive_features=GROUPS[fitted])
        assert steps[step][0].coef_ == pytest.approx(own.coef_, abs=error)
        assert steps[step][0].intercept_ == pytest.approx(own.intercept_, abs=error)


@pytest.mark.filterwarnings("ignore:1 group of fewer than 30 rows")
@pytest.mark.parametrize("kind", ["overlapping", "strata", "rare"])
def test_folds_know_the_groups_of_their_own_rows_only(kind):
    rng = generator(5)
    metadata, options = {"sensitive_features": GROUPS}, {}
    if kind == "overlapping":
        metadata["sensitive_features"] = np.column_stack([GROUPS, rng.choice(["u", "v"], 400)])
        options["sensitive"] = Sensitive(intersectional=False)
    elif kind == "strata":
        metadata["control_features"] = rng.choice(["u", "v"], 400)
        options["constraint"] = ConditionalOn("mean_score_parity")
    else:
        metadata["sensitive_features"] = np.where(np.arange(400) < 1, "d", GROUPS)
    folds, path = folds_of(regressor(0.3, **options), **metadata)
    own = regressor(0.3, certificate=None, **options)
    *_, models = path
    n_groups = set()
    for model, (fitted, _) in zip(models, folds.splits, strict=True):
        own.fit(X[fitted], Y[fitted], **{key: v[fitted] for key, v in metadata.items()})
        n_groups.add(own.groups_.size)
        assert model.coef_ == pytest.approx(own.coef_, abs=1e-6)
        assert model.intercept_ == pytest.approx(own.intercept_, abs=1e-6)
    assert n_groups == {"overlapping": {5}, "strata": {3}, "rare": {3, 4}}[kind]


@pytest.mark.slow
def test_stochastic_solvers_walk_the_path_too():
    model, exact = (
        regressor(6.0, **options).fit(X, Y, sensitive_features=GROUPS)
        for options in ({"solver": "alm", "max_iter": 80}, {})
    )
    for one in (model, exact):
        assert one.path_["is_certified"].sum() == len(SHARES)  # also without any limit
    assert model.path_["r2"][-1] == pytest.approx(exact.path_["r2"][-1], abs=0.05)


def test_the_difference_of_the_mean_is_the_mean_of_the_differences():
    """So what is shown of the models on average is shown of the one that is returned."""
    models = next(folds_of(regressor())[1])
    new, _, groups = people(1000, seed=1)

    def difference(values):
        return values[groups == "a"].mean() - values[groups == "b"].mean()

    of_mean = difference(mean_model(models).predict(new))
    assert of_mean == pytest.approx(np.mean([difference(m.predict(new)) for m in models]))


def test_the_certificate_adds_what_the_public_test_says_of_each_pair():
    """In both directions; that of the measured one is the larger."""
    model = regressor().fit(X, Y, sensitive_features=GROUPS)
    folds, path = folds_of(regressor())
    groups, y = GROUPS[folds.judging], Y[folds.judging]
    for step in range(len(model.path_["p_value"])):
        predicted = folds.predictions(next(path))
        test = metrics.disparity_test(
            "mean_score_difference", None, predicted, sensitive_features=groups, max_disparity=1.0
        )
        total = test.pairs["p_value"].sum()
        assert min(total, 1.0) - 1e-9 <= model.path_["p_value"][step] <= min(2 * total, 1.0) + 1e-9
        assert model.path_["disparity"][step] == pytest.approx(gap(predicted, groups))
        residual = ((y - predicted) ** 2).sum() / ((Y - Y.mean()) ** 2).sum()
        assert model.path_["r2"][step] == pytest.approx(1 - residual)


def test_folds_are_worth_more_than_halves():
    """All rows judge in place of a half: bounds are nearer to what is reached, in the mean."""
    margins = {"cross": 0.0, "split": 0.0}
    for by, seed in product(margins, range(6)):
        model = regressor(3.0, by, random_state=seed).fit(X, Y, sensitive_features=GROUPS)
        margins[by] += (model.path_["bound"] - model.path_["disparity"])[0]
    assert margins["cross"] < 0.95 * margins["split"]


def test_the_seed_decides_the_folds():
    """Numbers are dealt by their size, so the order of three groups alone differs: in 6 ways."""

    def folds(seed):
        return tuple(folds_of(regressor(), seed=seed)[0].judging.tolist())

    assert folds(3) == folds(3)
    assert 1 < len({folds(seed) for seed in range(12)}) <= 6


def test_many_rows_are_halved_unless_folds_are_asked_for(monkeypatch):
    monkeypatch.setattr("skfair.regression.certifying.MOST_ROWS_IN_FOLDS", 399)
    fits = {
        certify: regressor(3.0, certify).fit(X, Y, sensitive_features=GROUPS).coef_
        for certify in ("auto", "cross", "split")
    }
    assert np.array_equal(fits["auto"], fits["split"])
    assert not np.array_equal(fits["auto"], fits["cross"])
    assert MOST_ROWS_IN_FOLDS == 50_000


def test_networks_are_halved():
    model = regressor(3.0, model=(2,), max_iter=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, Y, sensitive_features=GROUPS)
    assert [layer.shape for layer in model.coefs_] == [(8, 2), (2, 1)]


def test_a_mean_of_models_that_predicts_alike_for_all_is_no_solution():
    """Each fold predicts the mean of its rows, so what is judged differs, and what predicts not."""
    with pytest.warns(ConvergenceWarning, match="treat all rows alike"):
        model = regressor(2.0).fit(np.ones((Y.size, 1)), Y, sensitive_features=GROUPS)
    assert model.status_ == "no_solution"


@pytest.mark.filterwarnings("ignore:2 groups of fewer than 30 rows")
@pytest.mark.parametrize("n", [4, 9, 30])
def test_few_rows_have_no_solution(n):
    groups = np.array(["a", "b"])[np.arange(n) % 2]
    with pytest.warns(ConvergenceWarning, match=f"With {n} people, no model"):
        model = regressor(0.1).fit(X[:n], Y[:n], sensitive_features=groups)
    assert model.status_ == "no_solution"
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.filterwarnings("ignore:1 group of fewer than 30 rows")
def test_a_group_of_one_row_is_named():
    groups = np.r_[["c"], np.repeat(["a", "b"], [200, 199])]
    with pytest.raises(
        ValueError, match="needs two rows or more of each group, but the group 'c' has fewer"
    ):
        regressor().fit(X, Y, sensitive_features=groups)
    groups[1:6] = "c"
    with pytest.warns(ConvergenceWarning, match="more people"):
        assert regressor(0.2).fit(X, Y, sensitive_features=groups).status_ == "no_solution"
