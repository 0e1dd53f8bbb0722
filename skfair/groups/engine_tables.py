"""Tables in engines: rows are counted where they are, and only counts travel.

``Cohort.from_table`` calls :func:`read_kinds`. It groups a table of any library that narwhals knows
(DuckDB, polars, Spark, Ibis, Dask, pyarrow, pandas) by the columns of labels, groups and strata. A
*kind* is a combination of their values. It fetches the number of rows of each kind, and the sums of
their weights and of the squares. Rates, differences, tests and audits depend on nothing else, so
they are the same as those of the rows in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.groups.outcomes import explaining_missing
from skfair.utils.text import did_you_mean, listed, plural

if TYPE_CHECKING:
    import pandas as pd

# The arguments that name a column of labels.
LABELS = ("y_true", "y_pred", "before")
# A table of more kinds than this raises before they travel.
MOST_KINDS = 65_536
# Names of the columns of sums, which no column of a user has
_N, _WEIGHT, _SQUARES, _LEAST, _MISSING = (
    f"__skfair_{name}" for name in ("n", "weight", "squares", "least", "missing")
)


class Kinds(NamedTuple):
    """For how many rows each of few rows stands, and the sum of their squared weights."""

    counts: IntArray
    squares: FloatArray
    weight: str = ""  # name of the column of weights; "" if each row counts once

    def taken(self, rows: IntArray) -> Kinds:
        """Return some kinds."""
        return Kinds(self.counts[rows], self.squares[rows], self.weight)


def read_kinds(
    table: Any,
    columns: Mapping[str, list[str]],  # for each argument, such as "y_true", names of columns
    sample_weight: str | None,
) -> tuple[pd.DataFrame, FloatArray, Kinds]:
    """Return the kinds of the rows of a table, their weights, and what they stand for."""
    frame = _lazy(table)
    schema = frame.collect_schema()
    names = list(dict.fromkeys(name for own in columns.values() for name in own))
    if not columns.get("sensitive_features"):
        raise ValueError("sensitive_features is empty. Name the columns of the groups.")
    given: dict[str, list[str]] = dict(columns)
    if sample_weight is not None:
        given["sample_weight"] = [sample_weight]
    for argument, of_argument in given.items():
        for name in of_argument:
            if name not in schema:
                raise ValueError(
                    f"{argument}={name!r} is no column of the table.{did_you_mean(name, schema)} "
                    f"It has {listed(schema.names())}."
                )
    import narwhals as nw

    sums = [nw.len().alias(_N)]
    if sample_weight is not None:
        if not schema[sample_weight].is_numeric():
            raise TypeError(
                f"sample_weight={sample_weight!r} must be a column of numbers, but it has the type "
                f"{schema[sample_weight]}."
            )
        weight = nw.col(sample_weight).cast(nw.Float64)
        frame = frame.with_columns(
            weight.alias(_WEIGHT),
            (weight * weight).alias(_SQUARES),
            weight.alias(_LEAST),
            weight.is_null().cast(nw.Int64).alias(_MISSING),
        )
        sums += [nw.col(own).sum() for own in (_WEIGHT, _SQUARES, _MISSING)]
        sums += [nw.col(_LEAST).min()]
    counted = frame.group_by(*names).agg(*sums).sort(*names, nulls_last=True)
    found: pd.DataFrame = counted.head(MOST_KINDS + 1).collect().to_pandas()
    if len(found) > MOST_KINDS:
        raise ValueError(
            f"The columns {listed(names)} have more than {MOST_KINDS:,} combinations of values, so "
            "one of them looks like a number or an identifier. Bin it, or leave it out."
        )
    if not len(found):
        raise ValueError("The table has no rows.")
    counts = found[_N].to_numpy(np.int64)
    labels = {own[0]: found[own[0]] for name, own in columns.items() if name in LABELS}
    true = columns.get("y_true", [""])[0]
    decisions = {name: own for name, own in labels.items() if name != true}
    with explaining_missing((true, labels.get(true)), decisions, counts):
        for name, own in labels.items():
            if n_missing := int(counts[own.isna()].sum()):
                raise ValueError(
                    f"{name} has {plural(n_missing, 'missing value')} in {counts.sum():,} rows. "
                    "Leave these rows out of the table, or the column out of the call."
                )
    if sample_weight is None:
        return found[names], counts.astype(np.float64), Kinds(counts, counts.astype(np.float64))
    weights, squares = (found[own].to_numpy(np.float64) for own in (_WEIGHT, _SQUARES))
    problem, missing = "", int(found[_MISSING].sum())
    if missing:
        problem = f"has {plural(missing, 'missing value')}"
    elif not np.isfinite(weights).all():
        problem = "has values that are NaN or infinite"
    elif found[_LEAST].min() < 0:
        problem = "has negative numbers"
    if problem:
        raise ValueError(f"sample_weight={sample_weight!r} {problem}. Weights are 0 or larger.")
    return found[names], weights, Kinds(counts, squares, sample_weight)


def _lazy(table: Any) -> Any:
    """Return a table as a lazy frame of narwhals; raise if narwhals does not know it."""
    try:
        import narwhals as nw
    except ImportError as error:
        raise ImportError(
            "Cohort.from_table reads tables by narwhals, which scikit-learn 1.9 installs. "
            "Run: pip install narwhals"
        ) from error
    try:
        frame = nw.from_native(table)
    except TypeError as error:
        raise TypeError(
            "table must be a frame that narwhals knows, such as a DuckDB relation, a polars frame "
            f"or a pandas DataFrame, got {type(table).__name__}."
        ) from error
    return frame.lazy() if isinstance(frame, nw.DataFrame) else frame
