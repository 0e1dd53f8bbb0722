"""Fair k-means on Dask collections: the same clusters as in memory, made where the rows are."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from skfair import Sensitive
from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.groups.encoding import encode_groups
from skfair.problems.clustering import in_blocks as partitioned_rows
from skfair.problems.clustering import placement
from skfair.problems.clustering.counts import balance_constraints
from skfair.problems.clustering.in_blocks import Labels, PartitionedProblem
from skfair.problems.clustering.placement import Placement
from skfair.problems.clustering.points import RepresentationProblem
from skfair.read import read_rows
from skfair.utils import partitions, pieces
from tests.older import needs_callbacks
from tests.prototypes import QuietCallback

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

# More rows than these settle on a sample first.
SMALL, LARGE = 900, 21_000


def people(n=SMALL, seed=0, dtype=float):
    """Points in clumps whose groups differ by clump."""
    rng = np.random.default_rng(seed)
    clump = rng.integers(0, 5, n)
    X = (3 * rng.normal(size=(5, 3)))[clump] + rng.normal(size=(n, 3))
    return pd.DataFrame(X.astype(dtype), columns=["a", "b", "c"]).assign(
        sex=np.where(rng.random(n) < 0.3 + 0.1 * clump, "f", "m"),
        race=pd.Categorical(rng.choice(["w", "b", "o"], n, p=[0.6, 0.3, 0.1])),
        w=rng.uniform(0.5, 2, n),
    )


def chunks(n):
    """Unequal blocks."""
    return (n // 10, n // 2, n - n // 10 - n // 2)


def both(frame, groups=("sex",), weighted=False, **options):
    """Fit in memory and on blocks of unequal and unknown lengths."""
    X = frame[["a", "b", "c"]]
    groups = frame[groups[0]] if len(groups) == 1 else frame[list(groups)]
    weights = frame.w if weighted else None
    model = FairKMeans(3, random_state=0, **options)
    here = model.fit(X, sensitive_features=groups, sample_weight=weights)
    ends = np.cumsum([0, *chunks(len(frame))])

    def lazy(table):
        return dd.from_map(lambda i, j: table.iloc[i:j], ends[:-1], ends[1:])

    there = FairKMeans(3, random_state=0, **options).fit(
        lazy(X),
        sensitive_features=lazy(groups),
        sample_weight=None if weights is None else lazy(weights),
    )
    return here, there


@pytest.mark.parametrize(
    ("n", "options"),
    [
        (SMALL, {}),
        (SMALL, {"min_balance": None, "share_bounds": 0.8, "groups": ("race",)}),
        (LARGE, {"groups": ("race",)}),
        (LARGE, {"groups": ("sex", "race")}),
        (LARGE, {"groups": ("race", "sex"), "sensitive": Sensitive(crossed=False)}),
        (LARGE, {"weighted": True}),
        (LARGE, {"min_balance": 0.5, "relative_balance": False, "n_init": 2}),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The crossed groups keep")
def test_the_clusters_are_those_of_the_rows_in_memory(n, options):
    frame = people(n)
    here, there = both(frame, **options)
    assert there.inertia_ == pytest.approx(here.inertia_, rel=1e-6)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-6)
    assert there.status_ == here.status_
    # Runs that end in the same clusters may number them differently.
    one, other = (np.sort(model.cluster_centers_, axis=0) for model in (here, there))
    assert_allclose(other, one, rtol=1e-3, atol=1e-3)
    assert list(there.groups_) == list(here.groups_)
    # The counts are those of the labels, and within the limits.
    labels = there.labels_.compute()
    assert labels.dtype == np.int32
    columns = options.get("groups", ("sex",))
    crossed = options.get("sensitive", Sensitive()).crossed
    groups = encode_groups(
        frame[columns[0]] if len(columns) == 1 else frame[list(columns)], intersectional=crossed
    )
    weights = frame.w.to_numpy() if options.get("weighted") else None
    counts = groups.cross_counts(labels, 3, weights).T
    assert_allclose(there.group_counts_, counts, rtol=1e-12)
    if "share_bounds" not in options:
        balances = []
        for i, j in zip(groups.offsets[:-1], groups.offsets[1:], strict=True):
            total = counts[:, i:j].sum(axis=0)
            of_data = total.min() / total.max() if options.get("relative_balance", True) else 1
            balances.append(counts[:, i:j].min(axis=1) / counts[:, i:j].max(axis=1) / of_data)
        assert np.min(balances) >= options.get("min_balance", 0.8) - 1e-9


def test_single_precision_and_arrays_that_are_chunked_differently():
    frame = people(LARGE, dtype=np.float32)
    X = frame[["a", "b", "c"]].to_numpy()
    lazy = da.from_array(X, chunks=(chunks(LARGE), 2))
    sex = da.from_array(frame.sex.to_numpy().astype("U1"), chunks=5000)
    here = FairKMeans(3, random_state=1).fit(X, sensitive_features=frame.sex)
    there = FairKMeans(3, random_state=1).fit(lazy, sensitive_features=sex)
    assert there.inertia_ == pytest.approx(here.inertia_, rel=1e-6)
    assert there.cluster_centers_.dtype == np.float32
    assert there.labels_.chunks == (chunks(LARGE),)
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


def test_rows_are_not_read_again_for_the_labels(monkeypatch):
    """Without room for the blocks they are read in every pass, but labels are kept."""
    frame = people(LARGE)
    n_read = []

    def read(i):
        n_read.append(i)
        return frame[i * LARGE // 3 : (i + 1) * LARGE // 3]

    lazy = dd.from_map(read, range(3), meta=frame[:0])
    monkeypatch.setattr(partitions, "KEPT_BYTES", 1000)
    model = FairKMeans(3, random_state=0, max_iter=100)
    model.fit(lazy[["a", "b", "c"]], sensitive_features=lazy.sex)
    assert len(n_read) > 30
    n_read.clear()
    assert_array_equal(np.bincount(model.labels_), model.group_counts_.sum(axis=1))
    assert not n_read
    model.predict(lazy[["a", "b", "c"]])
    assert not n_read


def test_labels_that_do_not_fit_are_made_again(monkeypatch):
    frame = people(LARGE)
    _, there = both(frame)
    for module in (partitions, partitioned_rows):
        monkeypatch.setattr(module, "KEPT_BYTES", 1000)
    _, again = both(frame)
    assert len(again.labels_.__dask_graph__()) > len(there.labels_.__dask_graph__())
    assert_array_equal(again.labels_, there.labels_)


def test_what_is_exchanged_does_not_depend_on_the_number_of_rows():
    found = []
    for n in (LARGE, 3 * LARGE):
        _, model = both(people(n))
        found.append(model.history_["bytes"].max())
    assert found[1] <= 1.05 * found[0]
    assert 0 < found[0] < LARGE * 3 * 8


def test_one_group_and_no_groups():
    frame = people()
    X = da.from_array(frame[["a", "b", "c"]].to_numpy(), chunks=300)
    with pytest.warns(UserWarning, match="a single group"):
        one = FairKMeans(3, random_state=0).fit(X, sensitive_features=np.full(SMALL, "x"))
    with pytest.warns(UserWarning, match="without sensitive_features"):
        none = FairKMeans(3, random_state=0, n_init=2, n_jobs=2).fit(X)
    assert none.inertia_ == pytest.approx(one.inertia_, rel=1e-3)
    assert_array_equal(none.labels_, none.predict(X))


def test_limits_that_need_whole_people_and_empty_clusters():
    """Single moves get stuck close to exact proportion; a far centre attracts nobody."""
    frame = people(90, seed=3)
    for options in ({"min_balance": 0.99}, {"min_balance": 0.0, "init": np.eye(3) * [1, 1, 1e3]}):
        here, there = both(frame, **options)
        assert there.inertia_ == pytest.approx(here.inertia_, rel=1e-6)
        assert_array_equal(there.labels_, here.labels_)
        assert there.group_counts_.sum(axis=1).min() > 0


@needs_callbacks
def test_empty_blocks_and_a_callback_that_stops():
    class Stop(QuietCallback):
        def on_fit_task_end(self, estimator, context):
            return context.task_name == "iteration" and context.task_id == 0

    frame = people()
    lazy = dd.from_map(lambda i, j: frame[i:j], [0, 0, 400, 900], [0, 400, 900, 900])
    model = FairKMeans(3, init=np.eye(3), random_state=0).set_callbacks(Stop())
    model.fit(lazy[["a", "b", "c"]], sensitive_features=lazy.sex)
    assert model.status_ == "stopped"
    assert model.labels_.shape == (900,)
    assert model.score(lazy[["a", "b", "c"]]) < 0


def test_the_front():
    frame = people(LARGE)
    X = frame[["a", "b", "c"]].to_numpy()
    here, there = (ParetoFairKMeans(3, balances=4, n_init=1, random_state=0) for _ in range(2))
    here.fit(X, sensitive_features=frame.sex)
    lazy = da.from_array(X, chunks=(chunks(LARGE), 3))
    there.fit(lazy, sensitive_features=frame.sex)
    assert_allclose(there.costs_, here.costs_, rtol=1e-6)
    assert_allclose(there.relative_balances_, here.relative_balances_, rtol=1e-6)
    assert there.knee_ == here.knee_
    assert isinstance(there.labels_, da.Array)
    assert there.labels_.dtype == here.labels_.dtype
    assert there.labels_.shape == here.labels_.shape
    model = there.select(min_balance=0.5)
    counts = encode_groups(frame.sex).cross_counts(model.labels_.compute(), 3).T
    assert_array_equal(counts, model.group_counts_)
    assert isinstance(model.predict(lazy), da.Array)
    with pytest.raises(ValueError, match="solver='swap' needs the rows in memory"):
        ParetoFairKMeans(3, solver="swap").fit(lazy, sensitive_features=frame.sex)


def test_errors():
    frame = people()
    frame.loc[500, "b"] = np.nan
    lazy = dd.from_pandas(frame, npartitions=3)
    X, sex = lazy[["a", "b", "c"]], lazy.sex
    model = FairKMeans(3, random_state=0)
    with pytest.raises(ValueError, match="Partition 1: column 'b' of X has NaN in 1 row"):
        model.fit(X, sensitive_features=sex)
    assert not hasattr(model, "cluster_centers_")
    X = X.fillna(0)
    for solver in ("swap", "variational", "smooth"):
        with pytest.raises(ValueError, match=f"solver='{solver}' needs the rows in memory"):
            FairKMeans(3, solver=solver, min_balance=None).fit(X, sensitive_features=sex)
    with pytest.raises(ValueError, match="n_samples=900 should be >= n_clusters=1000"):
        FairKMeans(1000, min_balance=None).fit(X, sensitive_features=sex)
    with pytest.raises(NotFittedError):
        model.score(X)
    with pytest.raises(TypeError, match="partial_fit takes one part of a stream in memory"):
        model.partial_fit(X, sensitive_features=sex)
    model.fit(frame[["a", "b", "c"]].fillna(0), sensitive_features=frame.sex)
    with pytest.raises(TypeError, match="assign decides on a whole batch in memory"):
        model.assign(X, sensitive_features=sex)
    other = dd.from_pandas(frame.sex.where(frame.index != 700, "x"), npartitions=3)
    with pytest.raises(ValueError, match="Partition 2: .*x"):
        model.predict(X, sensitive_features=other).compute()


@pytest.fixture(scope="module")
def twins():
    """The same weighted problem in memory and in blocks, and its labels at some prices."""
    frame = people(2000, seed=5)
    X, groups = frame[["a", "b", "c"]].to_numpy(), frame[["sex", "race"]]
    weights = np.where(np.arange(2000) % 7, np.round(frame.w, 1), 0.0)
    encoding = encode_groups(groups, intersectional=False)
    constraints = balance_constraints(encoding, np.array([0.3, 0.1]), weights[weights > 0].min())
    lazy = da.from_array(X, chunks=(chunks(2000), 3))
    model = FairKMeans(sensitive=Sensitive(crossed=False))
    training = read_rows(model, lazy, sensitive_features=groups, sample_weight=weights).blocks
    here = RepresentationProblem(X, encoding, constraints, 4, weights)
    return here, PartitionedProblem(training, constraints, 4)


@pytest.mark.parametrize("factor", [1e-200, 1.0, 1e200])
def test_units_of_very_large_and_small_numbers(factor):
    X = (people(200)[["a", "b", "c"]].to_numpy() + 1e3) * factor
    codes = np.arange(200) % 2
    constraints = balance_constraints(encode_groups(codes), np.array([0.5]))
    training = read_rows(
        FairKMeans(), da.from_array(X, chunks=(chunks(200), 3)), sensitive_features=codes
    ).blocks
    there = PartitionedProblem(training, constraints, 2)
    assert there.row_weight == 1
    assert_allclose(there.units.mean / factor, (X / factor).mean(axis=0), rtol=1e-12)
    assert there.units.scale / factor == pytest.approx(np.sqrt((X / factor).var(axis=0).sum()))


@pytest.mark.parametrize("numbers", [pieces.NUMBERS, 800])
def test_every_sum_and_list_is_that_of_the_rows_in_memory(twins, numbers, monkeypatch):
    monkeypatch.setattr(pieces, "NUMBERS", numbers)  # 800: many pieces, and as long as two
    here, there = twins
    rng = np.random.default_rng(0)
    centers, price = rng.normal(size=(4, 3)), 0.1 * rng.normal(size=(here.n_cells, 4))
    one, other = here.distances(centers), there.distances(centers)
    assert other.mean_nearest() == pytest.approx(one.mean_nearest())
    for found, expected in zip(
        other.soft_counts(price, 0.05), one.soft_counts(price, 0.05), strict=True
    ):
        assert_allclose(found, expected, rtol=1e-12)
    labels, counts, value = one.assigned(price)
    recipe, their_counts, their_value = other.assigned(price)
    assert their_value == pytest.approx(value)
    assert_allclose(their_counts, counts)
    # Rows that are moved by hand, twice for some of them.
    for rows in (np.array([0, 199, 200, 1500]), np.array([200, 1999])):
        clusters = (labels[rows] + 1) % 4
        labels[rows] = clusters
        recipe.move(rows, clusters)
    assert_array_equal(there.label_rows(recipe), labels)
    assert_allclose(there.counts(recipe), here.counts(labels))
    assert_allclose(there.means(recipe)[0], here.means(labels)[0])
    assert there.cost(recipe) == pytest.approx(here.cost(labels))
    assert other.cost(recipe) == pytest.approx(one.cost(labels))
    far = there.farthest_points(recipe, centers, 3)
    for found, expected in zip(far, here.farthest_points(labels, centers, 3), strict=True):
        assert_allclose(found, expected)
    lists, expected = other.cheapest_moves(recipe, 5), one.cheapest_moves(labels, 5)
    assert_array_equal(lists.size, expected.size)
    is_listed = expected.is_listed
    assert is_listed.any()
    assert_allclose(lists.cost[is_listed], expected.cost[is_listed])
    row, number = expected.row[is_listed], lists.row[is_listed]
    assert_array_equal(lists.weights[number], here.weights[row])
    assert_array_equal(lists.labels[number], labels[row])
    lists.labels[number[0]] = 3 - labels[row[0]]
    lists.apply()
    labels[row[0]] = 3 - labels[row[0]]
    assert_array_equal(there.label_rows(recipe), labels)


def test_labels_are_counted_once(twins, monkeypatch):
    there = twins[1]
    labels = Labels(np.eye(4)[:, :3], np.zeros((there.n_cells, 4)))
    there.counts(labels)
    monkeypatch.setattr(there, "total", None)
    there.means(labels)
    there.cost(labels)
    there.distances(labels.centers).cost(labels)
    assert there.counts(labels) is not there.tally(labels).counts  # a solver changes its counts


def test_points_move_to_wanted_counts_through_short_lists(monkeypatch):
    """Lists that are cut off are renewed, and the moves are those of whole lists."""
    frame = people(300)
    X, groups = frame[["a", "b", "c"]].to_numpy(), encode_groups(frame.sex)
    constraints = balance_constraints(groups, np.array([0.5]))
    lazy = da.from_array(X, chunks=(chunks(300), 3))
    training = read_rows(FairKMeans(), lazy, sensitive_features=frame.sex).blocks
    here = RepresentationProblem(X, groups, constraints, 4)
    there = PartitionedProblem(training, constraints, 4)
    centers = here.scaled(np.arange(4))
    wanted = here.counts(np.random.default_rng(0).integers(0, 4, 300)).astype(int)
    costs = []
    for longest, problem in ((256, here), (3, here), (3, there)):
        monkeypatch.setattr(placement, "_LONGEST_LIST", longest)
        distances = problem.distances(centers)
        labels = distances.assigned(np.zeros((2, 4)))[0]
        Placement(problem, distances, labels).move_to(wanted)
        assert_array_equal(problem.counts(labels), wanted)
        costs.append(distances.cost(labels))
    assert_allclose(costs, costs[0], rtol=1e-12)
