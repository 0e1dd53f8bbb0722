import itertools
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import LinearConstraint, check_grad, linprog, milp

from skfair.cluster.assignment import by_prices, dual_newton, whole_rows
from skfair.cluster.assignment._kernels import moves
from skfair.cluster.assignment._kernels import prices as kernels
from skfair.cluster.assignment.by_prices import assign, maximise_dual
from skfair.cluster.assignment.counts import balance_constraints
from skfair.cluster.assignment.placement import Placement
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans import prices
from skfair.cluster.kmeans.prices import Prices, fair_lloyd
from skfair.cluster.kmeans.solver import RunSettings
from skfair.groups.encoding import encode_groups
from tests.python_kernels import as_python
from tests.seeds import generator


def random_problem(seed, n=60, n_clusters=3, n_groups=2, beta=0.7, weights=None, dtype=float):
    rng = generator(seed)
    codes = np.concatenate((np.arange(n_groups).repeat(n_clusters), rng.integers(0, n_groups, n)))
    X = rng.normal(size=(codes.size, 2)) + np.eye(max(2, n_groups))[codes][:, :2]
    groups = encode_groups(codes)
    attained = groups.counts.min() / groups.counts.max()
    constraints = balance_constraints(groups, np.array([beta * attained]))
    problem = RepresentationProblem(X.astype(dtype), groups, constraints, n_clusters, weights)
    centers = problem.scaled(rng.choice(codes.size, n_clusters, replace=False)).astype(float)
    return problem, centers


def dense(problem, centers):
    return np.concatenate(problem.distances(centers).each(lambda _, costs: costs))


def linear_program(problem, centers, integer=False):
    """The cheapest assignment by HiGHS: every point once, every constraint in every cluster."""
    D = dense(problem, centers)
    n, k = D.shape
    once = sparse.kron(sparse.eye(n), np.ones((1, k)))
    parts = problem.constraints.matrix[:, problem.cells] * problem.weights  # (constraints, n)
    constraints = sparse.vstack(
        [sparse.kron(sparse.csr_array(parts), np.eye(k)[[c]]) for c in range(k)]
    )
    slack = problem.constraints.slack.ravel()
    cost = (D * problem.weights[:, None]).ravel()
    if integer:
        found = milp(
            cost,
            integrality=np.ones(cost.size),
            bounds=(0, 1),
            constraints=[
                LinearConstraint(once, 1, 1),
                LinearConstraint(constraints, -slack, np.inf),
            ],
            options={"mip_rel_gap": 1e-9},
        )
    else:
        found = linprog(
            cost, A_ub=-constraints, b_ub=slack, A_eq=once, b_eq=np.ones(n), bounds=(0, 1)
        )
    return found.fun / problem.total_weight if found.status == 0 else np.nan


@settings(deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 2**31),
    n_groups=st.integers(2, 4),
    n_clusters=st.integers(2, 4),
    beta=st.sampled_from([0.0, 0.4, 0.8]),
    is_weighted=st.booleans(),
)
def test_assignment_is_near_the_linear_programme_and_above_its_own_bound(
    seed, n_groups, n_clusters, beta, is_weighted
):
    n = 120 + n_groups * n_clusters
    weights = generator(seed).integers(1, 4, n) * 0.5 if is_weighted else None
    problem, centers = random_problem(seed, 120, n_clusters, n_groups, beta, weights)
    found = assign(problem, centers)
    exact = linear_program(problem, centers)
    D = dense(problem, centers)
    cost = np.average(D[np.arange(n), found.labels], weights=weights)
    assert found.cost == pytest.approx(cost)
    assert found.lower_bound <= exact * (1 + 1e-9)
    assert found.lower_bound >= exact * (0.95 if is_weighted else 0.99)
    if is_weighted:  # weighted points need not fit
        return
    assert found.violation <= 1e-9
    assert problem.constraints.violation(problem.counts(found.labels)).sum() <= 1e-9
    # Whole people cost more than fractions of them; with 120 points a few ties matter.
    assert exact * (1 - 1e-9) <= found.cost <= exact * 1.08


@settings(deadline=None, max_examples=3)
@given(
    seed=st.integers(0, 2**31),
    n_groups=st.integers(2, 3),
    n_clusters=st.integers(2, 4),
    beta=st.sampled_from([0.4, 0.8, 0.95]),
    is_weighted=st.booleans(),
)
def test_exact_assignment_is_the_integer_optimum(seed, n_groups, n_clusters, beta, is_weighted):
    """So few points have at most 200 moves: nothing is left out if the search may go on."""
    n = 30 + n_groups * n_clusters
    weights = generator(seed).integers(1, 4, n) * 0.5 if is_weighted else None
    problem, centers = random_problem(seed, 30, n_clusters, n_groups, beta, weights)
    plain = assign(problem, centers)
    with patch.object(whole_rows, "MOST_PROGRAMMES", 1_000_000):
        found = assign(problem, centers, exact=True)
    assert found.violation == plain.violation
    if plain.violation > 1e-9:  # weighted points need not fit
        assert np.array_equal(found.labels, plain.labels)
        return
    assert problem.constraints.violation(problem.counts(found.labels)).sum() <= 1e-9
    D = dense(problem, centers)
    cost = np.average(D[np.arange(n), found.labels], weights=weights)
    assert found.cost == pytest.approx(cost)
    exact = linear_program(problem, centers, integer=True)
    assert exact * (1 - 1e-6) <= found.cost <= plain.cost
    assert found.cost <= exact * (1 + 1e-4)


def test_exact_assignment_helps_and_does_not_depend_on_the_order():
    gains = []
    for seed in range(20):  # each gains with a chance of more than a half
        problem, centers = random_problem(seed, 40, 4, 2, 0.9)
        found = assign(problem, centers, exact=True)
        gains.append(1 - found.cost / assign(problem, centers).cost)
        if gains[-1] > 1e-3:
            break
    assert min(gains) >= 0
    assert max(gains) > 1e-3
    order = generator(0).permutation(problem.n_samples)
    again = assign(problem.subset(order), centers, exact=True)
    assert np.array_equal(again.labels, found.labels[order])


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("temperature", [0.1, 0.004])
@pytest.mark.parametrize("n_clusters", [1, 4, 7, 9])
def test_soft_assignment_equals_numpy(compiled, dtype, temperature, n_clusters):
    rng = generator(0)
    D, price = rng.random((30, n_clusters)).astype(dtype), rng.normal(size=(3, n_clusters))
    cells, weights, t = rng.integers(0, 3, 30), rng.random(30), temperature
    counts, curvature = np.zeros((n_clusters, 3)), np.zeros((3, n_clusters, n_clusters))
    kernel = kernels.soft_assign if compiled else as_python(kernels.soft_assign)
    scratch = np.empty(n_clusters), np.empty(n_clusters, np.int64)
    value = kernel(D, price, cells, weights, t, *scratch, counts, curvature)
    V = D + price[cells]
    shares = np.exp(-(V - V.min(axis=1, keepdims=True)) / t)
    norm = shares.sum(axis=1)
    expected = weights @ (V.min(axis=1) - t * np.log(norm))
    assert value == pytest.approx(expected, rel=1e-6)
    shares *= (weights / norm)[:, None]
    table = np.stack([shares[cells == s].sum(axis=0) for s in range(3)], axis=1)
    assert_allclose(counts, table, rtol=1e-6, atol=1e-12)
    for s in range(3):
        own, w = shares[cells == s], weights[cells == s]
        expected = np.diag(own.sum(axis=0)) - own.T @ (own / w[:, None])
        assert_allclose(curvature[s], expected, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("price", [-1e17, 1e14, 1e17])
def test_soft_assignments_with_prices_that_swallow_the_temperature(compiled, price):
    kernel = kernels.soft_assign if compiled else as_python(kernels.soft_assign)
    D, counts = generator(0).random((5, 3)), np.zeros((3, 1))
    given = D, np.full((1, 3), price), np.zeros(5, int), np.ones(5), 1e-3
    scratch = np.empty(3), np.empty(3, np.int64)
    value = kernel(*given, *scratch, counts, np.zeros((1, 3, 3)))
    assert value == pytest.approx(5 * price, rel=1e-12)
    assert counts.sum() == pytest.approx(5)


@pytest.mark.parametrize("compiled", [True, False])
def test_sums_of_clusters_equal_numpy(compiled):
    rng = generator(1)
    labels, weights = rng.integers(0, 4, 30), rng.random(30)
    X, sums, mass = rng.normal(size=(30, 2)), np.zeros((4, 2)), np.zeros(4)
    kernel = kernels.cluster_sums if compiled else as_python(kernels.cluster_sums)
    kernel(X, labels, weights, sums, mass)
    for k in range(4):
        assert_allclose(sums[k], weights[labels == k] @ X[labels == k], atol=1e-12)
        assert mass[k] == pytest.approx(weights[labels == k].sum())


@pytest.mark.parametrize("compiled", [True, False])
def test_lists_of_cheapest_moves_are_sorted_prefixes(compiled):
    rng = generator(2)
    n, k, s, kept = 80, 3, 2, 5
    D, labels, cells = rng.random((n, k)), rng.integers(0, k, n), rng.integers(0, s, n)
    weights = np.where(rng.random(n) < 0.1, 0.0, 1.0)
    row = np.empty((k, k, s, kept), np.int64)
    cost, size = np.empty(row.shape), np.zeros(row.shape[:3], np.int64)
    kernel = moves.cheapest_moves if compiled else as_python(moves.cheapest_moves)
    for start in (0, 50):
        part = slice(start, start + 50)
        kernel(D[part], labels[part], cells[part], weights[part], start, row, cost, size)
    for a, b, c in itertools.product(range(k), range(k), range(s)):
        rows = np.flatnonzero((labels == a) & (cells == c) & (weights > 0)) if a != b else []
        expected = sorted((D[i, b] - D[i, a], i) for i in rows)[:kept]
        m = size[a, b, c]
        assert m == len(expected)
        assert [int(i) for i in row[a, b, c, :m]] == [i for _, i in expected]
        assert_allclose(cost[a, b, c, :m], [v for v, _ in expected])


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_repair_and_improvement_keep_their_promises(compiled, seed, monkeypatch):
    if not compiled:
        for module in (kernels, moves):
            names = [n for n in dir(module) if hasattr(getattr(module, n), "py_func")]
            plain = {name: as_python(getattr(module, name)) for name in names}
            for name in names:
                monkeypatch.setattr(module, name, plain[name])
    problem, centers = random_problem(seed, 60, 3, 3, 0.8)
    distances = problem.distances(centers)
    D = dense(problem, centers)
    labels = D.argmin(axis=1)
    counts = problem.counts(labels)
    placed = Placement(problem, distances, labels, counts)
    placed.repair()
    left = placed.violation
    assert left == pytest.approx(problem.constraints.violation(problem.counts(labels)).sum())
    assert left <= 1e-9
    assert_allclose(counts, problem.counts(labels))
    before = D[np.arange(problem.n_samples), labels].sum()
    placed.improve()
    assert D[np.arange(problem.n_samples), labels].sum() <= before + 1e-12
    assert_allclose(counts, problem.counts(labels))
    assert problem.constraints.violation(counts).sum() <= 1e-9
    # No single feasible move and no swap within a cell is left that lowers the cost.
    for i in range(problem.n_samples):
        for t in range(3):
            trial = labels.copy()
            trial[i] = t
            if D[i, t] < D[i, labels[i]] - 1e-9:
                assert problem.constraints.violation(problem.counts(trial)).sum() > 1e-9
    for i, j in itertools.combinations(range(problem.n_samples), 2):
        if problem.cells[i] == problem.cells[j]:
            here = D[i, labels[i]] + D[j, labels[j]]
            assert D[i, labels[j]] + D[j, labels[i]] >= here - 1e-9


def test_gradient_of_the_smooth_dual():
    problem, centers = random_problem(3, n_groups=3)
    table, missed = problem.distances(centers), generator(1).random((3, 3))
    at = generator(0).random((3, 9))
    values = []
    for counts in (None, missed):
        dual = partial(by_prices._negative_dual, problem, table, 0.7, counts, 0.3)
        value, slope = (lambda v, k=k, f=dual: np.ravel(f(v.reshape(3, 9))[k]) for k in range(2))
        assert check_grad(lambda v, f=value: f(v)[0], slope, at.ravel(), epsilon=1e-6) < 1e-5
        values.append(dual(at)[0])
    assert values[0] != values[1]


def test_many_rows_are_reached_by_way_of_a_larger_sample(monkeypatch):
    problem, centers = random_problem(3, n=8000, n_clusters=4, n_groups=3, beta=0.8)
    whole = fair_lloyd(problem, centers)
    for name, size in (("LARGE", 2000), ("SAMPLE", 300), ("_MIDDLE", 1000)):
        monkeypatch.setattr(prices, name, size)

    def found(callback):
        rounds = RunSettings(100, np.random.RandomState(0), callback=callback)
        return Prices().cluster(problem, [centers], rounds)

    seen = []
    clustering = found(lambda c: seen.append(c))
    assert clustering.violation <= 1e-9
    assert problem.constraints.violation(problem.counts(clustering.labels)).sum() <= 1e-9
    assert clustering.cost <= whole.cost * 1.02
    assert clustering.lower_bound <= clustering.cost_at_bound <= clustering.lower_bound * 1.01
    # A stop at any time leaves whole rows within the constraints, and no further rounds.
    for last in range(1, len(seen) + 1, 3):
        calls = []
        stopped = found(lambda c, calls=calls, last=last: calls.append(c) or len(calls) == last)
        assert len(calls) == last
        assert stopped.violation <= 1e-9
        assert stopped.labels.size == problem.n_samples


def test_too_many_groups_for_pairs():
    groups = encode_groups([f"g{i}" for i in range(400)])
    with pytest.raises(ValueError, match="needs 159600 constraints per cluster. Use share_bounds"):
        balance_constraints(groups, np.array([0.5]))


@pytest.mark.parametrize("seed", range(3))
def test_conjugate_gradients_end_at_the_bound_of_direct_steps(seed, monkeypatch):
    problem, centers = random_problem(seed, n=1200, n_clusters=4, n_groups=14, beta=0.6)
    table, bounds, costs = problem.distances(centers), [], []
    assert problem.no_multipliers().size > dual_newton.MANY
    for many in (20, dual_newton.MANY, 10**9):
        monkeypatch.setattr(dual_newton, "MANY", many)
        prices_ = maximise_dual(problem, table, problem.no_multipliers(), max_iter=200)
        assert prices_.min() >= 0
        assert (prices_ > 0).mean() < 0.6
        placed = assign(problem, centers)
        assert placed.is_feasible
        costs.append(placed.cost)
        bounds.append(Placement.at_prices(problem, table, prices_).lower_bound)
    assert max(costs) <= min(costs) * 1.005
    assert_allclose(bounds, max(bounds), rtol=2e-3)


@pytest.mark.parametrize("nearest", [kernels.nearest, as_python(kernels.nearest)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_clusters", "n_attributes"), [(5, 0), (6, 2), (1, 1), (2, 1)])
def test_the_first_of_the_nearest_clusters_is_taken_whatever_rounding_says(
    nearest, dtype, n_clusters, n_attributes
):
    rng = generator(0)
    exact = rng.integers(0, 4, (300, n_clusters)).astype(dtype)
    table = rng.integers(-2, 3, (4, n_clusters)).astype(float)
    codes = rng.integers(0, 4, (n_attributes, 300))
    expected = (exact + table[codes].sum(axis=0)).argmin(axis=1)
    eps = np.finfo(dtype).eps
    noisy = (exact + eps * rng.uniform(-4, 4, exact.shape)).astype(dtype)
    labels = np.empty(300, np.int32)
    nearest(noisy, table, codes, 1.0, 64 * eps, labels)
    assert np.array_equal(labels, expected)
    if n_clusters > 2:
        assert not np.array_equal(noisy.argmin(axis=1), expected)


@pytest.mark.parametrize("largest", [1, 3])
def test_what_moves_is_the_same_when_nothing_is_known_before_a_step(largest, monkeypatch):
    # Effects of moves are remembered from step to step, for the weight that a row has.
    problem, centers = random_problem(5, 200, 5, 3, 0.9)
    rng = generator(0)
    weights = rng.integers(1, largest + 1, problem.n_samples).astype(float)
    problem.weights, problem.total_weight = weights, float(weights.sum())
    table, move = problem.distances(centers), moves.move_points

    def moved(labels, least_gain, n_steps):
        placed = Placement(problem, table, labels.copy())
        listed = table.cheapest_moves(labels)
        total = 0
        while True:
            monkeypatch.setattr(moves, "move_points", lambda *a: move(*a[:8], n_steps, *a[9:]))
            done, _ = placed._moved(lambda _: listed, least_gain)
            total += done
            if done < n_steps:
                return placed.labels, total

    labels = rng.integers(0, 5, problem.n_samples)  # far from the limits, and from the centres
    for least_gain in (None, 1e-12):
        at_once, n_moved = moved(labels, least_gain, 10**6)
        assert n_moved > 5
        one_by_one, _ = moved(labels, least_gain, 1)
        assert np.array_equal(at_once, one_by_one)
        labels = at_once
