"""Fair k-means on Dask collections: the labels of rows in memory, while X stays where it is."""

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skfair import Sensitive
from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.cluster.assignment.counts import balance_constraints
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.kmeans.points_in_partitions import PointsInPartitions
from skfair.cluster.kmeans.solver import CLUSTERING_SOLVERS
from skfair.groups.encoding import encode_groups
from skfair.read import read_rows
from skfair.utils import partitioned_rows, partitions
from tests.older import needs_callbacks
from tests.prototypes import QuietCallback
from tests.seeds import generator

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

# Few rows come here; more, of fifty columns, stay in their partitions.
SMALL, LARGE, WIDTH = 900, 21_000, 50


@pytest.fixture(autouse=True)
def columns_stay(monkeypatch):
    monkeypatch.setattr(partitioned_rows, "FEW_BYTES", 0)


def people(n=LARGE, seed=0):
    """Points in clumps whose groups differ by clump."""
    rng = generator(seed)
    clump = rng.integers(0, 5, n)
    X = rng.normal(size=(n, WIDTH))
    X[:, :3] += (3 * rng.normal(size=(5, 3)))[clump]
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(WIDTH)]).assign(
        sex=np.where(rng.random(n) < 0.3 + 0.1 * clump, "f", "m"),
        race=pd.Categorical(rng.choice(["w", "b", "o"], n, p=[0.6, 0.3, 0.1])),
        w=rng.uniform(0.5, 2, n) * rng.integers(0, 9, n) ** 2,
    )


def columns(frame):
    return frame.iloc[:, :WIDTH]


def in_partitions(table, sizes):
    """Return a collection whose partitions have these sizes, which it does not know."""
    ends = np.cumsum([0, *sizes])
    return dd.from_map(lambda i, j: table.iloc[i:j], ends[:-1], ends[1:], meta=table[:0])


def both(frame, groups=("sex",), is_weighted=False, sizes=None, model=FairKMeans, **options):
    """Fit in memory, and where the rows are in partitions."""
    sizes = sizes or (len(frame) // 10, 0, len(frame) // 2, 1, len(frame) * 2 // 5 - 1)
    groups = frame[groups[0]] if len(groups) == 1 else frame[list(groups)]
    given = {"sensitive_features": groups} | ({"sample_weight": frame.w} if is_weighted else {})
    here, there = (model(3, random_state=0, **options) for _ in range(2))
    here.fit(columns(frame), **given)
    lazy = {name: in_partitions(column, sizes) for name, column in given.items()}
    return here, there.fit(in_partitions(columns(frame), sizes), **lazy)


def assert_same(here, there):
    assert isinstance(there.labels_, np.ndarray)
    assert there.labels_.dtype == here.labels_.dtype
    assert_array_equal(there.labels_, here.labels_)
    assert_array_equal(there.group_counts_, here.group_counts_)
    assert there.status_ == here.status_
    for name in ("cluster_centers_", "prices_", "inertia_", "lower_bound_"):
        assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("n", "options"),
    [
        (SMALL, {}),
        (SMALL, {"min_balance": 0.99}),
        (LARGE, {"groups": ("race",)}),
        (LARGE, {"groups": ("sex", "race")}),
        (LARGE, {"groups": ("race", "sex"), "sensitive": Sensitive(intersectional=False)}),
        (LARGE, {"is_weighted": True}),
        (LARGE, {"min_balance": None, "share_bounds": 0.8, "groups": ("race",)}),
        (LARGE, {"min_balance": 0.5, "relative_balance": False, "n_init": 2}),
        (LARGE, {"size_bounds": ([0.2, 0.3, 0.4], [0.2, 0.4, 0.5])}),
        # A far centre attracts nobody.
        (LARGE, {"min_balance": 0.0, "init": np.eye(3, WIDTH) * [[1], [1], [1e3]]}),
    ],
)
@pytest.mark.filterwarnings("ignore:The crossed groups keep")
def test_labels_are_those_of_rows_in_memory(n, options):
    assert_same(*both(people(n), **options))


@pytest.mark.parametrize("sizes", [(LARGE,), (1000,) * 21, (7, LARGE - 7)])
def test_partitions_do_not_matter(sizes):
    assert_same(*both(people(seed=1), sizes=sizes))


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_very_small_and_large_numbers(factor):
    frame = people()
    frame.iloc[:, :WIDTH] *= factor
    here, there = both(frame)
    assert_array_equal(there.labels_, here.labels_)
    assert_allclose(there.cluster_centers_ / factor, here.cluster_centers_ / factor, rtol=1e-6)


def test_every_answer_about_points_is_that_of_points_in_memory():
    frame = people(seed=5)
    encoding = encode_groups(frame[["sex", "race"]], intersectional=False)
    limits = balance_constraints(encoding, np.array([0.3, 0.1]))
    model = FairKMeans(sensitive=Sensitive(intersectional=False))
    data = read_rows(
        model,
        da.from_array(columns(frame).to_numpy(), chunks=((5, 8995, 0, 12000), WIDTH)),
        supervised=False,
        sensitive_features=frame[["sex", "race"]],
        sample_weight=frame.w,
    )
    weights = frame.w.to_numpy()
    here = RepresentationProblem(columns(frame).to_numpy(), encoding, limits, 3, weights)
    there = PointsInPartitions(data.X, encoding, limits, 3, weights)
    assert there.units.scale == here.units.scale
    assert_array_equal(there.units.mean, here.units.mean)
    rng = generator(0)
    centers = here.units.inwards(rng.normal(size=(3, WIDTH)))
    price = 0.01 * rng.normal(size=(here.n_cells, 3))
    one, other = here.distances(centers), there.distances(centers)
    expected, found = (table.told_apart(price, 0.05) for table in (one, other))
    assert_array_equal(found[1], expected[1])  # the rows near a tie
    assert 0 < found[1].size < LARGE
    assert_array_equal(found[2], expected[2])  # their costs, to the last bit
    for answer in (expected, found):
        answer[0][answer[1]] = 0  # they have no labels
    assert_array_equal(found[0], expected[0])
    for i in (3, 4):
        assert_allclose(found[i], expected[i], rtol=1e-12)
    labels = expected[0]
    assert other.cost(labels) == pytest.approx(one.cost(labels), rel=1e-12)
    for a, b in zip(there.sums(labels), here.sums(labels), strict=True):
        assert_allclose(a, b, rtol=1e-12, atol=1e-9)
    for a, b in zip(
        there.farthest_points(labels, centers, 3),
        here.farthest_points(labels, centers, 3),
        strict=True,
    ):
        assert_array_equal(a, b)
    expected, found = (table.cheapest_moves(labels, 5) for table in (one, other))
    assert_array_equal(found.size, expected.size)
    is_listed = found.is_listed
    assert_array_equal(found.row[is_listed], expected.row[is_listed])
    assert_array_equal(found.cost[is_listed], expected.cost[is_listed])


def test_single_precision_and_arrays_that_are_chunked_differently():
    frame = people()
    X = columns(frame).to_numpy().astype(np.float32)
    lazy = da.from_array(X, chunks=((2100, 10_500, 8400), 20))
    sex = da.from_array(frame.sex.to_numpy().astype("U1"), chunks=5000)
    here = FairKMeans(3, random_state=1).fit(X, sensitive_features=frame.sex)
    there = FairKMeans(3, random_state=1).fit(lazy, sensitive_features=sex)
    assert_same(here, there)
    assert there.cluster_centers_.dtype == np.float32
    # What is fitted predicts lazily, and as in memory.
    for method, options in (
        ("predict", {}),
        ("predict", {"sensitive_features": sex}),
        ("transform", {}),
    ):
        found = getattr(there, method)(lazy, **options)
        known = {name: one.compute() for name, one in options.items()}
        expected = getattr(there, method)(X, **known)
        assert isinstance(found, da.Array)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert_allclose(found.compute(), expected, rtol=1e-6)
    weights = da.from_array(np.where(np.arange(LARGE) < LARGE // 10, 0.0, 1.5), chunks=1000)
    assert there.score(lazy) == pytest.approx(there.score(X), rel=1e-6)
    expected = there.score(X, sample_weight=weights.compute())
    assert there.score(lazy, sample_weight=weights) == pytest.approx(expected, rel=1e-6)
    # A stream may go on with parts in memory.
    there.partial_fit(X[:500], sensitive_features=frame.sex[:500])
    assert there.group_counts_.sum() == LARGE + 500


def test_partitions_without_room_are_read_again_and_X_stays_there(monkeypatch):
    frame, n_read = people(), []

    def read(i):
        n_read.append(i)
        return frame[i * LARGE // 3 : (i + 1) * LARGE // 3]

    lazy = dd.from_map(read, range(3), meta=frame[:0])
    monkeypatch.setattr(partitions, "KEPT_BYTES", 1000)
    model = FairKMeans(3, random_state=0)
    model.fit(columns(lazy), sensitive_features=lazy.sex)
    assert len(n_read) > 15
    assert 0 < model.history_["bytes"].max() < columns(frame).to_numpy().nbytes / 5
    assert_array_equal(model.labels_, both(frame)[0].labels_)


def test_one_group_and_no_groups():
    X = da.from_array(columns(people(SMALL)).to_numpy(), chunks=300)
    model = FairKMeans(3, random_state=0, n_init=2)
    with pytest.warns(UserWarning, match="a single group"):
        one = clone(model).fit(X, sensitive_features=np.full(SMALL, "x"))
    with (
        joblib.parallel_config("threading"),
        pytest.warns(UserWarning, match="without sensitive_features"),
    ):
        none = clone(model).set_params(n_jobs=2).fit(X)
    assert none.inertia_ == pytest.approx(one.inertia_, rel=1e-3)
    assert_array_equal(none.labels_, none.predict(X))


@needs_callbacks
def test_a_callback_that_stops():
    class Stop(QuietCallback):
        def on_fit_task_end(self, estimator, context):
            return context.task_name == "iteration" and context.task_id == 0

    lazy = in_partitions(people(), (0, 9000, 12_000, 0))
    model = FairKMeans(3, init=np.eye(3, WIDTH), random_state=0).set_callbacks(Stop())
    model.fit(columns(lazy), sensitive_features=lazy.sex)
    assert model.status_ == "stopped"
    assert model.labels_.shape == (LARGE,)
    assert model.score(columns(lazy)) < 0


def test_the_front():
    frame = people()
    here, there = both(frame, model=ParetoFairKMeans, balances=4, n_init=1)
    assert isinstance(there.labels_, np.ndarray)
    assert there.labels_.dtype == here.labels_.dtype
    assert_array_equal(there.labels_, here.labels_)
    assert_allclose(there.costs_, here.costs_, rtol=1e-6)
    assert_array_equal(there.relative_balances_, here.relative_balances_)
    model = there.select(min_balance=0.5)
    counts = encode_groups(frame.sex).cross_counts(model.labels_, 3).T
    assert_array_equal(counts, model.group_counts_)
    lazy = in_partitions(frame, (LARGE,))
    assert isinstance(model.predict(columns(lazy)), da.Array)


def test_errors():
    frame = people(SMALL)
    frame.loc[500, "x1"] = np.nan
    lazy = dd.from_pandas(frame, npartitions=3)
    X, sex = columns(lazy), lazy.sex
    model = FairKMeans(3, random_state=0)
    with pytest.raises(ValueError, match="Partition 1: column 'x1' of X has NaN in 1 row"):
        model.fit(X, sensitive_features=sex)
    assert not hasattr(model, "cluster_centers_")
    X = X.fillna(0)
    for solver in CLUSTERING_SOLVERS:
        fits = FairKMeans(3, solver=solver, min_balance=None), ParetoFairKMeans(3, solver=solver)
        for fit in fits[: 1 + CLUSTERING_SOLVERS[solver].has_front]:
            if not CLUSTERING_SOLVERS[solver].takes_sparse:
                with pytest.raises(ValueError, match=f"solver='{solver}' needs the rows in memory"):
                    fit.fit(X, sensitive_features=sex)
    with pytest.raises(TypeError, match="partial_fit takes one part of a stream in memory"):
        model.partial_fit(X, sensitive_features=sex)
    model.fit(columns(frame).fillna(0), sensitive_features=frame.sex)
    with pytest.raises(TypeError, match="assign decides on a whole batch in memory"):
        model.assign(X, sensitive_features=sex)
    other = dd.from_pandas(frame.sex.where(frame.index != 700, "x"), npartitions=3)
    with pytest.raises(ValueError, match="Partition 2: .*x"):
        model.predict(X, sensitive_features=other).compute()


@pytest.mark.slow
def test_fair_kmeans_and_its_predictions(cluster, monkeypatch):
    monkeypatch.setattr(partitioned_rows, "FEW_BYTES", 0)
    frame = people()
    with cluster.as_current():
        here, there = both(frame, groups=("race",))
        assert_same(here, there)
        lazy = dd.from_pandas(frame, npartitions=5)
        near = there.predict(columns(lazy), sensitive_features=lazy.race)
        known = there.predict(columns(frame), sensitive_features=frame.race)
        assert_array_equal(near, known)
