"""What all displays share: how they read an estimator, start a picture and name what they draw.

A display keeps to itself what its numbers are, how they are computed, and how they are drawn.
``from_estimator`` asks a fitted model and hands over to ``from_predictions``, which computes the
numbers and hands over to ``plot``; each passes on the keyword arguments that it does not need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skfair._typing import ColumnNames, ColumnsLike, MatrixLike
from skfair.inspection._inputs import read_groups
from skfair.inspection._style import axes_for, check_matplotlib, label_rows, n_series, with_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Display:
    """Base of the displays."""

    name: str | None = None

    @classmethod
    def _needs_matplotlib(cls, method: str) -> str:
        """Return the full name of a method; raise if matplotlib, which it needs, is missing."""
        caller = f"{cls.__name__}.{method}"
        check_matplotlib(caller)
        return caller

    @classmethod
    def _groups(
        cls,
        estimator: object,
        X: MatrixLike | None,
        sensitive_features: ColumnsLike | None,
        sensitive_columns: ColumnNames | None,
    ) -> Any:
        """Return the groups of the rows that ``from_estimator`` is given."""
        caller = cls._needs_matplotlib("from_estimator")
        return read_groups(caller, X, sensitive_features, sensitive_columns, estimator)

    def _start(
        self,
        ax: Axes | None,
        figsize: tuple[float, float] = (6.4, 4.6),
        *,
        alone: str = "",
        rows: tuple[Sequence[str], Sequence[str] | None] | None = None,
    ) -> tuple[Axes, int]:
        """Return the axes to draw on, and the number of series that they show already.

        ``alone`` is the message for axes that show data where the display needs axes of its own;
        ``rows`` are the names and the sizes of the rows of the display, if it has rows.
        """
        ax = axes_for(self, ax, figsize)
        start = n_series(ax)
        if alone and start:
            raise ValueError(alone)
        if rows is not None:
            label_rows(ax, *rows)
        self.ax_, self.figure_ = ax, ax.figure
        return ax, start

    def _label(self, name: str | None, text: str) -> str:
        """Put the name of the model in front of the label of a series."""
        return with_name(self.name if name is None else name, text)
