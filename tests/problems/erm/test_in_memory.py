"""The problem that solvers see: values, derivatives, batches and first-order conditions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skfair.constraints import DemographicParity, EqualizedOdds
from skfair.solvers.base import IterativeSolver, Step
from tests.registries import LOSSES
from tests.seeds import generator
from tests.small_problems import (
    build,
    central,
    constraints_for,
    lagrangian,
    make_constraint,
    people,
    random_multipliers,
    random_point,
    raw,
    references_of,
    same_point,
    twin,
)

KINDS = {"two": (2,), "five": (5,), "overlapping": (3, 2)}
PAIRS = [(loss, constraint) for loss in LOSSES for constraint in constraints_for(loss)]
each_pair = pytest.mark.parametrize(("loss", "constraint"), PAIRS)
each_storage = pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
SEVERAL = ["demographic_parity", DemographicParity(0.1, "overall"), EqualizedOdds(0.2)]


# Values


def worst_comparison(problem, theta):
    """Disparity minus bound, from the constraint rows at the best centres."""
    theta = theta.copy()
    theta[problem.model.n_parameters :] = 0
    rates, start, worst = problem.evaluate(theta).constraints, 0, []
    for constraint in problem.constraints:
        mine = rates[start : start + constraint.upper.size]
        for c in range(constraint.n_centers):
            block = mine[constraint.centers == c]
            worst.append(np.ptp(block) - 2 * constraint.upper[constraint.centers == c][0])
        free = constraint.centers < 0
        beyond = np.maximum(mine - constraint.upper, constraint.lower - mine)
        worst += beyond[free].tolist()
        start += constraint.upper.size
    return max(worst)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_values_are_those_of_the_naive_twin(kind, is_weighted):
    who = people(3, n=40, n_levels=KINDS[kind], weighted=is_weighted)
    for loss, constraint in PAIRS:
        for reference in references_of(constraint):
            problem = build(who, make_constraint(constraint, reference), loss=loss)
            risk = twin(who, [constraint], loss=loss, reference=reference)
            problem.temperature = risk.temperature = 2.0
            theta = random_point(problem)
            x = raw(problem, theta)
            found = problem.evaluate(theta).objective
            assert found == pytest.approx(risk.objective(x), rel=1e-12), (loss, constraint)
            excess = risk.excess(x).max()
            found = worst_comparison(problem, theta)
            assert found == pytest.approx(excess, abs=1e-11), (loss, constraint, reference)


# Derivatives


@each_pair
@each_storage
def test_derivatives_equal_finite_differences(loss, constraint, is_sparse):
    """Five groups have a centre, two of another attribute a difference, and they overlap."""
    who = people(4, n=40, n_levels=(5, 2), weighted=True)
    problem = build(who, constraint, loss=loss, is_sparse=is_sparse)
    problem.temperature = 2.0
    assert problem.model.is_sparse == is_sparse
    theta, multipliers = random_point(problem), random_multipliers(problem)
    at = problem.evaluate(theta)
    gradient = central(lagrangian(problem, multipliers), theta)
    assert at.gradient(multipliers) == pytest.approx(gradient, abs=1e-7)
    slope = central(lambda x: problem.evaluate(x).gradient(multipliers), theta)
    hessian = at.hessian(multipliers)
    assert hessian == pytest.approx(slope, abs=1e-6)
    assert hessian == pytest.approx(hessian.T, abs=1e-12)
    jacobian = central(lambda x: problem.evaluate(x).constraints, theta)
    assert at.jacobian() == pytest.approx(jacobian, abs=1e-7)


@each_storage
def test_products_are_those_of_the_second_derivative(is_sparse):
    who = people(4, n=60, n_levels=(3, 2), weighted=True)
    problem = build(who, ["demographic_parity", "loss_parity"], is_sparse=is_sparse)
    at, multipliers = problem.evaluate(random_point(problem)), random_multipliers(problem)
    product, diagonal = at.hessian_product(multipliers)
    assert diagonal.min() > 0
    hessian = at.hessian(multipliers)
    found = np.stack([product(unit) for unit in np.eye(problem.n_parameters)])
    assert found == pytest.approx(hessian, abs=1e-10 * np.abs(hessian).max())


def test_products_are_offered_where_the_matrix_is_more_work():
    assert "products" not in build(people(4, n=300, d=20), []).offers
    wide = build(people(4, n=20, d=2500), [])
    assert {"products", "hessian"} <= wide.offers


@each_storage
@pytest.mark.parametrize("in_batch", [False, True])
def test_jacobian_is_the_gradient_with_unit_multipliers(is_sparse, in_batch):
    problem = build(people(4, n_levels=(5, 2)), SEVERAL, is_sparse=is_sparse)
    batch = problem.draw(np.random.RandomState(0), 20, 10) if in_batch else None
    at = problem.evaluate(random_point(problem), batch)
    units = np.eye(problem.n_constraints)
    rows = np.stack([at.gradient(unit, objective=0.0) for unit in units])
    assert at.jacobian() == pytest.approx(rows, abs=1e-12)
    few = np.arange(problem.n_constraints)[::-3]  # neither sorted nor of one constraint
    assert at.jacobian(few) == pytest.approx(rows[few], abs=1e-12)
    assert at.jacobian(few[:0]).shape == (0, problem.n_parameters)


def test_centers_in_the_middle_are_the_best_ones():
    problem = build(people(4, n_levels=(5, 3)), ["demographic_parity", EqualizedOdds(0.2)])
    p = problem.model.n_parameters
    theta = problem.centered(random_point(problem))
    at = problem.evaluate(theta)
    worst = problem.violation(at)
    assert problem.n_centers == theta.size - p == 6
    for c in range(6):
        for step in (-0.01, 0.01):  # the two rates that are farthest apart get in the way
            moved = theta.copy()
            moved[p + c] += step
            assert problem.violation(problem.evaluate(moved)) >= worst
    elsewhere = random_point(problem)
    elsewhere[:p] = theta[:p]
    assert (problem.centered(elsewhere) == theta).all()
    # Values that are measured from anywhere are moved to the same middles.
    values = problem.evaluate(elsewhere).constraints
    assert problem.constraint_rows.from_middles(values) == pytest.approx(at.constraints, abs=1e-12)


# Passes over the rows


class TwoPoints(IterativeSolver):
    """Looks at the start and at one point further on."""

    def steps(self, problem, run):
        none = np.zeros(problem.n_constraints)
        yield Step(problem.evaluate(run.start), none, 0)
        yield Step(problem.evaluate(run.start + 0.1), none, 1, "converged")


@pytest.fixture
def counted(monkeypatch):
    """A problem, and a list that grows by each pass over its rows."""
    problem, passes = build(people(2, n_levels=(3,)), SEVERAL), []
    measure = type(problem)._measure

    def count(self, *args):
        passes.append(self.temperature)
        return measure(self, *args)

    monkeypatch.setattr(type(problem), "_measure", count)
    return problem, passes


def test_what_was_asked_last_costs_no_pass(counted):
    problem, passes = counted
    theta, other = random_point(problem), problem.bounded(temperature=3.0)
    first = problem.evaluate(theta)
    again, moved = problem.evaluate(theta), problem.evaluate(theta + np.eye(theta.size)[-1])
    assert np.array_equal(again.constraints, first.constraints)
    assert moved.constraints != pytest.approx(first.constraints)  # another centre, the same model
    assert np.array_equal(other.scores(theta), problem.scores(theta))
    assert passes == [1.0]
    assert other.evaluate(theta).constraints != pytest.approx(first.constraints)
    assert passes == [1.0, 3.0]


def test_the_driver_of_solvers_makes_no_pass_of_its_own(counted):
    problem, passes = counted
    start = random_point(problem)
    result = TwoPoints().solve(problem, start)
    problem.scores(result.theta)
    assert len(passes) == 2


# Invariances


@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**31))
def test_weight_two_is_the_same_row_twice_and_order_is_nothing(seed):
    rng = generator(seed)
    who = people(seed, n=40, n_levels=(3, 2))
    times = rng.integers(1, 4, 40)
    again = rng.permutation(np.repeat(np.arange(40), times))
    weighted = build(who._replace(weights=times.astype(float)), SEVERAL)
    repeated = build(who.take(again), SEVERAL)
    theta, multipliers = random_point(weighted, seed), random_multipliers(weighted, seed)
    other = same_point(weighted, theta, repeated)
    one, two = weighted.evaluate(theta), repeated.evaluate(other)
    assert one.objective == pytest.approx(two.objective, rel=1e-10)
    assert one.constraints == pytest.approx(two.constraints, abs=1e-10)
    assert one.gradient(multipliers) == pytest.approx(two.gradient(multipliers), abs=1e-10)
    assert one.hessian(multipliers) == pytest.approx(two.hessian(multipliers), abs=1e-10)


# Samples


@each_storage
@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_sample_is_nearly_the_problem(is_weighted, is_sparse):
    who = people(7, n=30_000, n_levels=(3, 2), weighted=is_weighted)
    problem = build(who, ["demographic_parity", "loss_parity"], is_sparse=is_sparse)
    problem.temperature, problem.upper = 2.0, problem.upper + 0.1
    sample = problem.sampled()
    assert sample.n_rows == 3000
    assert sample.temperature == 2.0
    assert (sample.upper == problem.upper).all()
    assert sample.everything.loss_weights.sum() == pytest.approx(1)
    for constraint in sample.constraints:
        found = np.bincount(constraint.cells, constraint.row_weights)
        assert found == pytest.approx(np.ones(constraint.n_cells))
    theta, multipliers = random_point(problem), random_multipliers(problem)
    few, all_ = sample.evaluate(theta), problem.evaluate(theta)
    assert few.objective == pytest.approx(all_.objective, abs=0.1)
    assert few.constraints == pytest.approx(all_.constraints, abs=0.2)
    assert few.gradient(multipliers) == pytest.approx(all_.gradient(multipliers), abs=0.5)
    assert (problem.sampled().targets == sample.targets).all()


def test_a_sample_of_very_many_rows_is_no_larger(monkeypatch):
    monkeypatch.setattr("skfair.problems.erm.problem.MOST_SAMPLE_ROWS", 2500)
    assert build(people(7, n=24_000), []).sampled().n_rows == 2400
    assert build(people(7, n=30_000), []).sampled().n_rows == 2500


def test_a_sample_that_says_too_little_is_not_drawn():
    assert build(people(7, n=19_000), []).sampled() is None
    wide = people(7, n=30_000, d=200)
    assert build(wide, []).sampled() is None
    who = people(7, n=30_000)
    assert build(who, "demographic_parity").sampled() is not None
    rare = np.where(np.arange(30_000) < 300, "rare", who.columns[0])
    assert build(who._replace(columns=[rare]), "demographic_parity").sampled() is None
    weights = (np.arange(30_000) % 30 == 0).astype(float)  # of 3000 drawn rows, 100 count
    assert build(who._replace(weights=weights), "demographic_parity").sampled() is None


# First-order conditions


def scipy_solution(who, constraints, bound, **options):
    """The point and multipliers that SLSQP finds for the naive twin, in terms of the problem."""
    problem = build(who, constraints, bound, **options)
    found = twin(who, constraints, bound, **options).slsqp()
    if "multipliers" not in found:
        pytest.skip("this version of scipy reports no multipliers")
    theta = problem.model.standardised(found.x[:-1], found.x[-1])
    return problem, theta, found


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
@pytest.mark.parametrize("bound", [0.02, 1.0])
def test_kkt_residual_is_zero_at_a_solution_of_scipy(loss, bound):
    """Two groups: the row is rate of b minus rate of a, SLSQP bounds both directions."""
    who = people(7)
    problem, theta, found = scipy_solution(who, ["demographic_parity"], bound, loss=loss)
    above, below = found.multipliers[1], found.multipliers[0]  # b - a, a - b
    multipliers = np.array([above - below])
    assert (np.abs(multipliers) > 0.01).all() == (bound < 1)
    residual = problem.kkt_residual(problem.evaluate(theta), multipliers)
    assert set(residual) == {"stationarity", "feasibility", "complementarity"}
    assert max(residual.values()) <= 1e-6


def test_kkt_residual_is_not_zero_elsewhere():
    who = people(7)
    problem, theta, found = scipy_solution(who, ["demographic_parity"], 0.02)
    multipliers = np.array([found.multipliers[1] - found.multipliers[0]])
    at = problem.evaluate(theta)
    shift = 0.01 * np.ones(theta.size)
    moved = problem.kkt_residual(problem.evaluate(theta + shift), multipliers)
    assert moved["stationarity"] > 1e-3
    turned = problem.kkt_residual(at, -multipliers)  # the bound that it presses on is far away
    assert turned["complementarity"] == pytest.approx(abs(multipliers[0]) * 0.04, rel=1e-3)
    assert turned["stationarity"] > 1e-3
    free = twin(who, ["demographic_parity"], 10.0).slsqp().x
    free = problem.evaluate(problem.model.standardised(free[:-1], free[-1]))
    residual = problem.kkt_residual(free, np.zeros(1))
    assert residual["stationarity"] <= 1e-6
    assert residual["complementarity"] == 0
    excess = twin(who, ["demographic_parity"], 0.02).excess(raw(problem, free.theta)).max()
    assert excess > 0.01
    assert residual["feasibility"] == pytest.approx(excess, abs=1e-12)
