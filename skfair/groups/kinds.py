"""Rows in blocks, and the table of weighted rows that stands for all of them.

Rows of the same groups, labels and stratum are of one *kind*. Constraints, classes, weights and
metrics of labels depend on the kind only, so a block keeps numbers (X, scores) and the kind of each
row; all that is known beforehand (groups, empty cells, rates as functions of cells) is read from
the kinds of all blocks, put together. Their table is as long as there are kinds, not rows.
"""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_array, column_or_1d

from skfair._typing import FloatArray, IntArray
from skfair.blocks.partitions import Partitions
from skfair.groups.attributes import ROLES, Columns, check_missing, read_columns
from skfair.groups.encoding import GroupEncoding, encode_groups, one_group
from skfair.groups.levels import number_tuples
from skfair.groups.named_columns import keep_columns, take_columns
from skfair.groups.score_bins import Bins, bincount
from skfair.groups.strata import Strata, read_strata
from skfair.utils.factorize import Factorized, factorize, first_rows
from skfair.utils.text import listed, plural
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


class Kinds(NamedTuple):
    """What is told of a block: its distinct rows, and nothing of the length of the rows."""

    columns: dict[str, Columns]  # labels and attributes by the name of the argument
    # (n_kinds,): number of rows, sums of their weights and of the squares of these, first row
    counts: IntArray
    weights: FloatArray
    squares: FloatArray
    first: IntArray
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
    """Check the labels, attributes and weights of a block, and number its kinds."""
    if n_rows:
        weights = check_weights(weights, n_rows, are_all=False)
        codes = [_codes(argument, *own) for argument, of in columns.items() for own in of]
        kind, first, counts, sums = distinct_rows(codes, weights, n_rows)
        squares = sums if weights is None else bincount(kind, weights**2, first.size)
    else:
        kind = first = counts = np.empty(0, np.int64)
        columns, sums = {}, np.empty(0)
        weights, squares = None if weights is None else sums, sums
    of_kinds = {
        argument: [(name, values[first]) for name, values in own]
        for argument, own in columns.items()
    }
    kinds = Kinds(of_kinds, counts, sums, squares, first, weight_range(weights), like)
    kind = kind.astype(np.min_scalar_type(max(first.size - 1, 0)))
    return RowBlock(X, kind, weights, kinds=kinds)


def _codes(argument: str, name: str | None, values: Any) -> Factorized:
    """Encode a column of a block; missing values raise."""
    if argument not in ROLES:
        return check_labels(values, argument)
    factorized = factorize(values)
    check_missing(factorized, name or argument.removesuffix("s"), ROLES[argument])
    return factorized


def distinct_rows(
    columns: list[Factorized], weights: FloatArray | None, n_rows: int
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Number the distinct rows of some columns: kind of each row, first rows, counts, weights."""
    columns = columns or [Factorized(np.zeros(n_rows, np.int64), [0])]
    shape = np.array([len(column.levels) for column in columns])
    kind, _ = number_tuples([column.codes for column in columns], shape)
    first = first_rows(kind)
    counts = np.bincount(kind, minlength=first.size)
    return kind, first, counts, bincount(kind, weights, first.size)


def number_kinds(
    read: Partitions, intersectional: bool, nothing: str, *, are_revisited: bool = True
) -> tuple[Partitions, WeightedRows, IntArray, list[Kinds]]:
    """Put the kinds of all blocks together, and number those of the rows like these.

    Returns the blocks, the table of kinds, the first row of each kind (counted over all blocks),
    and what is told of each block. ``nothing`` is the error if there are no rows.
    """
    blocks = read.hold() if are_revisited else read
    parts: list[Kinds] = blocks.collect(attrgetter("kinds"))
    filled = [part for part in parts if part.counts.size]
    if not filled:
        raise ValueError(nothing)
    counts, weights, squares = (np.concatenate([part[i] for part in filled]) for i in (1, 2, 3))
    if not weights.any():
        raise ValueError("sample_weight is zero for every row.")
    tables = {
        argument: _put_together(argument, [part.columns[argument] for part in filled])
        for argument in filled[0].columns
    }
    sensitive = tables.pop("sensitive_features", None)
    groups = one_group(counts.size)
    if sensitive:
        groups = encode_groups(sensitive, intersectional=intersectional)
    of_groups = [np.bincount(codes, counts, groups.n_groups) for codes in groups.codes]
    groups = replace(groups, counts=np.sum(of_groups, axis=0).astype(np.int64))
    controls = tables.pop("control_features", {})
    columns = {name: column for table in tables.values() for name, column in table.items()}
    columns |= {f"{_CONTROL}{name}": column for name, column in controls.items()}
    # The same kinds of different blocks become one.
    of_kinds = [factorize(values) for values in (*groups.codes, *columns.values())]
    kind, first, _, _ = distinct_rows(of_kinds, None, counts.size)
    n, w, w2 = (bincount(kind, values, first.size) for values in (counts, weights, squares))
    table = WeightedRows(columns, groups, n.astype(np.int64), w, w2).of_rows(first)
    starts = np.cumsum([0, *(part.counts.sum() for part in parts)])[:-1].tolist()
    rows = [part.first + start for part, start in zip(parts, starts, strict=True)]
    if are_revisited:
        ends = np.cumsum([part.counts.size for part in parts])[:-1]
        numbers = np.split(kind.astype(np.min_scalar_type(first.size - 1)), ends)
        blocks = blocks.then(_number, each=list(zip(starts, numbers, strict=True))).pack()
    return blocks, table, np.concatenate(rows)[first], parts


def _number(block: RowBlock, own: tuple[int, IntArray]) -> RowBlock:
    """Number the rows, and their kinds, over all blocks."""
    start, numbers = own
    return RowBlock(block.X, numbers[block.kind], block.weights, start)


def _put_together(argument: str, blocks: list[Columns]) -> dict[str, Any]:
    """Put labels or attributes of blocks one under the other, by name."""
    widths = {len(columns) for columns in blocks}
    if len(widths) > 1:
        raise ValueError(f"{argument} has {listed(sorted(widths))} columns by partition.")
    noun = argument.removesuffix("s") if argument in ROLES else argument
    columns = zip(*blocks, strict=True)
    return {
        own[0][0] or (noun if len(blocks[0]) == 1 else f"{noun}_{a}"): _join([v for _, v in own])
        for a, own in enumerate(columns)
    }


def _join(parts: list[Any]) -> Any:
    """Put columns of blocks one under the other: categories stay categories, in their order."""
    import pandas as pd

    if all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
        return pd.Series(pd.api.types.union_categoricals(parts))
    if not all(isinstance(part, np.ndarray) for part in parts):
        return pd.concat([pd.Series(part) for part in parts], ignore_index=True)
    kinds = {part.dtype.kind for part in parts}
    if len(kinds) > 1 and not kinds <= set("biuf"):
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


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
    own_columns = {"sensitive_features": sensitive_columns, "control_features": control_columns}
    read = rows.then(_read_block, positions, own_columns, names, check_params)
    blocks, table, first, parts = number_kinds(read, intersectional, "X has no rows.")
    controls, filled = table.control_features, [part for part in parts if part.counts.size]
    return Training(
        blocks,
        [int(part.counts.sum()) for part in parts],
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
        if table is not None:
            columns[argument] = read_columns(table, ROLES[argument])
    if block.get("y") is not None:
        columns["y"] = [(None, column_or_1d(block["y"]))]
    X = _check_rows(X if positions is None else keep_columns(X, positions), names, check_params)
    return with_kinds(X, columns, block.get("sample_weight"), n_rows, X[:0])


def _check_rows(X: Any, names: Any, check_params: dict[str, Any]) -> Any:
    """Check the numbers of X; an error names the column."""
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
