"""A DataFrame that prints compactly: each value with its interval in one column."""

from __future__ import annotations

from typing import Any

import pandas as pd


class Report(pd.DataFrame):
    """A DataFrame that prints ``name``, ``name_low`` and ``name_high`` as one column.

    Examples
    --------
    >>> from skfair.metrics import group_report
    >>> report = group_report([1, 0, 1, 0], [1, 0, 0, 0], sensitive_features=["f", "f", "m", "m"])
    >>> isinstance(report, Report), float(report.loc["f", "selection_rate"])
    (True, 0.5)
    """

    @property
    def _constructor(self) -> type[Report]:
        # Copies, rounded reports and selections of columns print as reports too.
        return Report

    def compact(self, digits: int = 3) -> pd.DataFrame:
        """Return the report as text: each value with its interval, as it is printed.

        Parameters
        ----------
        digits : int, default=3
            Digits after the decimal point.

        Returns
        -------
        text : DataFrame of str
            One column per value.
        """
        text, names = pd.DataFrame(index=self.index), list(self.columns)
        intervals = [name for name in names if _has_interval(name, names)]
        ends = {f"{name}_{end}" for name in intervals for end in ("low", "high")}
        for place, name in enumerate(names):
            values = self.iloc[:, place]
            if name in ends:
                continue
            if name in intervals:
                columns = [values, self[f"{name}_low"], self[f"{name}_high"]]
                cells = [_interval_text(row, digits) for row in zip(*columns, strict=True)]
            else:
                cells = _column_text(values, 0 if name == "n" else digits)
            text.insert(text.shape[1], name, cells, allow_duplicates=True)
        return text.set_axis([name for name in names if name not in ends], axis=1)

    def __repr__(self) -> str:
        return str(self.compact().to_string())

    def _repr_html_(self) -> str:
        return str(self.to_html())

    def to_html(self, *args: Any, **kwargs: Any) -> Any:
        """Render the compact form as an HTML table; arguments as in pandas."""
        return self.compact().to_html(*args, **kwargs)


def _has_interval(name: object, names: list[Any]) -> bool:
    """Whether a column is the only one of its name and has both ends of an interval."""
    columns = [name, f"{name}_low", f"{name}_high"]
    return isinstance(name, str) and all(names.count(column) == 1 for column in columns)


def _column_text(values: pd.Series, digits: int) -> list[str]:
    """Return the cells of a column without an interval."""
    if values.dtype.kind != "f":
        return [" ".join(str(value).split()) for value in values]
    return [_number_text(value, digits) for value in values]


def _number_text(value: float, digits: int) -> str:
    return "-" if pd.isna(value) else f"{value:.{digits}f}"


def _interval_text(row: tuple[float, ...], digits: int) -> str:
    value, low, high = row
    if pd.isna(value) or pd.isna(low):
        return _number_text(value, digits)
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
