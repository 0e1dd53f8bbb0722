"""The steps of fit that all estimators share: parameters, callbacks, and undoing of failures.

``@fit_method`` wraps ``fit`` with scikit-learn's parameter validation and callback management. It
restores the estimator if the fit fails or is interrupted.

:func:`report_iterations` turns the estimator's callback context into the function that a solver
calls after each iteration. Scikit-learn's ``ProgressBar`` and ``ScoringMonitor`` therefore work
with every solver.

:class:`SensitiveFeaturesMixin` is the base class of all estimators with the parameter
``sensitive``. It stores the attributes that :mod:`skfair.read` returns, makes ``summary_``, and
handles cloning and pickling.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from html import escape
from inspect import signature
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval, InvalidParameterError
from sklearn.utils.validation import check_is_fitted

from skfair._typing import Callback, ColumnLike, IntArray, MatrixLike
from skfair._version import __version__
from skfair.groups.foreign_tables import native_table
from skfair.groups.levels import GroupLevels
from skfair.groups.limits import changes_line, limits_line
from skfair.groups.named_columns import column_positions, note_dropped, note_kinds, note_shapes
from skfair.groups.row_units import said_rows
from skfair.groups.sensitive import Sensitive, SensitiveLike
from skfair.utils.endings import Ending, as_clause
from skfair.utils.history import go_on
from skfair.utils.keywords import OF_GROUPS, NamedArguments, refuse_unknown
from skfair.utils.older import with_callbacks
from skfair.utils.other_names import no_attribute
from skfair.utils.warn import entrance, warn_user
from skfair.utils.wrappers import refuse_positions

Method = TypeVar("Method", bound=Callable[..., Any])


def fit_method(method: Method) -> Method:
    """Decorate ``fit``: validate parameters, manage callbacks, and undo a fit that fails.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from skfair.base import fit_method
    >>> class Half(BaseEstimator):
    ...     _parameter_constraints = {}
    ...
    ...     @fit_method
    ...     def fit(self, X, y=None):
    ...         self.mean_ = sum(X) / len(X)
    ...         return self
    >>> model = Half().fit([1.0, 3.0])
    >>> try:
    ...     model.fit(None)
    ... except TypeError:
    ...     print(model.mean_)
    2.0
    """
    managed = with_callbacks(_fit_context(prefer_skip_nested_validation=False)(method))
    parameters = signature(method).parameters

    @functools.wraps(method)
    @entrance
    def restoring(self: Any, *args: Any, **kwargs: Any) -> Any:
        refuse_unknown(f"{type(self).__name__}.{method.__name__}", kwargs, parameters, OF_GROUPS)
        before = vars(self).copy()  # restored if the fit fails
        args = tuple(map(native_table, args))
        kwargs = {name: native_table(value) for name, value in kwargs.items()}
        try:
            _refuse_misplaced(self)
            with config_context(array_api_dispatch=False):  # scikit-learn converts tensors to numpy
                return managed(self, *args, **kwargs)
        except BaseException as error:  # KeyboardInterrupt, too: no fit is left unfinished
            passed = dict(zip(parameters, (self, *args), strict=False)) | kwargs
            X, y = passed.get("X"), passed.get("y")
            dropped = _left_out(self, X)
            note_dropped(error, dropped)
            note_kinds(error, X, dropped)
            note_shapes(error, X, y)
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Method, restoring)


def _refuse_misplaced(estimator: Any) -> None:
    """Raise if a number is True or False, or if model and constraint are in each other's place.

    scikit-learn's validation accepts True as 1, and a limit of 1 limits nothing. A model comes
    first in the estimators that wrap one, and in the others the constraint comes first.
    """
    if get_config()["skip_parameter_validation"]:
        return
    name, model = type(estimator).__name__, getattr(estimator, "constraint", None)
    if hasattr(estimator, "estimator") and hasattr(estimator, "constraint"):
        first = estimator.estimator
        if isinstance(first, str) or hasattr(model, "fit"):
            raise InvalidParameterError(
                f"{name} takes a model as estimator=, and what it limits as constraint=, got "
                f"estimator={first!r}. Pass the model first, or write {name}(constraint={first!r}) "
                "for the default model."
            )
    if hasattr(model, "fit"):
        raise InvalidParameterError(
            f"{name} trains a model of its own and takes no estimator, got "
            f"constraint={model!r}. To limit the decisions of this model, use "
            "FairDecisionClassifier or FairDecisionRegressor."
        )
    for parameter, allowed in estimator._parameter_constraints.items():
        value = getattr(estimator, parameter, None)
        is_number = any(isinstance(kind, Interval) for kind in allowed)
        if isinstance(value, bool) and is_number and "boolean" not in allowed:
            raise InvalidParameterError(
                f"The {parameter!r} parameter of {name} must be a number, got {value!r}. Pass a "
                "number, such as 0.05 for a limit of 5%."
            )


def _left_out(estimator: Any, X: Any) -> list[Any]:
    """Return the names of the columns of a table that are kept out of the model, for an error.

    The list is empty if X or ``sensitive`` is wrong, because the error of the fit explains it.
    """
    with suppress(AttributeError, TypeError, ValueError):
        asked = estimator._sensitive
        if asked.columns is not None and not asked.keep:
            return [X.columns[j] for j in column_positions(X, asked.columns)]
    return []


@contextmanager
def report_iterations(
    # The estimator being fitted; its ``fit`` must be decorated with
    # :func:`skfair.base.fit_method`
    estimator: Any,
    # The training data as the user passed them, on which callbacks compute scores
    X: MatrixLike,
    y: ColumnLike | None,
    *,
    max_iter: int | None,  # the largest number of iterations, or None if it is not known
    # Turns a solver's state into the fitted attributes that ``predict`` needs. It is called
    # only if a callback wants a fitted estimator
    attributes: Callable[[Any], dict[str, Any]],
) -> Iterator[Callback]:
    """Open the fit task of an estimator and yield the callback for its solver.

    The solver calls ``callback(state)`` once after each iteration, and stops if it returns True.
    Each iteration is a task for scikit-learn's callbacks, which must begin before the iteration.
    The first task begins here, and each further one at the end of the previous one. There are at
    most ``max_iter`` tasks.
    """
    context = estimator._init_callback_context(max_subtasks=max_iter)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    open_task: Any = None  # the task of the iteration that runs now
    n_begun = 0  # number of iterations that have begun

    def begin() -> None:
        nonlocal open_task, n_begun
        if max_iter is None or n_begun < max_iter:
            open_task = context.subcontext(task_name="iteration")
            open_task.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
            n_begun += 1

    def callback(state: Any) -> bool:
        nonlocal open_task
        if open_task is None:
            return False
        stop = open_task.call_on_fit_task_end(
            estimator=estimator, X=X, y=y, reconstruction_attributes=lambda: attributes(state)
        )
        open_task = None
        if not stop:
            begin()
        return bool(stop)

    if not getattr(estimator, "_skl_callbacks", None):
        yield go_on
    else:
        begin()
        yield callback
        if open_task is not None:  # the task of an iteration that the solver did not make
            open_task.call_on_fit_task_end(estimator=estimator)
    context.call_on_fit_task_end(estimator=estimator, X=X, y=y)


_WITHOUT_COLUMNS = Sensitive()


class SensitiveFeaturesMixin(NamedArguments):
    """An estimator with sensitive features, from metadata or from columns of X.

    An estimator that uses it has the parameter ``sensitive`` and merges ``_group_constraints`` into
    its ``_parameter_constraints``.

    Attributes
    ----------
    groups_ : ndarray
        Names of the groups.
    summary_ : str
        Summary of the fit in one line. For each limit it shows the value on the training rows
        beside the limit, in the same unit. The changes caused by the limits, if the estimator has
        ``changes_``, and the status with the sentence that explains it, if it has ``status_``,
        follow. Clusterers show the sizes of their smallest and largest cluster. The summary also
        says if a limit on errors is satisfied by larger errors of a group, how many decisions are
        close calls (``close_call_rate_``), and if decisions estimate the group from the other
        columns (``group_estimators_``). An estimator without limits, such as ``ParetoFairKMeans``,
        shows the number of rows instead.
    model_features_ : ndarray
        Names of the columns of X that the model uses as features, or their positions if X has no
        names.
    n_features_in_ : int
        Number of columns of X in ``fit``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns of X in ``fit``. The attribute exists only if X has names that are all
        strings.

    Examples
    --------
    >>> from skfair.base import SensitiveFeaturesMixin
    >>> sorted(SensitiveFeaturesMixin._group_constraints)
    ['sensitive']
    """

    # With metadata routing on, meta-estimators pass the groups without set_fit_request.
    __metadata_request__fit = {"sensitive_features": True}

    _group_constraints: dict[str, list[Any]] = {
        "sensitive": ["array-like", str, Integral, Sensitive, None],
    }
    _elsewhere: ClassVar[Mapping[str, str]] = {
        "sensitive_features": "The groups of the rows are passed to fit as sensitive_features=, or "
        "are columns of X, which sensitive= names.",
        "random_state": "It draws no random numbers itself. If a model inside does, seed that one.",
    }
    _takes_partitions: ClassVar[bool] = False  # whether ``fit`` takes Dask collections
    _learns_without_group: ClassVar[bool] = False  # whether it takes Sensitive(missing="loss")
    # Whether ``fit`` warns about columns that tell the group, unless the estimator is group-aware
    _names_group_columns: ClassVar[bool] = True
    # How its fit can end, the words of ``status_``
    _endings: ClassVar[tuple[Ending, ...]] = ()
    # Whether ``constraint`` may be a cap, which limits a single group, too
    _takes_caps: ClassVar[bool] = False

    sensitive: SensitiveLike
    n_features_in_: int
    model_features_: NDArray[Any]
    groups_: NDArray[Any]
    is_group_aware_: bool  # only in estimators whose decisions may use the groups
    _group_levels: GroupLevels  # names of the groups, to encode new rows
    _model_positions: IntArray | None  # columns of X that the model uses; None for all

    if not TYPE_CHECKING:  # with __getattr__, type checkers would accept any attribute

        def __getattr__(self, name: str) -> Any:
            """Raise for an attribute that it lacks, such as a fitted one before the fit."""
            is_fitted = any(own.endswith("_") for own in vars(self))
            is_made_by_fit = name.endswith("_") and not name.startswith("_")
            if is_fitted or not is_made_by_fit or hasattr(type(self), name):
                return no_attribute(self, name)
            raise NotFittedError(
                f"This {type(self).__name__} is not fitted yet, so it has no {name}. Call fit "
                "first."
            )

    @property
    def _sensitive(self) -> Sensitive:
        """The parameter ``sensitive`` as an object."""
        asked = self.sensitive
        if asked is None:  # each prediction reads it several times
            return _WITHOUT_COLUMNS
        return asked if isinstance(asked, Sensitive) else Sensitive(asked)

    @property
    def summary_(self) -> str:
        """One line with the limits in force and the values on the training rows."""
        check_is_fitted(self)
        own: dict[str, Any] = vars(self)
        parts = [limits_line(own.get("_limits", {}), own.get("certified_disparities_", {}))]
        parts.append(own.get("_said_sizes", ""))
        if "price_of_fairness_" in own:
            parts.append(f"objective lost {own['price_of_fairness_']:.4g}")
        parts += [changes_line(own.get("changes_", {})), own.get("_kept_by", "")]
        parts.append(said_rows(*own["_n_rows"]))
        if (close := own.get("close_call_rate_", -1.0)) >= 0:  # NaN if it is not known
            parts.append(f"{close:.1%} of the decisions are close calls (close_calls)")
        if models := own.get("estimators_"):
            averaged = f"the mean of {len(models)} models (estimators_)"
            parts.append(f"predicts by {averaged if len(models) > 1 else 'one model (estimator_)'}")
        if own.get("group_estimators_"):
            parts.append("groups estimated from the other columns (group_estimators_)")
        if "status_" in own:
            said = f"status {own['status_']}: {as_clause(own['status_'])}"
            parts.append(said + (f" ({reason})" if (reason := own.get("_reason")) else ""))
        return ", ".join(filter(None, parts))

    def _keep(self, reading: Mapping[str, Any]) -> None:
        """Store ``TrainingData.reading``, with which :mod:`skfair.read` reads later rows.

        The names of an earlier fit are removed, because the columns of this fit may have no names.
        """
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(reading)

    def _store(self, fitted: Mapping[str, Any]) -> None:
        """Store fitted attributes; raise if ``status_`` is none of the endings of the class."""
        ending = fitted.get("status_")
        if ending is not None and ending not in self._endings:
            raise RuntimeError(
                f"The fit of {type(self).__name__} ended with status_={ending!r}, which is not one "
                f"of its _endings {self._endings}. Add the word there, and its sentence to "
                "skfair.utils.endings."
            )
        self.__dict__.update(fitted)

    def __sklearn_clone__(self) -> Any:
        asked = self.sensitive
        columns = getattr(asked, "columns", asked), getattr(asked, "control_features", None)
        refuse_positions(type(self).__name__, (*columns, getattr(self, "query_column", None)))
        return super().__sklearn_clone__()  # type: ignore[misc]

    def _html_repr(self) -> str:
        summary = escape(getattr(self, "summary_", ""))  # empty before a fit
        return f"{super()._html_repr()}<p>{summary}</p>"  # type: ignore[misc]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, without times, so that equal fits have equal states."""
        state: dict[str, Any] = {**super().__getstate__()}  # type: ignore[dict-item]
        if "history_" in state:
            state["history_"] = {k: v for k, v in state["history_"].items() if k != "seconds"}
        return {**state, "_skfair_version": __version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Warn about a model of another version, whose private attributes may differ."""
        state = dict(state)
        version = state.pop("_skfair_version", None)
        if version != __version__:
            saved = "an earlier version of skfair" if version is None else f"skfair {version}"
            warn_user(
                f"This {type(self).__name__} was saved by {saved}, and is read by {__version__}: "
                "its predictions may fail or be wrong. Load it with the version that saved it, or "
                "fit it again."
            )
        super().__setstate__(state)  # type: ignore[misc]
