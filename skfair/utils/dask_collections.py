"""Dask collections as arguments: they become blocks of rows, and results become a Dask array.

All code that takes Dask collections calls :func:`is_lazy` first. Then :func:`align` turns X, y,
the groups and the weights into :class:`~skfair.utils.partitions.Partitions`, in which a block is a
dict with the same rows of each argument. It is called for fits (``read.py``), for metrics
(``groups/weighted_rows.py``) and, through the decorator :func:`by_block`, for the methods of
estimators that predict. A collection is *lazy* if Dask has not computed it yet.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from itertools import chain, pairwise
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skfair.utils.keywords import OF_PREDICTIONS, refuse_unknown
from skfair.utils.partitions import Partitions

Method = TypeVar("Method", bound=Callable[..., Any])


def is_lazy(*collections: Any) -> bool:
    """Whether any of the objects is a Dask collection, or a dict with one among its values.

    Examples
    --------
    >>> from skfair.utils.dask_collections import is_lazy
    >>> is_lazy([1, 2], None)
    False
    """
    dask = sys.modules.get("dask")  # without it, nothing is a collection
    if dask is None:
        return False
    columns = (own.values() if isinstance(own, Mapping) else [own] for own in collections)
    return any(map(dask.is_dask_collection, chain.from_iterable(columns)))


def align(**columns: Any) -> Partitions:
    """Return blocks that are dicts: under the name of each argument, its part of the same rows.

    At least one argument must be lazy, or have a lazy column if it is a dict. The first such
    argument determines how the rows are divided. A Dask array is cut in the same way if its block
    lengths and those of the first argument are known. Other collections must have as many blocks as
    the first, with the same rows in each, which is checked when a block is computed. Arguments in
    memory are cut to fit. If an argument is a dict of columns, its part of a block is a dict of
    their parts. Arguments that are None are left out. Rows are matched by position, so parts of a
    block that have an index must have equal indices.
    """
    from dask import delayed

    # By (argument, column): the column is None for an argument that is no dict.
    flat: dict[tuple[str, str | None], Any] = {}
    for name, values in columns.items():
        if isinstance(values, Mapping):
            flat |= {(name, key): column for key, column in values.items()}
        elif values is not None:
            flat[name, None] = values
    # The first lazy argument, and the lengths of its blocks (None if they are not known).
    first, sizes = next(
        (key[0], known_sizes(collection)) for key, collection in flat.items() if is_lazy(collection)
    )
    lists = {
        key: _blocks_of(values, sizes, key[0], first)
        for key, values in flat.items()
        if is_lazy(values)
    }
    n_blocks = len(next(iter(lists.values())))
    for (name, _), blocks in lists.items():
        if len(blocks) != n_blocks:
            raise ValueError(
                f"{name} has {len(blocks)} partitions, but {first} has {n_blocks}, "
                "and the lengths of the partitions are not known. Pass collections that were split "
                "alike, for example columns of one DataFrame, or call compute_chunk_sizes()."
            )
    in_memory = [key for key, values in flat.items() if not is_lazy(values)]
    if in_memory:
        if sizes is None:
            sizes = Partitions(next(iter(lists.values()))).collect(n_rows)
        for key in in_memory:
            lists[key] = _cut(flat[key], sizes, key[0], first)
    together = delayed(_bundle, pure=False)
    return Partitions(
        [
            together(number, list(lists), blocks)
            for number, blocks in enumerate(zip(*lists.values(), strict=True))
        ]
    )


def _blocks_of(collection: Any, sizes: list[int] | None, name: str, first: str) -> list[Any]:
    """Return the blocks of rows of a collection as delayed objects.

    An array is cut into blocks of the given sizes if they and its own sizes are known. ``name`` and
    ``first`` are the names in errors of the collection and of the one with these sizes.
    """
    if hasattr(collection, "rechunk"):
        own = known_sizes(collection)
        if own is not None and sizes is not None and own != sizes:
            if sum(own) != sum(sizes):
                raise ValueError(f"{name} has {sum(own)} rows but {first} has {sum(sizes)}.")
            collection = collection.rechunk({0: tuple(sizes)})
        if collection.ndim > 1:
            collection = collection.rechunk({1: -1})
        return list(collection.to_delayed().ravel())
    # Dask must not optimise further, because it would merge the partitions of files of which few
    # columns are read. Then the blocks would not match those of the other collections.
    return list(collection.simplify().to_delayed(optimize_graph=False))


def _cut(values: Any, sizes: list[int], name: str, first: str) -> list[Any]:
    """Cut rows in memory into blocks of these sizes; errors use ``name`` and ``first``."""
    from dask import delayed

    values = values if hasattr(values, "shape") else np.asarray(values)
    if n_rows(values) != sum(sizes):
        raise ValueError(f"{name} has {n_rows(values)} rows but {first} has {sum(sizes)}.")
    take = values.iloc if hasattr(values, "iloc") else values
    ends = np.cumsum([0, *sizes])
    return [delayed(take[i:j], traverse=False, pure=False) for i, j in pairwise(ends.tolist())]


def _bundle(number: int, keys: list[tuple[str, str | None]], blocks: Sequence[Any]) -> Any:
    """Put the parts of one block into a dict, and raise if they do not have the same rows.

    This is the task that :func:`align` makes for block ``number``. The keys are pairs of argument
    and column, one for each part in ``blocks``.
    """
    lengths = {name: n_rows(part) for (name, _), part in zip(keys, blocks, strict=True)}
    if len(set(lengths.values())) > 1:
        lengths_of_blocks = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"Partition {number}: the numbers of rows differ ({lengths_of_blocks}).")
    _check_index(number, keys, blocks)
    out: dict[str, Any] = {}
    for (name, column), part in zip(keys, blocks, strict=True):
        if column is None:
            out[name] = part
        else:
            out.setdefault(name, {})[column] = part
    return out


def _check_index(number: int, keys: list[tuple[str, str | None]], blocks: Sequence[Any]) -> None:
    """Raise if two parts of a block have an index and the indices differ."""
    indexed = [
        (name, part)
        for (name, _), part in zip(keys, blocks, strict=True)
        if hasattr(getattr(part, "index", None), "equals")
    ]
    for name, part in indexed[1:]:
        first, other = indexed[0]
        if not part.index.equals(other.index):
            raise ValueError(
                f"Partition {number}: the index labels of {name} and {first} differ, but "
                "rows are matched by position, so they would get the values of other rows. Pass "
                "columns of one DataFrame, or drop the index if the order is right: "
                ".to_dask_array(lengths=True), or .to_numpy() in memory."
            )


def n_rows(part: Any) -> int:
    return int(part.shape[0]) if hasattr(part, "shape") else len(part)


def meta_of(X: Any) -> Any:
    """Return an empty frame or array with the columns of a Dask collection."""
    if hasattr(X, "columns"):
        return X._meta
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, got {X.ndim}.")
    return np.empty((0, int(X.shape[1])), X.dtype)


def known_sizes(collection: Any) -> list[int] | None:
    """Return the number of rows of each block; None if Dask does not know them.

    It is None for all frames and series. Dask marks unknown chunk lengths of an array by NaN.
    """
    chunks = getattr(collection, "chunks", None)
    if chunks is None or np.isnan(chunks[0]).any():
        return None
    return [int(size) for size in chunks[0]]


def by_block(
    # Returns the number of columns of the result, given the fitted estimator. The result has one
    # dimension if this is None or returns None
    n_columns: Callable[[Any], int | None] | None = None,
    # The dtype of the result, or a function from the fitted estimator to it
    dtype: Any = np.float64,
) -> Callable[[Method], Method]:
    """Decorate a method of a fitted estimator whose result has one entry, or line, per row of X.

    All other arguments of the method must have one entry per row too. If an argument is a Dask
    collection, the method returns a Dask array, which calls the method on each block where the
    block is. ``n_columns`` and ``dtype`` are needed because Dask must know the shape and dtype of
    the array before anything is computed. Without Dask collections the method is called directly.
    """

    def decorate(method: Method) -> Method:
        parameters = signature(method).parameters

        @functools.wraps(method)
        def wrapper(self: Any, X: Any, **columns: Any) -> Any:
            owner = f"{type(self).__name__}.{method.__name__}"
            refuse_unknown(owner, columns, parameters, OF_PREDICTIONS)
            if not is_lazy(X, *columns.values()):
                return method(self, X, **columns)
            check_is_fitted(self)
            is_dtype = isinstance(dtype, type | np.dtype)
            output_dtype = np.dtype(dtype if is_dtype else dtype(self))
            width = None if n_columns is None else n_columns(self)
            shape = () if width is None else (width,)
            return align(X=X, **columns).to_array(
                _call_method,
                method.__name__,
                without_rows(self),
                np.empty((0, *shape), output_dtype),
                dtype=output_dtype,
                sizes=known_sizes(X),
                n_columns=width,
            )

        return cast(Method, wrapper)

    return decorate


def without_rows(estimator: Any) -> Any:
    """Return a copy of an estimator to send to workers, without long or lazy fit results."""
    light = copy.copy(estimator)
    for name, value in vars(estimator).items():
        if is_lazy(value) or name in ("labels_", "history_"):
            light.__dict__.pop(name)
    return light


def _call_method(block: dict[str, Any], name: str, estimator: Any, nothing: Any) -> Any:
    """Call a method on a block; ``nothing`` is the result for a block without rows."""
    if not n_rows(block["X"]):
        return nothing
    return np.asarray(getattr(estimator, name)(**block), dtype=nothing.dtype)
