"""Take the sensitive columns out of X by name or position, and explain errors about columns.

Users who work without metadata routing keep the attributes in X, and name their columns in
estimators, scorers and splitters (``sensitive=``). :func:`take_columns` returns these columns, and
:func:`keep_columns` the others. If a fit fails, ``fit_method`` in ``base.py`` calls the functions
``note_*``, which add a note to the error if columns are the likely reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from numbers import Integral
from traceback import walk_tb
from typing import Any

import numpy as np
from scipy import sparse

from skfair._typing import ColumnNames, MatrixLike
from skfair.groups.foreign_tables import native_table
from skfair.utils.text import did_you_mean, listed


def column_positions(X: MatrixLike, columns: ColumnNames, argument: str = "sensitive") -> list[int]:
    """Return the positions in X of the named or numbered columns; raise for unknown ones."""
    if not isinstance(columns, str | Integral | Iterable):
        raise TypeError(
            f"{argument} must be a name, a position or a list of them, got {columns!r}."
        )
    wanted = [columns] if isinstance(columns, str | Integral) else list(columns)
    if not wanted:
        raise ValueError(f"{argument} is empty. Name at least one column, or pass None.")
    names = list(X.columns) if hasattr(X, "columns") else None
    n_columns = _as_table(X).shape[1] if names is None else len(names)
    positions = []
    for column in wanted:
        if names is not None and column in names:
            positions.append(names.index(column))
        elif isinstance(column, int | np.integer) and not isinstance(column, bool):
            if not -n_columns <= column < n_columns:
                raise ValueError(
                    f"{argument} has the position {column}, but X has {n_columns} columns."
                )
            positions.append(int(column) % n_columns)
        elif names is None:
            raise ValueError(
                f"{argument} names {column!r}, but X is a {type(X).__name__} without column "
                "names. Give positions, or pass a DataFrame (in a pipeline: "
                ".set_output(transform='pandas'))."
            )
        else:
            hint = did_you_mean(column, names)
            raise ValueError(f"X has no column {column!r}.{hint} Its columns are {listed(names)}.")
    if len(set(positions)) < len(positions):
        raise ValueError(f"{argument} names a column twice: {listed(wanted)}.")
    return positions


def take_columns(X: Any, columns: ColumnNames, argument: str = "sensitive") -> Any:
    """Return the sensitive features found in X: a DataFrame if X is one, else a 2-d array."""
    X = native_table(X)
    positions = column_positions(X, columns, argument)
    if hasattr(X, "iloc"):
        return X.iloc[:, positions]
    if hasattr(X, "columns"):
        return {X.columns[j]: X[X.columns[j]] for j in positions}
    table = _as_table(X)[:, positions]
    return table.toarray() if is_sparse(table) else table


def keep_columns(X: Any, positions: Iterable[int]) -> Any:
    """Return the columns of X at these positions, as the same kind of table."""
    positions = list(positions)
    if hasattr(X, "iloc"):
        return X.iloc[:, positions]
    if hasattr(X, "columns"):
        return X[[X.columns[j] for j in positions]]
    return _as_table(X)[:, positions]


def dropped_columns(estimator: Any) -> list[Any]:
    """Return the names of the columns that the last fit has kept out of the model."""
    names = getattr(estimator, "feature_names_in_", ())
    kept = set(getattr(estimator, "model_features_", names))
    return [name for name in names if name not in kept]


def columns_of_blind(estimator: Any, X: Any) -> Any:
    """Return the columns of X that a fitted model uses; None if it may use the groups.

    Audits search them for columns that tell the group.
    """
    final = getattr(estimator, "best_estimator_", estimator)
    final = getattr(final, "_final_estimator", final)  # the last step of a pipeline
    is_kept = getattr(getattr(final, "sensitive", None), "keep", False)
    if is_kept or getattr(final, "is_group_aware_", False):
        return None
    if hasattr(X, "columns"):
        dropped = dropped_columns(estimator)
        return keep_columns(X, [j for j, name in enumerate(X.columns) if name not in dropped])
    positions = getattr(estimator, "_model_positions", None)
    if positions is None or not hasattr(X, "shape") or X.shape[1] == len(positions):
        return X
    return keep_columns(X, positions)


def note_dropped(error: BaseException, dropped: Iterable[object]) -> None:
    """Add a note if the error of a model inside names a column that skfair dropped.

    An error that was raised in a file of skfair gets none.
    """
    *_, (frame, _) = walk_tb(error.__traceback__)
    is_ours = frame.f_globals.get("__name__", "").startswith("skfair.")
    missed = [name for name in dropped if repr(name) in str(error)]
    if missed and not is_ours:
        error.add_note(
            f"The model inside gets X without {listed(missed)}, which sensitive= names; "
            "Sensitive(..., keep=True) passes it on."
        )


def note_kinds(error: BaseException, X: Any, dropped: Iterable[object]) -> None:
    """Add a note on columns with text or dates, or with numbers whose squares overflow."""
    _note_overflow(error, X)
    dtypes: Any = getattr(X, "dtypes", None) if hasattr(X, "iloc") else None
    if not hasattr(dtypes, "items"):  # X is no DataFrame of pandas
        return
    kinds = {name: getattr(dtype, "kind", "O") for name, dtype in dtypes.items()}
    of_model = [name for name in kinds if name not in dropped]
    dates = [name for name in of_model if kinds[name] in "mM"]
    text = [name for name in of_model if kinds[name] not in "biufcmM"]
    if text and "could not convert string to float" in str(error):
        error.add_note(
            f"The model gets text in {listed(text)}. Encode such columns in a pipeline, for "
            "example with a ColumnTransformer; a column of groups that is named by sensitive= is "
            "kept out of the model."
        )
    elif dates and isinstance(error, TypeError) and re.search("date|time", str(error), re.I):
        error.add_note(
            f"The model gets dates or times in {listed(dates)}. Make numbers of them, such as the "
            f"days since the first one: (X[{dates[0]!r}] - X[{dates[0]!r}].min()).dt.days."
        )


def note_shapes(error: BaseException, X: Any, y: Any) -> None:
    """Add a remedy to an error of scikit-learn about the shape of X or y."""
    text, n_dimensions = str(error), getattr(y, "ndim", 1)
    has_one = re.search("Expected (2D array, got 1D array|a 2-dimensional container)", text)
    if has_one and n_dimensions == 2:
        error.add_note("X has one dimension and y has two. Pass X first: fit(X, y).")
    elif "y should be a 1d array" in text and n_dimensions == 2:
        error.add_note(
            "If each column of y stands for a class, pass their numbers: y.argmax(axis=1)."
        )
    elif "Input y contains NaN" in text:
        error.add_note("Drop the rows whose target is missing, from X, y and the groups.")
    elif "not 'dict'" in text and isinstance(X, list):
        error.add_note(
            "X is a list of dicts. Pass pandas.DataFrame(X), or a pipeline that begins with "
            "DictVectorizer."
        )


def _note_overflow(error: BaseException, X: Any) -> None:
    """Add a note to an error about NaN or infinity if squares of numbers in X overflow."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return
    largest = float(np.abs(values).max(initial=0.0))  # if it is NaN, the comparison is false
    if re.search("nan|inf", str(error), re.I) and largest > np.finfo(values.dtype).max ** 0.5:
        error.add_note(
            f"X has {values.dtype} numbers up to {largest:.1g}, whose squares overflow. Scale its "
            "columns, or pass X.astype(numpy.float64)."
        )


def is_sparse(X: MatrixLike) -> bool:
    """Whether X is a scipy sparse matrix or array (typed so that X stays Any)."""
    return bool(sparse.issparse(X))


def _as_table(X: Any) -> Any:
    """Return X as a table whose columns can be indexed; lists become object arrays."""
    if is_sparse(X):
        return X if X.format in ("csr", "csc") else X.tocsr()
    table = np.asarray(X, dtype=object) if isinstance(X, list | tuple) else np.asarray(X)
    if table.ndim != 2:
        raise ValueError(
            f"X must be 2-dimensional to take columns from it, got shape {table.shape}."
        )
    return table
