"""Smooth fair k-means: objectives and gradients, trade-off, edge cases, invariances."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from skfair.cluster.kmeans.solver import clustering_solver
from skfair.datasets import make_grouped_blobs
from skfair.metrics import balance_score
from skfair.papers.safairkm.smooth import Smooth
from skfair.papers.safairkm.soft_objectives import SoftRows, soft_balance, soft_cost
from tests.naive import soft as naive_soft
from tests.papers.clustering_problems import free_problem, soft_run
from tests.seeds import generator


def sample(n=200, n_groups=3, seed=0):
    rng = generator(seed)
    codes = np.sort(rng.integers(0, n_groups, n))
    X = rng.normal(size=(n, 2)) + codes[:, None] * [1.0, 0.5]
    return X, codes, X[rng.choice(n, 4, replace=False)]


def run(X, codes, centers, n_groups=3, n_a=3, n_b=2, weights=None, max_iter=10, tol=0.01, **fields):
    solver = clustering_solver(Smooth(n_a, n_b, **{"batch_size": 60} | fields))
    problem = free_problem(X, codes, len(centers), n_groups, weights)
    return soft_run(solver, problem, centers, max_iter, tol)


class TestObjectives:
    @pytest.fixture(params=[0.05, 0.7])
    def point(self, request):
        rng = generator(1)
        X, codes, centers = sample(n=25)
        masses = rng.uniform(0.1, 1, 25)
        masses /= masses.sum()
        return SoftRows(X, codes, masses, centers, 0.3 * rng.normal(size=(4, 3)), request.param)

    def test_values(self, point):
        X, codes, masses, centers, offsets, temperature = point
        assigned = naive_soft.softmax_assignment(X, codes, centers, offsets, temperature)
        cost = naive_soft.soft_cost(X, assigned, centers, masses)
        assert soft_cost(point)[0] == pytest.approx(cost)
        counts = naive_soft.soft_counts(assigned, codes, 3, masses)
        for sharpness in (1.0, 10.0):
            balance = naive_soft.soft_balance(counts, sharpness)
            assert soft_balance(point, sharpness)[0] == pytest.approx(balance)

    def test_gradients(self, point):
        X, codes, masses, centers, offsets, temperature = point

        def cost(c, w):
            assigned = naive_soft.softmax_assignment(X, codes, c, w, temperature)
            return naive_soft.soft_cost(X, assigned, c, masses)

        def balance(c, w):
            assigned = naive_soft.softmax_assignment(X, codes, c, w, temperature)
            return naive_soft.soft_balance(naive_soft.soft_counts(assigned, codes, 3, masses), 5.0)

        for ours, function in ((soft_cost(point), cost), (soft_balance(point, 5.0), balance)):
            by_centers = naive_soft.finite_differences(lambda c, f=function: f(c, offsets), centers)
            by_offsets = naive_soft.finite_differences(lambda w, f=function: f(centers, w), offsets)
            assert np.allclose(ours[1], by_centers, rtol=1e-5, atol=1e-6)
            assert np.allclose(ours[2], by_offsets, rtol=1e-5, atol=1e-6)

    def test_a_cluster_without_a_group_still_has_a_slope(self):
        """Where assignments are 0 in floating point, logarithms are not."""
        X = np.array([[0.0], [0.1], [100.0], [100.1]])
        codes = np.array([0, 0, 1, 1])
        rows = SoftRows(X, codes, np.full(4, 0.25), X[[0, 3]], np.zeros((2, 2)), 1e-3)
        value, _, by_offsets = soft_balance(rows, 10.0)
        assert value < -1e6
        assert np.abs(by_offsets).min() > 1

    def test_one_group(self):
        X, codes, centers = sample()
        rows = SoftRows(X, 0 * codes, np.full(200, 1 / 200), centers, np.zeros((4, 1)), 0.1)
        value, by_centers, by_offsets = soft_balance(rows, 10.0)
        assert value == 0
        assert not by_centers.any()
        assert not by_offsets.any()


def test_separated_groups_mix():
    """The cheapest two clusters are the two groups, and soft assignments are 0 or 1."""
    X, codes = make_grouped_blobs(variant="two_unequal", random_state=1)
    centers = np.array([[1.0, 1.0], [2.1, 3.5]])
    balances = []
    for n_a in (10, 5, 1):
        found = run(X, codes, centers, 2, n_a, 10 - n_a, max_iter=60, batch_size=None)
        assert np.bincount(found.labels).min() > 20
        balances.append(balance_score(found.labels, sensitive_features=codes, relative=True))
    assert balances[0] == 0
    assert balances == sorted(balances)
    assert balances[-1] > 0.05


@pytest.mark.parametrize("one_group", [False, True])
def test_soft_k_means_without_steps_on_the_balance_or_groups(one_group):
    rng = generator(0)
    blob = np.arange(300) % 3
    X = rng.normal(size=(300, 2)) + np.array([[0, 0], [8, 0], [0, 8]])[blob]
    codes = np.zeros(300, np.int64) if one_group else rng.integers(0, 2, 300)
    found = run(
        X, codes, X[:3], 2, 3, 2 if one_group else 0, max_iter=80, batch_size=None, tol=1e-6
    )
    expected = KMeans(3, init=X[:3], n_init=1).fit(X)
    assert found.status == "converged"
    assert np.array_equal(found.labels, expected.labels_)
    assert np.allclose(found.centers, expected.cluster_centers_, atol=0.1)
    assert np.abs(found.offsets).max() < 0.5  # squared distances are about 64 between the blobs


def test_labels_offsets_and_history():
    X, codes, centers = sample()
    found = run(X, codes, centers)
    prices = ((X[:, None] - found.centers) ** 2).sum(axis=2) + found.offsets[:, codes].T
    assert np.array_equal(found.labels, prices.argmin(axis=1))
    assert found.n_iter == 10
    assert set(found.history) == {"temperature", "step", "gradient_norm", "seconds"}
    assert {len(column) for column in found.history.values()} == {10}
    falling = found.history["temperature"]
    assert falling[0] == 0.3
    assert (np.diff(falling)[:7] < 0).all()
    assert np.allclose(falling[7:], falling[-1])


@pytest.mark.parametrize(
    ("temperature", "first", "last"), [(0.2, 0.2, 0.2), ((0.5, 0.01), 0.5, 0.01)]
)
def test_given_temperatures(temperature, first, last):
    found = run(*sample(), temperature=temperature)
    assert found.history["temperature"][[0, -1]] == pytest.approx([first, last])


def test_rows_are_drawn_in_proportion_to_their_weight():
    """Rows without weight are not drawn, wherever they lie; heavy ones are drawn often."""
    X, codes, centers = sample()
    heavy = X[:, 0] < 1
    weights = np.where(heavy, 1.0, 1e-9)
    found = run(X, codes, centers[:1], n_b=0, weights=weights, max_iter=50, batch_size=300)
    assert np.allclose(found.centers, X[heavy].mean(axis=0), atol=0.1)
    far = np.vstack([X, [[1e250, 0.0]]])
    more = np.append(codes, 3)  # group 3 has no weight
    found = run(far, more, centers, 4, weights=np.append(np.ones(len(X)), 0.0))
    assert np.array_equal(found.labels[:-1], run(X, codes, centers).labels)
    assert not found.offsets[:, 3].any()


def test_movement_in_the_last_tenth_decides_the_status():
    assert run(*sample(), tol=0.0).status == "max_iter"
    assert run(*sample(), tol=10.0).status == "converged"
