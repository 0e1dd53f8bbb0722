import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skfair.cluster.assignment import near_ties
from skfair.cluster.assignment._kernels import prices as kernels
from skfair.cluster.assignment.counts import balance_constraints
from skfair.cluster.assignment.placement import Placement
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.groups.encoding import encode_groups
from skfair.utils import pieces
from tests.python_kernels import as_python
from tests.seeds import generator

TEMPERATURE = 0.0005


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """A few thousand rows are many, in several blocks."""
    monkeypatch.setattr(pieces, "NUMBERS", 1 << 12)
    monkeypatch.setattr(near_ties, "_MANY", 0)


def drawn(seed=0, n=4000, spread=0.15, weights=None):
    """Return a problem whose groups live apart, with centres and prices."""
    rng = generator(seed)
    means = rng.normal(size=(6, 3))
    blob, codes = rng.integers(6, size=n), rng.integers(3, size=n)
    X = means[blob] + spread * rng.normal(size=(n, 3))
    X[:, 0] += codes / 4
    groups = encode_groups(codes)
    problem = RepresentationProblem(
        X, groups, balance_constraints(groups, np.array([0.7])), 6, weights
    )
    centers = (means - problem.units.mean) / problem.units.scale
    return problem, centers, 0.05 * rng.normal(size=(3, 6))


def plain_sums(problem, centers, price, temperature):
    """The soft minima and counts of all rows by numpy."""
    costs = np.concatenate(problem.distances(centers).each(lambda _, costs: costs))
    value = costs + price[problem.cells]
    shares = np.exp((value.min(axis=1, keepdims=True) - value) / temperature)
    total = shares.sum(axis=1)
    soft = problem.weights @ (value.min(axis=1) - temperature * np.log(total))
    member = np.eye(problem.n_cells)[problem.cells] * problem.weights[:, None]
    return soft, (shares / total[:, None]).T @ member, value


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_those_of_all_rows_wherever_prices_go(weighted):
    weights = generator(1).uniform(0, 2, 4000) if weighted else None
    problem, centers, price = drawn(weights=weights)
    table = problem.distances(centers)
    seen = set()
    for step in (0.0, 0.1, 1.0, -1.0, 30.0):
        moved = price * (1 + step)
        value, counts, _ = table.soft_counts(moved, TEMPERATURE)
        labels, hard, least = table.assigned(moved)
        seen.add(id(table._near))
        wanted, soft, costs = plain_sums(problem, centers, moved, TEMPERATURE)
        assert_allclose(value, wanted, rtol=1e-9)
        assert_allclose(counts, soft, atol=1e-7)
        assert_array_equal(labels, costs.argmin(axis=1))
        assert_allclose(hard, problem.counts(labels))
        assert_allclose(least, problem.weights @ costs.min(axis=1), rtol=1e-12)
    assert 0 < table._near.number.size < problem.n_samples / 2
    assert len(seen) > 1, "rows were told apart once, although prices went far"


def test_moves_near_a_tie_are_the_first_of_all_moves():
    problem, centers, price = drawn(n=8000)
    table = problem.distances(centers)
    table.soft_counts(price, TEMPERATURE)
    labels, _, _ = table.assigned(price)
    near, whole = (
        table.near_moves(labels),
        table.cheapest_moves(labels, table.short_length()),
    )
    assert 0 < near.size.sum() <= whole.size.sum()
    reach = table._near._reach
    for giver, taker, cell in np.argwhere(whole.size):
        complete = reach + price[cell, giver] - price[cell, taker]
        listed = slice(whole.size[giver, taker, cell])
        costs = whole.cost[giver, taker, cell, listed]
        first = np.flatnonzero(costs < complete)
        for lists in ("row", "cost"):
            mine, all_rows = getattr(near, lists), getattr(whole, lists)
            assert_array_equal(mine[giver, taker, cell][first], all_rows[giver, taker, cell][first])


def test_repair_looks_at_all_rows_where_those_near_a_tie_do_not_help():
    codes = np.arange(4000) % 2
    X = 100.0 * codes[:, None] + generator(0).normal(size=(4000, 2))
    groups = encode_groups(codes)
    problem = RepresentationProblem(X, groups, balance_constraints(groups, np.array([0.8])), 2)
    centers = problem.scaled(np.array([0, 1])).astype(float)
    table = problem.distances(centers)
    table.soft_counts(np.zeros((2, 2)), TEMPERATURE)
    assert not table._near.number.size
    placed = Placement.at_prices(problem, table, problem.no_multipliers())
    assert not placed.is_feasible
    placed.repair()
    assert placed.is_feasible
    assert_allclose(placed.counts, problem.counts(placed.labels))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("n_clusters", [1, 3, 4, 6])
@pytest.mark.parametrize("reach", [0.1, -np.inf])
def test_telling_apart_equals_numpy(compiled, n_clusters, reach):
    rng = generator(3)
    costs, price = rng.uniform(size=(200, n_clusters)), rng.normal(size=(2, n_clusters))
    cells, weights = rng.integers(2, size=200), rng.uniform(size=200)
    labels, near = np.full(200, -1), np.empty(200, np.int64)
    counts = np.zeros((n_clusters, 2))
    kernel = kernels.tell_apart if compiled else as_python(kernels.tell_apart)
    n_near, paid = kernel(costs, price, cells, weights, reach, labels, near, counts)
    value = costs + price[cells]
    is_near = (value < value.min(axis=1, keepdims=True) + reach).sum(axis=1) > 1
    assert_array_equal(near[:n_near], np.flatnonzero(is_near))
    best = value.argmin(axis=1)
    assert_array_equal(labels, np.where(is_near, -1, best))
    sure = np.flatnonzero(~is_near)
    assert_allclose(paid, weights[sure] @ costs[sure, best[sure]])
    wanted = np.zeros_like(counts)
    np.add.at(wanted, (best[sure], cells[sure]), weights[sure])
    assert_allclose(counts, wanted)


def test_kept_costs_are_those_of_the_rows_that_are_asked_for():
    """A block that begins at the same row had other rows, and the last one was never moved."""
    problem, centers, _ = drawn()
    table, fresh = problem.distances(centers), problem.distances(centers)
    whole = np.concatenate(fresh.each(lambda _, costs: costs))
    for rows in (slice(0, 100), slice(0, 300), slice(0, 4000), slice(0, 100), slice(50, 100)):
        np.testing.assert_allclose(table.costs(rows), whole[rows], atol=1e-12)
