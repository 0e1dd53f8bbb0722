"""The outer loop of the ranker, on a problem whose true values are known shifts of smooth ones."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from skfair.problems.base import TwoSidedProblem
from skfair.ranking.strict import _share_within, _tightened, solve_by_query


class At(NamedTuple):
    theta: np.ndarray

    @property
    def constraints(self):
        return self.theta


class Box(TwoSidedProblem):
    """Parameters are the constraints; the solution is the point of the box next to a target."""

    def __init__(self, target, limit):
        self.target, self.temperature = np.array(target), 1.0
        self.n_constraints = self.n_parameters = self.target.size
        self.lower, self.upper = np.full((2, self.target.size), limit) * [[-1], [1]]
        self.asked = []

    def bounded(self, lower=None, upper=None, temperature=None):
        view = super().bounded(lower, upper)
        view.temperature = temperature or self.temperature
        return view

    def evaluate(self, theta):
        return At(theta)


class Result(NamedTuple):
    theta: np.ndarray
    multipliers: np.ndarray
    status: str


def run(problem, measure, **changes):
    seen = []

    def solve(problem, theta, multipliers):
        seen.append(problem)
        theta = np.clip(problem.target, problem.lower, problem.upper)
        return Result(theta, multipliers, changes.get("status", "converged"))

    options = {"query_share": 1.0, "temperatures": (1.0, 2.0), "max_rounds": 10}
    options |= {name: value for name, value in changes.items() if name in options}
    size = problem.n_constraints
    task = SimpleNamespace(
        problem=problem,
        limits=np.full(size, 0.1),
        true_values=measure,
        query_of_row=np.arange(size),
    )
    found = solve_by_query(
        task,
        solve,
        np.zeros(problem.n_parameters),
        **options,
    )
    return found, seen


def test_shifts_and_tightening_lead_to_true_values_within_the_limit():
    problem = Box([0.5, -0.4, 0.02], 0.1)
    found, seen = run(problem, lambda theta: 1.3 * theta + [0.05, -0.2, 0])
    truth = 1.3 * found.result.theta + [0.05, -0.2, 0]
    assert found.share_within == 1
    assert (np.abs(truth) <= 0.1 + 1e-9).all()
    assert [view.temperature for view in seen] == [1.0, *[2.0] * (found.n_solves - 1)]
    assert found.result.theta[2] == 0.02
    assert (problem.lower == -0.1).all()  # it was never changed


@pytest.mark.parametrize("smooth", [0.06, 0.1, 0.14])
def test_bounds_fall_from_the_lower_of_bound_and_value_by_what_is_missed(smooth):
    """The value may lie above its bound a little, as solutions have a tolerance."""
    problem, truth = Box([0.5, -0.5, 0.5], 0.1), np.array([0.13, -0.13, 0.1])
    view = _tightened(problem, smooth * np.array([1, -1, 1]), truth, 0.1)
    assert (min(smooth, 0.1) - 0.04 <= view.upper[0]) & (view.upper[0] <= min(smooth, 0.1) - 0.03)
    assert view.lower.tolist() == [-0.1, -view.upper[0], -0.1]
    assert view.upper[1:].tolist() == [0.1, 0.1]


def test_what_is_within_at_once_is_solved_once():
    found, _ = run(Box([0.5, 0.5], 0.1), lambda theta: theta)
    assert (found.n_solves, found.share_within) == (1, 1.0)


def test_a_share_of_the_queries_is_enough():
    measure = lambda theta: np.array([*theta[:3], 1.0])  # noqa: E731
    found, _ = run(Box([0.5] * 4, 0.1), measure, query_share=0.7)
    assert (found.n_solves, found.share_within) == (1, 0.75)


def test_what_cannot_be_kept_ends_with_the_best_round():
    values = iter([1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    measure = lambda theta: np.array([1.0, next(values)])  # noqa: E731
    found, seen = run(Box([0.5, 0.5], 0.1), measure)
    assert found.share_within == 0.5
    assert found.problem.temperature == 2.0
    assert found.n_solves == len(seen) == 5  # the second was best; three more did not better it
    for view in seen:
        assert (view.lower <= view.upper).all()


def test_a_callback_stops():
    found, _ = run(Box([0.5], 0.1), lambda theta: np.ones(1), status="stopped")
    assert found.n_solves == 1


def test_a_query_counts_as_missed_once():
    truth = np.array([0.2, 0.3, 0.0, 0.1])
    assert _share_within(truth, np.array([7, 7, 8, 9]), 0.1) == pytest.approx(2 / 3)
    assert _share_within(np.empty(0), np.empty(0, int), 0.1) == 1
