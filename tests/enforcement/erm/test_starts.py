"""Starts where losses are compared: what a few steps of the solver say of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from skfair.enforcement.erm.starts import most_promising, starts_around
from skfair.solvers import ALNewton
from tests.small_problems import build, people, random_point


def problem_of(rules, n_levels, bound=0.05, loss="squared_error", seed=1):
    who = people(seed, n=120, n_levels=n_levels, weighted=True)
    return build(who, rules, bound, loss=loss)


def test_the_best_start_is_no_worse_than_a_solve_from_each():
    for seed in range(4):
        problem = problem_of("loss_parity", (2,), 0.01, seed=seed)
        starts = starts_around(problem, random_point(problem, seed))
        none = np.zeros(problem.n_constraints)
        solved = [ALNewton().solve(problem, start, none, tol=1e-8).theta for start in starts]
        values = [problem.evaluate(theta) for theta in solved]
        best = min(at.objective for at in values if problem.violation(at) <= 1e-6)
        place = most_promising(problem, starts, ALNewton(), {"tol": 1e-8}, np.inf)
        assert problem.evaluate(place.theta).objective <= best * (1 + 1e-3) + 1e-9
        assert most_promising(problem, starts, ALNewton(), {"tol": 1e-8}, 0.9 * best) is None


@pytest.mark.parametrize(("miss", "winner"), [(-1.0, 1), (0.005, 1), (0.02, 0)])
def test_a_start_that_misses_the_bounds_must_be_that_much_better(miss, winner):
    """Starts are an objective and what is missed, and stay where they are."""
    problem = SimpleNamespace(
        n_constraints=1,
        evaluate=lambda theta: SimpleNamespace(objective=theta[0], missed=theta[1]),
        violation=lambda at: at.missed,
    )
    still = SimpleNamespace(
        solve=lambda problem, theta, none, **few: SimpleNamespace(theta=theta, multipliers=none)
    )
    starts = np.array([[1.0, 0.0], [0.9, miss]])
    place = most_promising(problem, starts, still, {}, np.inf)
    np.testing.assert_array_equal(place.theta, starts[winner])


def test_a_few_steps_lead_within_the_bounds_where_nothing_is_quadratic():
    problem = problem_of("loss_parity", (2,), loss="absolute_error")
    starts = starts_around(problem, random_point(problem))
    assert len(starts) == 9
    place = most_promising(problem, starts, ALNewton(), {"tol": 1e-6}, np.inf)
    assert problem.violation(problem.evaluate(place.theta)) <= 1e-3
