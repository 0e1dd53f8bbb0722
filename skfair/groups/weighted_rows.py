"""The rows that a metric reads, whatever it was given: few weighted ones in the place of many.

A metric depends on rows only through the weights of the distinct ones. So each block of a Dask
collection is reduced to its distinct labels and groups, the *kinds*, with summed weights. These
tables add up, and their cells are rows that the same metric reads as it reads any others. So are
the counts of long arrays of small integers in memory, which one pass of threads finds.

Scores are numbers that hardly repeat. If there are at most 65536 different ones, each is kept.
Otherwise they are put into about this many *bins* (:mod:`skfair.groups.score_bins`), whose ends are
quantiles of the scores, taken so that all kinds have the same weight. The scores of a bin become
one, their mean. Shares of a group above the ends of bins, and above a threshold that a metric is
asked about, are exact. Hence every rate in between, and every difference of such rates, is exact up
to the *resolution*, the largest share of a group that lies in one bin of several scores: about the
number of kinds divided by the number of bins. A metric that divides by the length of an interval,
or by the share of a class in it, divides this error too. Scores move by no more than the width of
their bin.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.groups import score_bins
from skfair.groups.attributes import ROLES, Columns, read_columns
from skfair.groups.distinct_rows import RowBlock, WeightedRows, number_kinds, with_kinds
from skfair.groups.encoding import GroupEncoding, encode_groups
from skfair.groups.score_bins import (
    Bins,
    Sketch,
    bincount,
    cells_of,
    joined_cells,
    joined_sketches,
    sketch_of,
)
from skfair.utils.dask_collections import align
from skfair.utils.factorize import factorize
from skfair.utils.partition_tasks import add
from skfair.utils.text import plural
from skfair.utils.threads import added
from skfair.utils.validation import check_scores, one_dimensional

# More distinct labels and groups in a block than this are no labels.
MOST_KINDS = 1 << 16
# Arrays of labels with fewer rows are not counted: metrics of 20,000 rows took as long with and
# without, metrics of 100,000 rows take 1.6 times as long without.
MANY = 1 << 15
# Most combinations of integers between the smallest and the largest of each column.
_MOST_COMBINATIONS = 1 << 12


class LazyRows:
    """Aligned Dask collections, read and checked where their blocks are.

    Examples
    --------
    >>> import dask.array as da
    >>> from skfair.groups.weighted_rows import LazyRows
    >>> y_pred = da.from_array([0, 1, 1, 1], chunks=2)
    >>> sex = da.from_array(["f", "m", "m", "m"], chunks=2)
    >>> rows = LazyRows({"y_pred": y_pred}, {}, sex).kinds()
    >>> rows.columns["y_pred"].tolist(), rows.weights.tolist()
    ([0, 1], [1.0, 3.0])
    """

    def __init__(
        self,
        # Columns by the name of the argument: those whose distinct values count, and
        # those that are numbers. Labels may be None
        labels: Mapping[str, Any],
        numbers: Mapping[str, Any],
        sensitive_features: Any,
        control_features: Any = None,
        sample_weight: Any = None,
        intersectional: bool = True,
    ) -> None:
        labels = {name: values for name, values in labels.items() if values is not None}
        for name, values in numbers.items():
            if values is None:
                raise ValueError(f"{name} is None. Pass one value per row.")
        if sensitive_features is None:
            read_columns(None)  # raises
        aligned = align(
            **labels,
            **numbers,
            sensitive_features=sensitive_features,
            control_features=control_features,
            sample_weight=sample_weight,
        )
        rows = aligned.then(_read, tuple(labels), tuple(numbers))
        nothing = f"{next(iter([*labels, *numbers]))} is empty."
        # Kinds are read in one pass; numbers are visited again.
        self._blocks, self._kinds = number_kinds(
            rows, intersectional, nothing, are_revisited=bool(numbers)
        )
        self._is_weighted = sample_weight is not None

    def kinds(self) -> WeightedRows:
        return self._kinds

    def means(
        self, name: str, function: Callable[..., FloatArray] | None = None, *tables: NDArray[Any]
    ) -> WeightedRows:
        """Return the kinds with the mean over their rows of a number, or of a function of them.

        ``function(numbers, *values)`` gets the numbers of the rows and, of each table with one
        entry per kind, that of the kind of the row.
        """
        function = itemgetter(name) if function is None else function
        sums = add(self._blocks.collect(_sums, function, tables, self._kinds.weights.size))
        means = sums / np.where(self._kinds.weights > 0, self._kinds.weights, 1.0)
        return self._kinds._replace(columns={**self._kinds.columns, name: means})

    def binned(self, name: str, ends: Sequence[float] = ()) -> WeightedRows:
        """Return the distinct kinds and scores; many scores are put into bins.

        ``ends`` are scores at which a bin shall end.
        """
        n_bins = score_bins.N_BINS
        n_quantiles = max(score_bins.N_QUANTILES, 2 * n_bins // len(self._blocks))
        combine = functools.partial(joined_sketches, limit=n_bins)
        sketch = self._blocks.total(_sketch, name, n_bins, n_quantiles, combine=combine)
        edges = np.unique(np.append(sketch[0], np.asarray(ends, dtype=np.float64)))
        cells = self._blocks.total(cells_of, name, edges, combine=joined_cells)
        rows, number = np.divmod(cells.keys, edges.size)
        counts, weights, squares = cells.sums if self._is_weighted else cells.sums[[0, 0, 0]]
        has_rows = cells.low <= cells.high
        number = (np.cumsum(has_rows) - 1)[number]
        low, high, moments = cells.low[has_rows], cells.high[has_rows], cells.moments[has_rows]
        mass = np.bincount(number, weights, low.size)
        scores = np.where(mass > 0, moments / np.where(mass > 0, mass, 1.0), low)
        scores = np.clip(scores, low, high)  # the mean of equal numbers may be rounded
        few = self._kinds.of_rows(rows)
        return WeightedRows(
            {**few.columns, name: scores[number]},
            few.groups,
            counts.astype(np.int64),
            weights,
            squares,
            Bins(number, low, high),
        )


def counted_rows(
    labels: Mapping[str, Any], groups: Any
) -> tuple[dict[str, Any], GroupEncoding, IntArray] | None:
    """Return labels and groups of the distinct rows of long arrays, and how often they occur.

    None unless the arrays are long and hold few integers or texts.
    """
    columns = [*labels.values(), groups]
    if not all(isinstance(column, np.ndarray) and column.size >= MANY for column in columns):
        return None
    is_plain = all(column.ndim == 1 and column.dtype.kind in "iubSU" for column in columns)
    if not is_plain or len({column.size for column in columns}) > 1:
        return None
    numbers, levels = zip(*map(_as_numbers, columns), strict=True)
    lowest, table = _count(numbers)
    if table is None:
        return None
    places = np.nonzero(table)
    counts = table[places]
    few = []
    for column, texts, low, place in zip(columns, levels, lowest, places, strict=True):
        values = [i + low for i in place.tolist()]
        few.append(np.array(values if texts is None else [texts[i] for i in values], column.dtype))
    encoding = encode_groups(few.pop())
    sizes = np.bincount(encoding.codes[0], counts, encoding.n_groups).astype(np.int64)
    return dict(zip(labels, few, strict=True)), replace(encoding, counts=sizes), counts


def _as_numbers(column: NDArray[Any]) -> tuple[NDArray[Any], list[Any] | None]:
    """Return a column as integers and, if it holds texts, those of which these are the codes."""
    if column.dtype.kind in "SU":
        return factorize(column)
    return column.view(np.uint8) if column.dtype.kind == "b" else column, None


def _count(columns: Sequence[NDArray[Any]]) -> tuple[list[int], IntArray | None]:
    """Return the smallest number of each column, and a table of how often all combinations occur.

    The table begins with these numbers. There is none if the numbers have a large range.
    """
    ends = [(int(column.min()), int(column.max())) for column in columns]
    lowest, widths = [low for low, _ in ends], [high - low + 1 for low, high in ends]
    if prod(widths) > _MOST_COMBINATIONS:
        return lowest, None

    def of_block(start: int, stop: int) -> IntArray:
        place = np.zeros(stop - start, np.int64)
        for column, low, width in zip(columns, lowest, widths, strict=True):
            place *= width
            # Unsigned integers wrap around, differences do not.
            least: Any = column.dtype.type(low)
            place += np.subtract(column[start:stop], least, dtype=np.int64, casting="unsafe")
        return np.bincount(place, minlength=prod(widths))

    counts = added(of_block, columns[0].size, np.zeros(prod(widths), np.int64))
    return lowest, counts.reshape(widths)


def _read(
    block: dict[str, Any], label_names: tuple[str, ...], number_names: tuple[str, ...]
) -> RowBlock:
    """Check the rows of a block and number their kinds."""
    n_rows = len(block[next(iter(block))])
    if not n_rows:
        numbers = {name: np.empty(0) for name in number_names}
        return with_kinds(numbers, {}, block.get("sample_weight"), 0)
    numbers = {name: check_scores(block[name], name, n_rows) for name in number_names}
    columns: dict[str, Columns] = {
        name: read_columns(block[name], ROLES[name])
        if name in ROLES
        else [(None, one_dimensional(block[name], name))]
        for name in ("sensitive_features", *label_names, "control_features")
        if name in block
    }
    kept = with_kinds(numbers, columns, block.get("sample_weight"), n_rows)
    assert kept.kinds is not None
    n_kinds = len(kept.kinds.table.counts)
    if n_kinds > MOST_KINDS:
        sizes = ", ".join(
            f"{name or argument} {len(factorize(values).levels)}"
            for argument, own in columns.items()
            for name, values in own
        )
        raise ValueError(
            f"{plural(n_kinds, 'combination')} of distinct labels and groups (at most "
            f"{MOST_KINDS} are read) in {n_rows} rows; distinct values: {sizes}. Pass labels, not "
            "numbers."
        )
    return kept


def _sums(
    block: RowBlock,
    function: Callable[..., FloatArray],
    tables: tuple[NDArray[Any], ...],
    n_kinds: int,
) -> FloatArray:
    """Add up a value of the rows of each kind."""
    values = function(block.numbers, *(table[block.kind] for table in tables))
    values = values if block.weights is None else values * block.weights
    return bincount(block.kind, values, n_kinds)


def _sketch(block: RowBlock, name: str, n_bins: int, n_quantiles: int) -> Sketch:
    """Return a sketch in which all kinds weigh the same, so that bins are fine for small groups."""
    totals = np.bincount(block.kind, block.weights)
    weights = (1.0 / np.where(totals > 0, totals, 1.0))[block.kind]
    weights = weights if block.weights is None else weights * block.weights
    return sketch_of(block.numbers[name], weights, n_bins, n_quantiles)
