"""Parts of the pictures of benchmarks: small figures, names beside lines, rows of dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

GREY = "0.6"


def small(n_columns: int = 1, height: float = 2.6, width: float = 7.0, **options: Any) -> Any:
    """Return a figure of one row and its axes."""
    import matplotlib.pyplot as plt

    options = {"squeeze": False, "layout": "constrained", "figsize": (width, height), **options}
    figure, axes = plt.subplots(1, n_columns, **options)
    plt.close(figure)
    return figure, axes[0]


def name_ends(axes: Any, lines: Mapping[str, Any], gap: float = 0.09) -> None:
    """Write the name of each line on the right of the axes, as near to its end as others allow."""
    axes.get_xlim(), axes.get_ylim()  # limits that were not set are found now
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = {n: to_axes.transform(line.get_xydata()[-1])[1] for n, line in lines.items()}
    names = sorted(heights, key=heights.__getitem__)
    places = np.clip([heights[name] for name in names], 0, 1)
    for k in range(1, places.size):
        places[k] = max(places[k], places[k - 1] + gap)
    places -= max(0, places[-1] - 1)
    for k in range(places.size - 1)[::-1]:
        places[k] = min(places[k], places[k + 1] - gap)
    for place, name in zip(places, names, strict=True):
        axes.annotate(
            name,
            (1.02, place),
            xycoords="axes fraction",
            color=lines[name].get_color(),
            va="center",
        )


def rows_of_dots(
    axes: Any, rows: Mapping[str, Sequence[float]], *, color: str = "C0", **style: Any
) -> None:
    """Draw a row of dots for each name, from the top, and the name on the left."""
    for k, values in enumerate(rows.values()):
        style = {"ls": "", "marker": "o", "ms": 4, "alpha": 0.6, "mew": 0, **style}
        axes.plot(values, np.full(len(values), k), color=color, **style)
    name_rows(axes, list(rows))


def name_rows(axes: Any, names: Sequence[str]) -> None:
    """Write names on the left, from the top, without ticks."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)


def mark(axes: Any, value: float, text: str) -> None:
    """Draw an upright line with its name above the axes."""
    axes.axvline(value, color="0.35", lw=0.9)
    axes.annotate(
        text, (value, 1.01), xycoords=axes.get_xaxis_transform(), ha="center", fontsize="small"
    )


def pairs_of_dots(axes: Any, rows: Mapping[str, Sequence[float]], names: Sequence[str]) -> None:
    """Draw dots in each row, joined by a line; the names stand above those of the first row."""
    for k, values in enumerate(rows.values()):
        axes.plot(values, [k] * len(values), color="0.8", lw=2, zorder=1)
        for number, value in enumerate(values):
            axes.plot(value, k, marker="os^D"[number], color=f"C{number}", ls="")
    first = next(iter(rows.values()))
    sides = {min(first): "right", max(first): "left"} if len(first) > 2 else {}
    for number, (name, value) in enumerate(zip(names, first, strict=False)):
        place = {"xytext": (0, 7), "textcoords": "offset points", "ha": sides.get(value, "center")}
        axes.annotate(name, (value, 0), color=f"C{number}", fontsize="small", **place)
    name_rows(axes, list(rows))
    axes.set_ylim(top=-0.9)
