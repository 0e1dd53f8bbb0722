"""Newton steps from a matrix and from products are the same, and so are the solutions."""

import numpy as np
import pytest
from scipy import sparse

from skfair.classification import ConstrainedERMClassifier
from skfair.models import LinearScore
from skfair.problems.erm.problem import LinearConstrainedERM
from skfair.solvers import ALLBFGS, ALNewton
from skfair.solvers.erm.newton_system import FactorisedSystem, ProductSystem
from tests.small_problems import build, people, random_multipliers, random_point, twin


@pytest.fixture
def as_wide(monkeypatch):
    monkeypatch.setattr(LinearScore, "is_wide", True)


def solve(problem, solver=None, tol=1e-8):
    start = problem.start(np.random.RandomState(0))
    return (solver or ALNewton()).solve(problem, start, tol=tol)


def systems(problem, *, is_near=True, scale=1.0):
    at, nu = problem.evaluate(random_point(problem)), scale * random_multipliers(problem)
    options = {"is_near": is_near, "error": 1e-8}
    return [
        kind(at, nu, at.gradient(nu), 10.0, 0.0, **options)
        for kind in (FactorisedSystem, ProductSystem)
    ]


@pytest.mark.parametrize("is_near", [False, True])
@pytest.mark.parametrize("constraints", ["mean_score_parity", "demographic_parity"])
def test_steps_of_both_systems_are_the_same(constraints, is_near):
    loss = "squared_error" if constraints == "mean_score_parity" else "log_loss"
    problem = build(people(3, n=400, d=5, n_levels=(3,)), constraints, loss=loss)
    matrix, products = systems(problem, is_near=is_near, scale=0.01)
    assert products.step() == pytest.approx(matrix.step(), rel=1e-5, abs=1e-6)
    missed = np.linspace(-0.1, 0.1, matrix.active.size)
    for one, other in zip(matrix.joint_step(missed), products.joint_step(missed), strict=True):
        assert other == pytest.approx(one, rel=1e-5, abs=1e-6)


def test_a_joint_step_solves_the_linearised_conditions():
    problem = build(people(3, n=400, d=5, n_levels=(3,)), "demographic_parity")
    at, nu = problem.evaluate(random_point(problem)), 0.01 * random_multipliers(problem)
    gradient = at.gradient(nu)
    missed = np.linspace(-0.1, 0.1, problem.n_constraints)
    for kind in (FactorisedSystem, ProductSystem):
        system = kind(at, nu, gradient, 10.0, 0.0, is_near=True, error=1e-8)
        d, mu = system.joint_step(missed)
        J = at.jacobian()
        assert J @ d == pytest.approx(-missed, abs=1e-8)
        assert at.hessian(nu) @ d + J.T @ (mu - nu) == pytest.approx(-gradient, abs=1e-6)


def test_where_curvature_is_negative_a_step_still_descends():
    problem = build(people(3, n=200, d=30, n_levels=(2,)), "demographic_parity")
    problem.temperature = 20.0
    at, nu = problem.evaluate(random_point(problem)), 5.0 * random_multipliers(problem)
    assert np.linalg.eigvalsh(at.hessian(nu))[0] < -0.1
    gradient = at.gradient(nu)
    system = ProductSystem(at, nu, gradient, 10.0, 0.0, is_near=True, error=0.1)
    assert system.joint_step(np.zeros(system.active.size)) is None
    assert gradient @ system.step() < 0


class Hill:
    """Curvatures that are negative in some directions, without constraints."""

    def __init__(self, curvatures):
        self.curvatures = curvatures

    def hessian_product(self, nu):
        return lambda vector: self.curvatures * vector, np.ones(self.curvatures.size)


@pytest.mark.parametrize("gradient", [[1.0, 1.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.1, 0.1]])
@pytest.mark.parametrize("curvatures", [[1.0, 2.0, -1.0], [-1.0, -1.0, -1.0]])
def test_a_shift_is_added_only_where_nothing_leads_downhill(curvatures, gradient):
    curvatures, gradient = np.array(curvatures), np.array(gradient)
    none = np.empty(0)
    system = ProductSystem(Hill(curvatures), none, gradient, 1.0, 0.0, is_near=True, error=1e-8)
    step = system.step()
    assert gradient @ step < 0
    is_uphill_at_once = gradient @ (curvatures * gradient) <= 0
    assert (system.shift > 0) == is_uphill_at_once
    if is_uphill_at_once and curvatures.max() < 0:
        assert system.shift > 1


@pytest.mark.parametrize(
    ("constraints", "loss"),
    [
        (["demographic_parity"], "log_loss"),
        (["equalized_odds"], "hinge"),
        (["mean_score_parity"], "absolute_error"),
        (["demographic_parity", "equal_opportunity"], "log_loss"),
    ],
)
def test_products_reach_the_optimum_of_slsqp(as_wide, constraints, loss):
    who = people(11, n_levels=(4,))
    problem = build(who, constraints, 0.05, loss=loss)
    assert "products" in problem.offers
    found = solve(problem)
    assert found.status == "converged"
    expected, value = twin(who, constraints, 0.05, loss=loss).slsqp(), problem.evaluate(found.theta)
    assert value.objective <= expected.fun + 1e-6
    if constraints != ["equalized_odds"]:  # which has local optima: SLSQP may end at a worse one
        assert value.objective == pytest.approx(expected.fun, abs=1e-6)
    assert problem.violation(value) <= 1e-6


def one_hot_people(n=1500, n_columns=900):
    """Rows of three one-hot columns, of which most occur a few times."""
    rng = np.random.RandomState(0)
    third = n_columns // 3
    codes = np.minimum((rng.pareto(1.0, (n, 3)) * third / 20).astype(int), third - 1)
    groups = np.where(rng.rand(n) < 0.5, codes[:, 0] % 2, rng.randint(0, 2, n))
    rows = np.repeat(np.arange(n), 3)
    columns = (codes + third * np.arange(3)).ravel()
    X = sparse.csr_array((np.ones(3 * n), (rows, columns)), shape=(n, n_columns))
    y = X @ rng.randn(n_columns) + groups + rng.logistic(size=n) > 0.5
    return X, y, groups


def test_many_sparse_columns_are_fitted_without_a_gram_matrix(monkeypatch):
    X, y, groups = one_hot_people()
    monkeypatch.setattr(LinearScore, "gram", None)
    model = ConstrainedERMClassifier("demographic_parity", 0.05, enforce="strict_loss")
    model.fit(X, y, sensitive_features=groups)
    assert model.status_ == "converged"
    rates = [model.predict(X)[groups == g].mean() for g in (0, 1)]
    assert abs(rates[0] - rates[1]) <= 0.05
    other = ConstrainedERMClassifier(
        "demographic_parity", 0.05, enforce="strict_loss", solver=ALLBFGS()
    )
    other.fit(X, y, sensitive_features=groups)
    assert model.score(X, y) == pytest.approx(other.score(X, y), abs=0.005)


def test_problems_without_products_get_a_matrix(monkeypatch):
    problem = build(people(3, n=200), "demographic_parity", 0.05)
    assert "products" not in problem.offers
    monkeypatch.setattr(LinearConstrainedERM, "hessian_product", None, raising=False)
    assert solve(problem).status == "converged"
