"""The pictures of the benchmark ``fairness_constrained_benchmark``."""

from collections.abc import Sequence
from typing import Any

import numpy as np

BINS = np.linspace(0, 1, 21)  # of figure 3
METRICS = ("Ind", "Sp", "Ina", "Sf", "Wd")
WORDS = {"gap": "difference", "rule": "constraint"}  # in records, and as tables show them


def worded(text: str) -> str:
    """Return the words of a record as tables and pictures have them."""
    return " ".join(WORDS.get(word, word) for word in text.split(" "))


def draw_curves(
    found: dict[str, Any], names: Sequence[str], curves: Sequence[str], bound: float
) -> Any:
    """Draw one column per algorithm: quartiles, median and mean over CPU seconds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.4 * len(names) + 1, 2.0 * len(curves)), layout="constrained")
    axes = figure.subplots(len(curves), len(names), sharey="row", squeeze=False)
    for (row, column), ax in np.ndenumerate(axes):
        one, curve = found[names[column]], curves[row]
        seconds, lines = one["seconds"], one[curve]
        ax.fill_between(seconds, lines["low"], lines["high"], alpha=0.25, linewidth=0)
        ax.plot(seconds, lines["median"], label="median")
        ax.plot(seconds, lines["mean"], "--", linewidth=1, label="mean")
        if curve.endswith("gap"):
            ax.axhspan(-bound, bound, color="0.7", zorder=0)
        if not row:
            ax.set_title(names[column])
        if not column:
            ax.set_ylabel(worded(curve))
        if row == len(curves) - 1:
            ax.set_xlabel("CPU seconds")
    axes[0, 0].legend(frameon=False)
    return figure


def draw_predictions(found: dict[str, Any], names: Sequence[str]) -> Any:
    """Draw the shares of both groups whose predicted probability is in each bin."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(2.4 * len(names) + 1, 2.6), layout="constrained")
    for ax, name in zip(figure.subplots(1, len(names), sharey=True), names, strict=True):
        white, other = found[name]["shares"]
        ax.stairs(white, BINS, fill=True, alpha=0.45, color="tab:blue", label="white")
        ax.stairs(other, BINS, fill=True, alpha=0.45, color="tab:red", label="non-white")
        ax.set(title=name, xlabel="predicted probability", yscale="log")
    figure.axes[0].set_ylabel("share of the group")
    figure.axes[0].legend(frameon=False)
    return figure


def draw_spiders(found: dict[str, Any], names: Sequence[str]) -> Any:
    """Draw the means of four metrics, on training and on test rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    metrics = METRICS[:4]
    angles = np.arange(5) * np.pi / 2
    axes = figure.subplots(1, 2, subplot_kw={"projection": "polar"}, sharey=True)
    for ax, part in zip(axes, ("train", "test"), strict=True):
        for name in names:
            means = [found[name][part][metric][0] for metric in metrics]
            ax.plot(angles, [*means, means[0]], label=name)
        ax.set_xticks(angles[:4], metrics)
        ax.set_title(part)
    axes[1].legend(loc="center left", bbox_to_anchor=(1.15, 0.5), frameon=False)
    return figure
