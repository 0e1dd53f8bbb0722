"""What a certificate costs: accuracy and disparity along the path of a certified classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skfair.inspection._display import Display
from skfair.inspection._docs import documented
from skfair.inspection._inputs import check_same_length
from skfair.inspection._style import GREY, draw_line, look, marker_of_few
from skfair.utils.validation import check_number, check_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D


@documented
class CertificateDisplay(Display):
    """Accuracy against disparity along a path of decisions, and what can be shown of the disparity.

    The path begins with the strictest decisions and ends with free ones. Each step is a point on
    two lines of the same height: its disparity on held-out rows, and the smallest limit that can be
    shown to hold for the population. The last certified step, which is used, has a mark on both.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    disparities, bounds, accuracies : array-like of shape (n_steps,)
        Of each step: the disparity on held-out rows, the smallest limit that can be shown, and the
        accuracy.
    n_certified : int
        How many steps were certified.
    max_disparity : float, default=None
        The limit.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
        The accuracy against the disparity, and against the bound.
    used_ : matplotlib Line2D or None
        The step that is used, on both lines; None if no step was certified.

    See Also
    --------
    skfair.classification.FairDecisionClassifier : ``confidence=0.95`` makes such a path.
    skfair.classification.ConstrainedERMClassifier : The same for a model trained within its limits.

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
        check_same_length(
            "step",
            disparities=self.disparities,
            bounds=self.bounds,
            accuracies=self.accuracies,
        )
        self.n_certified, self.max_disparity = n_certified, max_disparity
        self._quality = "Accuracy"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the path of an estimator that was fitted with ``confidence``.

        Parameters
        ----------
        estimator : estimator
            A fitted classifier, or a regressor, of which R2 takes the place of the accuracy.
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

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on; None makes a new figure.
        """
        if self.max_disparity is not None:
            check_number(self.max_disparity, "max_disparity", 0.0)
        ax, start = self._start(ax)
        shown = {"on held-out rows": self.disparities, "shown for the population": self.bounds}
        self.lines_ = []
        for number, (label, disparities) in enumerate(shown.items()):
            style = look(start + number)
            marked = {"marker": marker_of_few(style, disparities.size)}
            point = disparities, self.accuracies
            self.lines_.append(draw_line(ax, *point, style, marked, lw=1.5, label=label))
            self._write(label, disparities[-1], style.color, is_above=not number)
        self.used_ = self._draw_used()
        if self.max_disparity is not None:
            ax.axvline(self.max_disparity, color=GREY, lw=0.8, label="limit")
            place: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points"}
            down = ax.get_xaxis_transform()
            ax.annotate("limit", (self.max_disparity, 0.01), xycoords=down, color=GREY, **place)
        ax.set_xlim(left=0)
        ax.margins(y=0.1)
        ax.set_xlabel("Disparity (lower is better)")
        ax.set_ylabel(f"{self._quality} (higher is better)")
        return self

    def _write(self, label: str, disparity: float, color: str, *, is_above: bool) -> None:
        """Write the name of a line at its end: above it, or on its right."""
        place: dict[str, Any] = {"textcoords": "offset points", "va": "bottom"}
        place |= {"xytext": (0, 4), "ha": "center"} if is_above else {"xytext": (6, -4)}
        if is_above:  # not over the upright axis
            disparity = max(disparity, 0.12 * float(np.max(self.bounds)))
        text = label.replace(" rows", "\nrows").replace(" the ", "\nthe ")
        self.ax_.annotate(text, (disparity, self.accuracies[-1]), color=color, **place)

    def _draw_used(self) -> Line2D | None:
        """Mark the last certified step on both lines."""
        if not self.n_certified:
            return None
        at = self.n_certified - 1
        ends, height = [self.disparities[at], self.bounds[at]], self.accuracies[at]
        (line,) = self.ax_.plot(ends, [height] * 2, color=GREY, lw=1, marker="o", label="used")
        place: dict[str, Any] = {"xytext": (0, -6), "textcoords": "offset points"}
        self.ax_.annotate("used", (ends[1], height), color=GREY, va="top", ha="left", **place)
        return line


def _limit(estimator: Any) -> float | None:
    """Return the limit of all constraints; None if there are several."""
    rules = estimator.constraint
    own = [getattr(rule, "own_limit", None) for rule in np.ravel(np.array(rules, dtype=object))]
    limits = [estimator.max_disparity if limit is None else limit for limit in own]
    is_single = isinstance(limits[0], int | float) and all(limit == limits[0] for limit in limits)
    return float(limits[0]) if is_single else None
