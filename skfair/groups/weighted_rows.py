"""Few weighted rows that stand for the rows of Dask collections in a metric.

:meth:`skfair.groups.measured_rows.MeasuredRows.read` makes a :class:`LazyRows` if an argument of a
metric is a Dask collection. A metric depends on rows only through the weights of the distinct rows.
So each block is reduced to its distinct combinations of labels, groups and strata, the *kinds*,
with summed weights (:mod:`skfair.groups.distinct_rows`). The tables of the blocks add up, and the
metric reads the kinds of the total like any weighted rows. A metric chooses one of three summaries:
``kinds`` if it reads labels only, ``means`` if it needs the mean of a number by kind, ``binned`` if
it needs the distribution of scores.

Scores are numbers that hardly repeat. If there are at most 65536 different ones, each is kept.
Otherwise they are put into about this many *bins* (:mod:`skfair.groups.score_bins`), whose ends are
quantiles of the scores, computed with the same total weight for all kinds. The scores of a bin are
replaced by their mean. Shares of a group above the ends of bins, and above the threshold of a
metric, are exact. Hence every rate in between, and every difference of such rates, is exact up to
the *resolution*. This is the largest share of a group in a bin with several scores, about the
number of kinds divided by the number of bins. If a metric divides by the length of an interval, or
by the share of a class in it, this error is divided, too. Scores change at most by the width of
their bin.

For long arrays in memory see :mod:`skfair.groups.counted_arrays`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.groups import score_bins
from skfair.groups.attributes import ROLES, Columns, read_columns
from skfair.groups.distinct_rows import RowBlock, WeightedRows, number_kinds, with_kinds
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
from skfair.utils.validation import check_scores, one_dimensional

# A block with more kinds than this raises, because its labels must be numbers that hardly repeat.
MOST_KINDS = 1 << 16


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
        # Columns by the name of the argument. Their distinct values define the kinds, and columns
        # that are None are left out
        labels: Mapping[str, Any],
        # Columns that hold numbers, such as scores. They must not be None
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
            read_columns(None)  # raises the usual error
        aligned = align(
            **labels,
            **numbers,
            sensitive_features=sensitive_features,
            control_features=control_features,
            sample_weight=sample_weight,
        )
        rows = aligned.then(_read, tuple(labels), tuple(numbers))
        nothing = f"{next(iter([*labels, *numbers]))} is empty."
        # One pass finds the kinds. If there are numbers, later passes read them, so the blocks stay
        # in memory.
        self._blocks, self._kinds = number_kinds(
            rows, intersectional, nothing, are_revisited=bool(numbers)
        )
        self._is_weighted = sample_weight is not None

    def kinds(self) -> WeightedRows:
        """Return the kinds, for metrics that read labels only."""
        return self._kinds

    def means(
        self, name: str, function: Callable[..., FloatArray] | None = None, *tables: NDArray[Any]
    ) -> WeightedRows:
        """Return the kinds with one more column ``name``: a weighted mean over the rows of each.

        Without a function it is the mean of the numbers of this name. Otherwise it is the mean of
        ``function(numbers, *values)``, where ``numbers`` holds the columns of numbers of a block by
        name. Each table has an entry per kind, and the function gets the entry of each row's kind.
        """
        function = itemgetter(name) if function is None else function
        sums = add(self._blocks.collect(_sums, function, tables, self._kinds.weights.size))
        means = sums / np.where(self._kinds.weights > 0, self._kinds.weights, 1.0)
        return self._kinds._replace(columns={**self._kinds.columns, name: means})

    def binned(self, name: str, ends: Sequence[float] = ()) -> WeightedRows:
        """Return a weighted row for each kind and bin that has rows; its score is the bin's mean.

        ``name`` is the column of scores. At each score in ``ends`` a bin ends. A first pass over
        the blocks finds the ends of the bins, and a second one sums their rows.
        """
        n_bins = score_bins.N_BINS
        n_quantiles = max(score_bins.N_QUANTILES, 2 * n_bins // len(self._blocks))
        combine = functools.partial(joined_sketches, limit=n_bins)
        sketch = self._blocks.total(_sketch, name, n_bins, n_quantiles, combine=combine)
        edges = np.unique(np.append(sketch[0], np.asarray(ends, dtype=np.float64)))
        cells = self._blocks.total(cells_of, name, edges, combine=joined_cells)
        kind, bin_of_edges = np.divmod(cells.keys, edges.size)
        # Without weights each row has the weight 1, so the sums of weights and squares are the
        # number of rows. The cells only have this sum then.
        counts, weights, squares = cells.sums if self._is_weighted else cells.sums[[0, 0, 0]]
        has_rows = cells.low <= cells.high  # low is inf and high is -inf in a bin without rows
        bin_of_cell = (np.cumsum(has_rows) - 1)[bin_of_edges]  # bins without rows are left out
        low, high, moments = cells.low[has_rows], cells.high[has_rows], cells.moments[has_rows]
        mass = np.bincount(bin_of_cell, weights, low.size)
        scores = np.where(mass > 0, moments / np.where(mass > 0, mass, 1.0), low)
        scores = np.clip(scores, low, high)  # by rounding the mean may be outside of the bin
        few = self._kinds.of_rows(kind)
        return WeightedRows(
            {**few.columns, name: scores[bin_of_cell]},
            few.groups,
            counts.astype(np.int64),
            weights,
            squares,
            Bins(bin_of_cell, low, high),
        )


def _read(
    block: dict[str, Any], label_names: tuple[str, ...], number_names: tuple[str, ...]
) -> RowBlock:
    """Check the rows of a block, as :func:`align` made it, and number their kinds."""
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
    """Add up the weighted values of a function over the rows of each kind, see ``means``."""
    values = function(block.numbers, *(table[block.kind] for table in tables))
    values = values if block.weights is None else values * block.weights
    return bincount(block.kind, values, n_kinds)


def _sketch(block: RowBlock, name: str, n_bins: int, n_quantiles: int) -> Sketch:
    """Return a sketch of the scores of a block, in which all of its kinds have the same weight.

    So the bins are fine for small groups, too.
    """
    totals = np.bincount(block.kind, block.weights)
    weights = (1.0 / np.where(totals > 0, totals, 1.0))[block.kind]
    weights = weights if block.weights is None else weights * block.weights
    return sketch_of(block.numbers[name], weights, n_bins, n_quantiles)
