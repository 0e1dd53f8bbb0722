"""Affinities: kernels against scikit-learn and naive code, factors against their products."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import (
    chi2_kernel,
    euclidean_distances,
    laplacian_kernel,
    rbf_kernel,
)

from skfair.cluster.spectral._kernels import affinity as kernels
from skfair.cluster.spectral.affinities.base import Affinity
from skfair.cluster.spectral.affinities.kernels import Kernel, RbfKernel
from skfair.cluster.spectral.affinities.landmarks import (
    Landmark,
    LandmarkFactor,
    choose_landmarks,
)
from skfair.cluster.spectral.weights import DenseWeights, SparseWeights
from tests.python_kernels import as_python
from tests.seeds import generator


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 11])
def test_distances(compiled, d):
    rng = generator(d)
    X, Y = rng.normal(size=(7, d)), rng.normal(size=(9, d))
    kernel = kernels.minus_squared_distances
    out = np.full((7, 9), 5.0)
    (kernel if compiled else as_python(kernel))(X, np.ascontiguousarray(Y.T), 2, out)
    expected = -((X[:, None] - Y[None]) ** 2).sum(axis=2)
    assert np.allclose(out[:, 2:], expected[:, 2:], atol=1e-12)
    assert (out[:, :2] == 5).all()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("n_kept", [1, 3, 8])
def test_largest_columns(compiled, n_kept):
    values = generator(0).normal(size=(6, 8))
    index, value = np.empty((6, n_kept), np.int32), np.empty((6, n_kept))
    kernel = kernels.largest_columns
    (kernel if compiled else as_python(kernel))(values, index, value)
    order = np.argsort(-values, axis=1)[:, :n_kept]
    assert np.array_equal(index, order)
    assert np.array_equal(value, np.take_along_axis(values, order, axis=1))


@pytest.mark.parametrize(("dtype", "tol"), [("float32", 5e-6), ("float64", 1e-13)])
@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("d", [6, 20])
def test_rbf_matrix(dtype, tol, offset, d):
    X = generator(0).normal(size=(150, d)) * np.sqrt(6 / d)
    matrix = RbfKernel((X + offset).astype(dtype), 0.3, dtype).matrix()
    given = (X + offset).astype(dtype).astype(np.float64)
    assert matrix.dtype == dtype
    assert np.array_equal(matrix, matrix.T)
    assert np.abs(matrix / rbf_kernel(given - given.mean(axis=0), gamma=0.3) - 1).max() < tol * (
        1 if offset == 0 or dtype == "float64" else 100
    )


def test_kernels_of_new_rows_continue_the_matrix():
    X = generator(0).normal(size=(80, 3))
    for kernel in (
        Kernel("rbf", 0.5),
        Kernel("laplacian", gamma=0.5),
        Kernel(lambda a, b: 1 / (1 + np.abs(a - b).sum())),
    ):
        weights = replace(kernel, dtype="float64").build(X, rng=np.random.RandomState(0))
        assert np.allclose(weights.new_rows(X[5:9]), weights.matrix[5:9], atol=1e-12)
    laplacian = Kernel("laplacian", gamma=0.5).between(X, dtype="float64")
    assert np.allclose(laplacian, laplacian_kernel(X, gamma=0.5))


def test_a_kernel_has_its_own_default_width():
    """The width of chi2 is 1 if it is not given; None is no number for it."""
    X = generator(0).random((20, 3))
    assert np.allclose(Kernel("chi2").between(X, dtype="float64"), chi2_kernel(X))


def test_landmark_weights_spread_one_over_the_nearest():
    rng = generator(0)
    X, landmarks = rng.normal(size=(60, 3)), rng.normal(size=(12, 3))
    factor = LandmarkFactor(landmarks, 4, 0.7, "float64")
    Z = factor.fit(X)
    squared = euclidean_distances(X, landmarks, squared=True)
    z = np.where(squared <= np.sort(squared, axis=1)[:, [3]], np.exp(-0.7 * squared), 0)
    z /= z.sum(axis=1, keepdims=True)
    mass = z.sum(axis=0)
    expected = z / np.sqrt(np.where(mass > 0, mass, 1))
    assert np.allclose(Z.toarray(), expected)
    assert np.allclose(expected @ expected.T @ np.ones(60), 1)  # degrees
    assert np.allclose(factor(X[3:5]).toarray(), expected[3:5])


def test_landmark_width_follows_the_scale():
    X = generator(0).normal(size=(60, 3))
    one = LandmarkFactor(X[:10], 3, None, "float64").fit(X)
    other = LandmarkFactor(1e6 * X[:10], 3, None, "float64").fit(1e6 * X)
    assert np.allclose(one.toarray(), other.toarray())
    equal = np.ones((30, 2))
    assert np.isfinite(LandmarkFactor(equal[:1], 3, None, "float64").fit(equal).data).all()


def test_landmarks_are_distinct_and_few():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(500, 2))
    assert choose_landmarks(X, 7, rng).shape == (7, 2)
    assert choose_landmarks(X[:5], 7, rng).shape == (5, 2)
    assert choose_landmarks(np.repeat(X[:3], 50, axis=0), 7, rng).shape[0] <= 7
    assert isinstance(LandmarkFactor(X[:3], 9, 1.0, "float32").fit(X), sparse.csr_array)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (lambda n: np.ones((n, n)), TypeError, "Own.weigh must return weights.* got ndarray"),
        (lambda n: DenseWeights(np.ones((3, 3))), ValueError, "of 3 rows, but X has 40"),
        (lambda n: DenseWeights(np.full((n, n), np.nan)), ValueError, "some are NaN"),
        (lambda n: DenseWeights(np.triu(np.ones((n, n)))), ValueError, "not symmetric"),
        (lambda n: SparseWeights(sparse.csr_array(np.tri(n))), ValueError, "not symmetric"),
        (lambda n: DenseWeights(np.eye(n) - 0.5), ValueError, "negative weights"),
        (lambda n: DenseWeights(np.full((n, n), np.inf)), ValueError, "NaN or infinite"),
    ],
)
def test_an_affinity_of_ones_own_that_answers_wrongly_is_named(answer, error, said):
    class Own(Affinity):
        def weigh(self, X, *, dtype, rng):
            return answer(X.shape[0])

    X = generator(0).normal(size=(40, 2))
    with pytest.raises(error, match=said):
        Own().build(X, rng=np.random.RandomState(0))


@pytest.mark.parametrize("gamma", [None, 0.7])
def test_a_kernel_seen_through_all_rows_is_the_kernel(gamma):
    X = generator(0).normal(size=(30, 4))
    weights = Landmark(30, None, gamma).weigh(X, dtype=np.float64, rng=np.random.RandomState(0))
    assert weights.dense() == pytest.approx(rbf_kernel(X, gamma=gamma), abs=1e-6)
