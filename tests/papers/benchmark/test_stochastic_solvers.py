"""The stochastic solvers of the benchmark: their algorithms line by line."""

from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.stats import binom

from skfair.papers.benchmark.ghost import Ghost, QuadraticModel, relaxation, solve_quadratic
from skfair.papers.benchmark.penalty import Penalty
from skfair.papers.benchmark.sgd import SGD
from skfair.papers.benchmark.ssl_alm import SSLALM
from skfair.papers.benchmark.ssw import SSw
from skfair.problems.protocol import Batch
from tests.seeds import generator
from tests.small_problems import build, optimum
from tests.solvers.erm.test_stochastic_solvers import BINDING, WHO, assert_near_the_optimum, parity


def free():
    return parity().relaxed()


def test_a_check_that_is_no_number_is_not_returned():
    @dataclass
    class Lost(SGD):
        def _candidate(self, state):
            return state.solution * (np.nan if state.n_steps == 6 else 1.0)

    problem, solver = parity(), Lost(check_every=1)
    found = []
    result = solver.solve(
        problem, problem.start(None), max_iter=10, random_state=0, callback=found.append
    )
    assert np.isnan(found[5]).all()
    assert any(np.array_equal(result.theta, one) for one in found[6:])


@pytest.mark.parametrize(
    ("solver", "max_iter"),
    [
        (SSLALM(learning_rate=0.02, eta=0.15), 1500),
        (SSw(tracking=0.05), 400),
        (Ghost(max_level=2), 240),
    ],
)
@pytest.mark.parametrize("name", BINDING)
def test_near_the_optimum(name, solver, max_iter):
    # The worst of several noisy estimates is too high: switching keeps away from many bounds, with
    # tracking that slow by .023 at most in 100 samples. All others end within .006.
    is_far = isinstance(solver, SSw) and name == "many_groups"
    assert_near_the_optimum(BINDING[name](), solver, max_iter, gap=0.04 if is_far else 0.02)


def test_penalties_trade_violation_for_objective():
    """Squared violations end near lambda / (2 weight), absolute ones near 0."""
    problem = parity()
    expected = optimum(problem)
    violations = []
    for weight in (2.0, 20.0):
        result = Penalty(weight=weight).solve(
            problem, problem.start(None), max_iter=300, random_state=0
        )
        at = problem.evaluate(result.theta)
        violations.append(problem.violation(at))
        assert np.abs(result.multipliers) == pytest.approx(2 * weight * violations[-1])
        assert np.abs(at.gradient(result.multipliers)).max() <= 0.05
    assert violations[0] > 3 * violations[1] > 0
    solver = Penalty(weight=3.0, kind="absolute")
    result = solver.solve(problem, problem.start(None), max_iter=300, random_state=0)
    at = problem.evaluate(result.theta)
    assert problem.violation(at) <= 0.01
    assert at.objective == pytest.approx(expected.fun, abs=0.02)


def test_noise_of_batches_is_no_violation():
    """The minimum of (x - 1)^2 / 2 + x^2 is 1 / 3; with the square of the noise added, 1 / 5."""

    def evaluate(x, noise=0.0):
        slope = 1.0 + noise
        return SimpleNamespace(
            theta=x,
            objective=0.5 * (x[0] - 1) ** 2,
            constraints=slope * x,
            gradient=lambda nu: x - 1 + slope * nu,
        )

    problem = SimpleNamespace(
        n_constraints=1,
        n_cells=1,
        offers=frozenset({"draw"}),
        lower=np.zeros(1),
        upper=np.zeros(1),
        draw=lambda rng, n_loss, n_per_cell: rng.choice([-1.0, 1.0]),
        evaluate=evaluate,
        violation=lambda at: abs(at.constraints[0]),
        kkt_residual=lambda at, multipliers: {"all": 1.0},
    )
    solver = Penalty(weight=1.0, optimizer="sgd", learning_rate=0.05)
    result = solver.solve(problem, np.ones(1), max_iter=4000, random_state=0)
    assert result.theta[0] == pytest.approx(1 / 3, abs=0.03)


def test_plain_steps_equal_a_loop():
    problem = free()
    solver = SGD(
        optimizer="sgd", learning_rate=0.2, decay_steps=5, n_loss=10, averaging=None, output="last"
    )
    result = solver.solve(problem, problem.start(None), max_iter=15, random_state=3)
    rng, theta = np.random.RandomState(3), problem.start(None)
    for t in range(15):
        gradient = problem.evaluate(theta, problem.draw(rng, 10, 0)).gradient()
        theta = theta - 0.2 / np.sqrt(1 + t / 5) * gradient
    assert np.allclose(result.theta, theta, rtol=1e-12, atol=1e-14)


# --- switching -----------------------------------------------------------------------------------


def test_switching_equals_the_algorithm():
    """Algorithm 3, with a tolerance that shrinks and rates that differ."""
    problem = parity()
    solver = replace(
        SSw.paper(), output="last", epsilon=0.05, shrink=0.8, shrink_from=10, n_loss=9, n_per_cell=4
    )
    result = solver.solve(problem, problem.start(None), max_iter=150, random_state=1)
    rng, x = np.random.RandomState(1), problem.start(None)
    epsilon, spent = 0.05, {"f": 0.0, "up": 0.0, "low": 0.0}
    for k in range(150):
        if k >= 10:
            epsilon *= 0.8
        c = problem.evaluate(x, problem.draw(rng, 0, 4)).constraints[0]
        if max(c - problem.upper[0], problem.lower[0] - c) <= epsilon:
            at = problem.evaluate(x, problem.draw(rng, 9, 0))
            x = x - 0.5 * at.gradient()
            spent["f"] += 0.5
        else:
            at = problem.evaluate(x, problem.draw(rng, 0, 4))
            sign = 1.0 if c > problem.upper[0] else -1.0
            x = x - 0.05 * sign * at.jacobian()[0]
            spent["up" if sign > 0 else "low"] += 0.05
    assert min(spent.values()) > 0  # every branch was taken
    assert np.allclose(result.theta, x, rtol=1e-12, atol=1e-14)
    assert result.multipliers[0] == pytest.approx((spent["up"] - spent["low"]) / spent["f"])


def test_switching_returns_a_random_iterate():
    """Output of Algorithm 3: iterates from k0 on, in proportion to their rates."""
    problem = free()  # all steps have the same rate
    solver = replace(SSw.paper(), record_from=6, n_loss=50)
    counts = np.zeros(10)
    for seed in range(120):
        rng, walk = np.random.RandomState(seed), []
        state = solver.begin(problem, problem.start(None))
        for _ in range(10):
            walk.append(state.theta.copy())
            solver.advance(problem, state, 1, rng)
        counts += [np.array_equal(theta, state.chosen) for theta in walk]
    whole = solver.solve(problem, problem.start(None), max_iter=10, random_state=119)
    assert np.array_equal(whole.theta, state.chosen)
    assert counts[:6].sum() == 0
    assert counts.sum() == 120
    assert counts[6:].min() >= binom.ppf(1e-7, 120, 1 / 4)


# --- ghost ---------------------------------------------------------------------------------------


def quadratic_model(rng, n_parameters, n_rows, is_paired):
    jacobian = rng.normal(size=(n_rows, n_parameters))
    values = 0.3 * rng.normal(size=n_rows)
    if is_paired:  # a bound from each side
        jacobian, values = np.vstack([jacobian, -jacobian]), np.append(values, -values - 0.1)
    return QuadraticModel(rng.normal(size=n_parameters), values, jacobian)


@pytest.mark.parametrize("seed", range(30))
def test_quadratic_problem_equals_scipy(seed):
    rng = generator(seed)
    model = quadratic_model(rng, rng.integers(1, 8), rng.integers(1, 6), seed % 2)
    tau, beta = rng.choice([0.5, 1, 3]), [10.0, 1.0][seed % 3 == 0]
    kappa = relaxation(model, 0.8, 0.5)
    direction, lam = solve_quadratic(model, kappa, tau, beta)
    g, c, J = model
    expected = minimize(
        lambda d: g @ d + tau / 2 * d @ d,
        np.zeros(g.size),
        jac=lambda d: g + tau * d,
        method="SLSQP",
        bounds=[(-beta, beta)] * g.size,
        constraints={"type": "ineq", "fun": lambda d: kappa - c - J @ d, "jac": lambda d: -J},
        options={"ftol": 1e-14, "maxiter": 500},
    ).x
    assert np.allclose(direction, expected, atol=1e-5)
    assert lam.min() >= 0
    assert np.abs(lam * (c + J @ direction - kappa)).max() <= 1e-6
    inside = np.abs(direction) < beta - 1e-6
    assert np.allclose((g + tau * direction + J.T @ lam)[inside], 0, atol=1e-6)


def test_a_quadratic_problem_without_constraints():
    model = QuadraticModel(np.array([1.0, -30.0]), np.empty(0), np.empty((0, 2)))
    direction, lam = solve_quadratic(model, 0.0, 2.0, 10.0)
    assert direction.tolist() == [-0.5, 10.0]
    assert lam.size == 0


@pytest.mark.parametrize("seed", range(20))
def test_relaxation_can_be_met(seed):
    """Kappa lies between the best that the box allows (by linear programming) and the worst."""
    rng = generator(seed)
    model = quadratic_model(rng, 4, rng.integers(1, 5), seed % 2)
    rho, p = 0.2, 4
    box = linprog(
        np.append(np.zeros(p), 1),
        A_ub=np.column_stack([model.jacobian, -np.ones(model.values.size)]),
        b_ub=-model.values,
        bounds=[(-rho, rho)] * p + [(0, None)],
    )
    worst = max(0.0, model.values.max())
    reached = relaxation(model, rho, 1.0)
    assert box.fun - 1e-9 <= reached <= worst
    assert relaxation(model, rho, 0.0) == worst
    assert relaxation(model, rho, 0.3) == pytest.approx(0.7 * worst + 0.3 * reached)


def test_a_constraint_that_no_step_changes_does_not_change_the_way():
    for seed in range(5):
        g, c, J = model = quadratic_model(generator(seed), 5, 4, True)
        reached = relaxation(model, 0.8, 1.0)
        for value in (0.01, reached + 1):
            fixed = QuadraticModel(g, np.append(c, value), np.vstack([J, np.zeros(5)]))
            kappa = relaxation(fixed, 0.8, 1.0)
            assert kappa == pytest.approx(max(reached, value))
            direction, lam = solve_quadratic(fixed, kappa, 1.0, 10.0)
            assert direction == pytest.approx(solve_quadratic(model, kappa, 1.0, 10.0)[0])
            assert lam[-1] == 0


def test_the_scan_is_exact_for_one_constraint_out_of_reach():
    model = QuadraticModel(np.zeros(3), np.array([2.0]), np.array([[1.0, -0.5, 0.25]]))
    assert relaxation(model, 0.4, 1.0) == pytest.approx(2 - 0.4 * 1.75)


def test_ghost_equals_the_algorithm():
    """Algorithm 1 with the estimator (9); the rows of both halves are evaluated together."""
    problem = build(WHO, "equalized_odds", 0.02, alpha=0.1)
    solver = Ghost(
        n_loss=6, n_per_cell=3, max_level=2, p0=0.3, tau=2.0, alpha=0.4, alpha_hat=0.3, mixing=0.7
    )
    state = solver.begin(problem, problem.start(None))
    solver.advance(problem, state, 25, np.random.RandomState(0))

    def direction(batch):
        at = problem.evaluate(x, batch)
        jacobian = at.jacobian()
        model = QuadraticModel(
            at.gradient(),
            np.append(at.constraints - problem.upper, problem.lower - at.constraints),
            np.vstack([jacobian, -jacobian]),
        )
        return solve_quadratic(model, relaxation(model, 0.8, 0.7), 2.0, 10.0)[0]

    def halves(a, b):
        return np.append(a, b) / 2

    rng, x, alpha, levels = np.random.RandomState(0), problem.start(None), 0.4, []
    chances = [0.3, 0.7 * 0.3, 1 - 0.3 - 0.7 * 0.3]
    for _ in range(25):
        level = min(rng.geometric(0.3) - 1, 2)
        odd, even = (problem.draw(rng, 6 * 2**level, 3 * 2**level) for _ in range(2))
        both = Batch(
            np.append(odd.rows, even.rows),
            halves(odd.loss_weights, even.loss_weights),
            [halves(*pair) for pair in zip(odd.cell_weights, even.cell_weights, strict=True)],
        )
        gain = direction(both) - 0.5 * (direction(odd) + direction(even))
        step = gain / chances[level] + direction(problem.draw(rng, 6, 3))
        alpha = alpha * (1 - 0.3 * alpha)
        x = x + alpha * step
        levels.append(level)
    assert set(levels) == {0, 1, 2}
    assert np.allclose(state.theta, x, rtol=1e-7, atol=1e-9)
