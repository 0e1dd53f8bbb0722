"""Parts of the pictures of scores: densities, histograms, and percentile intervals of groups.

``GroupScoreDisplay`` uses all functions, and ``CCDFCurveDisplay`` those about intervals. An
*outline* is a pair of arrays: grid points and the density at each, or edges of bins and the heights
between them, which are one fewer. If all scores are equal there is no density, and the outline has
one position and no heights.

Large samples are counted on a fine grid before smoothing, which changes nothing visible and keeps
the cost independent of the number of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import gaussian_kde

from skfair._typing import FloatArray, IntervalLike
from skfair.groups.encoding import GroupLevels
from skfair.groups.intervals import Intervals
from skfair.inspection._style import Look, as_series, percent, with_options
from skfair.utils.rounding import ROUNDING

Bandwidth = Literal["scott", "silverman"] | float
Outline = tuple[FloatArray, FloatArray]  # positions and heights

# If there are more rows than this, scores are counted in this many bins before smoothing.
_N_BINS = 4096


def histogram(scores: FloatArray, weights: FloatArray, edges: FloatArray) -> Outline:
    """Return the edges and the share of the scores per unit of score in each bin."""
    counts, _ = np.histogram(scores, bins=edges, weights=weights)
    return edges, counts / (weights.sum() * np.diff(edges))


def density(
    scores: FloatArray,
    weights: FloatArray,
    bw_method: Bandwidth,
    bounds: tuple[float, float] | None,
) -> Outline:
    """Return the density of scores on a grid, or an outline without heights if they are equal.

    ``bounds`` are the ends of the possible scores, or None. The density is reflected there, so that
    it does not extend beyond them.
    """
    scores, weights = scores[weights > 0], weights[weights > 0] / weights.max()
    n_effective = weights.sum() ** 2 / (weights**2).sum()
    low, high = scores.min(), scores.max()
    if high - low > 1e150:
        raise ValueError(
            f"scores from {low:g} to {high:g} are too far apart for a density. Divide them, or "
            "pass kind='hist'."
        )
    # A density cannot be estimated if scores are equal up to rounding, or so close that the squares
    # of differences are 0, or if one row outweighs all others.
    smallest = max(1e-9 * max(abs(low), abs(high)), 1e-150)
    if high - low <= smallest or n_effective - 1 < 1e-9:
        return np.array([scores[np.argmax(weights)]]), np.empty(0)
    factor = _bandwidth(bw_method, n_effective)
    if scores.size > _N_BINS:
        counts, edges = np.histogram(scores, bins=_N_BINS, weights=weights)
        scores, weights = ((edges[1:] + edges[:-1]) / 2)[counts > 0], counts[counts > 0]
        # scipy divides the variance by 1 - 1 / n, with the effective number of bins as n. The
        # factor replaces it by the effective number of rows.
        seen = weights.sum() ** 2 / (weights**2).sum()
        factor *= np.sqrt((1 - 1 / seen) / (1 - 1 / n_effective))
    kernels = gaussian_kde(scores, bw_method=factor, weights=weights)
    # The grid reaches three bandwidths beyond the outermost scores, where 99.7% of their kernels
    # are drawn.
    margin = 3 * float(np.sqrt(kernels.covariance[0, 0]))
    lowest, highest = (-np.inf, np.inf) if bounds is None else bounds
    x = np.linspace(max(low - margin, lowest), min(high + margin, highest), 400)
    heights = kernels(x)
    for end in (lowest, highest):
        if np.isfinite(end):  # the part of the density beyond the end is reflected
            heights = heights + kernels(2 * end - x)
    return x, heights


def _bandwidth(bw_method: Bandwidth, n: float) -> float:
    """Return the bandwidth in standard deviations of the scores, as scipy does for n rows."""
    if bw_method == "scott":
        return float(n**-0.2)
    if bw_method == "silverman":
        return float((0.75 * n) ** -0.2)
    if not isinstance(bw_method, Real) or not 0 < bw_method < np.inf:
        raise ValueError(
            f"bw_method must be 'scott', 'silverman' or a number above 0, got {bw_method!r}."
        )
    return float(bw_method)


def draw_outline(
    ax: Any,
    x: FloatArray,
    y: FloatArray,
    base: float,
    options: dict[str, Any],
    overrides: dict[str, Any],
) -> Any:
    """Draw an outline as a series: a line, or steps if x are the edges of bins (one more than y).

    ``options`` are the options of the display, and ``overrides`` the options of the user.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import StepPatch

    if x.size > y.size:
        curve: Any = ax.stairs(y, x, baseline=base, **with_options(StepPatch, options, overrides))
    else:
        (curve,) = ax.plot(x, y, **with_options(Line2D, options, overrides))
    as_series(curve)
    return curve


def shade_ranges(
    ax: Any, x: FloatArray, y: FloatArray, base: float, style: Look, ranges: FloatArray
) -> list[Any]:
    """Fill the parts of an outline that lie in some ranges of scores, (n_ranges, 2)."""
    from matplotlib.colors import to_rgba

    options: dict[str, Any] = {
        "facecolor": to_rgba(style.color, 0.3),
        "edgecolor": to_rgba(style.color, 0.6),
    }
    options |= {"hatch": style.hatch, "linewidth": 0}
    shades = []
    for low, high in ranges:
        cut = np.unique(np.clip(x, low, high))
        if cut.size < 2:  # the interval lies within a tie and has no width
            continue
        if y.size == x.size:
            shades.append(ax.fill_between(cut, base, np.interp(cut, x, y), **options))
        else:
            middle = (cut[1:] + cut[:-1]) / 2
            top = y[np.searchsorted(x, middle, side="right") - 1]
            shades.append(ax.stairs(top, cut, baseline=base, fill=True, **options))
    return shades


def bounds_of_groups(interval: IntervalLike | None, levels: GroupLevels) -> list[FloatArray] | None:
    """Return the (low, high) pairs of each group for the user's ``interval``, or None."""
    return None if interval is None else Intervals(interval, levels).bounds


def pairs_of_groups(interval: Sequence[ArrayLike] | None) -> list[FloatArray] | None:
    """Return the given intervals of each group, or curve, as arrays (n_pairs, 2), or None."""
    if interval is None:
        return None
    return [np.atleast_2d(np.asarray(pairs, dtype=np.float64)) for pairs in interval]


def interval_text(bounds: Sequence[FloatArray]) -> str:
    """Write the interval that all groups share, ``5% to 30%``, or say that they differ."""
    if any(not np.array_equal(pairs, bounds[0]) for pairs in bounds):
        return "in the group's own interval"
    return " and ".join(f"{percent(low)} to {percent(high)}" for low, high in bounds[0])


def score_ranges(scores: FloatArray, weights: FloatArray, bounds: FloatArray) -> FloatArray:
    """Return the lowest and the highest score inside each percentile interval of one group.

    Each row owns the ranks from the share of the group above it to the share that includes the row.
    For an interval that begins at rank 0 the highest score is infinity, and for one that ends at
    rank 1 the lowest score is minus infinity.
    """
    order = np.argsort(-scores, kind="stable")
    descending = scores[order]
    mass = weights[order]
    rank = np.cumsum(mass) / mass.sum()
    # ``best`` is the first row whose ranks go beyond the low end, and ``worst`` the row that owns
    # the high end. The last rank is left out of the search. So if rounding keeps all ranks below
    # the end, the last row is found.
    best = np.searchsorted(rank[:-1], bounds[:, 0] + ROUNDING, side="right")
    worst = np.searchsorted(rank[:-1], bounds[:, 1] - ROUNDING)
    highest = np.where(bounds[:, 0] <= 0, np.inf, descending[best])
    lowest = np.where(bounds[:, 1] >= 1, -np.inf, descending[worst])
    return np.stack([lowest, highest], axis=1)
