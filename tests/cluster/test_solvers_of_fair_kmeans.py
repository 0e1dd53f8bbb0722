"""FairKMeans and ParetoFairKMeans with the solvers that do not work by prices."""

import numpy as np
import pytest

from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.metrics import balance_score, kmeans_cost, nondominated
from skfair.solvers import Smooth, Variational
from tests.cluster.test_fair_kmeans import segregated
from tests.test_base import Recorder

BY_WEIGHT = {
    "variational": {"min_balance": None},
    "smooth": {"min_balance": None, "solver": Smooth(5, 5), "max_iter": 60},
}
ALL = {"swap": {"tol": 0.01}, **BY_WEIGHT}
each_solver = pytest.mark.parametrize("solver", ALL)


def fit(X, groups, name, **parameters):
    parameters = {"n_clusters": 4, "random_state": 0, "solver": name} | ALL[name] | parameters
    return FairKMeans(**parameters).fit(X, sensitive_features=groups)


@each_solver
def test_attributes_are_true(solver):
    X, groups = segregated()
    model = fit(X, groups, solver)
    assert model.inertia_ == pytest.approx(kmeans_cost(X, model.labels_))
    assert model.balance_ == balance_score(model.labels_, sensitive_features=groups, n_clusters=4)
    for k in range(4):
        centre = X[model.labels_ == k].mean(axis=0)
        assert model.cluster_centers_[k] == pytest.approx(centre, abs=1e-9)
    assert model.lower_bound_ == 0
    assert model.n_iter_ >= 1
    assert np.array_equal(model.labels_, fit(X, groups, solver).labels_)


def test_swaps_keep_the_limit_and_prices_are_cheaper():
    X, groups = segregated()
    attained = balance_score(np.zeros(400), sensitive_features=groups)
    for share in (0.5, 0.9):
        swap = fit(X, groups, "swap", min_balance=share)
        assert swap.balance_ >= share * attained * (1 - 1e-9)
        prices = FairKMeans(4, min_balance=share, random_state=0).fit(X, sensitive_features=groups)
        assert prices.inertia_ <= swap.inertia_ * 1.01
    absolute = fit(X, groups, "swap", min_balance=0.5, relative_balance=False)
    assert absolute.balance_ >= 0.5


@pytest.mark.parametrize("solver", BY_WEIGHT)
def test_more_weight_on_fairness_is_more_balanced(solver):
    X, groups = segregated(1000)
    light, heavy = (
        {"variational": [Variational(weight) for weight in (0.01, 3.0)]}
        | {"smooth": [Smooth(n_kmeans, 10 - n_kmeans) for n_kmeans in (10, 2)]}
    )[solver]
    one, other = (fit(X, groups, solver, solver=weighted) for weighted in (light, heavy))
    assert other.balance_ > one.balance_ + 0.2
    assert other.inertia_ > one.inertia_


def test_offsets_of_the_variational_method_predict():
    X, groups = segregated(1000)
    model = fit(X, groups, "variational")
    again = model.predict(X, sensitive_features=groups)
    assert np.mean(again == model.labels_) > 0.9
    assert np.abs(model.prices_).max() > 0


@each_solver
def test_monitors_see_centres(solver):
    X, groups = segregated()
    recorder = Recorder()
    recorder.on_fit_task_end = lambda estimator, context, *, X=None, fitted_estimator=None: (
        recorder.scores.append(fitted_estimator.score(X)) if fitted_estimator is not None else None
    )
    model = FairKMeans(4, **{"solver": solver, "random_state": 0} | ALL[solver])
    model.set_callbacks(recorder).fit(X, sensitive_features=groups)
    assert len(recorder.scores) >= 1
    assert max(recorder.scores) < 0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "variational"}, "by fairness_weight and cannot keep min_balance=0.8"),
        ({"solver": "smooth"}, "by n_kmeans_steps and n_swap_steps and cannot keep"),
        ({"solver": "swap", "min_balance": None, "share_bounds": 0.8}, "knows no share_bounds"),
        ({"solver": "swap", "intersectional": False}, "needs a single attribute, got 2"),
    ],
)
def test_limits_that_a_solver_cannot_keep(parameters, message):
    X, groups = segregated()
    table = np.column_stack((groups, np.tile(["o", "y"], 200)))
    groups = table if "intersectional" in parameters else groups
    with pytest.raises(ValueError, match=message):
        FairKMeans(4, **parameters).fit(X, sensitive_features=groups)


def test_swaps_know_no_weights():
    X, groups = segregated()
    weights = np.arange(1.0, 401)
    for model in (FairKMeans(4, solver="swap"), ParetoFairKMeans(4, solver="swap")):
        with pytest.raises(ValueError, match=r"sample_weight. Use solver='prices'"):
            model.fit(X, sensitive_features=groups, sample_weight=weights)


def test_the_front_by_swaps():
    X, groups = segregated()
    front = ParetoFairKMeans(4, solver="swap", max_iter=40, random_state=0)
    front.fit(X, sensitive_features=groups)
    assert front.costs_.size > 10
    assert nondominated(front.costs_, front.balances_).all()
    for labels, cost in zip(front.labels_, front.costs_, strict=True):
        assert cost == pytest.approx(kmeans_cost(X, labels))
    model = front.select(min_balance=0.3)
    assert model.predict(X).shape == (400,)
    by_prices = ParetoFairKMeans(4, random_state=0).fit(X, sensitive_features=groups)
    reference = 2 * by_prices.costs_[0]
    assert by_prices.hypervolume(reference) > front.hypervolume(reference) - 0.02
    with pytest.raises(ValueError, match="needs a single attribute"):
        ParetoFairKMeans(4, solver="swap", intersectional=False).fit(
            X, sensitive_features=np.column_stack((groups, np.tile(["o", "y"], 200)))
        )
