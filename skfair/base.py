"""The steps of fit that all estimators share: parameters, rows, groups, weights.

``@fit_method`` wraps ``fit`` with scikit-learn's parameter validation and callback management, and
leaves the estimator as it was if the fit fails or is interrupted. ``SensitiveFeaturesMixin`` reads
X, y, weights and groups from whatever the user passed. :func:`report_iterations` makes the function
that a solver calls after each iteration out of the estimator's callback context, so ``ProgressBar``
and ``ScoringMonitor`` follow every solver.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from sklearn import config_context
from sklearn.base import _fit_context
from sklearn.utils.validation import (
    _num_samples,
    check_array,
    check_consistent_length,
    check_X_y,
    column_or_1d,
    validate_data,
)

from skfair._typing import Callback, ColumnLike, ColumnsLike, IntArray, MatrixLike
from skfair.blocks.partitions import align, is_lazy, meta_of
from skfair.exceptions import MissingGroupsWarning
from skfair.groups.attributes import check_aligned, check_alignment
from skfair.groups.encoding import GroupEncoding, encode_groups, one_group
from skfair.groups.foreign_tables import refuse_arrow_table
from skfair.groups.kinds import read_training
from skfair.groups.levels import GroupLevels
from skfair.groups.named_columns import (
    column_positions,
    keep_columns,
    note_dropped,
    note_kinds,
    take_columns,
)
from skfair.groups.probabilities import GroupProbabilities, read_probabilities
from skfair.groups.sensitive import Sensitive, SensitiveLike, read_sensitive
from skfair.groups.strata import read_strata
from skfair.groups.training_data import TrainingData
from skfair.utils.history import go_on
from skfair.utils.older import with_callbacks
from skfair.utils.saved import SavedMixin
from skfair.utils.text import listed
from skfair.utils.validation import check_weights
from skfair.utils.warn import entrance, warn_user

Method = TypeVar("Method", bound=Callable[..., Any])
# What the rows of estimators that fit a model of their own must be.
ROW_CHECKS: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
}
_NOTHING_LEFT = (
    "X has only sensitive columns, which are kept out of the model: no feature is left to learn "
    "from. Sensitive(..., keep=True) passes them on."
)


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

    @functools.wraps(method)
    @entrance
    def restoring(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = vars(self).copy()
        try:
            with config_context(array_api_dispatch=False):  # tensors are converted
                return managed(self, *args, **kwargs)
        except BaseException as error:  # KeyboardInterrupt too must leave no half-fitted estimator
            dropped = _dropped_columns(self)
            note_dropped(error, dropped)
            note_kinds(error, args[0] if args else kwargs.get("X"), dropped)
            vars(self).clear()
            vars(self).update(before)
            raise

    return cast(Method, restoring)


@contextmanager
def report_iterations(
    # The estimator being fitted; its ``fit`` must be decorated with
    # :func:`skfair.base.fit_method`
    estimator: Any,
    # The training data as the user passed them: what a monitor scores on
    X: MatrixLike,
    y: ColumnLike | None,
    *,
    max_iter: int | None,  # the largest number of iterations, or None if it is not known
    # Turns a solver's state into the fitted attributes that ``predict`` needs. It is called
    # only if a callback wants a fitted estimator
    attributes: Callable[[Any], dict[str, Any]],
) -> Iterator[Callback]:
    """Open the fit task of an estimator and yield the callback for its solver.

    The solver calls ``callback(state) -> stop`` once after each iteration.
    """
    context = estimator._init_callback_context(max_subtasks=max_iter)
    context.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    open_task: Any = None
    n_begun = 0

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
        if open_task is not None:  # begun for an iteration that the solver did not need
            open_task.call_on_fit_task_end(estimator=estimator)
    context.call_on_fit_task_end(estimator=estimator, X=X, y=y)


class SensitiveFeaturesMixin(SavedMixin):
    """Reads sensitive features at fit and at prediction, from metadata or from columns of X.

    An estimator that uses it has the parameter ``sensitive`` and merges ``_group_constraints`` into
    its ``_parameter_constraints``.

    Attributes
    ----------
    groups_ : ndarray of shape (n_groups,)
        Names of the groups.
    model_features_, n_features_in_, feature_names_in_ : ndarray, int, ndarray
        Columns that the model uses; number and names of those of X.

    Examples
    --------
    >>> from skfair.base import SensitiveFeaturesMixin
    >>> sorted(SensitiveFeaturesMixin._group_constraints)
    ['sensitive']
    """

    # With metadata routing on, meta-estimators deliver the groups without set_fit_request.
    __metadata_request__fit = {"sensitive_features": True}

    _group_constraints: dict[str, list[Any]] = {
        "sensitive": ["array-like", str, Integral, Sensitive, None],
    }
    _reads_blocks: ClassVar[bool] = False  # whether ``fit`` takes Dask collections

    sensitive: SensitiveLike
    n_features_in_: int
    _group_levels: GroupLevels
    _model_positions: IntArray | None

    @property
    def _sensitive(self) -> Sensitive:
        return read_sensitive(self.sensitive)

    def _read(
        self,
        X: MatrixLike,
        y: ColumnLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
        control_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        supervised: bool = True,
        **check_params: Any,
    ) -> TrainingData:
        """Validate everything that ``fit`` got; ``check_params`` go to scikit-learn's checks.

        With ``skip_check_array=True`` the columns of X are left to an estimator inside this one.
        """
        metadata = {
            "sensitive_features": sensitive_features,
            "control_features": control_features,
            "sample_weight": sample_weight,
        }
        _check_columns("sensitive_features", sensitive_features, self._sensitive.columns)
        _check_columns("control_features", control_features, self._sensitive.within)
        if self._reads_blocks and is_lazy(X, y, *metadata.values()):
            data = self._read_blocks(X, y, metadata, check_params)
        else:
            self._refuse_lazy(X, y, *metadata.values())
            data = self._read_rows(X, y, metadata, supervised, check_params)
        self.groups_ = np.array(data.groups.names, dtype=object)
        self._group_levels = data.groups.levels
        data.groups.warn_small()
        return data

    def _read_rows(
        self,
        X: MatrixLike,
        y: ColumnLike | None,
        metadata: dict[str, Any],
        supervised: bool,
        check_params: dict[str, Any],
    ) -> TrainingData:
        """Validate rows in memory."""
        check_aligned(X=X, y=y, sample_weight=metadata["sample_weight"])
        vars(self).pop("n_features_in_", None)  # texts have no columns
        sensitive, control = metadata["sensitive_features"], metadata["control_features"]
        if self._sensitive.columns is None:
            target = {"y": y} if supervised else {}
            checked = validate_data(self, X, **target, **check_params)
            self._choose_columns(X)
        else:
            validate_data(self, X, skip_check_array=True)
            sensitive = take_columns(X, self._sensitive.columns)
            self._choose_columns(X)
            assert self._model_positions is not None
            rest = keep_columns(X, self._model_positions)
            checked = self._check_kept_columns(rest, y, supervised, check_params)
        rows, y = checked if supervised else (checked, y)
        if self._sensitive.within is not None:
            control = take_columns(X, self._sensitive.within, "within")
        n_samples = _num_samples(rows)
        weights = check_weights(metadata["sample_weight"], n_samples)
        strata = None if control is None else read_strata(control, n_samples=n_samples, like=X)
        groups = self._encode_groups(n_samples, sensitive, X)
        return TrainingData.of(rows, y, weights, groups, strata)

    def _read_blocks(
        self,
        X: MatrixLike,
        y: ColumnLike | None,
        metadata: dict[str, Any],
        check_params: dict[str, Any],
    ) -> TrainingData:
        """Validate rows in blocks, where their blocks are."""
        self._read_lazy_columns(X, metadata["sensitive_features"])
        blocks = read_training(
            align(X=X, y=y, **metadata),
            positions=self._model_positions,
            sensitive_columns=self._sensitive.columns,
            control_columns=self._sensitive.within,
            intersectional=self._sensitive.crossed,
            names=self.model_features_,
            **check_params,
        )
        return TrainingData(
            None, blocks.classes, blocks.weights, blocks.groups, blocks.strata, blocks
        )

    def _read_lazy_columns(self, X: MatrixLike, sensitive_features: ColumnsLike | None) -> None:
        """Check the columns of a Dask collection and find those that the model uses."""
        if not is_lazy(X):
            raise TypeError(
                f"X is a {type(X).__name__}, but y, sensitive_features or sample_weight is a Dask "
                "collection. Pass X as one too, or compute() the others."
            )
        meta = meta_of(X)
        validate_data(self, meta, skip_check_array=True)
        if self._sensitive.columns is None and sensitive_features is None:
            _warn_without_groups(self)
        self._choose_columns(meta)

    def _choose_columns(self, table: MatrixLike) -> None:
        """Note the columns that the model uses: all, or all but the sensitive ones."""
        numbers = np.arange(getattr(self, "n_features_in_", 0))
        features = getattr(self, "feature_names_in_", numbers)
        self._model_positions = None
        if self._sensitive.columns is not None:
            kept = np.arange(len(features))
            if not self._sensitive.keep:
                kept = np.setdiff1d(kept, column_positions(table, self._sensitive.columns))
            if not kept.size:
                raise ValueError(_NOTHING_LEFT)
            self._model_positions, features = kept, features[kept]
        self.model_features_ = features

    def _check_kept_columns(
        self, rest: Any, y: ColumnLike | None, supervised: bool, check_params: dict[str, Any]
    ) -> Any:
        """Validate the columns that the model uses, and y with them if it is needed."""
        if check_params.get("skip_check_array"):
            check_consistent_length(rest, y)
            return (rest, y) if supervised else rest
        if supervised:
            return check_X_y(rest, y, estimator=self, **check_params)
        return check_array(rest, estimator=self, input_name="X", **check_params)

    def _encode_groups(
        self, n_samples: int, sensitive_features: ColumnsLike | None, X: MatrixLike
    ) -> GroupEncoding | GroupProbabilities:
        """Encode the groups; without any, warn and treat all rows as one group."""
        if sensitive_features is None:
            _warn_without_groups(self)
            return one_group(n_samples)
        table = read_probabilities(self, self._sensitive, sensitive_features, n_samples, X)
        return table or encode_groups(
            sensitive_features, n_samples=n_samples, intersectional=self._sensitive.crossed, like=X
        )

    def _refuse_lazy(self, *collections: Any) -> None:
        """Raise for Dask collections: reading them here would gather all their rows."""
        if is_lazy(*collections):
            raise TypeError(
                f"{type(self).__name__} does not read Dask collections here. Pass rows in memory: "
                "all of them with .compute() if they fit, or a sample to fit and parts to predict."
            )

    def _read_features(self, X: MatrixLike, **check_params: Any) -> Any:
        """Validate X at prediction and return the columns that the model uses.

        A table may lack the sensitive columns, which the people who ask may not have.
        """
        self._refuse_lazy(X)
        with config_context(array_api_dispatch=False):
            if self._model_positions is None:
                return validate_data(self, X, reset=False, **check_params)
            refuse_arrow_table(X, "X")
            if not _lacks_groups(self, X):
                validate_data(self, X, reset=False, skip_check_array=True)
                X = keep_columns(X, self._model_positions)
            return self._check_kept_columns(X, None, False, check_params)

    def _read_part(
        self,
        X: MatrixLike,
        y: ColumnLike | None,
        sensitive_features: ColumnsLike | None,
        sample_weight: ColumnLike | None,
        **check_params: Any,
    ) -> TrainingData:
        """Validate a later part of a stream, in the groups of the first part."""
        groups = self._read_part_groups(X, sensitive_features)
        check_aligned(X=X, y=y, sample_weight=sample_weight)
        rows = self._read_features(X, **check_params)
        y = column_or_1d(y, warn=True)
        check_consistent_length(rows, y)
        return TrainingData(rows, y, check_weights(sample_weight, rows.shape[0]), groups)

    def _read_part_groups(
        self, X: MatrixLike, sensitive_features: ColumnsLike | None = None
    ) -> GroupEncoding:
        """Return the encoding of a later part of a stream, in the groups of the first part."""
        self._refuse_lazy(X, sensitive_features)
        codes = self._read_groups(X, sensitive_features)
        if codes is None:
            if self._group_levels.attributes:
                raise ValueError(
                    "partial_fit got no sensitive_features, but the first part of the stream had "
                    "them. Pass the groups of every part."
                )
            codes = np.zeros((1, _num_samples(X)), np.int64)
        n_groups = self._group_levels.n_groups
        counts = sum(np.bincount(attribute, minlength=n_groups) for attribute in codes)
        return GroupEncoding(codes, self._group_levels, np.asarray(counts, dtype=np.int64))

    def _read_groups(
        self,
        X: MatrixLike,
        sensitive_features: ColumnsLike | None = None,
        *,
        allow_unseen: bool = False,
    ) -> IntArray | None:
        """Return the group numbers of new rows, or None if their groups are not known.

        The groups come from ``sensitive_features``, else from ``sensitive``, columns of X; unseen
        groups raise, or get the number -1.
        """
        if sensitive_features is None:
            if self._sensitive.columns is None:
                return None
            if _lacks_groups(self, X):
                raise ValueError(f"X has no column {listed(_dropped_columns(self))}.")
            sensitive_features = take_columns(X, self._sensitive.columns)
        n_samples = _num_samples(X)
        check_alignment(sensitive_features, X)
        return self._group_levels.encode(
            sensitive_features, n_samples=n_samples, allow_unseen=allow_unseen
        )


def _dropped_columns(estimator: Any) -> list[Any]:
    """Return the names of the columns that the last fit has kept out of the model."""
    names = getattr(estimator, "feature_names_in_", ())
    kept = set(getattr(estimator, "model_features_", names))
    return [name for name in names if name not in kept]


def _warn_without_groups(estimator: Any) -> None:
    warn_user(
        f"{type(estimator).__name__} was fitted without sensitive_features, so no constraint that "
        "compares groups is active. Pass fit(..., sensitive_features=...) or set sensitive=, the "
        "names of columns of X.",
        MissingGroupsWarning,
    )


def _lacks_groups(estimator: Any, X: MatrixLike) -> bool:
    """Whether X is a table of the columns that the model uses, without the sensitive ones."""
    is_table = list(getattr(X, "columns", [])) == list(estimator.model_features_)
    return is_table and bool(_dropped_columns(estimator))


def _check_columns(argument: str, values: Any, columns: Any) -> None:
    """Raise if the name of a column was passed in place of the column, or both were given."""
    if isinstance(values, str):
        raise TypeError(
            f"{argument}={values!r} is a name. Pass the column itself, X[{values!r}], or give its "
            "name to the estimator, sensitive=."
        )
    if values is not None and columns is not None:
        raise ValueError(
            f"{argument} was passed to fit although sensitive= of the estimator says that X holds "
            f"them, in {columns!r}. Use one of the two."
        )
