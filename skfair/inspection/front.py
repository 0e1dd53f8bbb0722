"""Trade-off fronts: cost against balance of clusterings, disparity against accuracy of classifiers.

Both are the same picture: points with two criteria, a staircase through the points that no other
point dominates, and hollow markers for dominated points. The display stores which direction of each
criterion is better, so that differences (smaller is fairer) and ratios (larger is fairer) are both
drawn correctly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score

from skfair._typing import ColumnLike, ColumnsLike, FloatArray
from skfair.inspection._display import AxesOrNone, Display, documented, if_given
from skfair.inspection._style import draw_line, look, plain
from skfair.metrics.fronts import nondominated
from skfair.metrics.labels import demographic_parity_difference
from skfair.utils.text import listed
from skfair.utils.validation import check_names, check_number, check_scores

Better = Literal["lower", "higher"]


@documented
class FairnessFrontDisplay(Display):
    """Models or clusterings by two criteria, with a line through the nondominated ones.

    A point is nondominated if no other point is at least as good in both criteria and better in
    one. The line is a staircase. Every combination of criteria on its worse side is attained or
    improved by one of its points.

    It is recommended to create the display with :meth:`from_predictions`, :meth:`from_classifiers`
    or :meth:`from_clusterings`. To compare two fronts, draw the second one on the axes of the first
    with ``from_clusterings(..., name="other", ax=first.ax_)``.

    Parameters
    ----------
    x : array-like of shape (n_points,)
        Value of the first criterion for each point.
    y : array-like of shape (n_points,)
        Value of the second criterion for each point.
    x_label : str
        Name of the first criterion.
    y_label : str
        Name of the second criterion.
    x_better : {"lower", "higher"}, default="lower"
        Whether lower or higher values of the first criterion are better.
    y_better : {"lower", "higher"}, default="higher"
        Whether lower or higher values of the second criterion are better.
    point_names : sequence of str, default=None
        Names that are written at the points. If None, no names are written, and an empty string
        leaves out a single name.
    selected : int or str, default=None
        Position or name of a point to mark as the selected one.

    Attributes
    ----------
    is_nondominated : ndarray of bool of shape (n_points,)
        Mask that is True for the points of the front.
    staircase : ndarray of shape (n_corners, 2)
        The corners of the staircase, from the best x to the best y.
    knee : int or None
        Position of the point of the front that is farthest from the straight line between the ends
        of the front, after both criteria are scaled to the same range. It is None if no point lies
        above that line.
    line_ : matplotlib Line2D
        The staircase.
    points_ : matplotlib Line2D
        The points of the front.
    dominated_ : matplotlib Line2D or None
        The dominated points, which are drawn hollow. It is None if there are none.
    marks_ : dict of str to matplotlib Line2D
        The marks ``"selected"`` and ``"knee"``, if they are drawn.
    texts_ : list of matplotlib Annotation
        The names of the points.

    See Also
    --------
    skfair.metrics.nondominated : Find the points of the front.
    skfair.metrics.hypervolume : Compute the area that a front dominates.

    Examples
    --------
    >>> from skfair.inspection import FairnessFrontDisplay
    >>> display = FairnessFrontDisplay.from_classifiers(
    ...     [0.85, 0.84, 0.80, 0.81], [0.20, 0.05, 0.01, 0.10], show_knee=True
    ... )
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('Disparity (lower is better)', 'Accuracy (higher is better)')
    >>> display.is_nondominated, display.knee
    (array([ True,  True,  True, False]), 1)
    """

    def __init__(
        self,
        *,
        x: ArrayLike,
        y: ColumnLike,
        x_label: str,
        y_label: str,
        x_better: Better = "lower",
        y_better: Better = "higher",
        point_names: Sequence[str] | None = None,
        selected: int | str | None = None,
        name: str | None = None,
    ) -> None:
        self.x, self.y = check_scores(x, "x"), check_scores(y, "y")
        self.point_names = if_given(check_names, point_names, "point_names")
        self._check_same_length("point", "x", "y", "point_names")
        for direction in (x_better, y_better):
            if direction not in ("lower", "higher"):
                raise ValueError(
                    f"x_better and y_better must be 'lower' or 'higher', got {direction!r}."
                )
        self.x_label, self.y_label, self.name = x_label, y_label, name
        self.x_better, self.y_better = x_better, y_better
        self.selected = _position(selected, self.x.size, self.point_names)
        # Both criteria are turned into a cost (lower is better) and a gain (higher is better).
        cost = self.x if x_better == "lower" else -self.x
        gain = self.y if y_better == "higher" else -self.y
        self.is_nondominated = nondominated(cost, gain)
        front = np.flatnonzero(self.is_nondominated)
        front = front[np.argsort(cost[front])]
        # The staircase goes from each point of the front along x to the next one, and then along y.
        # At its ends it extends to the largest cost and to the smallest gain of all points.
        steps = np.repeat(front, 2)
        corners_x, corners_y = np.append(steps, cost.argmax()), np.append(gain.argmin(), steps)
        self.staircase = np.stack([self.x[corners_x], self.y[corners_y]], axis=1)
        self.knee = _knee(front, cost, gain)

    @classmethod
    def from_clusterings(
        cls,
        costs: ArrayLike,
        balances: ArrayLike,
        *,
        point_names: Sequence[str] | None = None,
        selected: int | str | None = None,
        name: str | None = None,
        ax: AxesOrNone = None,
        **kwargs: Any,
    ) -> Self:
        """Draw clusterings by their cost and their balance.

        Parameters
        ----------
        costs : array-like of shape (n_points,)
            Cost of each clustering, at least 0 (smaller is better).
        balances : array-like of shape (n_points,)
            Balance of each clustering (larger is better).
        point_names : sequence of str, default=None
            Names that are written at the points.
        """
        cls._needs_matplotlib("from_clusterings")
        display = cls(
            x=_at_least_zero(costs, "costs"),
            y=check_scores(balances, "balances"),
            x_label="Clustering cost",
            y_label="Balance",
            point_names=point_names,
            selected=selected,
            name=name,
        )
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_classifiers(
        cls,
        accuracies: ArrayLike,
        disparities: ArrayLike,
        *,
        larger_is_fairer: bool = False,
        point_names: Sequence[str] | None = None,
        selected: int | str | None = None,
        name: str | None = None,
        ax: AxesOrNone = None,
        **kwargs: Any,
    ) -> Self:
        """Draw classifiers by their accuracy and their disparity.

        Parameters
        ----------
        accuracies : array-like of shape (n_points,)
            Accuracy of each classifier, or any other score for which larger is better.
        disparities : array-like of shape (n_points,)
            Disparity of each classifier: differences or gaps between groups, at least 0, or ratios
            if ``larger_is_fairer`` is True. Scorers named ``neg_...`` return negative differences,
            so change their sign.
        larger_is_fairer : bool, default=False
            Whether ``disparities`` are ratios or other measures for which larger is fairer.
        **kwargs
            Further arguments of :meth:`plot`, such as ``show_knee`` or options of the staircase.
        """
        cls._needs_matplotlib("from_classifiers")
        display = cls(
            x=_at_least_zero(disparities, "disparities"),
            y=check_scores(accuracies, "accuracies"),
            x_label="Fairness" if larger_is_fairer else "Disparity",
            y_label="Accuracy",
            x_better="higher" if larger_is_fairer else "lower",
            point_names=point_names,
            selected=selected,
            name=name,
        )
        return display.plot(ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ColumnLike,
        y_preds: Mapping[str, ColumnLike],
        *,
        sensitive_features: ColumnsLike,
        metric: Callable[..., float] = demographic_parity_difference,
        sample_weight: ColumnLike | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw classifiers by the accuracy and the disparity of their predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        y_preds : dict of str to array-like of shape (n_samples,)
            Predicted labels of each classifier, as a dict from names to labels. The names are
            written at the points.
        metric : callable, default=demographic_parity_difference
            A metric of labels, which is called as ``metric(y_true, y_pred,
            sensitive_features=...)``. Use ``functools.partial`` to set its other arguments. For
            ratios, larger values are drawn as fairer.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        **kwargs
            Further arguments of :meth:`from_classifiers`, such as ``selected``, ``name``, ``ax``
            and ``show_knee``.
        """
        cls._needs_matplotlib("from_predictions")
        if not isinstance(y_preds, Mapping) or not y_preds:
            raise TypeError(
                "y_preds must be a dict of the predictions of each classifier by its name, got "
                f"{y_preds!r}. Pass {{'name': y_pred}}."
            )
        if not callable(metric):
            raise TypeError(f"metric must be a function of labels and groups, got {metric!r}.")
        groups = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        accuracies = [
            accuracy_score(y_true, predicted, sample_weight=sample_weight)
            for predicted in y_preds.values()
        ]
        disparities = [metric(y_true, predicted, **groups) for predicted in y_preds.values()]
        name = getattr(getattr(metric, "func", metric), "__name__", "")
        kwargs = {"larger_is_fairer": name.endswith("_ratio"), **kwargs}
        return cls.from_classifiers(accuracies, disparities, point_names=list(y_preds), **kwargs)

    def plot(
        self,
        *,
        ax: AxesOrNone = None,
        show_knee: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the front.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure is created. Axes that show another front keep
            their labels.
        show_knee : bool, default=False
            Whether to mark the point at :attr:`knee`, if there is one.
        **kwargs
            Options of the staircase, which are passed to ``plot`` of matplotlib.
        """
        ax, start = self._start(ax)
        style = look(start)
        corners = self.staircase[:, 0], self.staircase[:, 1]
        self.line_ = draw_line(ax, *corners, style, kwargs, lw=1.5)
        color = self.line_.get_color()
        dots = {"color": color, "marker": style.marker, "linestyle": "none"}
        front, rest = self.is_nondominated, ~self.is_nondominated
        label = self._label(name, "nondominated")
        self.points_ = ax.plot(self.x[front], self.y[front], label=label, **dots)[0]
        self.dominated_ = None
        if rest.any():
            dots |= {"fillstyle": "none", "alpha": 0.8, "label": self._label(name, "dominated")}
            (self.dominated_,) = ax.plot(self.x[rest], self.y[rest], **dots)
        points = {"selected": self.selected, "knee": self.knee if show_knee else None}
        marked = {what: point for what, point in points.items() if point is not None}
        marks = {
            "selected": {"marker": "*", "markersize": 18, "markerfacecolor": "white"},
            "knee": {"marker": "o", "markersize": 15, "markerfacecolor": "none"},
        }
        self.marks_ = {}
        for what, point in marked.items():
            options = {"markeredgecolor": color, "markeredgewidth": 1.5, "linestyle": "none"}
            options |= marks[what] | {"label": self._label(name, what)}
            (self.marks_[what],) = ax.plot(self.x[point], self.y[point], **options)
        self._write_names(set(marked.values()))
        if not start:
            ax.set_xlabel(f"{self.x_label} ({self.x_better} is better)")
            ax.set_ylabel(f"{self.y_label} ({self.y_better} is better)")
            # The margins have room for the names, which are on the better side of their points.
            ax.margins(0.15 if self.texts_ else 0.07)
        ax.legend()
        return self

    def _table(self) -> pd.DataFrame:
        points = np.arange(self.x.size)
        table = pd.DataFrame({"x": self.x, "y": self.y})
        table.columns = pd.Index(
            label.lower().replace(" ", "_") for label in (self.x_label, self.y_label)
        )
        return table.assign(
            name=self.point_names or "",
            is_nondominated=self.is_nondominated,
            is_selected=points == self.selected,
            is_knee=points == self.knee,
        )

    def _write_names(self, marked: set[int]) -> None:
        """Write the names on the better side of the points, where the staircase is not."""
        right = 1 if self.x_better == "higher" else -1
        up = 1 if self.y_better == "higher" else -1
        options: dict[str, Any] = {"textcoords": "offset points", "size": "small"}
        options |= {"ha": "left" if right > 0 else "right", "va": "bottom" if up > 0 else "top"}
        self.texts_ = []
        for i, text in enumerate(self.point_names or ()):
            if text:
                distance = 9 if i in marked else 5  # marks are larger than points
                options["xytext"] = (distance * right, distance * up)
                self.texts_.append(
                    self.ax_.annotate(plain(text), (self.x[i], self.y[i]), **options)
                )


def _knee(front: NDArray[np.intp], cost: FloatArray, gain: FloatArray) -> int | None:
    """Return the point of the sorted front that is farthest above the line between its ends.

    Costs and gains are scaled so that the ends have 0 and 1. The result is None if the front has
    less than three points, or if no point is above the line.
    """
    if front.size < 3:
        return None
    # Both costs and gains of a front increase strictly from point to point, so no range is 0.
    share_of_cost, share_of_gain = (
        (values - values[0]) / (values[-1] - values[0]) for values in (cost[front], gain[front])
    )
    rise = share_of_gain - share_of_cost
    best = int(rise.argmax())
    return int(front[best]) if rise[best] > 0 else None


def _position(point: int | str | None, n_points: int, names: Sequence[str] | None) -> int | None:
    """Return the position of the ``selected`` point, given its position or name (or None)."""
    if point is None:
        return None
    if isinstance(point, str):
        if names is None or point not in names:
            known = (
                "there are no point_names" if names is None else f"the names are {listed(names)}"
            )
            raise ValueError(f"selected={point!r} is not the name of a point; {known}.")
        return names.index(point)
    check_number(point, "selected", -n_points, n_points - 1, Integral)
    return int(point) % n_points


def _at_least_zero(values: ArrayLike, name: str) -> FloatArray:
    """Return checked numbers; raise for negative ones, which usually are negated scores."""
    numbers = check_scores(values, name)
    if numbers.min() < 0:
        raise ValueError(
            f"{name} has negative values (smallest: {numbers.min():g}). Scores are negated where "
            f"smaller is better; pass -{name}."
        )
    return numbers
