"""Types of the inputs of ONNX graphs, read from rows and from groups.

A table has one input for each column, with its name, and an array the input ``X``. skl2onnx reads
the types of numpy. Categories, columns of objects and types of pandas with missing values are read
here: as texts if any value is one, and otherwise as numbers.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

Typed = list[tuple[str, Any]]


def types_of_rows(X: Any) -> Typed:
    """Return name and type of each input for rows of X, a table or an array."""
    if hasattr(X, "columns"):
        return [(str(name), type_of_column(X[name])) for name in X.columns]
    from skl2onnx.common.data_types import _guess_numpy_type

    return [("X", _guess_numpy_type(X.dtype, [None, X.shape[1]]))]


def type_of_column(values: Any) -> Any:
    """Return the type of the input for a column."""
    from skl2onnx.common.data_types import (
        BooleanTensorType,
        DoubleTensorType,
        StringTensorType,
        _guess_numpy_type,
    )

    dtype, shape = getattr(values, "dtype", None), [None, 1]
    if isinstance(dtype, np.dtype) and dtype.kind in "biufSU":
        return _guess_numpy_type(dtype, shape)
    known = [own for own in np.asarray(values, dtype=object).tolist() if not _is_missing(own)]
    if not all(isinstance(own, bool | int | float | np.bool_ | np.number) for own in known):
        return StringTensorType(shape)
    if not known and getattr(dtype, "kind", "O") not in "biuf":
        return StringTensorType(shape)  # nothing but missing values
    if all(isinstance(own, bool | np.bool_) for own in known) and len(known) == len(values):
        return BooleanTensorType(shape)
    return DoubleTensorType(shape)


def _is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or NA, which is neither equal to itself nor different."""
    import pandas as pd

    return value is None or value is pd.NA or value != value


def type_of_groups(values: Any, levels: list[Any], name: str) -> Any:
    """Return the type of the input for some groups; raise if the groups of the fit are mixed.

    Numbers among which some are missing are of double precision, because no other input can be
    missing.
    """
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    is_text = {isinstance(level, str) for level in levels}
    if len(is_text) > 1 or not all(isinstance(own, str | bool | int | float) for own in levels):
        kinds = sorted({type(level).__name__ for level in levels})
        raise ValueError(
            f"The groups of {name!r} are of the types {', '.join(kinds)}, but an input of a graph "
            "has texts or numbers. Fit with groups of one of these, such as groups.astype(str)."
        )
    if is_text == {True}:
        return StringTensorType([None, 1])
    values = np.asarray(values)
    if values.dtype.kind in "iu":
        return Int64TensorType([None, 1])
    return type_of_column(values) if values.dtype.kind in "bf" else DoubleTensorType([None, 1])


def own_name(name: str, prefix: str, taken: Collection[str]) -> str:
    """Return a name for an input, with a prefix if a column of X has the same one."""
    while name in taken:
        name = f"{prefix}_{name}"
    return name
