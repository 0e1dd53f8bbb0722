"""Functions that run on the partitions of Dask collections, and sums of their results.

A function runs on every block in the place where the block is. Only its arguments and results are
transferred, such as sums over the rows or a few numbers per row, but never the columns of X. Dask
decides where and when functions run: in threads of this process, or on the workers of the
``distributed`` client, if there is one. This file only describes the work. Functions are pure, so
if a worker is lost, Dask runs them again on another one with the same result. Blocks that are held
(in memory) in this process are visited without Dask.

:func:`skfair.utils.dask_collections.align` makes a :class:`Partitions`. ``groups`` and
:class:`~skfair.utils.partitioned_rows.PartitionedRows` call its methods. ``then`` describes new
blocks. ``hold``, ``pack`` and ``held`` compute and keep blocks: ``hold`` as single blocks, ``pack``
in lists, and ``held`` in the places of the blocks from which they are made. ``collect``, ``total``
and ``to_array`` return results.

The units of work, from small to large: a *block* is a part of the rows; a *list* holds neighbouring
blocks that lie in one place; a *run* is the neighbouring lists that one thread visits in one task.
The *home* of a run is the address of the worker that holds it, "" if that is no worker of a
cluster. Until blocks are held, each is a list and a run of its own.

Partial results are added along a tree, first within each run. Its shape depends on the blocks
and on the number of threads, so sums are the same in every run of the program.
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

# Without a cluster, `hold` keeps blocks of at most this many bytes in total. If there are more,
# they are read again in every pass.
KEPT_BYTES = 1 << 30
# Held blocks of at most this many bytes in total are visited by one thread, because starting
# several takes tenths of a millisecond.
FEW_BYTES = 1 << 20
# `pack` puts the blocks of a run into one list, because each list is a task, which takes the
# scheduler about a millisecond. If the run has more than LIST_BYTES, it gets several lists, at most
# MOST_LISTS, so that a worker that runs out of memory can spill some of them.
LIST_BYTES, MOST_LISTS = 1 << 27, 16
# The message (function and shared arguments for all blocks) is a task if it has more bytes than
# this. Then it is sent once to each worker, but there is one more task to schedule.
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
        # Lists of blocks as delayed objects; if lengths is None, the blocks themselves
        lists: Sequence[Any],
        # Number of blocks in each list; None if every element of lists is a block
        lengths: Sequence[int] | None = None,
        # Number of lists in each run; None if the blocks are not held, so each list is a run
        runs: Sequence[int] | None = None,
        # The home of each run; empty if the blocks are not held
        homes: Sequence[str] = (),
        # The lists themselves, if they are in the memory of this process; otherwise None
        values: list[list[Any]] | None = None,
    ) -> None:
        self._lists = list(lists) if lengths is not None else [[block] for block in lists]
        self._lengths = [1] * len(self._lists) if lengths is None else list(lengths)
        self._runs = [1] * len(self._lists) if runs is None else list(runs)
        self._is_held, self._homes = runs is not None, homes
        self._values = values
        # The lists as futures, if the workers of a cluster hold them (`_settled` fills it)
        self._futures: list[Any] = []
        self._in_threads = values is not None and size_of(values) > FEW_BYTES

    def __len__(self) -> int:
        return sum(self._lengths)

    def then(
        self, function: Callable[..., Any], *shared: Any, each: Sequence[Any] | None = None
    ) -> Partitions:
        """Return the blocks ``function(block, *shared, each[i])``; nothing runs yet.

        Here and below, ``each`` has a value for each block i; if None, functions get none.
        """
        each_list_alone = Partitions(self._lists, self._lengths)  # so that every list is a task
        return Partitions(
            each_list_alone._chains(delay, self._lists, Sealed((function, shared, None)), each),
            self._lengths,
            self._runs if self._is_held else None,
            self._homes,
        )

    def collect(
        self, function: Callable[..., Any], *shared: Any, each: Sequence[Any] | None = None
    ) -> list[Any]:
        """Run a function on every block and return its results, in the order of the blocks."""
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
        """Run a function on every block and add up its results: numbers, arrays, or tuples.

        If results should not be added, ``combine`` makes one result of a list of results. The
        results of a run are added up in its place, so the number of bytes that are sent depends on
        the number of threads.
        """
        combine = add if combine is None else combine
        totals = combine(self._results(Sealed((function, shared, combine)), each))
        self._count_bytes(shared, each, len(self._runs) * size_of(totals))
        return totals

    def hold(self) -> Partitions:
        """Compute the blocks and hold each as a list, if there is enough memory.

        The workers of a cluster hold their blocks (and spill them to disk if needed). Without a
        cluster, blocks that do not fit into ``KEPT_BYTES`` are returned unchanged, and read again
        in every pass.
        """
        client = current_client()
        if client is None and sum(self.collect(size_of)) > KEPT_BYTES:
            return self
        homes = homes_of(client)
        return self._settled(homes, even_runs(np.ones(len(self._lists)), len(homes)))

    def held(self) -> Partitions:
        """Compute blocks that ``then`` made of held ones, and hold them in the same places.

        Blocks that are made of blocks that are not held are returned unchanged.
        """
        return self._settled(self._homes, self._runs) if self._is_held else self

    def pack(self) -> Partitions:
        """Put held blocks, or blocks that ``then`` made of held ones, into few lists.

        Every thread gets a run of neighbouring blocks with about the same number of bytes, so that
        threads need not wait for each other. A run is one list, or several if it has more than
        ``LIST_BYTES``. Blocks that are not held are returned unchanged.
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
        """Compute the lists and hold them: ``runs[i]`` neighbouring lists at ``homes[i]``."""
        from dask import persist

        homes = [home for home, run in zip(homes, runs, strict=True) if run]
        runs = [run for run in runs if run]
        ends = np.cumsum([0, *runs]).tolist()
        lists: list[Any] = []
        futures: list[Any] = []
        values = None
        with clear_errors():
            if not homes[0] and has_default_scheduler():
                # There is neither a cluster nor a scheduler that the user chose, so they stay here.
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
        """Return the results of a function, an array for each block, as one Dask array.

        ``sizes`` are the numbers of rows of the blocks; if None, the array has chunks of unknown
        length. The array has one dimension if ``n_columns`` is None, else two.
        """
        import dask.array as da
        from dask.highlevelgraph import HighLevelGraph

        sizes = [np.nan] * len(self) if sizes is None else sizes
        rest = () if n_columns is None else (n_columns,)
        blocks = self.then(function, *shared, each=each)._single()
        # The graph is written here, because dask.array.concatenate would drop empty blocks.
        name = f"{function.__name__}-{uuid.uuid4().hex}"
        layer: Any = {(name, i, *(0 for _ in rest)): block.key for i, block in enumerate(blocks)}
        return da.Array(
            HighLevelGraph.from_collections(name, layer, dependencies=blocks),
            name,
            chunks=(tuple(sizes), *((size,) for size in rest)),
            meta=np.empty((0, *rest), dtype),
        )

    def _single(self) -> list[Any]:
        """Return the delayed blocks, taken out of their lists."""
        return [
            part[i]
            for part, length in zip(self._lists, self._lengths, strict=True)
            for i in range(length)
        ]

    def _results(self, message: Sealed, each: Sequence[Any] | None) -> list[Any]:
        """Run the function of a message on all blocks.

        A message is (function, shared arguments, combine). If combine is None, the result has a
        list for each run with the results of its blocks. Otherwise it has few entries, the combined
        results of one or several runs, which the caller combines.
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
        """Return a function that makes a task, one that computes a list of tasks, and the lists.

        Tasks are delayed calls, or calls submitted to the client if its workers hold the lists.
        """
        client = current_client() if self._futures else None
        if client is None:
            return delay, compute, self._lists
        # If workers hold the lists, submitted tasks take half the time of a graph of delayed calls.
        return partial(client.submit, pure=False), client.gather, self._futures

    def _visits(self, lists: list[Any], each: Sequence[Any] | None) -> list[list[Any]]:
        """Return for each run its visits: (number of the first block, list, sealed ``each``).

        The last entry has a tuple for each block of the list: its value of ``each``, or nothing.
        """
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
        """Return one task per run, whose result is the result of ``visited``.

        ``call`` makes a task. The lists of a run are a chain of tasks, each of which gets the
        previous result. If all lists were ready at once, the scheduler would move some to a worker
        that finishes earlier, which may not have enough memory for them.
        """
        # A message that is large, or that a run passes to several lists, becomes a task, so that it
        # is sent once to each worker.
        sent: Any = message
        if size_of(message.content[1]) > SMALL_BYTES or len(self._lists) > len(self._runs):
            sent = call(itself, message)
        run = partial(call, run_blocks)
        return [visited(run, sent, visits) for visits in self._visits(lists, each)]

    def _count_bytes(self, shared: Any, each: Any, n_back: int) -> None:
        """Count the bytes of a call in both directions, with the shared arguments once per run."""
        sent = len(self._runs) * size_of(shared) + (0 if each is None else size_of(list(each)))
        count_bytes(sent + n_back)
