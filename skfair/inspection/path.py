"""Scores of one estimator against its disparities: the cost of stricter limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from skfair.inspection._display import AxesOrNone, Display, documented, if_given
from skfair.inspection._style import GREY, draw_line, look
from skfair.utils.validation import check_scores

# What a path holds: numbers of each model, and others.
_OF_MODELS = ("train_disparities", "train_scores", "test_disparities", "test_scores")
_OF_PATHS = ("max_disparities", "score_name", "limits", "split_disparities", "split_scores")


@documented
class FairnessPathDisplay(Display):
    """Score against disparity along a path of stricter and stricter limits.

    Filled markers show the models on the training sample, and hollow markers show the same models
    on the test sample. Lines join neighbours on the path. If a hollow marker lies to the right of
    the limit of its model, the limit is satisfied on the training sample but not on unseen data.

    It is recommended to create the display with :meth:`from_path`. To compare two paths, draw the
    second one on the axes of the first with ``from_path(other, name="other", ax=first.ax_)``.

    Parameters
    ----------
    train_disparities : array-like of shape (n_models,)
        Disparities of the models on the training sample, in the order of the path.
    train_scores : array-like of shape (n_models,)
        Scores of the models on the training sample, in the order of the path.
    test_disparities : array-like of shape (n_models,), default=None
        Disparities on a test sample. Pass them together with ``test_scores``.
    test_scores : array-like of shape (n_models,), default=None
        Scores on a test sample. Pass them together with ``test_disparities``.
    max_disparities : array-like of shape (n_bounds,), default=None
        The limits of the models.
    score_name : str, default="score"
        Name of the score, for the vertical axis.
    limits : dict of str to float or None, default=None
        The limit of each attribute, if disparities and ``max_disparities`` are multiples of these
        limits.
    split_disparities : array-like of shape (n_splits, n_models), default=None
        Disparities on the test part of each random split. A band around the hollow line shows one
        standard deviation over the splits.
    split_scores : array-like of shape (n_splits, n_models), default=None
        Scores on the test part of each random split. Pass them together with
        ``split_disparities``.

    Attributes
    ----------
    train_line_ : matplotlib Line2D
        The models on the training sample.
    test_line_ : matplotlib Line2D or None
        The models on the test sample. It is None if there is no test sample.
    bounds_ : matplotlib LineCollection or None
        The limits. It is None if they are not drawn.
    bands_ : list of matplotlib PolyCollection
        The bands of standard deviations of scores and disparities. The list is empty without
        splits.

    See Also
    --------
    skfair.model_selection.fairness_path : Fit the models of a path.
    FairnessFrontDisplay : Draw models that do not lie on a path.

    Examples
    --------
    >>> from skfair.inspection import FairnessPathDisplay
    >>> display = FairnessPathDisplay(
    ...     train_disparities=[0.2, 0.1, 0.05], train_scores=[0.85, 0.84, 0.8]
    ... ).plot()
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('Disparity (lower is better)', 'Score (higher is better)')
    """

    def __init__(
        self,
        *,
        train_disparities: ArrayLike,
        train_scores: ArrayLike,
        test_disparities: ArrayLike | None = None,
        test_scores: ArrayLike | None = None,
        max_disparities: ArrayLike | None = None,
        score_name: str = "score",
        limits: Mapping[str, float | None] | None = None,
        split_disparities: ArrayLike | None = None,
        split_scores: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        if (test_disparities is None) != (test_scores is None):
            raise ValueError(
                "test_disparities and test_scores go together, got only one of them. Pass both or "
                "neither."
            )
        self.train_disparities = check_scores(train_disparities, "train_disparities")
        self.train_scores = check_scores(train_scores, "train_scores")
        self.test_disparities = if_given(check_scores, test_disparities, "test_disparities")
        self.test_scores = if_given(check_scores, test_scores, "test_scores")
        self._check_same_length("model", *_OF_MODELS)
        self.max_disparities = if_given(check_scores, max_disparities, "max_disparities")
        self.score_name, self.limits, self.name = score_name, limits, name
        self.split_disparities, self.split_scores = split_disparities, split_scores

    @classmethod
    def from_path(
        cls, path: Any, *, name: str | None = None, ax: AxesOrNone = None, **kwargs: Any
    ) -> Self:
        """Draw a path.

        Parameters
        ----------
        path : FairnessPath
            The path, as returned by :func:`skfair.model_selection.fairness_path`.
        **kwargs
            Further arguments of :meth:`plot`, such as ``show_bounds`` or options of the lines.
        """
        cls._needs_matplotlib("from_path")
        if not hasattr(path, "train_disparities"):
            raise TypeError(f"path must be a FairnessPath, got {path!r}.")
        parts: dict[str, Any] = {
            part: getattr(path, part, None) for part in (*_OF_MODELS, *_OF_PATHS)
        }
        return cls(**parts, name=name).plot(ax=ax, **kwargs)

    def plot(
        self,
        *,
        ax: AxesOrNone = None,
        show_bounds: bool = False,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure is created. Axes that show another path keep
            their labels.
        show_bounds : bool, default=False
            Whether to draw a vertical line at each of ``max_disparities``.
        **kwargs
            Options of both lines, which are passed to ``plot`` of matplotlib.
        """
        if show_bounds and self.max_disparities is None:
            raise ValueError("show_bounds=True needs the bounds. Make the display from a path.")
        ax, start = self._start(ax)
        style = look(start)
        options: dict[str, Any] = {"marker": style.marker, "lw": 1.5}
        train = (self.train_disparities, self.train_scores)
        options["label"] = self._label(name, "train")
        self.train_line_ = draw_line(ax, *train, style, kwargs, **options)
        self.test_line_ = None
        if self.test_disparities is not None and self.test_scores is not None:
            test = (self.test_disparities, self.test_scores)
            self.test_line_ = draw_line(ax, *test, style, kwargs, **options)
            # Of the same colour and marker, but hollow and thin, and no series of its own.
            width, label = self.train_line_.get_linewidth() / 2, self._label(name, "test")
            self.test_line_.set(fillstyle="none", linewidth=width, label=label, gid=None)
        self.bands_: list[Any] = []
        if self.split_disparities is not None and self.split_scores is not None:
            shade = {"color": self.train_line_.get_color(), "alpha": 0.15, "lw": 0}
            splits = np.array([self.split_disparities, self.split_scores], np.float64)
            (x, y), (x_sd, y_sd) = splits.mean(axis=1), splits.std(axis=1)
            self.bands_ = [
                ax.fill_between(x, y - y_sd, y + y_sd, **shade),
                ax.fill_betweenx(y, x - x_sd, x + x_sd, **shade),
            ]
        self.bounds_ = None
        if show_bounds and self.max_disparities is not None:
            options = {"colors": GREY, "linewidth": 0.8, "alpha": 0.4, "zorder": 0}
            options |= {"transform": ax.get_xaxis_transform(), "label": self._label(name, "bounds")}
            self.bounds_ = ax.vlines(self.max_disparities, 0, 1, **options)
        if not start:
            unit = "" if self.limits is None else " as a multiple of the limits"
            ax.set_xlabel(f"Disparity{unit} (lower is better)")
            score = self.score_name.replace("_", " ")
            ax.set_ylabel(f"{score[:1].upper()}{score[1:]} (higher is better)")
        ax.legend()
        return self
