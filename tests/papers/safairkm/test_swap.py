"""Swap kernels against their twin, and what the two solvers promise."""

from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skfair import metrics
from skfair.cluster.kmeans.solver import clustering_solver
from skfair.papers._kernels import swap_rows, swaps
from skfair.papers.safairkm import swap, swap_sample
from skfair.papers.safairkm.swap import Swap
from tests.naive.swap import SwapTwin, reachable_balance, thinned
from tests.python_kernels import as_python
from tests.seeds import generator


def make(seed, n=60, d=3, n_groups=2, n_clusters=4, dtype=np.float64, offset=0.0):
    rng = generator(seed)
    codes = np.concatenate((np.arange(n_groups), rng.integers(0, n_groups, n - n_groups)))
    X = rng.normal(size=(n, d)) + codes[:, None] * 0.5 + offset
    return X.astype(dtype), codes, rng.integers(0, n_clusters, n)


def blobs(seed=0, n=600, n_groups=2):
    """Four blobs of which 40% of the rows are in a group of the blob, and which row is in which."""
    rng = generator(seed)
    labels, place = np.arange(n) % 4, np.arange(n) // 4
    X = rng.normal(size=(n, 2)) + 5 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[labels]
    codes = np.where(place % 5 < 2, labels, place // 5) % n_groups
    order = rng.permutation(n)
    return X[order], codes[order], labels[order]


def balance_of(labels, codes, n_clusters, n_groups):
    counts = np.histogram2d(
        labels, codes, bins=(n_clusters, n_groups), range=((0, n_clusters), (0, n_groups))
    )[0]
    return float((counts.min(axis=1) / np.maximum(counts.max(axis=1), 1)).min())


# Kernels


class Setup(NamedTuple):
    sample: object
    state: tuple
    cells: tuple
    work: tuple
    log: tuple
    twin: SwapTwin
    rng: np.random.Generator


CASES = {
    "plain": {},
    "float32": {"dtype": np.float32},
    "offset": {"offset": 1e6},
    "float32 offset": {"dtype": np.float32, "offset": 1e6},
    "three groups": {"n_groups": 3, "n_clusters": 6},
    "five groups": {"n_groups": 5, "n_clusters": 4, "n": 60},
    "one group": {"n_groups": 1},
}


def set_up(seed, is_sorted, *, n_used=None, n_clusters=4, n_groups=2, **options):
    X, codes, labels = make(seed, n_groups=n_groups, n_clusters=n_clusters, **options)
    rng = generator(seed + 100)
    if n_used is not None:
        labels %= n_used  # the other clusters are empty
    rows = rng.permutation(len(X))
    empty = np.empty(0, np.int32)
    if is_sorted:
        cells = (
            np.empty(len(X), np.int32),
            np.empty(len(X), np.int32),
            np.empty((n_groups, n_clusters + 1), np.int64),
        )
    else:
        order = np.argsort(codes, kind="stable")
        X, codes, labels, rows = X[order], codes[order], labels[order], None
        bounds = np.searchsorted(codes, np.arange(n_groups + 1))
        cells = (empty, empty, np.column_stack((bounds[:-1], bounds[1:])))
    sample = swap_sample.SwapSample(X, codes, n_clusters, n_groups)
    state = sample.state(labels.astype(np.int8))
    swap_rows.count_and_sum(sample.data, state)
    if is_sorted:
        swap_rows.sort_cells(sample.data, state, cells, rows)
    twin = SwapTwin(X, codes, labels, n_clusters, n_groups, rows)
    return Setup(sample, state, cells, sample.scratch(8), swap_sample.new_log((40,)), twin, rng)


def check(s, tolerance=1e-9):
    """Compare everything that is kept up to date with what the labels say."""
    labels, counts, sums = s.state
    scale = s.sample.data[2]
    assert_array_equal(labels, s.twin.labels)
    assert_array_equal(counts, s.twin.counts())
    assert_allclose(sums / scale, s.twin.sums().astype(float), rtol=0, atol=tolerance)
    cost = float(s.sample.unscaled(swaps.mean_cost(s.state, s.sample.total)))
    assert cost == pytest.approx(s.twin.cost(), rel=tolerance)
    assert_allclose(s.sample.cost(s.state), metrics.kmeans_cost(s.twin.X.astype(float), labels,
                    mean=True), rtol=tolerance)  # fmt: skip
    balances = np.empty(len(counts))
    assert swaps.overall_balance(counts, balances) == s.twin.balance()
    assert balances.tolist() == s.twin.balances()
    order, place, starts = s.cells
    if order.size:
        assert_array_equal(order[place], np.arange(order.size))
        for (g, k), cell in s.twin.cells.items():
            assert order[starts[g, k] : starts[g, k + 1]].tolist() == cell
            assert sorted(cell) == s.twin.members(k, g).tolist()


@pytest.fixture
def python_kernels(monkeypatch):
    """Run a test with the plain Python source of the kernels, which spares some compiling."""
    for module in (swaps, swap_rows):
        for name, thing in list(vars(module).items()):
            if hasattr(thing, "py_func"):
                monkeypatch.setattr(module, name, as_python(thing))


@pytest.fixture(params=["compiled", "python"])
def mode(request):
    """Run a test with the compiled kernels and with their plain Python source."""
    if request.param == "python":
        request.getfixturevalue("python_kernels")


@pytest.mark.parametrize("is_sorted", [True, False], ids=["sorted", "walk"])
@pytest.mark.parametrize("case", CASES)
def test_iterations_equal_the_twin(mode, case, is_sorted):
    for rule in (0, 1):
        s = set_up(3 + rule, is_sorted, **{"n": 40} | CASES[case])
        check(s)
        for step in range(5):
            batch = s.rng.integers(0, len(s.twin.X), step % 3 * 4).astype(np.int32)
            draws = s.rng.random((3, 2))
            enough = 0.5 if step == 4 else 1.0
            n_candidates, at_once = 1 + step * 3, 1 + 8 * (step % 2)
            s.twin.moves.clear()
            n_logged = swaps.iterate(
                s.sample.data, s.state, s.cells, batch, at_once, draws, n_candidates, rule, enough,
                s.work, s.log,
            )  # fmt: skip
            s.twin.iterate(batch, draws, n_candidates, rule, enough, at_once)
            assert list(zip(*(part[:n_logged] for part in s.log), strict=True)) == s.twin.moves
            check(s)


@pytest.mark.parametrize("n_used", [1, 2])
@pytest.mark.parametrize("n_groups", [1, 2, 3])
@pytest.mark.parametrize("rule", [0, 1])
def test_empty_clusters_are_filled_like_in_the_twin(mode, rule, n_groups, n_used):
    for has_batch in (True, False):
        s = set_up(1, True, n_used=n_used, n_groups=n_groups, n_clusters=5)
        # Without a batch the one cluster has the centre 0 of an empty one: rows lie equally far.
        n_candidates = 3 if has_batch or n_used > 1 else 1
        for _ in range(6):
            batch = s.rng.integers(0, len(s.twin.X), 2 * has_batch).astype(np.int32)
            draws = s.rng.random((4, 2))
            swaps.iterate(
                s.sample.data, s.state, s.cells, batch, 2, draws, n_candidates, rule, 1.0,
                s.work, s.log,
            )  # fmt: skip
            s.twin.iterate(batch, draws, n_candidates, rule, 1.0)
            check(s)
        assert s.state[1].sum(axis=1).all()


def test_descend_and_raise_balance_equal_the_twin(mode):
    s = set_up(5, True)
    rows = s.rng.permutation(60).astype(np.int32)
    draws = s.rng.random((9, 2, 2))
    swaps.descend(s.sample.data, s.state, s.cells, rows, (7, 7), draws, 2, 1, 1.0, s.work, s.log)
    for t in range(9):
        s.twin.iterate(rows[7 * t : 7 * t + 7], draws[t], 2, 1, 1.0)
    check(s)
    s = set_up(1, True, n=200, n_groups=3)
    draws = s.rng.random((200, 2))
    for part, outcome in ((draws[:2], (2, False)), (draws, None)):
        made = swaps.raise_balance(s.sample.data, s.state, s.cells, part, 4, 0, 1.0, s.work, s.log)
        n_swaps = 0
        while n_swaps < len(part) and s.twin.swap_step(part[n_swaps], 4, 0):
            n_swaps += 1
        assert made == (outcome or (n_swaps, True))
        check(s)
    again = swaps.raise_balance(s.sample.data, s.state, s.cells, draws, 4, 0, 0.1, s.work, s.log)
    assert again == (0, False)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_children_equal_the_twin_and_are_undone(mode, n_groups):
    pairs = np.array([(6, 0), (4, 2), (0, 3)])
    options = {"n_groups": n_groups, "n_clusters": 4}
    setups = [set_up(seed, False, **options) for seed in (2, 2)]
    rng = generator(0)
    first = setups[0]
    # Three labellings of one sample in slots 2, 0 and 3.
    labels = np.empty((5, 60), np.int8)
    counts, sums = np.empty((5, 4, n_groups), np.int64), np.empty((5, 4, 3))
    slots = np.array([2, 0, 3])
    for s in slots:
        labels[s] = rng.integers(0, 4, 60)
        swap_rows.count_and_sum(first.sample.data, (labels[s], counts[s], sums[s]))
    archive = (labels, counts, sums)
    before = [part.copy() for part in archive]
    batches = rng.integers(0, 60, (3, 10)).astype(np.int32)
    draws = rng.random((3, 3, 2))
    log = swap_sample.new_log((3, 3, 8))
    outcome = (np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3), np.int64))
    spare = (np.empty((4, n_groups), np.int64), np.empty((4, 3)))
    swaps.breed(
        first.sample.data, first.cells, archive, slots, first.sample.total, pairs,
        (batches, 6, draws), 2, 1, first.work, spare, log, outcome,
    )  # fmt: skip
    for part, old in zip(archive, before, strict=True):
        assert_array_equal(part[slots], old[slots])  # bit for bit
    X, codes = first.sample.data[0], first.sample.data[3]
    expected = {}
    for p in range(3):
        for c, (batch, (_, n_b)) in enumerate(
            zip((slice(0, 6), slice(6, 10), slice(0)), pairs, strict=True)
        ):
            twin = SwapTwin(X, codes, labels[slots[p]], 4, n_groups)
            twin.iterate(batches[p, batch], draws[p, :n_b], 2, 1, 1.0)
            moves = [part[p, c, : outcome[2][p, c]] for part in log]
            assert list(zip(*moves, strict=True)) == twin.moves
            assert first.sample.unscaled(outcome[0][p, c]) == pytest.approx(twin.cost(), rel=1e-9)
            assert outcome[1][p, c] == twin.balance()
            expected[p, c] = twin
    # Two children are copied, then one takes the place of its parent.
    parents, targets = np.array([(0, 1), (2, 0), (0, 2)]), np.array([1, 4, 2])
    swaps.settle(first.sample.data, first.cells, archive, parents, targets, log, outcome[2], slots)
    for (p, c), target in zip(parents.tolist(), targets, strict=True):
        state = (labels[target], counts[target], sums[target])
        assert_array_equal(labels[target], expected[p, c].labels)
        assert_array_equal(counts[target], expected[p, c].counts())
        assert swaps.mean_cost(state, first.sample.total) == outcome[0][p, c]
    assert_array_equal(labels[0], before[0][0])


def test_sums_over_the_data(mode):
    X, codes, _ = make(0, offset=1e6)
    center = X.mean(axis=0)
    assert swap_rows.spread(X, center) == np.abs(X - center).max()
    assert_allclose(
        swap_rows.sum_of_squares(X, center, 0.5), ((X - center) ** 2).sum() / 4, rtol=1e-12
    )
    labels, seeds = np.empty(len(X), np.int8), np.array([4, 9, 30])
    scratch = np.empty((3, 25)), np.empty(25), np.empty(25)
    swap_rows.nearest_rows((X, center, 1.0, codes), seeds, *scratch, labels)
    assert_array_equal(labels, ((X[:, None] - X[seeds]) ** 2).sum(axis=2).argmin(axis=1))
    s = set_up(0, False)
    assert_allclose(
        s.sample.unscaled(swap_rows.direct_cost(s.sample.data, s.state)), s.twin.cost(), rtol=1e-12
    )


@pytest.mark.parametrize("n_kept", [2, 3, 7, 30])
def test_thinning_drops_what_costs_least_hypervolume(mode, n_kept):
    rng = generator(n_kept)
    costs, balances = np.sort(rng.random(20)), np.sort(rng.random(20))
    kept = np.ones(20, np.bool_)
    swaps.thin(costs, balances, n_kept, kept)
    assert np.flatnonzero(kept).tolist() == thinned(costs, balances, n_kept)


def test_thinning_never_goes_below_the_two_ends(mode):
    kept = np.ones(5, np.bool_)
    swaps.thin(np.arange(5.0), np.arange(5.0), 1, kept)
    assert kept.tolist() == [True, False, False, False, True]


def test_drift_over_many_steps():
    """Sums that are only ever updated stay those of the labels, far from the origin too."""
    for options in ({}, {"dtype": np.float32, "offset": 1e6}, {"offset": 1e6, "n_groups": 3}):
        s = set_up(8, True, n=300, **options)
        for _ in range(40):
            rows = s.rng.permutation(300).astype(np.int32)
            draws = s.rng.random((38, 3, 2))
            swaps.descend(
                s.sample.data, s.state, s.cells, rows, (8, 8), draws, 2, 1, 1.0, s.work, s.log
            )
        s.twin.labels[:] = s.state[0]
        s.twin.cells = {
            (g, k): s.cells[0][s.cells[2][g, k] : s.cells[2][g, k + 1]].tolist() for g, k in
            s.twin.cells
        }  # fmt: skip
        check(s)


# Algorithm 2


def descent(X, codes, labels, n_groups=2, n_clusters=4, **options):
    names = ("n_kmeans_steps", "n_swap_steps", "swap_target", "swap_candidates")
    solver = clustering_solver(
        Swap(**{name: options.pop(name) for name in names if name in options})
    )
    options = {"labels": labels, "random_state": 0, **options}
    return solver.descend(X, codes, n_clusters, n_groups, **options)


def swap_front(X, codes, n_clusters, n_groups, **options):
    run = ("max_iter", "random_state", "callback")
    given = {name: options.pop(name) for name in run if name in options}
    return Swap(**options).search(X, codes, n_clusters, n_groups, **given)


def test_the_result_is_what_the_history_says():
    X, codes, labels = blobs()
    result = descent(X, codes, labels, max_iter=5, tol=0)
    assert result.theta.dtype == np.int32
    assert result.multipliers.shape == (0,)
    assert result.n_iter == 5
    assert result.status == "max_iter"
    assert len(result.history["seconds"]) == 5
    assert_allclose(
        result.history["objective"][-1], metrics.kmeans_cost(X, result.theta, mean=True), rtol=1e-12
    )
    assert result.history["balance"][-1] == balance_of(result.theta, codes, 4, 2)
    assert not result.history["max_violation"].any()


def test_a_full_batch_is_one_step_of_lloyd():
    X, codes, labels = make(2, n=60)
    result = descent(X, codes, labels, n_kmeans_steps=60, n_swap_steps=0, max_iter=1)
    centers = np.array([X[labels == k].mean(axis=0) for k in range(4)])
    closest = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert_array_equal(result.theta, closest)


@pytest.mark.parametrize("swap_target", ["global", "local"])
@pytest.mark.parametrize("n_groups", [2, 3])
def test_min_balance_is_met_at_less_cost_than_without_a_bound(n_groups, swap_target):
    X, codes, labels = blobs(n_groups=n_groups)
    free = descent(X, codes, labels, n_groups, max_iter=10, swap_target=swap_target)
    result = descent(
        X, codes, labels, n_groups, max_iter=10, min_balance=0.5, swap_target=swap_target
    )
    assert balance_of(labels, codes, 4, n_groups) < 0.5
    assert 0.5 <= balance_of(result.theta, codes, 4, n_groups) < 0.6
    assert metrics.kmeans_cost(X, result.theta) < metrics.kmeans_cost(X, free.theta)
    assert_allclose(
        result.history["objective"].min(), metrics.kmeans_cost(X, result.theta, mean=True)
    )


def test_min_balance_is_reached_whenever_the_sizes_allow():
    """Two groups: swaps end infeasible only if no labelling with these sizes is feasible."""
    seen = set()
    for seed in range(60):
        X, codes, labels = make(seed, n=14, n_clusters=3)
        labels[:3] = range(3)
        sizes = np.bincount(labels)
        attainable = reachable_balance(codes, sizes)
        s = swap_sample.SwapSample(X, codes, 3, 2)
        for wanted in {attainable, min(1.0, attainable + 0.05)} - {0.0}:
            # One pass without k-means steps or swaps of its own: the repair does all.
            rng = generator(seed)
            repaired = swap._Descent(Swap(), s, labels.astype(np.int8), wanted, rng)
            repaired.repair()
            reached = balance_of(repaired.labels, codes, 3, 2) >= wanted
            if wanted <= attainable:
                assert reached
                assert_array_equal(np.bincount(repaired.labels, minlength=3), sizes)
            seen.add((wanted <= attainable, reached))
            result = descent(X, codes, labels, 2, 3, min_balance=wanted, max_iter=3)
            is_feasible = balance_of(result.theta, codes, 3, 2) >= wanted
            assert (result.status == "infeasible") != is_feasible
    assert (True, True) in seen
    assert (False, False) in seen


def test_a_feasible_start_is_never_made_worse():
    X, codes, labels = blobs()
    first = descent(X, codes, labels, min_balance=0.5, max_iter=20)
    second = descent(X, codes, first.theta, min_balance=0.5, max_iter=2, random_state=5)
    assert metrics.kmeans_cost(X, second.theta) <= metrics.kmeans_cost(X, first.theta)
    none = descent(X, codes, first.theta, min_balance=0.5, max_iter=0)
    assert_array_equal(none.theta, first.theta)
    assert none.status == "max_iter"


def test_repairs_that_need_many_swaps():
    X, codes, labels = blobs(n=1501)
    result = descent(X, codes, codes + 2 * (labels > 1), max_iter=1, n_swap_steps=0, min_balance=1)
    assert result.history["n_swaps"][0] > 64
    assert result.status == "infeasible"  # the groups are not of one size
    assert descent(X, codes, labels, min_balance=0.8, max_iter=1).status == "max_iter"


def test_one_group_is_plain_kmeans():
    X, _, labels = blobs()
    codes = np.zeros(len(X), np.int64)
    result = descent(X, codes, labels, 1, tol=1e-3)
    assert result.status == "converged"
    assert (result.history["balance"] == 1).all()
    front = swap_front(X, codes, 4, 1, max_iter=20, n_starts=4, random_state=0)
    assert front.balances.tolist() == [1.0]


@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1e200])  # costs are not 0
def test_scale_and_offset_change_nothing(scale):
    X, codes, labels = blobs()
    base = descent(X, codes, labels, max_iter=3, tol=0)
    scaled = descent(X * 2.0 ** round(np.log2(scale)), codes, labels, max_iter=3, tol=0)
    assert_array_equal(scaled.theta, base.theta)
    moved = descent(X + 2.0**20, codes, labels, max_iter=3, tol=0)
    assert_allclose(moved.history["objective"], base.history["objective"], rtol=0.05)


def test_a_far_outlier_and_constant_columns():
    X, codes, labels = blobs()
    X = np.column_stack((X, np.ones(len(X))))
    X[0, 0] = 1e9
    labels = np.where(labels == 3, 2, labels)
    labels[0] = 3  # a cluster of its own, so the costs are tiny differences of large sums
    result = descent(X, codes, labels, max_iter=3, n_swap_steps=0)
    assert_allclose(
        result.history["objective"][-1], metrics.kmeans_cost(X, result.theta, mean=True), rtol=1e-9
    )
    front = swap_front(X, codes, 4, 2, max_iter=30, random_state=0)
    for cost, row in zip(front.costs, front.labels, strict=True):
        assert_allclose(cost, metrics.kmeans_cost(X, row, mean=True), rtol=1e-9)
    constant = np.ones((50, 2))
    assert descent(constant, codes[:50], labels[:50], max_iter=2).history["objective"][-1] == 0
    assert swap_front(constant, codes[:50], 4, 2, max_iter=2, random_state=0).costs.max() == 0


# Algorithm 3


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("swap_target", ["local", "global"])
def test_the_front_is_nondominated_and_consistent(n_groups, swap_target):
    X, codes, _ = blobs(n_groups=n_groups)
    front = swap_front(X, codes, 4, n_groups, max_iter=60, swap_target=swap_target, random_state=0)
    assert front.labels.dtype == np.int8
    assert metrics.nondominated(front.costs, front.balances).all()
    assert (np.diff(front.costs) > 0).all()
    assert (np.diff(front.balances) > 0).all()
    for cost, balance, labels in zip(*front[:3], strict=True):
        assert_allclose(cost, metrics.kmeans_cost(X, labels, mean=True), rtol=1e-9)
        assert balance == balance_of(labels, codes, 4, n_groups)
        if np.unique(labels).size == 4:
            assert balance == metrics.balance_score(labels, sensitive_features=codes)
    history = front.history
    assert history["n_points"][-1] == len(front.costs)
    assert history["cost"][-1] == front.costs[0]
    assert history["balance"][-1] == front.balances[-1]
    best = np.bincount(codes).min() / np.bincount(codes).max()
    total = metrics.kmeans_cost(X, np.zeros(len(X)), mean=True)
    assert_allclose(
        history["hypervolume"][-1],
        metrics.hypervolume(front.costs, front.balances, ref_cost=total) / (total * best),
    )
    assert (np.diff(history["hypervolume"]) >= 0).all()  # fewer points than max_points
    assert front.balances[-1] > 0.9 * best


def test_a_thinned_front_loses_what_the_dropped_points_contribute():
    X, codes, _ = blobs()
    full, thin = (
        swap_front(X, codes, 4, 2, max_iter=80, max_points=m, random_state=0) for m in (1000, 12)
    )
    assert len(full.costs) > 50
    assert len(thin.costs) == 12
    reference = 2 * full.costs[0]
    area_full, area_thin = (
        metrics.hypervolume(f.costs, f.balances, ref_cost=reference) for f in (full, thin)
    )
    assert area_thin > 0.85 * area_full
    more = swap_front(X, codes, 4, 2, max_iter=3, n_starts=20, max_points=2, random_state=0)
    assert len(more.costs) <= 2


def test_many_clusters_need_wider_labels(python_kernels):
    X, codes, _ = make(0, n=300)
    front = swap_front(X, codes, 130, 2, max_iter=1, n_starts=2, random_state=0)
    assert front.labels.dtype == np.int16
    assert front.labels.max() > 127


# Bad input


def test_random_numbers_that_are_drawn_in_parts_are_the_same(monkeypatch):
    X, codes, labels = blobs(n=300)
    found = []
    for most in (swap.NUMBERS, 8):
        monkeypatch.setattr(swap, "NUMBERS", most)
        solver = Swap(n_kmeans_steps=7, n_swap_steps=2)
        result = solver.descend(X, codes, 4, 2, labels=labels, max_iter=1, random_state=0)
        found.append(result.theta)
    assert_array_equal(*found)
