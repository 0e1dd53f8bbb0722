import time
import tracemalloc
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair import Sensitive
from skfair.cluster import FairAssignment, FairKMeans, ParetoFairKMeans
from skfair.metrics import (
    balance_score,
    cluster_balances,
    get_scorer,
    kmeans_cost,
    share_ratio,
)
from tests.cluster.test_fair_assignment import people as crowd
from tests.seeds import generator, seed_of


def segregated(n=400, seed=0, levels=("f", "m")):
    """Points along a line and groups along it: clusters of plain k-means are unbalanced."""
    rng = generator(seed)
    X = rng.normal(size=(n, 3)) * [3, 1, 1]
    cut = np.quantile(X[:, 0] + rng.normal(size=n), np.linspace(0, 1, len(levels) + 1)[1:-1])
    groups = np.array(levels)[np.searchsorted(cut, X[:, 0])]
    return X, groups


def towns():
    """Four towns far apart, with 10, 30, 70 and 90 women among 100 people, and who lives where."""
    town, place = np.repeat(range(4), 100), np.arange(400) % 100
    X = 40.0 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[town]
    groups = np.where(place < np.array([10, 30, 70, 90])[town], "f", "m")
    return X + generator().normal(size=X.shape), groups, town


def fit(X, groups, **parameters):
    parameters = {"n_clusters": 4, "random_state": 0} | parameters
    return FairKMeans(**parameters).fit(X, sensitive_features=groups)


@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 2**31),
    min_balance=st.floats(0.01, 0.95),
    n_groups=st.integers(2, 4),
    n_clusters=st.integers(1, 6),
)
def test_the_limit_holds_and_attributes_are_true(seed, min_balance, n_groups, n_clusters):
    X, groups = segregated(300, seed, list("abcd")[:n_groups])
    model = fit(X, groups, min_balance=min_balance, n_clusters=n_clusters)
    balances = cluster_balances(model.labels_, sensitive_features=groups, n_clusters=n_clusters)
    attained = balance_score(np.zeros(300), sensitive_features=groups)
    assert balances.min() >= min_balance * attained * (1 - 1e-9)
    assert_allclose(model.cluster_balances_, balances)
    assert model.balance_ == balances.min()
    assert model.inertia_ == pytest.approx(kmeans_cost(X, model.labels_))
    for k in range(n_clusters):
        inside = model.labels_ == k
        assert_allclose(model.cluster_centers_[k], X[inside].mean(axis=0), atol=1e-9)
        for g, name in enumerate(model.groups_):
            assert model.group_counts_[k, g] == (groups[inside] == name).sum()
    assert model.assignment_gap_ >= -1e-9
    assert model.lower_bound_ > 0


def test_a_stricter_limit_costs_more_and_none_costs_what_kmeans_does():
    """Each limit moves people of more towns, or more of them."""
    X, groups, town = towns()
    costs = [fit(X, groups, min_balance=b).inertia_ for b in (0.0, 0.3, 0.6, 0.9)]
    assert (np.diff(costs) > 0).all()
    assert costs[0] == pytest.approx(kmeans_cost(X, town))


def test_unlimited_equals_scikit_learn_from_the_same_start():
    X, groups = segregated()
    start = X[:4]
    theirs = KMeans(4, init=start, n_init=1, tol=0, max_iter=500).fit(X)
    for options in ({"min_balance": 0}, {"min_balance": None}):
        ours = fit(X, groups, init=start, tol=0, **options)
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-6)
        assert np.array_equal(ours.labels_, theirs.labels_)
        assert np.array_equal(ours.predict(X), theirs.predict(X))
    assert_allclose(ours.transform(X), theirs.transform(X), rtol=1e-6)
    assert ours.score(X) == pytest.approx(theirs.score(X))


def test_absolute_balance():
    X, groups = segregated()
    groups = np.where(np.arange(400) % 4 == 0, "m", groups)
    attained = balance_score(np.zeros(400), sensitive_features=groups)
    for min_balance in (0.3, 0.98 * attained):
        model = fit(X, groups, min_balance=min_balance, relative_balance=False)
        assert model.balance_ >= min_balance


def test_exact_proportion_up_to_one_person():
    X, groups = segregated(401)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fit(X, groups, min_balance=1.0)
    share = (groups == "f").mean()
    for k in range(4):
        inside = model.labels_ == k
        assert abs((groups[inside] == "f").sum() - share * inside.sum()) < 2
    assert model.balance_ > 0.93 * balance_score(np.zeros(401), sensitive_features=groups)


def test_share_bounds():
    X, groups = segregated(levels=("a", "b", "c"))
    # A cluster of few rows may lack a group, because bounds hold to a row.
    model = fit(X, groups, min_balance=None, share_bounds=0.8, size_bounds=(0.15, 1.0))
    n = np.bincount(model.labels_)
    for g in "abc":
        share = (groups == g).mean()
        members = np.bincount(model.labels_, weights=groups == g)
        assert (members >= np.floor(0.8 * share * n)).all()
        assert (members <= np.ceil(share / 0.8 * n)).all()
    only_a = fit(X, groups, min_balance=None, share_bounds={"a": (0.25, 0.5)})
    members = np.bincount(only_a.labels_, weights=groups == "a")
    assert (members >= np.floor(0.25 * np.bincount(only_a.labels_))).all()
    assert share_ratio(model.labels_, sensitive_features=groups) > 0.7


def test_overlapping_attributes():
    X, groups = segregated()
    other = np.where(X[:, 1] > 0.3, "old", "young")
    frame = pd.DataFrame({"sex": groups, "age": other})
    model = fit(X, frame, min_balance=0.7, sensitive=Sensitive(intersectional=False))
    for column in frame:
        assert (
            balance_score(model.labels_, sensitive_features=frame[column], relative=True)
            >= 0.7 - 1e-9
        )
    assert model.group_counts_.shape == (4, 4)
    assert model.groups_.tolist() == ["sex=f", "sex=m", "age=old", "age=young"]
    again = model.predict(X, sensitive_features=frame)
    assert np.mean(again == model.labels_) > 0.9
    with pytest.warns(UserWarning, match="crossed groups keep min_balance=0.5.*alone 0"):
        crossed = fit(X, frame, min_balance=0.5)
    assert balance_score(crossed.labels_, sensitive_features=frame, relative=True) >= 0.5 - 1e-9


def test_crossed_groups_that_balance_each_attribute_are_no_warning():
    X, _ = segregated(200)
    frame = pd.DataFrame({"sex": np.arange(200) % 2, "age": np.arange(200) // 2 % 2})
    model = fit(X, frame, min_balance=0.9)  # warnings are errors
    for column in frame:
        assert balance_score(model.labels_, sensitive_features=frame[column]) >= 0.81


@pytest.mark.parametrize("unit", [0.01, 100.0])
def test_costs_and_gaps_are_those_of_the_labels(unit):
    """After a fit around the means, after a part of a stream around the centres before it."""
    X, groups = segregated(3600)
    X, weights = unit * X + 3, generator(0).integers(1, 4, 3600)
    model = FairKMeans(3, min_balance=0.95, n_init=1, random_state=0)
    last = np.arange(3600) >= 2400
    last[2400:] &= X[2400:, 0] > 3  # mostly of one group, so that limits bind
    for part in (np.arange(2400), np.flatnonzero(last)):
        given = {"sensitive_features": groups[part], "sample_weight": weights[part]}
        centers = getattr(model, "cluster_centers_", None)
        model.partial_fit(X[part], **given)
        if centers is None:
            centers = model.cluster_centers_
        paid = weights[part] @ ((X[part] - centers[model.labels_]) ** 2).sum(axis=1)
        assert model.inertia_ == pytest.approx(paid)
        # Those of the fit had moved once more, which only lowers the cost.
        assert model.inertia_ / model.lower_bound_ - 1 <= model.assignment_gap_ + 1e-9
        assert 0 <= model.assignment_gap_ <= 0.02
    assert model.assignment_gap_ == pytest.approx(model.inertia_ / model.lower_bound_ - 1)
    assert model.assignment_gap_ > 1e-5


def test_fit_transform_and_fit_predict_take_weights():
    X, groups = segregated(120)
    given = {"sensitive_features": groups, "sample_weight": np.arange(1.0, 121)}
    model = FairKMeans(3, min_balance=0.5, n_init=1, random_state=0)
    fitted = clone(model).fit(X, **given)
    assert np.array_equal(model.fit_predict(X, **given), fitted.labels_)
    assert_allclose(model.fit_transform(X, **given), fitted.transform(X), atol=1e-12)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_batch_without_limits_goes_to_the_nearest_centres(unit):
    X, groups = segregated(90)
    model = fit(unit * X + 7, groups, n_clusters=5, min_balance=0.9)
    free = model.assign(unit * X + 7, sensitive_features=groups, min_balance=0)
    assert np.array_equal(free, model.transform(unit * X + 7).argmin(axis=1))


def test_prediction_with_and_without_groups():
    X, groups = segregated(2000)
    model = fit(X[:1000], groups[:1000], min_balance=0.9)
    assert (
        np.mean(model.predict(X[:1000], sensitive_features=groups[:1000]) == model.labels_) > 0.97
    )
    new, their_groups = X[1000:], groups[1000:]
    by_price = model.predict(new, sensitive_features=their_groups)
    nearest = model.predict(new)
    distances = model.transform(new)
    assert np.array_equal(nearest, distances.argmin(axis=1))
    codes = (their_groups == "m").astype(int)
    expected = (distances**2 + model.prices_.T[codes]).argmin(axis=1)
    assert np.array_equal(by_price, expected)
    fair, unfair = (
        balance_score(labels, sensitive_features=their_groups, relative=True)
        for labels in (by_price, nearest)
    )
    assert fair > 0.4 > unfair  # of 24 samples at least .58, and 0
    exact = model.assign(new, sensitive_features=their_groups)
    assert balance_score(exact, sensitive_features=their_groups, relative=True) >= 0.9 - 1e-9
    looser = model.assign(new, sensitive_features=their_groups, min_balance=0.5)
    cost = [kmeans_cost(new, labels, centers=model.cluster_centers_) for labels in (exact, looser)]
    assert cost[1] < cost[0]
    bounded = model.assign(new, sensitive_features=their_groups, share_bounds=0.95)
    assert share_ratio(bounded, sensitive_features=their_groups) > 0.9


@pytest.mark.filterwarnings("ignore:The limits on the batch are missed")  # by up to one row
@pytest.mark.parametrize("n_rows", [1, 5, pytest.param(50, marks=pytest.mark.slow)])
def test_a_batch_smaller_than_the_clusters_joins_what_they_hold(n_rows):
    X, groups = segregated(700)
    model = FairKMeans(8, random_state=0).fit(X[:500], sensitive_features=groups[:500])
    held = model.group_counts_.copy()
    for start in range(500, 500 + 4 * n_rows, n_rows):  # day by day
        rows = slice(start, start + n_rows)
        labels = model.assign(X[rows], sensitive_features=groups[rows], before=held)
        for g, name in enumerate(model.groups_):
            held[:, g] += np.bincount(labels[groups[rows] == name], minlength=8)
        balance = 0.8 * held.sum(axis=0).min() / held.sum(axis=0).max()
        # What the clusters held cannot move: up to one row.
        assert (held.min(axis=1) + 1 > balance * held.max(axis=1)).all()
    if n_rows < 8:
        day = slice(500, 500 + n_rows)
        itself = model.assign(X[day], sensitive_features=groups[day])
        joined = model.assign(X[day], sensitive_features=groups[day], before="fit")
        assert np.array_equal(itself, joined)


def test_what_the_clusters_hold_decides_where_a_batch_goes():
    X, groups = segregated(600)
    model = fit(X[:400], groups[:400], min_balance=0.8)
    rows, women = X[400:], groups[400:]
    only_men = np.array([[0.0, 40.0], [300, 300], [300, 300], [300, 300]])
    labels = model.assign(rows, sensitive_features=women, before=only_men, min_balance=0.5)
    taken = np.bincount(labels[women == "f"], minlength=4)
    assert taken[0] >= 0.5 * 40 * 0.9  # women go where there are men only
    itself = model.assign(rows, sensitive_features=women, min_balance=0.5)
    assert not np.array_equal(labels, itself)


def test_weights_count_in_cost_and_limits():
    X, groups = segregated()
    weights = generator(0).integers(1, 4, 400).astype(float)
    model = FairKMeans(4, random_state=0).fit(X, sensitive_features=groups, sample_weight=weights)
    weighted = balance_score(
        model.labels_, sensitive_features=groups, sample_weight=weights, relative=True
    )
    assert weighted >= 0.8 - 1e-9
    assert model.inertia_ == pytest.approx(kmeans_cost(X, model.labels_, sample_weight=weights))
    assert model.group_counts_.sum() == weights.sum()
    assert model.score(X, sample_weight=weights) <= 0
    labels = model.assign(X, sensitive_features=groups, sample_weight=weights)
    assert (
        balance_score(labels, sensitive_features=groups, sample_weight=weights, relative=True)
        >= 0.8 - 1e-9
    )


@pytest.mark.parametrize("unit", [2.0**-660, 2.0**40])  # no rounding
@pytest.mark.parametrize(
    "make",
    [
        lambda: FairKMeans(4, random_state=0),
        lambda: FairAssignment(KMeans(4, n_init=1, random_state=0)),
        lambda: ParetoFairKMeans(4, balances=5, n_init=1, random_state=0),
    ],
    ids=["FairKMeans", "FairAssignment", "ParetoFairKMeans"],
)
def test_the_unit_of_weights_does_not_matter_to_fits(make, unit):
    X, groups = segregated(90)
    weights = generator(0).integers(1, 4, 90).astype(float)
    small, plain = (
        make().fit(X, sensitive_features=groups, sample_weight=weights * times)
        for times in (unit, 1.0)
    )
    assert np.array_equal(small.labels_, plain.labels_)


@pytest.mark.filterwarnings("ignore::skfair.exceptions.SmallGroupWarning")
@pytest.mark.parametrize("weight", [1.0, 0.1])
@pytest.mark.parametrize("make", [FairKMeans, lambda k, **p: FairAssignment(KMeans(k), **p)])
def test_rows_of_one_weight_keep_limits_as_people_do(make, weight):
    """Rows of weight 0 among them, too: single moves do not get there, whole counts do."""
    n_kept = 0
    for seed in range(3):
        rng = generator(seed)
        X, weights = rng.normal(size=(60, 2)), np.where(rng.random(60) < 0.8, weight, 0.0)
        groups, counts = np.where(X[:, 0] > rng.normal(size=60), "f", "m"), weights > 0
        limit = 0.97 * balance_score(counts[counts], sensitive_features=groups[counts]) - 1e-9
        model = make(3, min_balance=0.97, random_state=0)
        if model.fit(X[counts], sensitive_features=groups[counts]).balance_ >= limit:
            n_kept += 1
            model.fit(X, sensitive_features=groups, sample_weight=weights)
            assert model.balance_ >= limit
    assert n_kept > 1


@pytest.mark.parametrize("seed", range(5))
def test_a_heavy_row_forbids_no_clustering(seed):
    """A cluster needs a row of each group, not the weight of the heaviest row of all."""
    rng = generator(seed)
    X, groups = segregated(120, seed)
    weights = np.where(groups == "f", 1.0, rng.choice([1.0, 50.0], 120))
    share = (groups == "f").sum() / weights[groups == "m"].sum()
    model = FairKMeans(3, min_balance=0.5, random_state=0)
    model.fit(X, sensitive_features=groups, sample_weight=weights)
    counts = np.array([np.bincount(model.labels_, weights * (groups == g), 3) for g in "fm"])
    assert (counts.min(axis=0) / counts.max(axis=0)).min() >= 0.5 * share * (1 - 1e-9)
    # No bound can exceed what one clustering within the limits costs.
    assert 0 < model.lower_bound_ <= model.inertia_ * 1.05


def test_float32_stays_float32():
    X, groups = segregated()
    model = fit(X.astype(np.float32), groups)
    assert model.cluster_centers_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.inertia_ == pytest.approx(fit(X, groups).inertia_, rel=0.02)


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_starts(backend):
    X, groups = segregated()
    best = fit(X, groups, n_init=3).inertia_
    assert best <= fit(X, groups, n_init=1).inertia_ * (1 + 1e-9)
    with joblib.parallel_config(backend):
        assert fit(X, groups, n_init=3, n_jobs=2).inertia_ == best
    assert fit(X, groups, init="random").balance_ > 0
    model = fit(X, groups, init=X[:4].tolist())
    assert model.cluster_centers_.shape == (4, 3)


@pytest.mark.parametrize("factor", [1e-200, 1e-150, 1e150, 1e160, 1e200])
def test_extreme_scales(factor):
    X, groups = segregated()
    model = fit(X * factor, groups)
    assert model.balance_ >= 0.8 * balance_score(np.zeros(400), sensitive_features=groups) - 1e-9
    assert np.isfinite(model.cluster_centers_).all()
    assert np.isfinite([model.inertia_, model.lower_bound_]).all()
    assert np.mean(model.predict(X * factor, sensitive_features=groups) == model.labels_) > 0.95


def test_duplicates_constant_columns_and_outliers():
    X, groups = segregated()
    duplicated = np.repeat(X[:40], 10, axis=0)
    model = fit(duplicated, groups)
    assert model.balance_ > 0
    constant = np.column_stack((X, np.ones(400)))
    assert fit(constant, groups).cluster_centers_[:, 3] == pytest.approx(1)
    far = X.copy()
    far[0] = 1e8
    assert np.isfinite(fit(far, groups).inertia_)
    with pytest.warns(UserWarning, match=r"One of 2 clusters holds 99.*size_bounds=\(0\.25, 1\.0"):
        all_equal = fit(np.ones((400, 2)), groups, n_clusters=2)
    assert all_equal.inertia_ == pytest.approx(0, abs=1e-9)


def test_one_group_is_plain_kmeans():
    X, _ = segregated()
    with pytest.warns(UserWarning, match="single group, 'a'") as record:
        model = fit(X, ["a"] * 400)
    assert record[0].filename == __file__
    assert np.array_equal(model.labels_, model.predict(X))


def test_two_rows_of_each_group_are_shared_exactly():
    X = np.repeat(np.eye(2), 2, axis=0)
    groups = ["a", "a", "b", "b"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = FairKMeans(2, min_balance=None, share_bounds={"a": (0.5, 0.5)}, random_state=0)
        model.fit(X, sensitive_features=groups)
    assert model.status_ != "infeasible"


def test_in_a_search_with_a_fairness_scorer():
    X, groups = segregated(300)
    order = generator(0).permutation(300)
    X, groups = X[order], groups[order]
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), FairKMeans(3, random_state=seed_of(0)))
        search = GridSearchCV(
            pipeline,
            {"fairkmeans__min_balance": [0.1, 0.9]},
            scoring=get_scorer("balance_score", relative=True),
            cv=3,
            error_score="raise",
        ).fit(X, sensitive_features=groups)
    assert search.best_params_ == {"fairkmeans__min_balance": 0.9}
    assert search.best_score_ > 0.3


def test_a_stream_ends_where_the_batch_does():
    X, groups = segregated(20_000)
    batch = fit(X, groups)
    stream = FairKMeans(4, random_state=0)
    for start in range(0, 20_000, 4000):
        part = slice(start, start + 4000)
        stream.partial_fit(X[part], sensitive_features=groups[part])
        assert stream.labels_.shape == (4000,)
    attained = balance_score(np.zeros(20_000), sensitive_features=groups)
    assert stream.group_counts_.sum() == 20_000
    assert (
        stream.group_counts_.sum(axis=0).tolist()
        == np.unique(groups, return_counts=True)[1].tolist()
    )
    assert stream.balance_ >= 0.8 * attained - 1e-6  # of everything seen
    assert stream.balance_ <= batch.balance_ + 0.02
    by_price = stream.predict(X, sensitive_features=groups)
    assert kmeans_cost(X, by_price) <= 1.03 * batch.inertia_
    relative = balance_score(by_price, sensitive_features=groups, relative=True)
    assert relative >= 0.65  # one without prices has next to nothing


def test_a_stream_with_bounds_weights_and_columns():
    X, groups = segregated(900, levels=("a", "b", "c"))
    frame = pd.DataFrame(X, columns=list("xyz")).assign(g=groups)
    weights = generator(0).uniform(0.5, 2, 900)
    model = FairKMeans(3, min_balance=None, share_bounds=0.7, sensitive="g", random_state=0)
    for start in range(0, 900, 300):
        part = slice(start, start + 300)
        model.partial_fit(frame.iloc[part], sample_weight=weights[part])
    totals = model.group_counts_.sum(axis=0)
    assert totals == pytest.approx([weights[groups == g].sum() for g in "abc"])
    shares = model.group_counts_ / model.group_counts_.sum(axis=1, keepdims=True)
    ratio = shares / (totals / totals.sum())
    assert ratio.min() > 0.65
    assert ratio.max() < 1 / 0.65


@pytest.mark.parametrize("unit", [0.01, 1.0, 100.0])
def test_the_unit_of_weights_does_not_matter_to_streams_and_batches(unit):
    X, groups = segregated(300)
    weights = np.full(300, unit)
    model = FairKMeans(4, min_balance=0.5, random_state=0)
    for part in (slice(0, 150), slice(150, 300)):
        model.partial_fit(X[part], sensitive_features=groups[part], sample_weight=weights[part])
    assert model.balance_ >= 0.5 * balance_score(np.zeros(300), sensitive_features=groups) - 1e-9
    assert model.group_counts_.sum() == pytest.approx(300 * unit)
    for n_rows, before in ((3, None), (60, "fit")):
        rows = slice(0, n_rows)
        labels = model.assign(
            X[rows], sensitive_features=groups[rows], sample_weight=weights[rows], before=before
        )
        assert labels.size == n_rows


def test_a_stream_says_when_rows_that_stay_break_the_limits():
    """One row more cannot balance clusters whose rows stay, if the limit is raised meanwhile."""
    X = np.repeat([[0.0], [10.0]], 100, axis=0) + generator(0).normal(size=(200, 1))
    groups = np.repeat(["f", "m"], [100, 100])
    model = FairKMeans(2, random_state=0).partial_fit(X, sensitive_features=groups)
    held = model.group_counts_.copy()
    assert model.status_ == "converged"
    with pytest.warns(ConvergenceWarning, match="all rows so far are missed.*stay in their clus"):
        model.set_params(min_balance=0.99).partial_fit(X[:1], sensitive_features=["f"])
    assert model.status_ == "infeasible"
    assert "miss a limit" in model.summary_
    assert (model.group_counts_ >= held).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(min_balance=0.5).partial_fit(X, sensitive_features=groups)
    assert model.status_ == "converged"


def test_a_stream_checks_its_parts():
    X, groups = segregated(200)
    model = FairKMeans(2, random_state=0).partial_fit(X, sensitive_features=groups)
    before = vars(model).copy()
    with pytest.raises(ValueError, match="got no sensitive_features"):
        model.partial_fit(X)
    with pytest.raises(ValueError, match="did not occur at fit: 'z'"):
        model.partial_fit(X, sensitive_features=["z"] * 200)
    assert vars(model) == before
    with pytest.warns(UserWarning, match="without sensitive_features"):
        plain = FairKMeans(2, random_state=0).partial_fit(X)
    assert plain.partial_fit(X).group_counts_.sum() == 400


@pytest.mark.parametrize(
    ("model", "dtype"),
    [
        (FairKMeans(5), np.float32),
        pytest.param(ParetoFairKMeans(5, balances=2, n_init=1), np.float64, marks=pytest.mark.slow),
    ],
)
def test_a_fit_holds_no_second_copy_of_the_rows(model, dtype):
    rng = generator(0)
    X, groups = rng.normal(size=(100_000, 50)).astype(dtype), rng.integers(3, size=100_000)
    X[:, 0] += groups
    model = clone(model).set_params(random_state=0)
    # Loads compiled code, that of many rows as well: it takes megabytes.
    model.fit(X[:30_000], sensitive_features=groups[:30_000])
    tracemalloc.start()
    try:
        model.fit(X, sensitive_features=groups)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.9 * X.nbytes


def test_a_batch_without_a_group_joins_what_the_clusters_hold():
    X, groups = segregated(300)
    model = FairKMeans(3, min_balance=0.8, random_state=0).fit(X, sensitive_features=groups)
    one = groups[0]
    rows = np.flatnonzero(groups == one)
    rows = rows[np.argsort(X[rows, 1])[:60]]
    labels = model.assign(X[rows], sensitive_features=groups[rows])
    of_group = np.bincount(labels, minlength=3)
    counts = model.group_counts_ + of_group[:, None] * (model.groups_ == one)
    balances = counts.min(axis=1) / counts.max(axis=1)
    total = counts.sum(axis=0)
    assert balances.min() >= 0.8 * total.min() / total.max() - 1e-9


@pytest.mark.filterwarnings("ignore")  # few rows, many clusters
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_row_alone_goes_where_it_goes_in_a_batch(seed, sparse, dtype):
    """Duplicates, ties between centres, as many clusters as rows, and a mean far from 0."""
    rng = generator(seed)
    n, n_columns = int(rng.integers(6, 30)), 1 + seed % 3
    X = np.round(rng.normal(size=(n, n_columns)))[rng.integers(0, n, n)] + 100 * (seed % 4 == 1)
    X, sex = X.astype(dtype), np.arange(n) % 2
    n_clusters = n if seed % 4 == 0 else int(rng.integers(2, 6))
    balance = [0.5, 0.8, 0][seed % 3] if n_clusters < n / 2 else 0
    model = FairKMeans(n_clusters, min_balance=balance, random_state=0)
    model.fit(X, sensitive_features=sex)
    rows = csr_array(X) if sparse else X
    for groups in (None, sex):
        own = [None if groups is None else groups[i : i + 1] for i in range(n)]
        one = [model.predict(rows[i : i + 1], sensitive_features=own[i])[0] for i in range(n)]
        assert np.array_equal(model.predict(rows, sensitive_features=groups), one)


@pytest.mark.parametrize("seed", range(3))
def test_more_runs_are_never_worse_than_the_usual_one(seed):
    rng = generator(seed)
    X = rng.normal(size=(400, 3)) + rng.choice(4.0 * rng.normal(size=(9, 3)), 400)
    groups = np.where(X[:, 0] + rng.normal(size=400) > 0, "a", "b")
    costs = [
        FairKMeans(5, n_init=n, random_state=seed).fit(X, sensitive_features=groups).inertia_
        for n in ("auto", 1, 2, 5)
    ]
    assert costs[0] == costs[1]
    assert costs[1] >= costs[2] >= costs[3]


def test_given_centres_treat_integer_weights_as_copies():
    """Where a cluster becomes empty, too: heavy rows do not refill it before far ones."""
    for seed in range(12):
        rng = generator(seed)
        X, weights = rng.normal(size=(60, 2)), rng.choice([1, 8], 60)
        groups = np.tile(["f", "m"], 30)
        start = np.vstack([X[:2], [[90.0, 90.0]]])
        model = FairKMeans(3, min_balance=0.0, n_init=1, init=start)
        labels = model.fit(X, sensitive_features=groups, sample_weight=weights).labels_
        model.fit(np.repeat(X, weights, axis=0), sensitive_features=np.repeat(groups, weights))
        assert (np.repeat(labels, weights) == model.labels_).all()


def test_clusters_cost_hardly_more_than_those_of_k_means_that_are_balanced():
    """Few rows have many local optima, and luck is no reason: before, 12% of fits were beaten."""
    n_worse = 0
    for seed in range(40):
        rng = generator(seed)
        X, groups = rng.normal(size=(150, 4)), np.arange(150) % 2
        plain = KMeans(6, n_init=3, random_state=0).fit(X)
        reached = balance_score(plain.labels_, sensitive_features=groups)
        limits = {"min_balance": reached * (seed % 2), "relative_balance": False}
        model = FairKMeans(6, random_state=0, **limits).fit(X, sensitive_features=groups)
        n_worse += model.inertia_ > 1.02 * plain.inertia_
    # One of 240 was, on average: more than 4 of 40 occur less than once in 1e6 runs.
    assert n_worse <= 4


@pytest.mark.parametrize("has_weights", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_sixty_rows_in_four_groups_take_no_seconds(has_weights):
    """A limit that whole rows can hardly keep took 1 to 4 s of searches."""
    seconds = []
    for seed in range(8):
        rng = generator(seed)
        X, groups = rng.normal(size=(60, 3)), rng.choice(4, 60)
        model = FairKMeans(6 - seed % 3, min_balance=0.95 + 0.05 * has_weights, random_state=0)
        weights = rng.lognormal(0, 2, 60) if has_weights else None
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that groups are small, or limits are missed
            model.fit(X, sensitive_features=groups, sample_weight=weights)
        seconds.append(time.process_time() - start)
    assert np.mean(seconds) < 0.9


def test_an_assignment_to_its_centres_is_as_cheap():
    X, groups = crowd(seed=2)
    fair = FairKMeans(3, random_state=0).fit(X, sensitive_features=groups)
    inner = KMeans(3, init=fair.cluster_centers_, n_init=1, max_iter=1).fit(X)
    inner.cluster_centers_ = fair.cluster_centers_
    model = FairAssignment(FrozenEstimator(inner)).fit(X, sensitive_features=groups)
    assert model.cost_ * groups.size <= fair.inertia_ * 1.005
