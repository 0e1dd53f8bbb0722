"""The normalised cut: equal to sums over edges, for any container, and its messages."""

import tracemalloc

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

from skfair.cluster.spectral import metrics as module
from skfair.metrics import normalized_cut
from tests import naive
from tests.messages import messages, of_calls
from tests.seeds import generator


@pytest.fixture(params=[1, 7, None])
def chunk(request, monkeypatch):
    """Read the graph in small chunks or in one; no value may depend on it."""
    if request.param is not None:
        monkeypatch.setattr(module, "NUMBERS", request.param)


@pytest.fixture(params=["dense", "csr_matrix", "csr_array", "coo_array"])
def container(request, chunk):
    if request.param == "dense":
        return lambda W: W
    return getattr(sparse, request.param)


def random_graph(seed, n=12):
    rng = generator(seed)
    W = np.where(rng.random((n, n)) < 0.6, 0.0, rng.random((n, n)))
    W += W.T
    W[:2] = W[:, :2] = 0.0  # isolated nodes
    return W, rng.integers(0, 3, n), rng


@pytest.mark.parametrize("seed", range(3))
def test_normalized_cut_equals_naive_twin(container, seed):
    W, labels, rng = random_graph(seed)
    value = normalized_cut(container(W), labels)
    assert value == pytest.approx(naive.normalized_cut(W, labels))
    order = rng.permutation(len(W))
    permuted = normalized_cut(container(W[np.ix_(order, order)]), labels[order])
    assert permuted == pytest.approx(value)
    assert normalized_cut(container(5 * W), np.array(list("cab"))[labels]) == pytest.approx(value)
    labels[:2] = 7  # a cluster of isolated nodes
    assert normalized_cut(container(W), labels) == pytest.approx(naive.normalized_cut(W, labels))


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_normalized_cut_of_a_complete_container(container, dtype):
    W = (np.ones((6, 6)) - np.eye(6)).astype(dtype)
    # Each node: 3 of its 5 edges leave a cluster of 3, 4 of 5 one of 2 and 5 of 5 one of 1.
    assert normalized_cut(container(W), [0, 0, 0, 1, 1, 2]) == pytest.approx(3 / 5 + 4 / 5 + 1)
    assert normalized_cut(container(W), np.zeros(6)) == 0


def test_normalized_cut_of_components_is_zero(container):
    W = np.kron(np.eye(3), np.ones((4, 4)))
    assert normalized_cut(container(W), np.repeat([0, 1, 2], 4)) == 0
    assert normalized_cut(container(np.zeros((3, 3))), [0, 1, 2]) == 0


def test_normalized_cut_allows_rounding_errors(container):
    rng = generator(0)
    X = rng.uniform(0, 0.5, size=(20, 3)).astype(np.float32)  # no weight is far below the largest
    W = np.exp(-((X[:, None] - X) ** 2).sum(axis=-1))
    W[0, 1] *= 1 + 1e-6
    assert W.dtype == np.float32
    assert normalized_cut(container(W), np.arange(20) % 2) > 0
    with pytest.raises(ValueError, match="not symmetric"):
        normalized_cut(container(W.astype(np.float64)), np.arange(20) % 2)


def test_normalized_cut_leaves_the_matrix_as_it_is():
    doubled = sparse.csr_array(
        (np.array([1.0, 1.0, 2.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2)
    )
    assert normalized_cut(doubled, [0, 1]) == 2
    assert doubled.nnz == 3


def test_normalized_cut_holds_no_copy_of_the_matrix():
    n = 2000
    W = np.ones((n, n), dtype=np.float32)
    tracemalloc.start()
    try:
        normalized_cut(W, np.arange(n) % 2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < W.nbytes / 2


def cut(W, labels=(0, 1), kind=np.asarray):
    normalized_cut(kind(W), labels)


def sparse_cut(W):
    cut(W, kind=sparse.csr_array)


GRAPHS = [
    (r"square matrix .* got shape \(2, 3\)", {"W": np.ones((2, 3))}),
    (r"differ by 1\. Pass \(affinity \+ affinity.T\) / 2", {"W": [[0, 1], [2, 0]]}),
    (r"differ by 1\.", {"W": np.array([[0, 1], [2, 0]], dtype=np.uint8)}),
    (r"differ by 1\.", {"W": np.array([[0, 1], [0, 0]], dtype=bool)}),
    (r"negative weights \(smallest: -1\)", {"W": [[0, -1], [-1, 0]]}),
    ("Input affinity contains infinity", {"W": [[0, np.inf], [np.inf, 0]]}),
    ("labels has 2 rows but the other arguments have 3", {"W": np.zeros((3, 3))}),
]
test_wrong_graphs_are_refused = messages(
    *of_calls(cut, *GRAPHS),
    *of_calls(sparse_cut, *GRAPHS),
    *of_calls(
        normalized_cut, ("Dask", {"affinity": da.ones((2, 2)), "labels": [0, 1]}), error=TypeError
    ),
)
