"""Trade-off fronts: cost against balance of clusterings, disparity against accuracy of classifiers.

Both are the same picture: points with two criteria, the staircase of those that no other point
dominates, the rest hollow. Which direction is better is part of the data, so that differences
(smaller is fairer) and ratios (larger is fairer) are both drawn right.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skfair._typing import ColumnLike, FloatArray
from skfair.inspection._display import Display
from skfair.inspection._docs import documented
from skfair.inspection._inputs import check_same_length
from skfair.inspection._style import draw_line, look, plain
from skfair.metrics.fronts import nondominated
from skfair.utils.text import listed
from skfair.utils.validation import check_names, check_number, check_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation

Better = Literal["lower", "higher"]


@documented
class FairnessFrontDisplay(Display):
    """Models or clusterings by two criteria, with the staircase of the nondominated ones.

    A point is nondominated if no other one is at least as good in both criteria and better in one.
    What lies on the worse side of the staircase is attained or beaten by one of its points.

    Make it with :meth:`from_clusterings` or :meth:`from_classifiers`. Draw a second front on the
    axes of the first, ``from_clusterings(..., name="other", ax=first.ax_)``, to compare the two.

    Parameters
    ----------
    x, y : array-like of shape (n_points,)
        The two criteria of each point.
    x_label, y_label : str
        What they are.
    x_better, y_better : {"lower", "higher"}, default="lower" and "higher"
        Which direction of each criterion is better.
    point_names : sequence of str, default=None
        Names written at the points; None or an empty string writes nothing.
    selected : int or str, default=None
        Position or name of a point to mark as the selected one.

    Attributes
    ----------
    is_nondominated : ndarray of bool of shape (n_points,)
        The points of the front.
    staircase : ndarray of shape (n_corners, 2)
        The corners of the line, from the best x to the best y.
    knee : int or None
        Position of the point of the front that is farthest from the line between its ends, after
        scaling both criteria to the same range. None if no point lies above that line.
    line_ : matplotlib Line2D
        The staircase.
    points_ : matplotlib Line2D
        The points of the front.
    dominated_ : matplotlib Line2D or None
        The other points, hollow; None if there are none.
    marks_ : dict of str to matplotlib Line2D
        The marks ``"selected"`` and ``"knee"``, as far as they were drawn.
    texts_ : list of matplotlib Annotation
        The names of the points.

    See Also
    --------
    skfair.metrics.nondominated : The points of the front.
    skfair.metrics.hypervolume : The area that a front dominates.

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
        self.point_names = None if point_names is None else check_names(point_names, "point_names")
        named = {} if self.point_names is None else {"point_names": self.point_names}
        check_same_length("point", x=self.x, y=self.y, **named)
        for direction in (x_better, y_better):
            if direction not in ("lower", "higher"):
                raise ValueError(
                    f"x_better and y_better must be 'lower' or 'higher', got {direction!r}."
                )
        self.x_label, self.y_label = x_label, y_label
        self.x_better, self.y_better = x_better, y_better
        self.selected = _position(selected, self.x.size, self.point_names)
        self.name = name
        # As a cost and a gain, whatever the directions.
        cost = self.x if x_better == "lower" else -self.x
        gain = self.y if y_better == "higher" else -self.y
        self.is_nondominated = nondominated(cost, gain)
        front = np.flatnonzero(self.is_nondominated)
        front = front[np.argsort(cost[front])]
        self.staircase = self._corners(front, int(cost.argmax()), int(gain.argmin()))
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
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw clusterings by their cost and their balance.

        Parameters
        ----------
        costs : array-like of shape (n_points,)
            Costs, smaller is better, at least 0.
        balances : array-like of shape (n_points,)
            Balances, larger is better.
        point_names : sequence of str, default=None
            Names written at the points.
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
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw classifiers by their accuracy and their disparity.

        Parameters
        ----------
        accuracies : array-like of shape (n_points,)
            Accuracies, or any other score that is better when larger.
        disparities : array-like of shape (n_points,)
            Differences or gaps between groups, at least 0, smaller is fairer; with
            ``larger_is_fairer`` ratios. Scorers named ``neg_...`` return the negative of it.
        larger_is_fairer : bool, default=False
            Whether ``disparities`` are ratios or other measures that are fairer when larger.
        **kwargs
            Passed to :meth:`plot`: ``show_knee``, or options of the staircase.
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

    def plot(
        self,
        *,
        ax: Axes | None = None,
        show_knee: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the front.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure. Axes that show another front keep their
            labels.
        show_knee : bool, default=False
            Whether to mark the point at :attr:`knee`, if there is one.
        **kwargs
            Passed to ``plot`` of matplotlib for the staircase.
        """
        ax, start = self._start(ax)
        style = look(start)
        self.line_ = draw_line(
            ax, self.staircase[:, 0], self.staircase[:, 1], style, kwargs, lw=1.5
        )
        color = self.line_.get_color()
        dots: dict[str, Any] = {"color": color, "marker": style.marker, "linestyle": "none"}
        front, rest = self.is_nondominated, ~self.is_nondominated
        label = self._label(name, "nondominated")
        (self.points_,) = ax.plot(self.x[front], self.y[front], label=label, **dots)
        self.dominated_: Line2D | None = None
        if rest.any():
            dots |= {"fillstyle": "none", "alpha": 0.8, "label": self._label(name, "dominated")}
            (self.dominated_,) = ax.plot(self.x[rest], self.y[rest], **dots)
        self.marks_: dict[str, Line2D] = {}
        if self.selected is not None:
            self._mark("selected", self.selected, name, color, "*", 18)
        if show_knee and self.knee is not None:
            self._mark("knee", self.knee, name, color, "o", 15)
        self.texts_ = self._write_names()
        if not start:
            ax.set_xlabel(f"{self.x_label} ({self.x_better} is better)")
            ax.set_ylabel(f"{self.y_label} ({self.y_better} is better)")
            # Room for the names, which stand on the better side of their points.
            ax.margins(0.15 if self.texts_ else 0.07)
        ax.legend()
        return self

    def _corners(self, front: NDArray[np.intp], last: int, lowest: int) -> FloatArray:
        """List the corners of the staircase, from the worst y at the best x to the worst x."""
        # From each point of the front straight in x to the next one, then up in y; at both ends
        # as far as there are points.
        steps = np.repeat(front, 2)
        x = np.append(self.x[steps], self.x[last])
        y = np.append(self.y[lowest], self.y[steps])
        return np.stack([x, y], axis=1)

    def _mark(
        self, what: str, point: int, name: str | None, color: Any, marker: str, size: int
    ) -> None:
        """Draw a large hollow mark around a point."""
        (self.marks_[what],) = self.ax_.plot(
            self.x[point],
            self.y[point],
            marker=marker,
            markersize=size,
            linestyle="none",
            markerfacecolor="white" if marker == "*" else "none",
            markeredgecolor=color,
            markeredgewidth=1.5,
            label=self._label(name, what),
        )

    def _write_names(self) -> list[Annotation]:
        """Write the names on the better side of the points, which the staircase leaves free."""
        right = 1 if self.x_better == "higher" else -1
        up = 1 if self.y_better == "higher" else -1
        distance = np.full(self.x.size, 5)
        for mark, point in (("selected", self.selected), ("knee", self.knee)):
            if mark in self.marks_:  # marks are larger than points
                distance[point] = 9
        return [
            self.ax_.annotate(
                plain(text),
                (self.x[i], self.y[i]),
                xytext=(distance[i] * right, distance[i] * up),
                textcoords="offset points",
                ha="left" if right > 0 else "right",
                va="bottom" if up > 0 else "top",
                size="small",
            )
            for i, text in enumerate(self.point_names or ())
            if text
        ]


def _knee(front: NDArray[np.intp], cost: FloatArray, gain: FloatArray) -> int | None:
    """Return the point of the sorted front farthest above the line between its ends."""
    if front.size < 3:
        return None
    # Costs and gains of a front both grow strictly from point to point.
    share_of_cost, share_of_gain = (
        (values - values[0]) / (values[-1] - values[0]) for values in (cost[front], gain[front])
    )
    rise = share_of_gain - share_of_cost
    best = int(rise.argmax())
    return int(front[best]) if rise[best] > 0 else None


def _position(point: int | str | None, n_points: int, names: Sequence[str] | None) -> int | None:
    """Return the position of a point given by its position or name."""
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
    """Return numbers; negative ones raise, for they come from negated scores."""
    numbers = check_scores(values, name)
    if numbers.min() < 0:
        raise ValueError(
            f"{name} has negative values (smallest: {numbers.min():g}). Scores are negated where "
            f"smaller is better; pass -{name}."
        )
    return numbers
