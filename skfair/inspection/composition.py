"""Shares of the groups in each cluster, as stacked bars beside the shares in the sample.

With several attributes (``intersectional=False``) each cluster has one bar per attribute, and
``attribute_of_group`` says which attribute a group belongs to. The display is for labels of any
clusterer, so it is in the folder of none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skfair._typing import ColumnLike, ColumnNames, ColumnsLike, MatrixLike
from skfair.groups.cohort import cohort_of
from skfair.groups.cohort_rows import value_rows
from skfair.inspection import _style
from skfair.inspection._display import (
    AxesOrNone,
    Display,
    check_shape,
    documented,
    fitted_attribute,
    stacked,
)
from skfair.utils.validation import check_labels, check_names


@documented
class ClusterCompositionDisplay(Display):
    """Shares of the groups in each cluster as stacked bars.

    Dashed lines show the shares of the groups in the whole sample. If every boundary between two
    colours lies on its dashed line, the cluster mixes the groups as the whole sample does. The size
    of each cluster is written below its bar.

    It is recommended to create the display with :meth:`from_estimator` or :meth:`from_labels`.

    Parameters
    ----------
    shares : array-like of shape (n_groups, n_clusters)
        Share of each group in each cluster.
    overall_shares : array-like of shape (n_groups,)
        Share of each group in the sample.
    group_names : sequence of str
        Names of the groups.
    cluster_names : sequence of str
        Names of the clusters.
    sizes : array-like of shape (n_clusters,)
        Number (or total weight) of the rows of each cluster.
    attribute_of_group : array-like of shape (n_groups,), default=None
        Number of the attribute to which each group belongs. Attributes are drawn as bars side by
        side, and the shares of the groups of one attribute add up to 1. If None, there is a single
        attribute.

    Attributes
    ----------
    bars_ : list of matplotlib BarContainer
        The bars of each group, with one piece per cluster.
    overall_lines_ : list of matplotlib LineCollection
        The dashed lines, with one collection for each attribute that has more than one group.

    See Also
    --------
    skfair.metrics.share_deviation : Compute the largest distance of a share from its line.
    skfair.metrics.balance_score : Compare the groups of each cluster with each other.

    Examples
    --------
    >>> from skfair.inspection import ClusterCompositionDisplay
    >>> labels, sex = [0, 0, 0, 0, 1, 1], ["f", "m", "m", "m", "f", "m"]
    >>> display = ClusterCompositionDisplay.from_labels(labels, sensitive_features=sex)
    >>> display.ax_.get_ylabel()
    'Share of the cluster'
    >>> display.shares
    array([[0.25, 0.5 ],
           [0.75, 0.5 ]])
    """

    def __init__(
        self,
        *,
        shares: ArrayLike,
        overall_shares: ArrayLike,
        group_names: Sequence[str],
        cluster_names: Sequence[str],
        sizes: ArrayLike,
        attribute_of_group: ArrayLike | None = None,
    ) -> None:
        self.group_names = check_names(group_names, "group_names")
        self.cluster_names = check_names(cluster_names, "cluster_names")
        n_groups, n_clusters = len(self.group_names), len(self.cluster_names)
        why = f" for {n_groups} groups and {n_clusters} clusters"
        self.shares = check_shape(shares, "shares", (n_groups, n_clusters), why)
        self.overall_shares = check_shape(overall_shares, "overall_shares", (n_groups,), why)
        self.sizes = check_shape(sizes, "sizes", (n_clusters,), why)
        numbers = np.zeros(n_groups) if attribute_of_group is None else attribute_of_group
        numbers = check_shape(numbers, "attribute_of_group", (n_groups,), why)
        self.attribute_of_group = numbers.astype(np.int64)

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: MatrixLike | None = None,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sensitive: ColumnNames | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the clusters that a fitted clusterer found in its training sample.

        Parameters
        ----------
        estimator : object
            A fitted clusterer with ``labels_``, or a pipeline or search that ends in one.
        X : array-like of shape (n_samples, n_features), default=None
            The training rows. They are needed only to read the columns of ``sensitive``. For other
            rows, use ``from_labels(estimator.predict(X_new), ...)``.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
            The group of each training row. Each column is one sensitive attribute.
        **kwargs
            Further arguments of :meth:`from_labels`, such as ``sample_weight`` and ``ax``.
        """
        cls._needs_matplotlib("from_estimator")
        labels = fitted_attribute(estimator, "labels_", "the cluster of each training row")
        groups = cls._groups(estimator, X, sensitive_features, sensitive)
        return cls.from_labels(labels, sensitive_features=groups, **kwargs)

    @classmethod
    def from_labels(
        cls,
        labels: ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        sample_weight: ColumnLike | None = None,
        intersectional: bool = True,
        ax: AxesOrNone = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the shares of the groups in given clusters.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Cluster of each row. Any labels are accepted. Clusters without weight are left out.
        intersectional : bool, default=True
            If True, groups are the intersections of all attributes. If False, the attributes are
            drawn side by side.
        """
        cls._needs_matplotlib("from_labels")
        codes, clusters = check_labels(labels, "labels")
        people = cohort_of(
            y_pred=labels, sensitive_features=sensitive_features, sample_weight=sample_weight
        )
        rows = value_rows(people, lambda _: codes, ["y_pred"], intersectional, each_row=True)
        groups, weights = rows.groups.cells, rows.weights
        table = groups.cross_counts(codes, len(clusters), weights)
        sizes = np.bincount(codes, weights=weights, minlength=len(clusters)).astype(np.float64)
        occurs = np.flatnonzero(sizes > 0)
        display = cls(
            shares=table[:, occurs] / sizes[occurs],
            overall_shares=table.sum(axis=1) / sizes.sum(),
            group_names=groups.names,
            cluster_names=[str(clusters[k]) for k in occurs],
            sizes=sizes[occurs],
            attribute_of_group=groups.attribute_of_group,
        )
        return display.plot(ax=ax, **kwargs)

    def plot(self, *, ax: AxesOrNone = None, **kwargs: Any) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure of suitable width is created. The bars fill the
            axes, so the axes must not show another composition. The legend is placed to the right
            of the axes, which requires a figure with ``layout="constrained"``.
        **kwargs
            Options of the bars, which are passed to ``bar`` of matplotlib.
        """
        is_new = ax is None
        n_clusters, n_attributes = len(self.cluster_names), int(self.attribute_of_group.max()) + 1
        sizes = [f"n = {size:,.0f}" if size >= 1e6 else f"n = {size:,g}" for size in self.sizes]
        clusters = [_style.plain(name) for name in self.cluster_names]
        letters = _style.longest_line([*clusters, *sizes])
        # Widths in inches of the bars in a new figure (``room``) and of the legend (``beside``).
        room = max((letters + 1) * _style.LETTER, 0.25 * n_attributes) * n_clusters
        entries = [_style.plain(name) for name in self.group_names]
        column = _style.LETTER * max(12, _style.longest_line(entries)) + 0.7
        beside = column * _style.legend_columns(len(entries) + 1)
        # The figure is at most 10 inches wide, like a printed page, even if labels must be rotated.
        inches = min(max(room, 2.5), max(10.0 - beside, 5.0))
        ax, _ = self._start(
            ax,
            (0.9 + inches + beside, 4.2),  # leaves room for the axis on the left
            alone="ax already shows data, and the bars would cover them. Plot each composition on "
            "axes of its own.",
        )
        self.bars_: list[Any] = []
        self.overall_lines_: list[Any] = []
        for a in range(n_attributes):
            self._draw_attribute(a, n_attributes, kwargs)
        if not is_new:
            inches = ax.get_window_extent().width / ax.figure.dpi
        turned = letters * _style.LETTER * n_clusters > inches
        gap = "  " if turned else "\n"
        labels = [f"{c}{gap}{size}" for c, size in zip(clusters, sizes, strict=True)]
        ax.set_xticks(range(n_clusters), labels, rotation=90 if turned else 0)
        ax.set(xlim=(-0.5, n_clusters - 0.5), ylim=(0, 1))
        ax.set(xlabel="Cluster", ylabel="Share of the cluster")
        # The legend is reversed, so that its entries are in the order of the stacked bars from the
        # top down, and the dashed line is last.
        _style.legend_beside(ax, [*self.overall_lines_[:1], *self.bars_], reverse=True)
        return self

    def _table(self) -> pd.DataFrame:
        return stacked(
            {
                "attribute": self.attribute_of_group[g],
                "group": group,
                "cluster": self.cluster_names,
                "share": self.shares[g],
                "overall_share": self.overall_shares[g],
                "size": self.sizes,
            }
            for g, group in enumerate(self.group_names)
        )

    def _draw_attribute(self, attribute: int, n_attributes: int, overrides: dict[str, Any]) -> None:
        """Draw the bars of the groups of one attribute, and their shares in the sample."""
        from matplotlib.patches import Rectangle

        n_clusters, width = len(self.cluster_names), 0.8 / n_attributes
        x = np.arange(n_clusters) + (attribute - (n_attributes - 1) / 2) * width
        below = np.zeros(n_clusters)
        members = np.flatnonzero(self.attribute_of_group == attribute)
        for g in members.tolist():
            options = {
                "width": width,
                "color": _style.look(g).color,
                "label": _style.plain(self.group_names[g]),
            }
            options |= {"hatch": _style.look(g).hatch, "edgecolor": "white"}
            options = _style.with_options(Rectangle, options, overrides)
            bars = self.ax_.bar(x, self.shares[g], bottom=below, **options)
            _style.as_series(bars.patches[0])
            self.bars_.append(bars)
            below = below + self.shares[g]
        heights = np.cumsum(self.overall_shares[members])[:-1]
        if heights.size:
            # With one attribute a line crosses all bars. With several, each bar has its own line.
            ends = np.stack([x - width / 2, x + width / 2])
            if n_attributes == 1:
                ends = np.array([[-0.5], [n_clusters - 0.5]])
            lines = np.broadcast_arrays(heights[:, None], *ends[:, None])
            style = {"color": "black", "linestyle": "--", "lw": 1.5, "label": "whole sample"}
            self.overall_lines_.append(self.ax_.hlines(*map(np.ravel, lines), **style))
