"""The estimator inside a post-processing one: its choice, its arguments, its out-of-fold values.

FairDecisionClassifier, FairDecisionRegressor and PartialParityCalibrator inherit from
:class:`FitsOnFolds`. Their ``fit`` calls :func:`read_for_wrapped` for the rows, ``_row_params``
for the arguments of the fits inside, and :func:`values_unseen` for models and out-of-fold values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_y, check_is_fitted

from skfair._typing import ColumnLike, FloatArray, IntArray, MatrixLike
from skfair.base import SensitiveFeaturesMixin
from skfair.estimators.certificate import NOT_LAZY
from skfair.estimators.wrapped_scores import (
    CrossFits,
    Split,
    as_rows,
    check_fitted,
    cross_fitted,
    fitted,
    refuse_folds_of_rows,
)
from skfair.exceptions import ExplainedVarianceWarning
from skfair.groups.attributes import check_aligned
from skfair.groups.training_data import TrainingData
from skfair.read import read_rows, refuse_lazy
from skfair.utils.dask_collections import is_lazy
from skfair.utils.partitioned_rows import PartitionedRows
from skfair.utils.routing import fit_arguments, router_to
from skfair.utils.text import listed
from skfair.utils.warn import warn_user


def read_for_wrapped(
    estimator: SensitiveFeaturesMixin,
    X: MatrixLike,
    y: ColumnLike,
    units: ColumnLike | None = None,
    **metadata: Any,  # other arguments of ``fit`` by row, as they were passed
) -> tuple[Any, TrainingData]:
    """Return X as the estimator inside reads it, and the rows of the fit with their groups.

    X is not converted to a matrix of numbers, because the estimator inside may read texts or
    frames. Dask collections become partitions, if the outer estimator takes them.
    """
    if estimator._takes_partitions and is_lazy(X, y, *metadata.values()):
        data = read_rows(estimator, X, y, skip_check_array=True, **metadata)
        return data.X, data
    refuse_lazy(estimator, X, y, units, *metadata.values())
    check_aligned(X=X, units=units, **metadata)
    is_numeric = isinstance(estimator, RegressorMixin)
    X, y = indexable(as_rows(X), _check_y(y, estimator=estimator, y_numeric=is_numeric))
    return X, read_rows(estimator, X, y, units=units, skip_check_array=True, **metadata)


class WrapsEstimator:
    """Mixin of estimators with another estimator inside."""

    _default: type[BaseEstimator] = LogisticRegression
    estimator: Any
    certificate: Any
    cv: Any
    n_jobs: int | None

    def _inner(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    @property
    def _is_prefit(self) -> bool:
        """Whether the estimator is passed fitted, and is not fitted again."""
        is_said = isinstance(self.cv, str) and self.cv == "prefit"
        return is_said or isinstance(self._inner(), FrozenEstimator)

    @property
    def _has_folds(self) -> bool:
        """Whether any models are fitted on folds.

        With ``cv=None`` none is. Around a fitted estimator only models of the groups are, and only
        if predictions do not use the groups.
        """
        return self.cv is not None and not (self._is_prefit and getattr(self, "group_aware", True))

    def _check_fits_on_partitions(self, units: ColumnLike | None) -> None:
        """Raise if a fit on Dask collections would need folds or parts, or all rows in memory."""
        if self.certificate is not None:
            raise ValueError(NOT_LAZY)
        refuse_folds_of_rows(None, units, "Dask collections are not cut into folds")
        if self._is_prefit:
            return
        name = type(self._inner()).__name__
        if self.cv is not None:
            raise ValueError(
                f"cv={self.cv!r} would fit {name} on folds, which Dask collections are not cut "
                "into. Fit it on a sample of the rows, or with an estimator that reads Dask "
                "collections, and pass it as sklearn.frozen.FrozenEstimator(estimator)."
            )
        if type(self._inner()).__module__.startswith("sklearn."):
            raise ValueError(
                f"{name} does not read Dask collections: it would gather all rows. Fit it on a "
                "sample of them and pass it as sklearn.frozen.FrozenEstimator(estimator)."
            )

    def _row_params(
        self, sample_weight: ColumnLike | None, metadata: dict[str, Any], others: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the metadata with which the estimator inside is fitted; none if it is fitted.

        ``metadata`` (the ``**fit_params`` of the outer ``fit``) is for this estimator alone. From
        ``others``, such as groups, it gets those that it has requested by metadata routing.
        """
        inner = self._inner()
        if self._is_prefit:
            if metadata:
                raise ValueError(
                    f"A fitted {type(inner).__name__} takes no {listed(list(metadata))}: it is not "
                    "fitted."
                )
            return {}
        fit_params = fit_arguments(self, inner, sample_weight, metadata, others)
        if sample_weight is not None and not any("sample_weight" in name for name in fit_params):
            hint = ""
            if isinstance(inner, Pipeline):
                hint = (
                    f" For its last step pass {inner.steps[-1][0]}__sample_weight= too, or enable "
                    "metadata routing and set_fit_request(sample_weight=True) of the step."
                )
            warn_user(
                f"{type(inner).__name__} takes no sample_weight: weights count in the limits only."
                + hint
            )
        return fit_params

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata that this estimator and the one inside it have requested.

        Returns
        -------
        router : MetadataRouter
            A router that :func:`sklearn.utils.metadata_routing.process_routing` reads.
        """
        return router_to(self, self._inner(), "estimator")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self._inner())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        if inner.classifier_tags and tags.classifier_tags:  # otherwise fit raises
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags


class FitsOnFolds(WrapsEstimator):
    """Mixin of those that fit it on folds, find limits out of fold, and then predict new rows.

    Parameters
    ----------
    ensemble : bool, default=True
        Which models predict new rows, as in
        :class:`~sklearn.calibration.CalibratedClassifierCV`. Limits are found on out-of-fold values
        in both cases.

        - True: The models of the folds predict, and their values are averaged.
        - False: One model predicts, ``estimator_``, which is fitted on all rows after those of the
          folds. If groups are estimated, so is one model of the groups for each attribute. Serving
          takes about a quarter of the time, and the model can be explained, exported and stored
          like any other. Boosted trees and forests lose about two tenths of a point of accuracy on
          unseen data, linear models nothing.

        A model that is passed fitted predicts alone in any case, and so does that of
        :class:`~skfair.classification.PartialParityCalibrator` with ``cv=None``.

    Attributes
    ----------
    estimator_ : estimator
        The model that predicts, if it is a single one: with ``ensemble=False``, or if it was passed
        fitted.
    """

    ensemble: bool
    estimators_: list[Any]  # the models of which new rows get the mean

    @property
    def estimator_(self) -> Any:
        """The model that predicts, if it is a single one."""
        check_is_fitted(self)
        if len(self.estimators_) > 1:
            raise AttributeError(
                f"This {type(self).__name__} predicts by the mean of {len(self.estimators_)} "
                "models, estimators_. Fit with ensemble=False for a single one."
            )
        return self.estimators_[0]


def read_parts(read: Callable[[MatrixLike], FloatArray], X: MatrixLike) -> FloatArray:
    """Return ``read(X)``, one value for each row, computed in the partitions if X has any."""
    if not isinstance(X, PartitionedRows):
        return read(X)
    parts = X.each(_read_part, read=read)
    return np.concatenate([part for part in parts if part is not None])


def _read_part(X: Any, read: Callable[[MatrixLike], FloatArray]) -> FloatArray | None:
    """Return the values of a partition, or None without rows, which many estimators refuse."""
    return read(as_rows(X)) if X.shape[0] else None


def values_unseen(
    estimator: FitsOnFolds,
    inner: Any,
    read: Callable[[Any, MatrixLike], FloatArray],  # returns the values of a fitted model for rows
    X: MatrixLike,
    y: ColumnLike,
    params: dict[str, Any],  # arguments of the fit inside, by row
    splits: Callable[[], list[Split]],  # makes the folds; not called if the estimator is fitted
) -> CrossFits:
    """Fit the models, and read a value for each row by a model that was not fitted to it."""
    if estimator._is_prefit:
        check_fitted(inner)
        return CrossFits([inner], read_parts(partial(read, inner), X), [inner])
    rows: list[IntArray | None] = [train for train, _ in splits()]
    if not estimator.ensemble:
        rows.append(None)  # all rows
    # If limits of the model inside cost much R2, the first fold says so for all fits.
    fits = [
        delayed(fitted)(inner, X, y, params, train, (ExplainedVarianceWarning,) * (fold > 0))
        for fold, train in enumerate(rows)
    ]
    return cross_fitted(fits, X, splits(), read, estimator.n_jobs)


def numbers_of(model: BaseEstimator, X: MatrixLike) -> FloatArray:
    """Return the predictions of a regressor as one finite number for each row."""
    numbers = np.asarray(model.predict(X), dtype=np.float64)
    numbers = numbers.ravel() if numbers.shape[1:] == (1,) else numbers
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(
            f"{type(model).__name__}.predict must return one finite number for each row, got "
            f"{'values that are infinite or missing' if numbers.ndim == 1 else numbers.shape}."
        )
    return numbers
