"""UFSC: the iterates of a twin with full matrices, and what each step minimises."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from skfair.cluster import FairSpectralClustering
from skfair.cluster.affinities import Precomputed
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.datasets import load_local
from skfair.groups.encoding import encode_groups
from skfair.papers import UFSC
from skfair.papers.fair_spectral_dc import ufsc as module
from tests.cluster.spectral.eigen.eigen_problems import random_weights, weights_of
from tests.naive import spectral
from tests.seeds import generator


def clustered(seed, n=40):
    """Weights of three clusters, which the groups follow in part."""
    rng = generator(seed)
    truth = np.arange(n) % 3
    W = random_weights(rng, n) * np.where(truth[:, None] == truth, 1.0, 0.1)
    return W, np.where(rng.random(n) < 0.4, truth % 2, rng.integers(0, 2, n))


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_twin(seed, is_sparse, monkeypatch):
    W, groups = clustered(seed)
    start = generator(seed).permutation(np.arange(40) % 3)
    monkeypatch.setattr(KMeans, "fit", lambda self, X: setattr(self, "labels_", start) or self)
    monkeypatch.setattr(module, "NUMBERS", 100)  # of 780
    problem = GroupCut(weights_of(W, is_sparse), encode_groups(groups))
    constants = {"alpha": 0.7, "beta": 2.0, "mu": 0.9, "gamma": 0.3}
    twin = spectral.ufsc(W, groups, start, **constants, n_rounds=6)
    solver = UFSC(**constants, max_iter=6, tol=1e-15)
    steps = list(solver.steps(problem, 3, np.random.RandomState(0)))
    last = None
    for step, (w, U, labels) in zip(steps, twin, strict=True):
        # Columns may be rotated against each other; what is learned and the labels may not.
        assert_allclose(step.vectors @ step.vectors.T, U @ U.T, atol=1e-10)
        assert_array_equal(step.pairs().labels, labels)
        if last is not None:
            moved = np.linalg.norm(w - last) / np.linalg.norm(last)
            assert step.columns["moved"] == pytest.approx(moved, abs=1e-10)
        last = w


@pytest.mark.parametrize("n", [60, 600])
def test_the_start_is_the_least_of_the_spectrum(n):
    """Below and above the size from which ARPACK is used."""
    W, groups = clustered(0, n)
    graph = module._Edges(GroupCut(weights_of(W), encode_groups(groups)))
    L = graph.laplacian(generator(0).random(graph.first.size))
    U = module._smallest(L, graph.basis, 4, np.random.RandomState(0))
    assert_allclose(U.T @ U, np.eye(4), atol=1e-10)
    assert_allclose(spectral.group_surplus(groups).T @ U, 0, atol=1e-9)
    Z = spectral.null_space(spectral.group_surplus(groups).T, rcond=1e-10)
    exact = np.linalg.eigvalsh(Z.T @ L.toarray() @ Z)[:4]
    assert np.trace(U.T @ L @ U) == pytest.approx(exact.sum(), rel=1e-8)


def test_learned_weights_are_optimal():
    """At the minimum the gradient is 0 where a weight is positive, and at least 0 elsewhere."""
    W, groups = clustered(1)
    graph = module._Edges(GroupCut(weights_of(W), encode_groups(groups)))
    solver = UFSC()
    w, _ = solver._learn(graph, graph.distances, None)
    inverse = 1 / graph.sums(w)
    slope = 2 * graph.distances + 2 * solver.beta * w
    slope -= solver.alpha * (inverse[graph.first] + inverse[graph.second])
    assert np.abs(slope[w > 0]).max() < 1e-2
    assert slope.min() > -1e-2


def test_its_own_constraint_is_kept():
    W, groups = clustered(2, 90)
    model = FairSpectralClustering(
        3,
        affinity=Precomputed(dtype="float64"),
        solver="ufsc",
        assign_labels="kmeans",
        random_state=0,
    )
    with pytest.warns(UserWarning, match="misses the group constraint"):
        model.fit(W, sensitive_features=groups)
    U = model.embedding_ * np.sqrt(W.sum(axis=1))[:, None]
    assert_allclose(spectral.group_surplus(groups).T @ U, 0, atol=1e-10)
    assert_allclose(U.T @ U, np.eye(3), atol=1e-10)
    assert model.labels_.max() < 3


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("SKFAIR_DATA"), reason="SKFAIR_DATA is not set")
@pytest.mark.parametrize("solver", ["ufsc", "ffsc"])
@pytest.mark.slow
def test_a_real_network(solver):
    """The signs of table 4 of fair_spectral_dc: FFSC has balanced labels, UFSC has not."""
    data = load_local("lastfm")
    model = FairSpectralClustering(
        25, affinity="precomputed", solver=solver, assign_labels="kmeans", random_state=0
    )
    with pytest.warns(UserWarning, match="misses the group constraint"):
        model.fit(data.adjacency, sensitive_features=data.sensitive_features)
    is_balanced = solver == "ffsc"
    assert (model.average_balance_ > 0.25) == is_balanced
    assert (model.average_balance_ < 0.03) == (not is_balanced)


def test_a_graph_without_edges_says_what_to_do():
    problem = GroupCut(weights_of(random_weights(generator(), 60)), encode_groups(["f", "m"] * 30))
    with pytest.raises(ValueError, match="gives no edge a weight. Pass a larger alpha"):
        UFSC(alpha=1e-9).solve(problem, 3, rng=np.random.RandomState(0))
