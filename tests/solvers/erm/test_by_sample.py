"""Solving very many rows through a corrected sample: the solution of all rows, in few passes."""

import numpy as np
import pytest

from skfair.problems.erm.summed import SummedERM
from skfair.solvers.base import SOLVERS
from skfair.solvers.erm.by_sample import BySample
from tests.small_problems import build, people


@pytest.mark.parametrize("rules", [["demographic_parity"], ["equalized_odds"]])
def test_the_solution_is_that_of_all_rows(rules):
    problem = build(people(4, n=12_000, n_levels=(3,)), rules)
    sample = problem.on_rows(np.random.RandomState(0).randint(0, 12_000, 3000))
    solver, start = SOLVERS["al_newton"](), problem.centered(np.zeros(problem.model.n_parameters))
    direct = solver.solve(problem, start, tol=1e-9)
    near = solver.solve(sample, start, tol=1e-3)
    sums = SummedERM(problem, sample)
    seen, measure = [], sums._measure
    sums._measure = lambda w, batch: seen.append(w) or measure(w, batch)
    found = BySample(solver).solve(sums, near.theta, near.multipliers, tol=1e-8)
    assert found.status == "converged"
    assert np.abs(direct.multipliers).max() > 0
    w, expected = problem.model_part(found.theta), problem.model_part(direct.theta)
    assert w == pytest.approx(expected, abs=1e-5)  # centres are not unique
    assert found.multipliers == pytest.approx(direct.multipliers, abs=1e-5)
    assert len(seen) <= found.n_iter + 2 <= 12
    residuals = problem.kkt_residual(problem.evaluate(found.theta), found.multipliers)
    assert max(residuals.values()) <= 1e-7


def test_curvature_of_more_rows_saves_passes_and_changes_no_solution():
    problem = build(people(4, n=12_000, n_levels=(3,)), ["demographic_parity"])
    sample = problem.on_rows(np.random.RandomState(0).randint(0, 12_000, 3000))
    solver, start = SOLVERS["al_newton"](), problem.centered(np.zeros(problem.model.n_parameters))
    near = solver.solve(sample, start, tol=1e-3)
    sums = SummedERM(problem, sample)
    curvature = sums.curvature(sums.evaluate(near.theta), near.multipliers)
    given = sums, near.theta, near.multipliers
    plain = BySample(solver).solve(*given, tol=1e-8)
    found = BySample(solver, curvature).solve(*given, tol=1e-8)
    assert found.n_iter < plain.n_iter
    p = problem.model.n_parameters
    assert found.theta[:p] == pytest.approx(plain.theta[:p], abs=1e-6)
    again = BySample(solver, curvature).solve(sums, found.theta, found.multipliers, tol=1e-3)
    moved = BySample(solver, curvature, 1).solve(sums, found.theta, found.multipliers, tol=1e-3)
    assert (again.n_iter, moved.n_iter) == (0, 1)


def test_what_a_sample_cannot_bring_ends():
    problem = build(people(4, n=12_000, n_levels=(3,)), ["demographic_parity"])
    sums = SummedERM(problem, problem.on_rows(np.arange(3000)))
    start = problem.centered(np.zeros(problem.model.n_parameters))
    found = BySample(SOLVERS["al_newton"]()).solve(sums, start, tol=1e-17, max_iter=50)
    assert found.status == "max_iter"
    assert found.n_iter < 50
