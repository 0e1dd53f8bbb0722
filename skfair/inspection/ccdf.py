"""Selection rates of two groups against each other, as the threshold runs from high to low.

This is figure 2 of partial_fairness_idca. The curve resembles an ROC curve, with groups instead of
classes: a threshold selects the share F_ref of the reference group and the share F_k of group k.
Parity at every threshold is the diagonal. If a percentile interval is marked, partial statistical
parity requires that the curve follows the diagonal in the square where the two bands cross.

The display is for scores of any model, so it is not in the folder of partial parity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skfair._typing import ColumnLike, ColumnsLike, FloatArray, IntervalLike
from skfair.groups.measured_rows import MeasuredRows
from skfair.inspection import _style
from skfair.inspection._display import (
    AxesOrNone,
    ScoreDisplay,
    check_same_length,
    documented,
    stacked,
)
from skfair.inspection._scores import bounds_of_groups, interval_text, pairs_of_groups

_BAND = _style.PALETTE[4]  # orange, because the first four colours are used by curves


@documented
class CCDFCurveDisplay(ScoreDisplay):
    r"""Selection rate of each group against a reference group over all thresholds.

    The curve resembles an ROC curve. As the threshold falls, it shows the share of group k that is
    selected against the share of the reference group that is selected. A point of the curve is
    :math:`(\bar F_{ref}(\theta), \bar F_k(\theta))` with :math:`\bar F_k(\theta) = P(\text{score} >
    \theta \mid k)`, the complementary distribution function of the scores. Above the diagonal, the
    selection rate of group k is higher than the selection rate of the reference group. The largest
    vertical distance between the curve and the diagonal is the statistical parity gap of the two
    groups.

    It is recommended to create the display with :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    reference_rates : sequence of array-like
        Selection rates of the reference group for each curve, from the highest to the lowest
        threshold.
    group_rates : sequence of array-like
        Selection rates of the other group at the same thresholds, for each curve.
    group_names : sequence of str
        Name of the other group of each curve.
    reference_name : str
        Name of the reference group.
    reference_interval : array-like of shape (n_intervals, 2), default=None
        Percentile interval of the reference group, which is marked on the horizontal axis.
    group_interval : sequence of array-like of shape (n_intervals, 2), default=None
        Percentile interval of the other group of each curve, which is marked on the vertical axis.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The curve of each group.
    diagonal_ : matplotlib Line2D or None
        The line of parity. It is None if an earlier plot on the same axes has drawn it.
    bands_ : list of matplotlib Rectangle
        The marked intervals.

    See Also
    --------
    GroupScoreDisplay : Draw the densities of the scores.
    skfair.metrics.statistical_parity_gap : Compute the largest difference of selection rates.
    skfair.metrics.partial_statistical_parity_gap : Compute the gap within the interval.

    Notes
    -----
    Tied scores of both groups appear as a slanted piece, as in an ROC curve. Each curve costs O(n
    log n).

    Examples
    --------
    >>> from skfair.datasets import make_group_scores
    >>> from skfair.inspection import CCDFCurveDisplay
    >>> y_true, y_score, group = make_group_scores(500, random_state=0)
    >>> display = CCDFCurveDisplay.from_predictions(
    ...     y_true, y_score, sensitive_features=group, reference="b", interval=(0.05, 0.3)
    ... )
    >>> display.ax_.get_xlabel()
    'Share of b selected'
    """

    def __init__(
        self,
        *,
        reference_rates: Sequence[ArrayLike],
        group_rates: Sequence[ArrayLike],
        group_names: Sequence[str],
        reference_name: str,
        reference_interval: ArrayLike | None = None,
        group_interval: Sequence[ArrayLike] | None = None,
        name: str | None = None,
    ) -> None:
        self.reference_rates = [np.asarray(rates, dtype=np.float64) for rates in reference_rates]
        self.group_rates = [np.asarray(rates, dtype=np.float64) for rates in group_rates]
        self.group_names, self.reference_name, self.name = list(group_names), reference_name, name
        self.group_interval = pairs_of_groups(group_interval)
        self.reference_interval = None
        if reference_interval is not None:
            self.reference_interval = np.atleast_2d(np.asarray(reference_interval, np.float64))
        of_curves = "reference_rates", "group_rates", "group_names", "group_interval"
        self._check_same_length("curve", *of_curves)
        for rates, other in zip(self.reference_rates, self.group_rates, strict=True):
            check_same_length("threshold", reference_rates=rates, group_rates=other)

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
        reference: object = None,
        name: str | None = None,
        ax: AxesOrNone = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves from scores.

        Parameters
        ----------
        y_score : array-like of shape (n_samples,)
            Scores, where a larger score speaks more for the positive class.
        interval : (float, float), list of such pairs, or dict, default=None
            Percentile interval counted from the top, which is marked on both axes. ``(0.05, 0.3)``
            covers the ranks from the best 5% to the best 30% of each group. A list gives a union of
            disjoint intervals, and a dict gives each group its own interval.
        intersectional : bool, default=True
            If True, groups are the intersections of all attributes. If False, the reference group
            is compared with the other groups of its own attribute.
        reference : group, default=None
            The group on the horizontal axis, given by its level or name, or by a tuple of levels
            for an intersection. If None, the largest group is used.
        """
        cls._needs_matplotlib("from_predictions")
        rows = MeasuredRows.of_scores(
            y_score,
            y_true,
            sensitive_features,
            sample_weight=sample_weight,
            intersectional=intersectional,
            each_row=True,
        )
        groups = rows.groups.cells
        named = reference is not None
        chosen = groups.levels.number(reference) if named else int(groups.counts.argmax())
        # Only groups of the same attribute are compared, because others overlap with the reference.
        attribute = groups.attribute_of_group
        others = [int(g) for g in np.flatnonzero(attribute == attribute[chosen]) if g != chosen]
        if not others:
            raise ValueError(
                f"CCDFCurveDisplay compares groups, but there is only {groups.names[chosen]!r}. "
                "Pass rows of at least two groups."
            )
        curves = [_curve(rows, chosen, other) for other in others]
        bounds = bounds_of_groups(interval, groups.levels)
        display = cls(
            reference_rates=[first for first, _ in curves],
            group_rates=[second for _, second in curves],
            group_names=[groups.names[other] for other in others],
            reference_name=groups.names[chosen],
            reference_interval=None if bounds is None else bounds[chosen],
            group_interval=None if bounds is None else [bounds[other] for other in others],
            name=name,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, *, ax: AxesOrNone = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curves, the diagonal and the interval.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure is created. On axes with the curves of another
            model, the diagonal and equal intervals are not drawn again.
        **kwargs
            Options of the curves, which are passed to ``plot`` of matplotlib.
        """
        is_new = ax is None
        ax, start = self._start(ax, (5.4, 5.4))
        self.bands_ = self._mark_intervals()
        self.diagonal_ = None
        if _style.is_first(ax, "parity"):
            (self.diagonal_,) = ax.plot([0, 1], [0, 1], color=_style.GREY, lw=1, label="parity")
            _style.as_reference(self.diagonal_, "parity")
        self.lines_ = []
        for i, (group, x, y) in enumerate(self._curves(), start):
            # There is a marker in each eighth of the picture.
            style, label = _style.look(i), self._label(name, group)
            marked = {"marker": style.marker, "markevery": (0.05, 1 / 8), "markersize": 5}
            line = _style.draw_line(ax, x, y, style, kwargs, **marked, label=label)
            self.lines_.append(line)
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        others = self.group_names[0] if len(self.group_names) == 1 else "other groups"
        ax.set_xlabel(_style.plain(f"Share of {self.reference_name} selected"))
        ax.set_ylabel(_style.plain(f"Share of {others} selected"))
        # The legend is put into the corner that the curves leave free: below the diagonal if they
        # are mostly above it (sum of y - x). The lines with a gid are the curves, and the diagonal,
        # which adds 0 to the sum.
        drawn = [line.get_xydata() for line in ax.lines if line.get_gid() is not None]
        free = "lower right" if np.sum([np.diff(xy).mean() for xy in drawn]) > 0 else "upper left"
        if _style.legend_for(ax, len(self.group_names), widen=is_new, loc=free):
            ax.set_anchor("W")  # so that the legend is next to the square axes
        return self

    def _table(self) -> pd.DataFrame:
        names = ("group", "reference_rate", "group_rate")
        return stacked(dict(zip(names, curve, strict=True)) for curve in self._curves())

    def _curves(self) -> list[tuple[str, FloatArray, FloatArray]]:
        """Return each curve: the other group, and the rates of the reference group and of it."""
        return [*zip(self.group_names, self.reference_rates, self.group_rates, strict=True)]

    def _mark_intervals(self) -> list[Any]:
        """Shade the intervals across the axes, and mark them with a bar on each axis."""
        ax, bands = self.ax_, []
        if self.reference_interval is None or self.group_interval is None:
            return []
        everybody = [self.reference_interval, *self.group_interval]
        label = f"ranks {interval_text(everybody)}"
        spans = {
            "x": (ax.axvspan, ax.get_xaxis_transform(), everybody[:1]),
            "y": (ax.axhspan, ax.get_yaxis_transform(), everybody[1:]),
        }
        for axis, (span, transform, tables) in spans.items():
            for ends in np.unique(np.concatenate(tables), axis=0).tolist():
                what = f"{axis}-{ends}"
                if not _style.is_first(ax, what):
                    continue
                band = span(*ends, color=_BAND, alpha=0.15, lw=0)
                bar = (ends, [0, 0]) if axis == "x" else ([0, 0], ends)
                style = {"color": _BAND, "lw": 5, "solid_capstyle": "butt", "clip_on": False}
                ax.plot(*bar, transform=transform, label=label, **style)
                label = "_nolegend_"  # only the first interval has an entry in the legend
                _style.as_reference(band, what)
                bands.append(band)
        return bands


def _curve(rows: MeasuredRows, reference: int, other: int) -> tuple[FloatArray, FloatArray]:
    """Return the selection rates of two groups at each threshold, from no row to all of them."""
    groups = rows.groups.cells
    codes = groups.codes[groups.attribute_of_group[reference]]
    inside = (codes == reference) | (codes == other)
    weights = 1.0 if rows.weights is None else rows.weights[inside]
    levels, position = np.unique(-rows.values[inside], return_inverse=True)  # descending scores
    masses = [(codes[inside] == group) * weights for group in (reference, other)]
    above = [np.bincount(position, weights=mass, minlength=levels.size) for mass in masses]
    table = np.concatenate([np.zeros((2, 1)), np.cumsum(np.stack(above), axis=1)], axis=1)
    # Points within a straight piece are left out, as in scikit-learn's roc_curve.
    bends = np.any(np.diff(table, 2, axis=1) != 0, axis=0)
    table = table[:, np.concatenate([[True], bends, [True]])]
    return table[0] / table[0, -1], table[1] / table[1, -1]
