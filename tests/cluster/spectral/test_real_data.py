"""Every eigen-solver on Adult: what the attributes say is so."""

import numpy as np
import pytest

from skfair.cluster import FairSpectralClustering
from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS
from tests.naive import spectral
from tests.solvers import test_every_solver_on_real_data as real

pytestmark = real.pytestmark


@real.each(EIGEN_SOLVERS)
def test_embeddings_are_what_they_are_said_to_be(solver):
    """Table 4 of fair_spectral_dc: cost, H'H - I and F'H, and the cut of the labels."""
    X, group = real.points(120)
    W = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))
    np.fill_diagonal(W, 0.0)
    model = FairSpectralClustering(3, affinity="precomputed", solver=solver, random_state=0)
    real.quietly(model, W, sensitive_features=group)
    H = np.sqrt(W.sum(axis=1))[:, None] * model.embedding_
    assert model.ncut_ == pytest.approx(spectral.normalised_cut(W, model.labels_), rel=1e-6)
    off = np.linalg.norm(H.T @ H - np.eye(3))
    assert model.orthogonality_residual_ == pytest.approx(off, abs=1e-6)
    missed = spectral.constraint_residual(W, [group], H)
    assert missed <= 1e-6 or model.fairness_residual_ > 1e-6
