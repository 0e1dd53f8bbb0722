"""Rows that lie in partitions: what is asked of each, and some of them."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from skfair.utils import partitions
from skfair.utils.dask_collections import align
from skfair.utils.partitioned_rows import PartitionedRows
from tests.seeds import generator

da = pytest.importorskip("dask.array")

X = generator(0).normal(size=(60, 3))
v = np.arange(60.0)


def elsewhere(sizes, form=np.asarray, is_kept=True):
    rows = align(X=da.from_array(X, chunks=(tuple(sizes), 3))).then(lambda block: form(block["X"]))
    return PartitionedRows(rows.hold().pack() if is_kept else rows, sizes, X.dtype, 3)


@pytest.fixture(params=[(60,), (20, 0, 30, 10, 0), (1,) * 60], ids=["one", "few", "many"])
def sizes(request):
    return request.param


@pytest.mark.parametrize("is_kept", [True, False])
def test_functions_get_the_columns_of_their_partition(sizes, is_kept):
    rows = elsewhere(sizes, is_kept=is_kept)
    assert rows.shape == (60, 3)
    assert [len(part) for part in rows.each(lambda X, own: own, v)] == list(sizes)
    scaled = rows.joined(lambda X, own, by: by * own * X[:, 0], np.stack([v, 2 * v]), by=2)
    assert_array_equal(scaled, np.stack([2 * v, 4 * v]) * X[:, 0])
    assert_array_equal(rows.joined(lambda X: X[:, 1]), X[:, 1])


def test_sums_do_not_depend_on_where_the_partitions_lie(monkeypatch):
    sizes = (7,) * 8 + (4,)
    expected = elsewhere(sizes).total(lambda X, own: own @ X, v)
    np.testing.assert_allclose(expected, v @ X)
    for most in (1, 200):
        monkeypatch.setattr(partitions, "LIST_BYTES", most)
        assert_array_equal(elsewhere(sizes).total(lambda X, own: own @ X, v), expected)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_some_rows_come_here_or_stay_where_they_are(sizes, form):
    rows = elsewhere(sizes, form)
    for some in ([5], [59, 0, 0, 31, 20, 19], [], np.arange(60)[::-1]):
        found = rows.taken(np.array(some, dtype=int))
        assert sparse.issparse(found) == (form is not np.asarray)
        assert_array_equal(found.toarray() if sparse.issparse(found) else found, X[some])
    some = np.array([0, 0, 3, 21, 49, 49, 58])
    few = rows.subset(some)
    assert few.shape == (7, 3)
    assert_array_equal(few.joined(lambda X: (X @ np.eye(3)).T), X[some].T)
    assert_array_equal(few.joined(lambda X, own: own, v[some]), v[some])


def test_what_is_made_of_a_partition_is_made_once(sizes):
    n_made = []
    models = elsewhere(sizes).then(lambda X, own: n_made.append(1) or own @ X, v)
    for _ in range(2):
        np.testing.assert_allclose(models.total(lambda sums: sums), v @ X)
    assert len(n_made) == len(sizes)


def test_partitions_that_do_not_fit_are_read_again_in_every_pass(monkeypatch, sizes):
    monkeypatch.setattr(partitions, "KEPT_BYTES", 10)
    rows = elsewhere(sizes)
    np.testing.assert_allclose(rows.total(lambda X, own: own @ X, v), v @ X)
    assert_array_equal(rows.subset(np.arange(4)).taken(np.arange(4)), X[:4])
    assert_array_equal(rows.then(lambda X: X[:, 0]).joined(lambda x: x), X[:, 0])
