"""What ``from_estimator`` reads from its arguments: groups, responses, fitted attributes."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from sklearn.utils.validation import check_is_fitted

from skfair._typing import ColumnNames, ColumnsLike, MatrixLike
from skfair.groups.attributes import check_alignment
from skfair.groups.named_columns import take_columns
from skfair.groups.sensitive import sensitive_of
from skfair.utils.response import layers
from skfair.utils.text import listed

SCORE_METHODS = ("decision_function", "predict_proba")


def read_groups(
    caller: str,
    X: MatrixLike | None,
    sensitive_features: ColumnsLike | None,
    sensitive: ColumnNames | None,
    estimator: object = None,
) -> Any:
    """Return the sensitive features: as passed, or taken from columns of X.

    Without either, the columns that the estimator's own ``sensitive`` names are used.
    """
    if sensitive_features is not None:
        if sensitive is not None:
            raise ValueError(
                f"{caller} got both sensitive_features and sensitive="
                f"{sensitive!r}. Use one of the two."
            )
        check_alignment(sensitive_features, X)
        return sensitive_features
    if sensitive is None and X is not None:
        sensitive = sensitive_of(estimator).columns
    if sensitive is None:
        raise ValueError(
            f"{caller} does not know the groups. Pass sensitive_features=, one value per row, or "
            "sensitive=, the columns of X that hold them."
        )
    if X is None:
        raise ValueError(
            f"{caller} got sensitive={sensitive!r} but no X to take them from. "
            "Pass X, or sensitive_features=."
        )
    return take_columns(X, sensitive)


def fitted_attribute(estimator: object, name: str, meaning: str) -> Any:
    """Return an attribute of a fitted estimator, looking inside searches and pipelines."""
    for candidate in layers(estimator):
        if hasattr(candidate, name):
            return getattr(candidate, name)
    check_is_fitted(estimator)
    kinds = [type(candidate).__name__ for candidate in layers(estimator)]
    raise AttributeError(
        f"{listed(kinds)} has no attribute {name}, {meaning}. Pass an estimator that stores it."
    )


def check_same_length(what: str, **columns: Sized) -> None:
    """Raise unless all arguments of a display have the same length."""
    for name, values in columns.items():
        if not hasattr(values, "__len__") or not getattr(values, "ndim", 1):
            raise TypeError(f"{name} must have one entry per {what}, got {values!r}.")
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"Every {what} needs one entry in each argument; {counts}.")
