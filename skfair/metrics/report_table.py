"""A DataFrame that prints compactly: each value with its interval in one column."""

from __future__ import annotations

from typing import Any

import numpy as np
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
    def _constructor(self) -> type[pd.DataFrame]:
        # Slices and computed frames are plain DataFrames: only the report prints as a report.
        return pd.DataFrame

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
        text = {}
        for name in self.columns:
            if name.endswith(("_low", "_high")) and name.rsplit("_", 1)[0] in self.columns:
                continue
            if f"{name}_low" in self.columns:
                columns = [self[name], self[f"{name}_low"], self[f"{name}_high"]]
                text[name] = [_interval_text(row, digits) for row in zip(*columns, strict=True)]
            elif self[name].dtype.kind == "f" and name != "n":
                text[name] = [_number_text(value, digits) for value in self[name]]
            else:
                text[name] = [f"{value:g}" if name == "n" else str(value) for value in self[name]]
        return pd.DataFrame(text, index=self.index)

    def __repr__(self) -> str:
        return str(self.compact().to_string())

    def _repr_html_(self) -> str:
        return str(self.to_html())

    def to_html(self, *args: Any, **kwargs: Any) -> Any:
        """Render the compact form as an HTML table; arguments as in pandas."""
        return self.compact().to_html(*args, **kwargs)


def _number_text(value: float, digits: int) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def _interval_text(row: tuple[float, ...], digits: int) -> str:
    value, low, high = row
    if np.isnan(value) or np.isnan(low):
        return _number_text(value, digits)
    return f"{value:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
