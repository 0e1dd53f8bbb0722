"""Tasks on partitions, the places where Dask runs them, and clear errors about a cluster.

Nothing here depends on the content of the blocks. :mod:`skfair.utils.partitions` calls nearly all
functions of this file. It decides which tasks there are, and explains *block*, *list*, *run* and
*home*. Tasks do their work in :func:`run_blocks`, for one list, and :func:`visited`, for a run.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

# A task of `combined` adds up this many results.
FAN_IN = 8


class Sealed:
    """A wrapper whose content Dask does not search for collections, which takes milliseconds."""

    def __init__(self, content: Any) -> None:
        self.content = content


def run_blocks(first: int, message: Any, blocks: list[Any], more: Any, before: Any = None) -> Any:
    """Run the function of a message on the blocks of a list; an error says which block it was.

    ``first`` is the number of the first block. The message is a sealed (function, shared arguments,
    combine), and ``more`` a sealed tuple of further arguments for each block. ``before`` is the
    result for the earlier lists of the run, or None if this is the first list. If combine is None,
    the result is the list of the function's results, and otherwise one combined result.
    """
    function, shared, combine = message.content
    results = []
    for i, own in enumerate(more.content):
        # The aligned copy replaces the block in its list, so that a block in memory is copied once
        # and not in every pass.
        blocks[i] = block = _aligned(blocks[i])
        number = first + i
        try:
            results.append(function(block, *shared, *own))
        except (ValueError, TypeError) as error:
            if str(error).startswith("Partition "):  # the message names the block already
                raise
            raise type(error)(f"Partition {number}: {error}") from error
    if combine is None:
        return results if before is None else before + results
    return combine(results if before is None else [before, *results])


def visited(run: Callable[..., Any], message: Any, visits: list[Any]) -> Any:
    """Visit the lists of a run one after the other; each call gets the result so far.

    ``run`` is :func:`run_blocks`, or a function that makes a task of it.
    """
    results = None
    for first, blocks, more in visits:
        results = run(first, message, blocks, more, results)
    return results


def run_here(message: Any, runs: list[list[Any]], in_threads: bool) -> list[Any]:
    """Visit the runs in this process, without Dask, which would need milliseconds per pass."""
    run = partial(visited, run_blocks, message)
    if not in_threads:
        return list(map(run, runs))
    with ThreadPoolExecutor(max_workers=len(runs)) as pool:
        return list(pool.map(run, runs))


def _aligned(block: Any) -> Any:
    """Return a block whose arrays are aligned in memory, as products need it.

    Blocks (a matrix, or a named tuple) that were on disk or on another worker are views of one
    piece of memory, at addresses that are not aligned. All parts are copied, because a single view
    would keep the whole piece alive.
    """
    parts = block if hasattr(block, "_fields") else [block]
    if all(map(_is_aligned, parts)):
        return block
    copies = [part.copy() if hasattr(part, "shape") else part for part in parts]
    return type(block)(*copies) if hasattr(block, "_fields") else copies[0]


def _is_aligned(part: Any) -> bool:
    """Whether the numbers of an array, or of a CSR matrix, are aligned; true for others."""
    numbers = part.data if hasattr(part, "indptr") else part  # CSR
    return not isinstance(numbers, np.ndarray) or numbers.flags.aligned


def current_client() -> Any:
    """Return the client of the cluster that Dask would use, or None."""
    try:
        from distributed import get_client
    except ImportError:
        return None
    from dask.base import get_scheduler

    scheduler = get_scheduler()
    if scheduler is not None and not hasattr(scheduler, "__self__"):
        return None  # the user chose another scheduler, because a client's is a bound method
    try:
        return get_client()
    except ValueError:
        return None


def has_default_scheduler() -> bool:
    """Whether neither a cluster nor another scheduler was chosen, so Dask uses threads here."""
    from dask.base import get_scheduler

    return get_scheduler() is None


def homes_of(client: Any) -> list[str]:
    """Return the address of the worker of each thread.

    Without a client it is "" for each processor. If the client has no workers yet, there is a
    single "".
    """
    from dask.system import CPU_COUNT

    if client is None:
        return [""] * CPU_COUNT
    with clear_errors():
        if client.status == "closed":
            raise ConnectionError("the client is closed")
        threads = client.nthreads()
    return [address for address in sorted(threads) for _ in range(threads[address])] or [""]


def itself(value: Any) -> Any:
    """Return the value. A task of this function holds a message or a list."""
    return value


def delay(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the task of a call, which Dask computes later."""
    from dask import delayed

    return delayed(function, pure=False, traverse=False)(*arguments)


def future_of(part: Any) -> Any:
    """Return the future in which a cluster holds a delayed object, or a list of these."""
    return list(map(future_of, part)) if isinstance(part, list) else part.dask[part.key]


def compute(tasks: list[Any]) -> list[Any]:
    import dask

    return list(dask.compute(*tasks, optimize_graph=False))


# Names of the errors of a lost cluster. They are texts, because "distributed" may not be installed.
_LOST = ("CommClosedError", "CancelledError", "FutureCancelledError", "ClosedClientError")


@contextlib.contextmanager
def clear_errors() -> Iterator[None]:
    """Turn errors of a lost cluster into errors that say what to do.

    Warnings of ``distributed`` about large messages are silenced inside.
    """
    from dask import config

    # If distributed were imported inside config.set, the options that its import sets would be lost
    # at the end. So the option is only set if distributed is loaded already.
    is_loaded = "distributed" in sys.modules
    quiet = {"distributed.admin.large-graph-warning-threshold": "1PB"} if is_loaded else {}
    try:
        with config.set(quiet):
            yield
    except Exception as error:
        name, text = type(error).__name__, str(error)
        is_lost = name in _LOST or "after closing" in text  # older versions have this text
        if is_lost or isinstance(error, TimeoutError | ConnectionError):
            raise ConnectionError(
                f"The connection to the Dask cluster was lost ({name}: {text[:200]}). The "
                "estimator is as it was before; start a client and call it again."
            ) from error
        if name == "KilledWorker":
            raise MemoryError(
                f"Workers of the Dask cluster died repeatedly on the same block ({error}), most "
                "likely for want of memory. Use smaller partitions or more memory per worker."
            ) from error
        raise


def add(results: list[Any]) -> Any:
    """Add numbers, arrays, or tuples and lists of them entry by entry."""
    first = results[0]
    if isinstance(first, tuple | list):
        entries = [add(list(column)) for column in zip(*results, strict=True)]
        return type(first)(*entries) if hasattr(first, "_fields") else type(first)(entries)
    return sum(results[1:], start=first)


def combined(results: list[Any], combine: Callable[[list[Any]], Any]) -> list[Any]:
    """Combine neighbouring results until at most FAN_IN are left. The caller combines these."""
    while len(results) > FAN_IN:
        results = [combine(results[i : i + FAN_IN]) for i in range(0, len(results), FAN_IN)]
    return results


def even_runs(sizes: Any, n_runs: int) -> list[int]:
    """Divide neighbours into runs of about the same total size; return the length of each.

    The items are laid end to end, and the line is cut into equal pieces, one for each run. An item
    belongs to the piece in which its middle lies. So some of the ``n_runs`` lengths may be 0.
    """
    middles = np.cumsum(sizes) - 0.5 * np.asarray(sizes)
    run = np.minimum(middles * n_runs / max(np.sum(sizes), 1), n_runs - 1).astype(np.int64)
    lengths: list[int] = np.bincount(run, minlength=n_runs).tolist()
    return lengths


def size_of(value: Any) -> int:
    """Return the number of bytes of arrays in a structure, and 8 for anything else."""
    if value is None or isinstance(value, type):
        return 0
    if isinstance(value, tuple | list):
        return sum(size_of(item) for item in value)
    if isinstance(value, dict):
        return sum(size_of(item) for item in value.values())
    if hasattr(value, "memory_usage"):
        return int(np.sum(value.memory_usage(deep=True)))
    if hasattr(value, "data") and hasattr(value, "indices"):  # CSR
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    return sum(size_of(item) for item in vars(value).values()) if hasattr(value, "__dict__") else 8
