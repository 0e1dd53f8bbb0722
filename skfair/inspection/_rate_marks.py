"""How the rates of groups are drawn: bars or points, and the axes around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from skfair._typing import FloatArray
from skfair.inspection._style import GREY, Look, legend_beside, percent, with_options

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

# Models on the same axes differ by how their markers are filled.
_FILLS = ("full", "none", "left", "top")


def draw_bars(
    ax: Axes,
    values: FloatArray,
    rows: ArrayLike,
    height: float,
    style: Look,
    options: dict[str, Any],
    given: dict[str, Any],
) -> tuple[Any, Artist]:
    """Draw the bars of a rate; the second artist stands for the series."""
    from matplotlib.patches import Rectangle

    options |= {"height": height, "hatch": style.hatch, "edgecolor": "white"}
    options |= {"error_kw": {"ecolor": "black", "capsize": 3}}
    artist = ax.barh(rows, values, **with_options(Rectangle, options, given))
    return artist, artist.patches[0]


def draw_points(
    ax: Axes,
    values: FloatArray,
    rows: ArrayLike,
    model: int,
    style: Look,
    options: dict[str, Any],
    given: dict[str, Any],
) -> tuple[Any, Artist]:
    """Draw the points of a rate with their intervals; the second artist stands for the series."""
    from matplotlib.lines import Line2D

    fill = _FILLS[model % len(_FILLS)]
    options |= {"linestyle": "none", "marker": style.marker, "fillstyle": fill}
    options |= {"capsize": 3, "markerfacecoloralt": "white"}
    artist = ax.errorbar(values, rows, **with_options(Line2D, options, given))
    return artist, artist.lines[0]


def finish_rates(ax: Axes, n_rows: int, confidence: float | None) -> None:
    """Draw the lines between rows, the axis of rates and the legend."""
    for row in range(n_rows - 1):  # the whole sample is set off more strongly
        ax.axhline(row + 0.5, color=GREY, lw=1 if row == n_rows - 2 else 0.3, zorder=0.5)
    ax.set_xlim(-0.02, 1.02)
    ending = "" if confidence is None else f", with {percent(confidence)} confidence interval"
    ax.set_xlabel("Rate" + ending)
    legend_beside(ax)
