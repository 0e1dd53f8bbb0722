"""Coordinates of the line pictures of a page; the drawing itself is a template."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from skfair._typing import FloatArray

# Size of the area inside the axes.
WIDTH, HEIGHT = 280.0, 200.0


def calibration_picture(table: pd.DataFrame) -> dict[str, Any]:
    """Return a line per group: mean target over mean score."""
    both = table[["mean_score", "mean_target"]].to_numpy(float)
    low, high = min(0.0, both.min()), max(1.0, both.max())
    if both.min() < 0 or both.max() > 1:
        low, high = both[:, 0].min(), both[:, 0].max()
        bottom, top = both[:, 1].min(), both[:, 1].max()
    else:
        bottom, top = low, high
    groups = [
        {
            "name": name,
            "points": _points(
                _scaled(rows["mean_score"].to_numpy(), low, high, WIDTH),
                HEIGHT - _scaled(rows["mean_target"].to_numpy(), bottom, top, HEIGHT),
            ),
        }
        for name, rows in table.groupby("group", sort=False)
    ]
    same = low == bottom and high == top
    return _picture(groups, (low, high), (bottom, top)) | {"diagonal": same, "marks": True}


def density_picture(table: pd.DataFrame) -> dict[str, Any]:
    """Return a line of steps per group: share of the rows over the score."""
    highest = max(max(shares) for shares in table["shares"])
    groups, edges = [], [0.0, 1.0]
    for name, edges, shares in zip(table["group"], table["edges"], table["shares"], strict=True):
        x = _scaled(np.repeat(edges, 2)[1:-1], edges[0], edges[-1], WIDTH)
        y = HEIGHT - _scaled(np.repeat(shares, 2), 0.0, highest, HEIGHT)
        groups.append({"name": name, "points": _points(x, y)})
    return _picture(groups, (edges[0], edges[-1]), (0.0, highest)) | {
        "diagonal": False,
        "marks": False,
    }


def _picture(
    groups: list[dict[str, Any]], across: tuple[float, float], up: tuple[float, float]
) -> dict[str, Any]:
    x = [(_place(tick, *across, WIDTH), text) for tick, text in ticks(*across)]
    y = [(HEIGHT - _place(tick, *up, HEIGHT), text) for tick, text in ticks(*up)]
    return {"groups": groups, "x": x, "y": y}


def ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return round numbers at equal distances within a range, and how they are written.

    Examples
    --------
    >>> from skfair.report.pictures import ticks
    >>> [text for _, text in ticks(0.0, 0.054)]
    ['0.00', '0.01', '0.02', '0.03', '0.04', '0.05']
    """
    if not high > low:
        return [(low, f"{low:g}")]
    power = 10.0 ** np.floor(np.log10((high - low) / 4))
    step = next(k * power for k in (1, 2, 5, 10) if (high - low) / (k * power) <= 6)
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    places = (np.arange(first, last + 1) * step).tolist()
    return [(place, f"{place + 0.0:,.{digits}f}") for place in places]


def _place(value: float, low: float, high: float, length: float) -> float:
    return round(float(_scaled(value, low, high, length)), 1)


def _scaled(values: Any, low: float, high: float, length: float) -> FloatArray:
    """Place values on an axis."""
    extent = high - low if high > low else 1.0
    return np.asarray((np.asarray(values, float) - low) / extent * length)


def _points(x: FloatArray, y: FloatArray) -> list[tuple[float, float]]:
    return [(round(a, 1), round(b, 1)) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
