"""Block Lanczos: restarts, spaces that end early, its own stop tests."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.neighbors import kneighbors_graph

from skfair.cluster.spectral.weights import SparseWeights
from tests.cluster.spectral.eigen.eigen_problems import (
    check,
    equal_parts,
    random_attributes,
    ring,
    run,
    weights_of,
)
from tests.naive import spectral
from tests.seeds import generator, seed_of

both_types = pytest.mark.parametrize("dtype", [np.float64, np.float32])


@both_types
@pytest.mark.parametrize("block_size", [1, 2, 4])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_lanczos_iterates_and_restarts(block_size, is_sparse, dtype):
    rng = generator(block_size)
    W = ring(rng, 300).astype(dtype)
    attributes = random_attributes(rng, 300)
    result = check("lanczos", W, attributes, 5, is_sparse=is_sparse, block_size=block_size)
    assert result.n_iter * block_size > 100  # more columns than the basis has


@both_types
@pytest.mark.parametrize("block_size", [2, 4, None])
@pytest.mark.parametrize("rank", [2, 3, 30, 50])
def test_lanczos_survives_an_invariant_space(rank, block_size, dtype):
    """Weights of low rank end the Krylov space early: what follows is rounding errors."""
    rng = generator(rank)
    Z = rng.random((300, rank))
    W = (Z @ Z.T).astype(dtype)
    check("lanczos", W, random_attributes(rng, 300), min(4, rank), block_size=block_size)


@pytest.mark.parametrize("max_iter", [1, 3, 10, 40])
def test_lanczos_ends_at_max_iter(max_iter):
    W, attributes = equal_parts(1, 300)
    problem, result, H = run(
        "lanczos", weights_of(W), attributes, 5, block_size=2, max_iter=max_iter, tol=1e-15
    )
    assert result.status == "max_iter"
    assert result.vectors.shape == (300, 5)
    assert len(result.history["seconds"]) == result.n_iter
    if max_iter >= 3:  # five vectors need three blocks of two
        assert result.n_iter == max_iter
    assert_allclose(problem.residuals(H), 0.0, atol=1e-12)
    # Ritz values never exceed the eigenvalues.
    assert np.all(result.values <= spectral.fair_spectrum(W, attributes)[0][:5] + 1e-12)


@pytest.mark.parametrize("seed", [0, 1])
def test_lanczos_on_a_disconnected_graph_of_neighbours(seed):
    """A single vector, stopped early, misses copies of 1 here: costs 3 times too high."""
    X, labels = make_blobs(1500, centers=8, cluster_std=0.5, random_state=seed_of(seed))
    graph = kneighbors_graph(X, 10)
    W = sparse.csr_array((graph + graph.T) / 2).astype(np.float32)
    affinity = SparseWeights(W)
    assert affinity.n_components() > 1
    groups = np.where(generator(seed).random(1500) < 0.5, labels % 2, 0)
    _, result, _ = run("lanczos", affinity, [groups], 8, tol=3e-3)
    _, exact, _ = run("dense", affinity, [groups], 8)
    assert 8 - result.values.sum() <= 1.005 * (8 - exact.values.sum()) + 1e-4
