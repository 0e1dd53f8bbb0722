"""How rates of groups are drawn: points or bars with intervals, the look of a rate, the axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from skfair._typing import FloatArray
from skfair.inspection._style import (
    GREY,
    Look,
    legend_beside,
    look,
    percent,
    plain,
    with_options,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# The columns of ``group_report`` that are rates; each keeps its colour in all pictures.
KNOWN_RATES = (
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "positive_predictive_value",
    "accuracy",
    "base_rate",
)
# Models on the same axes differ by how their markers are filled.
_FILLS = ("full", "none", "left", "top")


def draw_bars(
    ax: Axes,
    values: FloatArray,
    rows: ArrayLike,
    height: float,
    style: Look,
    options: dict[str, Any],
    overrides: dict[str, Any],
) -> tuple[Any, Artist]:
    """Draw the bars of a rate; the second artist stands for the series."""
    from matplotlib.patches import Rectangle

    options |= {"height": height, "hatch": style.hatch, "edgecolor": "white"}
    options |= {"error_kw": {"ecolor": "black", "capsize": 3}}
    artist = ax.barh(rows, values, **with_options(Rectangle, options, overrides))
    return artist, artist.patches[0]


def draw_points(
    ax: Axes,
    values: FloatArray,
    rows: ArrayLike,
    model: int,
    style: Look,
    options: dict[str, Any],
    overrides: dict[str, Any],
) -> tuple[Any, Artist]:
    """Draw the points of a rate with their intervals; the second artist stands for the series."""
    from matplotlib.lines import Line2D

    fill = _FILLS[model % len(_FILLS)]
    options |= {"linestyle": "none", "marker": style.marker, "fillstyle": fill}
    options |= {"capsize": 3, "markerfacecoloralt": "white"}
    artist = ax.errorbar(values, rows, **with_options(Line2D, options, overrides))
    return artist, artist.lines[0]


def finish(ax: Axes, n_rows: int, confidence: float | None, reference: str | None) -> None:
    """Draw the lines between rows, the axis of rates and the legend."""
    for row in range(n_rows - 1):  # the whole sample is set off more strongly
        ax.axhline(row + 0.5, color=GREY, lw=1 if row == n_rows - 2 else 0.3, zorder=0.5)
    if reference is None:
        ax.set_xlim(-0.02, 1.02)
    what = "Rate" if reference is None else plain(f"Difference from {reference} (below 0: lower)")
    ending = "" if confidence is None else f", with {percent(confidence)} confidence interval"
    ax.set_xlabel(what + ending)
    legend_beside(ax)


def look_of(rate: str, number: int) -> Look:
    """Return the look of a rate: the same in all pictures if it is a known one."""
    known = rate in KNOWN_RATES
    return look(KNOWN_RATES.index(rate) if known else len(KNOWN_RATES) + number)


def errors(
    values: FloatArray,
    ends: Sequence[tuple[FloatArray | None, FloatArray | None]],
    rate: int,
) -> FloatArray | None:
    """Return the lengths of the error bars of a rate to the left and to the right."""
    lengths = []
    for (groups, overall), sign in zip(ends, (1, -1), strict=True):
        if groups is None:
            return None
        end = np.append(groups[rate], np.nan if overall is None else overall[rate])
        lengths.append(sign * (values - end))
    # Few rows that are drawn again may all lie on one side of the rate.
    return np.asarray(np.maximum(np.stack(lengths), 0.0))
