"""The variational method: the objective never rises, edge cases, invariances."""

import itertools

import numpy as np
import pytest

from skfair.cluster.kmeans.solver import clustering_solver
from skfair.papers.vfairkm import soft_assignment
from skfair.papers.vfairkm.variational import Variational
from tests.naive import soft as naive_soft
from tests.papers.clustering_problems import free_problem, soft_run
from tests.seeds import generator


def sample(n=60, n_groups=3, seed=0):
    """Groups that lie apart a little, in numbers 1 : 2 : 3 and so on."""
    rng = generator(seed)
    shares = np.arange(1, n_groups + 1) / np.arange(1, n_groups + 1).sum()
    codes = np.sort(rng.choice(n_groups, n, p=shares))
    codes[:n_groups] = range(n_groups)
    X = rng.normal(size=(n, 2)) + codes[:, None] * [1.0, 0.5]
    return X, codes, X[rng.choice(n, 4, replace=False)]


def run(X, codes, centers, n_groups=3, weight=0.5, weights=None, max_iter=100, tol=1e-5, **fields):
    solver = clustering_solver(Variational(weight, **fields))
    problem = free_problem(X, codes, len(centers), n_groups, weights)
    # The share of the objective that an iteration has to gain is a tenth of ``tol``.
    return soft_run(solver, problem, centers, max_iter, 10 * tol)


@pytest.mark.parametrize("weight", [0.0, 0.01, 0.3, 30.0])
@pytest.mark.parametrize("lipschitz", [1e-3, 1.0])
@pytest.mark.parametrize("target", [None, [0.3, 0.3, 0.4], [0.0, 0.5, 0.5]])
def test_the_objective_never_rises(weight, lipschitz, target):
    """Measured by loops at the soft assignment, after every number of iterations and updates."""
    X, codes, centers = sample()
    values = []
    for max_iter, n_updates in [(1, 1), (1, 2), (1, 3), (1, 6)]:
        found = run(
            X,
            codes,
            centers,
            weight=weight,
            lipschitz=lipschitz,
            target_shares=target,
            max_iter=max_iter,
            n_updates=n_updates,
            tol=0.0,
        )
        # At the starting centres, which the updates of the assignment know.
        values.append(
            naive_soft.penalised(X, codes, 3, found.assignment, centers, weight, target=target)
        )
    assert (np.diff(values) <= 1e-12).all()
    long = run(X, codes, centers, weight=weight, lipschitz=lipschitz, target_shares=target, tol=0.0)
    course = long.history["objective"]
    assert (np.diff(course) <= 1e-12 * max(1, weight)).all()
    assert course[-1] == pytest.approx(
        naive_soft.penalised(X, codes, 3, long.assignment, long.centers, weight, target=target),
        rel=1e-9,
    )
    assert np.allclose(long.assignment.sum(axis=1), 1)
    assert np.array_equal(long.labels, long.assignment.argmax(axis=1))


def test_the_history_adds_up():
    X, codes, centers = sample()
    found = run(X, codes, centers, max_iter=5, tol=0.0)
    history = found.history
    assert len(history["objective"]) == found.n_iter == 5
    assert found.status == "max_iter"
    assert np.allclose(history["objective"], history["cost"] + 0.5 * history["fairness_error"])
    cost = naive_soft.soft_cost(X, found.assignment, found.centers)
    assert history["cost"][-1] == pytest.approx(cost / naive_soft.total_variance(X))
    assert (history["n_updates"] == 10).all()


@pytest.mark.parametrize("weight", [0.0, 7.0])
def test_k_means_without_penalty_or_groups(weight):
    """Weight 0, or a single group, is Lloyd's algorithm."""
    X, codes, centers = sample()
    codes = codes if weight == 0 else np.zeros_like(codes)
    found = run(X, codes, centers, weight=weight, tol=0.0)
    labels, expected = naive_soft.lloyd(X, centers, 50)
    assert found.status == "converged"
    assert np.array_equal(found.labels, labels)
    assert np.allclose(found.centers, expected)
    assert not found.offsets.any()


def test_offsets_are_the_derivative_of_the_penalty():
    X, codes, centers = sample()
    found = run(X, codes, centers, max_iter=3)
    counts = naive_soft.soft_counts(found.assignment, codes, 3)
    shares = counts.sum(axis=0)
    by_logs = naive_soft.finite_differences(  # of counts, however small they are
        lambda logs: naive_soft.divergence(np.exp(logs), shares), np.log(counts)
    )
    scale = 0.5 * naive_soft.total_variance(X)
    assert np.allclose(found.offsets * counts, scale * by_logs, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("n_updates", [1, 4])
def test_an_update_moves_shares_to_where_prices_are_low(n_updates):
    """Logarithms of shares fall by the prices, in a unit of each group, up to a sum of 1."""
    X, codes, centers = sample()
    now, then = (
        run(X, codes, centers, max_iter=1, tol=0.0, n_updates=n) for n in (n_updates, n_updates + 1)
    )
    prices = ((X[:, None] - centers) ** 2).sum(axis=2) + now.offsets[:, codes].T
    falls = np.log(now.assignment) - np.log(then.assignment)
    is_moving = then.assignment > 1e-40  # no share falls below e^-100
    for g in range(3):
        rows = [
            (prices[i, known] - prices[i, known].mean(), falls[i, known] - falls[i, known].mean())
            for i, known in zip(np.flatnonzero(codes == g), is_moving[codes == g], strict=True)
        ]
        own_prices, own_falls = map(np.concatenate, zip(*rows, strict=True))
        unit = (own_prices @ own_prices) / (own_prices @ own_falls)
        assert unit > 0
        assert np.allclose(unit * own_falls, own_prices, rtol=1e-6, atol=1e-6)


def test_target_shares_are_approached():
    X, codes, centers = sample(n=600, n_groups=2)
    for target in ([0.5, 0.5], [0.2, 0.8]):
        found = run(X, codes, centers, n_groups=2, weight=3.0, target_shares=target)
        # No clustering changes the shares of the sample; most clusters can come near the target.
        error = naive_soft.divergence(
            naive_soft.soft_counts(found.assignment, codes, 2), np.array(target)
        )
        other = run(X, codes, centers, n_groups=2, weight=0.0)
        before = naive_soft.divergence(
            naive_soft.soft_counts(other.assignment, codes, 2), np.array(target)
        )
        assert error < 0.5 * before
    same = run(X, codes, centers, n_groups=2, target_shares=np.bincount(codes))  # counts will do
    assert np.array_equal(same.labels, run(X, codes, centers, n_groups=2).labels)


def test_chunks_do_not_matter(monkeypatch):
    X, codes, centers = sample()
    found = run(X, codes, centers, max_iter=5)  # each iteration may make rounding errors larger
    monkeypatch.setattr("skfair.papers.vfairkm.soft_assignment.NUMBERS", 28)
    chunks = run(X, codes, centers, max_iter=5)
    assert np.allclose(chunks.assignment, found.assignment, atol=1e-9)


@pytest.mark.parametrize("weight", [0.0, 1e-12, 0.5, 1e300])
def test_awkward_data(weight):
    """Constant columns, one cluster, duplicates, far outliers, clusters that nobody wants."""
    X, codes, _ = sample()
    X = np.column_stack([X, np.full(len(X), 3.0)])
    X[:30] = X[0]
    X[-1] = 1e8
    for centers in (X[[5]], X[[0, 0, 40]], np.vstack([X[[0, 50]], np.full((1, 3), -1e9)])):
        found = run(X, codes, centers, weight=weight, max_iter=30)
        assert np.isfinite(found.centers).all()
        assert np.isfinite(found.offsets).all()
        assert np.isfinite(found.history["objective"]).all()
        assert np.allclose(found.assignment.sum(axis=1), 1)
    constant = run(np.ones((6, 2)), codes[-6:], np.ones((2, 2)), weight=weight)
    assert np.allclose(constant.centers, 1)
    assert np.isfinite(constant.offsets).all()


def test_an_empty_cluster_keeps_its_centre():
    X, codes, centers = sample()
    centers[0] = 1e6
    found = run(X, codes, centers, weight=0.0)
    assert not (found.labels == 0).any()
    assert np.allclose(found.centers[0], 1e6)


def test_rows_without_weight_change_nothing():
    X, codes, centers = sample()
    far = np.vstack([X, [[1e250, 0], [0, 0]]])
    more = np.append(codes, [3, 0])  # group 3 has no weight at all
    weights = np.append(np.ones(len(X)), [0.0, 0.0])
    found = run(far, more, centers, n_groups=4, weights=weights)
    assert np.array_equal(found.labels[:-2], run(X, codes, centers).labels)
    assert np.isfinite(found.assignment).all()


@pytest.mark.parametrize("seed", range(20))
def test_tiny_groups_do_not_stall_an_update(monkeypatch, seed):
    """A step may be so small that its divergence is lost in rounding; the bound must still hold."""
    rng = generator(seed)
    X = rng.normal(size=(60, 1))
    codes = np.r_[np.arange(20), rng.integers(0, 20, 40)]
    n_steps = itertools.count()
    step = soft_assignment.SoftAssignment._step

    def counted(*arguments):
        assert next(n_steps) < 3000, "an update goes on for ever"
        step(*arguments)

    monkeypatch.setattr(soft_assignment.SoftAssignment, "_step", counted)
    centers = X[rng.permutation(60)[:4]]
    found = run(X, codes, centers, n_groups=20, weight=1.0)
    assert (np.diff(found.history["objective"]) <= 1e-12).all()
