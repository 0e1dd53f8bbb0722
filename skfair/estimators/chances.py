"""Probabilities of any classifier, by models that were fitted without the row: cross-fitting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.utils.validation import check_is_fitted

from skfair._typing import FloatArray, IntArray, MatrixLike
from skfair.estimators.inner_scores import cross_fitted

Split = tuple[IntArray, IntArray]

# Folds of cv="auto". Certificates of fewer rows than these are worth the time of more folds: the
# models see more of the rows, and the test counts more of them.
FOLDS, FOLDS_OF_FEW, FEW_ROWS = 5, 10, 3000


class HasChances(Protocol):
    """A fitted classifier with probabilities."""

    classes_: NDArray[Any]

    def predict_proba(self, X: MatrixLike) -> NDArray[Any]:
        """Return probabilities."""


class CrossFitted(NamedTuple):
    """Models of the folds, and probabilities or predictions of rows by one that has not seen it."""

    models: list[Any]
    chances: FloatArray


def with_probabilities(estimator: Any, n_fewest: int = 3) -> Any:
    """Return the estimator, or one that turns its scores into probabilities.

    ``n_fewest`` is the number of rows of the smallest class that it is fitted to.
    """
    if hasattr(estimator, "predict_proba"):
        return estimator
    if hasattr(estimator, "decision_function"):
        return CalibratedClassifierCV(estimator, cv=int(np.clip(n_fewest, 2, 3)))
    raise TypeError(
        f"The estimator {type(estimator).__name__} has neither predict_proba nor "
        "decision_function. Decisions need probabilities: use a classifier that estimates them."
    )


def check_fitted(estimator: Any) -> str:
    """Return the name of a classifier that is passed fitted; raise if it is not."""
    name = type(
        estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    ).__name__
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise NotFittedError(
            f"cv='prefit' takes a fitted estimator, but this {name} is not fitted. Fit it first. "
            "Searches and fairness_path clone it, and clones are not fitted: for these pass "
            "sklearn.frozen.FrozenEstimator(estimator)."
        ) from None
    return name


def check_prefit(estimator: Any) -> Any:
    """Return a fitted classifier as it is; raise if it is not fitted, or has no probabilities."""
    name = check_fitted(estimator)
    if hasattr(estimator, "decision_function") and not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"The fitted {name} has no predict_proba. Calibrate it on rows that it has not seen, "
            "CalibratedClassifierCV(FrozenEstimator(estimator)).fit(X, y), and pass the result; or "
            "pass a number of folds as cv."
        )
    return with_probabilities(estimator)


def chances_of(model: HasChances, X: MatrixLike, classes: NDArray[Any]) -> FloatArray:
    """Return the probabilities of the classes, which add up to 1; 0 for one that a fold lacked.

    ``classes`` may be in any order.
    """
    predicted = np.asarray(model.predict_proba(X), dtype=np.float64)
    # A product is much faster than a sum over a short axis; it is finite only if all terms are.
    total = predicted @ np.ones(predicted.shape[1])
    if not np.isfinite(total).all() or predicted.min(initial=0.0) < 0:
        raise ValueError(
            f"{type(model).__name__}.predict_proba returned values that are no probabilities."
        )
    order = np.argsort(classes)
    place = np.searchsorted(classes, model.classes_, sorter=order)
    place = order[np.minimum(place, classes.size - 1)]
    if not np.array_equal(classes[place], model.classes_):
        raise ValueError(
            f"{type(model).__name__} was fitted for the classes {model.classes_.tolist()}, but y "
            f"has {classes.tolist()}."
        )
    predicted = predicted / np.where(total > 0, total, 1.0)[:, None]
    if np.array_equal(place, np.arange(classes.size)):
        chances = predicted
    else:
        chances = np.zeros((predicted.shape[0], classes.size))
        chances[:, place] = predicted
    chances[total == 0] = 1.0 / classes.size
    return chances


def mean_chances(models: Sequence[HasChances], X: MatrixLike, classes: NDArray[Any]) -> FloatArray:
    """Return the mean of the probabilities of several models."""
    total = chances_of(models[0], X, classes)
    for model in models[1:]:
        total = total + chances_of(model, X, classes)
    return total / len(models)


def folds_of_certificate(codes: IntArray) -> int:
    """Return the number of folds of ``cv="auto"`` for certificates, given the class of each row."""
    if codes.size < FEW_ROWS:
        return int(np.clip(np.bincount(codes).min(), FOLDS, FOLDS_OF_FEW))
    return FOLDS


def make_splits(cv: Any, X: MatrixLike, y: NDArray[Any], kinds: IntArray) -> list[Split]:
    """Return the folds; each row must be in exactly one test part.

    A number of folds is stratified by ``kinds``, group and class, as far as these are large enough.
    """
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        sizes = np.bincount(kinds)
        merged = np.where(sizes[kinds] >= cv, kinds, kinds.max() + 1)
        is_stratified = np.bincount(merged)[merged].min() >= cv
        cv = StratifiedKFold(cv)
        return list(cv.split(np.zeros(len(y)), merged if is_stratified else y))
    try:
        splits = list(check_cv(cv, y, classifier=True).split(X, y))
    except TypeError as error:
        raise TypeError(
            "cv must be a number of folds, a splitter, or pairs of row numbers (train, test). "
            f"Got {cv!r}."
        ) from error
    is_scored = np.zeros(len(y), bool)
    for _, test in splits:
        is_scored[test] = True
    if not is_scored.all():
        raise ValueError("cv leaves rows without a score: every row must be in one test part.")
    return splits


def cross_fit(
    estimator: Any,
    X: MatrixLike,
    y: NDArray[Any],
    row_params: dict[str, Any],
    splits: Sequence[Split],
    classes: NDArray[Any],
    n_jobs: int | None,
) -> CrossFitted:
    """Fit a model on each fold, and return what it says of the others."""
    fewest = min(np.unique(y[train], return_counts=True)[1].min() for train, _ in splits)
    read, estimator = partial(chances_of, classes=classes), with_probabilities(estimator, fewest)
    return CrossFitted(*cross_fitted(read, estimator, X, y, row_params, splits, n_jobs))
