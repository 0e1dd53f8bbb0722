"""Rates of groups before and after a limit, with a panel for each limit of a path.

``from_path`` makes a ``group_report`` of the decisions before, and one for each model. ``plot``
draws a panel for each model, with two dots for each group and a line between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skfair._typing import ColumnLike, ColumnNames, ColumnsLike, FloatArray, MatrixLike
from skfair.groups.sensitive import sensitive_of
from skfair.inspection import _style
from skfair.inspection._display import (
    Display,
    OneOrMoreAxes,
    check_same_length,
    documented,
    if_given,
    stacked,
)
from skfair.inspection.rates import read_rates
from skfair.metrics.reports import group_report
from skfair.utils.response import get_response, positive_class
from skfair.utils.validation import check_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The largest number of panels in a row. With four, the numbers at the dots of two groups overlap.
_MOST_COLUMNS = 3
_LEGEND: Any = {"loc": "outside lower center", "ncols": 2}


@documented
class FairnessPathDisplay(Display):
    """Rates of each group before and after, with a panel for each limit of a path.

    Each group has a row. A hollow dot is the rate of the group before, a full dot is its rate with
    the limit, and the bar is the confidence interval of the full dot. Above each panel stand the
    largest difference between the rates of two groups and, if true labels are given, the accuracy.

    It is recommended to create the display with :meth:`from_path`.

    Parameters
    ----------
    reports : sequence of Report of length n_models + 1
        The table of rates of the decisions before, and the table of each model in the order of the
        path, as :func:`skfair.metrics.group_report` returns them for the same rows.
    max_disparities : array-like of shape (n_models,), default=None
        The limits of the models.
    limits : dict of str to float or None, default=None
        The limit of each attribute, if ``max_disparities`` are multiples of these limits.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of them
        The panels drawn on. If there is one panel, this is the Axes itself.
    before_ : list of matplotlib Line2D
        The hollow dots of each panel.
    after_ : list of matplotlib ErrorbarContainer
        The full dots of each panel, with their intervals.

    See Also
    --------
    skfair.model_selection.fairness_path : Fit the models of a path.
    FairnessFrontDisplay : Draw scores of models against their disparities.
    GroupRatesDisplay : Draw several rates of one model.

    Examples
    --------
    >>> from skfair.inspection import FairnessPathDisplay
    >>> from skfair.metrics import group_report
    >>> group = ["a", "a", "b", "b"]
    >>> before, after = (
    ...     group_report(None, decisions, sensitive_features=group)
    ...     for decisions in ([1, 1, 0, 0], [1, 1, 1, 0])
    ... )
    >>> display = FairnessPathDisplay(reports=[before, after], max_disparities=[0.5]).plot()
    >>> print(display.ax_.get_title(loc="left"))
    limit 0.5
    gap 50.0 points
    """

    def __init__(
        self,
        *,
        reports: Sequence[pd.DataFrame],
        max_disparities: ArrayLike | None = None,
        limits: Mapping[str, float | None] | None = None,
        name: str | None = None,
    ) -> None:
        self.max_disparities = if_given(check_scores, max_disparities, "max_disparities")
        self.reports, self.limits, self.name = list(reports), limits, name
        models = self.reports[1:]
        if not models:
            raise ValueError(
                f"reports has {len(self.reports)} tables. Pass one of the decisions before and at "
                "least one of a model."
            )
        for table in self.reports:
            read_rates("selection_rate", table)
        if any(not table.index.equals(self.reports[0].index) for table in models):
            raise ValueError("The reports have different groups. Make them of the same rows.")
        check_same_length("model", reports=models, max_disparities=self.max_disparities)

    @classmethod
    def from_path(
        cls,
        path: Any,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sensitive: ColumnNames | None = None,
        before: object = None,
        units: ColumnLike | None = None,
        name: str | None = None,
        ax: OneOrMoreAxes = None,
        **kwargs: Any,
    ) -> Self:
        """Predict with each model of a path and draw the rates of each group.

        Parameters
        ----------
        path : FairnessPath
            The path, as returned by :func:`skfair.model_selection.fairness_path`.
        X : array-like of shape (n_samples, n_features)
            The rows to predict. Rates on rows that the models have not seen in ``fit`` show how
            well their limits hold on new data. If they are the training rows of the path, the
            out-of-fold predictions (``train_predictions_``) of models that have them are shown.
        y : array-like of shape (n_samples,), default=None
            The true labels, for accuracies and for rates other than the selection rate.
        before : estimator or array-like of shape (n_samples,), default=None
            The decisions that the models are compared with: a fitted model that predicts for X, or
            the labels of its rows. By default, the model with the largest limit is used.
        units : array-like of shape (n_samples,), default=None
            Labels of rows that belong together, for example the person behind each visit. Intervals
            are then based on the number of people. Without ``units``, every row is treated as a
            different person.
        ax : matplotlib Axes or sequence of them, default=None
            The axes to draw on, as in :meth:`plot`.
        **kwargs
            Further arguments of :meth:`plot`, such as ``rate`` or options of the full dots.
        """
        cls._needs_matplotlib("from_path")
        if not hasattr(path, "max_disparities"):
            raise TypeError(f"path must be a FairnessPath, got {path!r}.")
        first = path.estimators[0]
        groups = cls._groups(first, X, sensitive_features, sensitive, method="from_path")
        options: Any = {"sensitive_features": groups, "pos_label": positive_class(first)}
        options |= {"units": units, "intersectional": sensitive_of(first).intersectional}
        predictions = path._predictions(X, groups)
        start: Any = predictions[0] if before is None else before
        if hasattr(start, "predict"):
            start = get_response(start, X, "predict", sensitive_features=groups)
        reports = [group_report(y, labels, **options) for labels in (start, *predictions)]
        limited = {"max_disparities": path.max_disparities, "limits": path.limits}
        return cls(reports=reports, **limited, name=name).plot(ax=ax, **kwargs)

    def plot(
        self,
        *,
        ax: OneOrMoreAxes = None,
        rate: str = "selection_rate",
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the rates of each group before and after.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, default=None
            Empty axes to draw on, one for each model. If None, a new figure is created. The legend
            is placed below all axes, which requires a figure with ``layout="constrained"``.
        rate : str, default="selection_rate"
            The rate to draw, named as in :class:`GroupRatesDisplay`.
        **kwargs
            Options of the full dots, which are passed to ``errorbar`` of matplotlib.
        """
        before, *models = self.reports
        (rate,) = read_rates(rate, before)
        names, limits = [*map(str, before.index[:-1])], self.max_disparities
        n_rows = -(-len(models) // _MOST_COLUMNS)
        n_columns = -(-len(models) // n_rows)
        unit = " times the limits" if self.limits else ""
        titles = [f"model {k}" for k in range(len(models))]
        if limits is not None:
            titles = [f"limit {bound:g}{unit}" for bound in limits]
        width = _style.LETTER * _style.longest_line([*map(_style.plain, names), "n = 10,000"])
        size = (width + 2.7 * n_columns, 0.5 + (0.85 + 0.45 * len(names)) * n_rows)
        alone = "ax already shows something else. Pass empty axes, one for each model."
        panels = self._panels(ax, titles, "model", size, n_columns, alone)
        ends = [table.get(f"{rate}_high", table[rate]).max() for table in self.reports]
        self.before_: list[Any] = []
        self.after_: list[Any] = []
        for k, (panel, table) in enumerate(zip(panels, models, strict=True)):
            _style.label_rows(panel, names, [f"n = {n:,.0f}" for n in before["n"].iloc[:-1]])
            self._draw_dots(panel, k, rate, kwargs)
            panel.set_title(f"{titles[k]}\n{_reached(table, rate)}", loc="left", size="medium")
            panel.set_xlim(0, 1.12 * (np.nanmax([0.0, *ends]) or 1.0))
            if k >= len(panels) - n_columns:  # the lowest panel of its column
                panel.tick_params(labelbottom=True)
                panel.set_xlabel(rate.replace("_", " "))
        level = before.attrs.get("confidence")
        interval = "" if level is None else f", {_style.percent(level)} interval"
        self.before_[0].set_label(f"{self._label(name, 'before')}: {_reached(before, rate)}")
        self.after_[0].set_label(f"{self._label(name, 'with the limit')}{interval}")
        self.figure_.legend(handles=[self.before_[0], self.after_[0]], **_LEGEND)
        self._drawn = {"rate": rate}
        return self

    def _table(self, rate: str = "selection_rate") -> pd.DataFrame:
        n_models = len(self.reports) - 1
        limits = np.full(n_models, np.nan) if self.max_disparities is None else self.max_disparities
        groups = self.reports[0].index[:-1]
        return stacked(
            {
                "model": k,
                "limit": limits[k],
                "rate": rate,
                "group": [*map(str, groups)],
                **self._dots(k, rate),
                "n": self.reports[k + 1]["n"].to_numpy(np.float64)[:-1],
            }
            for k in range(n_models)
        )

    def _dots(self, model: int, rate: str) -> dict[str, FloatArray]:
        """Return the rate of each group before and by a model, and the ends of its interval."""
        table, ends = self.reports[model + 1], {"after": "", "lower": "_low", "upper": "_high"}
        columns = {"before": self.reports[0][rate]}
        columns |= {name: table.get(f"{rate}{end}", table[rate]) for name, end in ends.items()}
        return {name: column.to_numpy(np.float64)[:-1] for name, column in columns.items()}

    def _draw_dots(self, panel: Axes, model: int, rate: str, overrides: Any) -> None:
        """Draw for each group its rate before and by a model, and a line between them."""
        from matplotlib.lines import Line2D

        old, new, low, high = self._dots(model, rate).values()
        rows = range(len(new))
        panel.hlines(rows, old, new, color=_style.GREY, lw=1.5, alpha=0.6, zorder=1)
        hollow: Any = {"ms": 7, "mfc": "white", "color": _style.GREY, "zorder": 1.5}
        self.before_ += panel.plot(old, rows, "o", **hollow)
        _style.as_series(self.before_[-1])
        options = {"fmt": "o", "ms": 8, "color": _style.PALETTE[0], "elinewidth": 2}
        options = _style.with_options(Line2D, options, overrides)
        lengths = np.maximum([new - low, high - new], 0)
        self.after_.append(panel.errorbar(new, rows, xerr=lengths, **options))
        note: Any = {"textcoords": "offset points", "ha": "center", "size": "small"}
        for row, share in enumerate(new):
            text, place = (f"{share:.0%}", share) if np.isfinite(share) else ("undefined", 0)
            panel.annotate(text, (place, row), (0, 7), **note)
        panel.xaxis.set_major_formatter("{x:.0%}")


def _reached(table: pd.DataFrame, rate: str) -> str:
    """Return a text with the largest difference between two groups, and with the accuracy.

    Each part is left out if the report does not have it.
    """
    texts, rates, n_rows = [], table[rate].iloc[:-1].dropna(), table["n"].iloc[:-1].sum()
    # Groups of several attributes overlap, so a gap over all of them has no meaning.
    if n_rows == table["n"].iloc[-1] and len(rates) > 1:
        texts.append(f"gap {100 * np.ptp(rates):.1f} points")
    if "accuracy" in table:
        texts.append(f"accuracy {table['accuracy'].iloc[-1]:.1%}")
    return ", ".join(texts)
