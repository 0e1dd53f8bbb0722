"""ConstrainedERMRegressor: bounds in the units of the targets, exact answers on convex problems."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog, minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.metrics import mean_absolute_error, mean_squared_error

from skfair import metrics
from skfair.constraints import ConditionalOn
from skfair.exceptions import ExplainedVarianceWarning
from skfair.losses import Loss, RowParts
from skfair.regression import ConstrainedERMRegressor
from tests.seeds import generator

# Limits on small samples are tight here. tests/estimators/test_explained.py is about the warning.
pytestmark = pytest.mark.filterwarnings("ignore:The limits lower R2")


def people(seed=0, n=300, unit=1.0):
    rng = generator(seed)
    group = np.where(rng.random(n) < 0.4, "f", "m")
    X = rng.normal(size=(n, 3))
    X[:, 0] += group == "m"
    noise = np.where(group == "m", 1.5, 0.5) * rng.normal(size=n)
    return X, unit * (3 * X[:, 0] + X[:, 1] + noise) + 50 * unit, group


def mean_gap(model, X, group):
    p = model.predict(X)
    return abs(p[group == "m"].mean() - p[group == "f"].mean())


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e5, 1e100])
def test_mean_predictions_are_alike_and_optimal(unit):
    X, y, group = people(unit=unit)
    bound = 0.5 * unit
    model = ConstrainedERMRegressor(max_disparity=bound, alpha=0.01, tol=1e-8)
    with pytest.warns(ExplainedVarianceWarning, match="R2 on the training rows"):
        model.fit(X, y, sensitive_features=group)
    assert mean_gap(model, X, group) <= bound
    difference = X[group == "m"].mean(axis=0) - X[group == "f"].mean(axis=0)

    def loss(theta):
        residual = X @ theta[:3] + theta[3] - (y / unit - 50)
        return 0.5 * np.mean(residual**2) + 0.005 * theta[:3] @ theta[:3]

    exact = minimize(
        loss,
        np.zeros(4),
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda t: 0.5 - t[:3] @ difference},
            {"type": "ineq", "fun": lambda t: 0.5 + t[:3] @ difference},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert model.objective_ == pytest.approx(exact.fun * unit**2, rel=1e-5)
    np.testing.assert_allclose(model.coef_[0] / unit, exact.x[:3], atol=1e-3)


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("limit", [0.0, 1e-10])
def test_equal_means_can_be_asked_for(unit, limit):
    """A limit of 0 leaves no inside to aim at: more than half of such fits were "infeasible"."""
    rng = generator(0)
    for n_groups in (2, 3):
        for _ in range(4):
            groups = rng.permutation(np.arange(120) % n_groups)
            X = rng.normal(size=(120, 3)) + groups[:, None] * rng.normal(size=3)
            y = unit * (X[:, 0] + groups + rng.normal(size=120))
            model = ConstrainedERMRegressor(max_disparity=limit * unit)
            pred = model.fit(X, y, sensitive_features=groups).predict(X)
            means = [pred[groups == g].mean() for g in range(n_groups)]
            assert model.status_ == "converged"
            assert np.ptp(means) <= 1.5e-10 * unit


def test_a_constraint_that_does_not_bind_is_ridge():
    X, y, group = people()
    model = ConstrainedERMRegressor(max_disparity=1e3, tol=1e-10).fit(
        X, y, sensitive_features=group
    )
    plain = Ridge(alpha=1.0).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("constraint", ["loss_parity", "bounded_group_loss"])
@pytest.mark.parametrize("unit", [1.0, 1000.0])
def test_loss_constraints_hold_in_the_units_of_the_loss(loss, constraint, unit):
    X, y, group = people(unit=unit)
    measure = {
        "loss_parity": metrics.loss_parity_difference,
        "bounded_group_loss": metrics.largest_group_loss,
    }[constraint]
    options = {"sensitive_features": group, "loss": loss, "task": "regression"}
    degree = {"squared_error": 2, "absolute_error": 1}[loss]
    free = measure(y, Ridge(alpha=1.0).fit(X, y).predict(X), **options)
    bound = 0.8 * free
    if constraint == "bounded_group_loss":
        noisy = group == "m"  # a fit to this group alone is the best that it can get
        own = Ridge(alpha=1e-9).fit(X[noisy], y[noisy]).predict(X[noisy]) - y[noisy]
        smallest = np.mean(own**2 if loss == "squared_error" else np.abs(own))
        bound = 0.5 * (free + smallest)
    model = ConstrainedERMRegressor(constraint, bound, loss=loss, alpha=0.0)
    model.fit(X, y, sensitive_features=group)
    reached = measure(y, model.predict(X), **options)
    assert reached <= bound
    assert model.train_disparity_ == pytest.approx(reached, rel=1e-9)
    if constraint == "bounded_group_loss":  # as scikit-learn measures them: whole, not halved
        error = {"squared_error": mean_squared_error, "absolute_error": mean_absolute_error}[loss]
        predicted = model.predict(X)
        errors = [error(y[rows], predicted[rows]) for rows in (group == "f", group == "m")]
        assert max(errors) == pytest.approx(reached)
    assert unit**degree * 1e-3 < reached


def test_multipliers_are_sensitivities_in_the_units_of_y():
    X, y, group = people(unit=100.0)

    def fit(bound):
        return ConstrainedERMRegressor(max_disparity=bound, tol=1e-9, enforce="surrogate").fit(
            X, y, sensitive_features=group
        )

    slope = (fit(51.0).objective_ - fit(49.0).objective_) / 2
    assert slope == pytest.approx(-np.abs(fit(50.0).multipliers_).sum(), rel=1e-3)


def test_absolute_error_is_nearly_minimal():
    X, y, group = people()
    model = ConstrainedERMRegressor(max_disparity=1e3, loss="absolute_error", alpha=0.0)
    model.fit(X, y, sensitive_features=group)

    def loss(theta):
        return np.mean(np.abs(X @ theta[:3] + theta[3] - y))

    start = np.append(model.coef_[0], model.intercept_)
    options = {"maxiter": 4000, "xatol": 1e-8, "fatol": 1e-10}
    best = minimize(loss, start, method="Nelder-Mead", options=options)
    assert loss(start) <= best.fun * 1.01


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("unit", [1e-3, 77.0, 1e5])
def test_the_unit_of_y_changes_no_prediction(loss, unit):
    """The penalty on absolute errors grew faster than the loss: predictions became constant."""
    X, y, group = people()
    model = ConstrainedERMRegressor(max_disparity=1e3, loss=loss, tol=1e-9)
    pred = model.fit(X, y, sensitive_features=group).predict(X)
    model.set_params(max_disparity=1e3 * unit)
    scaled = model.fit(X, unit * y, sensitive_features=group).predict(X) / unit
    np.testing.assert_allclose(scaled, pred, rtol=1e-4, atol=1e-4 * y.std())
    # It is the penalty that the documentation names.
    alpha = 1 / len(y) if loss == "squared_error" else 1 / (len(y) * unit * y.std())
    model.set_params(alpha=alpha).fit(X, unit * y, sensitive_features=group)
    np.testing.assert_allclose(model.predict(X) / unit, scaled, rtol=1e-6, atol=1e-6 * y.std())


def least_largest_loss(X, y, group):
    """Return the least mean absolute error of the group that has the largest one."""
    columns = np.column_stack([X, np.ones(len(y))])
    n, p = columns.shape
    above = np.column_stack([columns, -np.eye(n), np.zeros(n)])
    below = np.column_stack([-columns, -np.eye(n), np.zeros(n)])
    means = [np.r_[np.zeros(p), (group == g) / np.sum(group == g), -1] for g in np.unique(group)]
    bounds = [(None, None)] * p + [(0, None)] * n + [(None, None)]
    of_rows = np.r_[y, -y, np.zeros(len(means))]
    return linprog(np.eye(p + n + 1)[-1], np.vstack([above, below, *means]), of_rows, bounds=bounds)


@pytest.mark.filterwarnings("ignore:.*fewer than 30 rows")
@pytest.mark.parametrize("seed", range(40))
def test_limits_on_absolute_errors_that_can_be_kept_are_kept(seed):
    rng = generator(seed)
    group = rng.integers(0, 2, 60)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60) * (1 + group)
    model = ConstrainedERMRegressor("bounded_group_loss", 1e9, loss="absolute_error")
    free = model.fit(X, y, sensitive_features=group).train_disparity_
    least = least_largest_loss(X, y, group).fun
    # By smooth errors, a limit within 0.2% of the least possible one is not always found.
    limit = least + max(0.5 * (free - least), 0.01 * least)
    model.set_params(max_disparity=limit).fit(X, y, sensitive_features=group)
    errors = np.abs(y - model.predict(X))
    assert max(errors[group == 0].mean(), errors[group == 1].mean()) <= limit
    assert model.status_ == "converged"


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_limits_that_cannot_be_kept_are_missed_in_any_unit(unit):
    X, y, group = people(unit=unit)
    with pytest.warns(ConvergenceWarning, match="No model was found"):
        model = ConstrainedERMRegressor("bounded_group_loss", 0.01 * unit**2).fit(
            X, y, sensitive_features=group
        )
    assert model.train_disparity_ > 0.01 * unit**2
    assert model.status_ == "infeasible"


class Poisson(Loss):
    """Scores are logarithms of expected counts: not a function of score minus target."""

    tasks = frozenset({"regression"})
    max_curvature = 1e3

    def parts(self, scores, targets):
        expected = np.exp(np.minimum(scores, 50.0))
        return RowParts(expected - targets * scores, expected - targets, expected)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_losses_that_are_not_of_residuals_see_the_targets_as_they_are(fit_intercept):
    rng = generator(0)
    group = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 2))
    y = rng.poisson(np.exp(1.5 + 0.4 * X[:, 0] + 0.3 * group)).astype(float)
    options = {"alpha": 0.01, "fit_intercept": fit_intercept}
    model = ConstrainedERMRegressor("loss_parity", 1e9, loss=Poisson(), **options)
    model.fit(X, y, sensitive_features=group)
    exact = PoissonRegressor(tol=1e-10, max_iter=1000, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], exact.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_[0], exact.intercept_, atol=1e-4)


@pytest.mark.filterwarnings("ignore:No model was found")  # by 300 steps
def test_hidden_layers_and_float32():
    X, y, group = people()
    model = ConstrainedERMRegressor(
        max_disparity=1.0, model=(8,), max_iter=300, random_state=0
    ).fit(X.astype(np.float32), y, sensitive_features=group)
    is_kept = mean_gap(model, X.astype(np.float32), group) <= 1.0 + 1e-3
    assert is_kept or model.status_ == "infeasible"
    assert model.coefs_[0].dtype == np.float32
    assert model.score(X.astype(np.float32), y) > 0.3


@pytest.mark.parametrize(
    "form",
    [
        lambda sex: {"sex": sex},
        lambda sex: {"sex": sex.tolist()},
        lambda sex: pd.Series(sex, dtype="string").array,
        lambda sex: pd.Categorical(sex),
        lambda sex: sex[:, None].tolist(),
        lambda sex: pd.DataFrame({"sex": sex}),
    ],
)
def test_certificates_read_groups_of_every_form(form):
    """Dicts of columns, and arrays of pandas, were not divided into halves but looked up."""
    rng = generator(0)
    sex, X = rng.choice(["f", "m"], 300), rng.normal(size=(300, 2))
    job = rng.choice(["x", "y"], 300)
    constraint = ConditionalOn("mean_score_parity")
    model = ConstrainedERMRegressor(constraint, max_disparity=1.0, certificate=0.9, random_state=0)
    expected = model.fit(X, X.sum(axis=1), sensitive_features=sex, control_features=job).p_value_
    model.fit(X, X.sum(axis=1), sensitive_features=form(sex), control_features=form(job))
    assert model.p_value_ == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_predictions_have_the_precision_of_the_rows(dtype):
    X, y, sex = generator(0).normal(size=(3, 200, 1)).astype(dtype)
    model = ConstrainedERMRegressor("mean_score_parity", 0.1)
    model.fit(X, y[:, 0], sensitive_features=sex[:, 0] > 0)
    assert model.predict(X).dtype == dtype
