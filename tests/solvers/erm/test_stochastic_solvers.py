"""Stochastic solvers: what they return, and what they leave alone."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from skfair.solvers.erm.alm import ALM
from skfair.solvers.erm.stochastic import Adam, StochasticSolver
from tests.registries import SOLVERS
from tests.seeds import generator
from tests.small_problems import build, optimum, people

ALL = [name for name in SOLVERS if issubclass(SOLVERS[name], StochasticSolver)]
WHO = people(n=400)


def parity(bound=0.02):
    return build(WHO, "demographic_parity", bound, alpha=0.1)


BINDING = {
    "demographic_parity": parity,
    "equalized_odds": lambda: build(WHO, "equalized_odds", 0.02, alpha=0.1),
    "many_groups": lambda: build(
        people(n=400, n_levels=(3, 2)), "demographic_parity", 0.1, alpha=0.1
    ),
}


def assert_near_the_optimum(problem, solver, max_iter, gap=0.02):
    """Compare a solution with that of SLSQP, at a problem whose constraints bind."""
    result = solver.solve(problem, problem.start(None), max_iter=max_iter, random_state=0)
    at = problem.evaluate(result.theta)
    assert abs(at.objective - optimum(problem).fun) <= gap
    assert problem.violation(at) <= 0.02
    assert problem.kkt_residual(at, result.multipliers)["stationarity"] <= 0.1
    assert np.abs(result.multipliers).max() > 0.01


@pytest.mark.parametrize("name", BINDING)
def test_near_the_optimum(name):
    # Objectives are .004 away at most in 100 samples, and bounds are missed by .003.
    assert_near_the_optimum(BINDING[name](), ALM(learning_rate=0.02, eta=0.15), 1500)


@pytest.mark.parametrize("name", ALL)
def test_training_leaves_the_problem_as_it_is(name):
    problem = parity()
    start = problem.start(None) + 0.1
    before = problem.evaluate(start).constraints.copy()
    solver = SOLVERS[name]()
    solver.advance(problem, solver.begin(problem, start), 3, np.random.RandomState(0))
    np.testing.assert_array_equal(problem.evaluate(start).constraints, before)


def test_converged_means_a_small_residual():
    problem = parity()
    for tol, status in ((0.5, "converged"), (1e-9, "max_iter")):
        result = ALM().solve(problem, problem.start(None), tol=tol, max_iter=60, random_state=0)
        assert result.status == status
        residual = problem.kkt_residual(problem.evaluate(result.theta), result.multipliers)
        assert (max(residual.values()) <= tol) == (status == "converged")


@dataclass
class Scripted(StochasticSolver):
    """Walks through given points."""

    walk: tuple = ()

    def _step(self, problem, state, n_per_cell, rng):
        state.point[:] = self.walk[state.n_steps - 1]
        state.multipliers[:] = state.point[:1]


def scripted(walk, **options):
    """Solve a problem whose objective is theta[0] and whose constraint is theta[1] <= 0.1."""
    problem = SimpleNamespace(
        n_constraints=1,
        n_cells=2,
        offers=frozenset({"draw"}),
        lower=np.array([-np.inf]),
        upper=np.array([0.1]),
        draw=lambda rng, n_loss, n_per_cell: SimpleNamespace(rows=np.arange(2)),
        evaluate=lambda x: SimpleNamespace(theta=x, objective=x[0], constraints=x[1:]),
        violation=lambda at: max(0.0, at.constraints[0] - 0.1),
        kkt_residual=lambda at, multipliers: {"all": 1.0},
    )
    walk = np.array(walk, dtype=float)
    solver = Scripted(walk=tuple(walk), check_every=1, **options)
    start = np.array([9.0, 0.0])  # worse than all that follows, so that it is never the answer
    return solver.solve(problem, start, max_iter=len(walk))


def test_the_best_check_of_the_second_half_is_returned():
    early = [[-9.0, 0.0]] * 4  # better than all that follows
    late = [[1.0, 0.3], [4.0, 0.1005], [3.0, 0.1009], [5.0, 0.0]]
    infeasible = [[1.0, 0.3], [4.0, 0.2], [3.0, 0.25], [5.0, 0.4]]
    for walk, options, expected in (
        (late, {}, [3.0, 0.1009]),
        (late, {"tolerance": 0.0}, [5.0, 0.0]),
        (late, {"tolerance": 0.5}, [1.0, 0.3]),
        (late, {"output": "last"}, [5.0, 0.0]),
        (infeasible, {}, [4.0, 0.2]),
    ):
        result = scripted(early + walk, averaging=None, **options)
        assert result.theta.tolist() == expected
        assert result.multipliers.tolist() == expected[:1]  # those of the same step


@pytest.mark.parametrize("power", [0.0, 1.0, 3.0])
def test_the_mean_has_the_weights_it_should(power):
    """Weights are Gamma(t + power) / Gamma(t), which grow like t to the power."""
    walk = generator(0).normal(size=(12, 2))
    weights = np.ones(12)
    for t in range(1, 12):
        weights[t] = weights[t - 1] * (t + power) / t
    expected = weights @ walk / weights.sum()
    result = scripted(walk, averaging=power, output="last")
    assert result.theta == pytest.approx(expected)
    assert result.multipliers == pytest.approx(expected[:1])


def test_rows_per_step_stay_bounded():
    problem = build(people(n=80, n_levels=(4,)), "equalized_odds", 0.1, alpha=0.1)
    sizes, draw = [], problem.draw
    problem.draw = lambda *args: sizes.append(draw(*args)) or sizes[-1]
    for limit, per_cell in ((100, 12), (5, 1), (10**6, 128)):
        sizes.clear()
        solver = ALM(n_loss=2000, max_constraint_rows=limit)
        solver.solve(problem, problem.start(None), max_iter=1)
        assert sizes[-1].rows.size == 2000 + 8 * per_cell


def test_a_run_has_a_step():
    problem = parity()
    with pytest.raises(ValueError, match="max_iter"):
        ALM().solve(problem, problem.start(None), max_iter=0)


def test_adam_equals_a_loop():
    rng = generator(0)
    gradients = rng.normal(size=(20, 3)) * [1, 1e-3, 100]
    rates = rng.uniform(0.001, 0.1, 20)
    adam, point = Adam(3), np.ones(3)
    for gradient, rate in zip(gradients, rates, strict=True):
        adam.step(point, gradient, rate)
    for i in range(3):
        x, m, v = 1.0, 0.0, 0.0
        for t in range(20):
            g = gradients[t, i]
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g * g
            x -= (
                rates[t] * (m / (1 - 0.9 ** (t + 1))) / ((v / (1 - 0.999 ** (t + 1))) ** 0.5 + 1e-8)
            )
        assert point[i] == pytest.approx(x, rel=1e-12)
