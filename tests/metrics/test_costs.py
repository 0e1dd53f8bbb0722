import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skfair.metrics import clusters as module
from skfair.metrics.clusters import kmeans_cost, price_of_fairness
from tests import naive
from tests.seeds import generator

few = settings(deadline=None, max_examples=30)


@pytest.fixture(params=[1, 7, None])
def chunk(request, monkeypatch):
    """Read the data in small chunks or in one; no value may depend on it."""
    if request.param is not None:
        monkeypatch.setattr(module, "NUMBERS", request.param)


@pytest.fixture(params=["dense", "csr_matrix", "csr_array", "coo_array"])
def container(request, chunk):
    if request.param == "dense":
        return lambda X: X
    return getattr(sparse, request.param)


def random_data(seed, n=40, d=3):
    rng = generator(seed)
    X = np.where(rng.random((n, d)) < 0.5, 0.0, rng.normal(size=(n, d)))
    X[0] = 0.0  # an empty sparse row
    labels = rng.integers(0, 4, n)
    weight = np.where(rng.random(n) < 0.2, 0.0, rng.random(n))
    weight[labels == 3] = 0.0  # a cluster without weight
    return X, labels, weight, rng


@pytest.mark.parametrize("seed", range(3))
def test_kmeans_cost_equals_naive_twin(container, seed):
    X, labels, weight, rng = random_data(seed)
    ones = np.ones(len(X))
    held = container(X)
    assert kmeans_cost(held, labels) == pytest.approx(float(naive.kmeans_cost(X, labels, ones)))
    expected = float(naive.kmeans_cost(X, labels, weight))
    assert kmeans_cost(held, labels, sample_weight=weight) == pytest.approx(expected)
    assert kmeans_cost(held, labels, sample_weight=weight, mean=True) == pytest.approx(
        expected / weight.sum()
    )
    centers = rng.normal(size=(6, 3))
    assert kmeans_cost(held, labels, centers=centers) == pytest.approx(
        float(naive.kmeans_cost(X, labels, ones, centers))
    )
    assert kmeans_cost(held, labels, centers=centers, sample_weight=weight) == pytest.approx(
        float(naive.kmeans_cost(X, labels, weight, centers))
    )


def test_kmeans_cost_far_from_the_origin(container):
    rng = generator(0)
    labels = rng.integers(0, 3, 200)
    X = rng.normal(size=(200, 2)) + 1e6
    weight = rng.random(200)  # weights that do not add up exactly
    centred = X - 1e6  # exact: both numbers are close
    for w in (None, weight):
        expected = kmeans_cost(centred, labels, sample_weight=w)
        assert kmeans_cost(container(X), labels, sample_weight=w) == pytest.approx(
            expected, rel=1e-12
        )
    # Rows of weight 0 do not hide that a column is full.
    X[0], weight[0] = 0.0, 0.0
    expected = kmeans_cost(centred, labels, sample_weight=weight)
    assert kmeans_cost(container(X), labels, sample_weight=weight) == pytest.approx(
        expected, rel=1e-12
    )


def test_kmeans_cost_sums_float32_in_float64(container):
    rng = generator(0)
    X = (rng.normal(size=(5000, 2)) + 1e3).astype(np.float32)
    labels = rng.integers(0, 3, 5000)
    expected = kmeans_cost(X.astype(np.float64), labels)
    assert kmeans_cost(container(X), labels) == pytest.approx(expected, rel=1e-12)


def test_kmeans_cost_of_repeated_sparse_entries():
    doubled = sparse.csr_array((np.array([1.0, 2.0, 5.0]), [0, 0, 0], [0, 2, 3]), shape=(2, 1))
    assert kmeans_cost(doubled, [0, 0]) == pytest.approx(2.0)  # 3 and 5 around 4
    assert doubled.nnz == 3


def test_kmeans_cost_of_zeros(container):
    assert kmeans_cost(container(np.zeros((3, 2))), [0, 0, 1]) == 0
    assert kmeans_cost(container(np.zeros((3, 2))), [0, 0, 1], centers=np.ones((2, 2))) == 6


def test_kmeans_cost_holds_no_copy_of_float32_data():
    X = np.ones((100_000, 20), dtype=np.float32)
    X[::2] = 0
    labels = np.arange(len(X)) % 5
    tracemalloc.start()
    try:
        cost = kmeans_cost(X, labels)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert cost == len(X) * 20 / 4
    assert peak < 2 * X.nbytes  # float64 alone would be twice X


# --- price of fairness ----------------------------------------------------------------------------


@few
@given(cost=st.floats(0, 1e6), reference=st.floats(1e-3, 1e6))
def test_price_of_fairness(cost, reference):
    price = price_of_fairness(cost, reference)
    assert (1 + price) * reference == pytest.approx(cost, abs=1e-9)
    assert price >= -1
