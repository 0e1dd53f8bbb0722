"""What every problem with bounds answers: views with other bounds, violations, the protocol."""

import numpy as np
import pytest

from skfair.problems.erm.in_memory import ConstrainedERM
from skfair.problems.protocol import Problem, TwiceDifferentiable
from tests.small_problems import build, names_of, people


@pytest.fixture
def problem():
    return build(people(3, n_levels=(3,)), "demographic_parity", 0.1)


def point(problem, seed=0):
    return np.random.default_rng(seed).normal(size=problem.n_parameters)


def test_a_view_has_its_own_bounds(problem):
    lower, upper = problem.lower - 0.5, problem.upper + 1.0
    view = problem.bounded(lower, upper)
    assert (view.lower == lower).all()
    assert (view.upper == upper).all()
    assert problem.upper.max() < 0.2  # left as it was
    assert (problem.bounded(upper=upper).lower == problem.lower).all()
    at = problem.evaluate(point(problem))
    beyond = np.maximum(lower - at.constraints, at.constraints - upper)
    assert view.violation(at) == max(0.0, beyond.max())


def test_a_view_of_another_steepness_measures_anew(problem):
    view, theta = problem.bounded(temperature=4.0), point(problem)
    soft, steep = problem.evaluate(theta), view.evaluate(theta)
    assert (problem.temperature, view.temperature) == (1.0, 4.0)
    assert soft.objective == steep.objective
    assert (soft.constraints != steep.constraints).any()
    assert (problem.evaluate(theta).constraints == soft.constraints).all()


def test_an_evaluation_outlives_the_bounds_it_was_made_under(problem):
    theta, multipliers = point(problem), point(problem)[: problem.n_constraints]
    at = problem.evaluate(theta)
    before = at.gradient(multipliers), at.jacobian(), at.hessian(multipliers)
    problem.bounded(np.zeros(3), np.ones(3), temperature=9.0).evaluate(theta + 1)
    after = at.gradient(multipliers), at.jacobian(), at.hessian(multipliers)
    for one, other in zip(before, after, strict=True):
        assert (one == other).all()


@pytest.mark.parametrize(
    ("kind", "protocol"), [(ConstrainedERM, Problem), (None, TwiceDifferentiable)]
)
def test_problems_have_what_the_protocol_names(problem, kind, protocol):
    made = problem
    if kind is not None:
        made = kind(problem.model, problem.loss, problem.targets, problem.constraints)
    for name in names_of(protocol):
        assert hasattr(made, name), name
