"""The base of all displays: reading an estimator, checking numbers, starting a picture.

Each file of a display says what its numbers are, how they are computed, and how they are drawn.
``from_estimator`` asks a fitted model and calls ``from_predictions``, which computes the numbers,
makes the display and calls ``plot``. Each passes on the keyword arguments that it does not need.

Displays call the methods of ``Display`` in this order: ``_groups`` returns the groups, ``_start``
or ``_panels`` returns the axes, and ``_label`` labels a series. ``_table`` returns the numbers that
``plot`` draws, which ``frame`` offers to users. ``CohortDisplay`` adds
``from_cohort``, and ``ScoreDisplay`` also ``from_estimator`` for displays of scores. The functions
at the end check arguments. The docstring of ``Display`` has the paragraphs that several displays
share, and ``documented`` adds them to others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skfair._typing import ClassLabel, ColumnLike, ColumnNames, ColumnsLike, FloatArray, MatrixLike
from skfair.groups.attributes import check_alignment
from skfair.groups.cohort import Cohort, columns_for
from skfair.groups.cohort_calls import refuse_ignored
from skfair.groups.cohort_rows import refuse_kinds
from skfair.groups.named_columns import take_columns
from skfair.groups.sensitive import sensitive_of
from skfair.inspection._style import axes_for, check_matplotlib, label_rows, n_series, with_name
from skfair.utils.docs import PARAGRAPHS, described, documenter
from skfair.utils.response import SCORE_METHODS, get_response, layers, response_method_of
from skfair.utils.text import listed, plural
from skfair.utils.validation import check_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_Checked = TypeVar("_Checked")

AxesOrNone: TypeAlias = "Axes | None"
OneOrMoreAxes: TypeAlias = "Axes | Sequence[Axes] | NDArray[Any] | None"


class Display:
    """Base of the displays.

    Parameters
    ----------
    y : array-like of shape (n_samples,), default=None
        Not used. It is accepted so that all displays have the same signature.
    y_true : array-like of shape (n_samples,) or None
        Not used. It is accepted so that all displays have the same signature.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        The group of each row. Each column is one sensitive attribute.
    sensitive : str, int or list of them, default=None
        Names or positions of the columns of X that hold the groups, which replace
        ``sensitive_features``. If both are None, the ``sensitive`` columns of the estimator are
        used.
    response_method : str or sequence of str, default=("decision_function", "predict_proba")
        Name of the prediction method that returns scores, or several names in order of preference.
    pos_label : label, default=None
        The class whose scores are drawn. If None, the second class is used.
    name : str, default=None
        Name of the model or data, which is put in front of the names in the legend.
    ax : matplotlib Axes, default=None
        Axes to draw on. If None, a new figure is created.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes on which the display is drawn.
    figure_ : matplotlib Figure
        The figure of the axes.
    """

    name: str | None = None
    # matplotlib Axes, or an array of them. The type is Any, because the types of matplotlib do not
    # allow options that are passed as a dict.
    ax_: Any
    # Returns the numbers that ``plot`` draws with these arguments
    _table: ClassVar[Callable[..., pd.DataFrame]]
    # Arguments of the last plot that choose its numbers. They are passed to ``_table``
    _drawn: Mapping[str, Any] = MappingProxyType({})

    def frame(self) -> pd.DataFrame:
        """Return the numbers of the picture as a table.

        The table has a row for each bar or point, and for each point of a line. If arguments of
        ``plot`` chose the numbers, such as ``kind`` or ``columns``, these are the numbers of the
        last picture. Lines that show no data, such as a diagonal, are left out.

        Returns
        -------
        frame : DataFrame
            The numbers. A limit is repeated in each row, and is NaN if there is none.

        Examples
        --------
        >>> from skfair.inspection import GroupRatesDisplay
        >>> display = GroupRatesDisplay.from_predictions(
        ...     None, [1, 0, 0, 0, 1, 1, 1, 0], sensitive_features=["f"] * 4 + ["m"] * 4
        ... )
        >>> display.frame()[["rate", "group", "value", "lower", "upper"]].round(2)
                     rate    group  value  lower  upper
        0  selection_rate        f   0.25   0.05   0.70
        1  selection_rate        m   0.75   0.30   0.95
        2  selection_rate  overall   0.50   0.22   0.78
        """
        return self._table(**self._drawn)

    @classmethod
    def _needs_matplotlib(cls, method: str) -> str:
        """Return "Class.method" for messages; raise at once if matplotlib is missing."""
        caller = f"{cls.__name__}.{method}"
        check_matplotlib(caller)
        return caller

    @classmethod
    def _groups(
        cls,
        estimator: object,
        X: MatrixLike | None,
        sensitive_features: ColumnsLike | None,
        sensitive: ColumnNames | None,
        method: str = "from_estimator",
    ) -> Any:
        """Return the sensitive features that ``from_estimator`` is given, or columns of X.

        Without either, the columns that the estimator's own ``sensitive`` names are used.
        """
        caller = cls._needs_matplotlib(method)
        if sensitive_features is not None:
            if sensitive is not None:
                raise ValueError(
                    f"{caller} got both sensitive_features and sensitive="
                    f"{sensitive!r}. Use one of the two."
                )
            check_alignment(sensitive_features, X)
            return sensitive_features
        if sensitive is None and X is not None:
            sensitive = sensitive_of(estimator).columns
        if sensitive is None:
            raise ValueError(
                f"{caller} does not know the groups. Pass sensitive_features=, one value per row, "
                "or sensitive=, the columns of X that hold them."
            )
        if X is None:
            raise ValueError(
                f"{caller} got sensitive={sensitive!r} but no X to take them from. "
                "Pass X, or sensitive_features=."
            )
        return take_columns(X, sensitive)

    def _start(
        self,
        ax: AxesOrNone,
        figsize: tuple[float, float] = (6.4, 4.6),
        *,
        alone: str = "",
        rows: tuple[Sequence[str], Sequence[str] | None] | None = None,
    ) -> tuple[Any, int]:
        """Return the axes to draw on, and the number of series that they show already.

        New series get the next colours. If the display cannot share its axes, ``alone`` is the
        error for axes that show data already. Otherwise it is "". ``rows`` are the names and the
        sizes of the rows of the display, if it has a row for each group.
        """
        ax = axes_for(self, ax, figsize)
        start = n_series(ax)
        if alone and start:
            raise ValueError(alone)
        if rows is not None:
            label_rows(ax, *rows)
        self.ax_, self.figure_ = ax, ax.figure
        return ax, start

    def _panels(
        self,
        ax: OneOrMoreAxes,
        names: Sequence[object],
        kind: str,  # the word for what a panel shows, such as "column"
        figsize: tuple[float, float],
        n_columns: int = 1,
        alone: str = "",  # error if the axes have series already, see _start
    ) -> list[Any]:
        """Return one Axes per name: the given ones, or those of a new figure."""
        if ax is None:
            check_matplotlib(f"{type(self).__name__}.plot")
            import matplotlib.pyplot as plt

            options: dict[str, Any] = {"figsize": figsize, "layout": "constrained"}
            options |= {"sharex": True, "sharey": n_columns > 1, "squeeze": False}
            grid = plt.subplots(-(-len(names) // n_columns), n_columns, **options)[1].ravel()
            panels = [*grid[: len(names)]]
            for empty in grid[len(names) :]:
                empty.remove()
        else:
            panels = [axes_for(self, panel) for panel in np.ravel(np.asarray(ax, dtype=object))]
        if len(panels) != len(names):
            raise ValueError(
                f"ax has {len(panels)} Axes but {plural(len(names), kind)} are drawn: "
                f"{listed(names)}. Pass one Axes per {kind}, such as the ax_ of an earlier display."
            )
        if alone and any(map(n_series, panels)):
            raise ValueError(alone)
        self.ax_ = panels[0] if len(panels) == 1 else np.array(panels, dtype=object)
        self.figure_ = panels[0].figure
        return panels

    def _check_same_length(self, entry: str, *names: str) -> None:
        """Raise unless the attributes of these names have one value per entry, or are None."""
        check_same_length(entry, **{name: getattr(self, name) for name in names})

    def _label(self, name: str | None, text: str) -> str:
        """Put the name of the model in front of the label of a series."""
        return with_name(self.name if name is None else name, text)


# ``documented`` completes the docstrings of displays by the docstring of their base.
_RETURNS = "display : {owner}\n    The display, with its numbers and artists."
documented = documenter(PARAGRAPHS | described(Display) | {"Returns": _RETURNS})


@documented
class CohortDisplay(Display):
    """A display of predictions, which may be those of a cohort."""

    @classmethod
    def from_cohort(cls, cohort: Cohort, **kwargs: Any) -> Self:
        """Draw a cohort.

        Parameters
        ----------
        cohort : Cohort
            Who the rows are, and what was predicted.
        **kwargs
            Further arguments of ``from_predictions``.

        Returns
        -------
        display : object
            The display, which has been drawn.
        """
        cls._needs_matplotlib("from_cohort")
        draw: Any = cls.from_predictions  # type: ignore[attr-defined]
        parameters = signature(draw).parameters
        refuse_kinds(cohort)
        refuse_ignored(f"{cls.__name__}.from_cohort", cohort, parameters)
        return cast(Self, draw(**columns_for(cohort, parameters), **kwargs))


class ScoreDisplay(CohortDisplay):
    """Base of the displays of scores."""

    from_predictions: ClassVar[Callable[..., Any]]
    # Arguments of from_predictions that from_estimator adds if the scores are probabilities
    _of_probabilities: ClassVar[dict[str, Any]] = {}

    @classmethod
    def from_estimator(
        cls,
        estimator: object,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        sensitive: ColumnNames | None = None,
        response_method: str | Sequence[str] = SCORE_METHODS,
        pos_label: ClassLabel = None,
        **kwargs: Any,
    ) -> Self:
        """Compute scores with a fitted model and draw the scores of each group.

        Parameters
        ----------
        estimator : object
            A fitted model. If its prediction method takes ``sensitive_features``, they are passed
            to it.
        X : array-like of shape (n_samples, n_features)
            The rows for which scores are computed.
        **kwargs
            Further arguments of ``from_predictions``, such as ``interval``, ``name`` and ``ax``. If
            the scores come from ``predict_proba``, the default of ``bounds`` is (0, 1).

        Returns
        -------
        display : Display
            The display, with its numbers and artists.
        """
        groups = cls._groups(estimator, X, sensitive_features, sensitive)
        method = response_method_of(estimator, response_method)
        scores = get_response(estimator, X, method, sensitive_features=groups, pos_label=pos_label)
        if method == "predict_proba" and kwargs.get("bounds") is None:
            kwargs |= cls._of_probabilities
        display: Self = cls.from_predictions(None, scores, sensitive_features=groups, **kwargs)
        return display


def stacked(parts: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the columns of several parts below each other. Single values are repeated."""
    return pd.concat([pd.DataFrame(part) for part in parts], ignore_index=True)


def fitted_attribute(estimator: object, name: str, meaning: str) -> Any:
    """Return an attribute of a fitted estimator, also from inside searches and pipelines."""
    for candidate in layers(estimator):
        if hasattr(candidate, name):
            return getattr(candidate, name)
    check_is_fitted(estimator)
    kinds = [type(candidate).__name__ for candidate in layers(estimator)]
    raise AttributeError(
        f"{listed(kinds)} has no attribute {name}, {meaning}. Pass an estimator that stores it."
    )


def if_given(
    check: Callable[..., _Checked], values: Any, name: str, *options: Any
) -> _Checked | None:
    """Return ``check(values, name, *options)``, or None if ``values`` is None."""
    return None if values is None else check(values, name, *options)


def check_same_length(what: str, **columns: Sized | None) -> None:
    """Raise unless all arguments of a display that are not None have the same length."""
    lengths = {}
    for name, values in columns.items():
        if values is None:
            continue
        if not hasattr(values, "__len__") or not getattr(values, "ndim", 1):
            raise TypeError(f"{name} must have one entry per {what}, got {values!r}.")
        lengths[name] = len(values)
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"Every {what} needs one entry in each argument; {counts}.")


def check_shape(values: Any, name: str, shape: tuple[int, ...], why: str) -> FloatArray:
    """Return numbers of the given shape, or raise an error with the reason ``why`` for it."""
    table = check_numbers(values, name)
    if table.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}{why}, got {table.shape}.")
    return table


def chosen_names(names: str | Sequence[str], argument: str) -> list[str]:
    """Return a name, or several, as a list."""
    if not isinstance(names, Sequence):
        raise TypeError(f"{argument} must be a name or a list of names, got {names!r}.")
    return [names] if isinstance(names, str) else list(names)
