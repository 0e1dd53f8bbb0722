"""The contract of every clustering solver. New solvers are found through the registry."""

import itertools
from dataclasses import dataclass, fields
from functools import cache

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from skfair import Sensitive
from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.cluster.assignment.counts import Constraints, balance_constraints, share_constraints
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.solver import (
    CLUSTERING_SOLVERS,
    Clustering,
    ClusteringSolver,
    RunSettings,
    clustering_solver,
    go_on,
    of_labels,
)
from skfair.groups.encoding import encode_groups
from skfair.metrics import balance_score, kmeans_cost, nondominated
from tests.public import public_objects
from tests.registries import SOLVERS
from tests.seeds import generator

each_solver = pytest.mark.parametrize("name", list(CLUSTERING_SOLVERS))
MIN_BALANCE = 0.6
BALANCED = [name for name in CLUSTERING_SOLVERS if CLUSTERING_SOLVERS[name].keeps_balance]
WEIGHTED = [name for name in CLUSTERING_SOLVERS if CLUSTERING_SOLVERS[name].takes_weights]


def people(n=120, seed=0):
    """Two clumps that differ in their groups."""
    rng = generator(seed)
    sex = rng.integers(0, 2, n)
    return rng.normal(size=(n, 2)) + 1.5 * sex[:, None], sex


def problem_of(solver, X, sex, n_clusters=3, weights=None):
    """A problem with the limits that the solver keeps."""
    groups = encode_groups(sex)
    constraints = (
        balance_constraints(groups, np.array([MIN_BALANCE])) if solver.keeps_balance else None
    )
    constraints = Constraints.none(groups.n_groups) if constraints is None else constraints
    return RepresentationProblem(X, groups, constraints, n_clusters, weights)


def run(solver, problem, start=None, *, seed=0, max_iter=40, callback=go_on):
    start = problem.scaled(np.arange(problem.n_clusters)) if start is None else start
    settings = RunSettings(max_iter, np.random.RandomState(seed), tol=1e-3, callback=callback)
    return solver.run(problem, start, settings)


def check_clustering(solver, problem, X, sex, clustering):
    """Compare a clustering with numpy and with the metrics; raise if it is not what it says."""
    k = problem.n_clusters
    assert isinstance(clustering, Clustering)
    assert clustering.labels.shape == (len(X),)
    assert set(np.unique(clustering.labels)) <= set(range(k))
    assert clustering.status in ("converged", "max_iter", "stopped", "infeasible")
    scale = problem.units.scale
    labels = clustering.labels
    assert clustering.cost * scale**2 == pytest.approx(kmeans_cost(X, labels, mean=True))
    for c in np.unique(labels):
        center = clustering.centers[c] * scale + problem.units.mean
        assert center == pytest.approx(X[labels == c].mean(axis=0))
    assert clustering.lower_bound <= clustering.cost_at_bound * (1 + 1e-9)
    assert clustering.multipliers.shape == (k, problem.constraints.slack.shape[1])
    assert len({len(column) for column in clustering.history.values()}) == 1
    if solver.keeps_balance:
        balance = balance_score(labels, sensitive_features=sex, n_clusters=k)
        assert balance >= MIN_BALANCE
        assert clustering.violation <= 1e-9


@each_solver
def test_names_and_presets(name):
    solver = clustering_solver(name)
    assert solver.name == name
    assert type(solver) is CLUSTERING_SOLVERS[name]
    assert any(thing is type(solver) for _, thing in public_objects())
    assert clustering_solver(solver) is solver  # its own defaults are within its ranges
    assert clone(solver) == solver
    assert solver.keeps_balance != bool(solver.trades_by)
    assert name not in set(SOLVERS)


@each_solver
def test_a_clustering_is_what_it_says(name):
    solver, (X, sex) = clustering_solver(name), people()
    problem = problem_of(solver, X, sex)
    clustering = run(solver, problem)
    check_clustering(solver, problem, X, sex, clustering)
    one = run(solver, problem, max_iter=1)
    assert one.n_iter == 1
    check_clustering(solver, problem, X, sex, one)


@each_solver
def test_the_same_seed_gives_the_same_bits(name):
    solver, (X, sex) = clustering_solver(name), people()
    problem = problem_of(solver, X, sex)
    one, other = (run(solver, problem, seed=7) for _ in range(2))
    assert np.array_equal(one.labels, other.labels)
    assert np.array_equal(one.centers, other.centers)
    assert one.cost == other.cost


@each_solver
def test_a_callback_sees_centres_and_stops(name):
    solver, (X, sex) = clustering_solver(name), people()
    problem = problem_of(solver, X, sex)
    seen = []
    stopped = run(solver, problem, callback=lambda c: seen.append(np.array(c)) or len(seen) == 1)
    assert stopped.status == "stopped"
    assert stopped.n_iter == len(seen) == 1
    assert seen[0].shape == (3, 2)
    check_clustering(solver, problem, X, sex, stopped)


@pytest.mark.parametrize("name", BALANCED)
def test_going_on_from_a_result_is_no_worse(name, monkeypatch):
    """Swaps are drawn: of theirs the better one of both runs is returned."""
    solver, (X, sex) = clustering_solver(name), people()
    problem = problem_of(solver, X, sex)
    first = run(solver, problem)
    starts = [first.centers, problem.scaled(np.arange(3))]
    seen, run_ = [], type(solver).run
    monkeypatch.setattr(type(solver), "run", lambda *args: seen.append(run_(*args)) or seen[-1])
    again = solver.cluster(problem, starts, RunSettings(40, np.random.RandomState(0), tol=1e-3))
    assert again.violation <= 1e-9
    best = min(one.cost for one in seen) if name == "swap" else first.cost
    assert again.cost <= best * (1 + 1e-9)


@cache
def all_labellings(seed):
    """Nine rows and their groups, with the cost and the balance of each division in two."""
    X, sex = people(9, seed)[0], np.arange(9) % 2
    found = []
    for labels in map(np.array, itertools.product([0, 1], repeat=9)):
        if len(set(labels)) == 2:
            balance = balance_score(labels, sensitive_features=sex, n_clusters=2)
            found.append((kmeans_cost(X, labels, mean=True), balance))
    return X, sex, found


@pytest.mark.parametrize("name", BALANCED)
@pytest.mark.parametrize("seed", range(3))
def test_tiny_problems_against_all_labellings(name, seed):
    """Nine rows in two clusters: nothing is cheaper than the best of 512 labellings."""
    solver = clustering_solver(name)
    X, sex, labellings = all_labellings(seed)
    problem = problem_of(solver, X, sex, 2)
    best = min(cost for cost, balance in labellings if balance >= MIN_BALANCE)
    found = min(
        (
            run(solver, problem, problem.scaled(np.array(start)))
            for start in itertools.combinations(range(9), 2)
        ),
        key=lambda clustering: clustering.standing,
    )
    cost = found.cost * problem.units.scale**2
    assert found.violation <= 1e-9
    assert best * (1 - 1e-9) <= cost <= 1.5 * best


def run_on(solver, X, sex, weights=None):
    """A short run whose centres begin in the first rows, and its centres in units of the data."""
    problem = problem_of(solver, X, sex, weights=weights)
    found = run(solver, problem, problem.scaled(np.arange(3)).astype(float), max_iter=8)
    return found, problem.units.outwards(found.centers)


@pytest.mark.parametrize("name", WEIGHTED)
def test_units_precision_and_names_of_groups_do_not_matter(name):
    """Without weights, swaps follow draws to the last bit: their own tests scale by powers of 2."""
    alike = 0.95 if name == "prices" else 1.0
    solver, (X, sex) = clustering_solver(name), people()
    found, centers = run_on(solver, X, sex)
    for scale in (2.0**-660, 2.0**-10, 2.0**660):
        scaled, moved = run_on(solver, scale * X, sex)
        assert np.array_equal(scaled.labels, found.labels)
        assert moved / scale == pytest.approx(centers)
    for other in (X + 2.0**20, X.astype(np.float32)):
        assert np.mean(run_on(solver, other, sex)[0].labels == found.labels) >= alike
    assert np.array_equal(run_on(solver, X, 1 - sex)[0].labels, found.labels)


@pytest.mark.parametrize("name", [name for name in WEIGHTED if name != "prices"])
def test_weights_are_repetitions(name):
    """Prices place whole rows: their bounds with weights are those of the linear programme."""
    solver, (X, sex) = clustering_solver(name), people()
    times = np.append(np.ones(3, int), generator(1).integers(1, 4, len(X) - 3))
    again = np.repeat(np.arange(len(X)), times)
    weighted, _ = run_on(solver, X, sex, times.astype(float))
    repeated, _ = run_on(solver, X[again], sex[again])
    assert np.array_equal(weighted.labels[again], repeated.labels)
    assert weighted.cost == pytest.approx(repeated.cost, rel=1e-9)


@each_solver
def test_awkward_rows_end_with_numbers(name):
    """Constant columns and data, duplicates, far outliers."""
    solver, (X, sex) = clustering_solver(name), people()
    X = np.column_stack([X, np.full(len(X), 3.0)])
    X[:30] = X[0]
    X[-1] = 1e8
    for points in (X, np.ones_like(X)):
        found, centers = run_on(solver, points, sex)
        assert np.isfinite(centers).all()
        assert np.isfinite(found.cost)
        assert np.isfinite(found.history.get("objective", 0.0)).all()


@each_solver
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_estimator_asks_for_no_more_than_the_solver_takes(name):
    solver, (X, sex) = clustering_solver(name), people()
    base = {"random_state": 0, "tol": 0.01, "max_iter": 20}
    base["min_balance"] = 0.5 if solver.keeps_balance else None
    model = FairKMeans(3, solver=solver, **base).fit(X, sensitive_features=sex)
    same = FairKMeans(3, solver=name, **base).fit(X, sensitive_features=sex)
    assert np.array_equal(model.labels_, same.labels_)
    asked = {
        "takes_overlaps": (
            {"sensitive": Sensitive(intersectional=False)},
            {"sensitive_features": np.c_[sex, sex[::-1]]},
        ),
        "takes_weights": ({}, {"sensitive_features": sex, "sample_weight": np.full(len(X), 2.0)}),
        "keeps_shares": ({"min_balance": None, "share_bounds": 0.5}, {"sensitive_features": sex}),
        "keeps_balance": ({"min_balance": 0.5}, {"sensitive_features": sex}),
    }
    sizes = {"keeps_shares": ({"size_bounds": (0.2, 0.5)}, {"sensitive_features": sex})}
    for ability, (parameters, arguments) in [*asked.items(), *sizes.items()]:
        model = FairKMeans(3, solver=solver, **{**base, **parameters})
        if getattr(solver, ability):
            assert model.fit(X, **arguments).labels_.shape == (len(X),)
        else:
            with pytest.raises(ValueError, match=f"solver='{name}'"):
                model.fit(X, **arguments)


@each_solver
def test_sparse_rows_are_clustered_as_dense_ones_or_refused(name):
    solver, (X, sex) = clustering_solver(name), people()
    X = np.where(X > 0.5, X, 0.0)
    model = FairKMeans(3, solver=solver, random_state=0)
    assert get_tags(model).input_tags.sparse == solver.takes_sparse
    assert get_tags(model.set_params(solver=name)).input_tags.sparse == solver.takes_sparse
    if not solver.takes_sparse:
        model.set_params(min_balance=0.5 if solver.keeps_balance else None)
        with pytest.raises(ValueError, match=r"needs dense rows.*solver='prices'.*toarray"):
            model.fit(sparse.csr_array(X), sensitive_features=sex)
        return
    dense = clone(model).fit(X, sensitive_features=sex)
    model.fit(sparse.csc_matrix(X), sensitive_features=sex)
    assert model.inertia_ == pytest.approx(dense.inertia_)
    assert np.array_equal(model.labels_, dense.labels_)


@each_solver
def test_fronts(name):
    solver, (X, sex) = clustering_solver(name), people()
    front = ParetoFairKMeans(3, balances=4, solver=solver, max_iter=15, random_state=0)
    if not solver.has_front:
        with pytest.raises(TypeError, match="finds no fronts"):
            front.fit(X, sensitive_features=sex)
        return
    front.fit(X, sensitive_features=sex)
    assert nondominated(front.costs_, front.balances_).all()
    for labels, cost, balance in zip(front.labels_, front.costs_, front.balances_, strict=True):
        assert cost == pytest.approx(kmeans_cost(X, labels))
        assert balance == balance_score(labels, sensitive_features=sex, n_clusters=3)


@each_solver
def test_fields_are_parameters_of_the_estimator(name):
    """Grid search sets them as ``solver__x``."""
    solver = clustering_solver(name)
    model = FairKMeans(solver=solver)
    for field in fields(solver):
        assert f"solver__{field.name}" in model.get_params()
        value = getattr(solver, field.name)
        again = clone(model).set_params(**{f"solver__{field.name}": value})
        assert getattr(again.solver, field.name) == value
    assert repr(solver).startswith(type(solver).__name__ + "(")


def test_shares_of_a_solver_that_keeps_them():
    X, sex = people()
    groups = encode_groups(sex)
    shares = groups.counts / groups.counts.sum()
    constraints = share_constraints(groups, 0.8 * shares, np.minimum(1, shares / 0.8))
    problem = RepresentationProblem(X, groups, constraints, 3)
    for name in CLUSTERING_SOLVERS:
        solver = clustering_solver(name)
        if solver.keeps_shares:
            assert run(solver, problem).violation <= 1e-9


# A solver that promises too much


@dataclass
class Lazy(ClusteringSolver):
    """Gives each row its nearest starting centre, and says that it keeps a balance."""

    name = "lazy"
    keeps_balance = True

    def run(self, problem, start, settings):
        return of_labels(problem, problem.distances(start).nearest(), history={"n": np.zeros(1)})


@dataclass
class Boastful(ClusteringSolver):
    """Reports a lower cost than it has."""

    name = "boastful"
    trades_by = "nothing"

    def run(self, problem, start, settings):
        labels = problem.distances(start).nearest()
        clustering = of_labels(problem, labels, history={"n": np.zeros(1)})
        return clustering._replace(cost=0.5 * clustering.cost)


@pytest.mark.parametrize("solver", [Lazy(), Boastful()])
def test_planted_bad_solvers_are_refused(solver):
    X, sex = people()
    problem = problem_of(solver, X, sex)
    with pytest.raises(AssertionError):
        check_clustering(solver, problem, X, sex, run(solver, problem))


def test_runs_that_differ_by_rounding_stand_alike():
    X, sex = people()
    problem = problem_of(CLUSTERING_SOLVERS["prices"](), X, sex)
    run = of_labels(problem, np.arange(sex.size) % 3)
    again = run._replace(cost=np.nextafter(run.cost, np.inf))
    assert again.cost > run.cost
    assert again.standing == run.standing
    assert min([run, again], key=lambda one: one.standing) is run
    for worse in (1 + 1e-9, 2.0):
        assert run._replace(cost=worse * run.cost).standing > run.standing
    assert run._replace(violation=run.violation + 1, cost=0.0).standing > run.standing
