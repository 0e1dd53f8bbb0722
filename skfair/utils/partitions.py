"""Functions run on the partitions of Dask collections, and sums of what they return.

A function runs on every block where the block is, and only what it gets and returns travels: sums
over the rows, or a few numbers per row, but never their columns. Dask decides where and when
(threads of this process, or the workers of the ``distributed`` client, if there is one). This file
only describes the work. Functions are pure: if a worker is lost, Dask runs them again on another
one and the result is the same. Blocks that are held in this process are visited without Dask.

Partial results are added along a tree, first within each thread. Its shape depends on the blocks
and on the number of threads, so sums are the same in every run.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from skfair.utils.history import count_bytes
from skfair.utils.partition_tasks import (
    Sealed,
    add,
    clear_errors,
    combined,
    compute,
    current_client,
    delay,
    even_runs,
    future_of,
    has_default_scheduler,
    homes_of,
    itself,
    run_blocks,
    run_here,
    size_of,
    visited,
)

# Blocks of at most this many bytes in all are kept in the memory of this process; more are read
# again in every pass.
KEPT_BYTES = 1 << 30
# Passes over so few bytes of this process take one thread.
FEW_BYTES = 1 << 20
# Blocks that lie together are visited by one task, which costs the scheduler about a millisecond.
# Where a thread holds more bytes than this, they are parted into lists, so that workers that run
# out of memory spill part of them; but not into many more tasks.
LIST_BYTES, MOST_LISTS = 1 << 27, 16
# A message of more bytes travels once to each worker, as a task of its own, which takes time.
SMALL_BYTES = 1 << 16


class Partitions:
    """Blocks of rows, and functions that run on each of them where it is.

    Examples
    --------
    >>> import dask.array as da
    >>> from skfair.utils.dask_collections import align
    >>> rows = align(X=da.arange(6, chunks=2))
    >>> rows.collect(lambda block: int(block["X"].sum()))
    [1, 5, 9]
    >>> rows.total(lambda block: int(block["X"].sum()))
    15
    """

    def __init__(
        self,
        # Lists of blocks; those of a list lie together, and one task visits them
        lists: Sequence[Any],
        # Number of blocks in each list; by default every element is a block, not a list
        lengths: Sequence[int] | None = None,
        # Number of lists that each thread holds; by default they are not held, and each
        # is a run
        runs: Sequence[int] | None = None,
        # Address of the worker of each of these threads
        homes: Sequence[str] = (),
        # The lists themselves, where they are held in the memory of this process
        values: list[list[Any]] | None = None,
    ) -> None:
        self._lists = list(lists) if lengths is not None else [[block] for block in lists]
        self._lengths = [1] * len(self._lists) if lengths is None else list(lengths)
        self._runs = [1] * len(self._lists) if runs is None else list(runs)
        self._is_held, self._homes = runs is not None, homes
        self._values = values
        self._futures: list[Any] = []  # the lists, where the workers of a cluster hold them
        # Threads take tenths of a millisecond to start.
        self._in_threads = values is not None and size_of(values) > FEW_BYTES

    def __len__(self) -> int:
        return sum(self._lengths)

    def then(
        self, function: Callable[..., Any], *shared: Any, each: Sequence[Any] | None = None
    ) -> Partitions:
        """Return the blocks ``function(block, *shared, each[i])``; nothing runs yet."""
        each_list_alone = Partitions(self._lists, self._lengths)
        return Partitions(
            each_list_alone._chains(delay, self._lists, Sealed((function, shared, None)), each),
            self._lengths,
            self._runs if self._is_held else None,
            self._homes,
        )

    def collect(
        self, function: Callable[..., Any], *shared: Any, each: Sequence[Any] | None = None
    ) -> list[Any]:
        """Run a function on every block and return what it returns, in the order of the blocks."""
        parts = self._results(Sealed((function, shared, None)), each)
        results = [result for part in parts for result in part]
        self._count_bytes(shared, each, size_of(results))
        return results

    def total(
        self,
        function: Callable[..., Any],
        *shared: Any,
        each: Sequence[Any] | None = None,
        combine: Callable[[list[Any]], Any] | None = None,
    ) -> Any:
        """Run a function on every block and add up what it returns: numbers, arrays, or tuples.

        ``combine`` makes one result of a list of them, if they are not to be added. What a thread
        holds is added up where it is, so the bytes that travel depend on the number of threads.
        """
        combine = add if combine is None else combine
        totals = combine(self._results(Sealed((function, shared, combine)), each))
        self._count_bytes(shared, each, len(self._runs) * size_of(totals))
        return totals

    def hold(self) -> Partitions:
        """Return the blocks, computed and held one by one where there is room for them.

        The workers of a cluster hold their blocks (and spill them to disk if need be). Without a
        cluster, blocks that do not fit into ``KEPT_BYTES`` are read again in every pass.
        """
        client = current_client()
        if client is None and sum(self.collect(size_of)) > KEPT_BYTES:
            return self
        homes = homes_of(client)
        return self._settled(homes, even_runs(np.ones(len(self._lists)), len(homes)))

    def held(self) -> Partitions:
        """Compute blocks that are made of held ones once, and hold them where these are."""
        return self._settled(self._homes, self._runs) if self._is_held else self

    def pack(self) -> Partitions:
        """Put blocks that are held, or made of such, into lists.

        Every thread gets neighbours of as many bytes, so that none waits for another one; one list
        of them, unless there are very many bytes.
        """
        from dask import delayed

        if not self._is_held:
            return self
        homes = homes_of(current_client())
        sizes = self.collect(size_of)
        lengths: list[int] = []
        runs = []
        for n_blocks in even_runs(sizes, len(homes)):
            own = sizes[sum(lengths) :][:n_blocks]
            n_lists = max(1, min(-(-sum(own) // LIST_BYTES), MOST_LISTS))
            lengths_of_lists = [n for n in even_runs(own, n_lists) if n]
            lengths += lengths_of_lists
            runs.append(len(lengths_of_lists))
        blocks, starts = self._single(), np.cumsum([0, *lengths]).tolist()
        lists = [delayed(list, pure=False)(blocks[i:j]) for i, j in pairwise(starts)]
        return Partitions(lists, lengths)._settled(homes, runs)

    def _settled(self, homes: Sequence[str], runs: Sequence[int]) -> Partitions:
        """Compute the lists and hold them, a run of neighbours at each home."""
        from dask import persist

        homes = [home for home, run in zip(homes, runs, strict=True) if run]
        runs = [run for run in runs if run]
        ends = np.cumsum([0, *runs]).tolist()
        lists: list[Any] = []
        futures: list[Any] = []
        values = None
        with clear_errors():
            if not homes[0] and has_default_scheduler():
                values = compute(self._lists)
                lists = [delay(itself, value) for value in values]
            elif not homes[0]:
                lists += persist(*self._lists)
            else:
                for home, (i, j) in zip(homes, pairwise(ends), strict=True):
                    own = self._lists[i:j]
                    lists += persist(*own, workers=home, allow_other_workers=True)
                futures = list(map(future_of, lists))
        held = Partitions(lists, self._lengths, runs, homes, values)
        held._futures = futures
        return held

    def to_array(
        self,
        function: Callable[..., Any],
        *shared: Any,
        each: Sequence[Any] | None = None,
        dtype: Any,
        sizes: Sequence[float] | None = None,
        n_columns: int | None = None,
    ) -> Any:
        """Return the arrays that a function makes of the blocks as one Dask array.

        Without the ``sizes`` of the blocks the array has chunks of unknown length.
        """
        import dask.array as da
        from dask.highlevelgraph import HighLevelGraph

        sizes = [np.nan] * len(self) if sizes is None else sizes
        rest = () if n_columns is None else (n_columns,)
        blocks = self.then(function, *shared, each=each)._single()
        # Not concatenated from arrays of one block each: that would drop the empty ones.
        name = f"{function.__name__}-{uuid.uuid4().hex}"
        layer: Any = {(name, i, *(0 for _ in rest)): block.key for i, block in enumerate(blocks)}
        return da.Array(
            HighLevelGraph.from_collections(name, layer, dependencies=blocks),
            name,
            chunks=(tuple(sizes), *((size,) for size in rest)),
            meta=np.empty((0, *rest), dtype),
        )

    def _single(self) -> list[Any]:
        return [
            part[i]
            for part, length in zip(self._lists, self._lengths, strict=True)
            for i in range(length)
        ]

    def _results(self, message: Sealed, each: Sequence[Any] | None) -> list[Any]:
        """Return what the runs found: the results of their blocks, combined if so wanted.

        A message is a function, what all blocks get with it, and what combines its results.
        """
        combine = message.content[-1]
        if self._values is not None:
            results = run_here(message, self._visits(self._values, each), self._in_threads)
            return results if combine is None else combined(results, combine)
        with clear_errors():
            call, fetch, lists = self._caller()
            tasks = self._chains(call, lists, message, each)
            return fetch(tasks if combine is None else combined(tasks, partial(call, combine)))

    def _caller(self) -> tuple[Callable[..., Any], Callable[[list[Any]], list[Any]], list[Any]]:
        """Return what makes a task, what computes tasks, and the lists as tasks take them."""
        client = current_client() if self._futures else None
        if client is None:
            return delay, compute, self._lists
        # Without a graph around them, tasks on what workers hold take half the time.
        return partial(client.submit, pure=False), client.gather, self._futures

    def _visits(self, lists: list[Any], each: Sequence[Any] | None) -> list[list[Any]]:
        """Return (number of the first block, list, what its blocks alone get), run by run."""
        own = [()] * len(self) if each is None else [(value,) for value in each]
        blocks = np.cumsum([0, *self._lengths]).tolist()
        visits = [
            (i, part, Sealed(own[i:j]))
            for part, (i, j) in zip(lists, pairwise(blocks), strict=True)
        ]
        runs = np.cumsum([0, *self._runs]).tolist()
        return [visits[i:j] for i, j in pairwise(runs)]

    def _chains(
        self,
        call: Callable[..., Any],
        lists: list[Any],
        message: Sealed,
        each: Sequence[Any] | None,
    ) -> list[Any]:
        """Return one task per run: the results of its blocks, combined if so wanted.

        The lists of a run are visited one after the other, and what was found so far is handed
        on. Where all are ready at once, the scheduler moves lists to a worker that is done earlier,
        and there the memory is missing.
        """
        # A message that is large, or for many lists of a worker, is a task of its own, so that it
        # travels once to each worker.
        sent: Any = message
        if size_of(message.content[1]) > SMALL_BYTES or len(self._lists) > len(self._runs):
            sent = call(itself, message)
        run = partial(call, run_blocks)
        return [visited(run, sent, visits) for visits in self._visits(lists, each)]

    def _count_bytes(self, shared: Any, each: Any, n_back: int) -> None:
        """Count what a call has sent and got back, one message for each thread with blocks."""
        sent = len(self._runs) * size_of(shared) + (0 if each is None else size_of(list(each)))
        count_bytes(sent + n_back)
