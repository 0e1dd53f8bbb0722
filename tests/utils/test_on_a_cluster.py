"""Blocks in other processes. All of it stands here, for starting a cluster takes seconds."""

import os
import signal

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression

from skfair import metrics
from skfair.classification import ConstrainedERMClassifier
from skfair.utils import partitioned_rows
from skfair.utils.dask_collections import align
from skfair.utils.partition_tasks import current_client
from tests.older import needs_callbacks
from tests.prototypes import QuietCallback

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

from tests.classification import test_constrained_erm_on_dask  # noqa: E402
from tests.metrics import test_metrics_on_dask  # noqa: E402
from tests.utils import test_partitions  # noqa: E402

# Two workers import everything anew.
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("sizes", [[50] * 7, [10] * 30 + [300], [1, 500, 1, 500, 0, 0]])
def test_blocks_lie_evenly_and_neighbours_together(cluster, sizes):
    X = da.from_array(np.zeros(sum(sizes)), chunks=(tuple(sizes),))
    with cluster.as_current():
        home = align(X=X).hold().pack().collect(lambda block: os.getpid())
    assert np.count_nonzero(np.diff(home)) == 1
    own = sum(size for size, at in zip(sizes, home, strict=True) if at == home[0])
    assert abs(own - sum(sizes) / 2) <= max(sizes) / 2


def test_sums_and_errors(cluster):
    x = np.arange(1000.0)
    with cluster.as_current():
        assert current_client() is cluster
        rows = align(X=da.from_array(x, chunks=10)).hold().pack()
        assert rows.total(test_partitions.block_sum) == x.sum()
        assert len(rows._lists) < len(rows) == 100
        with pytest.raises(ValueError, match="Partition 99: no"):
            rows.total(_refuse, each=[k == 99 for k in range(100)])


def _refuse(block, is_bad):
    if is_bad:
        raise ValueError("no")
    return 0


def test_metrics_and_scorers(cluster):
    frame = test_metrics_on_dask.people()
    lazy = dd.from_pandas(frame, npartitions=3)
    model = LogisticRegression().fit(frame[["score"]], frame.y)
    with cluster.as_current():
        gap = metrics.wasserstein_gap(None, lazy.score, sensitive_features=lazy.sex)
        scorer = metrics.get_scorer("equalized_odds_ratio")
        ratio = scorer(model, lazy[["score"]], lazy.y, sensitive_features=lazy.sex)
    assert_allclose(
        gap, metrics.wasserstein_gap(None, frame.score, sensitive_features=frame.sex), atol=1e-12
    )
    expected = scorer(model, frame[["score"]], frame.y, sensitive_features=frame.sex)
    assert_allclose(ratio, expected, atol=1e-12)


class Watches(QuietCallback):
    """A callback that asks each worker after every step how many bytes of arrays it holds."""

    def __init__(self, client):
        self.client, self.most = client, 0

    def on_fit_task_end(self, estimator, context):
        self.most = max(self.most, *self.client.run(bytes_held).values())


class KillsAWorker(QuietCallback):
    """A callback that kills one worker process after the first step."""

    def __init__(self, client):
        self.pids = list(client.run(os.getpid).values())
        self.is_done = False

    def on_fit_task_end(self, estimator, context):
        if not self.is_done:
            os.kill(self.pids[0], signal.SIGKILL)
            self.is_done = True


def bytes_held(dask_worker):
    arrays = {id(a): a for a in _arrays(list(dask_worker.data.values()))}
    return sum(a.nbytes for a in arrays.values())


def _arrays(value):
    if isinstance(value, np.ndarray):
        yield value
    for item in value if isinstance(value, list | tuple) else ():
        yield from _arrays(item)


@pytest.fixture
def _no_columns_come_here(monkeypatch):
    monkeypatch.setattr(partitioned_rows, "FEW_BYTES", 0)


@needs_callbacks
@pytest.mark.usefixtures("_no_columns_come_here")
def test_workers_hold_their_partitions_and_fits_do_not_depend_on_them(cluster):
    X, y, group = test_constrained_erm_on_dask.people(n=20_000)
    rows = test_constrained_erm_on_dask.lazily(X, y, group, sizes=(2500,) * 8)
    here, there = (ConstrainedERMClassifier(max_disparity=0.02) for _ in range(2))
    here.fit(*rows[:2], sensitive_features=rows[2])  # by the threads of this process
    with cluster.as_current():
        watcher = Watches(cluster)
        there.set_callbacks(watcher).fit(*rows[:2], sensitive_features=rows[2])
    assert_allclose(there.coef_, here.coef_, rtol=1e-12)
    assert X.nbytes / 2 <= watcher.most <= 1.2 * X.nbytes


@needs_callbacks
@pytest.mark.usefixtures("_no_columns_come_here")
def test_a_worker_that_is_killed_does_not_change_the_result(cluster):
    X, y, group = test_constrained_erm_on_dask.people(n=4000)
    expected = ConstrainedERMClassifier(max_disparity=0.02).fit(X, y, sensitive_features=group)
    model = ConstrainedERMClassifier(max_disparity=0.02)
    with cluster.as_current():
        killer = KillsAWorker(cluster)
        model.set_callbacks(killer)
        lX, ly, lg = test_constrained_erm_on_dask.lazily(X, y, group, sizes=(500,) * 8)
        model.fit(lX, ly, sensitive_features=lg)
    assert killer.is_done
    test_constrained_erm_on_dask.assert_same(expected, model, X)
    cluster.wait_for_workers(2, timeout=30)  # another one is started in its place
