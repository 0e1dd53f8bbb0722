"""Tables that numpy cannot read: narwhals turns them into those of pandas, and lazy frames raise.

Frames and Series of pandas and polars are read as they are. Those of other libraries that narwhals
knows, such as pyarrow, become those of pandas. What narwhals wraps is unwrapped.
"""

from __future__ import annotations

from typing import Any

from skfair.utils.dask_collections import is_lazy

# Libraries whose objects are no frames, or are frames that need nothing. Narwhals is not imported
# for these.
_PLAIN = {"builtins", "numpy", "pandas", "scipy", "skfair"}


def refuse_lazy_frame(table: object, argument: str) -> None:
    """Raise if the argument is a lazy frame, which has no rows yet, or a table in an engine."""
    if is_lazy(table) and hasattr(table, "index"):
        raise TypeError(
            f"{argument} is a Dask collection, and rows are read in memory here. compute() it if "
            "it fits."
        )
    frame = _frame_of(table)
    if frame is not None and hasattr(frame, "collect"):
        native = type(frame.to_native())
        library, name = native.__module__.partition(".")[0].lstrip("_"), native.__name__
        raise TypeError(
            f"{argument} is a {library} {name}, which has no rows yet. Pass {argument}.collect(), "
            "or name the columns of the whole table where it is: data=table in a metric, report, "
            "test or audit, or skfair.Cohort.from_table."
        )


def native_table(values: Any) -> Any:
    """Return a table or column of another library as one of pandas, and others unchanged."""
    frame = _frame_of(values)
    if frame is None:  # narwhals knows the tables of pyarrow and their columns, but not its arrays
        return values.to_pandas() if type(values).__module__ == "pyarrow.lib" else values
    native, known = frame.to_native(), frame.implementation
    is_read = known.is_pandas() or known.is_polars() or hasattr(frame, "collect")
    return native if is_read else frame.to_pandas()


def _frame_of(values: Any) -> Any:
    """Return a frame or Series as narwhals wraps it, and None for anything else, such as Dask."""
    if type(values).__module__.partition(".")[0] in _PLAIN or is_lazy(values):
        return None
    import narwhals as nw

    frame = nw.from_native(values, pass_through=True, allow_series=True)
    return frame if isinstance(frame, nw.DataFrame | nw.LazyFrame | nw.Series) else None
