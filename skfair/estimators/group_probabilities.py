"""Models that estimate the group of a row, for predictions that must not use the group itself.

FairDecisionClassifier and FairDecisionRegressor call :func:`fit_groups` if the limits bind and
``group_aware`` is False. It cross-fits one model for each attribute, and returns
:class:`GroupModels` with the out-of-fold P(group and class | row) of the training rows. At
prediction :meth:`GroupModels.joint` gives the same for new rows.

The models are clones of the user's ``group_estimator``, or neutral ones by :func:`fit_neutral`. A
neutral model reads rows through the transformers of the user's classifier, fitted on the same fold.
Its last step is a logistic regression if the user's model is linear, and otherwise a small booster.
The user's classifier itself is never fitted to groups, because its settings may name its two
classes, or make sense for two only.

If an attribute has few groups, its model has the pairs of group and class as labels (number
``group * n_classes + class``). Otherwise the groups alone are its labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OrdinalEncoder, StandardScaler
from sklearn.utils import _safe_indexing, gen_batches
from sklearn.utils.parallel import delayed
from sklearn.utils.validation import _check_method_params, check_is_fitted

from skfair._typing import FloatArray, IntArray, MatrixLike
from skfair.estimators.seen_rows import check_unseen_groups
from skfair.estimators.wrapped_scores import (
    Split,
    chances_of,
    change_by_another_deal,
    cross_fitted,
    fitted,
    mean_chances,
)
from skfair.groups.training_data import TrainingData
from skfair.utils.rounding import TINY
from skfair.utils.routing import fit_arguments

# An attribute with more pairs of group and class than this has a model of its groups alone.
MOST_PAIRS = 20


@dataclass(frozen=True, eq=False)
class GroupModels:
    """Models of the groups of each attribute."""

    models: list[list[Any]]  # for each attribute the models of which new rows get the mean
    labels: list[IntArray]  # numbers 0, 1, ... of the pairs or groups of each attribute
    sizes: tuple[int, ...]  # number of groups of each attribute
    n_classes: int

    def joint(self, X: MatrixLike, chances: FloatArray) -> FloatArray:
        """Return P(group and class | row) of new rows, shape (n, n_groups, n_classes).

        ``chances`` are their probabilities of the classes, by the classifier.
        """
        parts = [
            mean_chances(models, X, labels)
            for models, labels in zip(self.models, self.labels, strict=True)
        ]
        return self._together(parts, chances)

    def joints(self, X: MatrixLike, chances: Sequence[FloatArray]) -> Iterator[FloatArray]:
        """Yield :meth:`joint` by the models of each fold, and finally by the mean of the models.

        ``chances`` holds the probabilities of the classes by fold, and finally their mean.
        """
        by_attribute = [
            [chances_of(model, X, labels) for model in models]
            for models, labels in zip(self.models, self.labels, strict=True)
        ]
        by_fold = [
            *zip(*by_attribute, strict=True),
            [np.mean(of_fold, axis=0) for of_fold in by_attribute],
        ]
        for of_groups, of_classes in zip(by_fold, chances, strict=True):
            yield self._together(list(of_groups), of_classes)

    def _together(self, of_attributes: list[FloatArray], chances: FloatArray) -> FloatArray:
        """Return P(group and class | row), from the predictions of the model of each attribute."""
        parts = []
        for own, size in zip(of_attributes, self.sizes, strict=True):
            if size * self.n_classes > MOST_PAIRS:
                parts.append(own[:, :, None] * chances[:, None, :])
                continue
            parts.append(_within_class(own, chances).reshape(-1, size, self.n_classes))
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _within_class(of_pairs: FloatArray, chances: FloatArray) -> FloatArray:
    """Return P(group | class, row) times ``chances``, shape (n, n_groups * n_classes).

    ``of_pairs`` is P(group and class | row) by a model of pairs. It is divided by the model's own
    P(class | row), because the classifier estimates it better, and because offsets and decisions
    should rely on the same probabilities of classes.
    """
    n_classes = chances.shape[1]
    of_class, of_group = _sums_of_pairs(of_pairs.shape[1] // n_classes, n_classes)
    # If the model gives a class the probability 0, P(group | row) is used instead of 0 / 0.
    of_pairs = of_pairs + TINY * (of_pairs @ of_group)
    return np.asarray(of_pairs * (chances / (of_pairs @ of_class.T) @ of_class))


@cache
def _sums_of_pairs(n_groups: int, n_classes: int) -> tuple[FloatArray, FloatArray]:
    """Return matrices of 0 and 1 whose products with pairs are sums over a class and over a group.

    Products are many times faster here than sums over short axes.
    """
    of_class = np.tile(np.eye(n_classes), n_groups)
    of_group = np.kron(np.eye(n_groups), np.ones((n_classes, n_classes)))
    return of_class, np.asarray(of_group, np.float64)


class GroupFits(NamedTuple):
    """Models of the groups, and what they say about the training rows."""

    models: GroupModels
    # (n_samples, n_groups, n_classes): out-of-fold P(group and class | row)
    joint: FloatArray
    # Returns the same as another deal of the folds might give it, for given probabilities of the
    # classes
    other_joint: Callable[[FloatArray], FloatArray]


def fit_groups(
    estimator: Any,  # the outer estimator, with ``group_estimator`` and ``n_jobs``
    inner: Sequence[Any],  # its models, of folds and all rows: neutral ones use their transformers
    data: TrainingData,
    classes: IntArray,  # (n_samples,): number of the class of each row
    chances: FloatArray,  # (n_samples, n_classes): out-of-fold probabilities
    splits: Sequence[Split],
) -> GroupFits:
    """Fit models of the groups on folds: ``estimator.group_estimator``, or neutral ones if None."""
    weights, chosen, groups = data.sample_weight, estimator.group_estimator, data.groups
    fit: Callable[..., Any] = fit_neutral
    params = {} if weights is None else {"sample_weight": weights}
    if chosen is not None:
        fit, inner, params = fitted, [chosen], fit_arguments(estimator, chosen, weights, {})
        if data.passed is not None and not any("sample_weight" in name for name in params):
            raise ValueError(
                "Probabilities of groups are weights in the fit of a model of groups, but "
                f"{type(chosen).__name__} takes no sample_weight. Pass another "
                "group_estimator=, such as LogisticRegression(), or None."
            )
    n_classes, sizes = chances.shape[1], np.diff(groups.offsets)
    parts = [train for train, _ in splits]
    if not estimator.ensemble:
        parts.append(np.arange(classes.size))
    labels, found = [], []
    for codes, start, size in zip(groups.codes, groups.offsets, sizes, strict=False):
        target, width = codes - start, size
        if size * n_classes <= MOST_PAIRS:
            target, width = target * n_classes + classes, size * n_classes
        labels.append(np.arange(width))
        if chosen is not None:
            check_unseen_groups(estimator, data, target)
        fits = [  # if ``inner`` has a single model, it is used for all parts
            delayed(fit)(inner[min(k, len(inner) - 1)], data.X, target, params, groups.known(part))
            for k, part in enumerate(parts)
        ]
        read = partial(chances_of, classes=labels[-1])
        found.append(cross_fitted(fits, data.X, splits, read, estimator.n_jobs))
    serving, of_rows = [own.serving for own in found], [own.values for own in found]
    models = GroupModels(serving, labels, tuple(sizes.tolist()), n_classes)

    def other_joint(chances: FloatArray) -> FloatArray:
        others = []
        for own, classes_of_own in zip(found, labels, strict=True):
            read = partial(chances_of, classes=classes_of_own)
            changes = change_by_another_deal(own.of_folds, data.X, splits, read)
            other = np.maximum(own.values + changes, TINY)
            others.append(other / other.sum(axis=1, keepdims=True))
        return models._together(others, chances)

    return GroupFits(models, models._together(of_rows, chances), other_joint)


# The parameters of the small booster. Compared with a clone of the user's booster, accuracy is
# higher by 0.0005 (mean of 8 cases: Adult, Bank, COMPAS), in half the time. With 40 iterations it
# is higher by 0.0010, in twice the time of these. 20 iterations at the rate 0.2 are worse in one
# case.
BOOSTER: dict[str, Any] = {"max_iter": 12, "learning_rate": 0.3, "max_leaf_nodes": 15}
# Attributes in which wrappers of scikit-learn (searches, calibration) keep their fitted model.
_INSIDE = "best_estimator_", "estimator_", "regressor_", "calibrated_classifiers_"
_ROWS_AT_ONCE = 50_000
# The numbers by which the ordinal encoder replaces missing and unknown categories.
_MISSING, _UNKNOWN = -2, -1


def fit_neutral(
    inner: Any,  # the user's model, as the fold has fitted it
    X: MatrixLike,
    target: IntArray,
    row_params: dict[str, Any],  # weights of the rows, if there are any
    rows: IntArray,  # the rows to fit on
) -> Any:
    """Return a neutral classifier of ``target``, after the transformers of ``inner``."""
    # These imports take 0.05 s, so they are made only if they are needed.
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import HistGradientBoostingClassifier

    weights = _check_method_params(X, row_params, rows)
    X, target = _safe_indexing(X, rows), target[rows]
    steps, last = _parts(inner)
    for step in steps:
        X = step.transform(X)
    if not (hasattr(X, "columns") or sparse.issparse(X) or np.ndim(np.asarray(X)) == 2):
        raise ValueError(
            f"The rows that {type(last).__name__} reads are no table of columns, so groups cannot "
            "be estimated from them. Pass group_estimator=, a classifier that reads such rows, or "
            "decide by the group: group_aware=True."
        )
    texts = [] if sparse.issparse(X) else _texts(X)
    if texts:
        codes = OrdinalEncoder(
            handle_unknown="use_encoded_value",
            unknown_value=_UNKNOWN,
            encoded_missing_value=_MISSING,
        )
        steps.append(ColumnTransformer([("codes", codes, texts)], remainder=StandardScaler()))
        X = steps[-1].fit_transform(X)
    model: Any = HistGradientBoostingClassifier(**BOOSTER, early_stopping=False, random_state=0)
    if np.unique(target).size == 1:
        model = DummyClassifier()
    elif hasattr(last, "coef_") or sparse.issparse(X):
        model = LogisticRegression(max_iter=1000)
        if isinstance(X, np.ndarray):
            return _after(steps, _fitted_to_scaled(model, X, target, weights))
        scaler = MaxAbsScaler() if sparse.issparse(X) else StandardScaler()
        X = scaler.fit(X, **({} if sparse.issparse(X) else weights)).transform(X)
        steps.append(scaler)
    return _after(steps, model.fit(X, target, **weights))


def _after(steps: list[Any], model: Any) -> Any:
    """Return a fitted model after transformers; without any it is no pipeline, which takes time."""
    return make_pipeline(*steps, model) if steps else model


def _fitted_to_scaled(
    model: LogisticRegression,
    X: NDArray[Any],  # overwritten
    target: IntArray,
    weights: dict[str, Any],
) -> LogisticRegression:
    """Fit the model to standardised columns; return it with coefficients for the given columns.

    So new rows are not copied to be standardised.
    """
    scaler = StandardScaler(copy=False)
    for rows in gen_batches(len(X), _ROWS_AT_ONCE):  # partial_fit copies its rows
        scaler.partial_fit(X[rows], **{name: of_rows[rows] for name, of_rows in weights.items()})
    model.fit(scaler.transform(X), target, **weights)
    model.coef_ = model.coef_ / scaler.scale_
    model.intercept_ = model.intercept_ - model.coef_ @ scaler.mean_
    return model


def _parts(estimator: Any) -> tuple[list[Any], Any]:
    """Return the transformers before the last step of a fitted model, and this step.

    Pipelines and wrappers are opened, also inside each other, until the step is neither.
    """
    if isinstance(estimator, Pipeline):
        steps, last = _parts(estimator.steps[-1][1])
        # Samplers (steps without ``transform``) change only the rows of a fit. They are omitted.
        return [s for _, s in estimator.steps[:-1] if hasattr(s, "transform")] + steps, last
    names = [name for name in _INSIDE if hasattr(estimator, name)]
    inside = getattr(estimator, names[0] if names else "estimator", None)
    inside = inside[0].estimator if isinstance(inside, list) else inside
    try:
        check_is_fitted(inside)
    except (TypeError, NotFittedError):
        # The model is no wrapper. Forests have an attribute ``estimator``, too: an unfitted tree.
        return [], estimator
    return _parts(inside)


def _texts(X: Any) -> list[int]:
    """Return the places of the columns of a frame or an array that are not numbers."""
    if getattr(getattr(X, "dtype", None), "kind", "O") in "biuf":
        return []
    return [k for k in range(X.shape[1]) if not _is_number(_safe_indexing(X, k, axis=1))]


def _is_number(column: Any) -> bool:
    if not isinstance(column, np.ndarray):
        kind = getattr(column.dtype, "kind", None) or column.to_numpy().dtype.kind
        return kind in "biuf"
    try:
        column.astype(np.float64)
    except (TypeError, ValueError):
        return False
    return True
