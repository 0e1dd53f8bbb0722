"""Graphs and kernels for eigen-solvers, and the comparison with the full spectrum."""

from dataclasses import fields

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.cluster.spectral.weights import DenseWeights, SparseWeights
from skfair.groups.encoding import encode_groups
from tests.naive import spectral
from tests.seeds import generator

# Below this, arpack and lanczos hand over to the dense solver.
N_ITERATED = 120
TOL = {np.float64: 1e-6, np.float32: 1e-4}


def random_weights(rng, n, n_parts=1, n_isolated=0):
    """Symmetric weights in separate parts, some rows without edges."""
    part = rng.permutation(np.arange(n) % n_parts)
    W = rng.random((n, n)) * (rng.random((n, n)) < 0.5) * (part == part[:, None])
    W += W.T + 0.01 * (part == part[:, None])  # each part is connected
    alone = rng.permutation(n)[:n_isolated]
    W[alone] = W[:, alone] = 0.0
    return W


def random_attributes(rng, n):
    """One to three attributes that overlap, and sometimes one that says nothing new."""
    attributes = [rng.integers(0, rng.integers(1, 5), n) for _ in range(rng.integers(1, 4))]
    return [*attributes, attributes[0] // 2] if rng.random() < 0.3 else attributes


def ring(rng, n):
    """A chain of neighbours that is closed, with random weights: eigenvalues crowd near 1."""
    W = np.zeros((n, n))
    for step in (1, 2, 3):
        W[np.arange(n), (np.arange(n) + step) % n] = 0.5 + rng.random(n)
    return W + W.T


def equal_parts(n_parts, size, seed=0):
    """Copies of one graph, whose eigenvalues all have as many copies; groups of each alike."""
    rng = generator(seed)
    block = rng.random((size, size))
    W = np.kron(np.eye(n_parts), block + block.T)
    return W, [np.tile(rng.integers(0, 2, size), n_parts)]


def weights_of(W, is_sparse=False):
    return SparseWeights(sparse.csr_array(W)) if is_sparse else DenseWeights(W)


def made(name, **options):
    """The solver of a name with those of the options that it has; an object as it is."""
    if not isinstance(name, str):
        return name
    kind = EIGEN_SOLVERS[name]
    return kind(**{n: options[n] for n in {f.name for f in fields(kind)} & set(options)})


def run(name, weights, attributes, k, *, callback=None, seed=0, **options):
    """Return the problem, the result and the polished vectors."""
    encoding = encode_groups(np.stack(attributes, axis=1), intersectional=False)
    problem = GroupCut(weights, encoding)
    solver = made(name, **{"tol": TOL[weights.dtype.type], **options})
    result = solver.solve(problem, k, rng=np.random.RandomState(seed), callback=callback)
    return problem, result, problem.polished(result.vectors)


def check(name, W, attributes, k, *, is_sparse=False, weights=None, **options):
    """Compare a solver with the full spectrum inside the null space of F'."""
    weights = weights_of(W, is_sparse) if weights is None else weights
    problem, result, H = run(name, weights, attributes, k, **options)
    values, exact = spectral.fair_spectrum(W, attributes)
    tol = 10 * TOL[weights.dtype.type]
    assert result.status == "converged"
    assert problem.n_free == len(values)
    assert result.vectors.shape == (len(W), k)
    assert_allclose(result.values, values[:k], atol=tol)
    assert spectral.relaxed_cost(W, H) == pytest.approx(k - values[:k].sum(), abs=k * tol)
    gap = values[k - 1] - values[k] if k < len(values) else 1.0
    if gap > 0.02:  # Davis and Kahan: the angle is at most residual / gap
        assert_allclose(H - exact[:, :k] @ (exact[:, :k].T @ H), 0.0, atol=tol / gap)
    # What is handed out satisfies the constraints nearly, polished it does so exactly.
    rough = problem.residuals(result.vectors.astype(np.float64))
    assert_allclose(rough, 0.0, atol=1e-10 if weights.dtype == np.float64 else 1e-3)
    assert_allclose(problem.residuals(H), 0.0, atol=1e-13 * k)
    assert spectral.constraint_residual(W, attributes, H) < 1e-10
    assert_allclose(H.T @ H, np.eye(k), atol=1e-12)
    assert result.residual == pytest.approx(rough[0])
    assert len(result.history["seconds"]) == result.n_iter
    assert result.history["trace"][-1] == pytest.approx(result.values.sum())
    return result
