"""The distinct rows of labels and groups in blocks, weighted by how many rows each stands for.

Rows of the same groups, labels and stratum are of one *kind*. Metrics of labels only depend on the
kinds. So each block (:func:`with_kinds`) is reduced to a table with a line for each kind, and
:func:`number_kinds` adds up the tables of all blocks. A block keeps the numbers of its rows
(scores) and the kind of each row only if a later pass reads them.
:class:`skfair.groups.weighted_rows.LazyRows` is the only caller of both.
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
from sklearn.utils import _safe_indexing

from skfair._typing import FloatArray, IntArray
from skfair.groups.attributes import ROLES, Columns, check_missing
from skfair.groups.encoding import GroupEncoding, encode_groups, one_group
from skfair.groups.levels import number_tuples
from skfair.groups.outcomes import explaining_missing
from skfair.groups.score_bins import Bins, bincount
from skfair.groups.table import GroupTable, total
from skfair.utils.factorize import factorize
from skfair.utils.partitions import Partitions
from skfair.utils.text import listed
from skfair.utils.validation import check_labels, check_weights

# Columns of control features in WeightedRows.columns have names that begin with this.
_CONTROL = "control_features: "


class WeightedRows(NamedTuple):
    """Few rows with weights that stand for many."""

    # Labels and scores by the name of the argument, and control features, see _CONTROL
    columns: dict[str, Any]
    groups: GroupEncoding  # groups of the weighted rows; its counts are of the original rows
    # (n_rows,): the number of rows that each stands for, the sum of their weights, and the sum of
    # their squared weights
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
        """Return the labels and groups of these rows, which may repeat; weights stay unchanged."""
        columns = {name: _safe_indexing(column, rows) for name, column in self.columns.items()}
        codes = np.ascontiguousarray(self.groups.codes[:, rows])
        return self._replace(columns=columns, groups=replace(self.groups, codes=codes))


class Kinds(NamedTuple):
    """The table of the kinds of a block, which is sent to the process that asks."""

    # A cell for each kind, with the sums _SUMS. Its attributes are the columns of groups, labels
    # and control features, named "argument: column"
    table: GroupTable
    types: list[Any]  # the dtype of each attribute; empty for a block without rows


# Sums over the rows of a kind: their number, their weights, and their squared weights.
_SUMS = ("rows", "weights", "squares")


class RowBlock(NamedTuple):
    """The arrays that a block keeps of its rows."""

    numbers: dict[str, FloatArray]  # columns of numbers by the name of the argument
    # (n_rows,): number of the kind of each row, in the smallest integer type that holds it
    kind: NDArray[Any]
    weights: FloatArray | None  # (n_rows,): sample weights
    # The kinds of this block, which ``kind`` numbers; None once it numbers the kinds of all blocks
    kinds: Kinds | None = None


def with_kinds(
    numbers: dict[str, FloatArray], columns: dict[str, Columns], weights: Any, n_rows: int
) -> RowBlock:
    """Return a block with the kind of each row, and the table of its kinds.

    ``numbers`` were checked before, and labels and weights are checked here. ``columns`` are the
    labels and groups by argument. Without any, all rows are of one kind.
    """
    if not n_rows:
        none, no_weights = np.empty(0, np.int64), None if weights is None else np.empty(0)
        table = GroupTable({}, none, dict.fromkeys(_SUMS, np.empty(0)))
        return RowBlock(numbers, none, no_weights, Kinds(table, []))
    weights = check_weights(weights, n_rows, are_all=False)
    levels: dict[str, list[Any]] = {}
    codes, types = [], []
    labels = {argument: own[0][1] for argument, own in columns.items() if argument not in ROLES}
    decisions = {"y_pred": labels.get("y_pred")}
    for argument, own in columns.items():
        noun = argument.removesuffix("s") if argument in ROLES else argument
        for j, (name, values) in enumerate(own):
            if argument in ROLES:
                factorized = factorize(values)
                check_missing(factorized, name or noun, ROLES[argument])
            else:
                with explaining_missing((argument, labels.get("y_true")), decisions):
                    factorized = check_labels(values, argument)
            number = noun if len(own) == 1 else f"{noun}_{j}"
            levels[f"{argument}: {name or number}"] = factorized.levels
            codes.append(factorized.codes)
            types.append(values.dtype)
    if not codes:
        levels, codes, types = {"all: all": [0]}, [np.zeros(n_rows, np.int64)], [np.dtype(int)]
    kind, kinds_of_levels = number_tuples(codes, np.array([len(own) for own in levels.values()]))
    n_kinds = len(kinds_of_levels)
    powers = [None] * 3 if weights is None else [None, weights, weights**2]
    sums = [bincount(kind, own, n_kinds) for own in powers]
    table = GroupTable(levels, kinds_of_levels, dict(zip(_SUMS, sums, strict=True)))
    kind = kind.astype(np.min_scalar_type(n_kinds - 1))
    return RowBlock(numbers, kind, weights, Kinds(table, types))


def number_kinds(
    read: Partitions, intersectional: bool, nothing: str, *, are_revisited: bool = True
) -> tuple[Partitions, WeightedRows]:
    """Add up the tables of all blocks; return the blocks, and the kinds of all as weighted rows.

    If later passes read the blocks (``are_revisited``), they are kept in memory, and the kind of
    each row gets its number in the total. Otherwise the blocks are returned unchanged. ``nothing``
    is the text of the error if there are no rows.
    """
    blocks = read.hold() if are_revisited else read
    parts: list[Kinds] = blocks.collect(attrgetter("kinds"))
    filled = [part for part in parts if part.types]
    if not filled:
        raise ValueError(nothing)
    table, kind, columns = _added(filled)
    n, weights, squares = (table.sums[name] for name in _SUMS)
    if not weights.any():
        raise ValueError("sample_weight is zero for every row.")
    groups = one_group(n.size)
    if "sensitive_features" in columns:
        groups = encode_groups(columns.pop("sensitive_features"), intersectional=intersectional)
    of_groups = [np.bincount(codes, n, groups.n_groups) for codes in groups.codes]
    groups = replace(groups, counts=np.sum(of_groups, axis=0).astype(np.int64))
    controls = columns.pop("control_features", {})
    labels = {argument: own[argument] for argument, own in columns.items()}
    labels |= {f"{_CONTROL}{name}": column for name, column in controls.items()}
    rows = WeightedRows(labels, groups, n.astype(np.int64), weights, squares)
    if are_revisited:
        ends = np.cumsum([len(part.table.counts) for part in parts])[:-1]
        numbers = np.split(kind.astype(np.min_scalar_type(n.size - 1)), ends)
        blocks = blocks.then(_number, each=numbers).pack()
    return blocks, rows


def _number(block: RowBlock, numbers: IntArray) -> RowBlock:
    """Renumber the kinds of a block; ``numbers`` are their numbers in the total."""
    return RowBlock(block.numbers, numbers[block.kind], block.weights)


def _added(parts: list[Kinds]) -> tuple[GroupTable, IntArray, dict[str, dict[str, Any]]]:
    """Add up the tables of blocks.

    Returns the total, the number in it of each kind of the first block, of the second, and so on,
    and the columns of its kinds by argument and name.
    """
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
    """Return the levels of the codes as a column of the common type of its blocks.

    ``types`` are the dtypes of the column in the blocks.
    """
    import pandas as pd

    if not all(isinstance(dtype, np.dtype) for dtype in types):
        common = types[0] if len(set(types)) == 1 else object
        return pd.Series(pd.Series(levels, dtype=common).array.take(codes))
    kinds = {dtype.kind for dtype in types}
    is_common = len(kinds) == 1 or kinds <= set("biuf")
    values = np.fromiter(levels, np.result_type(*types) if is_common else object, len(levels))
    return values[codes]
