"""Threads: where passes over the rows use them, and where the linear algebra library should not.

Passes are cut into blocks of rows whose size does not depend on the number of threads. Each thread
takes the next block, and the results are combined in the order of the blocks. So results are bit
for bit the same with any number of threads, and a thread that is slow because of another program
only delays its block.

Code that passes over rows calls :func:`over_blocks`, or one of its short forms :func:`added`,
:func:`for_groups` and :func:`looked_up`. Methods that fit are decorated: by
:func:`one_blas_thread` if they make many small products, by :func:`one_thread_if_few` if they fit
models of other packages, by :func:`one_thread` if their result must not depend on threads. A
decorated function is a *scope* (``_Scope``): libraries are limited while it runs, and the threads
that help with its passes are started once and end with it.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import math
import operator
import os
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from numbers import Integral
from typing import Any, ParamSpec, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
D = TypeVar("D", bound=np.generic)
Number = TypeVar("Number", float, NDArray[Any])

# Rows in a block, for passes that take about one to ten nanoseconds per row.
BLOCK = 1 << 16
# Up to this many values in X, one_thread_if_few limits all libraries to one thread.
FEW_VALUES = 4_000_000
# A thread that waits for signs of other threads also checks after this many seconds if they ended.
_LONGEST_WAIT = 0.05
# The number of threads that a pass in this thread may use. A scope sets it before it limits the
# libraries, and it is 1 in threads that help. Outside of scopes it is None, and allowed_threads
# finds the number.
_allowed: contextvars.ContextVar[int | None] = contextvars.ContextVar("allowed", default=None)
# The outermost scope that this thread is in, whose pool helps with all passes; None outside.
_helpers: contextvars.ContextVar[_Scope | None] = contextvars.ContextVar("helpers", default=None)
# The errors of the pass that this thread helps with, shared by all threads of the pass.
_errors: contextvars.ContextVar[list[BaseException]] = contextvars.ContextVar("errors")


def _controller() -> ThreadpoolController:
    """Return the libraries with threads of their own that are loaded now."""
    return _controller_of("sklearn.utils._openmp_helpers" in sys.modules)


@functools.cache
def _controller_of(has_openmp: bool) -> ThreadpoolController:
    """Find the libraries, which takes milliseconds.

    The argument is only the key of the cache: they are found again when scikit-learn has loaded
    OpenMP.
    """
    return ThreadpoolController()


@functools.cache
def _n_processors() -> int:
    """Count the processors that this process, and its container, may use."""
    return int(joblib.cpu_count())


def allowed_threads() -> int:
    """Return how many threads a pass may use.

    It is the number that ``OMP_NUM_THREADS``, ``NUMBA_NUM_THREADS``, threadpoolctl and the
    processors allow. It is 1 inside the workers of joblib, and in any thread other than the main
    one, such as the threads of Dask, because their number was chosen to use all processors.
    """
    if threading.current_thread() is not threading.main_thread():
        return 1
    n_threads = _allowed.get()
    if n_threads is not None:  # set by a scope, which saves the 0.02 ms that joblib takes
        return n_threads
    if joblib.parallel.get_active_backend()[0].nesting_level:
        return 1
    named = (os.environ.get(f"{name}_NUM_THREADS", "") for name in ("OMP", "NUMBA"))
    limits = [int(number) for number in named if number.isdecimal()]
    limits += [_BLAS.n_threads(library) for library in _controller().lib_controllers]
    return max(1, min([_n_processors(), *limits]))


def starts_of_blocks(n_rows: int, block: int = BLOCK) -> range:
    """Return the first rows of the blocks of :func:`over_blocks`; its step is their length.

    There is one block, or an even number of them: two threads then end at about the same time.

    Examples
    --------
    >>> from skfair.utils.threads import starts_of_blocks
    >>> starts_of_blocks(10, block=4)
    range(0, 10, 3)
    """
    n_blocks = 1 if n_rows <= block else 2 * -(-n_rows // (2 * block))
    return range(0, n_rows, max(1, -(-n_rows // n_blocks)))


def over_blocks(function: Callable[[int, int], R], n_rows: int, block: int = BLOCK) -> list[R]:
    """Return ``function(start, stop)`` for each block of rows, in their order, made by threads.

    Blocks have at most ``block`` rows, and equally many but for the last. The function should spend
    its time in kernels, ``np.dot`` and numpy's operations on arrays, during which Python lets other
    threads run. During ``@`` it does not, if the product has fewer than 500 numbers: with two
    threads the second derivatives of a million rows took 29 ms instead of 20. A block should take
    more than 0.1 ms, because waking a thread takes a few hundredths. Passes inside the function use
    one thread.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.utils.threads import over_blocks
    >>> values = np.arange(10.0)
    >>> over_blocks(lambda start, stop: float(values[start:stop].sum()), 10, block=4)
    [3.0, 12.0, 21.0, 9.0]
    """
    if _errors.get(()):  # this pass is part of a pass that has failed, so it ends as well
        raise _AbandonedError
    if 0 < n_rows <= block:
        return [function(0, n_rows)]
    starts = starts_of_blocks(n_rows, block)
    n_threads = min(len(starts), allowed_threads()) if n_rows else 1
    if n_threads == 1:
        return [function(start, min(start + starts.step, n_rows)) for start in starts]
    if _allowed.get() is not None:  # libraries are limited already
        return _made_by_threads(function, starts, n_rows, n_threads)
    return one_blas_thread(_made_by_threads)(function, starts, n_rows, n_threads)


def added(function: Callable[[int, int], Number], n_rows: int, zero: Number) -> Number:
    """Return the sum of what ``function(start, stop)`` returns for blocks of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.utils.threads import added
    >>> values = np.arange(10.0)
    >>> float(added(lambda start, stop: values[start:stop].sum(), 10, 0.0))
    45.0
    """
    return functools.reduce(operator.add, over_blocks(function, n_rows), zero)


def for_groups(function: Callable[[T], R], items: Sequence[T], n_rows: int) -> list[R]:
    """Return ``function(item)`` for each item; threads share the items if rows are many.

    An item stands for a group, or other work on all ``n_rows`` rows.

    Examples
    --------
    >>> from skfair.utils.threads import for_groups
    >>> for_groups(len, ["ab", "c"], n_rows=3)
    [2, 1]
    """
    if n_rows < BLOCK:
        return [function(item) for item in items]
    return over_blocks(lambda i, _: function(items[i]), len(items), 1)


def looked_up(table: NDArray[D], codes: NDArray[np.integer[Any]]) -> NDArray[D]:
    """Return ``table[codes]``, computed by threads. Codes must not be negative or too large.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.utils.threads import looked_up
    >>> looked_up(np.array([1.5, 2.5]), np.array([1, 0, 1])).tolist()
    [2.5, 1.5, 2.5]
    """
    out = np.empty(codes.size, table.dtype)

    def of_block(start: int, stop: int) -> None:
        # With "clip" numpy does not check codes, and writes without a copy.
        np.take(table, codes[start:stop], out=out[start:stop], mode="clip")

    over_blocks(of_block, codes.size)
    return out


class _AbandonedError(BaseException):
    """Raised in a thread that helps with a pass, if another block failed or was interrupted."""


def _set_threads(library: Any, number: int) -> None:
    """Set the threads of a library, from any thread of Python.

    In threadpoolctl 3.8, only the first thread that sets them may do so, as long as it lives. Here
    the thread that releases the limit last restores the number, and it may be another thread.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(number)


class _BlasLimit:
    """The limit of one thread for linear algebra in the whole process, while any scope needs it.

    The libraries have one limit for all threads of Python. The first holder sets it, and the last
    one restores the earlier number, whatever the order in which holders come and go.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holders: dict[object, int] = {}  # scopes, and the thread in which each runs
        # The limited libraries by their files, with their earlier numbers of threads
        self._before: dict[str, tuple[Any, int]] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire,
                after_in_parent=self._lock.release,
                after_in_child=self._stay_alone,
            )

    def n_threads(self, library: Any) -> int:
        """Return the number of threads of a library without this limit."""
        known = self._before.get(library.filepath)
        return int(library.num_threads if known is None else known[1])

    def hold(self, holder: object) -> None:
        """Limit the libraries until the holder releases them."""
        with self._lock:
            if not self._holders and self._before:  # the last holder was interrupted in between
                self._restore()
            self._holders[holder] = threading.get_ident()
            for library in _controller().lib_controllers:
                if library.user_api == "blas" and library.filepath not in self._before:
                    self._before[library.filepath] = library, library.num_threads
                    _set_threads(library, 1)

    def release(self, holder: object) -> None:
        """Restore the libraries if there is no other holder. It may be called twice."""
        with self._lock:
            self._holders.pop(holder, None)
            if not self._holders:
                self._restore()

    def _restore(self) -> None:
        """Restore the threads of each library, so that an interrupt in between loses none."""
        while self._before:
            path, (library, number) = next(iter(self._before.items()))
            _set_threads(library, number)
            del self._before[path]

    def _stay_alone(self) -> None:
        """Forget holders of other threads in a forked child, in which only this thread exists."""
        me = threading.get_ident()
        self._holders = {holder: thread for holder, thread in self._holders.items() if thread == me}
        if not self._holders:
            self._restore()
        self._lock.release()


_BLAS = _BlasLimit()


class _Scope:
    """Limits that hold while a decorated function runs, and the earlier settings to restore.

    ``_BLAS`` limits BLAS for the whole process. OpenMP has its number of threads for each thread of
    Python, so it is set and restored here. The outermost scope has a pool of threads that help with
    all passes inside. Starting a thread takes 0.1 ms, so a pass would take 1.5 ms longer if it
    started 16 threads, whereas waking 16 takes 0.06 ms. They wait without using a processor, and
    end with the scope.
    """

    def __init__(self, of: str | None) -> None:  # "blas", or None for all libraries
        self._allowed, self._helpers = _allowed.get(), _helpers.get()
        self._pool: ThreadPoolExecutor | None = None
        self._others: list[tuple[Any, int]] = []
        if of is None:
            libraries = _controller().lib_controllers
            self._others = [
                (library, library.num_threads)
                for library in libraries
                if library.user_api != "blas"
            ]

    def enter(self) -> None:
        """Limit the libraries. The outermost scope will have the pool of threads."""
        _allowed.set(allowed_threads())
        if self._helpers is None:
            _helpers.set(self)
        for library, _ in self._others:
            library.set_num_threads(1)
        _BLAS.hold(self)

    def leave(self) -> None:
        """Restore all settings, and end the threads of the pool. It may be called twice."""
        _BLAS.release(self)
        for library, number in self._others:
            library.set_num_threads(number)
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        _helpers.set(self._helpers)
        _allowed.set(self._allowed)

    def ask(self, tasks: list[Callable[[], None]]) -> None:
        """Give tasks to the pool. A task may begin late, or never if the scope ends before."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_allowed.get())  # it starts threads when needed
        for task in tasks:
            self._pool.submit(task)


def _made_by_threads(
    function: Callable[[int, int], R], starts: range, n_rows: int, n_threads: int
) -> list[R]:
    """Let this thread and helpers take blocks until none is left; raise the first error.

    This thread only waits for blocks that helpers have begun. So a helper that never begins does
    not delay it. This happens after a fork, because other threads do not exist in the child.
    """
    made: dict[int, R] = {}
    errors: list[BaseException] = []
    waiting, lock = iter(starts), threading.Lock()
    # Blocks that helpers have begun and ended. They put a sign into the queue for each ended block.
    begun: list[int] = []
    ended: list[int] = []
    signs: queue.SimpleQueue[None] = queue.SimpleQueue()

    def next_block(taken: list[int]) -> int | None:
        """Take a block, and note it in a list; None if none is left or one has failed."""
        with lock:
            start = None if errors else next(waiting, None)
            if start is not None:
                taken.append(start)
            return start

    def make(start: int) -> None:
        try:
            made[start] = function(start, min(start + starts.step, n_rows))
        except BaseException as error:
            errors.append(error)

    def help_out() -> None:
        """Take blocks in a thread of the pool."""
        _allowed.set(1)
        _errors.set(errors)
        while (start := next_block(begun)) is not None:
            make(start)
            ended.append(start)
            signs.put(None)

    def work() -> None:
        """Take blocks in this thread. ``wait`` is about helpers, so they are not noted."""
        _allowed.set(1)
        while (start := next_block([])) is not None:
            make(start)

    def wait() -> None:
        """Wait until all blocks that helpers have begun are ended."""
        while len(ended) < len(begun):
            with contextlib.suppress(queue.Empty):
                signs.get(timeout=_LONGEST_WAIT)

    # Each thread gets a copy of the context variables here, such as numpy's settings of errors.
    own, *contexts = (contextvars.copy_context() for _ in range(n_threads))
    helpers = _helpers.get()
    assert helpers is not None  # a scope calls this function
    try:
        helpers.ask([partial(context.run, help_out) for context in contexts])
        own.run(work)
        wait()
    except BaseException as error:  # an interrupt between two blocks; the error ends other threads
        with lock:
            errors.append(error)
        wait()
    if errors:
        raise errors[0]
    return [made[start] for start in starts]


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that makes many small products: each uses one thread.

    If a product takes less than a millisecond, its threads wait for each other longer than they
    work. If other programs run, they also wait for these. Clustering 300,000 rows on two busy cores
    took 40 to 56 s instead of 12, and a constrained classifier of 140 columns 3.0 s instead of 0.4.
    On two idle cores one thread was not slower either, from 10 to 800 columns. Passes over the rows
    still use threads, see :func:`over_blocks`.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.utils.threads import one_blas_thread
    >>> @one_blas_thread
    ... def product(a, b):
    ...     return a @ b
    >>> product(np.eye(2), np.ones(2))
    array([1., 1.])
    """
    return _on_one_thread(function, "blas")


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function whose sums must not depend on threads: all libraries use one.

    Examples
    --------
    >>> from skfair.utils.threads import one_thread
    >>> one_thread(sum)([1.0, 2.0])
    3.0
    """
    return _on_one_thread(function, None)


def _on_one_thread(function: Callable[P, R], of: str | None) -> Callable[P, R]:
    """Decorate a function: libraries are limited (``of`` as in ``_Scope``), passes are not."""

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        scope = _Scope(of)
        try:
            scope.enter()
            return function(*args, **kwargs)
        finally:
            try:
                scope.leave()
            except BaseException:  # an interrupt during the restoration, which is then repeated
                scope.leave()
                raise

    return limited


def one_thread_if_few(fit: Callable[P, R]) -> Callable[P, R]:
    """Decorate the ``fit`` of an estimator around another one: a small table gets one thread.

    If X has at most ``FEW_VALUES`` values, all libraries use one thread. If it has more, or its
    size is not known, the threads are those that the user allows. The models inside are from other
    packages, and may make many small products. On two idle cores, one thread of linear algebra was
    never slower up to 10 million values (logistic regressions by L-BFGS and Newton, networks,
    discriminants), and up to 4 times faster. With two other busy processes it was up to 20 times
    faster. The threads of boosted trees and k-means use their cores even while they wait for each
    other. On two idle cores, a second thread makes boosted trees of a million values 1.4 times as
    fast. With other programs running it makes them 10 to 100 times as slow
    (``benchmarks/threads.py``). Users with many idle cores can fit the folds in processes by
    ``n_jobs``.
    """
    limited = _on_one_thread(fit, None)

    @functools.wraps(fit)
    def either(*args: P.args, **kwargs: P.kwargs) -> R:
        shape = getattr(args[1] if len(args) > 1 else kwargs.get("X"), "shape", ())
        # Tables that are read in blocks may not know their number of rows.
        is_known = isinstance(shape, tuple) and all(isinstance(n, Integral) for n in shape)
        is_small = is_known and math.prod(shape) <= FEW_VALUES
        return (limited if is_small else fit)(*args, **kwargs)

    return either
