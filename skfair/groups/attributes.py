"""Read the columns of attributes from the user's argument, and raise for bad ones.

A list, array, Series, DataFrame (pandas, polars), pyarrow Table, extension array or dict of columns
becomes a list of ``(name or None, 1-d values)`` pairs (:func:`read_columns`). Only the shape of the
columns and whether they can be groups are checked here. :mod:`skfair.groups.encoding` and
:mod:`skfair.groups.strata` turn them into groups and strata.

There are two further kinds of checks. :func:`check_levels` raises or warns about levels that can
hardly be groups. :func:`check_alignment` and :func:`check_aligned` compare the pandas indices of
columns that are matched by position.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from numbers import Number
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from skfair._typing import IntArray
from skfair.exceptions import SmallGroupWarning
from skfair.groups.foreign_tables import native_table, refuse_lazy_frame
from skfair.utils.factorize import Factorized
from skfair.utils.text import abbreviated, check_text, listed, plural, spelled_alike
from skfair.utils.warn import warn_user

Columns: TypeAlias = list[tuple[str | None, Any]]


class Role(NamedTuple):
    """The argument that holds a column, and the words of errors about it."""

    argument: str  # such as "sensitive_features"
    attribute: str  # what a column of it is called, such as "Sensitive attribute"
    level: str  # what a value is called, such as "group"


SENSITIVE = Role("sensitive_features", "Sensitive attribute", "group")
CONTROL = Role("control_features", "Control attribute", "stratum")
# The word for a value in errors about other arguments, by name of the argument; see check_aligned.
_VALUES = {"y": "label", "sample_weight": "weight", "query_id": "query", "y_score": "score"}
ROLES = {role.argument: role for role in (SENSITIVE, CONTROL)}

# More levels than this in a numeric attribute mean a continuous quantity, not groups.
MAX_NUMERIC_LEVELS = 50
# More levels than this in any attribute mean an identifier.
MAX_LEVELS = 1000
# Names of groups that mostly mean missing values: texts and codes that files and libraries write.
_MISSING_NAMES = {
    *("", "nan", "none", "null", "<na>", "nat", "na", "n/a", "n.a.", "#n/a"),
    *("unknown", "missing", "?", "-", "--", ".", "-999"),
    *("prefer not to answer", "prefer not to say", "prefer not to disclose"),
}
# Negative codes of missing values, which may be levels of a scale too, and positive ones, which may
# be counts, ages or codes of groups; see _missing_codes.
_NEGATIVE_CODES, _POSITIVE_CODES = {"-1", "-9", "-99"}, ("9", "99", "999", "9999")
# A positive code for missing values stands apart from the other codes by at least this difference.
# Census codes of race are 1 to 6 and 9. Counts and ages have no such gap, or more values than
# _MOST_CODES.
_APART, _MOST_CODES = 3, 10
# Types without a pandas index. For these check_alignment returns before it imports pandas.
_WITHOUT_INDEX = (np.ndarray, type(None))


def read_columns(table: Any, role: Role = SENSITIVE, n_samples: int | None = None) -> Columns:
    """Split what was given into (name, 1-d values) pairs; the name is None if it has none.

    ``role`` has the words for errors. With ``n_samples``, another number of rows raises.
    """
    argument = role.argument
    if hasattr(table, "spread"):  # GroupProbabilities, which are read by columns themselves
        raise TypeError(
            f"{table!r} cannot be {argument} here, where each row must have one group. Metrics, "
            "scorers, group_report, fairness_report, noise_floor, constrained models and "
            "group-blind fair decisions read probabilities; disparity_bounds says what they leave "
            "open."
        )
    if hasattr(table, "__array_namespace__") and not isinstance(table, np.ndarray):
        table = np.asarray(table)  # an array of another library, which may have no length
    if isinstance(table, np.ndarray | list | tuple):
        columns: Columns = [(None, values) for values in _array_columns(table, argument)]
    else:
        columns = _table_columns(table, argument)
    if not columns or len(columns[0][1]) == 0:
        raise ValueError(f"{argument} is empty. Pass one value per row of X.")
    n_rows = len(columns[0][1])
    if any(len(values) != n_rows for _, values in columns):
        raise ValueError(f"The columns of {argument} differ in length.")
    if n_samples is not None and n_rows != n_samples:
        hint = " An estimator in something that samples rows takes columns of X: set sensitive=."
        raise ValueError(
            f"{argument} has {n_rows} rows but the other data have {n_samples}. Pass one value per "
            f"row.{_hint_on_names(table, role) or hint * (role is SENSITIVE)}"
        )
    return columns


def _hint_on_names(table: Any, role: Role) -> str:
    """Return a hint for errors if the table looks like a list of column names, and "" otherwise."""
    is_short = isinstance(table, list | tuple) and len(table) <= 10
    if not is_short or not all(isinstance(name, str) for name in table):
        return ""
    names = repr(table) if role is SENSITIVE else f"Sensitive(control_features={table!r})"
    return f" If {listed(table)} are names of columns of X, set sensitive={names} of the estimator."


def _table_columns(table: Any, argument: str) -> Columns:
    """Split a table, a dict or a Series into columns with their names."""
    if sparse.issparse(table):
        raise TypeError(
            f"{argument} is a sparse matrix. Pass a dense 1-d array, or one column per attribute."
        )
    refuse_lazy_frame(table, argument)
    table = native_table(table)
    columns: Columns
    if isinstance(table, Mapping):
        columns = [(str(name), _one_column(v, argument)) for name, v in table.items()]
        for name, values in columns:
            if getattr(values, "ndim", 1) != 1:
                raise ValueError(
                    f"The column {name!r} of {argument} must be 1-dimensional, got the "
                    f"shape {values.shape}."
                )
    elif hasattr(table, "columns"):  # pandas, polars and friends
        columns = [(str(name), _one_column(table[name], argument)) for name in table.columns]
        if any(getattr(values, "ndim", 1) != 1 for _, values in columns):
            raise ValueError(f"{argument} has two columns of the same name. Rename one.")
    elif hasattr(table, "name") and hasattr(table, "dtype"):  # Series
        name = None if table.name is None else str(table.name) or None  # polars calls it ""
        columns = [(name, _one_column(table, argument))]
    else:
        columns = [(None, values) for values in _array_columns(table, argument)]
    check_text((name for name, _ in columns), f"The name of a column of {argument},")
    return columns


def _unmasked(values: Any) -> Any:
    """Return a masked array with None for masked values, and anything else unchanged.

    ``numpy.asarray`` would return the values behind the mask.
    """
    is_masked = isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values)
    return np.where(values.mask, None, values.data) if is_masked else values


def _one_column(values: Any, argument: str) -> Any:
    """Return a 1-d column in a form that :func:`factorize` reads without a copy."""
    values = _unmasked(values)
    if isinstance(getattr(values, "dtype", None), np.dtype):
        return np.asarray(values)
    if hasattr(values, "array"):  # a pandas extension array
        return values.array
    array = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
    if not array.ndim:
        raise TypeError(f"{argument} must hold one value per row in each column, got {values!r}.")
    return array


def _array_columns(values: Any, argument: str) -> list[Any]:
    """Split an array or nested list into columns."""
    values = _unmasked(values) if isinstance(values, np.ma.MaskedArray) else values
    if values is None or isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{argument} must be array-like with one value per row, got {values!r}.")
    if isinstance(values, list | tuple):
        # numpy would turn ["f", 1] into strings and lose the type of the levels.
        array = np.asarray(values, dtype=object)
    elif hasattr(values, "_from_sequence"):
        return [values]  # a pandas extension array
    elif not isinstance(values, np.ndarray) and hasattr(values, "__dlpack__"):
        # An array of the array API, which numpy may not read otherwise.
        array = np.from_dlpack(cast(Any, values))
    else:
        array = np.asarray(values)
    if array.ndim == 1:
        if array.size and isinstance(array[0], list | tuple | np.ndarray):
            raise ValueError(f"The rows of {argument} differ in length.")
        return [array]
    if array.ndim != 2:
        raise ValueError(
            f"{argument} has {array.ndim} dimensions. Pass one value per row of X, or one "
            "column per attribute."
        )
    return [np.ascontiguousarray(array[:, j]) for j in range(array.shape[1])]


def check_missing(
    factorized: Factorized,
    name: str,
    role: Role = SENSITIVE,
    remedy: str = "",
    counts: IntArray | None = None,  # how many rows each value stands for; None for one
) -> None:
    """Raise if an attribute has missing values (code -1), and say how many.

    Callers that read new rows at prediction pass a ``remedy``. The error then ends with it, and not
    with the advice for a fit.
    """
    if factorized.codes.min(initial=0) >= 0:
        return
    each = np.ones(factorized.codes.size, np.int64) if counts is None else counts
    n_missing, n_rows = int(each[factorized.codes < 0].sum()), int(each.sum())
    if n_missing and remedy:
        raise ValueError(
            f"{role.attribute} {name!r} has {plural(n_missing, 'missing value')} in "
            f"{n_rows} rows. Drop these rows, or impute them.{remedy}"
        )
    if n_missing:
        others = (
            "list them apart in an audit (unknown=numpy.nan), keep them in the loss of a model "
            "(Sensitive(missing='loss')), "
        ) * (role is SENSITIVE)
        raise ValueError(
            f"{role.attribute} {name!r} has {plural(n_missing, 'missing value')} in "
            f"{n_rows} rows. Drop these rows, impute them, {others}or make them a "
            f"{role.level} of their own: pandas.Series(column, dtype=object).fillna('not stated')."
        )


def check_levels(
    factorized: Factorized,
    name: str,
    values: object,
    role: Role = SENSITIVE,
    unknown: Collection[str] = (),  # levels that are said to stand for "not known"
) -> None:
    """Raise if an attribute has missing values, looks continuous or like an identifier.

    ``values`` is the column that was factorized, and its dtype is used. There are warnings about
    doubtful levels, see :func:`warn_levels`.
    """
    if factorized.codes.min(initial=0) < 0:
        check_missing(factorized, name, role)
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    n_levels = len(factorized.levels)
    is_numeric = kind in "iufcmM" or (  # a list, or a column of objects
        isinstance(values, np.ndarray)
        and all(isinstance(level, Number) for level in factorized.levels)
    )
    if n_levels > MAX_NUMERIC_LEVELS and is_numeric:
        raise ValueError(
            f"{role.attribute} {name!r} has {n_levels} different numeric values, which looks "
            f"continuous (at most {MAX_NUMERIC_LEVELS} are read as groups). Bin it, for example "
            "with pandas.qcut; if the numbers really are codes of groups, pass them as strings or "
            "as a pandas Categorical."
        )
    if n_levels > MAX_LEVELS:
        raise ValueError(
            f"{role.attribute} {name!r} has {n_levels} levels (at most {MAX_LEVELS} are read "
            "as groups), which looks like an identifier. Merge levels into groups."
        )
    declared = getattr(getattr(values, "dtype", None), "categories", ())
    warn_levels(factorized.levels, name, role, unknown, declared)


def warn_levels(
    levels: Collection[object],
    name: str,
    role: Role = SENSITIVE,
    unknown: Collection[str] = (),
    declared: Collection[object] = (),
) -> None:
    """Warn about levels that may be the same, may mean missing values, or have no row.

    ``unknown`` are levels that the caller knows to stand for "not known". ``declared`` are the
    categories of a categorical column, empty for others. Only sensitive attributes get the warnings
    about missing values and rows.
    """
    _warn_spelling(levels, name, role)
    if role is not SENSITIVE:
        return
    _warn_missing_names(levels, name, unknown)
    _warn_unknown(levels, name, unknown)
    empty = [level for level in declared if level not in levels]
    if empty:
        warn_user(
            f"{role.attribute} {name!r} declares {plural(len(empty), 'level')} that no row has: "
            f"{listed(empty)}. Nothing is known or limited of such a group. Add its rows, or drop "
            "it by .cat.remove_unused_categories().",
            SmallGroupWarning,
        )


def _warn_unknown(levels: Collection[object], name: str, unknown: Collection[str]) -> None:
    """Warn if a level is spelled a little differently in ``unknown``, so that it is compared."""
    known = set(map(str, levels))
    folded = {level.strip().casefold(): level for level in known}
    for level in sorted(set(unknown) - known):
        near = folded.get(level.strip().casefold())
        if near is not None and near not in unknown:
            warn_user(
                f"unknown= names {level!r}, but the level of {name!r} is {near!r}, so it counts as "
                f"a group. Pass unknown={near!r}."
            )


def _warn_missing_names(levels: Collection[object], name: str, unknown: Collection[str]) -> None:
    """Warn if some, but not all, of the groups have names that missing values often have."""
    texts = {level: str(level).strip().casefold().removesuffix(".0") for level in levels}
    names = _MISSING_NAMES | _missing_codes(set(texts.values()) - _MISSING_NAMES)
    if "+" in texts.values():  # blood groups
        names -= {"-"}
    like_missing = [level for level, text in texts.items() if text in names]
    doubtful = [level for level in like_missing if str(level) not in unknown]
    if doubtful and len(like_missing) < len(texts):
        nouns = ("group", "Does it") if len(doubtful) == 1 else ("groups", "Do they")
        warn_user(
            f"Sensitive attribute {name!r} has the {nouns[0]} {listed(doubtful)} among others. "
            f"{nouns[1]} stand for missing values? If so, replace them by None and drop these "
            "rows, or keep the rows in the loss of a model (Sensitive(missing='loss')). In an "
            f"audit, pass unknown={doubtful[0]!r} (--unknown in a shell). If not, choose a name "
            "that cannot be mistaken, such as 'not stated'."
        )


def _missing_codes(texts: set[str]) -> set[str]:
    """Return the texts that are codes of missing values, such as -9, and 9 beside 0 and 1.

    Negative ones are codes unless other numbers are negative, too, or the levels are only -1 and 1.
    Positive ones are codes beside words, or if they stand apart from a few small codes.
    """
    numbers = {text: float(text) for text in texts if re.fullmatch(r"-?\d+(\.\d+)?", text)}
    negative = {text for text, number in numbers.items() if number < 0}
    are_codes = negative <= _NEGATIVE_CODES and texts != {"-1", "1"}
    found = set(negative) if are_codes else set()
    others = sorted(
        number for text, number in numbers.items() if text not in {*found, *_POSITIVE_CODES}
    )
    for code in _POSITIVE_CODES:
        if code not in numbers:
            continue
        are_small = bool(others) and 0 <= others[0] <= 1 and others[-1] <= 2 * len(others)
        is_apart = are_small and len(others) <= _MOST_CODES and float(code) - others[-1] >= _APART
        if is_apart or (not others and texts - numbers.keys()):
            found.add(code)
        else:
            others = sorted([*others, float(code)])
    return found


def _warn_spelling(levels: Iterable[object], name: str, role: Role) -> None:
    """Warn if levels of an attribute differ only in case, in spaces around them, or in type.

    A column that was read in pieces may have the number 1 in one and the text "1" in another.
    """
    for doubtful, how in (
        (spelled_alike(levels), "differ only in case, spaces or type"),
        (abbreviated(levels), "abbreviate others"),
    ):
        if doubtful:
            warn_user(
                f"{role.attribute} {name!r} has levels that {how}, "
                f"{' and '.join(map(listed, doubtful[:3]))}. Each counts as a {role.level} of its "
                "own. If they are the same, give them one spelling and type."
            )


def take_rows(table: Any, rows: IntArray) -> Any:
    """Return some rows of a table, column or dict of columns, in the same form."""
    if isinstance(table, Mapping):
        return {name: take_rows(column, rows) for name, column in table.items()}
    if hasattr(table, "_from_sequence"):  # an array of pandas
        table = np.asarray(table, dtype=object)
    return _safe_indexing(table, rows)


def check_alignment(table: object, like: object, role: Role = SENSITIVE) -> None:
    """Raise if both objects have a pandas index, and the labels differ or are reordered.

    Rows are matched by position, as everywhere in scikit-learn. If both indices have the same
    labels in another order, or only some labels in common, rows would get the values of other
    people, and nobody would notice. Three cases do not raise:

    - The lengths differ, which other checks report.
    - One index just counts the rows (0, 1, 2 ...), which does not identify them, and the other has
      other labels. There is a warning if these are evenly spaced integers, because ``X.iloc[:200]``
      with ``groups.iloc[200:]`` looks the same as a new column with a part of a table.
    - The indices have no label in common and are of different kinds, such as names and numbers.
    """
    if isinstance(table, _WITHOUT_INDEX) and isinstance(like, _WITHOUT_INDEX):
        return
    for column in table.values() if isinstance(table, Mapping) else ():
        check_alignment(column, like, role)
    refuse_lazy_frame(table, role.argument)
    refuse_lazy_frame(like, "The data beside it")
    import pandas as pd

    index, other = getattr(table, "index", None), getattr(like, "index", None)
    if index is None or other is None or callable(index) or callable(other):
        return
    if len(index) != len(other) or index.equals(other):
        return
    counted = pd.RangeIndex(len(index))
    # If one index just counts the rows, ``part`` is the other one, which may be a part of a table.
    part = other if index.equals(counted) else index if other.equals(counted) else None
    n_shared = min(index.isin(other).sum(), other.isin(index).sum())
    remedy = (
        f"Pass {role.argument}.loc[X.index], or drop the index with .to_numpy() if the order is "
        "right."
    )
    said = (
        "the same index labels in a different order. Rows are matched by position, so every row "
        f"would get the {role.level} of another one"
    )
    if n_shared < len(index):
        if part is not None:
            if len(part) > 2 and part.dtype.kind in "iu" and np.ptp(np.diff(part)) == 0:
                warn_user(
                    f"The index of {role.argument} starts with {index[0]} and that of the data "
                    f"with {other[0]}, so they may be of different rows, which are matched by "
                    f"position. {remedy}"
                )
            return
        if not n_shared and index.dtype != other.dtype:
            return
        said = f"only {n_shared} of {len(index)} index labels in common, so their rows differ"
    raise ValueError(f"{role.argument} and the data have {said}. {remedy}")


def check_aligned(**columns: object) -> object:
    """Raise if columns have pandas indices that do not agree, see :func:`check_alignment`.

    The columns are passed by the name of their argument. Returns the first one with an index, or
    None if none has one.
    """
    indexed = [c for c in columns.values() if hasattr(getattr(c, "index", 0), "equals")]
    like = indexed[0] if indexed else None
    for name, column in columns.items():
        if like is not None or not isinstance(column, _WITHOUT_INDEX):
            role = ROLES.get(name, Role(name, name, _VALUES.get(name, "value")))
            check_alignment(column, like, role)
    return like
