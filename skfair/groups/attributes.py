"""Read the columns of sensitive features from whatever the user passed, and refuse bad ones.

A list, array, Series, DataFrame (pandas, polars), extension array or dict of columns becomes a list
of ``(name or None, 1-d values)`` pairs. What the values mean is decided in
:mod:`skfair.groups.encoding`; here only their shape and their fitness as groups are checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from skfair.utils.factorize import Factorized
from skfair.utils.text import plural

Columns: TypeAlias = list[tuple[str | None, Any]]

# More levels than this in a numeric attribute mean a continuous quantity, not groups.
MAX_NUMERIC_LEVELS = 50
# More levels than this in any attribute mean an identifier.
MAX_LEVELS = 1000


def read_columns(sensitive_features: Any) -> Columns:
    """Split sensitive features into (name or None, 1-d values) pairs."""
    if sparse.issparse(sensitive_features):
        raise TypeError(
            "sensitive_features is a sparse matrix. Pass a dense 1-d array, or one column per "
            "attribute."
        )
    columns: Columns
    if isinstance(sensitive_features, Mapping):
        columns = [(str(name), _one_column(v)) for name, v in sensitive_features.items()]
        for name, values in columns:
            if getattr(values, "ndim", 1) != 1:
                raise ValueError(
                    f"The column {name!r} of sensitive_features must be 1-dimensional, got the "
                    f"shape {values.shape}."
                )
    elif hasattr(sensitive_features, "columns"):  # pandas, polars and friends
        frame = sensitive_features
        columns = [(str(name), _one_column(frame[name])) for name in frame.columns]
        if any(getattr(values, "ndim", 1) != 1 for _, values in columns):
            raise ValueError("sensitive_features has two columns of the same name. Rename one.")
    elif hasattr(sensitive_features, "name") and hasattr(sensitive_features, "dtype"):  # Series
        name = sensitive_features.name
        columns = [(None if name is None else str(name), _one_column(sensitive_features))]
    else:
        columns = [(None, values) for values in _array_columns(sensitive_features)]
    if not columns or len(columns[0][1]) == 0:
        raise ValueError("sensitive_features is empty. Pass one value per row of X.")
    if len({len(values) for _, values in columns}) > 1:
        raise ValueError("The columns of sensitive_features differ in length.")
    return columns


def _one_column(values: Any) -> Any:
    """Return a 1-d column in a form that :func:`factorize` reads without a copy."""
    if isinstance(getattr(values, "dtype", None), np.dtype):
        return np.asarray(values)
    if hasattr(values, "array"):  # a pandas extension array
        return values.array
    array = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
    if not array.ndim:
        raise TypeError(
            f"sensitive_features must hold one value per row in each column, got {values!r}."
        )
    return array


def _array_columns(values: Any) -> list[Any]:
    """Split an array or nested list into columns."""
    if values is None or isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(
            f"sensitive_features must be array-like with one value per row, got {values!r}."
        )
    if isinstance(values, list | tuple):
        # numpy would turn ["f", 1] into strings and lose the type of the levels.
        array = np.asarray(values, dtype=object)
    elif hasattr(values, "dtype") and not isinstance(values.dtype, np.dtype):
        return [values]  # a pandas extension array
    else:
        array = np.asarray(values)
    if array.ndim == 1:
        if array.size and isinstance(array[0], list | tuple | np.ndarray):
            raise ValueError("The rows of sensitive_features differ in length.")
        return [array]
    if array.ndim != 2:
        raise ValueError(
            f"sensitive_features has {array.ndim} dimensions. Pass one value per row of X, or one "
            "column per attribute."
        )
    return [np.ascontiguousarray(array[:, j]) for j in range(array.shape[1])]


def check_length(columns: Columns, n_samples: int | None) -> None:
    """Raise if the number of rows is not the expected one."""
    n_rows = len(columns[0][1])
    if n_samples is not None and n_rows != n_samples:
        raise ValueError(
            f"sensitive_features has {n_rows} rows but X has {n_samples}. Pass one value per row "
            "of X."
        )


def check_missing(found: Factorized, name: str) -> None:
    """Raise if an attribute has missing values, and say how many."""
    n_missing = int(np.count_nonzero(found.codes < 0))
    if n_missing:
        raise ValueError(
            f"Sensitive attribute {name!r} has {plural(n_missing, 'missing value')} in "
            f"{found.codes.size} rows. Drop these rows, impute them, or make 'unknown' a group of "
            "its own with .fillna('unknown')."
        )


def check_discrete(found: Factorized, name: str, values: Any) -> None:
    """Raise if an attribute looks continuous or like an identifier."""
    kind = getattr(getattr(values, "dtype", None), "kind", "O")
    n_levels = len(found.levels)
    if n_levels > MAX_NUMERIC_LEVELS and kind in "iufcmM":
        raise ValueError(
            f"Sensitive attribute {name!r} has {n_levels} different numeric values, which looks "
            f"continuous (at most {MAX_NUMERIC_LEVELS} are read as groups). Bin it, for example "
            "with pandas.qcut; if the numbers really are codes of groups, pass them as strings or "
            "as a pandas Categorical."
        )
    if n_levels > MAX_LEVELS:
        raise ValueError(
            f"Sensitive attribute {name!r} has {n_levels} levels (at most {MAX_LEVELS} are read "
            "as groups), which looks like an identifier. Merge levels into groups."
        )
