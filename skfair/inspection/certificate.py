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


@documented
class CertificateDisplay(Display):
    """Disparity, what can be shown of it, and accuracy along a path of decisions.

    The path begins with decisions that are certainly fair and ends with free ones. The upper line
    is the smallest limit that can be shown to hold for new people; the last step at which it is
    below the limit, counted from the left without a gap, is what the classifier uses.

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
        Disparity and bound.
    accuracy_ : matplotlib Line2D
        The accuracy, on an axis of its own.

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
    'Step, from certainly fair to free'
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
        steps = np.arange(1, self.disparities.size + 1)
        looks = [look(start + number) for number in range(3)]
        marked = [{"marker": marker_of_few(style, steps.size)} for style in looks]
        shown = {"disparity on held-out rows": self.disparities, "can be shown": self.bounds}
        self.lines_ = [
            draw_line(ax, steps, values, looks[i], marked[i], lw=1.5, label=label)
            for i, (label, values) in enumerate(shown.items())
        ]
        if self.max_disparity is not None:
            ax.axhline(self.max_disparity, color=GREY, lw=0.8, label="limit")
        ax.axvspan(0.5, self.n_certified + 0.5, color=GREY, alpha=0.12, lw=0, label="certified")
        other = ax.twinx()
        label = self._quality.replace("A", "a")
        self.accuracy_ = draw_line(other, steps, self.accuracies, looks[2], marked[2], label=label)
        other.set_ylabel(f"{self._quality} (higher is better)")
        ax.set(xlabel="Step, from certainly fair to free", ylabel="Disparity (lower is better)")
        ax.legend(handles=[*ax.get_legend_handles_labels()[0], self.accuracy_], fontsize="small")
        return self


def _limit(estimator: Any) -> float | None:
    """Return the limit of all constraints; None if there are several."""
    rules = estimator.constraint
    own = [getattr(rule, "own_limit", None) for rule in np.ravel(np.array(rules, dtype=object))]
    limits = [estimator.max_disparity if limit is None else limit for limit in own]
    is_single = isinstance(limits[0], int | float) and all(limit == limits[0] for limit in limits)
    return float(limits[0]) if is_single else None
