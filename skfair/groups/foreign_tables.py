"""Tables that numpy cannot read: pyarrow tables become pandas, and lazy frames raise."""

from __future__ import annotations

import sys
from typing import Any


def refuse_lazy_frame(table: object, argument: str) -> None:
    """Raise if the argument is a lazy frame or Series of Dask or polars, which has no rows yet."""
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


def from_arrow(values: Any) -> Any:
    """Return a table or a column of pyarrow as one of pandas, and anything else unchanged."""
    return values.to_pandas() if type(values).__module__ == "pyarrow.lib" else values
