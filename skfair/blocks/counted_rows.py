"""Many rows of small integers in memory as few weighted ones: one pass, shared among threads.

A metric of labels depends on rows through how often each combination of labels and groups occurs.
Where these are arrays of integers, that is a table of counts, and no array with an entry for each
row is made. The combinations that occur are rows that the metric reads as it reads any others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import IntArray
from skfair.groups.encoding import encode_groups
from skfair.utils.threads import over_blocks

# Fewer rows are read in milliseconds, and need no kernel.
MANY = 1 << 20
# Most combinations of integers between the smallest and the largest of each column.
_MOST = 1 << 12


class _Counts(NamedTuple):
    """How often each combination of integers occurs; the first place is that of the smallest."""

    lowest: list[int]  # by column
    table: IntArray


def counted(given: Mapping[str, Any], labels: tuple[str, ...]) -> dict[str, Any] | None:
    """Return the arguments of a metric for few weighted rows; None if its own are not of this kind.

    ``labels`` are the arguments whose distinct values count, besides groups.
    """
    names = [*labels, "sensitive_features"]
    columns = [given[name] for name in names]
    others = (given.get("sample_weight"), given.get("control_features"))
    if any(one is not None for one in others) or not all(map(is_long, columns)):
        return None
    if len({column.size for column in columns}) > 1:
        return None
    found = _count(columns)
    if found is None:
        return None
    places = np.nonzero(found.table)
    counts = found.table[places]
    few = {
        name: np.array([i + lowest for i in place.tolist()], dtype=column.dtype)
        for name, place, lowest, column in zip(names, places, found.lowest, columns, strict=True)
    }
    groups = encode_groups(few["sensitive_features"])
    sizes = np.bincount(groups.codes[0], counts, groups.n_groups).astype(np.int64)
    weights = counts.astype(np.float64)
    return {**few, "sensitive_features": replace(groups, counts=sizes), "sample_weight": weights}


def is_long(column: Any) -> bool:
    """Whether a column is a long array of integers or truth values."""
    is_plain = isinstance(column, np.ndarray) and column.ndim == 1
    return is_plain and column.dtype.kind in "iub" and column.size >= MANY


def _count(columns: list[NDArray[Any]]) -> _Counts | None:
    """Count the combinations of all rows; None if they may be too many."""
    numbers = [one.view(np.uint8) if one.dtype.kind == "b" else one for one in columns]
    if _count_block([one[:1024] for one in numbers]) is None:
        return None
    parts = over_blocks(
        lambda start, stop: _count_block([one[start:stop] for one in numbers]), numbers[0].size
    )
    known = [part for part in parts if part is not None]
    firsts = np.array([part.lowest for part in known], dtype=object)
    stops = firsts + np.array([part.table.shape for part in known])
    lowest, sizes = firsts.min(axis=0), stops.max(axis=0) - firsts.min(axis=0)
    if len(known) < len(parts) or np.prod(sizes) > _MOST:
        return None
    table = np.zeros(sizes.tolist(), np.int64)
    for part, first, stop in zip(known, firsts - lowest, stops - lowest, strict=True):
        table[tuple(map(slice, first, stop))] += part.table
    return _Counts(lowest.tolist(), table)


def _count_block(columns: list[NDArray[Any]]) -> _Counts | None:
    """Count the combinations of some rows; None if they may be too many."""
    from skfair._kernels.counting import count_codes

    lowest, shape, size = [], [], 1
    for column in columns:
        first, last = int(column.min()), int(column.max())
        lowest.append(first)
        shape.append(last - first + 1)
        size *= shape[-1]
    if size > _MOST:
        return None
    codes = np.zeros(columns[0].size, np.int64)
    for column, first, width in zip(columns, lowest, shape, strict=True):
        codes *= width
        # Differences fit into the type of unsigned integers, and into int64.
        own = column if column.dtype.kind == "u" else column.astype(np.int64, copy=False)
        codes += (own - first if first else own).astype(np.int64, copy=False)
    table = np.zeros(size, np.int64)
    count_codes(codes, table)
    return _Counts(lowest, table.reshape(shape))
