"""Starts where losses are compared: what is judged without rows is what the rows say."""

import numpy as np
import pytest

from skfair.enforcement.erm.starts import Quadratics, is_quadratic, most_promising, starts_around
from skfair.enforcement.rounds import Place
from skfair.solvers import ALNewton
from tests.small_problems import build, people, random_point

CASES = [
    ("loss_parity", (2,)),
    ("loss_parity", (4,)),
    ("excess_loss", (3,)),
    ("mean_excess_loss", (3,)),
    (["loss_parity", "mean_score_parity"], (2, 3)),
]
each_case = pytest.mark.parametrize(("rules", "n_levels"), CASES)


def problem_of(rules, n_levels, bound=0.05, loss="squared_error", seed=1):
    who = people(seed, n=120, n_levels=n_levels, weighted=True)
    return build(who, rules, bound, loss=loss)


@each_case
def test_the_coefficients_say_everything(rules, n_levels):
    problem = problem_of(rules, n_levels)
    assert is_quadratic(problem)
    points = np.array([random_point(problem, seed) for seed in range(3)])
    objectives, constraints = Quadratics.of(problem).values(points)
    for point, objective, values in zip(points, objectives, constraints, strict=True):
        at = problem.evaluate(point)
        assert objective == pytest.approx(at.objective, abs=1e-10)
        assert values == pytest.approx(at.constraints, abs=1e-10)


@each_case
def test_starts_end_at_stationary_points_within_the_bounds(rules, n_levels):
    problem = problem_of(rules, n_levels)
    starts = starts_around(problem, random_point(problem))
    assert len(starts) == 9
    places, objectives, misses = Quadratics.of(problem).descend(starts)
    best = int(np.argmin(np.where(misses < 1e-4, objectives, np.inf)))
    theta, multipliers = places[best]
    at = problem.evaluate(theta)
    assert problem.violation(at) <= 1e-4
    assert at.objective == pytest.approx(objectives[best], abs=1e-10)
    assert np.abs(at.gradient(multipliers)).max() <= 1e-3
    found = ALNewton().solve(problem, theta, multipliers, tol=1e-8)
    assert found.status == "converged"
    assert problem.evaluate(found.theta).objective == pytest.approx(objectives[best], rel=1e-2)


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
def test_a_start_that_misses_the_bounds_must_be_that_much_better(miss, winner, monkeypatch):
    problem = problem_of("loss_parity", (2,))
    starts = starts_around(problem, random_point(problem))[:2]
    places = [Place(start, np.zeros(problem.n_constraints)) for start in starts]
    ends = places, np.array([1.0, 0.9]), np.array([0.0, miss])
    monkeypatch.setattr(Quadratics, "descend", lambda *_: ends)
    assert most_promising(problem, starts, ALNewton(), {}, np.inf) is places[winner]


def test_other_losses_are_judged_by_a_few_steps():
    problem = problem_of("loss_parity", (2,), loss="absolute_error")
    assert not is_quadratic(problem)
    starts = starts_around(problem, random_point(problem))
    place = most_promising(problem, starts, ALNewton(), {"tol": 1e-6}, np.inf)
    assert problem.violation(problem.evaluate(place.theta)) <= 1e-3
