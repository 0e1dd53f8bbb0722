"""Tables that numpy cannot read: pyarrow tables become pandas, and lazy frames raise.

Frames and Series of narwhals, which wrap those of another library, become what they wrap.
"""

from __future__ import annotations

import sys
from typing import Any

from skfair.utils.dask_collections import is_lazy


def refuse_lazy_frame(table: object, argument: str) -> None:
    """Raise if the argument is a lazy frame or Series of Dask or polars, which has no rows yet."""
    table = _unwrapped(table)
    if is_lazy(table) and hasattr(table, "index"):
        raise TypeError(
            f"{argument} is a Dask collection, and rows are read in memory here. compute() it if "
            "it fits."
        )
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(table, polars.LazyFrame):
        raise TypeError(
            f"{argument} is a polars LazyFrame, which has no rows yet. Pass {argument}.collect()."
        )


def native_table(values: Any) -> Any:
    """Return a table or column of narwhals as what it wraps, one of pyarrow as one of pandas.

    Anything else is returned unchanged.
    """
    values = _unwrapped(values)
    return values.to_pandas() if type(values).__module__ == "pyarrow.lib" else values


def _unwrapped(values: Any) -> Any:
    """Return what a frame or Series of narwhals wraps, and anything else unchanged."""
    is_wrapper = type(values).__module__.partition(".")[0] == "narwhals"
    return values.to_native() if is_wrapper else values
