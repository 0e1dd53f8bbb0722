"""Quadratic problems by their coefficients, against the problem that these were read from."""

import numpy as np
import pytest

from skfair.constraints.base import make_constraints
from skfair.problems.quadratic import QuadraticProblem
from skfair.regression import ConstrainedERMRegressor
from skfair.solvers import ALNewton


def posed(n_groups, n=300):
    rng = np.random.default_rng(n_groups)
    groups = rng.integers(0, n_groups, n)
    X = rng.normal(size=(n, 4)) + 0.3 * groups[:, None]
    y = X.sum(axis=1) + rng.normal(size=n)
    model = ConstrainedERMRegressor(max_disparity=0.1)
    data = model._read(X, y, sensitive_features=groups)
    rules = make_constraints(model.constraint, "regression")
    return model._build(data, model._regression(data.y, None), rules)


@pytest.mark.parametrize("n_groups", [2, 4])
def test_values_and_derivatives_are_those_of_the_rows(n_groups):
    problem = posed(n_groups)
    quadratic, rng = QuadraticProblem(problem), np.random.default_rng(0)
    for _ in range(3):
        theta, nu = rng.normal(size=problem.n_parameters), rng.normal(size=problem.n_constraints)
        own, of_rows = quadratic.evaluate(theta), problem.evaluate(theta)
        assert own.objective == pytest.approx(of_rows.objective)
        assert own.constraints == pytest.approx(of_rows.constraints)
        assert own.gradient() == pytest.approx(of_rows.gradient())
        assert own.gradient(nu, objective=2.0) == pytest.approx(of_rows.gradient(nu, objective=2.0))
        assert own.jacobian() == pytest.approx(of_rows.jacobian())
        some = np.array([problem.n_constraints - 1])
        assert own.jacobian(some) == pytest.approx(of_rows.jacobian(some))
        assert own.hessian(nu) == pytest.approx(of_rows.hessian(nu))
        product, diagonal = own.hessian_product(nu)
        assert product(theta) == pytest.approx(own.hessian(nu) @ theta)
        assert diagonal == pytest.approx(np.diag(own.hessian(nu)))


def test_solvers_find_the_same_solution_under_other_bounds():
    problem = posed(4)
    quadratic, start = QuadraticProblem(problem), np.zeros(problem.n_parameters)
    for share in (0.5, 2.0):
        bounds = share * problem.lower, share * problem.upper
        own, of_rows = (
            ALNewton().solve(of_kind.bounded(*bounds), start, tol=1e-9)
            for of_kind in (quadratic, problem)
        )
        assert own.status == "converged"
        assert own.theta == pytest.approx(of_rows.theta, abs=1e-7)
        assert own.multipliers == pytest.approx(of_rows.multipliers, abs=1e-6)


def test_changing_a_second_derivative_leaves_the_problem_as_it_is():
    quadratic = QuadraticProblem(posed(2))
    at = quadratic.evaluate(np.zeros(quadratic.n_parameters))
    at.hessian(np.zeros(1))[:] = 0.0
    assert at.hessian(np.zeros(1)).any()
