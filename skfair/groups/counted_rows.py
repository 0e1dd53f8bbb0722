"""Many rows of small integers in memory as few weighted ones: one pass, shared among threads.

A metric of labels depends on rows through how often each combination of labels and groups occurs.
Where these are arrays of integers, that is a table of counts, and no array with an entry for each
row is made. The combinations that occur are rows that the metric reads as it reads any others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import IntArray
from skfair.groups.encoding import GroupEncoding, encode_groups
from skfair.utils.threads import over_blocks

# Fewer rows are read in milliseconds, and need no kernel.
MANY = 1 << 20
# Most combinations of integers between the smallest and the largest of each column.
_MOST = 1 << 12


class _Counts(NamedTuple):
    """How often each combination of integers occurs; the first place is that of the smallest."""

    lowest: list[int]  # by column
    table: IntArray


def counted(
    labels: Mapping[str, Any], groups: tuple[Any, Any, Any, bool]
) -> tuple[dict[str, Any], GroupEncoding, IntArray] | None:
    """Return the distinct rows: labels, groups, and how many there are of each.

    ``groups`` are sensitive and control features, weights, and whether attributes are crossed. None
    if the rows are not all integers in long arrays, or have strata or weights.
    """
    sensitive_features, control_features, sample_weight, _ = groups
    columns = [*labels.values(), sensitive_features]
    if control_features is not None or sample_weight is not None or not all(map(_is_long, columns)):
        return None
    if len({column.size for column in columns}) > 1:
        return None
    counted_table = _count(columns)
    if counted_table is None:
        return None
    places = np.nonzero(counted_table.table)
    counts = counted_table.table[places]
    few = [
        np.array([i + lowest for i in place.tolist()], dtype=column.dtype)
        for place, lowest, column in zip(places, counted_table.lowest, columns, strict=True)
    ]
    encoding = encode_groups(few.pop())
    sizes = np.bincount(encoding.codes[0], counts, encoding.n_groups).astype(np.int64)
    return dict(zip(labels, few, strict=True)), replace(encoding, counts=sizes), counts


def _is_long(column: Any) -> bool:
    """Whether a column is a long array of integers or truth values."""
    is_plain = isinstance(column, np.ndarray) and column.ndim == 1
    return is_plain and column.dtype.kind in "iub" and column.size >= MANY


def _count(columns: list[NDArray[Any]]) -> _Counts | None:
    """Count the combinations of all rows; None if they may be too many."""
    numbers = [column.view(np.uint8) if column.dtype.kind == "b" else column for column in columns]
    likely = _range([column[:1024] for column in numbers])
    if likely is None:
        return None
    parts = over_blocks(
        lambda start, stop: _count_block([column[start:stop] for column in numbers], likely),
        numbers[0].size,
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


def _range(columns: list[NDArray[Any]]) -> tuple[list[int], list[int]] | None:
    """Return the lowest number and the width of each column; None if these are too many places."""
    lowest = [int(column.min()) for column in columns]
    widths = [int(column.max()) - low + 1 for column, low in zip(columns, lowest, strict=True)]
    return (lowest, widths) if prod(widths) <= _MOST else None


def _count_block(
    columns: list[NDArray[Any]], likely: tuple[list[int], list[int]]
) -> _Counts | None:
    """Count the combinations of some rows; None if they may be too many.

    Other rows say where numbers are likely; if some lie outside, their range is found first.
    """
    counts = _counted_within(columns, *likely)
    if counts is None and (own := _range(columns)) is not None:
        counts = _counted_within(columns, *own)
    return counts


def _counted_within(
    columns: list[NDArray[Any]], lowest: list[int], widths: list[int]
) -> _Counts | None:
    """Count the combinations of some rows; None if a number is outside of the range."""
    from skfair._kernels.counting import count_triples

    numbers, firsts = [], []
    for column, first in zip(columns, lowest, strict=True):
        # Differences of the longest unsigned integers fit into int64, and they themselves may not.
        is_long = column.dtype == np.uint64
        numbers.append(
            np.require(column - np.uint64(first) if is_long else column, np.int64, ["C", "W"])
        )
        firsts.append(0 if is_long else first)
    strides = [prod(widths[k + 1 :]) for k in range(len(widths))]
    for _ in range(3 - len(columns)):  # the kernel takes three: the last one again, without effect
        numbers.append(numbers[-1])
    padded = np.zeros((3, 3), np.int64)
    padded[:, : len(columns)] = firsts, widths, strides
    padded[:2, len(columns) :] = padded[:2, len(columns) - 1 : len(columns)]
    table = np.zeros(prod(widths), np.int64)
    if not count_triples(*numbers, *padded, table):
        return None
    return _Counts(lowest, table.reshape(widths))
