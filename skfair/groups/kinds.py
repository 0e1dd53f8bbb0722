"""Training rows in blocks: what is kept of each, and the table that stands for all of them.

Rows of the same groups, class and stratum are of one *kind*. Constraints, classes and weights
depend on the kind only, so a block keeps X and the number of the kind of each row; and all that a
fit has to know beforehand (groups, empty cells, rates as functions of cells) is read from a table
of all kinds. It is as long as there are kinds, not rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, column_or_1d

from skfair._typing import FloatArray, IntArray
from skfair.blocks.partitions import Partitions
from skfair.groups.attributes import (
    CONTROL,
    SENSITIVE,
    Columns,
    Role,
    check_missing,
    read_columns,
)
from skfair.groups.encoding import GroupEncoding, encode_groups, one_group
from skfair.groups.named_columns import keep_columns, take_columns
from skfair.groups.strata import Strata, read_strata
from skfair.utils.factorize import factorize, first_rows
from skfair.utils.text import listed, plural
from skfair.utils.validation import check_weights, weight_range


class Kinds(NamedTuple):
    """The distinct rows of a block, apart from X."""

    attributes: Columns  # sensitive attributes; none if no groups were given
    classes: Any  # class of each kind
    # (n_kinds,): number of rows, and sum of their weights
    counts: IntArray
    weights: FloatArray
    first: IntArray  # (n_kinds,): first row of each kind in its block
    # Control attributes; none if no control features were given
    controls: Sequence[tuple[str | None, Any]] = ()


class _ReadBlock(NamedTuple):
    """A block that has been read; its kinds have numbers of their own."""

    X: Any
    kind: NDArray[Any]
    weights: FloatArray | None
    kinds: Kinds


class RowBlock(NamedTuple):
    """What is kept of the rows of a block."""

    X: Any  # the columns that the model uses
    # (n_rows,): number of the kind of each row, in the smallest integers that hold it
    kind: NDArray[Any]
    weights: FloatArray | None  # (n_rows,): sample weights
    start: int  # number of the first row, counted over all blocks

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.kind.size)

    def row_weights(self) -> FloatArray:
        """Return the weights of the rows, ones if none were given."""
        return np.ones(self.n_rows) if self.weights is None else self.weights


class Training(NamedTuple):
    """The rows of a fit, in blocks, and the table of their kinds."""

    rows: Partitions  # the blocks, as :class:`RowBlock`
    sizes: list[int]  # number of rows of each block
    groups: GroupEncoding  # groups of the kinds; its counts are those of the rows
    classes: Any  # class of each kind
    strata: Strata | None  # strata of the kinds
    # (n_kinds,): number of rows and sum of weights of each kind
    counts: IntArray
    weights: FloatArray
    first: IntArray  # (n_kinds,): first row of each kind, counted over all blocks
    least: float  # smallest positive weight of a row
    person: float  # largest weight of a row
    is_weighted: bool  # whether there are sample weights
    dtype: Any  # of X
    n_features: int  # number of columns of X

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return sum(self.sizes)


class _Facts(NamedTuple):
    """What the client learns of a block."""

    n_rows: int
    kinds: Kinds
    least: float
    person: float
    is_weighted: bool
    dtype: Any
    n_features: int


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
    own_columns = (positions, sensitive_columns, control_columns)
    blocks = rows.then(_read_block, *own_columns, names, check_params).hold()
    facts = blocks.collect(_facts_of)
    if not any(fact.n_rows for fact in facts):
        raise ValueError("X has no rows.")
    counts = np.concatenate([fact.kinds.counts for fact in facts])
    weights = np.concatenate([fact.kinds.weights for fact in facts])
    if not weights.any():
        raise ValueError("sample_weight is zero for every row.")
    groups = encode_kinds([fact.kinds for fact in facts], counts, intersectional)
    controls = joined_table([fact.kinds.controls for fact in facts if fact.n_rows], CONTROL)
    strata = None if controls is None else read_strata(controls)
    has_classes = any(fact.kinds.classes is not None for fact in facts)
    classes = join_columns([fact.kinds.classes for fact in facts]) if has_classes else None
    # The same kinds of different blocks become one.
    columns = [("sensitive_features", codes) for codes in groups.codes]
    columns += [] if classes is None else [("y", classes)]
    columns += [] if strata is None else [("control_features", strata.codes)]
    kind, first, _, _ = distinct_rows(columns, None, counts.size)
    sizes = [fact.n_rows for fact in facts]
    starts = np.cumsum([0, *sizes]).tolist()
    numbers = np.split(
        kind.astype(np.min_scalar_type(max(first.size - 1, 0))),
        np.cumsum([fact.kinds.counts.size for fact in facts])[:-1],
    )
    first_of_block = [fact.kinds.first + s for fact, s in zip(facts, starts[:-1], strict=True)]
    return Training(
        rows=blocks.then(_number, each=list(zip(starts[:-1], numbers, strict=True))).pack(),
        sizes=sizes,
        groups=replace(groups, codes=groups.codes[:, first]),
        classes=None if classes is None else classes[first],
        strata=None if strata is None else strata._replace(codes=strata.codes[first]),
        counts=np.bincount(kind, counts, first.size).astype(np.int64),
        weights=np.bincount(kind, weights, first.size).astype(np.float64),
        first=np.concatenate(first_of_block)[first],
        least=min(fact.least for fact in facts),
        person=max(fact.person for fact in facts),
        is_weighted=any(fact.is_weighted for fact in facts),
        dtype=np.result_type(*{fact.dtype for fact in facts if fact.n_rows}),
        n_features=max(fact.n_features for fact in facts),
    )


def distinct_rows(
    columns: list[tuple[str, Any]], weights: FloatArray | None, n_rows: int
) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """Number the distinct rows of some columns: kind of each row, first rows, counts, weights."""
    kind = np.zeros(n_rows, np.int64)
    for name, values in columns:
        factorized = factorize(values)
        check_missing(factorized, name)
        kind = factorize(kind * len(factorized.levels) + factorized.codes).codes
    first = first_rows(kind) if n_rows else np.empty(0, np.int64)
    n_kinds = first.size
    counts = np.bincount(kind, minlength=n_kinds).astype(np.int64)
    sums = np.bincount(kind, weights, n_kinds).astype(np.float64) if n_rows else np.empty(0)
    return kind, first, counts, sums


def _read_block(
    block: dict[str, Any],
    positions: Any,
    sensitive_columns: Any,
    control_columns: Any,
    names: Any,
    check_params: dict[str, Any],
) -> _ReadBlock:
    """Check the rows of a block and keep what a fit needs of them."""
    X, y = block["X"], block.get("y")
    n_rows = int(X.shape[0])
    weights, attributes, controls = None, [], []
    if n_rows:
        weights = check_weights(block.get("sample_weight"), n_rows, are_all=False)
        attributes = _attributes_of(block, sensitive_columns, SENSITIVE)
        controls = _attributes_of(block, control_columns, CONTROL)
    columns = [
        ("sensitive_feature" if name is None else name, values) for name, values in attributes
    ]
    if y is not None:
        y = column_or_1d(y)
        columns.append(("y", y))
    for name, values in controls:
        check_missing(factorize(values), "control_feature" if name is None else name, CONTROL)
        columns.append(("control_feature", values))
    kind, first, counts, sums = distinct_rows(columns, weights, n_rows)
    kinds = Kinds(
        [(name, values[first]) for name, values in attributes],
        None if y is None else y[first],
        counts,
        sums,
        first,
        [(name, values[first]) for name, values in controls],
    )
    rows = X if positions is None else keep_columns(X, positions)
    kind = kind.astype(np.min_scalar_type(max(first.size - 1, 0)))
    return _ReadBlock(_check_rows(rows, names, check_params), kind, weights, kinds)


def _attributes_of(block: dict[str, Any], columns: Any, role: Role) -> Columns:
    """Return the attributes of the rows of a block, from its X if ``columns`` says so."""
    columns_of_role = block.get(role.argument)
    if columns is not None:
        columns_of_role = take_columns(block["X"], columns)
    return [] if columns_of_role is None else read_columns(columns_of_role, role)


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


def _number(block: _ReadBlock, own: tuple[int, IntArray]) -> RowBlock:
    """Number the rows, and their kinds, over all blocks."""
    start, numbers = own
    return RowBlock(block.X, numbers[block.kind], block.weights, start)


def _facts_of(block: _ReadBlock) -> _Facts:
    least, person = weight_range(block.weights)
    return _Facts(
        int(block.kind.size),
        block.kinds,
        least,
        person,
        block.weights is not None,
        block.X.dtype,
        int(block.X.shape[1]),
    )


def encode_kinds(kinds: list[Kinds], counts: IntArray, intersectional: bool) -> GroupEncoding:
    """Encode the groups of all kinds as those of rows, and count rows."""
    table = joined_table([part.attributes for part in kinds if part.counts.size], SENSITIVE)
    if table is None:
        encoding = one_group(counts.size)
    else:
        encoding = encode_groups(table, intersectional=intersectional)
    of_groups = sum(
        np.bincount(codes, counts, encoding.n_groups).astype(np.int64) for codes in encoding.codes
    )
    return replace(encoding, counts=np.asarray(of_groups))


def joined_table(blocks: Sequence[Sequence[tuple[str | None, Any]]], role: Role) -> Any:
    """Put the attributes of blocks one under the other; None if there are none."""
    widths = {len(columns) for columns in blocks}
    if len(widths) > 1:
        raise ValueError(f"{role.argument} has {listed(sorted(widths))} columns by partition.")
    if not widths.pop():
        return None
    names = [name for name, _ in blocks[0]]
    columns = [join_columns([block[a][1] for block in blocks]) for a in range(len(names))]
    if len(columns) == 1 and names[0] is None:
        return columns[0]
    noun = role.argument.removesuffix("s")
    return {
        f"{noun}_{a}" if name is None else name: column
        for a, (name, column) in enumerate(zip(names, columns, strict=True))
    }


def join_columns(parts: list[Any]) -> Any:
    """Put columns of blocks one under the other: categories stay categories, in their order."""
    import pandas as pd

    parts = [part for part in parts if part is not None and len(part)]
    if all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
        return pd.Series(pd.api.types.union_categoricals(parts))
    if not all(isinstance(part, np.ndarray) for part in parts):
        return pd.concat([pd.Series(part) for part in parts], ignore_index=True)
    kinds = {part.dtype.kind for part in parts}
    if len(kinds) > 1 and not kinds <= set("biuf"):
        parts = [part.astype(object) for part in parts]
    return np.concatenate(parts)


def sample_rows(training: Training, wanted: IntArray, take: Callable[..., Any]) -> list[Any]:
    """Return ``take(block, rows)`` of each block for rows that are numbered over all blocks.

    ``wanted`` must be sorted; blocks without such rows are asked for none.
    """
    starts = np.cumsum([0, *training.sizes])
    cuts = np.searchsorted(wanted, starts)
    each = [wanted[i:j] - s for i, j, s in zip(cuts[:-1], cuts[1:], starts[:-1], strict=True)]
    return training.rows.collect(take, each=each)
