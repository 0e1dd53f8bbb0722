"""The distribution of the disparities of queries, as measured in ``metrics.py`` of this folder.

``skfair.inspection`` offers the display, and this file needs it: nobody imports it if
``skfair/inspection`` is deleted.
"""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skfair._typing import ColumnLike, ColumnNames, ColumnsLike, MatrixLike
from skfair.inspection._display import AxesOrNone, Display, documented
from skfair.inspection._style import GREY, draw_line, look
from skfair.ranking.metrics import exposure_gaps, pair_error_gaps, rank_gaps, ranked_rows
from skfair.utils.response import SCORE_METHODS, get_response
from skfair.utils.validation import check_number, check_scores

Gap = Literal["pair_error", "exposure", "rank"]
# For each disparity, the function that measures it for each query, and the label of the axis
_GAPS = {
    "pair_error": (pair_error_gaps, "Difference of pair errors"),
    "exposure": (exposure_gaps, "Difference of exposure"),
    "rank": (rank_gaps, "Difference of attention and share"),
}


@documented
class RankingGapDisplay(Display):
    """Share of the queries whose disparity is at most a given value.

    Rankings are fairer if the curve is further up and to the left. To compare two rankers, draw the
    second one on the axes of the first with
    ``from_predictions(..., name="fair", ax=first.ax_)``.

    Parameters
    ----------
    gaps : array-like of shape (n_queries,)
        The disparity of each query.
    gap : {"pair_error", "exposure", "rank"}, default="pair_error"
        The kind of disparity, which is written on the axis.
    limit : float, default=None
        A limit, which is drawn as a vertical line.
    name : str, default=None
        Name of the ranker in the legend.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The curve of the ranker.
    limit_ : matplotlib Line2D or None
        The line of the limit. It is None if there is no limit.

    See Also
    --------
    skfair.metrics.pair_error_gap : Compute one number for all queries.

    Examples
    --------
    >>> from skfair.inspection import RankingGapDisplay
    >>> display = RankingGapDisplay(gaps=[0.3, 0.1, 0.2, 0.05], limit=0.15).plot()
    >>> display.line_.get_xdata().tolist()
    [0.0, 0.05, 0.1, 0.2, 0.3]
    >>> display.ax_.get_ylabel()
    'Share of queries'
    """

    def __init__(
        self,
        *,
        gaps: ArrayLike,
        gap: Gap = "pair_error",
        limit: float | None = None,
        name: str | None = None,
    ) -> None:
        _check_gap(gap)
        if limit is not None:
            check_number(limit, "limit", low=0)
        self.gaps = np.sort(check_scores(gaps, "gaps"))
        self.gap, self.limit, self.name = gap, limit, name

    @classmethod
    def from_predictions(
        cls,
        y_true: ColumnLike,
        y_score: ColumnLike,
        *,
        query_id: ColumnLike,
        sensitive_features: ColumnsLike,
        intersectional: bool = True,
        gap: Gap = "pair_error",
        limit: float | None = None,
        name: str | None = None,
        ax: AxesOrNone = None,
        **kwargs: Any,
    ) -> Self:
        """Measure the disparity of each query and draw their distribution.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,) or None
            Grades of relevance, which are needed only for ``gap="pair_error"``.
        y_score : array-like of shape (n_samples,)
            Scores of the documents. Documents are ranked by decreasing score.
        query_id : array-like of shape (n_samples,)
            The query of each document.
        intersectional : bool, default=True
            If True, groups are the intersections of all attributes. If False, groups are compared
            within each attribute.
        gap : {"pair_error", "exposure", "rank"}, default="pair_error"
            The disparity of a query, as measured by :func:`skfair.metrics.pair_error_gap`,
            :func:`skfair.metrics.exposure_gap` or :func:`skfair.metrics.rank_gap`.
        **kwargs
            Options of the curve, which are passed to ``plot`` of matplotlib.
        """
        cls._needs_matplotlib("from_predictions")
        _check_gap(gap)
        if gap == "pair_error" and y_true is None:
            raise ValueError("gap='pair_error' needs y_true, the grades of the documents.")
        rows = ranked_rows(y_true, y_score, query_id, sensitive_features, intersectional)
        gaps = _GAPS[gap][0](rows)
        known = gaps[~np.isnan(gaps)]
        if not known.size:
            raise ValueError(
                f"The disparity is undefined in each of the {gaps.size} queries: none has the "
                "documents of two groups that it compares."
            )
        return cls(gaps=known, gap=gap, limit=limit, name=name).plot(ax=ax, **kwargs)

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: MatrixLike,
        y: ColumnLike,
        *,
        query_id: ColumnLike,
        sensitive_features: ColumnsLike | None = None,
        sensitive: ColumnNames | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Compute scores with a fitted ranker and draw the distribution of disparities.

        Parameters
        ----------
        estimator : object
            A fitted ranker, whose ``predict`` returns scores, or a classifier with scores.
        X : array-like of shape (n_samples, n_features)
            Features of the documents.
        y : array-like of shape (n_samples,)
            Grades of relevance.
        sensitive : str, int or list of them, default=None
            Columns of X that hold the groups, which replace ``sensitive_features``.
        name : str, default=None
            Name of the ranker in the legend. If None, the name of its class is used.
        **kwargs
            Further arguments of :meth:`from_predictions`, such as ``gap``, ``limit``, ``ax`` or
            options of the curve.
        """
        groups = cls._groups(estimator, X, sensitive_features, sensitive)
        return cls.from_predictions(
            y,
            get_response(estimator, X, (*SCORE_METHODS, "predict")),
            query_id=query_id,
            sensitive_features=groups,
            name=type(estimator).__name__ if name is None else name,
            **kwargs,
        )

    def plot(self, *, ax: AxesOrNone = None, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the distribution.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure is created. Axes that show another ranker keep
            their labels.
        """
        ax, start = self._start(ax)
        table = self._table()
        x, y = table["disparity"], table["share_of_queries"]
        label = self._label(name, f"mean {self.gaps.mean():.3f}")
        steps = {"drawstyle": "steps-post", "lw": 1.8}
        self.line_ = draw_line(ax, x, y, look(start), kwargs, **steps, label=label)
        self.limit_ = None
        if self.limit is not None:
            options: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "zorder": 0}
            self.limit_ = ax.axvline(self.limit, label=f"limit {self.limit:g}", **options)
        if not start:
            what = f"{_GAPS[self.gap][1]} (lower is better)"
            ax.set(xlabel=what, ylabel="Share of queries", ylim=(0, 1.02))
        ax.legend(loc="lower right")
        return self

    def _table(self) -> pd.DataFrame:
        shares = np.arange(self.gaps.size + 1) / self.gaps.size
        limit = np.nan if self.limit is None else self.limit
        table = {"disparity": np.append(0.0, self.gaps), "share_of_queries": shares, "limit": limit}
        return pd.DataFrame(table)


def _check_gap(gap: str) -> None:
    if gap not in _GAPS:
        raise ValueError(f"gap must be one of {', '.join(map(repr, _GAPS))}, got {gap!r}.")
