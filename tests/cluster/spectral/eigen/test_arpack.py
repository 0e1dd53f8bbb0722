"""ARPACK: when it gives up, and eigenvalues of zero."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from skfair.cluster.spectral.eigen.dense import DenseEigh
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.cluster.spectral.weights import DenseWeights, FactoredWeights
from skfair.groups.encoding import encode_groups
from skfair.solvers import Arpack
from tests.seeds import generator


def test_arpack_keeps_the_constraint_beyond_the_rank():
    """Eigenvectors of the eigenvalue 0 must not mix with what violates the constraint."""
    Z = generator(0).random((300, 3))
    codes = [generator(1).integers(0, 3, 300)]
    problem = GroupCut(
        FactoredWeights(lambda rows: Z[rows], 300, 3, np.float64), encode_groups(codes[0])
    )
    result = Arpack().solve(problem, 3, rng=np.random.RandomState(0))
    assert problem.residuals(result.vectors)[0] < 1e-8


@pytest.mark.parametrize("seed", range(12))
def test_no_copy_of_an_eigenvalue_is_missed_in_a_dense_matrix_of_parts(seed):
    rng = generator(seed)
    X = rng.normal(size=(120, 3)) + 6 * rng.integers(0, 4, 120)[:, None]
    W = rbf_kernel(X, gamma=0.3)
    W[W < 0.2] = 0
    problem = GroupCut(DenseWeights(W), encode_groups(rng.integers(0, 2, 120)))
    found, exact = (
        solver.solve(problem, 5, rng=np.random.RandomState(seed))
        for solver in (Arpack(), DenseEigh())
    )
    assert found.values == pytest.approx(exact.values, abs=1e-8)
