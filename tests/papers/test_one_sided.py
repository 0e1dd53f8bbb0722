"""Shared parts of first-order solvers: the one-sided view, constants, steps that adapt."""

import numpy as np
import pytest

from skfair.papers.one_sided import GradientStep, OneSided, curvature_bounds
from skfair.problems.erm.in_memory import LinearConstrainedERM
from tests.small_problems import build, people

MIXED = ["demographic_parity", "bounded_group_loss"]  # bounds on both sides, and above only


def without_constraints(problem):
    """The same problem, unconstrained."""
    return LinearConstrainedERM(
        problem.model, problem.loss, problem.targets, [], alpha=problem.alpha
    )


@pytest.fixture
def point():
    """A mixed problem, a point with violated and kept rows of both kinds, its one-sided view."""
    problem = build(people(3, n=60, n_levels=(3,)), MIXED, 0.4)
    problem.upper[:3] = problem.lower[:3] + 0.1
    theta = np.random.default_rng(0).normal(size=problem.n_parameters)
    return problem, problem.evaluate(theta), OneSided(problem)


def one_sided_rows(problem, constraints):
    """The definition, row by row."""
    up = [c - u for c, u in zip(constraints, problem.upper, strict=True) if np.isfinite(u)]
    low = [b - c for c, b in zip(constraints, problem.lower, strict=True) if np.isfinite(b)]
    return np.array(up + low)


def test_rows_are_the_finite_bounds(point):
    problem, at, constraints = point
    expected = one_sided_rows(problem, at.constraints)
    assert constraints.n == 9  # 3 rates above and below, 3 losses above
    assert constraints.values(at) == pytest.approx(expected, abs=1e-15)
    assert constraints.values(at).max() == pytest.approx(problem.violation(at))


def test_bounds_may_be_moved(point):
    problem, at, constraints = point
    before = constraints.values(at)
    problem.upper[:] += 0.25
    moved = np.where(np.arange(9) < 6, before - 0.25, before)
    assert constraints.values(at) == pytest.approx(moved)


def test_multipliers_weigh_the_rows(point):
    """lam' G and nu' c have the same gradient; split undoes signed where one side pays."""
    problem, at, constraints = point
    lam = np.random.default_rng(1).uniform(0.1, 1, 9)
    J = at.jacobian()
    finite = np.isfinite(problem.lower)
    rows = np.vstack([J, -J[finite]])
    found = at.gradient(constraints.signed(lam), objective=0.0)
    assert found == pytest.approx(rows.T @ lam, abs=1e-12)
    for row in range(9):
        assert J.T @ constraints.unit(row) == pytest.approx(rows[row], abs=1e-15)
    lam[[0, 7, 8]] = 0  # the lower bound of the first rate pays, the upper ones of the others
    nu = constraints.signed(lam)
    assert nu[0] == -lam[6]
    assert nu[1:] == pytest.approx(lam[1:6])
    assert constraints.split(nu) == pytest.approx(lam)


def test_without_constraints_there_are_no_rows():
    unbounded = build(people(3), "demographic_parity")
    unbounded.lower[:], unbounded.upper[:] = -np.inf, np.inf
    for problem in (unbounded, without_constraints(unbounded)):
        at = problem.evaluate(problem.start(np.random.RandomState(0)))
        constraints = OneSided(problem)
        assert constraints.n == 0
        assert constraints.values(at).shape == (0,)
        assert constraints.signed(np.empty(0)).shape == (problem.n_constraints,)
        assert constraints.split(np.zeros(problem.n_constraints)).shape == (0,)
        assert curvature_bounds(problem, at).jacobian == 0


@pytest.mark.parametrize("constraints", ["demographic_parity", MIXED])
def test_constants_are_those_of_linear_algebra(constraints):
    """Of a quadratic objective exactly; of the Jacobian at the point."""
    problem = build(people(3, n_levels=(3,)), constraints, 0.2, loss="squared_error")
    at = problem.evaluate(np.random.default_rng(2).normal(size=problem.n_parameters))
    bounds = curvature_bounds(problem, at)
    hessian = at.hessian(np.zeros(problem.n_constraints))
    assert bounds.objective == pytest.approx(np.linalg.eigvalsh(hessian)[-1], rel=1e-2)
    J = at.jacobian()
    rows = np.vstack([J, -J[np.isfinite(problem.lower)]])
    assert bounds.jacobian == pytest.approx(np.linalg.norm(rows, 2), rel=1e-2)


def test_a_kink_is_seen_from_a_distance():
    """At zero the smoothed hinge is flat, but not for long."""
    problem = without_constraints(build(people(3), "demographic_parity", loss="hinge", alpha=0.0))
    at = problem.evaluate(np.zeros(problem.n_parameters))
    assert np.abs(at.hessian(np.zeros(0))).max() == 0
    assert curvature_bounds(problem, at).objective > 0.05


class Bowl:
    """0.5 x'x, with evaluations that are their points."""

    def __init__(self):
        self.n_evaluations = 0

    def evaluate(self, theta):
        self.n_evaluations += 1
        return type("At", (), {"theta": theta, "objective": 0.5 * float(theta @ theta)})


def value(at):
    return at.objective


def test_a_step_that_is_too_long_is_halved():
    problem = Bowl()
    at = problem.evaluate(np.array([1.0, 2.0]))
    step = GradientStep(16.0)
    new = step.take(problem, at, at.theta, value)
    # x - eta x falls by eta - eta^2 / 2 of x'x: 16, 8, 4, 2 are too long.
    assert new.theta == pytest.approx([0, 0])
    assert problem.n_evaluations == 1 + 5
    assert step.eta == pytest.approx(1.05)


def test_a_step_creeps_up_to_its_limit():
    problem = Bowl()
    at = problem.evaluate(np.array([1.0]))
    step = GradientStep(0.1, growth=2.0, eta_max=0.3)
    lengths = []
    for _ in range(3):
        new = step.take(problem, at, at.theta, value)
        lengths.append(1 - new.theta[0] / at.theta[0])
        at = new
    assert lengths == pytest.approx([0.1, 0.2, 0.3])


def test_a_fixed_step_is_taken_even_uphill():
    problem = Bowl()
    at = problem.evaluate(np.array([1.0]))
    step = GradientStep(3.0, growth=0.0)
    new = step.take(problem, at, at.theta, value)
    assert new.theta == pytest.approx([-2.0])
    assert step.eta == 3.0


def test_no_visible_step_where_nothing_falls():
    problem = Bowl()
    at = problem.evaluate(np.array([1.0]))
    new = GradientStep(1.0).take(problem, at, -at.theta, value)  # uphill
    assert new.theta == pytest.approx(at.theta, abs=1e-12)
