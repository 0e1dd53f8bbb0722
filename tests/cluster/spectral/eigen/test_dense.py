"""The direct solver where LAPACK needs help."""

import numpy as np
import pytest

from skfair.cluster.spectral.group_cut import GroupCut
from skfair.groups.encoding import encode_groups
from skfair.solvers import DenseEigh
from tests.cluster.spectral.eigen.eigen_problems import weights_of
from tests.seeds import generator


def test_equal_eigenvalues_are_all_returned():
    """Nearly a multiple of the identity: LAPACK's subset of eigenvalues comes back empty."""
    rng = generator(40)
    W = np.eye(80) + 1e-9 * np.abs(rng.normal(size=(80, 80)))
    W = (W + W.T) / 2
    problem = GroupCut(weights_of(W), encode_groups(np.arange(80) % 2))
    result = DenseEigh().solve(problem, 1, rng=np.random.RandomState(0))
    assert result.vectors.shape == (80, 1)
    assert result.values == pytest.approx(1.0, abs=1e-6)
