"""Dask collections as arguments: blocks of the rows that belong together, and results per row.

Collections of the same rows are put together block by block where they are, and checked there.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skfair.utils.partitions import Partitions

Method = TypeVar("Method", bound=Callable[..., Any])


def is_lazy(*collections: Any) -> bool:
    """Whether one of some objects is a Dask collection (or a dict of columns that has one).

    Examples
    --------
    >>> from skfair.utils.dask_collections import is_lazy
    >>> is_lazy([1, 2], None)
    False
    """
    return any(
        hasattr(collection, "__dask_graph__")
        or (
            isinstance(collection, Mapping)
            and any(hasattr(v, "__dask_graph__") for v in collection.values())
        )
        for collection in collections
    )


def align(**columns: Any) -> Partitions:
    """Return the blocks of rows that belong together: dicts of what each collection has of them.

    Collections may be Dask arrays, frames and series with blocks of the same rows, of unequal and
    unknown lengths; arrays of known lengths are cut like the first one. What is not lazy is cut up
    too. Columns that are None are left out; a dict of columns is read as a dict. Rows are matched
    by position, so the parts of a block that have an index must have the same one.
    """
    from dask import delayed

    flat: dict[tuple[str, str | None], Any] = {}
    for name, values in columns.items():
        if isinstance(values, Mapping):
            flat |= {(name, key): column for key, column in values.items()}
        elif values is not None:
            flat[name, None] = values
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
    together = delayed(bundle, pure=False)
    return Partitions(
        [
            together(number, list(lists), blocks)
            for number, blocks in enumerate(zip(*lists.values(), strict=True))
        ]
    )


def _blocks_of(collection: Any, sizes: list[int] | None, name: str, first: str) -> list[Any]:
    """Return the blocks of rows of a collection as delayed objects."""
    if hasattr(collection, "rechunk"):
        own = known_sizes(collection)
        if own is not None and sizes is not None and own != sizes:
            if sum(own) != sum(sizes):
                raise ValueError(f"{name} has {sum(own)} rows but {first} has {sum(sizes)}.")
            collection = collection.rechunk({0: tuple(sizes)})
        if collection.ndim > 1:
            collection = collection.rechunk({1: -1})
        return list(collection.to_delayed().ravel())
    # Not optimised further: files that are read for a narrow column would be put together.
    return list(collection.simplify().to_delayed(optimize_graph=False))


def _cut(values: Any, sizes: list[int], name: str, first: str) -> list[Any]:
    """Cut rows that are here into blocks of given lengths."""
    from dask import delayed

    values = values if hasattr(values, "shape") else np.asarray(values)
    if n_rows(values) != sum(sizes):
        raise ValueError(f"{name} has {n_rows(values)} rows but {first} has {sum(sizes)}.")
    take = values.iloc if hasattr(values, "iloc") else values
    ends = np.cumsum([0, *sizes])
    return [delayed(take[i:j], traverse=False, pure=False) for i, j in pairwise(ends.tolist())]


def bundle(number: int, keys: list[tuple[str, str | None]], blocks: Sequence[Any]) -> Any:
    """Put the parts of one block together and check that they have the same rows."""
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
    """Raise if parts of one block have an index each, and these differ."""
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
    """Return no rows of a collection: an empty frame or array with its columns."""
    if hasattr(X, "columns"):
        return X._meta
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, got {X.ndim}.")
    return np.empty((0, int(X.shape[1])), X.dtype)


def known_sizes(collection: Any) -> list[int] | None:
    """Return the numbers of rows of the blocks, if they are known."""
    chunks = getattr(collection, "chunks", None)
    if chunks is None or np.isnan(chunks[0]).any():
        return None
    return [int(size) for size in chunks[0]]


def by_block(
    n_columns: Callable[[Any], int | None] | None = None, dtype: Any = np.float64
) -> Callable[[Method], Method]:
    """Decorate a method of a fitted estimator that makes one result per row of X.

    On a Dask collection it returns a Dask array, whose blocks are made where the rows are; all its
    other arguments are per row too. ``dtype`` is a dtype or a function of the estimator.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def wrapper(self: Any, X: Any, **columns: Any) -> Any:
            if not is_lazy(X, *columns.values()):
                return method(self, X, **columns)
            check_is_fitted(self)
            output_dtype = np.dtype(dtype if isinstance(dtype, type) else dtype(self))
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
    """Return a light copy of an estimator, without the results per row of its fit."""
    light = copy.copy(estimator)
    for name, value in vars(estimator).items():
        if is_lazy(value) or name in ("labels_", "history_"):
            light.__dict__.pop(name)
    return light


def _call_method(block: dict[str, Any], name: str, estimator: Any, nothing: Any) -> Any:
    if not n_rows(block["X"]):
        return nothing
    return np.asarray(getattr(estimator, name)(**block), dtype=nothing.dtype)
