"""Columns of X that tell the group of a row, or the person to whom it belongs.

A model that may not use the groups can still use them if another column has the same information: a
number for each group, a column of 0 and 1 for one group, or the age if groups are bands of age.
``read.py`` and audits warn about such columns by :func:`warn_of_group_columns`. A column tells a
group if one of its values, or a range of its numbers, occurs in nearly all rows of the group and
hardly anywhere else.

:func:`names_people` is about columns with many repeated values. If rows with the same value are
always of the same group, they probably belong to the same person, because rows of different people
share a group only by chance. ``read.py`` calls it before it warns about repeated rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from skfair._typing import ColumnsLike, IntArray
from skfair.exceptions import GroupColumnWarning, RepeatedRowsWarning
from skfair.groups.attributes import Columns, read_columns
from skfair.groups.encoding import GroupEncoding
from skfair.groups.named_columns import is_sparse
from skfair.groups.probabilities import GroupProbabilities
from skfair.utils.dask_collections import is_lazy
from skfair.utils.factorize import factorize, factorized_or_none
from skfair.utils.partitioned_rows import PartitionedRows
from skfair.utils.text import listed_in
from skfair.utils.warn import is_unwanted, warn_user

# A column tells a group if it is wrong for at most 1 - _SHARE of the rows of the group (or of the
# rows outside it, if they are fewer). For the part of the rows that is compared first,
# _SHARE_OF_PART is used, because there may be a few more errors among few rows.
_SHARE, _SHARE_OF_PART = 0.99, 0.97
# Groups with fewer rows, inside or outside, are not compared, because some column may separate them
# by chance.
_FEWEST_ROWS = 30
# A column is compared value by value if it has at most _MOST_VALUES values, and at least
# _ROWS_OF_VALUE rows for each on average. Others are compared by ranges of numbers.
_MOST_VALUES, _ROWS_OF_VALUE = 50, 10
# At most this many rows of each group are compared first. If a column passes, all rows are
# compared.
_FIRST = 500
# The values of a column with fewer values per group may be finer groups, not people.
_PEOPLE_OF_GROUP = 5
# Names of columns that identify people, such as Person, patient_nbr and customerID, but not
# income_per_person.
_IS_ID = re.compile(
    r"(^|(?<!per)[\W_\d]|(?<=[a-z])(?=[A-Z]))"
    r"(?i:(id|person|patient|customer|applicant|household)([\W_]?(nbr|no|number))?)$"
)
# A column with at most this many values may describe kinds of people, and does not identify them.
MOST_KINDS = 50
# People repeat if at least this share of the rows have the value of an earlier row. A few rows may
# have been written twice.
_REPEATED = 0.02
# names_people is False unless, by chance alone, at least this many of the rows that repeat a value
# would be in another group.
_ENOUGH = 100


def warn_of_group_columns(
    X: Any,  # columns of the model; rows in partitions or without columns are not compared
    sensitive_features: ColumnsLike,
    names: NDArray[Any] | None = None,  # names of the columns, if X has none
) -> None:
    """Warn if columns of a model that may not use the groups tell them."""
    is_elsewhere = isinstance(X, PartitionedRows) or is_lazy(X, sensitive_features)
    if is_elsewhere or len(getattr(X, "shape", ())) != 2 or is_unwanted(GroupColumnWarning):
        return
    attributes = attribute_columns(sensitive_features)
    if names is None:
        names = np.array(getattr(X, "columns", np.arange(X.shape[1])), dtype=object)
    telling = columns_that_tell(X, names, attributes)
    if telling:
        pairs = [f"{column} tells {attribute}" for column, attribute in telling.items()]
        warn_user(
            f"Columns of X tell at least 99% of the rows of a group: {listed_in(pairs)}. A model "
            "that reads them uses the group. Drop them, or name them in sensitive=, which keeps "
            "them out of the model. If the model drops them itself, ignore this warning.",
            GroupColumnWarning,
        )


def attribute_columns(sensitive_features: ColumnsLike | GroupEncoding | None) -> Columns:
    """Return the columns of the attributes; none if groups are numbered already, or probabilities.

    Such groups cannot be compared with the values of a column.
    """
    has_columns = not isinstance(sensitive_features, GroupEncoding | GroupProbabilities | None)
    return read_columns(sensitive_features) if has_columns else []


def columns_that_tell(X: Any, names: NDArray[Any], attributes: Columns) -> dict[str, str]:
    """Return the columns of X that tell a group: name of the column, name of the attribute.

    ``names`` are the names of the columns of X, and ``attributes`` the sensitive attributes.
    """
    telling: dict[str, str] = {}
    for attribute, values in attributes:
        codes, levels = factorize(values)
        if len(levels) < 2:
            continue
        by_group = [np.flatnonzero(codes == group) for group in range(len(levels))]
        first = [rows[:: -(-rows.size // _FIRST)] for rows in by_group]
        for j in _candidates(X, codes, np.concatenate(first)):
            if _tells(_column(X, j), codes, _SHARE):
                telling.setdefault(str(names[j]), attribute or "sensitive_features")
    return telling


def said_people_of(name: str | None, values: Any) -> str:
    """Say how many values a column has if its name is one of people, who repeat; "" if not."""
    if not may_name_people(name):
        return ""
    factorized = factorized_or_none(values)
    n_values = 0 if factorized is None else len(factorized.levels)
    if not MOST_KINDS < n_values <= (1 - _REPEATED) * len(values):
        return ""
    return f"the column {name} has {n_values:,} values in {len(values):,} rows"


def may_name_people(name: str | None) -> bool:
    """Whether the name of a column is one of people, such as patient_id."""
    return bool(_IS_ID.search(name or ""))


def index_columns(*tables: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the name and the values of each level of the index of the first table with names."""
    for table in tables:
        index: Any = getattr(table, "index", None)
        names = [name for name in getattr(index, "names", ()) if name is not None]
        if names:
            yield from ((name, index.get_level_values(name)) for name in names)
            return


def warn_of_people(columns: Iterable[tuple[Any, Any]]) -> None:
    """Warn an audit without units of columns (name and values) that show that people repeat."""
    said = {name: text for name, values in columns if (text := said_people_of(str(name), values))}
    if said:
        option = f"--units {quote(str(next(iter(said))))}"
        warn_user(
            f"Rows look as if people repeat ({listed_in([*said.values()])}). The audit takes every "
            "row for another person, and is too sure where that is wrong: pass this column as "
            f"units= ({option} in a shell). If all rows are different people, ignore this warning.",
            RepeatedRowsWarning,
        )


def names_people(values: IntArray, groups: NDArray[Any]) -> bool:
    """Whether rows with the same value of a column are of one person, as their groups suggest.

    ``values`` are codes of the column that number its sorted values (-1 if missing). ``groups`` has
    the group of each row in each attribute, and each combination is a *kind*. The result is True if
    pairs of rows with the same value are of different kinds at most 1 - _SHARE times as often as by
    chance.
    """
    is_known = values >= 0
    values, groups = values[is_known], groups[is_known]
    kinds = np.unique(groups, axis=0, return_inverse=True)[1].ravel()
    n_values, n_kinds = int(values.max()) + 1, int(kinds.max()) + 1
    if n_values < _PEOPLE_OF_GROUP * n_kinds:
        return False
    pairs, counts = np.unique(values * n_kinds + kinds, return_counts=True)
    sizes = np.bincount(values, minlength=n_values)
    by_chance = 1 - float(np.sum((np.bincount(kinds) / kinds.size) ** 2))
    # The numbers of ordered pairs of rows with the same value and different kinds, as they are and
    # by chance.
    n_differ = float(np.sum(sizes**2) - np.sum(counts**2))
    expected = by_chance * float(np.sum(sizes * (sizes - 1)))
    if by_chance * (values.size - n_values) < _ENOUGH or n_differ > (1 - _SHARE) * expected:
        return False
    # If values name people, successive values are often of different kinds. If groups are bands of
    # age and the values are ages, they hardly ever are.
    first = pairs[np.flatnonzero(np.diff(pairs // n_kinds, prepend=-1))] % n_kinds
    return bool(np.count_nonzero(np.diff(first)) > by_chance * first.size / 2)


def _candidates(X: Any, codes: IntArray, rows: IntArray) -> Iterator[int]:
    """Yield the columns that tell a group of these rows; all rows are compared afterwards."""
    if is_sparse(X):
        is_entry, is_near = X[rows] != 0, []
        total = np.asarray(is_entry.sum(axis=0)).ravel()
        for group in np.unique(codes[rows]):
            inside = np.flatnonzero(codes[rows] == group)
            counts = np.asarray(is_entry[inside].sum(axis=0)).ravel()
            is_near.append(counts >= _SHARE_OF_PART * np.maximum(total, inside.size))
        yield from np.flatnonzero(np.any(is_near, axis=0)).tolist()
        return
    columns: Iterable[int] = range(X.shape[1])
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        columns = _promising(X[rows], codes[rows])
    for j in columns:
        if _tells(_safe_indexing(_column(X, j), rows), codes[rows], _SHARE_OF_PART):
            yield j


def _promising(X: NDArray[Any], codes: IntArray) -> Iterable[int]:
    """Return the columns that have few values, or disjoint ranges of numbers in the groups.

    Other columns cannot tell a group. All columns are compared together, because comparing them one
    by one would double the time of a fit of 1,000 rows.
    """
    n_values = 1 + np.count_nonzero(np.diff(np.sort(X, axis=0), axis=0), axis=0)
    has_few = n_values <= min(_MOST_VALUES, codes.size / _ROWS_OF_VALUE)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=codes.min() - 1))
    lowest, highest = (end.reduceat(X[order], starts) for end in (np.minimum, np.maximum))
    by_size = np.argsort(lowest, axis=0)
    lowest, highest = (np.take_along_axis(end, by_size, axis=0) for end in (lowest, highest))
    # Comparisons with NaN are false, so a column with missing values counts as apart and is kept.
    is_apart = ~(lowest[1:] <= highest[:-1]).any(axis=0)
    return np.flatnonzero(has_few | is_apart).tolist()


def _column(X: Any, j: int) -> Any:
    """Return a column of X as a dense 1-d array or Series."""
    if is_sparse(X):
        return X[:, [j]].toarray().ravel()
    return _safe_indexing(X, j, axis=1)


def _tells(values: Any, codes: IntArray, share: float) -> bool:
    """Whether the values of a column tell a group with at most ``1 - share`` errors.

    Rows without a group (code -1) are left out. A row is assigned to a group if most rows with the
    same value are in this group. Errors are rows of the group that are not assigned to it, and rows
    of other groups that are.
    """
    known = np.flatnonzero(codes >= 0)
    if known.size < codes.size:
        values, codes = _safe_indexing(values, known), codes[known]
    sizes, levels = np.bincount(codes), factorized_or_none(values)
    if levels is None:  # lists or other objects
        return False
    n_values = len(levels.levels)
    if n_values > min(_MOST_VALUES, codes.size / _ROWS_OF_VALUE):
        return sizes.min() >= _FEWEST_ROWS and _are_apart(values, codes)
    counts = np.zeros((n_values + 1, sizes.size))  # the last line is for missing values, code -1
    np.add.at(counts, (levels.codes, codes), 1)
    is_mostly = counts > counts.sum(axis=1, keepdims=True) / 2
    rightly, claimed = (counts * is_mostly).sum(axis=0), counts.sum(axis=1) @ is_mostly
    fewer = np.minimum(sizes, codes.size - sizes)
    n_wrong = sizes + claimed - 2 * rightly
    return bool(((n_wrong <= (1 - share) * fewer) & (fewer >= _FEWEST_ROWS)).any())


def _are_apart(values: Any, codes: IntArray) -> bool:
    """Whether the values are numbers, and those of each group are in a range of its own."""
    try:
        values = np.asarray(values, np.float64)
    except (TypeError, ValueError):  # texts, dates or other objects
        return False
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lowest = np.minimum.reduceat(values[order], starts)
    highest = np.maximum.reduceat(values[order], starts)
    by_size = np.argsort(lowest)
    return bool((lowest[by_size][1:] > highest[by_size][:-1]).all())
