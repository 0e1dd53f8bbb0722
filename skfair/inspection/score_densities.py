"""Densities of the scores of each group, with a percentile interval marked.

These are figures 3 to 8 of partial_fairness_idca. The part of each density whose ranks (counted
from the top of the group) lie in the interval is shaded. Groups are overlaid or drawn in rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntervalLike
from skfair.groups.cohort import cohort_of
from skfair.groups.cohort_rows import score_rows
from skfair.inspection import _scores
from skfair.inspection._display import AxesOrNone, ScoreDisplay, documented, stacked
from skfair.inspection._style import GREY, as_reference, axes_for, is_first, legend_for, look
from skfair.utils.text import listed
from skfair.utils.validation import check_names, check_numbers, check_scores, check_weights


@documented
class GroupScoreDisplay(ScoreDisplay):
    """Densities of the scores of each group.

    If a percentile interval is given, the scores of rows whose rank within their group, counted
    from the top, lies in the interval are shaded. Under partial statistical parity, the shaded
    parts of all groups have the same shape and cover the same scores.

    It is recommended to create the display with :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    scores : sequence of array-like
        The scores of each group.
    group_names : sequence of str
        Names of the groups.
    weights : sequence of array-like, default=None
        Weights of the scores of each group.
    interval : sequence of array-like of shape (n_intervals, 2), default=None
        The percentile interval, or union of intervals, of each group. If None, no interval is
        shaded.
    bounds : (float, float), default=None
        The range of possible scores, such as (0, 1) for probabilities. No density is drawn outside.

    Attributes
    ----------
    score_ranges : list of ndarray of shape (n_intervals, 2), or None
        The lowest and the highest score of each group inside its interval. They are infinite if the
        interval reaches the bottom or the top of the ranks.
    curves_ : list of matplotlib Line2D or StepPatch
        The density of each group. If all scores of a group are equal, a vertical line is drawn
        instead.
    shades_ : list of matplotlib artists
        The shaded parts.

    See Also
    --------
    CCDFCurveDisplay : Compare two groups threshold by threshold.
    skfair.metrics.partial_statistical_parity_gap : Compute the gap between the shaded parts.

    Examples
    --------
    >>> from skfair.datasets import make_group_scores
    >>> from skfair.inspection import GroupScoreDisplay
    >>> y_true, y_score, group = make_group_scores(500, random_state=0)
    >>> display = GroupScoreDisplay.from_predictions(
    ...     y_true, y_score, sensitive_features=group, interval=(0.05, 0.3)
    ... )
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel(), len(display.curves_)
    ('Score (shaded: ranks 5% to 30% of each group)', 'Density', 2)
    """

    _of_probabilities: ClassVar = {"bounds": (0.0, 1.0)}

    def __init__(
        self,
        *,
        scores: Sequence[ArrayLike],
        group_names: Sequence[str],
        weights: Sequence[ArrayLike] | None = None,
        interval: Sequence[ArrayLike] | None = None,
        bounds: tuple[float, float] | None = None,
        name: str | None = None,
    ) -> None:
        self.scores = [check_numbers(values, "scores") for values in scores]
        self.group_names = check_names(group_names, "group_names")
        self.weights = None
        if weights is not None:
            self.weights = [check_numbers(values, "weights") for values in weights]
        self.interval = _scores.pairs_of_groups(interval)
        self._check_same_length("group", "scores", "group_names", "weights", "interval")
        empty = [n for n, v in zip(self.group_names, self.scores, strict=True) if not v.size]
        if empty:
            raise ValueError(f"There are no scores of {listed(empty)}. Leave out empty groups.")
        self.scores = [check_scores(values, "scores") for values in self.scores]
        self._weights = self.weights or [np.ones(values.size) for values in self.scores]
        for values, weights_of in zip(self.scores, self._weights, strict=True):
            check_weights(weights_of, values.size)
        self.bounds, self.name = _check_bounds(bounds, self.scores), name
        self.score_ranges = None
        if self.interval is not None:
            groups = zip(self.scores, self._weights, self.interval, strict=True)
            self.score_ranges = [_scores.score_ranges(*group) for group in groups]

    @classmethod
    def from_predictions(
        cls,
        y_true: ColumnLike | None,
        y_score: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        interval: IntervalLike | None = None,
        sample_weight: ColumnLike | None = None,
        intersectional: bool = True,
        bounds: tuple[float, float] | None = None,
        name: str | None = None,
        ax: AxesOrNone = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scores of each group.

        Parameters
        ----------
        y_score : array-like of shape (n_samples,)
            Scores, where a larger score speaks more for the positive class.
        interval : (float, float), list of such pairs, or dict, default=None
            Percentile interval counted from the top. ``(0.05, 0.3)`` covers the ranks from the best
            5% to the best 30% *of each group*. A list gives a union of disjoint intervals, and a
            dict gives each group its own interval.
        intersectional : bool, default=True
            If True, groups are the intersections of all attributes. If False, the groups of each
            attribute are drawn one after the other.
        bounds : (float, float), default=None
            The range of possible scores, such as (0, 1) for probabilities. If None, the density may
            extend beyond the possible scores.
        **kwargs
            Further arguments of :meth:`plot`, such as ``kind``, ``layout``, ``bins``, ``bw_method``
            or options of the curves.
        """
        cls._needs_matplotlib("from_predictions")
        people = cohort_of(**locals())
        rows = score_rows(people, intersectional, each_row=True)
        attribute = rows.groups.cells.attribute_of_group
        members = [rows.groups.cells.codes[a] == g for g, a in enumerate(attribute)]
        display = cls(
            scores=[rows.values[member] for member in members],
            group_names=rows.groups.cells.names,
            weights=None if rows.weights is None else [rows.weights[m] for m in members],
            interval=_scores.bounds_of_groups(interval, rows.groups.cells.levels),
            bounds=bounds,
            name=name,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self,
        *,
        ax: AxesOrNone = None,
        kind: Literal["density", "hist"] = "density",
        layout: Literal["overlay", "rows"] = "overlay",
        bins: Any = 30,
        bw_method: _scores.Bandwidth = "scott",
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the scores.

        Parameters
        ----------
        kind : {"density", "hist"}, default="density"
            Whether to draw a kernel density estimate or a histogram of the same area.
        layout : {"overlay", "rows"}, default="overlay"
            Whether to draw all groups on top of each other or in separate rows, which is clearer
            for more than three groups. With "rows", the axes must not show other scores.
        bins : int, str or sequence, default=30
            Bins of the histogram, as in ``numpy.histogram_bin_edges``. They are the same for all
            groups.
        bw_method : {"scott", "silverman"} or float, default="scott"
            Bandwidth of the density, as in ``scipy.stats.gaussian_kde``.
        **kwargs
            Options of the curves, which are passed to ``plot`` (density) or ``stairs`` (histogram)
            of matplotlib.
        """
        if kind not in ("density", "hist") or layout not in ("overlay", "rows"):
            raise ValueError(
                "kind must be 'density' or 'hist' and layout 'overlay' or 'rows', got "
                f"kind={kind!r} and layout={layout!r}."
            )
        outlines = self._outlines(kind, bins, bw_method)
        n_groups, in_rows, is_new = len(self.scores), layout == "rows", ax is None
        rows_alone = (
            "ax already shows data, and layout='rows' needs axes of its own. Use "
            "layout='overlay' for both, or other axes."
        )
        # Axes that show rows (marked "rows" below) have no room for an overlay, either.
        needs_own = in_rows or not (ax is None or is_first(axes_for(self, ax), "rows"))
        sizes = [f"n = {values.size:,}" for values in self.scores]
        ax, start = self._start(
            ax,
            (7.0, max(2.6, 0.8 + 0.8 * n_groups) if in_rows else 4.2),
            alone=rows_alone if needs_own else "",
            rows=(self.group_names, sizes) if in_rows else None,
        )
        peaks = [heights.max() for _, heights in outlines if heights.size]
        highest = max(peaks, default=1.0) or 1.0  # peaks are 0 if the given bins contain no score
        self.curves_: list[Any] = []
        self.shades_: list[Any] = []
        base, scale = 0.0, 1.0
        for g, (x, heights) in enumerate(outlines):
            style, text, are_equal = look(start + g), self.group_names[g], not heights.size
            if in_rows:  # y runs downwards, so heights are negative. They are 0.85 rows at most
                base, scale = float(g), -0.85 / highest
                as_reference(ax.axhline(base, color=GREY, lw=0.8, zorder=0.5), "rows")
            if are_equal:  # a vertical line is drawn instead of a density
                x, heights = np.repeat(x, 2), np.array([0.0, highest])
                text = f"{text} (all equal)"
            options: dict[str, Any] = {"color": style.color, "linestyle": style.linestyle}
            options |= {"label": self._label(name, text), "linewidth": 3 if are_equal else 1.5}
            y = base + scale * heights
            self.curves_.append(_scores.draw_outline(ax, x, y, base, options, kwargs))
            if self.score_ranges is not None and not are_equal:
                self.shades_ += _scores.shade_ranges(ax, x, y, base, style, self.score_ranges[g])
        ax.set_xlabel("Score")
        if self.interval is not None:
            ranks = _scores.interval_text(self.interval)
            ax.set_xlabel(f"Score (shaded: ranks {ranks} of each group)")
        if in_rows:
            ax.set_ylim(n_groups - 0.9, -1.0)
        else:
            ax.set(ylabel="Density", ylim=(0, None))
            legend_for(ax, n_groups, widen=is_new)
        self._drawn = {"kind": kind, "bins": bins, "bw_method": bw_method}
        return self

    def _table(
        self,
        kind: Literal["density", "hist"] = "density",
        bins: Any = 30,
        bw_method: _scores.Bandwidth = "scott",
    ) -> pd.DataFrame:
        outlines = self._outlines(kind, bins, bw_method)
        named = zip(self.group_names, outlines, strict=True)
        if kind == "hist":
            return stacked(
                {"group": group, "lower": edges[:-1], "upper": edges[1:], "density": heights}
                for group, (edges, heights) in named
            )
        # If all scores of a group are equal, it has one score and no density.
        return stacked(
            {"group": group, "score": x, "density": heights if heights.size else np.nan}
            for group, (x, heights) in named
        )

    def _outlines(
        self, kind: Literal["density", "hist"], bins: Any, bw_method: _scores.Bandwidth
    ) -> list[_scores.Outline]:
        """Return the outline of each group, see ``_scores``."""
        groups = list(zip(self.scores, self._weights, strict=True))
        if kind == "density":
            return [_scores.density(*group, bw_method, self.bounds) for group in groups]
        try:
            counted = np.concatenate([values[weights > 0] for values, weights in groups])
            edges = np.histogram_bin_edges(counted, bins=bins)
        except ValueError as error:
            raise ValueError(f"bins={bins!r} does not fit the scores (y_score): {error}") from error
        return [_scores.histogram(*group, edges) for group in groups]


def _check_bounds(
    bounds: tuple[float, float] | None, scores: Sequence[FloatArray]
) -> tuple[float, float] | None:
    """Return the bounds as two numbers, or None; raise if a score lies outside."""
    if bounds is None:
        return None
    ends = check_numbers(bounds, "bounds")
    if ends.shape != (2,):
        raise ValueError(f"bounds must be a pair (low, high), got {bounds!r}.")
    low, high = ends.tolist()
    outermost = min(map(np.min, scores)), max(map(np.max, scores))
    if not low <= outermost[0] <= outermost[1] <= high:
        raise ValueError(
            f"The scores lie between {outermost[0]:g} and {outermost[1]:g}, outside of bounds="
            f"({low:g}, {high:g}). Pass wider bounds, or None."
        )
    return low, high
