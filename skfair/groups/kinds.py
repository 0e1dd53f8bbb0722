"""Rows in blocks, and the table of weighted rows that stands for all of them.

Rows of the same groups, labels and stratum are of one *kind*. Constraints, classes, weights and
metrics of labels depend on the kind only, so a block keeps numbers (X, scores) and the kind of each
row; all that is known beforehand (groups, empty cells, rates as functions of cells) is read from
the kinds of all blocks, put together. Their table is as long as there are kinds, not rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, column_or_1d

from skfair._typing import FloatArray, IntArray
from skfair.groups.attributes import ROLES, Columns, check_missing, read_columns
from skfair.groups.encoding import GroupEncoding, encode_groups, one_group
from skfair.groups.levels import number_tuples
from skfair.groups.named_columns import keep_columns, take_columns
from skfair.groups.score_bins import Bins, bincount
from skfair.groups.strata import Strata, read_strata
from skfair.groups.table import GroupTable, total
from skfair.utils.factorize import factorize, first_rows
from skfair.utils.partitioned_rows import check_part
from skfair.utils.partitions import Partitions
from skfair.utils.text import listed
from skfair.utils.validation import check_labels, check_weights, weight_range

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

    def of_rows(self, rows: IntArray) -> WeightedRows:
        """Return the labels and groups of some of the rows; weights stay as they are."""
        columns = {name: _safe_indexing(column, rows) for name, column in self.columns.items()}
        codes = np.ascontiguousarray(self.groups.codes[:, rows])
        return self._replace(columns=columns, groups=replace(self.groups, codes=codes))

    def resolution(self) -> float:
        """Return the largest share of a group in one bin of several scores."""
        if self.bins is None:
            return 0.0
        number, n_bins = self.bins.number, self.bins.low.size
        is_wide = self.bins.low < self.bins.high
        largest = 0.0
        for of_rows in self.groups.codes:
            joint, kept = of_rows * n_bins + number, np.flatnonzero(is_wide[number])
            cells = factorize(joint[kept])
            inside = np.bincount(cells.codes, self.weights[kept])
            totals = np.bincount(of_rows, self.weights)[np.array(cells.levels, int) // n_bins]
            shares = inside / np.where(totals > 0, totals, 1.0)
            largest = max(largest, float(shares.max(initial=0.0)))
        return largest


class Kinds(NamedTuple):
    """What is told of a block: its table of kinds, and nothing of the length of the rows."""

    # Counts of shape (n_kinds, 3): rows, weights and squared weights. Attributes are columns of
    # groups, labels and control features, named "argument: column"
    table: GroupTable
    types: list[Any]  # the dtype of each attribute
    first: IntArray  # (n_kinds,): first row
    weight_range: tuple[float, float]  # smallest positive and largest weight of a row
    like: Any  # X of the block, without rows


class RowBlock(NamedTuple):
    """What is kept of the rows of a block."""

    X: Any  # the columns that the model uses, or numbers by the name of the argument
    # (n_rows,): number of the kind of each row, in the smallest integers that hold it
    kind: NDArray[Any]
    weights: FloatArray | None  # (n_rows,): sample weights
    start: int = 0  # number of the first row, counted over all blocks
    kinds: Kinds | None = None  # until these are numbered over all blocks

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.kind.size)

    def row_weights(self) -> FloatArray:
        """Return the weights of the rows, ones if none were given."""
        return np.ones(self.n_rows) if self.weights is None else self.weights


def with_kinds(
    X: Any, columns: dict[str, Columns], weights: Any, n_rows: int, like: Any = None
) -> RowBlock:
    """Return the checked rows of a block: the kind of each, and the table of kinds."""
    if not n_rows:
        none, no_weights = np.empty(0, np.int64), None if weights is None else np.empty(0)
        table = GroupTable({}, none, np.zeros((0, 3)))
        return RowBlock(X, none, no_weights, 0, Kinds(table, [], none, (np.inf, 0.0), like))
    weights = check_weights(weights, n_rows, are_all=False)
    levels: dict[str, list[Any]] = {}
    codes, types = [], []
    for argument, own in columns.items():
        noun = argument.removesuffix("s") if argument in ROLES else argument
        for j, (name, values) in enumerate(own):
            if argument in ROLES:
                factorized = factorize(values)
                check_missing(factorized, name or noun, ROLES[argument])
            else:
                factorized = check_labels(values, argument)
            number = noun if len(own) == 1 else f"{noun}_{j}"
            levels[f"{argument}: {name or number}"] = factorized.levels
            codes.append(factorized.codes)
            types.append(values.dtype)
    if not codes:
        levels, codes, types = {"all: all": [0]}, [np.zeros(n_rows, np.int64)], [np.dtype(int)]
    kind, kinds_of_levels = number_tuples(codes, np.array([len(own) for own in levels.values()]))
    n_kinds = len(kinds_of_levels)
    sums = [bincount(kind, None, n_kinds)] * 3
    if weights is not None:
        sums[1:] = bincount(kind, weights, n_kinds), bincount(kind, weights**2, n_kinds)
    table = GroupTable(levels, kinds_of_levels, np.stack(sums, axis=1))
    kinds = Kinds(table, types, first_rows(kind), weight_range(weights), like)
    return RowBlock(X, kind.astype(np.min_scalar_type(n_kinds - 1)), weights, 0, kinds)


def number_kinds(
    read: Partitions, intersectional: bool, nothing: str, *, are_revisited: bool = True
) -> tuple[Partitions, WeightedRows, IntArray, list[Kinds]]:
    """Add up the tables of all blocks, and number the kinds of the rows as in their total.

    Returns the blocks, the kinds as rows, the first row of each kind (counted over all blocks),
    and what is told of each block. ``nothing`` is the error if there are no rows.
    """
    blocks = read.hold() if are_revisited else read
    parts: list[Kinds] = blocks.collect(attrgetter("kinds"))
    filled = [part for part in parts if part.first.size]
    if not filled:
        raise ValueError(nothing)
    if not any(part.weight_range[1] for part in filled):
        raise ValueError("sample_weight is zero for every row.")
    table, kind, columns = _added(filled)
    n, weights, squares = table.counts.T
    groups = one_group(n.size)
    if "sensitive_features" in columns:
        groups = encode_groups(columns.pop("sensitive_features"), intersectional=intersectional)
    of_groups = [np.bincount(codes, n, groups.n_groups) for codes in groups.codes]
    groups = replace(groups, counts=np.sum(of_groups, axis=0).astype(np.int64))
    controls = columns.pop("control_features", {})
    labels = {argument: own[argument] for argument, own in columns.items()}
    labels |= {f"{_CONTROL}{name}": column for name, column in controls.items()}
    rows = WeightedRows(labels, groups, n.astype(np.int64), weights, squares)
    sizes = [int(part.table.counts[:, 0].sum()) for part in parts]
    starts = np.cumsum([0, *sizes])[:-1].tolist()
    first = np.concatenate([part.first + i for part, i in zip(parts, starts, strict=True)])
    if are_revisited:
        ends = np.cumsum([part.first.size for part in parts])[:-1]
        numbers = np.split(kind.astype(np.min_scalar_type(n.size - 1)), ends)
        blocks = blocks.then(_number, each=list(zip(starts, numbers, strict=True))).pack()
    return blocks, rows, first[first_rows(kind)], parts


def _number(block: RowBlock, own: tuple[int, IntArray]) -> RowBlock:
    """Number the rows, and their kinds, over all blocks."""
    start, numbers = own
    return RowBlock(block.X, numbers[block.kind], block.weights, start)


def _added(parts: list[Kinds]) -> tuple[GroupTable, IntArray, dict[str, dict[str, Any]]]:
    """Return the total of tables, the numbers of their kinds in it, and its columns by argument."""
    import pandas as pd

    widths = [Counter(name.split(": ")[0] for name in part.table.levels) for part in parts]
    for argument in widths[0]:
        n_columns = {own[argument] for own in widths}
        if len(n_columns) > 1:
            raise ValueError(f"{argument} has {listed(sorted(n_columns))} columns by partition.")
    names, order = list(parts[0].table.levels), {}
    types = dict(zip(names, zip(*(part.types for part in parts), strict=True), strict=True))
    for name, own in types.items():
        if all(isinstance(dtype, pd.CategoricalDtype) for dtype in own):
            order[name] = list(dict.fromkeys(chain.from_iterable(d.categories for d in own)))
            types[name] = (pd.CategoricalDtype(order[name]),)
    table, kind = total([part.table for part in parts], order)
    columns: dict[str, dict[str, Any]] = {argument: {} for argument in widths[0]}
    for (name, levels), codes in zip(table.levels.items(), table.codes.T, strict=True):
        argument, _, column = name.partition(": ")
        columns[argument][column] = _typed(levels, codes, types[name])
    return table, kind, columns


def _typed(levels: list[Any], codes: IntArray, types: Sequence[Any]) -> Any:
    """Return the level of each row, in the type that the columns of blocks have in common."""
    import pandas as pd

    if not all(isinstance(dtype, np.dtype) for dtype in types):
        common = types[0] if len(set(types)) == 1 else object
        return pd.Series(pd.Series(levels, dtype=common).array.take(codes))
    kinds = {dtype.kind for dtype in types}
    is_common = len(kinds) == 1 or kinds <= set("biuf")
    values = np.fromiter(levels, np.result_type(*types) if is_common else object, len(levels))
    return values[codes]


class Training(NamedTuple):
    """The rows of a fit, in blocks, and the table of their kinds."""

    rows: Partitions  # the blocks, as :class:`RowBlock`
    sizes: list[int]  # number of rows of each block
    groups: GroupEncoding  # groups of the kinds; its counts are those of the rows
    classes: Any  # class of each kind
    strata: Strata | None  # strata of the kinds
    weights: FloatArray  # (n_kinds,): sum of the weights of each kind
    first: IntArray  # (n_kinds,): first row of each kind, counted over all blocks
    least: float  # smallest positive weight of a row
    person: float  # largest weight of a row
    dtype: Any  # of X
    n_features: int  # number of columns of X

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return sum(self.sizes)


def read_training(
    rows: Partitions,
    *,
    positions: Any = None,
    sensitive_columns: Any = None,
    control_columns: Any = None,
    intersectional: bool = True,
    names: Any,
    **check_params: Any,
) -> Training:
    """Read and check aligned blocks of X, y, groups, strata and sample_weight.

    ``positions`` are the columns of X that the model uses, ``sensitive_columns`` those with the
    groups, ``control_columns`` those with the strata, ``names`` the names or positions of the
    columns that the model uses.
    """
    own_columns = {
        "sensitive_features": sensitive_columns,
        "y": None,
        "control_features": control_columns,
    }
    read = rows.then(_read_block, positions, own_columns, names, check_params)
    blocks, table, first, parts = number_kinds(read, intersectional, "X has no rows.")
    controls, filled = table.control_features, [part for part in parts if part.first.size]
    return Training(
        blocks,
        [int(part.table.counts[:, 0].sum()) for part in parts],
        table.groups,
        table.columns.get("y"),
        None if controls is None else read_strata(controls),
        table.weights,
        first,
        least=min(part.weight_range[0] for part in parts),
        person=max(part.weight_range[1] for part in parts),
        dtype=np.result_type(*(part.like.dtype for part in filled)),
        n_features=filled[0].like.shape[1],
    )


def _read_block(
    block: dict[str, Any],
    positions: Any,
    own_columns: dict[str, Any],
    names: Any,
    check_params: dict[str, Any],
) -> RowBlock:
    """Check the rows of a block and keep what a fit needs of them."""
    X, n_rows = block["X"], int(block["X"].shape[0])
    columns: dict[str, Columns] = {}
    for argument, own in own_columns.items() if n_rows else ():
        table = block.get(argument) if own is None else take_columns(X, own)
        if argument == "y" and table is not None:
            columns["y"] = [(None, column_or_1d(table))]
        elif table is not None:
            columns[argument] = read_columns(table, ROLES[argument])
    X = check_part(X if positions is None else keep_columns(X, positions), names, check_params)
    return with_kinds(X, columns, block.get("sample_weight"), n_rows, X[:0])
