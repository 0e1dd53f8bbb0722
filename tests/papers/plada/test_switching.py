"""Switching subgradients and proximal points against scipy, their formulas and closed forms."""

from dataclasses import replace

import numpy as np
import pytest

from skfair.papers.one_sided import OneSided, curvature_bounds
from skfair.papers.plada.ipp_conex import IPPConEx, _slope
from skfair.papers.plada.ipp_ssg import IPPSSG
from skfair.papers.plada.plada import Plada
from skfair.papers.plada.ssg import SSG
from tests.papers.plada.test_plada import (
    CASES,
    each_case,
    problem_of,
    pulls,
    residual,
    slsqp,
    solve,
    start,
)
from tests.seeds import generator

# How far a switching method may stay from the optimum.
NEAR = dict(zip(map(str, CASES), [1e-3, 1e-3, 3e-3, 1e-3, 1e-3], strict=True))
each_switching = pytest.mark.parametrize("solver", [SSG(), IPPSSG()], ids=["ssg", "ipp_ssg"])
each_solver = pytest.mark.parametrize(
    "solver", [SSG(), IPPSSG(), IPPConEx(), Plada()], ids=["ssg", "ipp_ssg", "ipp_conex", "plada"]
)


@each_case
@each_switching
def test_switching_gets_near_the_optimum_of_slsqp(solver, case):
    problem = problem_of(case)
    result, at = solve(problem, solver, max_iter=600)
    assert at.objective == pytest.approx(slsqp(CASES.index(case)), abs=NEAR[str(case)])
    assert problem.violation(at) <= 1e-3
    assert not result.multipliers.any()
    assert result.multipliers.shape == (problem.n_constraints,)
    assert result.status == "max_iter"  # zeros are not the multipliers


@each_case
def test_constraint_extrapolation_reaches_the_optimum_of_slsqp(case):
    problem = problem_of(case)
    result, at = solve(problem, IPPConEx(), tol=1e-6, max_iter=20_000)
    assert result.status == "converged"
    assert residual(problem, at, result.multipliers) <= 1e-6
    assert at.objective == pytest.approx(slsqp(CASES.index(case)), abs=1e-5)
    assert pulls(problem, result) == pytest.approx(pulls(problem), abs=3e-4)


# The formulas of the papers, written out


def worst_row(problem, at):
    """The largest of the one-sided constraints, and its gradient."""
    J = at.jacobian()
    G = np.append(at.constraints - problem.upper, problem.lower - at.constraints)
    return G.max(), np.vstack([J, -J])[G.argmax()]


def paper_switching(problem, eps, n_centers, n_inner, proximal=0.0):
    """Equal steps that fall like a root; centres are weighted averages of objective steps."""
    at = problem.evaluate(start(problem))
    L, _ = curvature_bounds(problem, at)
    gamma = proximal * L
    for _ in range(n_centers):
        center, points, weights = at.theta, [], []
        for k in range(n_inner):
            eta = 1 / (L + gamma) / np.sqrt(k + 1)
            G, gradient = worst_row(problem, at)
            away = at.theta - center
            if G + gamma / 2 * away @ away <= eps / np.sqrt(k + 1):
                points.append(at.theta)
                weights.append(eta)
                gradient = at.gradient()
            at = problem.evaluate(at.theta - eta * (gradient + gamma * away))
        assert 0.1 * n_inner < len(points) < 0.9 * n_inner  # both kinds of steps
        at = problem.evaluate(np.average(points, axis=0, weights=weights))
    return at.theta


def test_ssg_of_the_paper():
    problem = problem_of(CASES[1])
    result, _ = solve(problem, replace(SSG.paper(), eps=0.03), max_iter=60)
    assert result.theta == pytest.approx(paper_switching(problem, 0.03, 1, 60), abs=1e-12)


def test_ipp_ssg_of_the_paper():
    problem = problem_of(CASES[1])
    theta = paper_switching(problem, 0.02, 4, 30, proximal=0.3)
    solver = replace(IPPSSG.paper(), eps=0.02, n_inner=30, proximal=0.3)
    result, _ = solve(problem, solver, max_iter=120)
    assert result.theta == pytest.approx(theta, abs=1e-12)


def test_polyak_steps_land_inside():
    """One step from a violated start keeps the linearised constraint with half the tolerance."""
    problem, seen = problem_of(CASES[0]), []
    theta0 = np.array([1.0, 0.0, 0.0, 0.0])
    at = problem.evaluate(theta0)
    G, row = worst_row(problem, at)
    assert G > 0.05
    solve(problem, SSG(eps=0.01), theta0, max_iter=1, callback=lambda x: seen.append(x))
    assert G + row @ (seen[0] - theta0) == pytest.approx(-0.005)
    assert abs((seen[0] - theta0) @ row) == pytest.approx(
        np.linalg.norm(seen[0] - theta0) * np.linalg.norm(row)
    )


def test_the_best_of_the_last_tenth_is_returned():
    """Also if a callback ends the run within it."""
    problem, kinds = problem_of(CASES[1]), set()
    for n_steps in (200, 190):
        iterates = []
        result, _ = solve(
            problem,
            SSG(eps_last=1e-3),
            max_iter=200,
            callback=lambda x, seen=iterates, n=n_steps: seen.append(x) or len(seen) == n,
        )
        points = [problem.evaluate(x) for x in iterates[179:]]
        kept = [p for p in points if problem.violation(p) <= 1e-3]
        assert np.array_equal(result.theta, min(kept, key=lambda p: p.objective).theta)
        kinds |= {len(kept) < len(points)}
    assert True in kinds


def test_the_least_violation_is_returned_if_no_iterate_is_feasible():
    """Bounds below the least possible loss of a group."""
    problem, iterates = problem_of((["bounded_group_loss"], (4,), 0.1)), []
    result, at = solve(problem, SSG(), max_iter=100, callback=lambda x: iterates.append(x))
    violations = [problem.violation(problem.evaluate(x)) for x in iterates[89:]]
    assert problem.violation(at) == pytest.approx(min(violations))
    assert problem.violation(at) > 0.01
    assert result.status == "max_iter"


def test_a_proximal_weight_of_zero_changes_nothing():
    problem = problem_of(CASES[1])
    first, _ = solve(problem, SSG(), max_iter=100)
    second, _ = solve(problem, IPPSSG(proximal=0.0, n_inner=7), max_iter=100)
    assert np.array_equal(first.theta, second.theta)


def test_a_large_proximal_weight_holds_the_iterates_at_their_centre():
    """No problem is left before its ``n_inner`` steps are over."""
    problem, seen = problem_of(CASES[0]), []
    solver = IPPSSG(proximal=1e4, n_inner=10, eps_last=0.1, eta_last=1.0)
    solve(problem, solver, max_iter=30, callback=lambda x: seen.append(x))
    curvature, _ = curvature_bounds(problem, problem.evaluate(start(problem)))
    # 1 / (L + gamma) of a gradient from the centre, where the next step ends as well.
    step = -problem.evaluate(start(problem)).gradient() / (1.0001e4 * curvature)
    assert seen[0] == pytest.approx(step, rel=1e-6)
    # On the way gradients change by some of these lengths over 1e4.
    size = np.linalg.norm(step)
    assert np.linalg.norm(seen[9] - step) <= 1e-3 * size
    assert np.linalg.norm(seen[29] - 3 * step) <= 3e-3 * size


def test_constraint_extrapolation_of_the_paper():
    """Prices, centres and steps written out, while every step is taken."""
    problem, seen = problem_of(CASES[1]), []
    at = problem.evaluate(start(problem))
    (L, steepness), proximal, ratio = curvature_bounds(problem, at), 0.5, 2.0
    gamma, sigma = proximal * L, ratio * L / steepness**2
    eta = 1 / (L + gamma + ratio * L)
    lam, expected = np.zeros(2 * problem.n_constraints), []
    for k in range(9):
        if k % 3 == 0:
            center = at.theta
        q = 0.5 * gamma * np.sum((at.theta - center) ** 2)
        G = np.append(at.constraints - problem.upper, problem.lower - at.constraints) + q
        if k % 3 == 0:
            previous = G
        lam = np.maximum(lam + sigma * (1.7 * G - 0.7 * previous), 0)
        previous = G
        J = at.jacobian()
        pull = gamma * (at.theta - center)
        gradient = at.gradient() + pull + (np.vstack([J, -J]) + pull).T @ lam
        at = problem.evaluate(at.theta - eta * gradient)
        expected.append(at.theta)
    assert lam.max() > 0.1
    solver = IPPConEx(proximal, n_inner=3, ratio=ratio, extrapolation=0.7)
    result, _ = solve(problem, solver, tol=0.0, max_iter=9, callback=lambda x: seen.append(x))
    assert np.array(seen) == pytest.approx(np.array(expected), abs=1e-12)
    upper, lower = np.split(lam, 2)
    assert result.multipliers == pytest.approx(upper - lower, abs=1e-12)

    average, _ = solve(
        problem, IPPConEx(proximal, 3, ratio, 0.7, output="average"), tol=0.0, max_iter=3
    )
    assert average.theta == pytest.approx(np.mean(expected[:3], axis=0), abs=1e-12)


# What all of them share


@pytest.mark.parametrize("case", CASES[:3], ids=str)
@each_solver
def test_an_infeasible_start_ends_near_the_optimum(solver, case):
    problem = problem_of(case)
    theta0 = np.linspace(-1, 1, problem.n_parameters)
    theta0[0] = 2
    assert problem.violation(problem.evaluate(theta0)) > 0.02
    enough = 3000 if isinstance(solver, IPPConEx) else 600  # it ends where it converges
    _, at = solve(problem, solver, theta0, max_iter=enough)
    assert problem.violation(at) <= 2e-3
    assert at.objective == pytest.approx(slsqp(CASES.index(case)), abs=NEAR[str(case)])


@pytest.mark.parametrize("length", [1e-16, 1e-14, 1e-10, 1e-6, 1e-2])
def test_steepness_of_ipp_conex_is_no_rounding(length):
    """However short a step is, the slope of G is at most the norm of its Jacobian."""
    problem = problem_of(CASES[1])
    constraints, rng = OneSided(problem), generator(0)
    slopes, theta = [], start(problem) + rng.normal(size=problem.n_parameters)
    old = problem.evaluate(theta)
    units = np.eye(constraints.n)
    rows = [old.gradient(constraints.signed(unit), objective=0.0) for unit in units]
    steepest = np.linalg.norm(rows, 2)
    for _ in range(50):
        step = rng.normal(size=theta.size)
        new = problem.evaluate(theta + length * step / np.linalg.norm(step))
        slopes.append(_slope(constraints, old, new))
    assert max(slopes) <= 1.01 * steepest
