"""ARPACK: when it gives up, and eigenvalues of zero."""

import numpy as np
import pytest

from skfair.exceptions import SolverError
from skfair.groups.encoding import encode_groups
from skfair.problems.cut.group_cut import GroupCut
from skfair.problems.cut.weights import FactoredWeights
from skfair.solvers import Arpack
from tests.eigen_problems import equal_parts, run, weights_of


def test_arpack_says_that_max_iter_was_too_small():
    W, attributes = equal_parts(1, 300)
    with pytest.raises(SolverError, match="in 1 iterations.*larger max_iter"):
        run("arpack", weights_of(W), attributes, 5, max_iter=1)


def test_arpack_keeps_the_constraint_beyond_the_rank():
    """Eigenvectors of the eigenvalue 0 must not mix with what violates the constraint."""
    Z = np.random.default_rng(0).random((300, 3))
    codes = [np.random.default_rng(1).integers(0, 3, 300)]
    problem = GroupCut(
        FactoredWeights(lambda rows: Z[rows], 300, 3, np.float64), encode_groups(codes[0])
    )
    result = Arpack().solve(problem, 3, rng=np.random.RandomState(0))
    assert problem.residuals(result.vectors)[0] < 1e-8
