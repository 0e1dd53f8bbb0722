"""The history of a solver: objective and violation by iteration or by time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skfair._typing import ColumnLike, FloatArray, MatrixLike
from skfair.inspection._display import (
    Display,
    OneOrMoreAxes,
    check_same_length,
    chosen_names,
    documented,
    fitted_attribute,
    stacked,
)
from skfair.inspection._style import draw_line, look, n_series
from skfair.utils.text import listed
from skfair.utils.validation import check_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Axis = Literal["iteration", "passes", "seconds"]
_AXES = {"iteration": "Iteration", "passes": "Passes over the rows", "seconds": "CPU seconds"}
_DEFAULT_COLUMNS = ("objective", "max_violation")
# Columns with one of these words in their name converge to 0 and need a logarithmic scale.
_TO_ZERO = ("violation", "residual", "gap")


@documented
class ConvergenceDisplay(Display):
    """History of a solver, with one panel for each column, such as objective and violation.

    Violations are drawn on a logarithmic scale. If some violations are 0, which means that the
    iterate is feasible, the scale is linear below the smallest positive violation, so that 0 can be
    shown.

    Create the display with :meth:`from_estimator`, or from any ``history_``. To compare two
    histories, draw the second one on the axes of the first with
    ``plot(ax=first.ax_, name="other")``.

    Parameters
    ----------
    history : dict of str to array-like of shape (n_iter,)
        Columns of equal length, such as ``objective``, ``max_violation`` and ``seconds``. Values
        that were not recorded are NaN.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of them
        The panels from top to bottom, or a single Axes if there is only one panel.
    columns_ : list of str
        The column of each panel.
    lines_ : list of matplotlib Line2D
        The line in each panel.

    See Also
    --------
    FairnessFrontDisplay : Compare the results of solvers instead of their histories.

    Examples
    --------
    >>> from skfair.inspection import ConvergenceDisplay
    >>> history = {"objective": [3.0, 2.0, 1.5], "max_violation": [0.1, 0.01, 0.001]}
    >>> display = ConvergenceDisplay(history=history).plot()
    >>> [ax.get_ylabel() for ax in display.ax_]
    ['Objective', 'Max violation']
    >>> display.ax_[1].get_yscale()
    'log'
    """

    def __init__(self, *, history: Mapping[str, ArrayLike], name: str | None = None) -> None:
        if not isinstance(history, Mapping):
            raise TypeError(
                f"history must be a dict of columns, got {type(history).__name__}. Pass the "
                "history_ of a fitted estimator."
            )
        self.history: dict[str, FloatArray] = {}
        for column, numbers in history.items():
            values = check_numbers(numbers, f"The column {column!r} of history")
            if values.ndim != 1 or not values.size:
                raise ValueError(
                    f"The column {column!r} of history must be 1-dimensional with at least one "
                    f"iteration, got the shape {values.shape}."
                )
            self.history[str(column)] = values
        check_same_length("iteration", **self.history)
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: MatrixLike | None = None,
        y: ColumnLike | None = None,
        *,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the history of a fitted estimator.

        Parameters
        ----------
        estimator : object
            A fitted estimator with ``history_``, or a pipeline or search that ends in one.
        X : object
            Not used. It is accepted so that all displays have the same signature.
        y : object
            Not used. It is accepted so that all displays have the same signature.
        **kwargs
            Further arguments of :meth:`plot`, such as ``x``, ``columns``, ``ax`` or options of the
            lines.
        """
        cls._needs_matplotlib("from_estimator")
        history = fitted_attribute(estimator, "history_", "the record of its solver's iterations")
        return cls(history=history, name=name).plot(**kwargs)

    def plot(
        self,
        *,
        ax: OneOrMoreAxes = None,
        x: Axis = "iteration",
        columns: str | Sequence[str] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the history.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, default=None
            Axes to draw on, one for each column. For a single column, a single Axes is sufficient.
            If None, a new figure is created, with the panels below each other.
        x : {"iteration", "passes", "seconds"}, default="iteration"
            Quantity on the horizontal axis. "iteration" counts iterations of the solver, or rows of
            the history if iterations were not recorded. "passes" counts evaluations of all rows,
            where a batch counts by its size. "seconds" is CPU time. Iterations of different solvers
            cost different amounts of work, so use passes or seconds to compare solvers. Seconds are
            not stored with a model, so copies of a model and models that were loaded from a file do
            not have them.
        columns : str or sequence of str, default=None
            Columns of the history to draw. If None, ``"objective"`` and ``"max_violation"`` are
            drawn if they were recorded, and all columns otherwise.
        **kwargs
            Options of the lines, which are passed to ``plot`` of matplotlib.
        """
        self.columns_ = self._check_columns(columns)
        steps = self._steps(x)
        panels = self._panels(ax, self.columns_, "column", (6.4, 1.4 + 2.2 * len(self.columns_)))
        self.lines_ = []
        model = self.name if name is None else name
        for panel, column in zip(panels, self.columns_, strict=True):
            style = look(n_series(panel))
            points = self._points(steps, column)
            n_recorded = points[0].size
            options: dict[str, Any] = {"marker": style.marker, "markersize": 4}
            if n_recorded > 40:  # with fewer iterations each has a marker
                options |= {"markevery": n_recorded // 8}
            if model is not None:
                options["label"] = model
            self.lines_.append(draw_line(panel, *points, style, kwargs, **options))
            panel.set_ylabel(column.replace("_", " ").capitalize())
            if any(word in column for word in _TO_ZERO):
                _scale_towards_zero(panel)
        panels[-1].set_xlabel(_AXES[x])
        if panels[0].get_legend_handles_labels()[0]:
            panels[0].legend()
        self._drawn = {"x": x, "columns": self.columns_}
        return self

    def _table(
        self, x: Axis = "iteration", columns: str | Sequence[str] | None = None
    ) -> pd.DataFrame:
        steps = self._steps(x)
        return stacked(
            {"column": column, **dict(zip((x, "value"), self._points(steps, column), strict=True))}
            for column in self._check_columns(columns)
        )

    def _points(self, steps: FloatArray, column: str) -> tuple[FloatArray, FloatArray]:
        """Return the recorded points of a column: their places on the x axis, and their values."""
        values = self.history[column]
        recorded = np.isfinite(values) & np.isfinite(steps)
        return steps[recorded], values[recorded]

    def _check_columns(self, columns: str | Sequence[str] | None) -> list[str]:
        """Return the names of the columns to draw: the given ones, or the usual ones if None."""
        if columns is None:
            usual = [column for column in _DEFAULT_COLUMNS if column in self.history]
            chosen = usual or [column for column in self.history if column not in _AXES]
        else:
            chosen = chosen_names(columns, "columns")
        unknown = [column for column in chosen if column not in self.history]
        if unknown or not chosen:
            raise ValueError(
                f"There is no column {listed(unknown) or 'to draw'}; the history has "
                f"{listed(self.history) or 'no columns'}."
            )
        return chosen

    def _steps(self, x: str) -> FloatArray:
        """Return the numbers on the x axis, one for each recorded iteration."""
        if not isinstance(x, str) or x not in _AXES:
            raise ValueError(f"x must be 'iteration', 'passes' or 'seconds', got {x!r}.")
        if x in self.history:
            return self.history[x]
        if x != "iteration":
            raise ValueError(
                f"The history has no column {x!r}, only {listed(self.history)}. Use x='iteration'."
            )
        n_iter = next(iter(self.history.values())).size
        return np.arange(1, n_iter + 1, dtype=np.float64)


def _scale_towards_zero(ax: Axes) -> None:
    """Make the y axis of a panel logarithmic, or "symlog" if a line of it reaches 0.

    Without a positive value the axis stays linear.
    """
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in ax.lines])
    positive = values[values > 0]
    if not positive.size:
        return
    if positive.size == values.size:
        ax.set_yscale("log")
        return
    # The axis is linear below the smallest positive value, or below 1e-8 of the largest value.
    ax.set_yscale("symlog", linthresh=max(positive.min(), positive.max() / 1e8))
