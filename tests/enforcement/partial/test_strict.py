"""The loop around smooth problems, with problems and solvers that do as they are told."""

from types import SimpleNamespace

import numpy as np
import pytest

from skfair.constraints.partial import Surrogate
from skfair.enforcement.partial.strict import (
    AIM,
    NARROWEST,
    NARROWING,
    Target,
    solve_partially,
)
from skfair.solvers.base import SolverResult

STEP = Surrogate("smoothstep", 0.6)


class Problem:
    """Its scores are its parameters: a disparity and a quality."""

    def __init__(self, tolerance=0.1, name="form", surrogate=None):
        self.tolerance, self.name, self.surrogate = tolerance, name, surrogate
        self.model = SimpleNamespace(forward=lambda theta: (theta, None))

    def limited(self, tolerance, surrogate):
        return Problem(tolerance, self.name, surrogate)

    def start(self, theta_model):
        return theta_model

    def evaluate(self, theta):
        return SimpleNamespace(scores=theta)


class Solver:
    """Answers with what ``outcome(problem, call)`` says, and writes down what it was asked."""

    is_precise = True

    def __init__(self, outcome, multiplier=1.0, statuses=()):
        self.outcome, self.multiplier, self.statuses = outcome, multiplier, statuses
        self.calls = []

    def solve(self, problem, theta, lam, **params):
        k = len(self.calls)
        answer = np.array(self.outcome(problem, k), dtype=float)
        call = (problem.name, problem.tolerance, problem.surrogate, theta, lam, params, answer)
        self.calls.append(call)
        status = self.statuses[k] if k < len(self.statuses) else "converged"
        return SolverResult(answer, np.array([self.multiplier]), 1, status, {})

    @property
    def tolerances(self):
        return np.array([call[1] for call in self.calls])


def solve(solver, problems=None, max_disparity=0.1, start=(0.0, 0.0), **options):
    return solve_partially(
        problems or [Problem()],
        solver,
        np.array(start),
        STEP,
        Target(lambda scores: float(scores[0]), lambda scores: float(scores[1]), max_disparity),
        **options,
    )


def scripted(*answers):
    return lambda problem, k: answers[min(k, len(answers) - 1)]


def proportional(factor):
    """A disparity that is a multiple of the tolerance."""
    return lambda problem, k: (factor * problem.tolerance, 0.5)


@pytest.mark.parametrize("factor", [1.01, 2.0, 3.0])
def test_a_tolerance_shrinks_by_what_was_asked_over_what_was_measured(factor):
    solver = Solver(proportional(factor))
    found = solve(solver)
    assert found.n_solves == len(solver.calls) == 2
    assert solver.tolerances[1] == pytest.approx(0.1 * AIM / factor)
    assert found.disparity == pytest.approx(AIM * 0.1)


def test_a_tolerance_never_shrinks_by_more_than_seventy_percent_at_once():
    solver = Solver(proportional(40.0))
    found = solve(solver)
    assert np.all(solver.tolerances[1:] >= 0.3 * solver.tolerances[:-1] - 1e-15)
    assert found.disparity <= 0.1


def test_a_tolerance_grows_while_room_is_left():
    solver = Solver(lambda problem, k: (0.4 * problem.tolerance, problem.tolerance))
    found = solve(solver)
    assert solver.tolerances == pytest.approx([0.1, 0.15, 0.225])
    assert found.disparity == pytest.approx(0.09)


def test_the_best_solution_within_the_bound_is_kept_with_its_tolerance_and_steps():
    solver = Solver(scripted((0.3, 0.99), (0.05, 0.8), (0.02, 0.7), (0.09, 0.6)))
    found = solve(solver)
    assert found.n_solves == 4
    assert found.disparity == 0.05
    assert np.array_equal(found.result.theta, [0.05, 0.8])
    _, tolerance, step, *_ = solver.calls[1]
    assert found.problem.tolerance == tolerance
    assert found.problem.surrogate == step


def test_the_least_disparity_is_kept_if_none_is_within_the_bound():
    solver = Solver(scripted((0.3, 0.6), (0.2, 0.5), (0.4, 0.99)))
    found = solve(solver, n_rounds=5)
    assert found.n_solves == 5
    assert found.disparity == 0.2


def test_steps_are_as_wide_as_scores_are_spread():
    """Or scores that all shrink together would keep any smooth rule."""
    solver = Solver(scripted((0.5, 0.9), (0.5, 0.501), (0.5, 2.5)))
    solve(solver, start=(-3.0, 1.0), n_rounds=4)
    widths = np.array([call[2].width for call in solver.calls]) / STEP.width
    spreads = np.array([2.0, 0.2, 0.0005, 1.0])
    narrowed = np.maximum(NARROWEST, NARROWING ** np.arange(4))
    assert widths == pytest.approx(narrowed * spreads / 2)


@pytest.mark.parametrize("weights", [[1, 2, 0, 3], [5, 5, 5, 5], None])
def test_a_row_spreads_scores_as_often_as_it_weighs(weights):
    scores = np.array([1.0, -2.0, 100.0, 0.5])
    given = None if weights is None else np.array(weights, dtype=float)
    target = Target(lambda scores: 0.0, lambda scores: 1.0, 0.1, given)
    assert target.spread(scores) == pytest.approx(np.repeat(scores, weights or 1).std())


def test_each_round_starts_from_the_last_and_each_form_from_the_model():
    problems = [Problem(0.1, "first"), Problem(0.2, "second")]
    solver = Solver(scripted((0.5, 0.1), (0.09, 0.2), (0.4, 0.3), (0.08, 0.4)))
    solve(solver, problems, max_iter=7)
    names, tolerances, steps, thetas, lams, params, answers = zip(*solver.calls, strict=True)
    assert names == ("first", "first", "second", "second")
    assert [tolerances[0], tolerances[2]] == [0.1, 0.2]
    assert steps[0] == steps[2] == STEP
    for k in (0, 2):
        assert np.array_equal(thetas[k], np.zeros(2))
        assert lams[k] is None
        assert np.array_equal(thetas[k + 1], answers[k])
        assert np.array_equal(lams[k + 1], [1.0])
    assert all(one == {"max_iter": 7} for one in params)


@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_best_of_several_forms_is_kept(best):
    quality = [0.5, 0.5, 0.5]
    quality[best] = 0.9
    problems = [Problem(0.1, k) for k in range(3)]
    solver = Solver(lambda problem, k: (0.09, quality[problem.name]))
    found = solve(solver, problems)
    assert found.problem.name == best
    assert found.n_solves == 3


def test_no_round_follows_one_that_was_stopped():
    solver = Solver(scripted((0.5, 0.5)), statuses=["converged", "stopped"])
    found = solve(solver)
    assert found.n_solves == 2


def test_no_form_follows_one_that_was_stopped():
    solver = Solver(scripted((0.5, 0.5)), statuses=["stopped"])
    assert solve(solver, [Problem(), Problem()]).n_solves == 1
