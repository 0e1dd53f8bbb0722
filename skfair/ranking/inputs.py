"""Queries and options of a ranker, read from what the user passed."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _num_features

from skfair._typing import ColumnLike, MatrixLike
from skfair.groups.attributes import check_aligned
from skfair.groups.named_columns import column_positions, keep_columns, take_columns


def split_query(
    X: MatrixLike, query_id: ColumnLike | None, query_column: str | int | None
) -> tuple[Any, Any]:
    """Return X without the query column, and the queries."""
    check_aligned(X=X, query_id=query_id)
    if query_column is None:
        return X, query_id
    if query_id is not None:
        raise ValueError(
            f"query_id was passed although query_column={query_column!r} says that X holds the "
            "queries. Use one of the two."
        )
    (position,) = column_positions(X, query_column)
    rest = keep_columns(X, np.delete(np.arange(_num_features(X)), position))
    return rest, np.asarray(take_columns(X, query_column)).ravel()


def or_single_query(query_id: ColumnLike | None, n_samples: int) -> Any:
    """Return the queries; without any there is a single one."""
    return np.zeros(n_samples, np.int64) if query_id is None else query_id
