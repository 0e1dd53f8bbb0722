"""Numbers of any regressor, by models that were fitted without the row, and the groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skfair._typing import FloatArray, IntArray, MatrixLike
from skfair.estimators.chances import Split, make_splits
from skfair.estimators.inner_models import InnerModels
from skfair.groups.encoding import GroupEncoding


class HasNumbers(Protocol):
    """A fitted regressor."""

    def predict(self, X: MatrixLike) -> NDArray[Any]:
        """Return predictions."""


class InnerRegressors(InnerModels):
    """Gives the regressor that is wrapped, the classifier of groups, and what their fits take."""

    def _inner(self) -> Any:
        return LinearRegression() if self.estimator is None else self.estimator

    def _check_inner(self) -> None:
        """Raise if the estimator predicts classes."""
        if is_classifier(self._inner()):
            raise TypeError(
                f"The estimator {type(self._inner()).__name__} is a classifier. Pass a regressor, "
                "or use FairDecisionClassifier."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super(InnerModels, self).__sklearn_tags__()  # type: ignore[misc]
        inner = get_tags(self._inner())
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags

    def _group_estimator(self) -> Any:
        """Return what estimates groups: a logistic regression on the columns of the pipeline."""
        if self.group_estimator is not None:
            return self.group_estimator
        logistic, inner = LogisticRegression(max_iter=1000), self._inner()
        if isinstance(inner, Pipeline) and len(inner.steps) > 1:
            return Pipeline([*clone(inner).steps[:-1], ("logisticregression", logistic)])
        return make_pipeline(StandardScaler(with_mean=False), logistic)


def numbers_of(model: HasNumbers, X: MatrixLike) -> FloatArray:
    """Return the predictions of a regressor as one finite number for each row."""
    numbers = np.asarray(model.predict(X), dtype=np.float64)
    numbers = numbers.ravel() if numbers.shape[1:] == (1,) else numbers
    if numbers.ndim != 1 or not np.isfinite(numbers).all():
        raise ValueError(
            f"{type(model).__name__}.predict must return one finite number for each row, got "
            f"{'values that are infinite or missing' if numbers.ndim == 1 else numbers.shape}."
        )
    return numbers


def mean_numbers(models: Sequence[HasNumbers], X: MatrixLike) -> FloatArray:
    """Return the mean prediction of several models."""
    total = numbers_of(models[0], X)
    for model in models[1:]:
        total = total + numbers_of(model, X)
    return total / len(models)


def check_prefit_regressor(estimator: Any) -> Any:
    """Return a fitted regressor as it is; raise if it is not fitted."""
    inside = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    try:
        check_is_fitted(inside)
    except NotFittedError:
        raise NotFittedError(
            f"cv='prefit' takes a fitted estimator, but this {type(inside).__name__} is not "
            "fitted. Fit it first, and for searches pass sklearn.frozen.FrozenEstimator(estimator)."
        ) from None
    return estimator


def by_appearance(groups: GroupEncoding) -> tuple[GroupEncoding, IntArray]:
    """Number the groups of each attribute as they appear in the rows: their names do not matter.

    Returned besides is the new number of each group.
    """
    first = np.full(groups.n_groups, groups.n_samples)
    for codes in groups.codes:
        different, rows = np.unique(codes, return_index=True)
        first[different] = rows
    order = np.lexsort((first, groups.attribute_of_group))
    numbers = np.empty(order.size, np.int64)
    numbers[order] = np.arange(order.size)
    return replace(groups, codes=numbers[groups.codes], counts=groups.counts[order]), numbers


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
