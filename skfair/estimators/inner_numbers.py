"""Numbers of any regressor, by models that were fitted without the row, and the groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.utils.validation import check_is_fitted

from skfair._typing import FloatArray, IntArray, MatrixLike
from skfair.estimators.chances import Split, make_splits
from skfair.estimators.inner_models import InnerModels


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
