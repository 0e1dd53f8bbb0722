"""Arguments of metrics whose groups are known by probability, as those of weighted rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skfair._typing import FloatArray
from skfair.blocks.partitions import is_lazy
from skfair.groups.attributes import check_alignment, take_rows
from skfair.groups.probabilities import GroupProbabilities, check_length
from skfair.utils.validation import check_weights

# Sensitive features, control features, weights, and whether attributes are crossed.
GroupArguments = tuple[Any, Any, Any, bool]


def spread_rows(
    # Labels, scores and the like, each with a value per row or None
    columns: Sequence[Any],
    groups: GroupArguments,
) -> tuple[list[Any], GroupArguments]:
    """Return each row once for each group that it may belong to; plain groups as they are."""
    table, control, sample_weight, intersectional = groups
    if not isinstance(table, GroupProbabilities):
        return list(columns), groups
    if is_lazy(*columns, control, sample_weight):
        raise TypeError(
            "GroupProbabilities are read with rows in memory. compute() the Dask collections."
        )
    for column in (*columns, control, sample_weight):
        check_alignment(table, column)
        if hasattr(column, "__len__") and not isinstance(column, str | dict):
            check_length(table, len(column))
    rows = table.spread()
    weights: FloatArray | None = rows.shares
    if sample_weight is not None:
        own = check_weights(sample_weight, len(table))
        assert own is not None
        weights = rows.shares * own[rows.owners]
    elif (rows.shares == 1).all():
        weights = None

    def taken(column: Any) -> Any:
        return None if column is None else take_rows(column, rows.owners)

    spread = (rows.groups, taken(control), weights, intersectional)
    return [taken(column) for column in columns], spread
