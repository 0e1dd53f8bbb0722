"""Accuracy and disparity along the path of a certified model: the cost of a certificate."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from skfair._typing import FloatArray
from skfair.groups.limits import DEFAULT_LIMIT
from skfair.inspection._display import AxesOrNone, Display, documented
from skfair.inspection._style import GREY, draw_line, look, marker_of_few
from skfair.utils.validation import check_number, check_scores


@documented
class CertificateDisplay(Display):
    """Accuracy against disparity and certified limit along a path of candidate decisions.

    The path begins with the strictest decisions and ends with decisions without limits. Each step
    of the path is drawn twice at the height of its accuracy: at its disparity on held-out rows, and
    at the smallest limit that can be certified for the population. The last certified step is the
    one that the model uses. It is marked on both lines.

    It is recommended to create the display with :meth:`from_estimator`.

    Parameters
    ----------
    disparities : array-like of shape (n_steps,)
        Disparity of each step on held-out rows.
    bounds : array-like of shape (n_steps,)
        Smallest limit that can be certified for each step.
    accuracies : array-like of shape (n_steps,)
        Accuracy of each step.
    n_certified : int
        Number of certified steps.
    max_disparity : float, default=None
        The limit, which is drawn as a vertical line.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The lines of the accuracy against the disparity and against the certified limit.
    used_ : matplotlib Line2D or None
        The marks of the step that is used, on both lines. It is None if no step was certified.

    See Also
    --------
    skfair.classification.FairDecisionClassifier : Classifier with such a path if
        ``confidence=0.95``.
    skfair.classification.ConstrainedERMClassifier : Classifier that is trained under limits, with
        the same option.

    Examples
    --------
    >>> from skfair.inspection import CertificateDisplay
    >>> display = CertificateDisplay(
    ...     disparities=[0.0, 0.01, 0.04],
    ...     bounds=[0.02, 0.04, 0.07],
    ...     accuracies=[0.76, 0.8, 0.84],
    ...     n_certified=2,
    ... ).plot()
    >>> display.ax_.get_xlabel()
    'Disparity (lower is better)'
    """

    def __init__(
        self,
        *,
        disparities: ArrayLike,
        bounds: ArrayLike,
        accuracies: ArrayLike,
        n_certified: int,
        max_disparity: float | None = None,
    ) -> None:
        self.disparities = check_scores(disparities, "disparities")
        self.bounds = check_scores(bounds, "bounds")
        self.accuracies = check_scores(accuracies, "accuracies")
        self._check_same_length("step", "disparities", "bounds", "accuracies")
        check_number(n_certified, "n_certified", 0, self.accuracies.size, Integral)
        self.n_certified, self.max_disparity = n_certified, max_disparity
        self._quality = "Accuracy"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: AxesOrNone = None) -> Self:
        """Draw the path of an estimator that was fitted with ``certificate``.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier or regressor. For a regressor, R2 is drawn instead of the accuracy.
        """
        cls._needs_matplotlib("from_estimator")
        try:
            path, limit = estimator.path_, _limit(estimator)
        except AttributeError as error:
            raise TypeError(
                f"estimator must be one that was fitted with confidence=, got {estimator!r}."
            ) from error
        display = cls(
            disparities=path["disparity"],
            bounds=path["bound"],
            accuracies=path["r2" if "r2" in path else "accuracy"],
            n_certified=int(np.count_nonzero(path["is_certified"])),
            max_disparity=limit,
        )
        if "r2" in path:
            display._quality = "R2"
        return display.plot(ax=ax)

    def plot(self, *, ax: AxesOrNone = None) -> Self:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure is created.
        """
        if self.max_disparity is not None:
            check_number(self.max_disparity, "max_disparity", 0.0)
        ax, start = self._start(ax)
        self.lines_ = [
            self._draw_line("on held-out rows", self.disparities, start),
            self._draw_line("shown for the population", self.bounds, start + 1),
        ]
        # The name of the first line is above its end, but not over the y axis. The name of the
        # second line is to the right of its end.
        left = max(self.disparities[-1], 0.12 * float(np.max(self.bounds)))
        colors, height = [line.get_color() for line in self.lines_], self.accuracies[-1]
        self._write("on held-out\nrows", left, height, (0, 4), color=colors[0], ha="center")
        text = "shown for\nthe population"
        self._write(text, self.bounds[-1], height, (6, -4), color=colors[1])
        self.used_ = None
        if self.n_certified:
            at = self.n_certified - 1
            ends, height = [self.disparities[at], self.bounds[at]], self.accuracies[at]
            (self.used_,) = ax.plot(ends, [height] * 2, color=GREY, lw=1, marker="o", label="used")
            self._write("used", ends[1], height, (0, -6), color=GREY, va="top")
        if self.max_disparity is not None:
            ax.axvline(self.max_disparity, color=GREY, lw=0.8, label="limit")
            down = {"xycoords": ax.get_xaxis_transform(), "va": "baseline"}
            self._write("limit", self.max_disparity, 0.01, (3, 0), color=GREY, **down)
        ax.set_xlim(left=0)
        ax.margins(y=0.1)
        ax.set(xlabel="Disparity (lower is better)", ylabel=f"{self._quality} (higher is better)")
        return self

    def _table(self) -> pd.DataFrame:
        steps = np.arange(self.accuracies.size)
        columns = {
            "disparity": self.disparities,
            "bound": self.bounds,
            self._quality.lower(): self.accuracies,
            "is_certified": steps < self.n_certified,
            "is_used": steps == self.n_certified - 1,
            "limit": np.nan if self.max_disparity is None else self.max_disparity,
        }
        return pd.DataFrame(columns)

    def _draw_line(self, label: str, disparities: FloatArray, number: int) -> Any:
        """Draw accuracies against disparities, in the look of this series."""
        marker = marker_of_few(look(number), disparities.size)
        options = {"lw": 1.5, "label": label, "marker": marker}
        return draw_line(self.ax_, disparities, self.accuracies, look(number), {}, **options)

    def _write(self, text: str, x: float, y: float, by: tuple[int, int], **options: Any) -> None:
        """Write a text at (x, y), moved by this many points to the right and up."""
        options = {"textcoords": "offset points", "va": "bottom"} | options
        self.ax_.annotate(text, (x, y), xytext=by, **options)


def _limit(estimator: Any) -> float | None:
    """Return the limit that all constraints share, or None if they have different ones."""
    constraints = np.ravel(np.array(estimator.constraint, dtype=object))
    own = [getattr(constraint, "own_limit", None) for constraint in constraints]
    asked = DEFAULT_LIMIT if estimator.max_disparity is None else estimator.max_disparity
    limits = [asked if limit is None else limit for limit in own]
    is_single = isinstance(limits[0], int | float) and all(limit == limits[0] for limit in limits)
    return float(limits[0]) if is_single else None
