"""The reproduction of Algorithm 1: its formulas, and what it solves when it converges."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from skfair.cluster import FairSpectralClustering
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.cluster.spectral.weights import DenseWeights, FactoredWeights, SparseWeights
from skfair.datasets import make_fair_sbm
from skfair.groups.encoding import encode_groups
from skfair.papers import DCADMM
from skfair.papers.fair_spectral_dc.dc_admm import _dual
from skfair.solvers import DenseEigh
from tests.cluster.spectral import family
from tests.naive import spectral
from tests.seeds import generator, seed_of
from tests.utils import test_warn as warn

TIGHT = {"gtol": 1e-7, "ftol": 1e-12}


def kernel(seed=0, n=120, dependence=0.3):
    """Weights of four blobs, whose groups depend on the blob for some of the rows."""
    rng = generator(seed)
    centers = [[0, 0], [0, 3], [3, 0], [3, 3.6]]
    X, labels = make_blobs(n, centers=centers, cluster_std=0.5, random_state=seed_of(seed))
    groups = np.where(rng.random(n) < dependence, labels % 2, rng.integers(0, 2, n))
    return rbf_kernel(X, gamma=0.5), groups


def cut(W, groups):
    return GroupCut(DenseWeights(W), encode_groups(groups))


def solve(problem, k=3, seed=0, callback=None, **options):
    rng = np.random.RandomState(seed)
    return DCADMM(**options).solve(problem, k, rng=rng, callback=callback)


def smallest_cosine(A, B):
    return np.linalg.svd(A.T @ B)[1].min()


@pytest.mark.parametrize("alpha", [0.005, 0.4, 0.95])
def test_dual_and_its_gradient(alpha):
    rng = generator(1)
    W, _ = kernel(n=12)
    M = spectral.normalised_weights(W) + 1.01 * np.eye(12)
    V, Y, P = rng.normal(size=(3, 12, 3))
    value, gradient = _dual(V.ravel(), M.__matmul__, Y, P, alpha)
    assert value == pytest.approx(spectral.dual_value(M, V, Y, P, alpha))
    steps = 1e-5 * np.eye(V.size).reshape(V.size, 12, 3)
    numeric = [
        (
            spectral.dual_value(M, V + step, Y, P, alpha)
            - spectral.dual_value(M, V - step, Y, P, alpha)
        )
        / 2e-5
        for step in steps
    ]
    assert_allclose(gradient, numeric, rtol=1e-6, atol=1e-6)


def spirals():
    """Weights of four round blobs without random numbers, and groups that hardly depend on them."""
    k, blob = np.arange(120) // 4, np.arange(120) % 4
    radius, angle = np.sqrt((k + 0.5) / 30), k * np.pi * (3 - np.sqrt(5))
    centers = np.array([[0, 0], [0, 3], [3, 0], [3, 3.6]])
    X = centers[blob] + np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    return rbf_kernel(X, gamma=0.5), np.where(k % 10 < 2, blob, k) % 2


@pytest.mark.parametrize("shift", [0.0, 1.01])
def test_equals_the_algorithm_line_by_line(shift):
    W, groups = spirals()
    V = np.random.RandomState(1).standard_normal((120, 3))
    H, log = spectral.dc_admm(W, [groups], 3, shift, V, n_iter=20, gtol=1e-3, ftol=1e-4)
    assert log[:, 3].max() == 0.95
    changes = np.diff(log[:, 3])  # all three cases of constraint (16) occur
    assert min(np.sum(changes < 0), np.sum(changes == 0), np.sum(changes > 0)) > 0
    result = solve(cut(W, groups), seed=1, shift=shift, max_iter=20)
    columns = [result.history[name] for name in ("trace", "primal", "dual", "alpha")]
    # Rounding errors grow from one L-BFGS to the next.
    assert_allclose(np.transpose(columns), log, rtol=1e-6, atol=1e-9)
    assert smallest_cosine(H, result.vectors) > 1 - 1e-8


@pytest.mark.parametrize("seed", range(3))
def test_one_group_gives_the_leading_eigenvectors(seed):
    W, _ = kernel(seed)
    problem = cut(W, np.zeros(len(W)))
    result = solve(problem, 4, shift=0.0, max_iter=2, **TIGHT)
    exact = DenseEigh().solve(problem, 4, rng=np.random.RandomState(0))
    assert result.status == "converged"
    assert smallest_cosine(exact.vectors, result.vectors) > 0.9999
    assert_allclose(result.values, exact.values, atol=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_converges_to_the_modified_problem(seed):
    """It maximises |MH| subject to F'MH = 0, which is not the problem of the other solvers."""
    W, groups = kernel(seed)
    problem = cut(W, groups)
    result = solve(problem, 4, shift=1.01, max_iter=80, **TIGHT)
    exact = spectral.fair_spectrum(W, [groups], shift=1.01)[1][:, :4]
    assert result.history["primal"][-1] < 1e-4
    assert smallest_cosine(exact, result.vectors) > 0.9999
    cost = 4 - result.history["trace"][-1]
    assert cost == pytest.approx(spectral.relaxed_cost(W, exact), abs=1e-4)
    # Where F'MH = 0, F'H is what the shift leaves of it.
    assert problem.residuals(exact)[0] > 0.02
    assert result.status == "infeasible"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_result_is_consistent(dtype):
    W, groups = kernel()
    problem = cut(W.astype(dtype), groups)
    result = solve(problem, max_iter=5)
    H = result.vectors
    M = spectral.normalised_weights(W)
    rounding = 1e-12 if dtype is np.float64 else 1e-5
    assert_allclose(H.T @ H, np.eye(3), atol=1e-10)
    assert_allclose(H.T @ M @ H, np.diag(result.values), atol=rounding)
    assert np.all(np.diff(result.values) <= 0)
    assert result.history["trace"][-1] == pytest.approx(result.values.sum(), rel=1e-6)
    assert result.history["constraint"][-1] == pytest.approx(problem.residuals(H)[0])
    assert result.n_iter == len(result.history["seconds"]) == 5


def test_drops_the_constraint_where_groups_dominate():
    W, _, groups = make_fair_sbm(400, n_clusters=8, n_groups=3, random_state=seed_of(0))
    problem = GroupCut(SparseWeights(sparse.csr_array(W)), encode_groups(groups))
    result = solve(problem, 8)
    assert result.n_iter == 10
    assert result.status == "infeasible"
    assert result.history["constraint"][-1] == pytest.approx(problem.residuals(result.vectors)[0])
    assert result.history["constraint"][-1] > 0.5
    # A smaller cost than the least feasible one is bought with the constraint.
    assert (
        result.values.sum()
        > DenseEigh().solve(problem, 8, rng=np.random.RandomState(0)).values.sum()
    )


def test_shift_is_for_weights_that_may_be_indefinite():
    W, groups = kernel()
    factor = np.linalg.cholesky(W + 1e-9 * np.eye(len(W)))
    encoding = encode_groups(groups)
    factored = FactoredWeights(lambda rows: factor[rows], *factor.shape, factor.dtype)
    known = DenseWeights(W)
    known.is_psd = True
    plain = solve(GroupCut(DenseWeights(W), encoding), shift=0.0)
    for affinity in (factored, known):
        result = solve(GroupCut(affinity, encoding))
        assert_allclose(result.history["trace"], plain.history["trace"], rtol=1e-3)
    shifted = solve(cut(W, groups))
    assert_allclose(shifted.values, solve(cut(W, groups), shift=1.01).values)
    assert not np.allclose(shifted.values, plain.values, rtol=1e-3)


def test_rows_without_edges_stay_zero():
    W, groups = kernel()
    W[:, [3, 50]] = W[[3, 50]] = 0.0
    result = solve(cut(W, groups))
    assert_array_equal(result.vectors[[3, 50]], 0.0)
    kept = np.delete(np.arange(120), [3, 50])
    problem = cut(W[np.ix_(kept, kept)], groups[kept])
    assert result.history["constraint"][-1] == pytest.approx(
        problem.residuals(result.vectors[kept])[0]
    )


def test_dc_admm_says_that_it_misses_the_constraint():
    W, _, groups = make_fair_sbm(400, n_clusters=8, n_groups=3, random_state=seed_of(0))
    model = FairSpectralClustering(
        8, affinity="precomputed", solver="dc_admm", assign_labels="kmeans", random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="misses the group constraint"):
        model.fit(W, sensitive_features=groups)
    assert model.fairness_residual_ > 1e-2
    assert model.status_ == "infeasible"


def test_the_warning_of_an_embedding_points_at_the_line_of_the_user():
    warn.test_warnings_point_at_the_line_of_the_user(
        "misses the group constraint",
        lambda: family.graph_clusters(solver="dc_admm").fit(family.GRAPH, **family.BY_BLOCK),
    )
