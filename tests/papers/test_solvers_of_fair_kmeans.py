"""FairKMeans and ParetoFairKMeans with the solvers that do not work by prices."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.cluster.kmeans.solver import RunSettings
from skfair.metrics import balance_score, kmeans_cost, nondominated
from skfair.papers import Smooth, Swap, Variational
from tests.cluster.kmeans.test_fair_kmeans import segregated, towns
from tests.naive.swap import front_course
from tests.older import needs_callbacks
from tests.papers.clustering_problems import free_problem
from tests.seeds import generator
from tests.test_base import Recorder

pytestmark = pytest.mark.filterwarnings("ignore:The solver stopped")
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
    X, groups, _ = towns()
    for share in (0.5, 0.9):
        swap = fit(X, groups, "swap", min_balance=share)
        assert swap.balance_ >= share * (1 - 1e-9)  # as many women as men
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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tol_is_heard_by_all_solvers():
    X, groups = segregated()
    rounds = [
        fit(X, groups, "variational", tol=tol, max_iter=500).n_iter_ for tol in (0.5, 1e-4, 1e-10)
    ]
    assert rounds[0] < rounds[1] < rounds[2]
    states = [fit(X, groups, "smooth", tol=tol, max_iter=60).status_ for tol in (10.0, 0.0)]
    assert states == ["converged", "max_iter"]


def test_the_front_by_swaps():
    X, groups = segregated()
    front = ParetoFairKMeans(4, solver="swap", max_iter=40, random_state=0)
    front.fit(X, sensitive_features=groups)
    assert front.costs_.size > 10
    model = front.select(min_balance=0.3)
    assert model.predict(X).shape == (400,)
    by_prices = ParetoFairKMeans(4, random_state=0).fit(X, sensitive_features=groups)
    reference = 2 * by_prices.costs_[0]
    assert by_prices.hypervolume(reference) > front.hypervolume(reference) - 0.02


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


def test_limits_that_swaps_miss_by_less_than_a_row_are_said():
    X, sex = generator().normal(size=(80, 3)), np.arange(80) < 39
    model = FairKMeans(30, min_balance=1.0, solver="swap", random_state=0)
    with pytest.warns(ConvergenceWarning, match="limits are violated by less than a row"):
        model.fit(X, sensitive_features=sex)
    assert model.status_ == "infeasible"


@pytest.mark.parametrize("solver", [Variational(1.0), Smooth(5, 5, batch_size=None)])
def test_the_best_of_several_starts_has_the_least_objective(solver):
    """The start at the two groups is the cheaper one, and its clusters are not balanced."""
    rng = generator(0)
    codes = np.repeat([0, 1], 60)
    X = np.column_stack((6.0 * codes - 3, rng.normal(size=120)))
    problem = free_problem(X, codes, 2, 2)
    apart, mixed = (
        problem.units.inwards(np.array(c)) for c in ([[-3.0, 0], [3, 0]], [[0, -1.0], [0, 1]])
    )

    def clustered(*starts):
        return solver.cluster(problem, starts, RunSettings(1, np.random.RandomState(0), tol=0.0))

    def objective(clustering):
        """What the solver weighs; of smooth, in plain numpy at labels that are not soft."""
        if isinstance(solver, Variational):
            return clustering.history["objective"][-1]
        balance = balance_score(clustering.labels, sensitive_features=codes, n_clusters=2)
        cost = kmeans_cost(X, clustering.labels) / ((X - X.mean(axis=0)) ** 2).sum()
        with np.errstate(divide="ignore"):
            return (cost - np.log(balance)) / 2

    cheap, fair = clustered(apart), clustered(mixed)
    assert cheap.cost < fair.cost
    assert objective(fair) < objective(cheap)
    for starts in ((apart, mixed), (mixed, apart)):
        best = clustered(*starts)
        assert np.array_equal(best.labels, fair.labels)
        assert objective(best) == pytest.approx(best.objective)


def test_the_variational_front_holds_a_run_per_weight():
    X, groups = segregated()
    weights = (0.0, 0.3, 3.0)
    front = ParetoFairKMeans(
        3, solver=Variational(front_weights=weights), n_init=1, max_iter=200, random_state=0
    ).fit(X, sensitive_features=groups)
    # Its points are runs of the one-point estimator from the same centres, without the dominated.
    start = ParetoFairKMeans(3, solver=Variational(front_weights=(0.0,)), n_init=1, random_state=0)
    plain = start.fit(X, sensitive_features=groups)
    assert front.costs_[0] == pytest.approx(plain.costs_[0])

    assert 2 <= front.costs_.size <= 2 * len(weights)
    assert nondominated(front.costs_, front.balances_).all()
    for labels, cost, balance in zip(front.labels_, front.costs_, front.balances_, strict=True):
        assert cost == pytest.approx(kmeans_cost(X, labels))
        assert balance == balance_score(labels, sensitive_features=groups, n_clusters=3)
    model = front.select(index=-1)
    assert np.mean(model.predict(X, sensitive_features=groups) == model.labels_) > 0.9


def test_more_weights_make_a_better_variational_front():
    X, groups = segregated()
    weights = [(0.0,), (0.0, 0.1, 1.0), (0.0, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0)]
    volumes = [
        ParetoFairKMeans(3, solver=Variational(front_weights=w), random_state=0)
        .fit(X, sensitive_features=groups)
        .hypervolume()
        for w in weights
    ]
    assert volumes == sorted(volumes)
    assert volumes[-1] > volumes[0]


@pytest.mark.parametrize(
    "options",
    [
        {"pairs": [(30, 0), (4, 4)]},
        {"n_starts": 6},
        {"max_points": 5},
        {"swap_target": "global"},
        {"swap_candidates": 3},
    ],
)
def test_all_options_of_algorithm_3(options):
    """A front of the estimator is that of the algorithm with the same options and seed."""
    X, groups = segregated(levels=("a", "b"))
    codes = np.unique(groups, return_inverse=True)[1]
    front, usual = (
        ParetoFairKMeans(3, solver=Swap(**chosen), max_iter=20, random_state=0).fit(
            X, sensitive_features=groups
        )
        for chosen in (options, {})
    )
    scaled = (X - X.mean(axis=0)) / np.sqrt(X.var(axis=0).mean())
    alone = Swap(**options).search(scaled, codes, 3, 2, max_iter=20, random_state=0)
    assert front.balances_ == pytest.approx(alone.balances)
    assert np.mean(front.labels_ == alone.labels) > 0.99
    assert not np.array_equal(front.costs_, usual.costs_)
    assert front.costs_.size <= options.get("max_points", 200)


@pytest.mark.parametrize("updates", ["batch", "row"])
def test_the_course_of_algorithm_3_from_starts_of_ones_own(updates):
    """Each iteration against the paper's steps in plain numpy, with the same random numbers."""
    rng = generator(3)
    n, n_clusters, n_iter, pairs = 80, 3, 4, ((6, 0), (4, 2), (2, 3))
    X, groups = rng.normal(size=(n, 2)) + rng.integers(0, 3, (n, 1)), rng.permutation(n) % 2
    starts = rng.integers(0, n_clusters, (4, n))
    solver = Swap(pairs=pairs, starts=starts, updates=updates)
    front = ParetoFairKMeans(n_clusters, solver=solver, max_iter=n_iter, random_state=7)
    front.fit(X, sensitive_features=groups)

    draw = np.random.default_rng(np.random.RandomState(7).randint(2**31 - 1))  # as the solver does
    shuffled = draw.permutation(n)
    rows = shuffled[np.argsort(groups[shuffled], kind="stable")]  # one group after the other

    def of_iteration(n_parents):
        batches = draw.integers(n, size=(n_parents, 12), dtype=np.int32)
        return batches, draw.random((n_parents, 3, 2)), 1

    data = X[rows], groups[rows], starts[:, rows], n_clusters, 2, pairs, [of_iteration] * n_iter
    course = front_course(*data, at_once=1 if updates == "row" else None)
    lowest = [n * points[0][0] for points in course[1:]]
    assert front.history_["cost"] == pytest.approx(lowest, rel=1e-9)
    assert front.history_["balance"] == pytest.approx([points[-1][1] for points in course[1:]])
    assert front.history_["n_points"].tolist() == [len(points) for points in course[1:]]
    bred = [len(pairs) * len(points) for points in course[:-1]]
    assert front.history_["n_children"].tolist() == bred
    assert front.costs_ == pytest.approx([n * cost for cost, _, _ in course[-1]], rel=1e-9)
    labels = [points[2][np.argsort(rows)].tolist() for points in course[-1]]
    assert front.labels_.tolist() == labels


def test_starts_of_ones_own_are_the_front_where_nothing_improves_them():
    """Labellings far apart in cost and balance stay, in the order of the rows."""
    X = np.repeat([[0.0], [10.0]], 40, axis=0)
    groups = np.repeat([0, 1, 0, 1], [30, 10, 10, 30])
    plain, fair = np.repeat([0, 1], 40), np.tile([0, 1], 40)
    solver = Swap(starts=np.stack([fair, plain]))
    front = ParetoFairKMeans(2, solver=solver, max_iter=1, random_state=0)
    front.fit(X, sensitive_features=groups)
    assert front.labels_[0].tolist() == plain.tolist()
    assert front.balances_[-1] >= balance_score(fair, sensitive_features=groups)


def test_the_solver_of_the_paper_starts_at_random_and_moves_centres_row_by_row():
    X, groups = segregated(120, levels=("a", "b"))
    solver = Swap.paper()
    assert (solver.updates, solver.starts, solver.n_starts) == ("row", "random", 30)
    front = ParetoFairKMeans(3, solver=solver, max_iter=40, random_state=0)
    front.fit(X, sensitive_features=groups)
    assert (np.diff(front.history_["hypervolume"]) >= -1e-12).all()  # nothing is thinned
    assert nondominated(front.costs_, front.balances_).all()
    model = FairKMeans(3, solver=solver, min_balance=0.5, random_state=0)
    again = FairKMeans(3, solver=solver, min_balance=0.5, random_state=0)
    labels = model.fit(X, sensitive_features=groups).labels_
    assert model.balance_ >= 0.5 * front.data_balance_ - 1e-9
    assert labels.tolist() == again.fit(X, sensitive_features=groups).labels_.tolist()
