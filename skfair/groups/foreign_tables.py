"""Tables that numpy cannot read: a pyarrow Table is split, a polars LazyFrame refused."""

from __future__ import annotations

import sys
from typing import Any


def refuse_lazy_frame(table: object, argument: str) -> None:
    """Raise if the argument is a frame of Dask or polars that holds a query and no rows."""
    if hasattr(table, "__dask_graph__") and hasattr(table, "index"):
        raise TypeError(
            f"{argument} is a Dask collection, and rows are read in memory here. compute() it if "
            "it fits."
        )
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(table, polars.LazyFrame):
        raise TypeError(
            f"{argument} is a polars LazyFrame, which has no rows yet. Pass {argument}.collect()."
        )


def refuse_arrow_table(table: object, argument: str) -> None:
    """Raise if columns are to be taken by name from a pyarrow Table."""
    if _is_arrow_table(table):
        raise TypeError(
            f"{argument} is a pyarrow Table, from which no columns can be taken. "
            f"Pass {argument}.to_pandas()."
        )


def columns_of_table(table: Any) -> Any:
    """Return the columns of a pyarrow Table by name, and anything else as it is."""
    if not _is_arrow_table(table):
        return table
    return {name: table[name].to_pandas() for name in table.column_names}


def _is_arrow_table(table: object) -> bool:
    """Whether this is a pyarrow Table; one that nobody imported is none."""
    pyarrow = sys.modules.get("pyarrow")
    return pyarrow is not None and isinstance(table, pyarrow.Table)
