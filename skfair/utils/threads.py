"""Threads: where passes over the rows use them, and where the linear algebra library should not.

Passes are cut into blocks of rows whose size does not depend on the number of threads. Each thread
takes the next block, and the results are put together in the order of the blocks. So results are
the same bits with any number of threads, and a thread that another program holds up delays no more
than its block.
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

# Rows per block, if a row takes about a nanosecond or ten.
BLOCK = 1 << 16
# Other people's models are fitted to this many values with one thread of linear algebra, too.
FEW_VALUES = 4_000_000
# And to so few with one thread at all.
FEWER_VALUES = 100_000
# Seconds after which a thread that waits for others looks by itself; they wake it before.
_LONGEST_WAIT = 0.05
# How many threads were allowed before the library was limited to one, in the thread that limits it.
_allowed: contextvars.ContextVar[int | None] = contextvars.ContextVar("allowed", default=None)
# The outermost scope, whose threads help with the passes inside.
_helpers: contextvars.ContextVar[_Scope | None] = contextvars.ContextVar("helpers", default=None)
# What went wrong elsewhere in the pass that this thread helps with.
_errors: contextvars.ContextVar[list[BaseException]] = contextvars.ContextVar("errors")


def _controller() -> ThreadpoolController:
    return _controller_of("sklearn.utils._openmp_helpers" in sys.modules)


@functools.cache
def _controller_of(has_openmp: bool) -> ThreadpoolController:
    """Find the libraries, once, and again with those of scikit-learn: it takes milliseconds."""
    return ThreadpoolController()


@functools.cache
def _n_processors() -> int:
    """Count the processors that this process may use, by its container too."""
    return int(joblib.cpu_count())


def allowed_threads() -> int:
    """Return how many threads a pass may use.

    As many as ``OMP_NUM_THREADS``, ``NUMBA_NUM_THREADS``, threadpoolctl and the processors allow;
    one inside the workers of joblib, and wherever the caller is a thread of its own, as with Dask:
    their number was chosen to fill the processors.
    """
    if threading.current_thread() is not threading.main_thread():
        return 1
    n_threads = _allowed.get()
    if n_threads is not None:  # whoever set it has asked joblib: to ask takes 0.02 ms
        return n_threads
    if joblib.parallel.get_active_backend()[0].nesting_level:
        return 1
    named = (os.environ.get(f"{name}_NUM_THREADS", "") for name in ("OMP", "NUMBA"))
    limits = [int(number) for number in named if number.isdecimal()]
    limits += [_BLAS.n_threads(library) for library in _controller().lib_controllers]
    return max(1, min([_n_processors(), *limits]))


def over_blocks(function: Callable[[int, int], R], n_rows: int, block: int = BLOCK) -> list[R]:
    """Return ``function(start, stop)`` for each block of rows, in their order, made by threads.

    The function should spend its time where Python lets other threads run: in kernels, products and
    numpy's operations on arrays, and a block should take more than 0.1 ms: to wake a thread takes a
    few hundredths. Inside it nothing uses more than one thread.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.utils.threads import over_blocks
    >>> values = np.arange(10.0)
    >>> over_blocks(lambda start, stop: float(values[start:stop].sum()), 10, block=4)
    [6.0, 22.0, 17.0]
    """
    if _errors.get(()):
        raise _AbandonedError
    if 0 < n_rows <= block:
        return [function(0, n_rows)]
    starts = range(0, n_rows, block)
    n_threads = min(len(starts), allowed_threads()) if n_rows else 1
    if n_threads == 1:
        return [function(start, min(start + block, n_rows)) for start in starts]
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
    """Return a function of each item, all of which have this many rows; threads share them if many.

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
    """Return ``table[codes]`` for codes from 0 on.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.utils.threads import looked_up
    >>> looked_up(np.array([1.5, 2.5]), np.array([1, 0, 1])).tolist()
    [2.5, 1.5, 2.5]
    """
    out = np.empty(codes.size, table.dtype)

    def of_block(start: int, stop: int) -> None:
        # "clip" does not look for wrong codes, and writes without a copy.
        np.take(table, codes[start:stop], out=out[start:stop], mode="clip")

    over_blocks(of_block, codes.size)
    return out


class _AbandonedError(BaseException):
    """Ends what a thread does for a pass of which another part failed, or was interrupted."""


def _set_threads(library: Any, number: int) -> None:
    """Set the threads of a library, from any thread of Python.

    threadpoolctl 3.8 lets only the first thread that sets them do so, as long as it lives. Here the
    one that comes last has to put back what the first one set.
    """
    getattr(library, "_real_set_num_threads", library.set_num_threads)(number)


class _BlasLimit:
    """One thread of linear algebra, in the whole process, while anybody wants it.

    The libraries have one limit for all threads. The first holder sets it, and the last one puts
    back what was there, in whatever order they come and go.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._holders: dict[object, int] = {}  # and their threads
        self._before: dict[str, tuple[Any, int]] = {}  # limits of libraries, by their files
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=self._lock.acquire,
                after_in_parent=self._lock.release,
                after_in_child=self._stay_alone,
            )

    def n_threads(self, library: Any) -> int:
        """Return the threads that a library may use when nobody limits it here."""
        known = self._before.get(library.filepath)
        return int(library.num_threads if known is None else known[1])

    def hold(self, holder: object) -> None:
        """Limit the libraries until the holder releases them."""
        with self._lock:
            if not self._holders and self._before:  # the last holder was interrupted
                self._restore()
            self._holders[holder] = threading.get_ident()
            for library in _controller().lib_controllers:
                if library.user_api == "blas" and library.filepath not in self._before:
                    self._before[library.filepath] = library, library.num_threads
                    _set_threads(library, 1)

    def release(self, holder: object) -> None:
        """Put limits back if nobody else holds them; once more does no harm."""
        with self._lock:
            self._holders.pop(holder, None)
            if not self._holders:
                self._restore()

    def _restore(self) -> None:
        while self._before:
            path, (library, number) = next(iter(self._before.items()))
            _set_threads(library, number)
            del self._before[path]

    def _stay_alone(self) -> None:
        """Forget holders that are threads of the parent process."""
        me = threading.get_ident()
        self._holders = {holder: thread for holder, thread in self._holders.items() if thread == me}
        if not self._holders:
            self._restore()
        self._lock.release()


_BLAS = _BlasLimit()


class _Scope:
    """Settings that hold while a function runs, and the earlier ones.

    Libraries use one thread, of which OpenMP keeps the number by thread; one set of threads helps
    with all passes inside. To start a thread takes 0.1 ms: with 16 that were started anew every
    pass took 1.5 ms longer, to wake 16 takes 0.06. They wait without using a processor, and none is
    left at the end.
    """

    def __init__(self, of: str | None) -> None:
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
        """Limit libraries; the outermost scope gets threads that help."""
        _allowed.set(allowed_threads())
        if self._helpers is None:
            _helpers.set(self)
        for library, _ in self._others:
            library.set_num_threads(1)
        _BLAS.hold(self)

    def leave(self) -> None:
        """Restore all of it, and let the threads end; once more does no harm."""
        _BLAS.release(self)
        for library, number in self._others:
            library.set_num_threads(number)
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        _helpers.set(self._helpers)
        _allowed.set(self._allowed)

    def ask(self, tasks: list[Callable[[], None]]) -> None:
        """Give each task to a thread; nobody waits for one that does not begin in time."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_allowed.get())  # it starts them when they are needed
        for task in tasks:
            self._pool.submit(task)


def _made_by_threads(
    function: Callable[[int, int], R], starts: range, n_rows: int, n_threads: int
) -> list[R]:
    """Let this thread and others take blocks until none is left; raise what one of them raised.

    A thread that never begins, as in a fork, where there are no others, has taken no block.
    """
    made: dict[int, R] = {}
    errors: list[BaseException] = []
    waiting, lock = iter(starts), threading.Lock()
    # Blocks that others have begun, and those that they have ended, with a sign for each of these.
    begun: list[int] = []
    ended: list[int] = []
    signs: queue.SimpleQueue[None] = queue.SimpleQueue()

    def next_block(taken: list[int]) -> int | None:
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
        _allowed.set(1)
        _errors.set(errors)
        while (start := next_block(begun)) is not None:
            make(start)
            ended.append(start)
            signs.put(None)

    def work() -> None:
        _allowed.set(1)
        while (start := next_block([])) is not None:
            make(start)

    def wait() -> None:
        while len(ended) < len(begun):
            with contextlib.suppress(queue.Empty):
                signs.get(timeout=_LONGEST_WAIT)

    # Each thread gets the settings of numpy's errors that hold here.
    own, *contexts = (contextvars.copy_context() for _ in range(n_threads))
    helpers = _helpers.get()
    assert helpers is not None  # of the scope
    try:
        helpers.ask([partial(context.run, help_out) for context in contexts])
        own.run(work)
        wait()
    except BaseException as error:  # an interrupt between two blocks: other threads end
        with lock:
            errors.append(error)
        wait()
    if errors:
        raise errors[0]
    return [made[start] for start in starts]


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that makes many small products: each uses one thread.

    Threads of a product that takes less than a millisecond wait for each other longer than they
    work, and where other programs run they wait for those: clustering 300,000 rows on two busy
    cores took 40 to 56 s instead of 12, a constrained classifier of 140 columns 3.0 s instead of
    0.4. On two idle cores one thread was no slower either, from 10 to 800 columns. Passes over the
    rows still use threads, see :func:`over_blocks`.

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
    """Limit some libraries, or all of them, while the function runs; passes keep their threads."""

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        scope = _Scope(of)
        try:
            scope.enter()
            return function(*args, **kwargs)
        finally:
            try:
                scope.leave()
            except BaseException:  # an interrupt comes while it is left
                scope.leave()
                raise

    return limited


def one_thread_if_few(fit: Callable[P, R]) -> Callable[P, R]:
    """Decorate the ``fit`` of an estimator around another one: a small table gets one thread.

    The models inside make as many products as their makers like. On two idle cores, one thread of
    linear algebra was never slower up to 10 million values (logistic regressions by L-BFGS and
    Newton, networks, discriminants), and up to 4 times faster; beside two spinning processes it was
    up to 20 times faster. Boosted trees and k-means have threads of their own: of 100,000 values
    and fewer, two took up to 1.5 times as long as one, and beside other programs 3 to 10 times.
    Larger tables get the threads that the user allows.
    """
    limited, more_limited = (_on_one_thread(fit, of) for of in ("blas", None))

    @functools.wraps(fit)
    def either(*args: P.args, **kwargs: P.kwargs) -> R:
        shape = getattr(args[1] if len(args) > 1 else kwargs.get("X"), "shape", ())
        # Tables that are read in blocks may not know their number of rows.
        is_known = isinstance(shape, tuple) and all(isinstance(n, Integral) for n in shape)
        size = math.prod(shape) if is_known else math.inf
        few = limited if size > FEWER_VALUES else more_limited
        return (fit if size > FEW_VALUES else few)(*args, **kwargs)

    return either
