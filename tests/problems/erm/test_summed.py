"""The problem on very many rows against the ordinary one, and the few rows it begins with."""

import numpy as np
import pytest

from skfair.problems.erm import summed
from skfair.problems.erm.summed import SummedERM, few_rows
from tests.small_problems import build, people, random_multipliers, random_point, same_point

RULES = ["demographic_parity", "equalized_odds"]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(summed, "FEW_ROWS", 1000)
    monkeypatch.setattr(summed, "FEW_ROWS_PER_CELL", 100)
    monkeypatch.setattr(summed, "_BLOCK_ROWS", 256)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("rules", [[], RULES])
def test_values_and_gradients_are_those_of_the_problem(rules, is_weighted):
    problem = build(people(2, n=9000, n_levels=(3, 2), weighted=is_weighted), rules)
    problem.temperature = 2.0
    sums = SummedERM(problem, problem.on_rows(np.arange(3000)))
    theta, multipliers = random_point(problem), random_multipliers(problem)
    one, two = problem.evaluate(theta), sums.evaluate(theta)
    assert two.objective == pytest.approx(one.objective, rel=1e-12)
    assert two.constraints == pytest.approx(one.constraints, abs=1e-12)
    assert two.gradient(multipliers) == pytest.approx(one.gradient(multipliers), abs=1e-12)
    assert two.jacobian() == pytest.approx(one.jacobian(), abs=1e-12)
    assert sums.scores(theta) == pytest.approx(problem.scores(theta), abs=1e-12)
    near = sums.corrected_sample(two)
    three = near.evaluate(theta)
    assert near.n_rows == 3000
    assert three.objective == pytest.approx(one.objective, rel=1e-12)
    assert three.constraints == pytest.approx(one.constraints, abs=1e-12)
    assert three.gradient(multipliers) == pytest.approx(one.gradient(multipliers), abs=1e-12)
    assert three.jacobian() == pytest.approx(one.jacobian(), abs=1e-12)
    whole, some = one.hessian(multipliers), three.hessian(multipliers)
    assert np.abs(some - whole).max() < 0.3 * np.abs(whole).max()
    with pytest.raises(NotImplementedError):
        two.hessian(multipliers)
    free = sums.relaxed().evaluate(problem.model_part(theta))
    assert free.objective == pytest.approx(one.objective, rel=1e-12)


def test_gradients_of_a_corrected_sample_are_those_of_its_values():
    problem = build(people(2, n=9000, n_levels=(3, 2)), RULES)
    sums = SummedERM(problem, problem.on_rows(np.arange(3000)))
    theta, multipliers = random_point(problem), random_multipliers(problem)
    at = sums.evaluate(theta)
    near, there = sums.corrected_sample(at, sums.curvature(at, multipliers)), theta + 0.1

    def value(point):
        at = near.evaluate(point)
        return at.objective + multipliers @ at.constraints

    ways = np.eye(theta.size) * 1e-5
    by_difference = [(value(there + way) - value(there - way)) / 2e-5 for way in ways]
    at = near.evaluate(there)
    assert at.gradient(multipliers) == pytest.approx(by_difference, abs=1e-7)
    assert multipliers @ at.jacobian() == pytest.approx(
        at.gradient(multipliers, objective=0.0), abs=1e-12
    )
    assert near.scores(there).size == 3000


def test_curvature_makes_the_second_derivative_that_of_more_rows(monkeypatch):
    monkeypatch.setattr(summed, "_SPAN", 128)
    who = people(2, n=12_000, n_levels=(3, 2), weighted=True)
    problem = build(who, RULES)
    theta, multipliers = random_point(problem), random_multipliers(problem)
    p = problem.model.n_parameters
    whole = problem.evaluate(theta).hessian(multipliers)[:p, :p]

    def error(n_sample, with_curvature):
        sums = SummedERM(problem, problem.on_rows(np.arange(n_sample)))
        at = sums.evaluate(theta)
        curvature = sums.curvature(at, multipliers) if with_curvature else None
        near = sums.corrected_sample(at, curvature).evaluate(theta)
        assert near.gradient(multipliers) == pytest.approx(at.gradient(multipliers), abs=1e-12)
        return np.abs(near.hessian(multipliers)[:p, :p] - whole).max()

    assert error(3000, True) < 1e-5  # four times as many are all
    assert error(700, True) < 0.7 * error(700, False)


def test_few_rows_are_the_problem_of_these_people():
    who = people(3, n=9000, n_levels=(3,))
    problem = build(who, RULES)
    sample = few_rows(problem)
    rows = np.sort(np.random.RandomState(0).randint(0, 9000, sample.n_rows))
    alone = build(who.take(rows), RULES)
    theta = random_point(problem)
    same = same_point(problem, theta, alone)
    assert sample.evaluate(theta).constraints == pytest.approx(
        alone.evaluate(same).constraints, abs=1e-6
    )
    plain, other = (
        one.evaluate(t).measured.mean_loss for one, t in ((sample, theta), (alone, same))
    )
    assert plain == pytest.approx(other, rel=1e-6)


def test_few_rows_that_say_too_little_are_not_taken():
    assert few_rows(build(people(3, n=3900), RULES)) is None
    who = people(3, n=9000)
    assert few_rows(build(who, RULES)) is not None
    assert few_rows(build(who, ["demographic_parity", "loss_parity"])) is None
    assert few_rows(build(who, RULES, is_sparse=True)) is None
    rare = np.where(np.arange(9000) < 90, "rare", who.columns[0])
    assert few_rows(build(who._replace(columns=[rare]), RULES)) is None
