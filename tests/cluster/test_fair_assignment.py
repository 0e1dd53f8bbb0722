"""Labels within limits for the clusters of any clusterer."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog, milp
from sklearn.cluster import HDBSCAN, BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.frozen import FrozenEstimator
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV

from skfair.cluster import FairAssignment
from skfair.metrics import balance_score
from tests.families import rows_of_families
from tests.seeds import generator


def people(n=400, seed=0, apart=1.5):
    rng = generator(seed)
    groups = rng.permutation(np.resize(["f", "m"], n))
    X = rng.normal(size=(n, 2)) + (groups == "f")[:, None] * [apart, 0.0]
    return X, groups


def balance(labels, groups):
    counts = np.array([[np.sum((labels == k) & (groups == g)) for g in "fm"] for k in set(labels)])
    return (counts.min(axis=1) / counts.max(axis=1)).min()


@pytest.mark.parametrize(
    "clusterer",
    [
        KMeans(3, n_init=1, random_state=0),
        MiniBatchKMeans(3, n_init=1, random_state=0),
        BisectingKMeans(3, random_state=0),
        GaussianMixture(3, random_state=0),
    ],
    ids=lambda clusterer: type(clusterer).__name__,
)
def test_every_clusterer_keeps_the_limit(clusterer):
    X, groups = people(apart=4)
    model = FairAssignment(clusterer, min_balance=0.8).fit(X, sensitive_features=groups)
    wanted = 0.8 * balance(np.zeros(groups.size), groups)
    assert balance(model.labels_, groups) >= wanted - 1e-9
    assert model.balance_ == pytest.approx(balance(model.labels_, groups))
    assert model.cost_ >= model.cost_without_limits_
    new_X, new_groups = people(seed=1, apart=4)
    labels = model.assign(new_X, sensitive_features=new_groups)
    assert balance(labels, new_groups) >= 0.8 * balance(np.zeros(400), new_groups) - 1e-9
    with_groups = model.predict(new_X, sensitive_features=new_groups)
    assert balance(with_groups, new_groups) > balance(model.predict(new_X), new_groups)


@pytest.mark.parametrize("seed", range(2))
def test_centres_that_are_given_stay_where_they_are(seed):
    """Fitted again without a word, five schools ended elsewhere in 3 of 3 runs."""
    X, groups = people(seed=seed)
    places = 2 * generator(seed).normal(size=(5, 2))
    schools = KMeans(5, init=places, n_init=1).fit(places)
    centers = schools.cluster_centers_.copy()
    assert centers == pytest.approx(places)
    kept = FairAssignment(FrozenEstimator(schools), size_bounds=([20] * 5, [60, 70, 80, 90, 100]))
    kept.fit(X, sensitive_features=groups)
    assert np.array_equal(kept.clusterer_.cluster_centers_, centers)
    with pytest.warns(UserWarning, match=r"KMeans is fitted already.*FrozenEstimator.*clone"):
        again = FairAssignment(schools).fit(X, sensitive_features=groups)
    assert not np.allclose(again.clusterer_.cluster_centers_, centers)
    assert np.array_equal(schools.cluster_centers_, centers)  # of the one that was passed


def test_nothing_is_said_where_no_clusterer_was_fitted():
    """A search clones the clusterer, and a second fit starts from the same parameters."""
    X, groups = people(100)
    model = FairAssignment(KMeans(2, n_init=1, random_state=0))
    search = GridSearchCV(
        model,
        {"min_balance": [0.5, 0.8]},
        cv=[(np.arange(100), np.arange(100))],
        scoring=lambda fitted, X: -fitted.cost_,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search.fit(X, sensitive_features=groups)
        for _ in range(2):
            model.fit(X, sensitive_features=groups)


def test_without_limits_rows_stay_where_they_are_most_likely():
    X, groups = people()
    mixture = GaussianMixture(3, random_state=0).fit(X)
    model = FairAssignment(FrozenEstimator(mixture), min_balance=0)
    model.fit(X, sensitive_features=groups)
    assert np.array_equal(model.labels_, mixture.predict(X))
    chances = mixture.predict_proba(X).max(axis=1)
    assert model.cost_ == pytest.approx(-np.log(chances).mean())


def test_the_cost_is_close_to_that_of_the_linear_programme():
    X, groups = people(80)
    inner = KMeans(2, n_init=1, random_state=0).fit(X)
    model = FairAssignment(FrozenEstimator(inner), min_balance=0.9).fit(
        X, sensitive_features=groups
    )
    costs = ((X[:, None] - inner.cluster_centers_) ** 2).sum(axis=2)
    beta = 0.9 * balance(np.zeros(80), groups)
    is_f = (groups == "f").astype(float)
    rows = []
    for k in range(2):
        for one, other in ((is_f, 1 - is_f), (1 - is_f, is_f)):
            row = np.zeros((80, 2))
            row[:, k] = beta * one - other  # other >= beta * one
            rows.append(row.ravel())
    once = np.kron(np.eye(80), np.ones(2))
    exact = linprog(costs.ravel() / 80, np.array(rows), np.zeros(4), once, np.ones(80))
    assert exact.fun - 1e-9 <= model.cost_ <= exact.fun * 1.02
    assert model.cost_without_limits_ == pytest.approx(costs.min(axis=1).mean())


def test_costs_of_ones_own():
    X, groups = people(seed=3)
    medoids = X[[0, 100, 300]]

    def taxi(clusterer, X):
        return np.abs(np.asarray(X)[:, None] - medoids).sum(axis=2)

    model = FairAssignment(costs=taxi).fit(X, sensitive_features=groups)
    assert model.cost_without_limits_ == pytest.approx(taxi(None, X).min(axis=1).mean())


def test_centroids_of_a_clusterer_by_density_are_centres():
    X, groups = people(apart=40)
    inner = HDBSCAN(min_cluster_size=20, store_centers="centroid", copy=True).fit(X)
    assert len(inner.centroids_) >= 2
    model = FairAssignment(FrozenEstimator(inner), min_balance=0.5)
    model.fit(X, sensitive_features=groups)
    costs = ((X[:, None] - inner.centroids_) ** 2).sum(axis=2)
    assert model.cost_without_limits_ == pytest.approx(costs.min(axis=1).mean())


@pytest.mark.parametrize("unit", [1e-13, pytest.param(1e-8, marks=pytest.mark.slow), 1e8])
def test_the_unit_of_costs_does_not_matter(unit):
    X, groups = people(60)
    given = {"sensitive_features": groups, "sample_weight": generator().exponential(size=60)}
    costs = KMeans(4, n_init=1, random_state=0).fit_transform(X) ** 2
    plain, other = (
        FairAssignment(costs=lambda _, X, costs=times * costs: costs).fit(X, **given)
        for times in (1.0, unit)
    )
    assert plain.status_ == other.status_
    assert other.cost_ == pytest.approx(unit * plain.cost_, rel=1e-6)


def test_a_far_offset_costs_no_digits():
    X, groups = people(200)
    start = KMeans(3, n_init=1, random_state=0).fit(X).cluster_centers_
    X, start = X + 1e9, start + 1e9  # squares have 18 digits
    inner = KMeans(3, n_init=1, init=start)
    model = FairAssignment(inner, random_state=0).fit(X, sensitive_features=groups)
    centers = model.clusterer_.cluster_centers_
    distances = ((X[:, None] - centers) ** 2).sum(axis=2)
    assert model.cost_ == pytest.approx(distances[np.arange(200), model.labels_].mean(), rel=1e-6)
    assert np.array_equal(model.predict(X), distances.argmin(axis=1))


@pytest.mark.parametrize("seed", range(12))
def test_heavy_rows_cost_no_more_than_need_be(seed):
    """Of few heavy rows several have to move at once; a batch of the same rows did that already."""
    X, groups = people(100, seed)
    weights = np.where(generator(seed).random(100) < 0.1, 30.0, 1.0)
    given = {"sensitive_features": groups, "sample_weight": weights}
    model = FairAssignment(KMeans(3, n_init=1, random_state=0)).fit(X, **given)
    costs = model.clusterer_.transform(X) ** 2
    batch = costs[np.arange(100), model.assign(X, **given)]
    assert model.cost_ <= np.average(batch, weights=weights) * (1 + 1e-9)


def cheapest_of_all(costs, groups, weights, beta):
    """The mean cost of the best whole rows, by an integer programme over all labels."""
    n, k = costs.shape
    sides = [np.where(groups == g, weights, 0.0) for g in "fm"]
    balanced = np.concatenate(
        [np.kron(a - beta * b, np.eye(k)) for a, b in (sides, sides[::-1])]
    )  # each row of weights once for each cluster
    found = milp(
        (weights[:, None] * costs).ravel() / weights.sum(),
        integrality=np.ones(n * k),
        constraints=[
            LinearConstraint(balanced, 0, np.inf),
            *(LinearConstraint(np.kron(groups == g, np.eye(k)), 1, np.inf) for g in "fm"),
            LinearConstraint(np.kron(np.eye(n), np.ones(k)), 1, 1),
        ],
        options={"mip_rel_gap": 1e-4},
    )
    return found.fun


def fitted_clusters(kind, X):
    """Return a clusterer, and what rows cost in its clusters by plain formulas."""
    if kind == "distances":
        inner = KMeans(4, n_init=1, random_state=0).fit(X)
        return inner, ((X[:, None] - inner.cluster_centers_) ** 2).sum(axis=2)
    inner = GaussianMixture(4, random_state=0).fit(X)
    return inner, -np.log(np.maximum(inner.predict_proba(X), 1e-300))


@pytest.mark.parametrize("kind", ["distances", "chances"])
def test_few_rows_cost_as_much_as_those_of_an_integer_programme(kind):
    """Several rows move at once, whatever is the size of costs above the cheapest cluster.

    This finds the cheapest labels in 99 of 100 samples, in place of 20 to 35.
    """
    above = []
    for seed in range(6):
        X, groups = people(60, seed)
        inner, costs = fitted_clusters(kind, X)
        model = FairAssignment(FrozenEstimator(inner), min_balance=0.8)
        model.fit(X, sensitive_features=groups)
        assert balance(model.labels_, groups) >= 0.8 - 1e-9
        paid = costs[np.arange(60), model.labels_].mean()
        above.append(paid / cheapest_of_all(costs, groups, np.ones(60), 0.8) - 1)
    assert np.sum(np.array(above) <= 1e-4) >= 3
    assert np.mean(above) <= 0.01


@pytest.mark.parametrize("kind", ["distances", "chances"])
def test_rows_of_unequal_weights_are_within_a_row_of_the_limits(kind):
    X, groups = people(80)
    weights = 10 ** generator(1).uniform(-1, 1, 80)
    inner, costs = fitted_clusters(kind, X)
    model = FairAssignment(FrozenEstimator(inner), min_balance=0.8)
    model.fit(X, sensitive_features=groups, sample_weight=weights)
    counts = np.array([np.bincount(model.labels_, weights * (groups == g), 4) for g in "fm"])
    sums = counts.sum(axis=1)
    wanted = 0.8 * sums.min() / sums.max()
    assert (counts.min(axis=0) >= wanted * counts.max(axis=0) - weights.max()).all()
    paid = np.average(costs[np.arange(80), model.labels_], weights=weights)
    if kind == "distances":  # chances of some rows are so small that one of them costs most
        assert paid <= cheapest_of_all(costs, groups, weights, wanted) * 1.03


@pytest.mark.filterwarnings("ignore::skfair.exceptions.SmallGroupWarning")
@pytest.mark.filterwarnings("ignore:One of 2 clusters holds:UserWarning")
@pytest.mark.parametrize("seed", range(6))
def test_labels_of_few_very_heavy_rows_are_found_if_there_are_any(seed):
    """Every labelling is tried: a fit is within a row of the limits if one of them keeps these."""
    rng = generator(seed)
    X, groups, weights = rng.normal(size=(9, 2)), np.array(list("fmfmfmfmf")), np.ones(9)
    for name, n_heavy in (("f", 2), ("m", 1 + seed % 2)):  # no more, or no labels are balanced
        weights[rng.choice(np.flatnonzero(groups == name), n_heavy, replace=False)] = 1000.0
    inner = FrozenEstimator(KMeans(2, n_init=1, random_state=0).fit(X, sample_weight=weights))
    given = {"sensitive_features": groups, "sample_weight": weights}
    sums = np.array([weights[groups == g].sum() for g in "fm"])
    wanted = 0.5 * sums.min() / sums.max()
    balances, costs = [], []
    table = inner.transform(X) ** 2
    for labels in product(range(2), repeat=9):
        labels = np.array(labels)
        counts = np.array([np.bincount(labels, weights * (groups == g), 2) for g in "fm"])
        balances.append((counts.min(axis=0) / np.maximum(counts.max(axis=0), 1e-9)).min())
        costs.append(np.average(table[np.arange(9), labels], weights=weights))
    balances, costs = np.array(balances), np.array(costs)
    assert (balances >= wanted).any()
    kinds = rows_of_families("KINDS")
    others = (kind(2, min_balance=0.5, n_init=1) for kind in kinds)
    models = (FairAssignment(inner, min_balance=0.5), *others)
    for model in models:
        model.set_params(random_state=0).fit(X, **given)
        assert model.status_ == "converged"
    if models[0].balance_ >= wanted * (1 - 1e-9):
        assert models[0].cost_ <= costs[balances >= wanted].min() * 1.01


def test_many_rows_cost_hardly_more_than_by_all_their_prices():
    X, groups = people(50_000, seed=6)
    inner = FrozenEstimator(KMeans(5, n_init=1, random_state=0).fit(X))
    model = FairAssignment(inner, min_balance=0.9).fit(X, sensitive_features=groups)
    assert balance(model.labels_, groups) >= 0.9 * balance(np.zeros(groups.size), groups) - 1e-9
    batch = model.assign(X, sensitive_features=groups)  # the same problem, to the end
    costs = ((X[:, None] - inner.cluster_centers_) ** 2).sum(axis=2)
    assert model.cost_ <= 1.001 * costs[np.arange(50_000), batch].mean()


def test_a_few_heavy_rows_among_many_do_not_spoil_the_prices():
    """A sample by numbers holds some of the weight only; its prices cost several times as much."""
    for seed in range(2):
        rng = generator(seed)
        X, weights = rng.normal(size=(25_000, 2)), np.ones(25_000)
        heavy = rng.choice(25_000, 30, replace=False)
        X[heavy], weights[heavy] = 2 * X[heavy], 1e4
        names = np.where(X[:, 0] > rng.normal(size=25_000), "f", "m")
        inner = KMeans(5, n_init=1, random_state=0).fit(X, sample_weight=weights)
        model = FairAssignment(FrozenEstimator(inner), random_state=0)
        model.fit(X, sensitive_features=names, sample_weight=weights)
        batch = model.assign(X, sensitive_features=names, sample_weight=weights)  # by all rows
        costs = inner.transform(X) ** 2
        best = np.average(costs[np.arange(25_000), batch], weights=weights)
        assert model.cost_ <= 1.01 * best


def test_a_group_without_weight_counts_as_absent_in_the_balance():
    X, groups = people(120)
    groups[:30], weights = "x", np.where(np.arange(120) < 30, 0.0, 1.0)
    model = FairAssignment(KMeans(2, n_init=1, random_state=0), min_balance=0.0)
    model.fit(X, sensitive_features=groups, sample_weight=weights)
    counted = balance_score(model.labels_, sensitive_features=groups, sample_weight=weights)
    assert model.balance_ == pytest.approx(counted)
    assert counted > 0
