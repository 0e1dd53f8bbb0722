"""Many rows of small integers in memory as few weighted ones: one pass, shared among threads.

A metric of labels depends on rows through how often each combination of labels and groups occurs.
Where these are arrays of integers, that is a table of counts, and no array with an entry for each
row is made. The combinations that occur are rows that the metric reads as it reads any others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import IntArray
from skfair.groups.encoding import GroupEncoding, encode_groups
from skfair.groups.probabilities import GroupArguments
from skfair.utils.threads import over_blocks

# Fewer rows are read in milliseconds, and need no kernel.
MANY = 1 << 20
# Most combinations of integers between the smallest and the largest of each column.
_MOST = 1 << 12


def counted(
    labels: Mapping[str, Any], groups: GroupArguments
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
    numbers = [column.view(np.uint8) if column.dtype.kind == "b" else column for column in columns]
    table = None
    for step in (1024, 1):  # every 1024th row says which numbers are likely
        lowest = [int(column[::step].min()) for column in numbers]
        ends = [int(column[::step].max()) for column in numbers]
        widths = [end - low + 1 for end, low in zip(ends, lowest, strict=True)]
        if prod(widths) > _MOST:
            return None
        if (table := _count(numbers, lowest, widths)) is not None:
            break
    assert table is not None
    places = np.nonzero(table)
    counts = table[places]
    few = [
        np.array([i + low for i in place.tolist()], dtype=column.dtype)
        for place, low, column in zip(places, lowest, columns, strict=True)
    ]
    encoding = encode_groups(few.pop())
    sizes = np.bincount(encoding.codes[0], counts, encoding.n_groups).astype(np.int64)
    return dict(zip(labels, few, strict=True)), replace(encoding, counts=sizes), counts


def _is_long(column: Any) -> bool:
    """Whether a column is a long array of integers or truth values."""
    is_plain = isinstance(column, np.ndarray) and column.ndim == 1
    return is_plain and column.dtype.kind in "iub" and column.size >= MANY


def _count(columns: list[NDArray[Any]], lowest: list[int], widths: list[int]) -> IntArray | None:
    """Count the combinations of all rows; None if a number is outside of the range."""
    from skfair._kernels.counting import count_triples

    strides = [prod(widths[k + 1 :]) for k in range(len(widths))]
    # Differences of the longest unsigned integers fit into int64, and they themselves may not.
    firsts = [0 if c.dtype == np.uint64 else low for c, low in zip(columns, lowest, strict=True)]
    n_more = 3 - len(columns)  # the kernel takes three: the last one again, without effect
    ranges = np.array([numbers + numbers[-1:] * n_more for numbers in (firsts, widths)])
    steps = np.array(strides + [0] * n_more)

    def of_block(start: int, stop: int) -> IntArray | None:
        numbers = []
        for column, low in zip(columns, lowest, strict=True):
            own = column[start:stop]
            own = own - np.uint64(low) if column.dtype == np.uint64 else own
            numbers.append(np.require(own, np.int64, ["C", "W"]))
        table = np.zeros(prod(widths), np.int64)
        is_inside = count_triples(*numbers, *numbers[-1:] * n_more, *ranges, steps, table)
        return table if is_inside else None

    tables = over_blocks(of_block, columns[0].size)
    known = [table for table in tables if table is not None]
    return np.sum(known, axis=0).reshape(widths) if len(known) == len(tables) else None
