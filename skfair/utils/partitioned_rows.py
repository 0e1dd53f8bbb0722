"""The checked rows of a fit in partitions: X stays there, and arrays by row are in this process.

Data with one number per row (targets, groups, weights, scores, slopes) are ordinary arrays of the
process that fits. Only X stays in its partitions. A function runs on every partition, with its X
and its part of such arrays.

:func:`skfair.read.read_rows` makes a :class:`PartitionedRows` instead of a matrix X, after
:func:`check_part` for each partition. ``models/partitioned.py`` and
``cluster/kmeans/points_in_partitions.py`` call its methods: ``each`` returns a list of results by
partition, ``total`` their sum, ``joined`` one array with an entry per row. ``then``, ``subset`` and
``taken`` make other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import getitem
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array

from skfair._typing import IntArray
from skfair.utils.partition_tasks import add
from skfair.utils.partitions import Partitions
from skfair.utils.text import plural

# If X has at most 128 MB, all of it should come to the fitting process (`is_small`), because a call
# to partitions in other processes takes about 8 ms, as long as a pass over this much X here. If 64
# MB stay in the partitions, fits take 2.2 to 2.5 times as long as in memory, and otherwise 1.4 to
# 1.9 times. Fits of 160 MB, which stay there, take 1.7 to 1.9 times as long.
FEW_BYTES = 1 << 27


class PartitionedRows:
    """Rows of a matrix that lie in partitions elsewhere, or results of a function on each of them.

    It has the ``shape`` of the matrix. The methods that run a function take ``columns``, arrays of
    this process whose last axis has an entry per row (or None), and call
    ``function(X, *own, **shared)`` with X of the partition and its entries of the columns. Results
    are combined in the order of the partitions, so they are the same on any number of workers.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from skfair.utils.dask_collections import align
    >>> from skfair.utils.partitioned_rows import PartitionedRows
    >>> blocks = align(X=da.ones((6, 2), chunks=(4, 2))).then(lambda block: block["X"])
    >>> rows = PartitionedRows(blocks, [4, 2], np.dtype(float), 2)
    >>> rows.joined(lambda X, scores: X[:, 0] * scores, np.arange(6.0))
    array([0., 1., 2., 3., 4., 5.])
    >>> rows.total(lambda X, scores, factor: factor * scores @ X, np.arange(6.0), factor=2)
    array([30., 30.])
    """

    ndim = 2

    def __init__(
        self,
        parts: Partitions,  # X of each partition, or the result of ``then``
        sizes: Sequence[int],  # number of rows of each partition
        dtype: Any,  # dtype of X
        n_features: int,  # number of columns of X
    ) -> None:
        self._parts, self._sizes, self.dtype = parts, sizes, np.dtype(dtype)
        ends = np.cumsum([0, *sizes])
        self.starts: IntArray = ends[:-1]  # the first row of each partition
        self.shape = int(ends[-1]), n_features
        # Whether the fitting process should take all columns
        self.is_small = len(self) * n_features * self.dtype.itemsize <= FEW_BYTES

    def __len__(self) -> int:
        return self.shape[0]

    def each(
        self, function: Callable[..., Any], *columns: NDArray[Any] | None, **shared: Any
    ) -> list[Any]:
        return self._parts.collect(_call, function, shared, each=self._own(columns))

    def total(
        self,
        function: Callable[..., Any],
        *columns: NDArray[Any] | None,
        combine: Callable[[list[Any]], Any] = add,
        **shared: Any,
    ) -> Any:
        return combine(self.each(function, *columns, **shared))

    def joined(
        self, function: Callable[..., Any], *columns: NDArray[Any] | None, **shared: Any
    ) -> Any:
        return np.concatenate(self.each(function, *columns, **shared), axis=-1)

    def taken(self, rows: IntArray) -> Any:
        """Return some rows as a matrix of this process, in the order asked for."""
        place = self._partition_of(rows)
        order = np.argsort(place, kind="stable")
        parts = self._parts.collect(getitem, each=self._local(rows[order], place[order]))
        is_sparse = any(map(sparse.issparse, parts))
        joined = sparse.vstack(parts, format="csr") if is_sparse else np.concatenate(parts)
        return joined[np.argsort(order)]

    def subset(self, rows: IntArray) -> PartitionedRows:
        """Return some rows, in ascending order, which stay where they are."""
        own = self._local(rows, self._partition_of(rows))
        parts = self._parts.then(getitem, each=own).held()
        return PartitionedRows(parts, list(map(len, own)), self.dtype, self.shape[1])

    def then(
        self, function: Callable[..., Any], *columns: NDArray[Any] | None, **shared: Any
    ) -> PartitionedRows:
        """Return rows in which ``function(X, *own, **shared)`` replaces X.

        The function runs now, once, and its results stay in the places of the partitions.
        """
        parts = self._parts.then(_call, function, shared, each=self._own(columns)).held()
        return PartitionedRows(parts, self._sizes, self.dtype, self.shape[1])

    def _own(self, columns: tuple[NDArray[Any] | None, ...]) -> list[Any]:
        """Return the entries of columns that belong to each partition."""
        ends = pairwise([*self.starts.tolist(), self.shape[0]])
        return [
            tuple(None if c is None else np.ascontiguousarray(c[..., i:j]) for c in columns)
            for i, j in ends
        ]

    def _partition_of(self, rows: IntArray) -> IntArray:
        """Return the partition of each of some rows."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def _local(self, rows: IntArray, places: IntArray) -> list[IntArray]:
        """Return for each partition the rows in it, counted from its first row.

        ``places`` are the partitions of the rows, in ascending order.
        """
        cuts = np.searchsorted(places, np.arange(1, len(self.starts)))
        return np.split(rows - self.starts[places], cuts)


def check_part(X: Any, names: Any, check_params: dict[str, Any]) -> Any:
    """Return the checked numbers of X of a partition; an error names the column."""
    if check_params.get("skip_check_array"):
        return X
    try:
        return check_array(X, input_name="X", ensure_min_samples=0, **check_params)
    except ValueError as error:
        if "NaN" not in str(error) and "infinity" not in str(error):
            raise
        table = np.asarray(X, dtype=np.float64)
        bad = ~np.isfinite(table)
        j = int(np.flatnonzero(bad.any(axis=0))[0])
        name = names[j] if isinstance(names[j], int | np.integer) else repr(str(names[j]))
        what = "NaN" if np.isnan(table[:, j]).any() else "infinity"
        raise ValueError(
            f"column {name} of X has {what} in {plural(int(bad[:, j].sum()), 'row')} of "
            f"{table.shape[0]}. Impute or drop these rows."
        ) from error


def _call(X: Any, function: Callable[..., Any], shared: dict[str, Any], own: Any) -> Any:
    # Arrays from another process may be read-only or not aligned. Kernels would be compiled again
    # for such arrays.
    own = [
        column if column is None else np.require(column, requirements=["A", "W"]) for column in own
    ]
    return function(X, *own, **shared)
