"""The three forms of an affinity agree with the matrix that they stand for."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from skfair.cluster.spectral import weights as module
from skfair.cluster.spectral._kernels import products
from skfair.cluster.spectral.weights import DenseWeights, FactoredWeights, SparseWeights
from skfair.utils import threads
from tests.python_kernels import as_python
from tests.seeds import generator


def factor(n=37, m=5, seed=0):
    return generator(seed).random((n, m))


def forms(Z, dtype):
    W = (Z @ Z.T).astype(dtype)
    rows = Z.astype(dtype)
    thin = sparse.csr_array(rows)
    return {
        "dense": DenseWeights(W),
        "sparse": SparseWeights(sparse.csr_array(W)),
        "factor": FactoredWeights(lambda part: rows[part], *Z.shape, dtype),
        "sparse factor": FactoredWeights(lambda part: thin[part], *Z.shape, dtype),
    }


@pytest.mark.parametrize("name", ["dense", "sparse", "factor", "sparse factor"])
@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 2e-6), (np.float64, 1e-13)])
def test_forms_agree(name, dtype, tol, monkeypatch):
    monkeypatch.setattr(module, "ROWS", 10)  # several blocks
    Z = factor()
    W = Z @ Z.T
    form = forms(Z, dtype)[name]
    assert form.n_samples == 37
    assert form.dtype == dtype
    assert np.allclose(form.degrees, W.sum(axis=1), rtol=tol)
    assert form.degrees.dtype == np.float64
    assert np.allclose(form.diagonal(), W.diagonal(), rtol=10 * tol)
    for b in (1, 3, 4, 8, 36):
        columns = generator(b).normal(size=(37, b)).astype(dtype)
        product = form.times(columns)
        assert product.dtype == dtype
        assert np.allclose(product, W @ columns, atol=50 * tol)
    assert form.n_components() == 1


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("n", [7, 2100])
def test_row_sums(compiled, n):
    rng = generator(0)
    weights, labels = rng.normal(size=(n, n)), rng.integers(0, 3, n) * 2  # 1 and 3 are empty
    rows = np.sort(rng.permutation(n)[:30])  # of a cluster more than four, and not in fours
    rows = rows[np.argsort(labels[rows], kind="stable")]
    starts = np.searchsorted(labels[rows], np.arange(6))
    kernel = products.add_row_sums
    kernel = kernel if compiled else as_python(kernel)
    out = np.ones((5, n))
    kernel(weights, rows, starts, -1, 0, 3, out)  # columns are added part by part
    kernel(weights, rows, starts, -1, 3, n, out)
    assert np.allclose(out, 1 - np.eye(5)[labels[rows]].T @ weights[rows])


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("lowest", [0.0, -0.1])
def test_read_rows(compiled, n_rows, given, lowest):
    rng = generator(0)
    rows, factors = rng.random((n_rows, 9)).astype(given), rng.random(9)
    rows[n_rows // 2, 5] = lowest
    read, sums, forward = np.empty((n_rows, 9), np.float32), np.empty(n_rows), np.empty(n_rows)
    backward = np.ones(9)
    kernel = products.read_rows
    kernel = kernel if compiled else as_python(kernel)
    assert kernel(rows, 1, factors, read, sums, forward, backward) == (lowest < 0)
    exact = rows.astype(np.float64)
    assert_array_equal(read, rows.astype(np.float32))
    is_compiled = hasattr(kernel, "py_func")  # numba adds single numbers up in double precision
    assert np.allclose(sums, exact.sum(axis=1), rtol=1e-14 if is_compiled else 1e-6)
    assert np.allclose(forward, exact @ factors, rtol=1e-14)
    assert np.allclose(backward, 1 + factors[1 : n_rows + 1] @ exact, rtol=1e-14)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [5, 8, 43])
def test_products_do_not_depend_on_threads(n, order, monkeypatch):
    rng = generator(0)
    W = rng.random((n, n)).astype(np.float32)
    W += W.T
    monkeypatch.setattr(module, "_COLUMNS", 5)
    for b in (1, 4, 12, 33):
        columns = np.asarray(rng.normal(size=(n, b)), np.float32, order=order)
        products_of = []
        for n_threads in (1, 4):
            monkeypatch.setattr(threads, "allowed_threads", lambda n=n_threads: n)
            form = DenseWeights(W)
            assert np.allclose(form.times(columns), W @ columns, atol=1e-4)
            products_of.append(form.times(columns))
        assert_array_equal(*products_of)


@pytest.mark.parametrize("n_parts", [1, 2, 5])
@pytest.mark.parametrize("order", ["C", "F"])
def test_connected_parts_of_all_forms(n_parts, order):
    rng = generator(n_parts)
    part = rng.integers(n_parts, size=60)
    W = np.where((part[:, None] == part) & (rng.random((60, 60)) < 0.4), 1.0, 0.0)
    W = np.maximum(W, W.T)
    W[-3:], W[:, -3:] = 0, 0  # rows without edges are no parts
    expected = SparseWeights(sparse.csr_array(W)).n_components()
    assert expected >= n_parts
    assert DenseWeights(np.asarray(W, order=order)).n_components() == expected
    assert DenseWeights(np.ones((9, 9))).n_components() == 1
    assert DenseWeights(np.zeros((9, 9))).n_components() == 0
