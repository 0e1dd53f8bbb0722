"""Coordinates of the pictures of a page, which templates draw as SVG.

The functions return plain dicts and lists for a template. ``pages.py`` calls
:func:`calibration_picture`, :func:`density_picture` and :func:`whiskers`. :class:`Axis` also serves
other pages. Vertical axes run from a larger coordinate to 0, because SVG counts from the top.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from skfair.report.results.result import parts
from skfair.report.tables.tasks import BEFORE

# Size of the area inside the axes of the pictures of scores.
WIDTH, HEIGHT = 280.0, 200.0


@dataclass(frozen=True)
class Axis:
    """Numbers from ``low`` to ``high``, drawn between the coordinates ``start`` and ``end``."""

    low: float
    high: float
    start: float
    end: float

    def place(self, values: Any, digits: int = 1) -> Any:
        """Return the coordinates of a number or of an array, as plain numbers."""
        extent = self.high - self.low if self.high > self.low else 1.0
        shares = (np.asarray(values, float) - self.low) / extent
        return np.round(self.start + shares * (self.end - self.start), digits).tolist()

    def ticks(self) -> list[tuple[float, str]]:
        """Return the coordinates of round numbers at equal distances, and how they are written.

        Examples
        --------
        >>> from skfair.report.results.pictures import Axis
        >>> Axis(0.0, 0.054, 0, 270).ticks()[:3]
        [(0.0, '0.00'), (50.0, '0.01'), (100.0, '0.02')]
        """
        low, high = self.low, self.high
        if not high > low:
            return [(self.place(low), f"{low:g}")]
        power = 10.0 ** np.floor(np.log10((high - low) / 4))
        step = next(k * power for k in (1, 2, 5, 10) if (high - low) / (k * power) <= 6)
        first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
        digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
        values = (np.arange(first, last + 1) * step).tolist()
        return [(self.place(value), f"{value + 0.0:,.{digits}f}") for value in values]


def calibration_picture(table: pd.DataFrame) -> dict[str, Any]:
    """Return a line per group, mean target over mean score, from the table ``calibration``.

    The picture has a diagonal if both axes have the same range.
    """
    scores, targets = table["mean_score"], table["mean_target"]
    both = pd.concat([scores, targets])
    are_shares = both.min() >= 0 and both.max() <= 1
    low, high = (0.0, 1.0) if are_shares else (scores.min(), scores.max())
    bottom, top = (0.0, 1.0) if are_shares else (targets.min(), targets.max())
    lines = {name: (own["mean_score"], own["mean_target"]) for name, own in parts(table, "group")}
    picture = _lines(lines, Axis(low, high, 0.0, WIDTH), Axis(bottom, top, HEIGHT, 0.0))
    return picture | {"diagonal": (low, high) == (bottom, top), "marks": True}


def density_picture(table: pd.DataFrame) -> dict[str, Any]:
    """Return a line of steps per group: the density of its rows over the score.

    The bins are those of the table ``calibration``.
    """
    low, high = table["score_low"], table["score_high"]
    table = table.assign(
        height=table["n"] / table.groupby("group")["n"].transform("sum") / (high - low)
    )
    lines = {
        name: (own[["score_low", "score_high"]].to_numpy().ravel(), np.repeat(own["height"], 2))
        for name, own in parts(table, "group")
    }
    across = Axis(low.min(), high.max(), 0.0, WIDTH)
    up = Axis(0.0, table["height"].max(), HEIGHT, 0.0)
    picture = _lines(lines, across, up)
    return picture | {"diagonal": False, "marks": False}


def _lines(lines: dict[Any, tuple[Any, Any]], across: Axis, up: Axis) -> dict[str, Any]:
    """Return the points of lines, given as (x, y) by the name of the group, and the ticks."""
    groups = [
        {"name": name, "points": list(zip(across.place(x), up.place(y), strict=True))}
        for name, (x, y) in lines.items()
    ]
    return {"groups": groups, "x": across.ticks(), "y": up.ticks()}


def whiskers(rates: pd.DataFrame, measure: str, overall: float, has_before: bool) -> dict[str, Any]:
    """Return a picture of one measure: a dot with its interval for each group, on one scale.

    ``rates`` are rows of the table ``rates``, ``overall`` is the value of all rows, and
    ``has_before`` says whether the value of the earlier model is drawn too. ``n_more`` in the
    result is the number of groups that are not drawn. It is 0 here, and a caller that leaves out
    groups changes it.
    """
    rows = rates[rates["measure"] == measure]
    then = rates[rates["measure"] == BEFORE + measure].set_index("group")["value"]  # earlier model
    numbers = np.concatenate(
        [rows[["value", "value_low", "value_high"]].to_numpy(float).ravel(), then]
    )
    every = np.append(numbers, overall).astype(float)
    every = every[np.isfinite(every)]
    is_share = measure not in ("mean_residual", "mean_absolute_error", "mean_prediction")
    low, high = (0.0, 1.0) if is_share or not every.size else (every.min(), every.max())
    axis = Axis(min(low, 0.0), high if high > low else low + 1.0, 0.0, 300.0)

    def place(value: float) -> float | None:
        return float(axis.place(value, 2)) if np.isfinite(value) else None

    return {
        "measure": measure,
        "low": axis.low,
        "high": axis.high,
        "overall": place(overall),
        "has_before": has_before,
        "n_more": 0,
        "rows": [
            {
                "row": row,
                "at": place(row.value),
                "from": place(row.value_low),
                "to": place(row.value_high),
                "before": place(then[row.group]) if has_before else None,
            }
            for row in list[Any](rows.itertuples(index=False))
        ],
    }
