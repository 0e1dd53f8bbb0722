"""Rates of each group with confidence intervals.

``from_estimator`` predicts and calls ``from_predictions``, which makes a ``group_report`` and calls
``from_report``, which reads the numbers from the table (``_numbers``) and calls ``plot``. If the
report has a reference group, differences from it are drawn instead of rates, and the last row is
the reference group instead of the whole sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from skfair._typing import (
    ClassLabel,
    ColumnLike,
    ColumnNames,
    ColumnsLike,
    FloatArray,
    MatrixLike,
    Seed,
)
from skfair.groups.compared_groups import Reference
from skfair.inspection import _style
from skfair.inspection._display import (
    AxesOrNone,
    CohortDisplay,
    check_same_length,
    check_shape,
    chosen_names,
    documented,
    if_given,
    stacked,
)
from skfair.metrics.reports import group_report
from skfair.utils.response import get_response, positive_class
from skfair.utils.text import did_you_mean, listed

# The columns of ``group_report`` that are rates, in the order of their colours. Each rate keeps its
# colour in all pictures.
_KNOWN_RATES = (
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "positive_predictive_value",
    "accuracy",
    "base_rate",
    "negative_predictive_value",
)
_DEFAULT_RATES = _KNOWN_RATES[:3]
# Models on the same axes differ by how their markers are filled.
_FILLS = ("full", "none", "left", "top")
_WHY = ", one row per rate and one column per group"  # end of messages about a wrong shape


@documented
class GroupRatesDisplay(CohortDisplay):
    """Rates of each group with confidence intervals.

    The picture has one row for each group and one row for the whole sample. Rates are distinguished
    by colour and marker, and a line shows the rate of the whole sample. If the interval of a group
    does not contain the line, its rate differs significantly from the overall rate, if this group
    is considered alone. With many groups, some intervals miss the line by chance. If an interval
    contains the line, the difference may be due to chance.

    It is recommended to create the display with :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    values : array-like of shape (n_rates, n_groups)
        The rates of each group. A rate that is undefined is NaN.
    overall : array-like of shape (n_rates,)
        The rates of the whole sample.
    rates : sequence of str
        Names of the rates.
    group_names : sequence of str
        Names of the groups.
    low : array-like of shape (n_rates, n_groups), default=None
        Lower ends of the confidence intervals. If None, no intervals are drawn.
    high : array-like of shape (n_rates, n_groups), default=None
        Upper ends of the confidence intervals. If None, no intervals are drawn.
    overall_low : array-like of shape (n_rates,), default=None
        Lower ends of the confidence intervals of the whole sample.
    overall_high : array-like of shape (n_rates,), default=None
        Upper ends of the confidence intervals of the whole sample.
    n_samples : array-like of shape (n_groups,), default=None
        Number of rows of each group, which is written below its name.
    n_overall : int, default=None
        Number of rows of the whole sample. It is the sum of ``n_samples``, unless groups overlap.
    confidence : float, default=None
        Confidence level of the intervals, which is written on the axis.
    reference : str, default=None
        Name of the reference group. If given, ``values`` are the differences between the rates of
        the other groups and the rates of the reference group, and ``overall`` is 0.

    Attributes
    ----------
    artists_ : list of matplotlib ErrorbarContainer
        The points of each rate. The last row of each is the whole sample or the reference group.
    overall_lines_ : list of matplotlib Line2D
        The line at the rate of the whole sample, or of the reference group, for each rate.
    undefined_ : list of matplotlib Text
        Text that marks each undefined rate.

    See Also
    --------
    skfair.metrics.group_report : Compute the rates as a table.

    Examples
    --------
    >>> from skfair.inspection import GroupRatesDisplay
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> display = GroupRatesDisplay.from_predictions(y_true, y_pred, sensitive_features=sex)
    >>> display.ax_.get_xlabel()
    'Rate, with 95% confidence interval'
    >>> display.values[display.rates.index("true_positive_rate")]
    array([1. , 0.5])
    """

    def __init__(
        self,
        *,
        values: ArrayLike,
        overall: ArrayLike,
        rates: Sequence[str],
        group_names: Sequence[str],
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        overall_low: ArrayLike | None = None,
        overall_high: ArrayLike | None = None,
        n_samples: ArrayLike | None = None,
        n_overall: int | None = None,
        confidence: float | None = None,
        reference: str | None = None,
        name: str | None = None,
    ) -> None:
        self.rates, self.group_names = list(rates), list(group_names)
        self.confidence, self.reference, self.name = confidence, reference, name
        of_all = (len(self.rates),)
        of_groups = (*of_all, len(self.group_names))
        self.values = check_shape(values, "values", of_groups, _WHY)
        self.overall = check_shape(overall, "overall", of_all, _WHY)
        self.low = if_given(check_shape, low, "low", of_groups, _WHY)
        self.high = if_given(check_shape, high, "high", of_groups, _WHY)
        self.overall_low = if_given(check_shape, overall_low, "overall_low", of_all, _WHY)
        self.overall_high = if_given(check_shape, overall_high, "overall_high", of_all, _WHY)
        self.n_samples = None if n_samples is None else np.asarray(n_samples)
        check_same_length("group", group_names=self.group_names, n_samples=self.n_samples)
        if self.n_samples is not None and n_overall is None:
            n_overall = int(self.n_samples.sum())
        self.n_overall = n_overall

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
        """Compute predictions with a fitted classifier and draw the rates of each group.

        Parameters
        ----------
        estimator : object
            A fitted classifier. If its ``predict`` takes ``sensitive_features``, they are passed to
            it.
        X : array-like of shape (n_samples, n_features)
            The rows for which labels are predicted.
        y : array-like of shape (n_samples,) or None
            True labels. They may be None if ``rates`` do not need them.
        pos_label : label, default=None
            The class that counts as positive. If None, the positive class of the estimator is used,
            which is usually the second of its two classes.
        **kwargs
            Further arguments of :meth:`from_predictions`, such as ``rates``, ``method``, ``name``
            and ``ax``.
        """
        groups = cls._groups(estimator, X, sensitive_features, sensitive)
        return cls.from_predictions(
            y,
            get_response(estimator, X, "predict", sensitive_features=groups),
            sensitive_features=groups,
            pos_label=positive_class(estimator, pos_label),
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ColumnLike | None,
        y_pred: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        rates: str | Sequence[str] | None = None,
        sample_weight: ColumnLike | None = None,
        units: ColumnLike | None = None,
        intersectional: bool = True,
        pos_label: ClassLabel = None,
        reference: Reference = "pairwise",
        method: Literal["wilson", "bootstrap"] | None = "wilson",
        confidence: float = 0.95,
        n_bootstrap: int = 500,
        random_state: Seed = 0,
        name: str | None = None,
        ax: AxesOrNone = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the rates of each group from predicted labels.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            True labels. They may be None if only ``"selection_rate"`` is drawn.
        y_pred : array-like of shape (n_samples,)
            Predicted labels.
        rates : str or sequence of str, default=None
            The rates to draw, among ``"selection_rate"``, ``"true_positive_rate"``,
            ``"false_positive_rate"``, ``"positive_predictive_value"``,
            ``"negative_predictive_value"``, ``"accuracy"`` and ``"base_rate"``. If None, the
            selection rate is drawn, and with ``y_true`` also the true and false positive rates.
        units : array-like of shape (n_samples,), default=None
            Labels of rows that belong together, for example the person behind each visit. Intervals
            are then based on the number of people. Without ``units``, every row is treated as a
            different person.
        **kwargs
            Further arguments of :meth:`plot`, such as options of the points.
        intersectional : bool, default=True
            If True, groups are the intersections of all attributes. If False, the groups of each
            attribute are listed one after the other.
        pos_label : label, default=None
            The class that counts as positive. It may be None if the labels are 0 and 1, -1 and 1,
            or booleans. It is required for other labels, such as 1 and 2 or strings.
        reference : {"pairwise"}, group or dict, default="pairwise"
            The group with which other groups are compared, such as ``"male"``, or a dict with one
            level of each attribute. If given, differences from its rates are drawn, which are
            negative for groups with lower rates.
        method : {"wilson", "bootstrap"} or None, default="wilson"
            How intervals are computed: by Wilson's formula for a proportion or from percentiles of
            resampled tables. If None, no intervals are drawn.
        confidence : float, default=0.95
            Confidence level of the intervals.
        n_bootstrap : int, default=500
            Number of resampled tables.
        random_state : int, RandomState instance or None, default=0
            Seed of the bootstrap.
        """
        cls._needs_matplotlib("from_predictions")
        groups: Any = {"sensitive_features": sensitive_features, "reference": reference}
        rows: Any = {"sample_weight": sample_weight, "pos_label": pos_label, "units": units}
        how: Any = {"method": method, "confidence": confidence, "n_bootstrap": n_bootstrap}
        report = group_report(
            y_true,
            y_pred,
            intersectional=intersectional,
            random_state=random_state,
            **how,
            **groups,
            **rows,
        )
        return cls.from_report(report, rates=rates, name=name, ax=ax, **kwargs)

    @classmethod
    def from_report(
        cls,
        report: pd.DataFrame,
        *,
        rates: str | Sequence[str] | None = None,
        name: str | None = None,
        ax: AxesOrNone = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a table of rates.

        Parameters
        ----------
        report : Report
            The report, as returned by :func:`skfair.metrics.group_report`, without strata. It may
            describe Dask collections. If it has a reference group, differences from its rates are
            drawn.
        rates : str or sequence of str, default=None
            The rates to draw, as in :meth:`from_predictions`.
        **kwargs
            Further arguments of :meth:`plot`, such as options of the points.
        """
        cls._needs_matplotlib("from_report")
        chosen, places = read_rates(rates, report), report.attrs.get("reference_rows", [])
        if len(places) > 1:
            raise ValueError(
                f"The picture has one reference group, but the report has {len(places)}: one of "
                "each attribute or stratum. Draw each by itself, or pass intersectional=True."
            )
        # Rows are taken by position, because a group may be called "overall", like the last row.
        order = np.arange(len(report))
        if places:  # the reference group replaces the whole sample as the last row
            order = np.append(np.delete(order[:-1], places), places)
        names, counts = [*map(str, report.index[order])], report["n"].to_numpy(np.int64)[order]
        display = cls(
            **_numbers(report.iloc[order], chosen, bool(places)),
            rates=chosen,
            group_names=names[:-1],
            n_samples=counts[:-1],
            n_overall=int(counts[-1]),
            confidence=report.attrs.get("confidence"),
            reference=names[-1] if places else None,
            name=name,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(
        self,
        *,
        ax: AxesOrNone = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the rates.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure of suitable height is created. On axes that show
            the same groups for another model, other markers are used. The legend is placed to the
            right of the axes, which requires a figure with ``layout="constrained"``.
        **kwargs
            Options of the points, which are passed to ``errorbar`` of matplotlib.
        """
        n_rates, n_rows = len(self.rates), len(self.group_names) + 1
        row_height = max(0.5, 0.2 * n_rates + 0.15)
        sizes = None
        if self.n_samples is not None:
            sizes = [f"n = {count:,}" for count in [*self.n_samples.tolist(), self.n_overall]]
        ax, n_models = self._start(
            ax,
            (7.5, max(2.4, 0.9 + n_rows * row_height)),
            rows=([*self.group_names, self.reference or "overall"], sizes),
        )
        self.artists_: list[Any] = []
        self.overall_lines_: list[Any] = []
        self.undefined_: list[Any] = []
        step = min(0.2, 0.8 / n_rates)
        for i in range(n_rates):
            # Points of models on the same axes are below each other.
            rows = np.arange(n_rows) + (i - (n_rates - 1) / 2) * step + n_models * 0.08
            self._draw_rate(i, rows, n_models, name, kwargs)
        for row in range(n_rows - 1):  # the line above the whole sample is thicker
            ax.axhline(row + 0.5, color=_style.GREY, lw=1 if row == n_rows - 2 else 0.3, zorder=0.5)
        what = _style.plain(f"Difference from {self.reference} (below 0: lower)")
        if self.reference is None:
            ax.set_xlim(-0.02, 1.02)
            what = "Rate"
        if self.confidence is not None:
            what = f"{what}, with {_style.percent(self.confidence)} confidence interval"
        ax.set_xlabel(what)
        _style.legend_beside(ax)
        return self

    def _table(self) -> pd.DataFrame:
        return stacked(self._points(i) for i in range(len(self.rates)))

    def _points(self, i: int) -> dict[str, Any]:
        """Return the numbers of rate number i: those of the groups, and of the last row."""
        last, n_groups = self.reference or "overall", len(self.group_names)
        counts: list[Any] = [np.nan] * (n_groups + 1)
        if self.n_samples is not None:
            counts = [*self.n_samples.tolist(), self.n_overall]
        ends = {"lower": (self.low, self.overall_low), "upper": (self.high, self.overall_high)}
        return {
            "rate": self.rates[i],
            "group": [*self.group_names, last],
            "value": np.append(self.values[i], self.overall[i]),
            **{
                name: np.append(
                    np.full(n_groups, np.nan) if own is None else own[i],
                    np.nan if overall is None else overall[i],
                )
                for name, (own, overall) in ends.items()
            },
            "n": counts,
            "is_baseline": [False] * n_groups + [True],
        }

    def _draw_rate(
        self,
        i: int,
        rows: NDArray[np.floating],
        model: int,
        name: str | None,
        overrides: dict[str, Any],
    ) -> None:
        """Draw rate number i of all rows with its intervals, and a line at the whole sample's rate.

        ``rows`` are the heights of its points, and ``model`` counts the displays on these axes.
        """
        from matplotlib.lines import Line2D

        ax, rate, points = self.ax_, self.rates[i], self._points(i)
        values = points["value"]
        known = _KNOWN_RATES.index(rate) if rate in _KNOWN_RATES else len(_KNOWN_RATES) + i
        style, label = _style.look(known), self._label(name, rate.replace("_", " "))
        options: dict[str, Any] = {"color": style.color, "label": label}
        if self.low is not None and self.high is not None:
            # Bootstrap intervals of few rows may lie on one side of the rate. Bars then end at it.
            options["xerr"] = np.maximum([values - points["lower"], points["upper"] - values], 0.0)
        line = {"color": style.color, "linestyle": style.linestyle, "lw": 1, "zorder": 0.6}
        fill = _FILLS[model % len(_FILLS)]
        options |= {"linestyle": "none", "marker": style.marker, "fillstyle": fill}
        options |= {"capsize": 3, "markerfacecoloralt": "white"}
        artist = ax.errorbar(values, rows, **_style.with_options(Line2D, options, overrides))
        self.artists_.append(artist)
        if i == 0:  # a model counts as one series
            _style.as_series(artist.lines[0])
        self.overall_lines_.append(ax.axvline(self.overall[i], **line))
        note = {"color": style.color, "size": "x-small", "va": "center"}
        undefined = rows[np.isnan(values)]
        self.undefined_ += [ax.text(0, row, "undefined", **note) for row in undefined]


def _numbers(report: pd.DataFrame, rates: list[str], has_reference: bool) -> dict[str, FloatArray]:
    """Return the arguments of the display that hold rates and ends of intervals.

    The last row of the report is the whole sample, or the reference group, whose difference is 0.
    """
    numbers: dict[str, FloatArray] = {}
    for suffix in ("", "_low", "_high"):
        columns = [f"{rate}{'_difference' * has_reference}{suffix}" for rate in rates]
        if set(columns) <= set(report.columns):
            table = report[columns].to_numpy(np.float64).T
            of_all = np.zeros(len(rates)) if has_reference else table[:, -1]
            numbers |= {suffix[1:] or "values": table[:, :-1], f"overall{suffix}": of_all}
    return numbers


def read_rates(rates: str | Sequence[str] | None, report: pd.DataFrame) -> list[str]:
    """Return the names of the rates to draw; raise for rates that the report does not have.

    If ``rates`` is None, the usual ones are drawn.
    """
    is_flat = isinstance(report, pd.DataFrame) and report.index.nlevels == 1
    known = [rate for rate in _KNOWN_RATES if is_flat and rate in report]
    if not known:
        raise TypeError(
            "report must have rates of groups, as group_report returns them without "
            f"control_features; got {report!r:.60}."
        )
    if rates is None:
        return [rate for rate in _DEFAULT_RATES if rate in known]
    chosen = chosen_names(rates, "rates")
    unknown = [rate for rate in chosen if rate not in known]
    if unknown or not chosen:
        others = "" if len(known) > 1 else " Others need true labels: pass y_true."
        raise ValueError(
            f"rates has {listed(unknown) or 'no entry'}; the rates are {', '.join(known)}.{others}"
            f"{did_you_mean(unknown[0], known) if unknown else ''}"
        )
    return chosen
