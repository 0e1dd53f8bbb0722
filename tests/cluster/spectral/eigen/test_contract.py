"""The contract of the eigen-solvers, checked over the registry against null-space bases.

A solver that does not keep the constraint solves another problem and has a file of its own; what is
asked here of every solver is the shape of the result, and that it says whether it can be used.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.manifold import spectral_embedding

from skfair.cluster import FairSpectralClustering
from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS, KEPT, EigenSolver, Pairs, only_step
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.cluster.spectral.weights import DenseWeights, FactoredWeights
from skfair.exceptions import SolverError
from skfair.groups.encoding import one_group
from tests.cluster.spectral.eigen.eigen_problems import (
    N_ITERATED,
    TOL,
    check,
    equal_parts,
    made,
    random_attributes,
    random_weights,
    run,
    weights_of,
)
from tests.naive import spectral
from tests.public import names_in
from tests.seeds import generator, seed_of

NAMES = names_in(EIGEN_SOLVERS, of_papers=False)
# It counts iterations and has no result before its end, and finds each repeated eigenvalue of dense
# weights, whose parts are not searched for, once.
MUST_FINISH = ["arpack"]

every_kind = pytest.mark.parametrize("name", list(EIGEN_SOLVERS))
every_solver = pytest.mark.parametrize("name", NAMES)
both_types = pytest.mark.parametrize("dtype", [np.float64, np.float32])


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
    rng = generator(seed)
    if not is_sparse and name in MUST_FINISH:
        n_parts = 1  # the parts of a dense matrix are not looked for, so copies of 1 are missed
    W = random_weights(rng, n, n_parts, n_isolated).astype(dtype)
    check(name, W, random_attributes(rng, n), k, is_sparse=is_sparse)


@every_solver
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 2**31), n=st.integers(14, 30), is_sparse=st.booleans())
def test_small_samples(name, seed, n, is_sparse):
    """Down to as many vectors as the constraint leaves room for."""
    rng = generator(seed)
    W = random_weights(rng, n, n_isolated=seed % 3)
    attributes = random_attributes(rng, n)
    n_free = len(spectral.fair_spectrum(W, attributes)[0])
    for k in {1, n_free // 2, n_free} - {0}:
        check(name, W, attributes, k, is_sparse=is_sparse)


@every_solver
@both_types
def test_one_group_is_the_embedding_of_scikit_learn(name, dtype):
    X, _ = make_blobs(300, centers=4, cluster_std=2.0, random_state=seed_of(0))
    W = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    np.fill_diagonal(W, 0.0)  # scikit-learn ignores it
    problem = GroupCut(DenseWeights(W.astype(dtype)), one_group(300))
    assert problem.basis.shape == (300, 0)
    result = made(name, tol=TOL[dtype]).solve(problem, 4, rng=np.random.RandomState(0))
    theirs = spectral_embedding(W, n_components=4, drop_first=False, random_state=0)
    basis = np.linalg.qr(theirs)[0]
    ours = np.linalg.qr(result.vectors * problem.scale[:, None])[0]
    assert np.linalg.svd(basis.T @ ours)[1].min() > 1 - TOL[dtype]


@every_solver
@both_types
@pytest.mark.parametrize("rank", [12, 40])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_factor_is_its_product(name, rank, is_sparse, dtype):
    rng = generator(rank)
    Z = rng.random((300, rank)) * (rng.random((300, rank)) < 0.5)
    Z = Z.astype(dtype)
    W = Z.astype(np.float64) @ Z.T.astype(np.float64)
    attributes = random_attributes(rng, 300)
    factor = sparse.csr_array(Z) if is_sparse else Z
    factored = FactoredWeights(lambda rows: factor[rows], 300, rank, dtype)
    rounding = 1e-12 if dtype is np.float64 else 1e-5
    assert_allclose(factored.degrees, W.sum(axis=1), rtol=rounding)
    assert_allclose(factored.diagonal(), np.diagonal(W), rtol=rounding)
    check(name, W, attributes, 4, weights=factored)


@both_types
@pytest.mark.parametrize("k", [6, 8])
@pytest.mark.parametrize(
    ("name", "is_sparse"),
    [
        (name, is_sparse)
        for name in NAMES
        for is_sparse in ([True] if name in MUST_FINISH else [False, True])
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
        rng = generator(seed)
        W = random_weights(rng, 160, n_parts=8).astype(dtype)
        check(name, W, [rng.integers(0, 3, 160)], k, is_sparse=True)


@every_solver
@both_types
def test_equal_rows_in_separate_parts(name, dtype):
    """Eigenvalues are 1 and 0 only, with many copies of both."""
    labels = np.arange(300) % 5
    W = (labels == labels[:, None]).astype(dtype)
    check(name, W, [np.arange(300) // 150], 5, is_sparse=True)


@every_solver
def test_group_of_isolated_rows_only(name):
    rng = generator(0)
    W = random_weights(rng, N_ITERATED)
    W[:5] = W[:, :5] = 0.0
    groups = np.r_[np.zeros(5, int), rng.integers(1, 3, N_ITERATED - 5)]
    result = check(name, W, [groups], 4)
    assert_array_equal(result.vectors[:5], 0.0)


@every_kind
@both_types
def test_same_seed_same_bits(name, dtype):
    rng = generator(0)
    W, attributes = random_weights(rng, 200).astype(dtype), random_attributes(rng, 200)
    (_, one, _), (_, two, _) = (run(name, weights_of(W), attributes, 4) for _ in range(2))
    assert_array_equal(one.vectors, two.vectors)
    assert_array_equal(one.values, two.values)


@every_kind
@both_types
def test_result_is_complete(name, dtype):
    """Also of a solver that does not keep the constraint."""
    rng = generator(3)
    W, attributes = random_weights(rng, 150, n_isolated=2).astype(dtype), [np.arange(150) % 3]
    problem, result, _ = run(name, weights_of(W), attributes, 4)
    H = result.vectors.astype(np.float64)
    assert_allclose(H.T @ H, np.eye(4), atol=1e-10 if dtype is np.float64 else 1e-4)
    assert_allclose(H[problem.scale == 0], 0.0, atol=1e-6)
    assert np.all(np.diff(result.values) <= 0)
    assert result.values.shape == (4,)
    assert result.spare is None or result.spare.shape[0] == 150
    assert {column.shape for column in result.history.values()} == {(result.n_iter,)}
    assert result.history["trace"][-1] == pytest.approx(result.values.sum(), rel=1e-6)
    assert result.residual == pytest.approx(problem.residuals(H)[0])
    # If it ended by itself, it says whether it keeps the constraint.
    ended = {"max_iter"} | ({"infeasible"} if result.residual > KEPT else {"converged"})
    assert result.status in ended


@every_kind
def test_one_iteration_is_enough_for_a_result(name):
    W, attributes = equal_parts(1, 300)
    options = {"max_iter": 1, "block_size": 5, "tol": 1e-15}
    if name in MUST_FINISH:
        with pytest.raises(SolverError, match="in 1 iterations.*larger max_iter"):
            run(name, weights_of(W), attributes, 5, **options)
        return
    problem, result, _ = run(name, weights_of(W), attributes, 5, **options)
    assert result.n_iter == 1
    assert result.vectors.shape == (300, 5)
    if name in NAMES:
        assert problem.residuals(result.vectors)[0] < 1e-8
        # It says that it has not converged, or it has.
        found = np.allclose(result.values, spectral.fair_spectrum(W, attributes)[0][:5])
        assert (result.status == "converged") == found
        assert result.status in ("converged", "max_iter")


@every_kind
def test_callback_stops(name):
    W, attributes = equal_parts(1, 300)
    seen = []
    options = {"block_size": 3, "tol": 1e-15}
    _, result, _ = run(
        name, weights_of(W), attributes, 3, callback=lambda H: seen.append(H) or True, **options
    )
    assert len(seen) == result.n_iter == len(result.history["trace"]) == 1
    assert all(H is None or H.shape == (300, 3) for H in seen)
    assert result.vectors.shape == (300, 3)
    assert np.isfinite(result.history["trace"][-1])
    if result.status != "converged":  # of a solver that has more than one iteration
        assert result.status == "stopped"


@every_kind
@pytest.mark.parametrize("value", [0, -1, np.nan, "many"])
def test_parameters_out_of_range_are_refused(name, value):
    W, attributes = equal_parts(1, 20)
    kind = EIGEN_SOLVERS[name]
    for field in fields(kind):
        if value == 0 and "NonNegative" in field.type:
            continue
        with pytest.raises(ValueError, match=f"{kind.__name__}.*{field.name} must be"):
            run(replace(kind(), **{field.name: value}), weights_of(W), attributes, 2)


@dataclass
class Start(EigenSolver):
    """A bad solver: it returns where it starts."""

    def steps(self, problem, n_vectors, rng):
        H = np.linalg.qr(problem.random(n_vectors, rng))[0]
        values = np.linalg.eigvalsh(H.T @ problem.multiply(H))[::-1]
        yield only_step(Pairs(values, H), n_vectors)


@dataclass
class Unconstrained(EigenSolver):
    """A bad solver: it forgets the groups and says that it does not."""

    def steps(self, problem, n_vectors, rng):
        M = problem.weights.dense() * problem.scale * problem.scale[:, None]
        values, vectors = np.linalg.eigh(M)
        yield only_step(Pairs(values[::-1], vectors[:, ::-1]), n_vectors)


@pytest.mark.parametrize("solver", [Start(), Unconstrained()])
def test_a_bad_solver_is_refused(solver):
    rng = generator(0)
    labels = np.arange(150) % 3
    W = random_weights(rng, 150) * np.where(labels == labels[:, None], 1.0, 0.1)
    with pytest.raises(AssertionError):
        check(solver, W, [labels], 3)


def test_a_new_solver_needs_nothing_but_its_name():
    EIGEN_SOLVERS.register("start")(Start)
    try:
        model = FairSpectralClustering(2, affinity="precomputed", solver="start", random_state=0)
        W, attributes = equal_parts(2, 60)
        model.fit(W, sensitive_features=attributes[0])
        assert model.status_ == "converged"
    finally:
        del EIGEN_SOLVERS["start"]
