"""The contract of the eigen-solvers, checked over the registry against null-space bases.

``dc_admm`` solves another problem and has its own file.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.manifold import spectral_embedding
from sklearn.neighbors import kneighbors_graph

from skfair.exceptions import SolverError
from skfair.groups.encoding import encode_groups, one_group
from skfair.problems.cut.affinity import DenseAffinity, FactoredAffinity, SparseAffinity
from skfair.problems.cut.group_cut import GroupCut
from skfair.solvers.eigen.base import EIGEN_SOLVERS
from tests.naive import spectral

NAMES = [name for name in EIGEN_SOLVERS if name != "dc_admm"]
# Below this, arpack and lanczos hand over to the dense solver.
N_ITERATED = 120
TOL = {np.float64: 1e-6, np.float32: 1e-4}

every_solver = pytest.mark.parametrize("name", NAMES)
both_types = pytest.mark.parametrize("dtype", [np.float64, np.float32])


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
    rng = np.random.default_rng(seed)
    block = rng.random((size, size))
    W = np.kron(np.eye(n_parts), block + block.T)
    return W, [np.tile(rng.integers(0, 2, size), n_parts)]


def affinity_of(W, is_sparse=False):
    return SparseAffinity(sparse.csr_array(W)) if is_sparse else DenseAffinity(W)


def run(name, affinity, attributes, k, **options):
    """Return the problem, the result and the polished vectors."""
    encoding = encode_groups(np.stack(attributes, axis=1), intersectional=False)
    problem = GroupCut(affinity, encoding)
    options = {"tol": TOL[affinity.dtype.type], "rng": np.random.RandomState(0)} | options
    result = EIGEN_SOLVERS[name](problem, k, **options)
    return problem, result, problem.polished(result.vectors)


def check(name, W, attributes, k, *, is_sparse=False, affinity=None, **options):
    """Compare a solver with the full spectrum inside the null space of F'."""
    affinity = affinity_of(W, is_sparse) if affinity is None else affinity
    problem, result, H = run(name, affinity, attributes, k, **options)
    values, exact = spectral.fair_spectrum(W, attributes)
    tol = 10 * TOL[affinity.dtype.type]
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
    assert_allclose(rough, 0.0, atol=1e-10 if affinity.dtype == np.float64 else 1e-3)
    assert_allclose(problem.residuals(H), 0.0, atol=1e-13 * k)
    assert spectral.constraint_residual(W, attributes, H) < 1e-10
    assert_allclose(H.T @ H, np.eye(k), atol=1e-12)
    assert len(result.history["seconds"]) == result.n_iter
    assert result.history["trace"][-1] == pytest.approx(result.values.sum())
    return result


@every_solver
@both_types
@settings(deadline=None, max_examples=12)
@given(
    seed=st.integers(0, 2**31),
    n=st.integers(N_ITERATED, N_ITERATED + 30),
    n_parts=st.integers(1, 3),
    n_isolated=st.integers(0, 4),
    is_sparse=st.booleans(),
    k=st.integers(1, 6),
)
def test_equals_the_null_space_twin(name, dtype, seed, n, n_parts, n_isolated, is_sparse, k):
    rng = np.random.default_rng(seed)
    if name == "arpack" and not is_sparse:
        n_parts = 1  # the parts of a dense matrix are not looked for, so copies of 1 are missed
    W = random_weights(rng, n, n_parts, n_isolated).astype(dtype)
    check(name, W, random_attributes(rng, n), k, is_sparse=is_sparse)


@every_solver
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**31), n=st.integers(14, 30), is_sparse=st.booleans())
def test_small_samples(name, seed, n, is_sparse):
    """Down to as many vectors as the constraint leaves room for."""
    rng = np.random.default_rng(seed)
    W = random_weights(rng, n, n_isolated=seed % 3)
    attributes = random_attributes(rng, n)
    n_free = len(spectral.fair_spectrum(W, attributes)[0])
    for k in {1, n_free // 2, n_free} - {0}:
        check(name, W, attributes, k, is_sparse=is_sparse)


@both_types
@pytest.mark.parametrize("block_size", [1, 2, 4])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_lanczos_iterates_and_restarts(block_size, is_sparse, dtype):
    rng = np.random.default_rng(block_size)
    W = ring(rng, 300).astype(dtype)
    attributes = random_attributes(rng, 300)
    result = check("lanczos", W, attributes, 5, is_sparse=is_sparse, block_size=block_size)
    assert result.n_iter * block_size > 100  # more columns than the basis has


@every_solver
@settings(deadline=None, max_examples=8)
@given(seed=st.integers(0, 2**31), is_sparse=st.booleans())
def test_order_of_rows_and_names_of_groups_do_not_matter(name, seed, is_sparse):
    rng = np.random.default_rng(seed)
    W = random_weights(rng, N_ITERATED)
    attributes = random_attributes(rng, N_ITERATED)
    _, result, H = run(name, affinity_of(W, is_sparse), attributes, 3)
    order = rng.permutation(N_ITERATED)
    renamed = [(7 - codes)[order] for codes in attributes[::-1]]
    _, other, K = run(name, affinity_of(W[np.ix_(order, order)], is_sparse), renamed, 3)
    assert_allclose(other.values, result.values, atol=1e-5)
    gap = -np.diff(spectral.fair_spectrum(W, attributes)[0])[2]
    assert_allclose(K @ K.T, (H @ H.T)[np.ix_(order, order)], atol=1e-5 / gap)


@every_solver
@both_types
def test_one_group_is_the_embedding_of_scikit_learn(name, dtype):
    X, _ = make_blobs(300, centers=4, cluster_std=2.0, random_state=0)
    W = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    np.fill_diagonal(W, 0.0)  # scikit-learn ignores it
    problem = GroupCut(DenseAffinity(W.astype(dtype)), one_group(300))
    assert problem.basis.shape == (300, 0)
    result = EIGEN_SOLVERS[name](problem, 4, tol=TOL[dtype], rng=np.random.RandomState(0))
    theirs = spectral_embedding(W, n_components=4, drop_first=False, random_state=0)
    basis = np.linalg.qr(theirs)[0]
    ours = np.linalg.qr(result.vectors * problem.scale[:, None])[0]
    assert np.linalg.svd(basis.T @ ours)[1].min() > 1 - TOL[dtype]


@every_solver
@both_types
@pytest.mark.parametrize("rank", [12, 40])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_factor_is_its_product(name, rank, is_sparse, dtype):
    rng = np.random.default_rng(rank)
    Z = rng.random((300, rank)) * (rng.random((300, rank)) < 0.5)
    Z = Z.astype(dtype)
    W = Z.astype(np.float64) @ Z.T.astype(np.float64)
    attributes = random_attributes(rng, 300)
    factor = sparse.csr_array(Z) if is_sparse else Z
    affinity = FactoredAffinity(lambda rows: factor[rows], 300, rank, dtype)
    rounding = 1e-12 if dtype is np.float64 else 1e-5
    assert_allclose(affinity.degrees, W.sum(axis=1), rtol=rounding)
    assert_allclose(affinity.diagonal(), np.diagonal(W), rtol=rounding)
    check(name, W, attributes, 4, affinity=affinity)


@both_types
@pytest.mark.parametrize("k", [6, 8])
@pytest.mark.parametrize(
    ("name", "is_sparse"),
    [
        (name, is_sparse)
        for name in NAMES
        for is_sparse in ([True] if name == "arpack" else [False, True])
    ],
)
def test_finds_all_copies_of_repeated_eigenvalues(name, is_sparse, k, dtype):
    for seed in range(6):
        W, attributes = equal_parts(6, 20, seed)
        check(name, W.astype(dtype), attributes, k, is_sparse=is_sparse)


@every_solver
@both_types
@pytest.mark.parametrize("k", [4, 9])
def test_finds_every_part_of_a_graph(name, k, dtype):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        W = random_weights(rng, 160, n_parts=8).astype(dtype)
        check(name, W, [rng.integers(0, 3, 160)], k, is_sparse=True)


@both_types
@pytest.mark.parametrize("block_size", [2, 4, None])
@pytest.mark.parametrize("rank", [2, 3, 30, 50])
def test_lanczos_survives_an_invariant_space(rank, block_size, dtype):
    """Weights of low rank end the Krylov space early: what follows is rounding errors."""
    rng = np.random.default_rng(rank)
    Z = rng.random((300, rank))
    W = (Z @ Z.T).astype(dtype)
    check("lanczos", W, random_attributes(rng, 300), min(4, rank), block_size=block_size)


@every_solver
@both_types
def test_equal_rows_in_separate_parts(name, dtype):
    """Eigenvalues are 1 and 0 only, with many copies of both."""
    labels = np.arange(300) % 5
    W = (labels == labels[:, None]).astype(dtype)
    check(name, W, [np.arange(300) // 150], 5, is_sparse=True)


@every_solver
def test_group_of_isolated_rows_only(name):
    rng = np.random.default_rng(0)
    W = random_weights(rng, N_ITERATED)
    W[:5] = W[:, :5] = 0.0
    groups = np.r_[np.zeros(5, int), rng.integers(1, 3, N_ITERATED - 5)]
    result = check(name, W, [groups], 4)
    assert_array_equal(result.vectors[:5], 0.0)


@every_solver
def test_proportional_clusters_are_feasible_and_cost_their_cut(name):
    """What the relaxation relaxes: such a clustering is one of its points, so never better."""
    labels, groups = np.repeat(np.arange(4), 30), np.tile([0, 0, 1, 1, 1, 2], 20)
    rng = np.random.default_rng(0)
    W = random_weights(rng, 120) * np.where(labels == labels[:, None], 1.0, 0.2)
    problem, result, H = run(name, affinity_of(W), [groups], 4)
    indicators = spectral.indicators(W, labels)
    assert_allclose(problem.residuals(indicators), 0.0, atol=1e-12)
    cut = spectral.normalised_cut(W, labels)
    assert 4 - np.sum(indicators * problem.multiply(indicators)) == pytest.approx(cut)
    assert 4 - result.values.sum() <= cut
    assert spectral.relaxed_cost(W, H) <= cut


@every_solver
@both_types
def test_same_seed_same_bits(name, dtype):
    rng = np.random.default_rng(0)
    W, attributes = random_weights(rng, 200).astype(dtype), random_attributes(rng, 200)
    (_, one, _), (_, two, _) = (run(name, affinity_of(W), attributes, 4) for _ in range(2))
    assert_array_equal(one.vectors, two.vectors)
    assert_array_equal(one.values, two.values)


@pytest.mark.parametrize("max_iter", [1, 3, 10, 40])
def test_lanczos_ends_at_max_iter(max_iter):
    W, attributes = equal_parts(1, 300)
    problem, result, H = run(
        "lanczos", affinity_of(W), attributes, 5, block_size=2, max_iter=max_iter, tol=1e-15
    )
    assert result.status == "max_iter"
    assert result.vectors.shape == (300, 5)
    assert len(result.history["seconds"]) == result.n_iter
    if max_iter >= 3:  # five vectors need three blocks of two
        assert result.n_iter == max_iter
    assert_allclose(problem.residuals(H), 0.0, atol=1e-12)
    # Ritz values never exceed the eigenvalues.
    assert np.all(result.values <= spectral.fair_spectrum(W, attributes)[0][:5] + 1e-12)


def test_arpack_says_that_max_iter_was_too_small():
    W, attributes = equal_parts(1, 300)
    with pytest.raises(SolverError, match="in 1 iterations.*larger max_iter"):
        run("arpack", affinity_of(W), attributes, 5, max_iter=1)


@pytest.mark.parametrize("n_steps", [1, 4, 20])
def test_callback_stops_lanczos(n_steps):
    W, attributes = equal_parts(1, 300)
    seen = []

    def stop(state):
        seen.append(state)
        return len(seen) == n_steps

    _, result, _ = run(
        "lanczos", affinity_of(W), attributes, 2, block_size=2, tol=1e-15, callback=stop
    )
    assert result.status == "stopped"
    assert result.n_iter == len(seen) == n_steps
    assert len(result.history["seconds"]) == n_steps
    assert result.vectors.shape == (300, 2)


@pytest.mark.parametrize("seed", [0, 1])
def test_lanczos_on_a_disconnected_graph_of_neighbours(seed):
    """A single vector, stopped early, misses copies of 1 here: costs 3 times too high."""
    X, labels = make_blobs(1500, centers=8, cluster_std=0.5, random_state=seed)
    graph = kneighbors_graph(X, 10)
    W = sparse.csr_array((graph + graph.T) / 2).astype(np.float32)
    affinity = SparseAffinity(W)
    assert affinity.n_components() > 1
    groups = np.where(np.random.default_rng(seed).random(1500) < 0.5, labels % 2, 0)
    _, result, _ = run("lanczos", affinity, [groups], 8, tol=3e-3)
    _, exact, _ = run("dense", affinity, [groups], 8)
    assert 8 - result.values.sum() <= 1.005 * (8 - exact.values.sum()) + 1e-4


def test_equal_eigenvalues_are_all_returned():
    """Nearly a multiple of the identity: LAPACK's subset of eigenvalues comes back empty."""
    rng = np.random.default_rng(40)
    W = np.eye(80) + 1e-9 * np.abs(rng.normal(size=(80, 80)))
    W = (W + W.T) / 2
    problem = GroupCut(affinity_of(W), encode_groups(np.arange(80) % 2))
    result = EIGEN_SOLVERS["dense"](problem, 1, rng=np.random.RandomState(0))
    assert result.vectors.shape == (80, 1)
    assert result.values == pytest.approx(1.0, abs=1e-6)


def test_arpack_keeps_the_constraint_beyond_the_rank():
    """Eigenvectors of the eigenvalue 0 must not mix with what violates the constraint."""
    Z = np.random.default_rng(0).random((300, 3))
    codes = [np.random.default_rng(1).integers(0, 3, 300)]
    problem = GroupCut(
        FactoredAffinity(lambda rows: Z[rows], 300, 3, np.float64), encode_groups(codes[0])
    )
    result = EIGEN_SOLVERS["arpack"](problem, 3, rng=np.random.RandomState(0))
    assert problem.residuals(result.vectors)[0] < 1e-8
