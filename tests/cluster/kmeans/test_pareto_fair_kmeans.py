import os
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

from skfair import Sensitive
from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.cluster.kmeans.solver import CLUSTERING_SOLVERS
from skfair.datasets import load_local, make_grouped_blobs
from skfair.metrics import balance_score, kmeans_cost, nondominated
from tests.cluster.kmeans.test_fair_kmeans import segregated
from tests.older import needs_callbacks
from tests.prototypes import QuietCallback
from tests.registries import local_datasets
from tests.seeds import generator

with_fronts = [name for name in CLUSTERING_SOLVERS if CLUSTERING_SOLVERS[name].has_front]
each_solver = pytest.mark.parametrize("solver", with_fronts)
COMPILED = (np.float32, "swap")


@pytest.fixture(scope="module")
def fitted():
    X, groups = segregated(400, levels=("a", "b", "c"))
    front = ParetoFairKMeans(4, balances=15, random_state=0).fit(X, sensitive_features=groups)
    return X, groups, front


def test_the_front_is_a_front_and_its_numbers_are_true(fitted):
    X, groups, front = fitted
    m = front.costs_.size
    assert m > 5
    assert front.labels_.shape == (m, 400)
    assert front.labels_.dtype == np.uint8
    assert front.centers_.shape == (m, 4, 3)
    assert (np.diff(front.costs_) > 0).all()
    assert (np.diff(front.balances_) > 0).all()
    assert nondominated(front.costs_, front.balances_).all()
    attained = balance_score(np.zeros(400), sensitive_features=groups)
    assert front.data_balance_ == attained
    for i in range(m):
        labels = front.labels_[i]
        assert front.costs_[i] == pytest.approx(kmeans_cost(X, labels))
        assert front.balances_[i] == balance_score(labels, sensitive_features=groups, n_clusters=4)
        assert front.relative_balances_[i] == pytest.approx(front.balances_[i] / attained)
        for k in range(4):
            assert front.centers_[i, k] == pytest.approx(X[labels == k].mean(axis=0), abs=1e-9)


def test_a_point_of_the_front_is_a_fitted_model(fitted):
    X, groups, front = fitted
    for share in (0.0, 0.5, 0.9):
        model = front.select(min_balance=share)
        relative = balance_score(model.labels_, sensitive_features=groups, relative=True)
        assert relative >= share - 1e-9
        cheaper = front.costs_[front.relative_balances_ >= share - 1e-12].min()
        assert model.inertia_ == cheaper
        assert model.predict(X).shape == (400,)
        again = model.predict(X, sensitive_features=groups)
        assert np.mean(again == model.labels_) > 0.8
        assert (
            balance_score(
                model.assign(X, sensitive_features=groups), sensitive_features=groups, relative=True
            )
            >= model.min_balance - 1e-6
        )
    knee = front.select(index=front.knee_)
    assert knee.inertia_ == front.costs_[front.knee_]
    x = (front.costs_ - front.costs_[0]) / np.ptp(front.costs_)
    y = (front.balances_ - front.balances_[0]) / np.ptp(front.balances_)
    assert (y - x).max() == (y - x)[front.knee_]
    with pytest.raises(ValueError, match="No point of the front has 1"):
        front.select(min_balance=1.0)


def test_hypervolume(fitted):
    _, _, front = fitted
    box = front.costs_[0] * front.data_balance_
    steps = np.append(front.costs_[1:], 2 * front.costs_[0])
    area = (np.minimum(steps, 2 * front.costs_[0]) - front.costs_).clip(0) @ front.balances_
    assert front.hypervolume() == pytest.approx(area / box)
    assert 0 < front.hypervolume(ref_cost=1.5 * front.costs_[0]) < front.hypervolume()


@pytest.mark.parametrize(
    ("dtype", "solver"),
    [
        # Swaps of single precision are compiled, which takes eight seconds.
        pytest.param(dtype, name, marks=pytest.mark.slow if (dtype, name) == COMPILED else ())
        for dtype in (np.float32, np.float64)
        for name in with_fronts
    ],
)
def test_a_cost_of_0_is_not_less_by_rounding(dtype, solver):
    inspection = pytest.importorskip("skfair.inspection")
    groups = np.tile(["f", "m"], 60)
    for seed in range(2):
        places = generator(seed).normal(size=(3, 3)) + 1
        X = np.repeat(places, 40, axis=0).astype(dtype)
        front = ParetoFairKMeans(3, balances=3, solver=solver, n_init=1, max_iter=5)
        front.set_params(random_state=0).fit(X, sensitive_features=groups)
        assert (front.costs_ >= 0).all()
        inspection.FairnessFrontDisplay.from_clusterings(front.costs_, front.balances_)


@pytest.mark.parametrize("variant", ["equal", "unequal", "two_equal", "two_unequal"])
def test_the_papers_sets(variant):
    """Two clusters, groups that live apart: the front runs from one end to the other."""
    X, groups = make_grouped_blobs(variant=variant, random_state=1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "At every point .* One of 2 clusters", UserWarning)
        front = ParetoFairKMeans(2, balances=11, random_state=0).fit(X, sensitive_features=groups)
    assert front.relative_balances_[-1] > 0.98
    assert front.costs_[0] == pytest.approx(KMeans(2, n_init=5, random_state=0).fit(X).inertia_)
    model = FairKMeans(2, min_balance=0.9, size_bounds=(0.01, 1.0), random_state=0)
    model.fit(X, sensitive_features=groups)
    assert model.balance_ >= 0.9 * front.data_balance_ * (1 - 1e-9)


def test_large_data_are_swept_on_a_sample(monkeypatch):
    X, groups = segregated(900)
    monkeypatch.setattr("skfair.cluster.kmeans.prices.LARGE", 600)
    monkeypatch.setattr("skfair.cluster.kmeans.prices.SAMPLE", 300)
    front = ParetoFairKMeans(3, balances=[0.5, 0.9], n_init=1, random_state=0)
    front.fit(X, sensitive_features=groups)
    assert front.labels_.shape[1] == 900
    assert front.relative_balances_[-1] > 0.9
    assert balance_score(front.labels_[-1], sensitive_features=groups) == front.balances_[-1]


def test_attributes_of_different_balance_make_a_front_of_shares():
    """The rarer attribute decides the plain balances, which then need not increase."""
    rng = generator(0)
    X = rng.normal(size=(300, 3))
    rare = rng.random(300) < 0.1 + 0.1 * (X[:, 0] > 0)
    even = X[:, 1] + rng.normal(size=300) > 0
    groups = pd.DataFrame({"rare": rare, "even": even})
    front = ParetoFairKMeans(
        4, balances=9, sensitive=Sensitive(intersectional=False), random_state=0
    )
    front.fit(X, sensitive_features=groups)
    shares, costs = front.relative_balances_, front.costs_
    assert (np.diff(shares) > 0).all()
    assert (np.diff(costs) > 0).all()
    widths = np.diff(np.append(np.minimum(costs, 2 * costs[0]), 2 * costs[0]))
    assert front.hypervolume() == pytest.approx(float(widths @ shares) / costs[0])
    gained = (shares - shares[0]) / (shares[-1] - shares[0])
    assert front.knee_ == np.argmax(gained - (costs - costs[0]) / (costs[-1] - costs[0]))


@needs_callbacks
def test_callbacks_may_stop_the_sweep():
    class Stop(QuietCallback):
        def on_fit_task_end(self, estimator, context):
            return context.task_name == "iteration" and context.task_id == 3

    X, groups = segregated()
    front = ParetoFairKMeans(3, random_state=0).set_callbacks(Stop())
    front.fit(X, sensitive_features=groups)
    assert 1 <= front.costs_.size <= 4


def test_a_front_of_one_group_is_plain_kmeans():
    X, _ = segregated()
    front = ParetoFairKMeans(3, balances=3, random_state=0)
    with pytest.warns(UserWarning, match="single group"):
        front.fit(X, sensitive_features=["a"] * 400)
    assert front.costs_.size == 1
    assert front.knee_ == 0


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("SKFAIR_DATA"), reason="SKFAIR_DATA is not set")
def test_the_front_of_real_data_is_nearly_complete():
    assert "safairkm_bank" in local_datasets()
    data = load_local("safairkm_bank")
    rows = np.random.RandomState(1).choice(len(data.frame), 2000, replace=False)
    X = data.frame.drop(columns="demograph").to_numpy(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    front = ParetoFairKMeans(5, balances=15, random_state=0).fit(
        X[rows], sensitive_features=data.frame["demograph"].to_numpy()[rows]
    )
    assert front.hypervolume() > 0.97
