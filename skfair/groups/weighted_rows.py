"""Rows that live elsewhere as few weighted ones: what a metric needs of Dask collections.

A metric depends on rows only through the weights of the distinct ones. So each block is reduced to
its distinct labels and groups, the *kinds*, with summed weights; these tables, put one under the
other, are rows that the same metric reads as it reads any others.

Scores are numbers that hardly repeat. If there are at most 65536 different ones, each is kept.
Otherwise they are put into about so many *bins* (:mod:`skfair.groups.score_bins`), whose ends are
quantiles of the scores, taken so that all kinds count alike; the scores of a bin become one, their
mean. Shares of a group above the ends of bins, and above a threshold that a metric is asked about,
are exact. Hence every rate in between, and what is a difference of such rates, is exact up to the
*resolution*, the largest share of a group that lies in one bin of several scores: about the number
of kinds divided by that of the bins. A metric that divides by the length of an interval, or by the
share of a class in it, divides this error too. Scores move by no more than the width of their bin.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from numbers import Real
from typing import Any, NamedTuple, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntArray
from skfair.blocks.partitions import align, is_lazy
from skfair.groups import score_bins
from skfair.groups.attributes import read_columns
from skfair.groups.counted_rows import MANY, counted
from skfair.groups.encoding import GroupEncoding
from skfair.groups.kinds import Kinds, distinct_rows, encode_kinds, join_columns
from skfair.groups.probabilities import GroupProbabilities
from skfair.groups.score_bins import (
    Bins,
    Cells,
    Sketch,
    bincount,
    cells_of,
    joined_cells,
    joined_sketches,
    sketch_of,
)
from skfair.groups.spread_rows import spread_rows
from skfair.utils.factorize import factorize
from skfair.utils.text import plural
from skfair.utils.validation import check_labels, check_scores, check_weights, one_dimensional

Function = TypeVar("Function", bound=Callable[..., Any])

# More distinct labels and groups in a block than this are no labels.
MOST_KINDS = 1 << 16

# Arguments of metrics with one value per row, besides groups and weights.
_ROW_ARGUMENTS = ("y_true", "y_pred", "y_score", "labels", "control_features")

# Names of the columns of control features begin with this among the labels.
_CONTROL = "control_features: "


class WeightedRows(NamedTuple):
    """Few rows with weights that stand for many."""

    columns: dict[str, Any]  # labels and scores by the name of the argument
    # Groups of the weighted rows; its counts are those of the rows behind them
    groups: GroupEncoding
    # (n_rows,): number of the rows behind each, sum of their weights, and of the squares of
    # these
    counts: IntArray
    weights: FloatArray
    squares: FloatArray
    bins: Bins | None = None  # the bins of the scores, if they were put into bins

    @property
    def control_features(self) -> dict[str, Any] | None:
        """The columns of control features; None if none were given."""
        marked = [name for name in self.columns if name.startswith(_CONTROL)]
        return {name.removeprefix(_CONTROL): self.columns[name] for name in marked} or None

    def resolution(self, codes: IntArray | None = None) -> float:
        """Return the largest share of a group (or of a code) in one bin of several scores."""
        if self.bins is None:
            return 0.0
        number, n_bins = self.bins.number, self.bins.low.size
        is_wide = self.bins.low < self.bins.high
        largest = 0.0
        for of_rows in self.groups.codes if codes is None else codes[None]:
            joint, kept = of_rows * n_bins + number, np.flatnonzero(is_wide[number])
            cells = factorize(joint[kept])
            inside = np.bincount(cells.codes, self.weights[kept])
            totals = np.bincount(of_rows, self.weights)[np.array(cells.levels, int) // n_bins]
            shares = inside / np.where(totals > 0, totals, 1.0)
            largest = max(largest, float(shares.max(initial=0.0)))
        return largest


class _Block(NamedTuple):
    """What is kept of the rows of a block."""

    kind: NDArray[Any]  # (n_rows,)
    numbers: dict[str, FloatArray]
    weights: FloatArray | None
    labels: dict[str, Any]  # of the kinds
    kinds: Kinds
    squares: FloatArray  # sums over the rows of a kind


class LazyRows:
    """Aligned Dask collections, read and checked where their blocks are.

    Examples
    --------
    >>> import dask.array as da
    >>> from skfair.groups.weighted_rows import LazyRows
    >>> y_pred = da.from_array([0, 1, 1, 1], chunks=2)
    >>> sex = da.from_array(["f", "m", "m", "m"], chunks=2)
    >>> rows = LazyRows({"y_pred": y_pred}, sensitive_features=sex).kinds()
    >>> rows.columns["y_pred"].tolist(), rows.weights.tolist()
    ([0, 1, 1], [1.0, 1.0, 2.0])
    """

    def __init__(
        self,
        # Columns by the name of the argument: those whose distinct values count, and
        # those that are numbers. Labels may be None
        labels: Mapping[str, Any] | None = None,
        numbers: Mapping[str, Any] | None = None,
        *,
        # Groups, strata and weights of the rows; columns of control features are read as
        # labels
        sensitive_features: ColumnsLike | None,
        control_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        intersectional: bool = True,  # whether attributes are crossed
        # Whether groups must be given; without them all rows are one group
        needs_groups: bool = True,
    ) -> None:
        labels = {
            name: labels_of_rows
            for name, labels_of_rows in (labels or {}).items()
            if labels_of_rows is not None
        }
        labels |= _control_columns(control_features)
        numbers = dict(numbers or {})
        for name, values in numbers.items():
            if values is None:
                raise ValueError(f"{name} is None. Pass one value per row.")
        if sensitive_features is None and needs_groups:
            read_columns(None)  # raises
        rows = align(
            **labels,
            **numbers,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
        )
        blocks = rows.then(_read, tuple(labels), tuple(numbers))
        # Kinds are read in one pass; numbers are visited again.
        self._blocks = blocks.keep() if numbers else blocks
        facts = self._blocks.collect(_facts)
        counts = np.concatenate([fact.kinds.counts for fact in facts])
        weights = np.concatenate([fact.kinds.weights for fact in facts])
        if not counts.size:
            raise ValueError(f"{next(iter([*labels, *numbers]))} is empty.")
        if not weights.any():
            raise ValueError("sample_weight is zero for every row.")
        ends = np.cumsum([0, *(fact.kinds.counts.size for fact in facts)]).tolist()
        self._slices = [slice(i, j) for i, j in pairwise(ends)]
        self._is_weighted = any(fact.weights is not None for fact in facts)
        self._kinds = WeightedRows(
            {name: join_columns([fact.labels[name] for fact in facts]) for name in labels},
            encode_kinds([fact.kinds for fact in facts], counts, intersectional),
            counts,
            weights,
            np.concatenate([fact.squares for fact in facts]),
        )

    def kinds(self) -> WeightedRows:
        """Return the kinds of all blocks."""
        return self._kinds

    def means(
        self,
        name: str,
        function: Callable[..., FloatArray] | None = None,
        *tables: NDArray[Any],
    ) -> WeightedRows:
        """Return the kinds with the mean over their rows of a number, or of a function of them.

        ``function(numbers, *values)`` gets the numbers of the rows and, of each table with one
        entry per kind, that of the kind of the row.
        """
        function = functools.partial(_number, name) if function is None else function
        own = [tuple(table[part] for table in tables) for part in self._slices]
        sums = np.concatenate(self._blocks.collect(_sums, function, each=own))
        means = sums / np.where(self._kinds.weights > 0, self._kinds.weights, 1.0)
        return self._kinds._replace(columns={**self._kinds.columns, name: means})

    def binned(self, name: str, ends: Sequence[float] = ()) -> WeightedRows:
        """Return the distinct kinds and scores; many scores are put into bins.

        ``ends`` are scores at which a bin shall end.
        """
        kinds = self._kinds
        codes = [("", of_rows) for of_rows in kinds.groups.codes]
        codes += [("", factorize(values).codes) for values in kinds.columns.values()]
        kind, first, _, _ = distinct_rows(codes, None, kinds.counts.size)
        n_bins = score_bins.N_BINS
        n_quantiles = max(score_bins.N_QUANTILES, 2 * n_bins // len(self._blocks))
        combine = functools.partial(joined_sketches, limit=n_bins)
        sketch = self._blocks.total(_sketch, name, n_bins, n_quantiles, combine=combine)
        edges = np.unique(np.append(sketch.values, np.asarray(ends, dtype=np.float64)))
        own = [kind[part] for part in self._slices]
        cells = self._blocks.total(_cells, name, edges, each=own, combine=joined_cells)
        of_cell, number = np.divmod(cells.keys, edges.size)
        rows = first[of_cell]
        counts, weights, squares = cells.sums if self._is_weighted else cells.sums[[0, 0, 0]]
        has_rows = cells.low <= cells.high
        number = (np.cumsum(has_rows) - 1)[number]
        low, high, moments = cells.low[has_rows], cells.high[has_rows], cells.moments[has_rows]
        mass = np.bincount(number, weights, low.size)
        scores = np.where(mass > 0, moments / np.where(mass > 0, mass, 1.0), low)
        scores = np.clip(scores, low, high)  # the mean of equal numbers may be rounded
        columns = {column: _safe_indexing(values, rows) for column, values in kinds.columns.items()}
        return WeightedRows(
            {**columns, name: scores[number]},
            replace(kinds.groups, codes=np.ascontiguousarray(kinds.groups.codes[:, rows])),
            counts.astype(np.int64),
            weights,
            squares,
            Bins(number, low, high),
        )


def accepts_dask(
    *labels: str, mean_of: str | None = None, binned: str | None = None
) -> Callable[[Function], Function]:
    """Decorate a metric: Dask collections become few weighted rows, and the metric is that of them.

    So do long arrays of integers in memory, of metrics that read labels only.

    ``labels`` are the arguments whose distinct values count; ``mean_of`` numbers of which it needs
    the mean over groups and labels; ``binned`` scores. Other arguments are not looked at.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            number = mean_of or binned
            values = (*args, *kwargs.values())
            if isinstance(kwargs.get("sensitive_features"), GroupProbabilities):
                call = signature.bind(*args, **kwargs)
                call.arguments |= _spread(call.arguments)
                return function(*call.args, **call.kwargs)
            is_in_memory = not is_lazy(*values)
            may_be_long = number is None and any(
                isinstance(array, np.ndarray) and array.size >= MANY for array in values
            )
            if is_in_memory and not may_be_long:
                return function(*args, **kwargs)
            call = signature.bind(*args, **kwargs)
            call.apply_defaults()
            arguments = call.arguments
            if is_in_memory:
                own = {name: arguments[name] for name in labels}
                names = ("sensitive_features", "control_features", "sample_weight")
                few = counted(own, (*map(arguments.get, names), True))
                if few is not None:
                    columns, encoding, counts = few
                    arguments |= columns | {"sensitive_features": encoding}
                    arguments["sample_weight"] = counts.astype(np.float64)
                return function(*call.args, **call.kwargs)
            rows = LazyRows(
                {name: arguments[name] for name in labels},
                {} if number is None else {number: arguments[number]},
                sensitive_features=arguments["sensitive_features"],
                control_features=arguments.get("control_features"),
                sample_weight=arguments["sample_weight"],
                intersectional=arguments.get("intersectional", True),
            )
            if mean_of is not None:
                few_rows = rows.means(mean_of)
            elif binned is not None:
                asked = [
                    threshold
                    for threshold in (arguments.get("threshold"),)
                    if _is_number(threshold)
                ]
                few_rows = rows.binned(binned, asked)
            else:
                few_rows = rows.kinds()
            few = {**few_rows.columns, "control_features": few_rows.control_features}
            arguments |= {name: few.get(name) for name in _ROW_ARGUMENTS if name in arguments}
            arguments |= {"sensitive_features": few_rows.groups, "sample_weight": few_rows.weights}
            return function(*call.args, **call.kwargs)

        return cast(Function, wrapper)

    return decorate


def _spread(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a metric for rows whose groups are known by probability."""
    names = [name for name in ("y_true", "y_pred", "y_score", "labels") if name in arguments]
    options = [arguments.get(name) for name in ("control_features", "sample_weight")]
    groups = (arguments["sensitive_features"], *options, True)
    columns, (encoding, control, weights, _) = spread_rows(
        [arguments[name] for name in names], groups
    )
    spread = {**dict(zip(names, columns, strict=True)), "sensitive_features": encoding}
    others = {"control_features": control, "sample_weight": weights}
    return spread | {name: values for name, values in others.items() if values is not None}


def _control_columns(control_features: Any) -> dict[str, Any]:
    """Split control features, in memory or in blocks, into columns that are read as labels."""
    if control_features is None:
        return {}
    if not is_lazy(control_features):
        read = enumerate(read_columns(control_features))
        columns = [(str(j) if name is None else name, column) for j, (name, column) in read]
    elif isinstance(control_features, Mapping):
        columns = [(str(name), column) for name, column in control_features.items()]
    elif control_features.ndim < 2:
        columns = [("", control_features)]
    elif hasattr(control_features, "columns"):
        columns = [(str(name), control_features[name]) for name in control_features.columns]
    else:
        columns = [(str(j), control_features[:, j]) for j in range(control_features.shape[1])]
    return {f"{_CONTROL}{name}": column for name, column in columns}


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, Real) and not isinstance(value, bool)


def _read(
    block: dict[str, Any], label_names: tuple[str, ...], number_names: tuple[str, ...]
) -> _Block:
    """Check the rows of a block and number their kinds."""
    n_rows = len(block[next(iter(block))])
    sensitive = block.get("sensitive_features")
    weights = block.get("sample_weight")
    if not n_rows:
        weights = None if weights is None else np.empty(0)
        no_rows = np.empty(0, np.int64)
        nothing = Kinds([], None, no_rows, np.empty(0), no_rows)
        numbers = {name: np.empty(0) for name in number_names}
        labels = {name: np.empty(0) for name in label_names}
        return _Block(np.empty(0, np.uint8), numbers, weights, labels, nothing, np.empty(0))
    weights = check_weights(weights, n_rows, are_all=False)
    numbers = {name: check_scores(block[name], name, n_rows) for name in number_names}
    labels = {name: one_dimensional(block[name], name) for name in label_names}
    codes = [(name, check_labels(values, name, n_rows).codes) for name, values in labels.items()]
    attributes = [] if sensitive is None else read_columns(sensitive)
    columns = [
        ("sensitive_feature" if name is None else name, values) for name, values in attributes
    ]
    kind, first, counts, sums = distinct_rows([*columns, *codes], weights, n_rows)
    if first.size > MOST_KINDS:
        named = [*columns, *labels.items()]
        sizes = ", ".join(f"{name} {len(factorize(values).levels)}" for name, values in named)
        raise ValueError(
            f"{plural(first.size, 'combination')} of distinct labels and groups (at most "
            f"{MOST_KINDS} are read) in {n_rows} rows; distinct values: {sizes}. Pass labels, not "
            "numbers."
        )
    return _Block(
        kind.astype(np.min_scalar_type(first.size - 1)),
        numbers,
        weights,
        {name: values[first] for name, values in labels.items()},
        Kinds([(name, values[first]) for name, values in attributes], None, counts, sums, first),
        sums if weights is None else bincount(kind, weights**2, first.size),
    )


def _facts(block: _Block) -> _Block:
    """Return what the client learns of a block: nothing that has an entry for each row."""
    return block._replace(
        kind=block.kind[:0], numbers={}, weights=None if block.weights is None else np.empty(0)
    )


def _number(name: str, numbers: dict[str, FloatArray]) -> FloatArray:
    return numbers[name]


def _sums(
    block: _Block, function: Callable[..., FloatArray], tables: tuple[NDArray[Any], ...]
) -> FloatArray:
    """Add up a value of the rows of each kind."""
    values = function(block.numbers, *(table[block.kind] for table in tables))
    values = values if block.weights is None else values * block.weights
    return bincount(block.kind, values, block.squares.size)


def _sketch(block: _Block, name: str, n_bins: int, n_quantiles: int) -> Sketch:
    """Return a sketch in which all kinds count alike, so that bins are fine for small groups."""
    totals = block.kinds.weights
    weights = (1.0 / np.where(totals > 0, totals, 1.0))[block.kind]
    weights = weights if block.weights is None else weights * block.weights
    return sketch_of(block.numbers[name], weights, n_bins, n_quantiles)


def _cells(block: _Block, name: str, ends: FloatArray, number_of_kind: IntArray) -> Cells:
    return cells_of(block.numbers[name], number_of_kind[block.kind], block.weights, ends)
