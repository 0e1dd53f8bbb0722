"""Densities and histograms of scores: the points of an outline, and how it is drawn.

Large samples are counted on a fine grid before smoothing, which changes nothing visible and keeps
the cost independent of the number of rows.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from scipy.stats import gaussian_kde

from skfair._typing import FloatArray
from skfair.inspection._style import look, with_options

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Bandwidth = Literal["scott", "silverman"] | float
Outline = tuple[FloatArray, FloatArray]  # positions and heights

# Above this many rows the scores are counted in this many bins before smoothing.
_N_BINS = 4096


def histogram(scores: FloatArray, weights: FloatArray | None, edges: FloatArray) -> Outline:
    """Return the edges and the share of the scores per unit of score in each bin."""
    counts, _ = np.histogram(scores, bins=edges, weights=weights)
    total = scores.size if weights is None else weights.sum()
    return edges, counts / (total * np.diff(edges))


def density(
    scores: FloatArray,
    weights: FloatArray | None,
    bw_method: Bandwidth,
    bounds: tuple[float, float] | None,
) -> Outline:
    """Evaluate the density of scores on a grid; no heights if all scores are equal."""
    if weights is None:
        weights = np.ones(scores.size)
    scores, weights = scores[weights > 0], weights[weights > 0] / weights.max()
    n_effective = weights.sum() ** 2 / (weights**2).sum()
    low, high = scores.min(), scores.max()
    if high - low > 1e150:
        raise ValueError(
            f"scores from {low:g} to {high:g} are too far apart for a density. Divide them, or "
            "pass kind='hist'."
        )
    # Equal up to rounding, so close that squares vanish, or one row that outweighs all others:
    # nothing to estimate from.
    smallest = max(1e-9 * max(abs(low), abs(high)), 1e-150)
    if high - low <= smallest or n_effective - 1 < 1e-9:
        return np.array([scores[np.argmax(weights)]]), np.empty(0)
    factor = _bandwidth(bw_method, n_effective)
    if scores.size > _N_BINS:
        counts, edges = np.histogram(scores, bins=_N_BINS, weights=weights)
        scores, weights = ((edges[1:] + edges[:-1]) / 2)[counts > 0], counts[counts > 0]
        # scipy divides the variance by 1 - 1 / n for the n it sees, here that of the bins.
        seen = weights.sum() ** 2 / (weights**2).sum()
        factor *= np.sqrt((1 - 1 / seen) / (1 - 1 / n_effective))
    kernels = gaussian_kde(scores, bw_method=factor, weights=weights)
    # Three bandwidths beyond the outermost scores 99.7% of their kernels are drawn.
    margin = 3 * float(np.sqrt(kernels.covariance[0, 0]))
    lowest, highest = (-np.inf, np.inf) if bounds is None else bounds
    x = np.linspace(max(low - margin, lowest), min(high + margin, highest), 400)
    heights = kernels(x)
    for end in (lowest, highest):
        if np.isfinite(end):  # what would leak over the end is reflected
            heights = heights + kernels(2 * end - x)
    return x, heights


def _bandwidth(bw_method: Bandwidth, n: float) -> float:
    """Return the bandwidth in standard deviations of the scores; as scipy for n rows."""
    if bw_method == "scott":
        return float(n**-0.2)
    if bw_method == "silverman":
        return float((0.75 * n) ** -0.2)
    if not isinstance(bw_method, Real) or not 0 < bw_method < np.inf:
        raise ValueError(
            f"bw_method must be 'scott', 'silverman' or a number above 0, got {bw_method!r}."
        )
    return float(bw_method)


class Place(NamedTuple):
    """Where a group is drawn: its base line, its scale, the largest height, and its look."""

    base: float
    scale: float
    highest: float
    number: int


def draw_outline(
    ax: Axes,
    outline: Outline,
    kind: Literal["density", "hist"],
    place: Place,
    label: str,
    overrides: dict[str, Any],
) -> Any:
    """Draw the outline of a group; scores that are all equal are a vertical line."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch

    x, heights = outline
    style, is_steps = look(place.number), kind == "hist" and heights.size > 0
    options: dict[str, Any] = {"color": style.color, "linestyle": style.linestyle}
    options |= {"label": label, "linewidth": 1.5 if heights.size else 3}
    options = with_options(StepPatch if is_steps else Line2D, options, overrides)
    if is_steps:
        return ax.stairs(place.base + place.scale * heights, x, baseline=place.base, **options)
    if not heights.size:
        x, heights = np.repeat(x, 2), np.array([0.0, place.highest])
    return ax.plot(x, place.base + place.scale * heights, **options)[0]


def shade_ranges(ax: Axes, outline: Outline, place: Place, ranges: FloatArray) -> list[Artist]:
    """Fill the parts of a density, or of a histogram, that lie in the interval."""
    from matplotlib.colors import to_rgba

    x, heights = outline
    base, scale, _, number = place
    style = look(number)
    options: dict[str, Any] = {
        "facecolor": to_rgba(style.color, 0.3),
        "edgecolor": to_rgba(style.color, 0.6),
        "hatch": style.hatch,
        "linewidth": 0,
    }
    shades: list[Artist] = []
    for low, high in ranges:
        cut = np.unique(np.clip(x, low, high))
        if cut.size < 2:  # the interval lies within a tie and has no width
            continue
        if heights.size == x.size:
            level = np.interp(cut, x, heights)
            shades.append(ax.fill_between(cut, base, base + scale * level, **options))
        else:
            middle = (cut[1:] + cut[:-1]) / 2
            level = heights[np.searchsorted(x, middle, side="right") - 1]
            top = base + scale * level
            shades.append(ax.stairs(top, cut, baseline=base, fill=True, **options))
    return shades
