"""Every solver of k-means on Adult: what the attributes say is so."""

import numpy as np
import pytest

from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.cluster.kmeans.solver import CLUSTERING_SOLVERS
from tests.solvers import test_every_solver_on_real_data as real

pytestmark = real.pytestmark
FRONT_SOLVERS = [name for name in CLUSTERING_SOLVERS if CLUSTERING_SOLVERS[name].has_front]


@real.each(CLUSTERING_SOLVERS)
def test_clusters_are_what_they_are_said_to_be(solver):
    X, group = real.points()
    # Some trade cost against balance and take no limit; they say so in an error.
    model = FairKMeans(3, solver=solver, n_init=1, random_state=0, min_balance=None)
    if solver == FairKMeans().solver:
        model.set_params(min_balance=0.8)
    real.quietly(model, X, sensitive_features=group)
    labels = model.labels_
    centers = model.cluster_centers_
    cost = ((X - centers[labels]) ** 2).sum()
    assert model.inertia_ == pytest.approx(cost, rel=1e-6)
    balances = []
    for k in range(3):
        counts = [(group[labels == k] == g).sum() for g in np.unique(group)]
        balances.append(min(counts) / max(counts) if max(counts) else np.nan)
    assert model.balance_ == pytest.approx(np.nanmin(balances), abs=1e-12)


@real.each(CLUSTERING_SOLVERS, FRONT_SOLVERS)
def test_points_of_fronts_are_what_they_are_said_to_be(solver):
    """Costs and balances of safairkm, and no point that another one dominates."""
    X, group = real.points()
    front = ParetoFairKMeans(3, balances=6, solver=solver, max_iter=50, random_state=0)
    real.quietly(front, X, sensitive_features=group)
    assert len(front.costs_) >= 1  # of some samples one clustering is best in both
    for labels, cost, balance in zip(front.labels_, front.costs_, front.balances_, strict=True):
        parts = [labels == k for k in range(3)]
        within = sum(((X[part] - X[part].mean(axis=0)) ** 2).sum() for part in parts if part.any())
        assert cost == pytest.approx(within, rel=1e-9)
        counts = [[(group[part] == g).sum() for g in np.unique(group)] for part in parts]
        assert balance == pytest.approx(min(min(c) / max(c) for c in counts), abs=1e-12)
    assert (np.diff(front.costs_) > 0).all()
    assert (np.diff(front.balances_) > 0).all()
