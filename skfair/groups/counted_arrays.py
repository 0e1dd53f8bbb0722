"""Long arrays of few labels in memory: their distinct rows, and the number of each.

:meth:`skfair.groups.measured_rows.MeasuredRows.read` tries this for metrics of labels without
weights, units and strata. A metric depends only on how often each combination of labels and group
occurs. If there are few combinations, one pass of threads counts them in a table, and the metric
reads a row with a weight for each combination. :mod:`skfair.groups.weighted_rows` does the same for
Dask collections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import IntArray
from skfair.groups.encoding import GroupEncoding, encode_groups
from skfair.utils.factorize import factorize
from skfair.utils.threads import added

# Arrays with fewer rows are not counted. Metrics of 20,000 rows take the same time with and without
# counting, and metrics of 100,000 rows take 1.6 times as long without.
MANY = 1 << 15
# Largest size of the table: the product over the columns of (largest - smallest + 1).
_MOST_COMBINATIONS = 1 << 12


def counted_rows(
    labels: Mapping[str, Any], groups: Any
) -> tuple[dict[str, Any], GroupEncoding, IntArray] | None:
    """Return the labels and the groups of the distinct rows, and how often each row occurs.

    ``labels`` are columns by the name of the argument, ``groups`` the sensitive features. The
    result is None, and the metric reads all rows, unless every column is a numpy array of the same
    length, at least MANY, with few different integers, booleans or fixed-width texts. Wrong lengths
    are left to the metric, which raises the usual error.
    """
    columns = [*labels.values(), groups]
    if not all(isinstance(column, np.ndarray) and column.size >= MANY for column in columns):
        return None
    is_plain = all(column.ndim == 1 and column.dtype.kind in "iubSU" for column in columns)
    if not is_plain or len({column.size for column in columns}) > 1:
        return None
    numbers, texts = zip(*map(_as_numbers, columns), strict=True)
    lowest, table = _count(numbers)
    if table is None:
        return None
    places = np.nonzero(table)  # numbers minus the lowest one, for each column
    counts = table[places]
    few = []
    for column, own_texts, low, place in zip(columns, texts, lowest, places, strict=True):
        values = [i + low for i in place.tolist()]
        if own_texts is not None:
            values = [own_texts[i] for i in values]
        few.append(np.array(values, column.dtype))
    encoding = encode_groups(few.pop())
    sizes = np.bincount(encoding.codes[0], counts, encoding.n_groups).astype(np.int64)
    return dict(zip(labels, few, strict=True)), replace(encoding, counts=sizes), counts


def _as_numbers(column: NDArray[Any]) -> tuple[NDArray[Any], list[Any] | None]:
    """Return a column as integers, and the texts that they number (None for other columns)."""
    if column.dtype.kind in "SU":
        return factorize(column)
    return column.view(np.uint8) if column.dtype.kind == "b" else column, None


def _count(columns: Sequence[NDArray[Any]]) -> tuple[list[int], IntArray | None]:
    """Count in a table, with one axis per column, how often each combination of numbers occurs.

    Returns the smallest number of each column, which has the place 0 on its axis, and the table, or
    None if the table would be larger than _MOST_COMBINATIONS.
    """
    ends = [(int(column.min()), int(column.max())) for column in columns]
    lowest, widths = [low for low, _ in ends], [high - low + 1 for low, high in ends]
    if prod(widths) > _MOST_COMBINATIONS:
        return lowest, None

    def of_block(start: int, stop: int) -> IntArray:
        place = np.zeros(stop - start, np.int64)
        for column, low, width in zip(columns, lowest, widths, strict=True):
            place *= width
            # The result is int64, because a difference may not fit into the type of the column.
            least: Any = column.dtype.type(low)
            place += np.subtract(column[start:stop], least, dtype=np.int64, casting="unsafe")
        return np.bincount(place, minlength=prod(widths))

    counts = added(of_block, columns[0].size, np.zeros(prod(widths), np.int64))
    return lowest, counts.reshape(widths)
