"""The classifiers inside an estimator that decides: what is fitted, and what their fits take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_y

from skfair._typing import ColumnLike, FloatArray, IntArray, MatrixLike
from skfair.estimators.group_chances import GroupModels, cross_fit_groups, fit_neutral
from skfair.estimators.inner_scores import (
    Split,
    as_rows,
    check_fitted,
    cross_fitted,
    fitted,
    make_splits,
)
from skfair.groups.attributes import check_aligned
from skfair.groups.training_data import TrainingData
from skfair.read import read_rows, refuse_lazy
from skfair.utils.routing import fit_arguments, router_to
from skfair.utils.text import listed
from skfair.utils.warn import warn_user


def read_for_inner(
    estimator: Any,
    X: MatrixLike,
    y: ColumnLike,
    groups: ColumnLike | None = None,  # of the folds
    *,
    y_numeric: bool = False,
    **metadata: Any,  # of the rows, as they were passed to ``fit``
) -> tuple[Any, TrainingData]:
    """Return X as a model inside another reads it, and the rows of the fit with their groups."""
    refuse_lazy(estimator, X, y, groups, *metadata.values())
    check_aligned(X=X, y=y, groups=groups)
    X, y = indexable(as_rows(X), _check_y(y, estimator=estimator, y_numeric=y_numeric))
    return X, read_rows(estimator, X, y, skip_check_array=True, **metadata)


class InnerModels:
    """Gives the estimator that is wrapped, the classifier of groups, and what their fits take."""

    _default: type[BaseEstimator] = LogisticRegression
    estimator: Any
    group_estimator: Any
    cv: Any
    n_jobs: int | None
    estimators_: list[Any]
    group_estimators_: list[list[Any]]
    _group_models: GroupModels | None

    def _inner(self) -> Any:
        return self._default() if self.estimator is None else self.estimator

    @property
    def _is_prefit(self) -> bool:
        is_said = isinstance(self.cv, str) and self.cv == "prefit"
        return is_said or isinstance(self._inner(), FrozenEstimator)

    def _values_unseen(
        self,
        read: Callable[[Any, MatrixLike], FloatArray],  # what a fitted model says of rows
        X: MatrixLike,
        y: ColumnLike,
        params: dict[str, Any],  # of the fit, by row
        splits: Callable[[], list[Split]],
    ) -> FloatArray:
        """Fit the models on folds, or take the fitted one; return what they say of the rows."""
        inner = self._inner()
        if self._is_prefit:
            check_fitted(inner)
            self.estimators_ = [inner]
            return read(inner, X)
        self.estimators_, values = cross_fitted(read, inner, X, y, params, splits(), self.n_jobs)
        return values

    def _fit_groups(
        self,
        data: TrainingData,
        classes: IntArray,  # (n_samples,): number of the class of each row
        splits: Sequence[Split],
    ) -> GroupModels:
        """Return models of groups, the one that was passed or neutral ones, and store them."""
        weights, chosen = data.sample_weight, self.group_estimator
        row_params = {} if weights is None else {"sample_weight": weights}
        if chosen is not None:
            row_params = fit_arguments(self, chosen, weights, {})
            if data.people is not None and not any("sample_weight" in name for name in row_params):
                raise ValueError(
                    "Probabilities of groups are weights in the fit of a model of groups, but "
                    f"{type(chosen).__name__} takes no sample_weight. Pass another "
                    "group_estimator=, such as LogisticRegression(), or None."
                )

        def fits(target: IntArray) -> Iterator[Any]:
            fit, inner = (fit_neutral, self.estimators_) if chosen is None else (fitted, [chosen])
            for k, (train, _) in enumerate(splits):
                model = inner[min(k, len(inner) - 1)]  # a single one is that of all folds
                yield delayed(fit)(model, data.X, target, row_params, train)

        models = cross_fit_groups(fits, data.X, data.groups, classes, splits, self.n_jobs)
        self.group_estimators_, self._group_models = models.models, models.without_rows()
        return models

    def _row_params(
        self, sample_weight: ColumnLike | None, metadata: dict[str, Any], others: dict[str, Any]
    ) -> dict[str, Any]:
        """Return what the fit of the estimator inside takes besides X and y; a fitted one nothing.

        ``metadata`` is for it alone, and of ``others`` it gets what it has requested.
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
            warn_user(
                f"{type(inner).__name__} takes no sample_weight: weights count in the limits only."
            )
        return fit_params

    def get_metadata_routing(self) -> MetadataRouter:
        """Return what is requested here and by the classifier inside.

        Returns
        -------
        router : MetadataRouter
            As :func:`sklearn.utils.metadata_routing.process_routing` reads it.
        """
        return router_to(self, self._inner(), "estimator")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self._inner())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        if inner.classifier_tags and tags.classifier_tags:  # else fit raises
            tags.classifier_tags.multi_class = inner.classifier_tags.multi_class
        return tags


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


def number_splits(cv: Any, X: MatrixLike, y: FloatArray, cells: IntArray) -> list[Split]:
    """Return the folds; a number of folds spreads each group, and its targets, evenly over them."""
    if not isinstance(cv, int | np.integer) or isinstance(cv, bool):
        return make_splits(cv, X, y, cells)
    if not 2 <= cv <= y.size:
        raise ValueError(
            f"cv={cv} folds need at least 2 folds and one row in each, got n_samples={y.size}."
        )
    place = np.empty(y.size, np.int64)
    place[np.lexsort((y, cells))] = np.arange(y.size) % int(cv)
    return [(np.flatnonzero(place != k), np.flatnonzero(place == k)) for k in range(int(cv))]
