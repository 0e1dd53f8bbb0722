"""The layer for Dask collections: blocks, sums over them, and what is wrong with them."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator

from skfair import Sensitive
from skfair.base import SensitiveFeaturesMixin
from skfair.groups.distinct_rows import RowBlock
from skfair.groups.encoding import encode_groups
from skfair.read import read_rows
from skfair.utils import partitions
from skfair.utils.dask_collections import align, by_block
from skfair.utils.history import bytes_exchanged
from skfair.utils.partition_tasks import Sealed, run_blocks
from tests.seeds import generator

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


class Reader(SensitiveFeaturesMixin, BaseEstimator):
    _takes_partitions = True

    def __init__(self, sensitive=None):
        self.sensitive = sensitive


def people(n=400, seed=0):
    rng = generator(seed)
    return pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.normal(size=n),
            "sex": rng.choice(["f", "m"], n),
            "race": pd.Categorical(rng.choice(["w", "b", "o"], n), categories=["w", "b", "o"]),
            "y": rng.choice(["no", "yes"], n),
        }
    )


def read(frame, *, n_blocks=4, groups=("sex",), **options):
    lazy = dd.from_pandas(frame, npartitions=n_blocks)
    groups = lazy[list(groups)] if len(groups) > 1 else lazy[groups[0]]
    return read_rows(Reader(**options), lazy[["a", "b"]], lazy.y, sensitive_features=groups)


def here(rows):
    """Return all rows in memory."""
    return rows.taken(np.arange(len(rows)))


def block_sum(block):
    return float(block["X"].sum())


@pytest.mark.parametrize("n_blocks", [1, 2, 7, 30])
@pytest.mark.parametrize("kept", [False, True])
def test_sums_and_lists_over_blocks(n_blocks, kept):
    x = np.arange(60.0)
    rows = align(X=da.from_array(x, chunks=-(-60 // n_blocks)))
    rows = rows.hold().pack() if kept else rows
    assert rows.total(block_sum) == x.sum()
    parts = rows.collect(lambda block, scale, own: scale * own, 2, each=range(len(rows)))
    assert parts == [2 * i for i in range(len(rows))]
    lazy = rows.to_array(lambda block: block["X"] + 1, dtype=float)
    assert_array_equal(lazy.compute(), x + 1)


def _chained(lists):
    return list(itertools.chain(*lists))


def test_results_are_combined_in_the_order_of_the_blocks():
    rows = align(X=da.from_array(np.arange(40), chunks=1))
    joined = rows.total(lambda b: b["X"].tolist(), combine=_chained)
    assert joined == list(range(40))


def test_blocks_that_do_not_fit_are_read_again(monkeypatch):
    n_read = []
    source = align(X=da.from_array(np.arange(8.0), chunks=2))
    rows = source.then(lambda block: n_read.append(1) or block)
    kept = rows.hold().pack()
    n_read.clear()
    kept.total(block_sum)
    assert not n_read
    monkeypatch.setattr(partitions, "KEPT_BYTES", 10)
    again = rows.hold().pack()
    n_read.clear()
    assert again.total(block_sum) == 28
    assert len(n_read) == 4


def test_bytes_are_counted_and_do_not_depend_on_rows(monkeypatch):
    def cost(n):
        rows = align(X=da.from_array(np.zeros(n), chunks=n // 4)).hold().pack()
        before = bytes_exchanged()
        rows.total(lambda block, c: c * len(block["X"]), np.zeros(100))
        return bytes_exchanged() - before

    few = cost(40)
    assert few == cost(4000) >= 2 * 800
    # Nor on the number of lists: those of a thread are added up where they are.
    monkeypatch.setattr(partitions, "LIST_BYTES", 1000)
    assert cost(4000) == few


def test_many_lists_for_each_thread(monkeypatch):
    monkeypatch.setattr(partitions, "LIST_BYTES", 100)
    numbers = generator(0).normal(size=1000)
    rows = align(X=da.from_array(numbers, chunks=30)).hold().pack()
    shared = np.zeros(partitions.SMALL_BYTES)
    for given in ((), (shared,)):
        total = rows.total(lambda block, *given: block["X"].sum(), *given)
        assert total == pytest.approx(numbers.sum(), abs=1e-12)
    assert_array_equal(np.concatenate(rows.collect(lambda block: block["X"])), numbers)


def test_blocks_at_odd_addresses_are_copied_once():
    odd = np.frombuffer(bytearray(81), np.uint8)[1:].view(np.float64)
    assert not odd.flags.aligned
    blocks = [RowBlock({}, odd, np.zeros(20)[10:])]
    message = Sealed((lambda block: block.kind, (), None))
    (first,) = run_blocks(0, message, blocks, Sealed([()]))
    (second,) = run_blocks(0, message, blocks, Sealed([()]))
    assert first is second
    assert first.flags.aligned
    assert_array_equal(first, odd)
    assert blocks[0].weights.base is None  # a view would keep the memory of all


def test_arrays_of_other_chunks_frames_and_columns_that_are_here():
    frame = people()
    X = da.from_array(frame[["a", "b"]].to_numpy(), chunks=((190, 10, 200), 1))
    y = da.from_array(frame.y.to_numpy().astype("U3"), chunks=33)
    found = read_rows(Reader(), X, y, sensitive_features=frame.sex)
    assert_array_equal(found.X.starts, [0, 190, 200])
    assert found.X.shape == (400, 2)
    assert_array_equal(found.groups.codes, encode_groups(frame.sex).codes)
    assert_array_equal(found.y, frame.y)
    assert_array_equal(here(found.X), frame[["a", "b"]])


@pytest.mark.parametrize("intersectional", [True, False])
@pytest.mark.parametrize("groups", [("sex",), ("race",), ("race", "sex")])
def test_groups_are_those_of_the_whole_table(groups, intersectional):
    frame = people()
    found = read(frame, groups=groups, sensitive=Sensitive(intersectional=intersectional))
    expected = encode_groups(
        frame[list(groups)] if len(groups) > 1 else frame[groups[0]], intersectional=intersectional
    )
    assert found.groups.names == expected.names
    assert_array_equal(found.groups.codes, expected.codes)


def test_levels_that_are_not_in_every_block_and_empty_blocks():
    frame = people()
    frame = frame.sort_values("sex").reset_index(drop=True)
    found = read(frame, n_blocks=8)
    assert found.groups.names == ("f", "m")
    lazy = dd.from_map(lambda i, j: frame[i:j], [0, 0, 120], [0, 120, 400])
    found = read_rows(Reader(), lazy[["a", "b"]], lazy.y, sensitive_features=lazy.sex)
    assert_array_equal(found.X.starts, [0, 0, 120])
    assert_array_equal(found.groups.codes, encode_groups(frame.sex).codes)
    kinds = pd.concat([frame.sex[:120].astype("category"), frame.sex[120:].astype("category")])
    assert not isinstance(kinds.dtype, pd.CategoricalDtype)  # as categories differ
    lazy = lazy.assign(kind=lazy.sex.astype("category"))
    found = read_rows(Reader(sensitive="kind"), lazy[["a", "b", "kind"]], lazy.y)
    assert found.groups.names == ("f", "m")
    assert found.X.shape == (400, 2)


def test_parquet_is_read_where_the_blocks_are(tmp_path):
    """Files, and columns of them, are read apart, however small they are."""
    frame = people().astype({"race": str})
    for k in range(4):
        frame[100 * k : 100 * k + 100].to_parquet(tmp_path / f"{k}.parquet")
    lazy = dd.read_parquet(tmp_path)
    found = read_rows(Reader(), lazy[["a", "b"]], lazy.y, sensitive_features=lazy[["race"]])
    assert_array_equal(found.X.starts, [0, 100, 200, 300])
    assert dict(zip(found.groups.names, found.groups.counts, strict=True)) == dict(
        frame.race.value_counts()
    )
    assert_array_equal(here(found.X), frame[["a", "b"]])


def test_weights():
    frame = people()
    w = np.arange(400.0)
    X = da.from_array(frame[["a", "b"]].to_numpy(), chunks=50)
    given = {"sensitive_features": frame.sex, "supervised": False}
    assert_array_equal(read_rows(Reader(), X, sample_weight=w, **given).sample_weight, w)
    with pytest.raises(ValueError, match="zero for every row"):
        read_rows(Reader(), X, sample_weight=0 * w, **given)


def broken(column, row, value):
    frame = people()
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (broken("b", 220, np.nan), r"Partition 2: column 'b' of X has NaN in 1 row of 100"),
        (broken("a", 10, np.inf), r"Partition 0: column 'a' of X has infinity"),
        (broken("sex", 399, None), r"Sensitive attribute 'sex' has 1 missing"),
        (broken("y", 160, None), r"Partition 1: y has 1 missing"),
    ],
)
def test_errors_name_partition_and_column(frame, message):
    with pytest.raises(ValueError, match=message):
        read(frame)


def test_collections_that_do_not_match():
    lazy = dd.from_pandas(people(), npartitions=4)
    other = dd.from_pandas(people(), npartitions=2)
    with pytest.raises(ValueError, match="y has 2 partitions, but X has 4"):
        read_rows(Reader(), lazy[["a"]], other.y, sensitive_features=lazy.sex)
    with pytest.raises(ValueError, match=r"Partition 3: the numbers of rows differ \(X 100, y 99,"):
        read_rows(
            Reader(),
            lazy[["a"]],
            dd.from_map(lambda k: people().y[100 * k : min(100 * k + 100, 399)], range(4)),
            sensitive_features=lazy.sex,
        )
    with pytest.raises(ValueError, match="sample_weight has 2 rows but X has 400"):
        read_rows(Reader(), lazy[["a"]], lazy.y, sensitive_features=lazy.sex, sample_weight=[1, 1])
    with pytest.raises(ValueError, match="y has 5 rows but X has 6"):
        align(X=da.arange(6, chunks=2), y=da.arange(5, chunks=2))
    with pytest.raises(TypeError, match="sensitive_features='sex' is a name"):
        read_rows(Reader(), lazy[["a"]], sensitive_features="sex")
    with pytest.raises(TypeError, match="Pass X as one too"):
        read_rows(Reader(), people()[["a"]], sensitive_features=lazy.sex)


@pytest.mark.parametrize("dtype", [np.int32, np.dtype("int32"), lambda model: np.dtype("int32")])
def test_a_method_by_block_takes_any_kind_of_dtype(dtype):
    class Doubler(BaseEstimator):
        @by_block(dtype=dtype)
        def predict(self, X):
            return 2 * X[:, 0]

        def fit(self, X):
            return self

        def __sklearn_is_fitted__(self):
            return True

    X = np.arange(6).reshape(3, 2)
    doubled = Doubler().predict(da.from_array(X, chunks=(2, 2)))
    assert doubled.dtype == np.int32
    assert_array_equal(doubled.compute(), 2 * X[:, 0])
