"""Selection rates of two groups against each other, as the threshold runs from high to low.

Figure 2 of partial_fairness_idca. The curve is the group twin of an ROC curve: a threshold selects
the share F_ref of the reference group and the share F_k of group k; parity at every threshold is
the diagonal. Where a percentile interval is marked, partial statistical parity asks the curve to
follow the diagonal in the square where the two bands cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skfair._typing import (
    ClassLabel,
    ColumnLike,
    ColumnNames,
    ColumnsLike,
    FloatArray,
    IntervalLike,
    MatrixLike,
)
from skfair.groups.encoding import GroupEncoding
from skfair.inspection._display import Display
from skfair.inspection._docs import documented
from skfair.inspection._inputs import SCORE_METHODS, check_same_length
from skfair.inspection._intervals import bounds_of_groups, interval_text, pairs_of_groups
from skfair.inspection._style import (
    GREY,
    PALETTE,
    as_reference,
    draw_line,
    is_first,
    legend_for,
    look,
    plain,
)
from skfair.metrics.scores import scored_rows
from skfair.utils.response import get_response

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


_BAND = PALETTE[4]  # orange: the first four are those of curves


@documented
class CCDFCurveDisplay(Display):
    r"""Selection rate of each group against that of a reference group, over all thresholds.

    A point of the curve of group k is :math:`(\bar F_{ref}(\theta), \bar F_k(\theta))` with
    :math:`\bar F_k(\theta) = P(\text{score} > \theta \mid k)`, the complementary distribution
    function of the scores. Above the diagonal group k is selected more often than the reference;
    the largest vertical distance of the curve from it is the statistical parity gap of the two.

    Make it with :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    reference_rates : sequence of array-like
        For each curve the selection rates of the reference group, from the highest threshold to
        the lowest.
    group_rates : sequence of array-like
        The selection rates of the other group at the same thresholds.
    group_names : sequence of str
        Name of the other group, one per curve.
    reference_name : str
        Name of the reference group.
    reference_interval : array-like of shape (n_intervals, 2), default=None
        Percentile interval of the reference group, marked on the horizontal axis.
    group_interval : sequence of array-like of shape (n_intervals, 2), default=None
        Percentile interval of the other group of each curve, marked on the vertical axis.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The curves.
    diagonal_ : matplotlib Line2D or None
        The line of parity; None if an earlier plot on the same axes has drawn it.
    bands_ : list of matplotlib Rectangle
        The marked intervals.

    See Also
    --------
    GroupScoreDisplay : The densities of the scores.
    skfair.metrics.statistical_parity_gap : The largest difference of selection rates.
    skfair.metrics.partial_statistical_parity_gap : The same within the interval.

    Notes
    -----
    Tied scores of both groups give a slanted piece, as in an ROC curve. O(n log n) per curve.

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
        self.group_names = list(group_names)
        check_same_length(
            "curve",
            reference_rates=self.reference_rates,
            group_rates=self.group_rates,
            group_names=self.group_names,
        )
        for rates, other in zip(self.reference_rates, self.group_rates, strict=True):
            check_same_length("threshold", reference_rates=rates, group_rates=other)
        self.reference_name = reference_name
        self.reference_interval = (
            None
            if reference_interval is None
            else np.atleast_2d(np.asarray(reference_interval, dtype=np.float64))
        )
        self.group_interval = pairs_of_groups(group_interval)
        if self.group_interval is not None:
            check_same_length(
                "curve", group_interval=self.group_interval, group_names=self.group_names
            )
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sensitive: ColumnNames | None = None,
        response_method: str | Sequence[str] = SCORE_METHODS,
        pos_label: ClassLabel = None,
        **kwargs: Any,
    ) -> Self:
        """Score rows with a fitted model and draw the curves.

        Parameters
        ----------
        estimator : object
            A fitted model. If its prediction method takes ``sensitive_features``, it gets them.
        X : array-like of shape (n_samples, n_features)
            The rows to score.
        **kwargs
            Passed to :meth:`from_predictions`: ``reference``, ``interval``, ``name``, ``ax``, ...
        """
        groups = cls._groups(estimator, X, sensitive_features, sensitive)
        scores = get_response(
            estimator, X, response_method, sensitive_features=groups, pos_label=pos_label
        )
        return cls.from_predictions(None, scores, sensitive_features=groups, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ColumnLike | None,
        y_score: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        reference: object = None,
        interval: IntervalLike | None = None,
        sample_weight: ColumnLike | None = None,
        intersectional: bool = True,
        name: str | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves, given scores.

        Parameters
        ----------
        y_score : array-like of shape (n_samples,)
            Scores; larger means more positive.
        reference : group, default=None
            The group on the horizontal axis, by its level or its name; a tuple of levels for an
            intersection. None is the largest group.
        interval : (float, float), list of such pairs, or dict, default=None
            Percentile interval counted from the top, marked on both axes: ``(0.05, 0.3)`` are the
            ranks from the best 5% to the best 30% of each group. A list is a union of disjoint
            intervals; a dict maps each group to its own.
        intersectional : bool, default=True
            Whether several attributes are crossed. If False, the reference is compared with the
            other groups of its own attribute.
        """
        cls._needs_matplotlib("from_predictions")
        rows = scored_rows(
            y_score, sensitive_features, None, sample_weight, intersectional, like=y_true
        )
        groups = rows.groups.cells
        chosen = (
            int(groups.counts.argmax()) if reference is None else groups.levels.number(reference)
        )
        others = _rivals(groups, chosen)
        codes = groups.codes[groups.attribute_of_group[chosen]]
        curves = [_curve(rows.scores, rows.weights, codes, chosen, other) for other in others]
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

    def plot(self, *, ax: Axes | None = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curves, the diagonal and the interval.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure. On axes with curves of another model the
            diagonal and equal intervals are not drawn again.
        **kwargs
            Passed to ``plot`` of matplotlib for the curves.
        """
        is_new = ax is None
        ax, start = self._start(ax, (5.4, 5.4))
        self.bands_: list[Any] = self._mark_intervals(ax)
        self.diagonal_: Line2D | None = None
        if is_first(ax, "parity"):
            (self.diagonal_,) = ax.plot([0, 1], [0, 1], color=GREY, lw=1, label="parity")
            as_reference(self.diagonal_, "parity")
        self.lines_: list[Line2D] = []
        for i, (x, y) in enumerate(zip(self.reference_rates, self.group_rates, strict=True)):
            line = draw_line(
                ax,
                x,
                y,
                style := look(start + i),
                kwargs,
                marker=style.marker,
                markevery=(0.05, 1 / 8),  # a marker in each eighth of the picture
                markersize=5,
                label=self._label(name, self.group_names[i]),
            )
            self.lines_.append(line)
        ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        ax.set_xlabel(plain(f"Share of {self.reference_name} selected"))
        only = len(self.group_names) == 1
        others = self.group_names[0] if only else "other groups"
        ax.set_ylabel(plain(f"Share of {others} selected"))
        # In the corner that the curves leave free.
        drawn = [line for line in ax.lines if line.get_gid() is not None]
        rise = [np.mean(np.asarray(d.get_ydata()) - np.asarray(d.get_xdata())) for d in drawn]
        free = "lower right" if np.sum(rise) > 0 else "upper left"
        if legend_for(ax, len(self.group_names), widen=is_new, loc=free):
            ax.set_anchor("W")  # the square stands beside its legend
        return self

    def _mark_intervals(self, ax: Axes) -> list[Any]:
        """Shade the intervals across the axes, and mark them with a bar on each axis."""
        bands: list[Any] = []
        if self.reference_interval is None or self.group_interval is None:
            return bands
        everybody = [self.reference_interval, *self.group_interval]
        label = f"ranks {interval_text(everybody)}"
        for axis, tables in (("x", everybody[:1]), ("y", everybody[1:])):
            for low, high in np.unique(np.concatenate(tables), axis=0).tolist():
                what = f"{axis}-{low}-{high}"
                if not is_first(ax, what):
                    continue
                ends, edge = [low, high], [0, 0]
                options: dict[str, Any] = {"color": _BAND, "lw": 5, "solid_capstyle": "butt"}
                if axis == "x":
                    band = ax.axvspan(low, high, color=_BAND, alpha=0.15, lw=0)
                    options |= {"transform": ax.get_xaxis_transform(), "label": label}
                    ax.plot(ends, edge, clip_on=False, **options)
                    label = "_nolegend_"  # one entry for a union of intervals
                else:
                    band = ax.axhspan(low, high, color=_BAND, alpha=0.15, lw=0)
                    options |= {"transform": ax.get_yaxis_transform()}
                    ax.plot(edge, ends, clip_on=False, **options)
                as_reference(band, what)
                bands.append(band)
        return bands


def _rivals(groups: GroupEncoding, reference: int) -> list[int]:
    """List the groups to compare with the reference: the others of its attribute."""
    attribute = groups.attribute_of_group
    others = np.flatnonzero(attribute == attribute[reference])
    others = others[others != reference]
    if not others.size:
        raise ValueError(
            f"CCDFCurveDisplay compares groups, but there is only {groups.names[reference]!r}. "
            "Pass rows of at least two groups."
        )
    return [int(other) for other in others]


def _curve(
    scores: FloatArray,
    weights: FloatArray | None,
    codes: NDArray[np.int64],
    reference: int,
    other: int,
) -> tuple[FloatArray, FloatArray]:
    """Return the shares above each threshold of two groups, from no row to all of them."""
    masses = []
    inside = (codes == reference) | (codes == other)
    levels, position = np.unique(-scores[inside], return_inverse=True)  # descending scores
    for group in (reference, other):
        is_member = codes[inside] == group
        mass = is_member * (1.0 if weights is None else weights[inside])
        masses.append(np.bincount(position, weights=mass, minlength=levels.size))
    table = np.cumsum(np.stack(masses), axis=1)
    table = np.concatenate([np.zeros((2, 1)), table], axis=1)
    # Points within a straight piece are not needed; as in scikit-learn's roc_curve.
    bends = np.any(np.diff(table, 2, axis=1) != 0, axis=0)
    table = table[:, np.concatenate([[True], bends, [True]])]
    return table[0] / table[0, -1], table[1] / table[1, -1]
