"""FairKMeans and ParetoFairKMeans with the solvers that do not work by prices."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from skfair import Sensitive
from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.datasets import make_grouped_blobs
from skfair.metrics import balance_score, kmeans_cost, nondominated
from skfair.papers import Smooth, Variational
from tests.cluster.test_fair_kmeans import segregated
from tests.older import needs_callbacks
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


@needs_callbacks
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
        (
            {"solver": "variational", "min_balance": 0.9},
            "by fairness_weight and cannot keep min_balance=0.9",
        ),
        (
            {"solver": "smooth", "min_balance": 0.9},
            "by n_kmeans_steps and n_swap_steps and cannot keep",
        ),
        ({"solver": "swap", "min_balance": None, "share_bounds": 0.8}, "knows no share_bounds"),
        (
            {"solver": "swap", "sensitive": Sensitive(crossed=False)},
            "needs a single attribute, got 2",
        ),
    ],
)
def test_limits_that_a_solver_cannot_keep(parameters, message):
    X, groups = segregated()
    table = np.column_stack((groups, np.tile(["o", "y"], 200)))
    groups = table if "sensitive" in parameters else groups
    with pytest.raises(ValueError, match=message):
        FairKMeans(4, **parameters).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("solver", ["variational", "smooth"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_default_limit_is_left_out_where_none_is_kept(solver):
    X, groups = segregated()
    usual = {"solver": solver, "random_state": 0, "max_iter": 20}
    with pytest.warns(UserWarning, match=f"{solver}.*keeps no limit, so min_balance=0.8 is ignor"):
        model = FairKMeans(4, **usual).fit(X, sensitive_features=groups)
    without = FairKMeans(4, min_balance=None, **usual)
    without.fit(X, sensitive_features=groups)
    assert np.array_equal(model.labels_, without.labels_)


def test_solvers_are_found_in_a_grid():
    X, groups = segregated()
    search = GridSearchCV(
        FairKMeans(3, min_balance=None, solver=Variational(), random_state=0),
        {"solver__fairness_weight": [0.0, 5.0]},
        cv=2,
    )
    search.fit(X, sensitive_features=groups)
    light, heavy = search.cv_results_["mean_test_score"]
    assert light != heavy
    assert search.best_estimator_.solver == Variational(
        **{name.removeprefix("solver__"): value for name, value in search.best_params_.items()}
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_more_runs_never_have_a_larger_objective():
    """The cheapest of them may be the least fair one."""
    X, groups = make_grouped_blobs(variant="two_equal")
    for seed in (0, 2):
        values = []
        for n_init in (1, 4):  # the first seeds are the same
            model = FairKMeans(4, min_balance=None, solver="variational", init="random")
            model.set_params(n_init=n_init, random_state=seed, max_iter=60)
            values.append(model.fit(X, sensitive_features=groups).history_["objective"][-1])
        assert values[1] <= values[0]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tol_is_heard_by_all_solvers():
    X, groups = segregated()
    rounds = [
        fit(X, groups, "variational", tol=tol, max_iter=500).n_iter_ for tol in (0.5, 1e-4, 1e-10)
    ]
    assert rounds[0] < rounds[1] < rounds[2]
    states = [fit(X, groups, "smooth", tol=tol, max_iter=60).status_ for tol in (10.0, 0.0)]
    assert states == ["converged", "max_iter"]


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
        ParetoFairKMeans(4, solver="swap", sensitive=Sensitive(crossed=False)).fit(
            X, sensitive_features=np.column_stack((groups, np.tile(["o", "y"], 200)))
        )


def test_a_stream_after_a_solver_without_limits_keeps_those_of_the_estimator():
    X, groups = segregated()
    model = FairKMeans(2, min_balance=0.8, solver=Smooth(5, 5), max_iter=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it ignores min_balance, or has not converged
        model.fit(X, sensitive_features=groups)
    model.partial_fit(X, sensitive_features=groups)
    model.partial_fit(X, sensitive_features=groups)
    assert (model.group_counts_.sum(axis=0) == 3 * np.unique(groups, return_counts=True)[1]).all()
    assert model.balance_ >= 0.8 * np.divide(*np.sort(np.unique(groups, return_counts=True)[1]))
