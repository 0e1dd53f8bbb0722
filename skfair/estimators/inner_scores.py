"""Scores of any classifier: of one that is fitted, and of rows that it was not fitted on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import signature
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.special import logit
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import _safe_indexing, assert_all_finite, check_consistent_length
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _check_method_params, _num_samples, check_array

from skfair._typing import (
    ClassLabel,
    ColumnLike,
    ColumnsLike,
    FloatArray,
    IntArray,
    MatrixLike,
)
from skfair.groups.encoding import GroupEncoding
from skfair.read import read_groups
from skfair.utils.response import get_response
from skfair.utils.rounding import TINY

RESPONSES = {
    "auto": ("decision_function", "predict_proba"),
    "decision_function": ("decision_function",),
    "predict_proba": ("predict_proba",),
}


def as_rows(X: MatrixLike) -> Any:
    """Return frames, sparse matrices, texts and dicts as they are, anything else as an array."""
    if hasattr(X, "columns") or sparse.issparse(X):
        return X
    if isinstance(X, list | tuple) or getattr(X, "ndim", None) == 1:
        rows: Any = getattr(X, "iloc", X)
        if any(isinstance(row, str | Mapping) for row in rows[:1]):  # as vectorizers want them
            return X
    with config_context(array_api_dispatch=False):  # tensors are converted, as in every fit
        return check_array(X, dtype=None, ensure_all_finite=False, allow_nd=True)


def scores_of(
    estimator: Any, X: MatrixLike, response_method: str, pos_label: ClassLabel
) -> FloatArray:
    """Return scores of the positive class; probabilities as log-odds."""
    wanted = RESPONSES[response_method]
    scores = np.asarray(get_response(estimator, X, wanted, pos_label=pos_label), dtype=np.float64)
    if "decision_function" not in wanted or not hasattr(estimator, "decision_function"):
        # Probabilities of 0 and 1 become finite scores.
        scores = logit(np.clip(scores, TINY, 1 - np.finfo(np.float64).epsneg))
    assert_all_finite(scores, estimator_name=type(estimator).__name__, input_name="scores")
    return scores


def fitted(
    estimator: Any,
    X: MatrixLike,
    y: ColumnLike,
    row_params: dict[str, Any],
    rows: IntArray | None = None,
) -> Any:
    """Return a clone of the estimator fitted on some rows (all if None)."""
    if rows is not None:
        whole, X, y = X, _safe_indexing(X, rows), _safe_indexing(y, rows)
        row_params = _check_method_params(whole, row_params, rows)
    return clone(estimator).fit(X, y, **row_params)


class HasFolds(Protocol):
    """An estimator with the parameter ``cv``."""

    cv: Any


def keep_folds(estimator: HasFolds) -> None:
    """Make folds that can be read once a list: copies, files and a second fit read them again."""
    if isinstance(estimator.cv, Iterator):
        estimator.cv = list(estimator.cv)


def known_folds(
    cv: Any, X: MatrixLike, y: ColumnLike, sensitive: GroupEncoding, groups: ColumnLike | None
) -> Any:
    """Return the folds of a splitter that reads groups, and any other ``cv`` as it is.

    A splitter of :mod:`skfair.model_selection` gets the sensitive groups of the fit, or reads its
    own columns of X, the rows as passed; one of scikit-learn gets ``groups``: rows of the same
    group are then in one fold.
    """
    takes_groups = hasattr(cv, "split") and "sensitive_features" in signature(cv.split).parameters
    if groups is not None:
        if takes_groups or not hasattr(cv, "split") or isinstance(cv, type):
            raise ValueError(
                f"groups= says which rows belong together, and cv={cv!r} does not ask for that. "
                "Pass a splitter, such as cv=GroupKFold(5)."
            )
        check_consistent_length(X, groups)
        return list(cv.split(X, y, groups))
    if not takes_groups or isinstance(cv, type):  # a class is refused with other odd values
        return cv
    reads_columns = getattr(cv, "sensitive", None) is not None
    if sensitive.people is not None and not reads_columns:
        raise ValueError(
            f"cv={cv!r} splits by group, but sensitive_features are probabilities. Pass a number "
            "of folds, or a splitter of scikit-learn."
        )
    names = None if reads_columns else np.transpose(sensitive.codes).astype(str)
    return list(cv.split(X, y, sensitive_features=names))


def refuse_folds_of_rows(cv: Any, groups: ColumnLike | None, reason: str) -> None:
    """Raise if rows are to be in the folds that the user says, where these are not read."""
    if groups is not None:
        raise ValueError(f"groups= is not read here, because {reason}. Leave it out.")
    if isinstance(cv, Iterable):
        raise ValueError(
            f"cv= got row numbers, which are not read here, because {reason}. Pass a number of "
            "folds or a splitter."
        )


def cross_fitted(
    read: Callable[[Any, MatrixLike], FloatArray],  # what a fitted model says of rows
    estimator: Any,
    X: MatrixLike,
    y: ColumnLike,
    row_params: dict[str, Any],
    splits: Sequence[tuple[IntArray, IntArray]],
    n_jobs: int | None,
) -> tuple[list[Any], FloatArray]:
    """Fit a model on each fold; return the models, and what they say of rows they did not see."""
    fits = [delayed(fitted)(estimator, X, y, row_params, train) for train, _ in splits]
    return held_out(fits, X, splits, read, n_jobs)


def held_out(
    fits: Iterable[Any],  # of each fold, delayed
    X: MatrixLike,
    splits: Sequence[tuple[IntArray, IntArray]],
    read: Callable[[Any, MatrixLike], FloatArray],
    n_jobs: int | None,
) -> tuple[list[Any], FloatArray]:
    """Fit the models of the folds; return them, and what each says of rows it has not seen."""
    models = list(Parallel(n_jobs=n_jobs)(fits))
    parts = [
        read(model, _safe_indexing(X, test))
        for model, (_, test) in zip(models, splits, strict=True)
    ]
    values = np.zeros((_num_samples(X), *parts[0].shape[1:]))
    for part, (_, test) in zip(parts, splits, strict=True):
        values[test] = part
    return models, values


def groups_of_new_rows(
    estimator: Any,  # fitted, with ``is_group_aware_`` and ``unseen``
    X: MatrixLike,
    sensitive_features: ColumnsLike | None,
    *,
    are_used: bool,  # whether some decision depends on them
) -> IntArray | None:
    """Return the groups of new rows, None if they are not used; raise if they are missing."""
    if not estimator.is_group_aware_:
        return None
    may_be_unseen = estimator.unseen == "overall"
    codes: IntArray | None = read_groups(
        estimator, X, sensitive_features, allow_unseen=may_be_unseen
    )
    if codes is None and are_used:
        raise ValueError(
            f"This {type(estimator).__name__} is group-aware: pass the groups of the rows, "
            "predict(X, sensitive_features=...), or name them in sensitive= if X holds them."
        )
    return codes
