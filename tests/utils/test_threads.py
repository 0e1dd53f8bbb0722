"""Small products use one thread, passes over rows as many as allowed; the bits are the same."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController, threadpool_limits

from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.cluster import FairAssignment
from skfair.groups.encoding import encode_groups
from skfair.losses import LogLoss
from skfair.metrics import equalized_odds_difference
from skfair.models import units
from skfair.problems.erm import problem as in_memory
from skfair.regression import ConstrainedERMRegressor
from skfair.utils import pieces
from skfair.utils import threads as module
from skfair.utils.factorize import factorize, first_rows
from skfair.utils.threads import allowed_threads, one_blas_thread, over_blocks
from tests.families import by_families, rows_of_families
from tests.seeds import generator

# The libraries are found once: that takes a millisecond, and fits ask a thousand times.
LIBRARIES = ThreadpoolController().lib_controllers


def threads(of="blas"):
    return {library.num_threads for library in LIBRARIES if library.user_api == of}


@pytest.fixture
def two_threads():
    with threadpool_limits(2):
        if threads() != {2}:
            pytest.skip("the linear algebra library has one thread")
        yield


def set_processors(monkeypatch, number):
    """Let the machine have some processors, and no variable of its environment limit them."""
    monkeypatch.setattr(module, "_n_processors", lambda: number)
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def another_fit():
    """Let another thread be in the middle of a fit."""
    held, go_on = threading.Event(), threading.Event()

    def hold():
        held.set()
        go_on.wait(30)

    other = threading.Thread(target=one_blas_thread(hold))
    other.start()
    held.wait(30)
    try:
        yield
    finally:
        go_on.set()
        other.join()


def sample(n, n_columns=2):
    rng = generator(0)
    X, sex = rng.normal(size=(n, n_columns)), rng.choice(["f", "m"], n)
    X[rng.random(n) < 0.3] = X[0]  # equal rows: ties
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int), sex


def assert_threads_end(most):
    """Wait until there are no more threads than before."""
    deadline = time.monotonic() + 30
    while threading.active_count() > most and time.monotonic() < deadline:
        time.sleep(0.001)
    assert threading.active_count() <= most


def test_one_thread_inside_and_as_many_as_before_outside(two_threads):
    assert one_blas_thread(threads)() == {1}
    assert threads() == {2}
    with pytest.raises(ZeroDivisionError):
        one_blas_thread(lambda: 1 / 0)()
    assert threads() == {2}


def mixed_work(i, overlap):
    """Do what fits do: of both kinds, inside each other, with errors, and passes over rows."""
    kinds = one_blas_thread, module.one_thread, lambda function: function
    outer, inner = kinds[i % 3], kinds[i // 3 % 3]

    def innermost():
        overlap.wait(timeout=30)
        assert i % 3 == i // 3 % 3 == 2 or threads() == {1}
        over_blocks(lambda start, stop: np.ones((50, 50)) @ np.ones((50, 50)), 8, 2)
        time.sleep(0.001 * (i * 7 % 5))
        if i % 7 == 0:
            raise ZeroDivisionError

    try:
        outer(inner(innermost))()
    except ZeroDivisionError:
        return i
    return -1


def test_fits_in_threads_leave_the_limits_as_they_were(two_threads):
    """Fifty mixed runs, five at a time, which end in another order than they begin."""
    limits = threads(), threads("openmp")
    for first in range(0, 50, 5):
        overlap = threading.Barrier(5)
        with ThreadPoolExecutor(5) as pool:
            found = list(pool.map(lambda i: mixed_work(i, overlap), range(first, first + 5)))  # noqa: B023
        assert found == [i if i % 7 == 0 else -1 for i in range(first, first + 5)]
        assert (threads(), threads("openmp")) == limits
    assert not module._BLAS._holders


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
@pytest.mark.parametrize("of", ["blas", None])
def test_an_interrupt_leaves_the_limits_and_no_threads(of, two_threads):
    """Ctrl+C comes between two steps of Python, also between those that set and restore."""
    limits, n_threads = (threads(), threads("openmp")), threading.active_count()
    limited = module._on_one_thread(lambda: over_blocks(lambda i, j: i, 8, 2), of)
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        limited()
        seconds.append(time.perf_counter() - start)
    usual = min(seconds)  # on a busy machine most are longer, and are interrupted all the more
    is_armed, n_interrupted = False, 0

    def interrupt(number, frame):
        if is_armed:  # an alarm that comes as the function returns would interrupt the test
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for part in generator(0).uniform(0.01, 1.5, 400):
            try:
                is_armed = True
                signal.setitimer(signal.ITIMER_REAL, part * usual)
                limited()
                is_armed = False
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                is_armed = False
                n_interrupted += 1
            assert (threads(), threads("openmp")) == limits
            assert not module._BLAS._holders
            assert module._allowed.get() is module._helpers.get() is None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert n_interrupted > 10
    assert_threads_end(n_threads)


def test_an_interrupt_ends_what_other_threads_do(three_threads):
    """Those that are in the middle of many passes give up at the next one."""
    n_passes = []

    def block(start, stop):
        if threading.current_thread() is threading.main_thread():
            time.sleep(0.01)
            raise KeyboardInterrupt
        for _ in range(10_000):
            over_blocks(lambda i, j: n_passes.append(time.sleep(0.001)), 1)

    with pytest.raises(KeyboardInterrupt):
        over_blocks(block, 3, 1)
    assert len(n_passes) < 1000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize("inside", [True, False])
def test_a_fork_keeps_the_limits_of_its_own_thread_only(inside, two_threads):
    def in_child():
        child = os.fork()
        if not child:
            os._exit(0 if threads() == ({1} if inside else {2}) else 1)
        return os.waitpid(child, 0)[1]

    with another_fit():
        assert (one_blas_thread(in_child) if inside else in_child)() == 0
        assert threads() == {1}
    assert threads() == {2}


def test_others_do_not_lower_what_a_pass_may_use(two_threads, monkeypatch):
    set_processors(monkeypatch, 2)
    with another_fit():
        assert allowed_threads() == 2
    assert allowed_threads() == 2


class Watched:
    """A model that notes the threads that it is fitted with."""

    seen = []

    def fit(self, X, *args, **kwargs):
        self.seen.append((threads(), threads("openmp")))
        return super().fit(X, *args, **kwargs)


class WatchedRegression(Watched, LogisticRegression):
    pass


class WatchedKMeans(Watched, KMeans):
    pass


@pytest.mark.parametrize(
    "outer", [FairDecisionClassifier, FairAssignment, *rows_of_families("CALIBRATORS")]
)
@pytest.mark.parametrize(("few", "expected"), [(400, ({1}, {1})), (399, ({2}, {2}))])
@pytest.mark.filterwarnings("ignore:Because of ties")  # the limit is not what is tested
def test_a_model_inside_uses_one_thread_where_the_table_is_small(
    outer, few, expected, two_threads, monkeypatch
):
    monkeypatch.setattr(module, "FEW_VALUES", few)
    X, y, sex = sample(200)
    inner = WatchedKMeans(2) if outer is FairAssignment else WatchedRegression()
    Watched.seen.clear()
    outer(inner).fit(X, y, sensitive_features=sex)
    assert Watched.seen
    assert all(found == expected for found in Watched.seen)
    assert threads() == threads("openmp") == {2}


@pytest.mark.parametrize("shape", [(None, 2), (float("nan"), 2), "tall", (100, object()), None, 5])
def test_a_table_of_unknown_size_gets_the_threads_of_the_user(shape, two_threads):
    class Table:
        pass

    @module.one_thread_if_few
    def fit(self, X):
        return threads()

    table = Table()
    table.shape = shape
    assert fit(None, table) == fit(None, X=table) == {2}
    assert fit(None, np.zeros((3, 2))) == fit(None, [[0.0, 1.0]]) == {1}


@pytest.mark.parametrize(
    ("model", "home", "name"),
    [
        *rows_of_families("ON_ONE_THREAD"),
        (ConstrainedERMClassifier(loss=LogLoss()), LogLoss, "parts"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:All rows are taken as one query")
def test_limits_are_enforced_on_one_thread(model, home, name, two_threads, monkeypatch):
    seen, original = [], getattr(home, name)

    def watched(*args, **kwargs):
        seen.append(threads())
        return original(*args, **kwargs)

    monkeypatch.setattr(home, name, watched)
    X, y, sex = sample(300)
    model.fit(X, y, sensitive_features=sex)
    assert seen
    assert all(found == {1} for found in seen)
    assert threads() == {2}


def test_blocks_come_in_order_whatever_thread_makes_them(monkeypatch):
    seen = set()

    def of_block(start, stop):
        seen.add(threading.get_ident())
        return start, stop

    for n_threads in (1, 3):
        monkeypatch.setattr(module, "allowed_threads", lambda n=n_threads: n)
        for n_rows in (1, 10, 11, 95, 100):
            made = over_blocks(of_block, n_rows, 10)
            starts, stops = zip(*made, strict=True)
            assert starts == (0, *stops[:-1])
            assert stops[-1] == n_rows
            lengths = np.subtract(stops, starts)
            assert (lengths[:-1] == lengths[0]).all()
            assert lengths[-1] <= lengths[0] <= 10
        assert over_blocks(of_block, 0) == []
    assert threading.get_ident() in seen


def test_threads_work_at_the_same_time_and_do_not_nest(monkeypatch):
    set_processors(monkeypatch, 2)
    monkeypatch.setattr(module._controller(), "lib_controllers", [])
    together = threading.Barrier(2, timeout=30)

    def of_block(start, stop):
        together.wait()  # a single thread would wait for ever
        return allowed_threads()

    assert allowed_threads() == 2
    assert over_blocks(of_block, 2, 1) == [1, 1]
    assert allowed_threads() == 2
    monkeypatch.setenv("NUMBA_NUM_THREADS", "1")
    assert allowed_threads() == 1


def meet(n_threads):
    """Return the threads that take a block of a pass: each waits for the others."""
    together = threading.Barrier(n_threads, timeout=30)

    def of_block(start, stop):
        together.wait()
        return threading.get_ident()

    return over_blocks(of_block, n_threads, 1)


@pytest.fixture
def three_threads(monkeypatch):
    set_processors(monkeypatch, 3)
    monkeypatch.setattr(module._controller(), "lib_controllers", [])


def test_the_passes_of_a_fit_share_threads_and_leave_none(three_threads):
    def fit():
        first, second = set(meet(3)), set(meet(3))
        assert first == second
        assert len(first) == 3
        return inner()

    def inner():
        return meet(3)

    inner, before = one_blas_thread(inner), threading.active_count()
    used = one_blas_thread(fit)()
    assert len(set(used)) == 3
    assert threading.get_ident() in used
    with pytest.raises(ZeroDivisionError):
        one_blas_thread(lambda: meet(3) and 1 / 0)()
    assert len(set(meet(3))) == 3  # outside of a fit
    assert_threads_end(before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_passes_end_in_a_fork_that_has_no_other_threads(three_threads):
    def fit():
        meet(3)
        child = os.fork()
        if not child:
            made = over_blocks(lambda start, stop: start, 9, 1)
            os._exit(0 if made == list(range(9)) else 1)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return status
            time.sleep(0.01)
        os.kill(child, signal.SIGKILL)
        return os.waitpid(child, 0)[1]

    assert one_blas_thread(fit)() == 0


def test_a_limit_of_threadpoolctl_holds_inside_decorated_functions_too(two_threads, monkeypatch):
    set_processors(monkeypatch, 2)
    with threadpool_limits(2):
        assert one_blas_thread(allowed_threads)() == 2
        with threadpool_limits(1, user_api="blas"):
            assert one_blas_thread(allowed_threads)() == allowed_threads() == 1


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_workers_of_joblib_use_one_thread(backend, monkeypatch):
    monkeypatch.setattr(module, "_n_processors", lambda: 8)
    used = Parallel(n_jobs=2, backend=backend)(delayed(allowed_threads)() for _ in range(4))
    assert used == [1] * 4


def test_errors_and_settings_of_numpy_reach_every_thread(monkeypatch):
    monkeypatch.setattr(module, "allowed_threads", lambda: 3)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        over_blocks(lambda start, stop: np.ones(1) / np.zeros(1), 40, 4)
    with np.errstate(divide="ignore"):
        over_blocks(lambda start, stop: np.ones(1) / np.zeros(1), 40, 4)


def model_cases():
    limit = {"max_disparity": 0.05}
    for name, (model, *_) in by_families("THREADS").items():
        yield name, model
    yield "classifier", ConstrainedERMClassifier("equalized_odds", **limit)
    yield "regressor", ConstrainedERMRegressor("bounded_group_loss", max_disparity=2.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:All rows are taken as one query")
@pytest.mark.parametrize(("name", "model"), model_cases())
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_are_the_same_bits_with_any_number_of_threads(name, model, dtype, monkeypatch):
    # Blocks are small, so that there are many of them.
    monkeypatch.setattr(pieces, "NUMBERS", 400)
    _, n_rows, *small = by_families("THREADS").get(name, (None, 600))
    for place, constant, value in small:
        monkeypatch.setattr(place, constant, value)
    for where in (units, in_memory):
        monkeypatch.setattr(where, "BLOCK_ROWS", 64)
    monkeypatch.setattr(units, "ROWS", 64)
    X, y, sex = sample(n_rows, n_columns=4)
    fitted = []
    for n_threads in (1, 3):
        monkeypatch.setattr(module, "allowed_threads", lambda n=n_threads: n)
        fitted.append(vars(model.fit(X.astype(dtype), y, sensitive_features=sex)).copy())
    compared = 0
    for attribute, value in fitted[0].items():
        if attribute.endswith("_") and isinstance(value, (np.ndarray, float, int)):
            compared += 1
            for other in fitted[1:]:
                assert_array_equal(other[attribute], value, err_msg=attribute)
    assert compared > 3


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.uint64, bool])
@pytest.mark.parametrize("levels", [[0, 1], [1, 0, 100]])
def test_codes_of_many_rows_are_those_of_numpy(dtype, levels, monkeypatch):
    rng = generator(0)
    start = 0 if dtype is bool else np.iinfo(dtype).max - 100
    values = rng.choice(levels, 400_000).astype(dtype)
    values[:200_000] = values[0]  # most levels are in no row of the first blocks
    values += np.array(start, dtype)
    expected, first, codes = np.unique(values, return_index=True, return_inverse=True)
    for n_threads in (1, 2):
        monkeypatch.setattr(module, "allowed_threads", lambda n=n_threads: n)
        found = factorize(values)
        assert found.levels == expected.tolist()
        assert_array_equal(found.codes, codes)
        assert_array_equal(first_rows(found.codes), first)
        weights = rng.random(values.size)
        cells = encode_groups(values).cells(codes, len(expected), weights)
        assert_array_equal(cells.codes, codes)
        assert_allclose(cells.weights, np.bincount(codes, weights))


def test_metrics_are_the_same_bits_with_any_number_of_threads(monkeypatch):
    rng = generator(0)
    y, predicted, sex = rng.integers(2, size=(3, 1 << 20))
    values = []
    for n_threads in (1, 4):
        monkeypatch.setattr(module, "allowed_threads", lambda n=n_threads: n)
        values.append(equalized_odds_difference(y, predicted, sensitive_features=sex))
    assert values[0] == values[1]
