import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.frozen import FrozenEstimator

from skfair.cluster import FairAssignment, relocation
from skfair.cluster.relocation import relocated

PLACES = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


def blobs(n=400, seed=0):
    rng = np.random.default_rng(seed)
    own = rng.integers(0, 4, n)
    return PLACES[own] + rng.normal(size=(n, 2)), own


def cost(X, centers, weights):
    return weights @ ((X[:, None] - centers) ** 2).sum(axis=2).min(axis=1)


@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_centre_too_many_goes_where_one_is_missing(is_weighted):
    X, own = blobs()
    weights = np.where(own == 2, 3.0, 1.0) if is_weighted else np.ones(400)
    poor = np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 10.0], [10.0, 5.0]])
    found = relocated(X, poor, weights, np.random.RandomState(0))
    near = ((found[:, None] - PLACES) ** 2).sum(axis=2)
    assert sorted(near.argmin(axis=1)) == [0, 1, 2, 3]
    assert near.min(axis=1).max() < 0.1
    assert cost(X, found, weights) < 0.2 * cost(X, poor, weights)
    again = relocated(X, poor, weights, np.random.RandomState(0))
    assert np.array_equal(found, again)


def test_fresh_centres_count_if_exchanges_lead_nowhere(monkeypatch):
    monkeypatch.setattr(relocation, "_N_TRIES", 0)
    X, _ = blobs()
    poor = np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 10.0], [10.0, 5.0]])
    found = relocated(X, poor, np.ones(400), np.random.RandomState(0))
    assert found is not None
    assert cost(X, found, np.ones(400)) < 0.2 * cost(X, poor, np.ones(400))
    three = np.vstack([PLACES, PLACES + 1])
    assert relocated(X[:7], three, np.ones(7), np.random.RandomState(0)) is None  # 8 of 7 rows


def test_centres_that_cannot_be_better_stay():
    X, _ = blobs()
    rng = np.random.RandomState(0)
    assert relocated(X, PLACES, np.ones(400), rng) is None
    assert relocated(X, PLACES[:1], np.ones(400), rng) is None
    same = np.zeros((50, 2))
    assert relocated(same, np.zeros((2, 2)), np.ones(50), rng) is None


def test_fair_assignment_leaves_a_poor_start():
    X, own = blobs(6000)
    groups = np.where(np.random.default_rng(1).random(6000) < 0.3 + 0.1 * (own == 1), "a", "b")
    poor = KMeans(4, n_init=1, init=PLACES, random_state=0).fit(X)
    poor.cluster_centers_ = np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 10.0], [10.0, 5.0]])
    model = FairAssignment(FrozenEstimator(poor), min_balance=0.9, random_state=0)
    stay = model.fit(X, sensitive_features=groups).cost_
    moved = model.set_params(update_centers=True).fit(X, sensitive_features=groups)
    good = FairAssignment(
        KMeans(4, n_init=1, init=PLACES), min_balance=0.9, update_centers=True, random_state=0
    ).fit(X, sensitive_features=groups)
    assert moved.cost_ <= 1.005 * good.cost_ < 0.5 * stay
    overall = np.mean(groups == "a")
    shares = [np.mean(groups[moved.labels_ == k] == "a") for k in range(4)]
    assert min(shares) / (1 - min(shares)) >= 0.9 * overall / (1 - overall) - 1e-9
    assert moved.status_ == "converged"
