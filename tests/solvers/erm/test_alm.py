"""Stochastic augmented Lagrangians: the steps line by line, and training that stops and goes on."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from skfair.solvers.base import SOLVERS
from skfair.solvers.erm.al_newton import ALNewton
from skfair.solvers.erm.alm import ALM
from tests.small_problems import build, people

WHO = people(n=200)
# Also the one with a smoothing term, where algorithms of papers are installed.
BOTH = [SOLVERS[name] for name in SOLVERS if issubclass(SOLVERS[name], ALM)]


def parity(who=WHO):
    return build(who, "demographic_parity", 0.02, alpha=0.1)


def many():
    """Two constraints on each side, and a centre with three more."""
    who = people(n=120, n_levels=(2, 3))
    return build(who, ["demographic_parity", "equal_opportunity"], 0.05, alpha=0.1)


# --- line by line --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver_class", BOTH)
def test_steps_with_projections(solver_class):
    """The gradient sees rho * (t - clip(t)), t = c / of the last batch + lambda / rho."""
    problem = many()
    turn = np.arange(problem.n_constraints) % 3  # below, above, within their bounds
    problem = problem.bounded(np.array([1.5, -2, -2])[turn], np.array([2, -1.5, 2])[turn])
    options = {"n_loss": 60, "n_per_cell": 3, "learning_rate": 0.1, "decay_steps": 4.0}
    options |= {"optimizer": "sgd", "rho": 3.0, "eta": 0.6, "averaging": None}
    mu, beta = (0.0, 0.0) if solver_class is ALM else (3.0, 0.2)
    solver = solver_class(**options, **({"mu": mu, "beta": beta} if mu else {}))
    theta0 = problem.start(None)
    state = solver.begin(problem, theta0)
    solver.advance(problem, state, 25, np.random.RandomState(0))

    rng, x, z, lam = np.random.RandomState(0), theta0, theta0, np.zeros(problem.n_constraints)
    last = problem.evaluate(x).constraints
    for t in range(25):
        at = problem.evaluate(x, problem.draw(rng, 60, 3))
        nu = np.zeros_like(lam)
        for j in range(lam.size):
            shifted = last[j] + lam[j] / 3.0
            nu[j] += 3.0 * max(shifted - problem.upper[j], 0)
            nu[j] -= 3.0 * max(problem.lower[j] - shifted, 0)
        gradient = at.gradient() + nu @ at.jacobian() + mu * (x - z)
        z = z + beta * (x - z)
        x = x - 0.1 / np.sqrt(1 + t / 4) * gradient
        lam = lam + 0.2 * (nu - lam)
        last = at.constraints
    assert np.sign(lam).tolist() == np.array([-1, 1, 0])[turn].tolist()
    assert np.allclose(state.theta, x, rtol=1e-10, atol=1e-12)
    assert np.allclose(state.multipliers, lam, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("solver_class", BOTH)
@pytest.mark.parametrize("limit", [10.0, 0.05])
def test_printed_steps(solver_class, limit):
    """Algorithm 2 with one-sided constraints C = c - u + s = 0 and slacks s >= 0."""
    problem = build(WHO, "bounded_group_loss", 0.6, alpha=0.1)
    assert np.isinf(problem.lower).all()
    solver = replace(solver_class.paper(), n_loss=8, n_per_cell=4, max_multiplier=limit)
    mu = 0.0 if solver_class is ALM else 2.0
    theta0 = problem.start(None)
    result = solver.solve(problem, theta0, max_iter=60, random_state=1)

    rng, p = np.random.RandomState(1), theta0.size
    slack = np.maximum(problem.upper - problem.evaluate(theta0).constraints, 0)
    x = np.append(theta0, slack)
    z, y, n_resets = x, np.zeros(slack.size), 0
    for _ in range(60):
        first = problem.evaluate(x[:p], problem.draw(rng, 8, 4))
        second = problem.evaluate(x[:p], problem.draw(rng, 0, 4))
        y = y + 0.05 * (first.constraints - problem.upper + x[p:])
        if np.linalg.norm(y) >= limit:
            y, n_resets = np.zeros_like(y), n_resets + 1
        pull = y + 1.0 * (second.constraints - problem.upper + x[p:])
        objective = np.append(first.gradient(), np.zeros(y.size))
        jacobian = np.hstack([first.jacobian(), np.eye(y.size)])
        gradient = objective + jacobian.T @ pull + mu * (x - z)
        z = z + 0.5 * (x - z)
        x = x - 0.01 * gradient
        x[p:] = np.maximum(x[p:], 0)
    assert (n_resets > 0) == (limit < 1)
    assert (x[p:] == 0).any() or limit < 1
    assert np.allclose(result.theta, x[:p], rtol=1e-10, atol=1e-12)
    assert np.allclose(result.multipliers, y, rtol=1e-10, atol=1e-12)


def test_slacks_stay_within_the_bounds():
    problem = many()
    solver = replace(ALM.paper(), learning_rate=0.5)
    state = solver.begin(problem, problem.start(None))
    rng, slacks = np.random.RandomState(0), []
    for _ in range(30):
        solver.advance(problem, state, 1, rng)
        slacks.append(state.point[state.theta.size :].copy())
    assert np.all(problem.lower <= slacks)
    assert np.all(slacks <= problem.upper)
    assert np.any(slacks == problem.lower)
    assert np.any(slacks == problem.upper)
    assert state.solution.size == problem.n_parameters


# --- where they end ------------------------------------------------------------------------------


def test_given_multipliers_are_used():
    """From the solution and its multipliers, training stays there."""
    problem = parity()
    exact = ALNewton().solve(problem, problem.start(None))
    given = exact.multipliers.copy()
    warm = ALM().solve(problem, exact.theta, given, max_iter=100, random_state=0)
    cold = ALM().solve(problem, exact.theta, max_iter=100, random_state=0)
    assert problem.violation(problem.evaluate(warm.theta)) <= 0.01
    assert problem.violation(problem.evaluate(cold.theta)) > 0.02
    assert np.array_equal(given, exact.multipliers)


# --- stop and go on ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [*BOTH, *(kind.paper for kind in BOTH)])
def test_two_parts_equal_one_run(make):
    """The state may travel through a file in between."""
    problem, solver = many(), make()
    theta0 = problem.start(None)
    whole = solver.begin(problem, theta0)
    solver.advance(problem, whole, 30, np.random.RandomState(0))

    rng = np.random.RandomState(0)
    state = solver.begin(problem, theta0)
    assert solver.advance(problem, state, 13, rng) is None
    state = pickle.loads(pickle.dumps(state))
    solver.advance(problem, state, 17, rng)
    assert state.n_steps == 30
    assert np.array_equal(state.theta, whole.theta)
    assert np.array_equal(state.solution, whole.solution)
    assert np.array_equal(state.multipliers, whole.multipliers)
    assert not theta0[: problem.model.n_parameters].any()

    solved = replace(solver, output="last", check_every=7).solve(
        problem, theta0, max_iter=30, random_state=0
    )
    assert np.array_equal(solved.theta, whole.solution)
    assert np.array_equal(solved.multipliers, whole.solution_multipliers)


@pytest.mark.parametrize("solver_class", BOTH)
def test_training_on_chunks(solver_class):
    """Rows in four parts, in turn: the end is near the optimum of all rows together."""
    everybody = parity()
    parts = [parity(WHO.take(np.arange(200)[i::4])) for i in range(4)]
    for part in parts:
        part.model.use_units(everybody.model)
    solver, rng = solver_class(), np.random.RandomState(0)
    state = solver.begin(parts[0], everybody.start(None))
    for step in range(40):
        solver.advance(parts[step % 4], state, 15, rng)
    exact = everybody.evaluate(ALNewton().solve(everybody, everybody.start(None)).theta)
    at = everybody.evaluate(state.solution)
    assert at.objective == pytest.approx(exact.objective, abs=0.02)
    assert everybody.violation(at) <= 0.02


def test_the_solution_is_no_view():
    problem = parity()
    for solver in (ALM(), ALM(averaging=None)):
        state = solver.begin(problem, problem.start(None))
        solution = state.solution
        before = solution.copy()
        solver.advance(problem, state, 3, np.random.RandomState(0))
        assert np.array_equal(solution, before)
        assert not np.array_equal(state.solution, before)
