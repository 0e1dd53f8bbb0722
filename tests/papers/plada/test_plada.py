"""PLADA against scipy, the algorithm box of its paper and closed forms."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize

from skfair.papers.plada.plada import Plada
from skfair.solvers import ALNewton
from tests.seeds import generator
from tests.small_problems import build, people, raw, twin

# constraints, levels of the attributes, bound
CASES = [
    (["demographic_parity"], (2,), 0.1),
    (["equalized_odds"], (2,), 0.1),
    (["demographic_parity"], (4,), 0.2),  # with a centre
    (["bounded_group_loss"], (4,), "halfway"),  # without lower bounds
    (["demographic_parity", "equal_opportunity"], (2,), 0.1),
]
each_case = pytest.mark.parametrize("case", CASES, ids=str)


@cache
def unequal(n_levels):
    """People whose chances differ so much by group that limits of rates bind.

    Without limits rates differ by .35 +- .03 between two groups, by .26 +- .02 within each class,
    and by .66 +- .03 between four groups.
    """
    who = people(11, n=500, n_levels=n_levels)
    level = np.unique(who.columns[0], return_inverse=True)[1]
    level = level / level.max()
    chances = who.response + 2 * level - 1 + generator().logistic(size=500)
    return who._replace(
        X=who.X + level[:, None] * [1, 0, 0], signs=np.where(chances > 0, 1.0, -1.0)
    )


@cache
def halfway(n_levels):
    """The largest loss of a group may fall by half of what is possible."""
    risk = twin(unequal(n_levels), ["bounded_group_loss"], 0.0, alpha=0.1)
    free = minimize(risk.objective, np.zeros(4), jac=risk.gradient).x
    most = risk.excess(free).max()
    above = {"type": "ineq", "fun": lambda x: x[-1] - risk.excess(x[:-1])}
    least = minimize(lambda x: x[-1], np.append(free, most), constraints=above)
    assert least.success
    return (least.fun + most) / 2


def parts_of(case):
    constraints, levels, bound = case
    bound = halfway(levels) if bound == "halfway" else bound
    return unequal(levels), constraints, bound


def problem_of(case, **options):
    return build(*parts_of(case), alpha=0.1, **options)


@cache
def slsqp(position):
    """What scipy finds for the naive twin of a case."""
    return twin(*parts_of(CASES[position]), alpha=0.1).slsqp().fun


def start(problem):
    return problem.start(np.random.RandomState(0))


def solve(problem, solver=None, theta0=None, **options):
    solver = Plada() if solver is None else solver
    result = solver.solve(problem, start(problem) if theta0 is None else theta0, **options)
    return result, problem.evaluate(result.theta)


def residual(problem, at, multipliers):
    return max(problem.kkt_residual(at, multipliers).values())


@each_case
def test_reaches_the_optimum_of_slsqp(case):
    problem, risk = problem_of(case), twin(*parts_of(case), alpha=0.1)
    result, at = solve(problem, tol=1e-6, max_iter=50_000)
    assert result.status == "converged"
    assert at.objective == pytest.approx(slsqp(CASES.index(case)), abs=5e-6)
    assert risk.excess(raw(problem, result.theta)).max() <= 3e-6
    assert np.abs(result.multipliers).max() > 0.01  # the bound costs something
    assert residual(problem, at, result.multipliers) <= 1e-6
    assert pulls(problem, result) == pytest.approx(pulls(problem), abs=3e-4)


def pulls(problem, result=None):
    """How constraints pull at the optimum, with multipliers of a result or of Newton's method.

    Where slopes are nearly parallel the multipliers themselves are hardly determined.
    """
    newton = ALNewton().solve(problem, start(problem), tol=1e-9)
    lam = newton.multipliers if result is None else result.multipliers
    return problem.evaluate(newton.theta).jacobian().T @ lam


def algorithm_1(problem, solver, multipliers0, n_steps):
    """The box of the paper, line by line, with the Jacobian of G written out.

    Slacks start at what is left of the bounds, which the paper leaves open.
    """
    alpha, beta, eta, tau = solver.alpha, solver.beta, solver.eta, solver.tau
    rho = alpha / (1 + alpha * beta)

    def G(at):
        return np.append(at.constraints - problem.upper, problem.lower - at.constraints)

    at = problem.evaluate(start(problem))
    mu = np.maximum(np.append(multipliers0, -multipliers0), 0)
    u = np.clip(-G(at), 0, solver.u_max)
    lam = mu + rho * (G(at) + u)
    z = (lam - mu) / alpha
    for k in range(n_steps):
        J = at.jacobian()
        gradient = at.gradient() + np.vstack([J, -J]).T @ lam
        u = np.clip(u - tau * lam, 0, solver.u_max)
        delta = solver.kappa / (k + 1)
        gamma = min(solver.gamma0, rho * delta / (np.sum((lam - mu) ** 2) + 1))
        mu = mu + gamma * (z + beta * (lam - mu))
        at = problem.evaluate(at.theta - eta * gradient)
        lam = mu + rho * (G(at) + u)
        z = (lam - mu) / alpha
    return at.theta, lam


@pytest.mark.parametrize(
    "solver",
    [
        Plada.paper(),
        Plada.paper(network=True),
        Plada(3.0, 0.2, gamma0=0.9, kappa=0.5, eta=0.5, tau=0.3, u_max=0.05),
    ],
    ids=str,
)
def test_iterates_are_those_of_the_paper(solver):
    problem = problem_of(CASES[1])
    multipliers0 = np.array([0.02, -0.01])
    result, _ = solve(problem, solver, multipliers0=multipliers0, tol=0.0, max_iter=30)
    theta, lam = algorithm_1(problem, solver, multipliers0, 30)
    assert np.abs(theta).max() > 1e-3
    assert result.theta == pytest.approx(theta, abs=1e-12)
    upper, lower = np.split(np.maximum(lam, 0), 2)
    assert result.multipliers == pytest.approx(upper - lower, abs=1e-12)


def test_the_step_of_the_slacks_is_the_limit_of_the_paper():
    problem = problem_of(CASES[1])
    given, left = [
        solve(problem, Plada(3.0, 0.2, eta=0.5, tau=tau), max_iter=30)[0]
        for tau in (1.6 / 9, None)  # 1 / (3 rho) with rho = 3 / 1.6
    ]
    assert left.theta == pytest.approx(given.theta, abs=1e-12)


def test_average_is_that_of_the_iterates():
    problem, iterates = problem_of(CASES[0]), []
    result, at = solve(
        problem, Plada(output="average"), max_iter=50, callback=lambda x: iterates.append(x)
    )
    assert len(iterates) == 50
    assert result.theta == pytest.approx(np.mean(iterates, axis=0), abs=1e-14)
    _, at_last = solve(problem, max_iter=50)
    assert problem.violation(at_last) < problem.violation(at)


@pytest.mark.parametrize("scale", [0.3, 3.0])
@pytest.mark.parametrize("case", CASES[:3], ids=str)
def test_an_infeasible_start_ends_at_a_kkt_point(case, scale):
    problem = problem_of(case)
    theta0 = scale * np.linspace(-1, 1, problem.n_parameters)
    theta0[0] = 2 * scale
    assert problem.violation(problem.evaluate(theta0)) > 0.02
    result, at = solve(problem, theta0=theta0)
    assert result.status == "converged"
    assert residual(problem, at, result.multipliers) <= 1e-4


@each_case
def test_a_warm_start_ends_at_once(case):
    problem = problem_of(case)
    first, _ = solve(problem, tol=1e-6, max_iter=50_000)
    again = Plada().solve(problem, first.theta, first.multipliers, tol=1e-5)
    assert again.status == "converged"
    assert again.n_iter == 0
    assert again.theta == pytest.approx(first.theta, abs=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_other_losses(loss):
    """Where the constants at the start say little: the smoothed hinge is flat there."""
    problem = problem_of(CASES[0], loss=loss)
    result, at = solve(problem)
    assert result.status == "converged"
    newton = ALNewton().solve(problem, start(problem), tol=1e-8)
    assert at.objective == pytest.approx(problem.evaluate(newton.theta).objective, abs=1e-3)


def test_steep_rates_end_at_a_first_order_point():
    """Of few rows with tighter limits 9% of samples have none that is found: steps circle there."""
    problem = problem_of(CASES[0])
    problem.temperature = 8.0
    result, at = solve(problem)
    assert result.status == "converged"
    assert residual(problem, at, result.multipliers) <= 1e-4
