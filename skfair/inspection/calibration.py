"""Calibration curves of groups: the share of positive rows against the predicted probability.

Each group has its own bins, with about the same number of its rows in each, so that a small group
is not spread over bins of one or two rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skfair._typing import (
    ClassLabel,
    ColumnLike,
    ColumnNames,
    ColumnsLike,
    FloatArray,
    IntArray,
    MatrixLike,
)
from skfair.groups.cohort import cohort_of
from skfair.groups.cohort_rows import score_rows
from skfair.groups.rates import CellMeans
from skfair.inspection._display import (
    AxesOrNone,
    CohortDisplay,
    check_same_length,
    documented,
    stacked,
)
from skfair.inspection._style import GREY, as_reference, draw_line, is_first, legend_for, look
from skfair.metrics.scores import outcomes_of_probabilities
from skfair.utils.response import get_response, positive_class
from skfair.utils.validation import check_names, check_number, check_numbers, check_probability


@documented
class GroupCalibrationDisplay(CohortDisplay):
    """Calibration curve of each group, with confidence intervals.

    The rows of each group are sorted into bins by their predicted probability. Each point shows the
    mean probability and the share of positive rows in one bin. On the diagonal, both are equal.
    Above the diagonal, probabilities are too low: more members of the group are positive than
    predicted.

    It is recommended to create the display with :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    mean_scores : sequence of array-like
        Mean probability in each bin, for each group.
    shares : sequence of array-like
        Share of positive rows in the same bins, for each group.
    group_names : sequence of str
        Names of the groups.
    low : sequence of array-like, default=None
        Lower ends of the confidence intervals of the shares. If None, no intervals are drawn.
    high : sequence of array-like, default=None
        Upper ends of the confidence intervals of the shares. If None, no intervals are drawn.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The curve of each group.
    intervals_ : list of matplotlib LineCollection
        The confidence intervals of each group.
    diagonal_ : matplotlib Line2D or None
        The line of perfect calibration. It is None if an earlier plot on the same axes has drawn
        it.

    See Also
    --------
    skfair.metrics.calibration_difference : Compute the difference of calibration errors.
    sklearn.calibration.CalibrationDisplay : Draw the calibration curve of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.datasets import make_group_scores
    >>> from skfair.inspection import GroupCalibrationDisplay
    >>> y_true, score, group = make_group_scores(500, random_state=0)
    >>> display = GroupCalibrationDisplay.from_predictions(
    ...     y_true, 1 / (1 + np.exp(-score)), sensitive_features=group
    ... )
    >>> display.ax_.get_xlabel(), len(display.lines_)
    ('Mean predicted probability', 2)
    """

    def __init__(
        self,
        *,
        mean_scores: Sequence[ArrayLike],
        shares: Sequence[ArrayLike],
        group_names: Sequence[str],
        low: Sequence[ArrayLike] | None = None,
        high: Sequence[ArrayLike] | None = None,
        name: str | None = None,
    ) -> None:
        self.group_names, self.name = check_names(group_names, "group_names"), name
        columns = {"mean_scores": mean_scores, "shares": shares, "low": low, "high": high}
        check_same_length("group", group_names=self.group_names, **columns)
        of_groups = {
            column: [np.atleast_1d(check_numbers(own, column)) for own in values]
            for column, values in columns.items()
            if values is not None
        }
        for bins in zip(*of_groups.values(), strict=True):
            check_same_length("bin", **dict(zip(of_groups, bins, strict=True)))
        self.mean_scores, self.shares = of_groups["mean_scores"], of_groups["shares"]
        self.low, self.high = of_groups.get("low"), of_groups.get("high")

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: MatrixLike,
        y: ColumnLike,
        *,
        sensitive_features: ColumnsLike | None = None,
        sensitive: ColumnNames | None = None,
        pos_label: ClassLabel = None,
        **kwargs: Any,
    ) -> Self:
        """Predict probabilities with a fitted classifier and draw the curve of each group.

        Parameters
        ----------
        estimator : object
            A fitted classifier. If its ``predict_proba`` takes ``sensitive_features``, they are
            passed to it.
        X : array-like of shape (n_samples, n_features)
            The rows for which probabilities are predicted.
        y : array-like of shape (n_samples,)
            True labels.
        pos_label : label, default=None
            The class whose probabilities are drawn. If None, the positive class of the estimator is
            used, which is usually the second of its two classes. For one of several classes, pass
            ``y == label`` and its column of ``predict_proba`` to :meth:`from_predictions`.
        **kwargs
            Further arguments of :meth:`from_predictions`, such as ``n_bins``, ``name`` and ``ax``.
        """
        groups = cls._groups(estimator, X, sensitive_features, sensitive)
        common = {"sensitive_features": groups, "pos_label": positive_class(estimator, pos_label)}
        scores = get_response(estimator, X, "predict_proba", **common)
        return cls.from_predictions(y, scores, **common, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ColumnLike,
        y_score: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        n_bins: int = 5,
        sample_weight: ColumnLike | None = None,
        units: ColumnLike | None = None,
        intersectional: bool = True,
        pos_label: ClassLabel = None,
        confidence: float = 0.95,
        name: str | None = None,
        ax: AxesOrNone = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the calibration curve of each group from predicted probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        y_score : array-like of shape (n_samples,)
            Probabilities of the positive class.
        n_bins : int, default=5
            Number of bins of each group. The bins of a group have about the same number of rows.
            Equal probabilities are kept in one bin, so there may be fewer bins.
        units : array-like of shape (n_samples,), default=None
            Labels of rows that belong together, for example the person behind each visit. Intervals
            are then based on the number of people. Without ``units``, every row is treated as a
            different person.
        intersectional : bool, default=True
            If True, groups are the intersections of all attributes. If False, the groups of each
            attribute are drawn one after the other.
        pos_label : label, default=None
            The class that counts as positive. It may be None if the labels are 0 and 1, -1 and 1,
            or booleans. It is required for other labels, such as 1 and 2 or strings.
        confidence : float, default=0.95
            Confidence level of the intervals, which are Wilson intervals.
        """
        cls._needs_matplotlib("from_predictions")
        check_number(n_bins, "n_bins", low=1, kind=Integral)
        check_probability(confidence, "confidence")
        people = cohort_of(**locals())
        rows = score_rows(people, intersectional, each_row=True, units=units)
        is_positive = outcomes_of_probabilities(rows, pos_label) > 0
        weights = np.ones(is_positive.size) if rows.weights is None else rows.weights
        curves = []
        for members in rows.groups.rows_of_cells():
            counted = members[weights[members] > 0]
            own, scores = weights[counted], rows.values[counted]
            bins, n_own = _bins(scores, own, n_bins)
            # The squared weights are None because CellMeans computes them from the weights.
            of_rows = None, rows.units and rows.units.taken(counted)
            shares = CellMeans.of_rows(is_positive[counted], None, bins, n_own, own, *of_rows)
            means = np.bincount(bins, own * scores) / shares.weight
            curves.append((means, shares.means, *shares.interval(confidence)))
        names = ("mean_scores", "shares", "low", "high")
        of_groups: Any = dict(zip(names, zip(*curves, strict=True), strict=True))
        display = cls(**of_groups, group_names=rows.groups.cells.names, name=name)
        return display.plot(ax=ax, **kwargs)

    def plot(self, *, ax: AxesOrNone = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curves and the diagonal.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure is created. On axes with the curves of another
            model, the diagonal is not drawn again.
        **kwargs
            Options of the curves, which are passed to ``plot`` of matplotlib.
        """
        is_new = ax is None
        ax, start = self._start(ax, (5.4, 5.4))
        self.diagonal_, self.lines_, self.intervals_ = None, [], []
        if is_first(ax, "calibrated"):
            (self.diagonal_,) = ax.plot([0, 1], [0, 1], color=GREY, lw=1, label="calibrated")
            as_reference(self.diagonal_, "calibrated")
            ax.set(xlabel="Mean predicted probability", ylabel="Share of positives")
            ax.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), aspect="equal")
        for i, part in enumerate(self._parts()):
            style, x, group = look(start + i), part["mean_score"], part["group"]
            options = {"marker": style.marker, "label": self._label(name, group)}
            self.lines_.append(draw_line(ax, x, part["share"], style, kwargs, **options))
            if self.low is not None and self.high is not None:
                color = self.lines_[-1].get_color()
                self.intervals_.append(ax.vlines(x, part["lower"], part["upper"], color, lw=1))
        if legend_for(ax, len(self.group_names), widen=is_new, loc="upper left"):
            ax.set_anchor("W")  # so that the legend is next to the square axes
        return self

    def _table(self) -> pd.DataFrame:
        return stacked(self._parts())

    def _parts(self) -> list[dict[str, Any]]:
        """Return the numbers of the curve of each group."""
        without: list[Any] = [np.nan] * len(self.group_names)
        low, high = self.low or without, self.high or without
        columns = self.group_names, self.mean_scores, self.shares, low, high
        names = ("group", "mean_score", "share", "lower", "upper")
        return [dict(zip(names, part, strict=True)) for part in zip(*columns, strict=True)]


def _bins(scores: FloatArray, weights: FloatArray, n_bins: int) -> tuple[IntArray, int]:
    """Return the bin of each row, and the number of bins that have rows.

    Rows are put into ``n_bins`` bins of about the same weight by their scores. Rows with equal
    scores are in the same bin, so some bins may have no rows. Such bins are not numbered.
    """
    levels, place = np.unique(scores, return_inverse=True)
    mass = np.bincount(place, weights, levels.size)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    filled, bin_of_level = np.unique((n_bins * middle).astype(np.int64), return_inverse=True)
    return bin_of_level[place], filled.size
