"""FFSC: the moves of a twin that recomputes the objective, and what its term for groups does."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from skfair.cluster import FairSpectralClustering
from skfair.cluster.affinities import Landmark
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.groups.encoding import encode_groups
from skfair.metrics import balance_score
from skfair.papers import FFSC
from tests.cluster.spectral.eigen.eigen_problems import random_weights, weights_of
from tests.naive import spectral
from tests.seeds import generator


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))])
def test_equals_the_twin(seed, is_sparse):
    rng = generator(seed)
    n, k, weight = 24, 3, 0.3 + seed
    W, groups = random_weights(rng, n) + np.diag(rng.random(n)), rng.integers(0, 3, n)
    labels, path = spectral.ffsc(W, groups, k, weight, np.random.RandomState(seed))
    problem = GroupCut(weights_of(W, is_sparse), encode_groups(groups))
    solver = FFSC(fairness_weight=weight)
    result = solver.solve(problem, k, rng=np.random.RandomState(seed))
    assert result.n_iter == len(path)
    assert_allclose(result.history["objective"], path, rtol=1e-10)
    # Clusters are numbered by how much of their weights stay inside.
    assert_array_equal(result.labels[:, None] == result.labels, labels[:, None] == labels)
    cut = spectral.normalised_cut(W, labels)
    assert k - result.values.sum() == pytest.approx(cut)
    assert k - result.history["trace"][-1] == pytest.approx(cut)


def test_columns_are_the_indicators_of_the_labels():
    rng = generator(0)
    W, groups = random_weights(rng, 60), rng.integers(0, 2, 60)
    problem = GroupCut(weights_of(W), encode_groups(groups))
    result = FFSC().solve(problem, 4, rng=np.random.RandomState(0))
    assert_allclose(result.vectors, spectral.indicators(W, result.labels), atol=1e-12)


def test_a_larger_weight_brings_balance_and_costs_cut():
    rng, truth = generator(0), np.arange(120) % 3
    W = random_weights(rng, 120) * np.where(truth[:, None] == truth, 1.0, 0.05)
    groups = np.where(rng.random(120) < 0.8, truth, rng.integers(0, 3, 120))
    models = [
        FairSpectralClustering(
            3,
            affinity="precomputed",
            solver=FFSC(fairness_weight=weight),
            assign_labels="kmeans",
            random_state=0,
        )
        for weight in (1e-3, 10.0)
    ]
    for model in models:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(sparse.csr_array(W), sensitive_features=groups)
        said = [w for w in caught if "misses the group constraint" in str(w.message)]
        assert said or model is models[1]  # a large weight may bring it within the tolerance
    free, fair = models
    assert fair.average_balance_ > free.average_balance_ + 0.1
    assert fair.ncut_ > free.ncut_
    assert fair.balance_ == balance_score(fair.labels_, sensitive_features=groups)


@pytest.mark.filterwarnings("ignore:.*misses the group constraint")
def test_labels_of_the_solver_stay_and_fair_labels_keep_the_limit():
    rng = generator(1)
    W, groups = random_weights(rng, 90), rng.integers(0, 2, 90)
    problem = GroupCut(weights_of(W.astype(np.float32)), encode_groups(groups))
    params = {"affinity": "precomputed", "solver": "ffsc", "random_state": 3}
    plain = FairSpectralClustering(3, assign_labels="kmeans", **params)
    plain.fit(W, sensitive_features=groups)
    found = FFSC().solve(problem, 3, rng=np.random.RandomState(3))
    assert_array_equal(plain.labels_, found.labels)
    fair = FairSpectralClustering(3, min_balance=0.95, **params)
    fair.fit(W, sensitive_features=groups)
    assert fair.relative_balance_ >= 0.95 - 1e-12


def test_factors_are_multiplied_out():
    X = generator(0).normal(size=(80, 2))
    affinity = Landmark(40, n_neighbors=None)
    model = FairSpectralClustering(3, affinity=affinity, solver="ffsc", random_state=0)
    with pytest.warns(UserWarning, match="misses the group constraint"):
        model.fit(X, sensitive_features=X[:, 0] > 0)  # groups lie apart, which ffsc does not mend
    assert len(np.unique(model.labels_)) == 3
