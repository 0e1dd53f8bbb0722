"""Whether a model that was passed fitted has been fitted to the rows that it is passed with.

Limits are set on scores of rows that a model has not seen. Scores of its own training rows say how
well it remembers them, so limits that are set on these do not hold for new people, and nothing can
be certified. The rows do not say which of the two they are, but copies of the model do. A copy is
fitted to each half of the rows, and its errors on the other half and on its own half are known. A
model that is new to the rows errs about as often as a copy errs on the other half. A model that has
seen them errs about as often as a copy does on its own half.

A model that was fitted to many more rows may err less than the copies, too. How much less is
bounded by how the errors fall when copies are fitted to four times as many rows.

Copies of a linear model of many rows err nearly as much on their own half as on the other one. Such
a model is not taken for one that has seen the rows, and limits on its training rows hold for new
people nearly as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from skfair._typing import FloatArray, IntArray
from skfair.estimators.wrapped_estimator import WrapsEstimator, numbers_of
from skfair.estimators.wrapped_scores import chances_of, check_fitted
from skfair.exceptions import SeenRowsWarning
from skfair.groups.training_data import PassedRows, TrainingData
from skfair.utils.partitioned_rows import PartitionedRows
from skfair.utils.rounding import TINY
from skfair.utils.warn import hidden, is_unwanted, warn_user

# Copies are fitted to half of at most this many rows, and not at all to half of very few. With half
# as many rows one of 20 boosters of 400 rounds is no longer found on COMPAS; twice as many take
# twice the time.
_MOST_ROWS, _FEWEST_ROWS = 4000, 200
# Copies are fitted to this fraction of a half, too, and the fall of their errors up to the whole
# half is continued for as many doublings of the rows: the model may have seen 32 times as many.
_PART, _DOUBLINGS = 4, 5
# Standard errors by which a model is to be nearer to a copy on its own half (3e-5 of the models
# that are exactly between both are), and to err less than more rows explain (1%).
_NEARER, _LESS = 4.0, 2.33
# Only these packages' fits are run, which do nothing but fit. What others do, and how long it
# takes, is not known: they may ask a service.
_PACKAGES = ("sklearn", "lightgbm", "xgboost", "catboost")


class _Errors(NamedTuple):
    """Mean errors on the rows: of the model, and of copies on the other half and on their own."""

    model: float
    other_half: float
    own_half: float


def check_unseen(estimator: WrapsEstimator, data: TrainingData) -> None:
    """Warn if the estimator inside was fitted to these rows before; raise if limits are certified.

    Partitions are not checked, nor are models of which no copy can be fitted cheaply.
    """
    inner, is_certified = estimator._inner(), getattr(estimator, "certificate", None) is not None
    if not estimator._is_prefit or isinstance(data.X, PartitionedRows):
        return
    if not is_certified and is_unwanted(SeenRowsWarning):  # a step of a fit that was checked
        return
    name = check_fitted(inner)
    means = _errors_if_seen(inner, data.passed or data, isinstance(estimator, RegressorMixin))
    if means is None:
        return
    seen = (
        f"The fitted {name} seems to have been fitted to these rows before: its mean error on them "
        f"is {means.model:.2g}, like that of copies on the rows that they are fitted to "
        f"({means.own_half:.2g}), and not like that on other rows ({means.other_half:.2g})."
    )
    remedy = (
        "Pass rows that it has not seen, or the estimator without cv='prefit' and FrozenEstimator, "
        "which is then fitted on folds of these rows."
    )
    if is_certified:
        raise ValueError(
            f"{seen} Nothing can be certified on rows that a model has seen. {remedy} If these "
            "rows are new to it, pass a class around it whose fit does not train, such as the one "
            "on the page 'Scores of language models and closed services'."
        )
    warn_user(
        f"{seen} Limits on rows that a model has seen do not hold for new people. {remedy}",
        SeenRowsWarning,
    )


def _errors_if_seen(
    inner: Any, rows: TrainingData | PassedRows, is_numeric: bool
) -> _Errors | None:
    """Return the errors that show that a fitted model has seen the rows, or None."""
    unfitted = _cheap_copy(inner)
    if unfitted is None:
        return None
    y, weights = np.asarray(rows.y), rows.sample_weight
    takes_weights = weights is not None and has_fit_parameter(unfitted, "sample_weight")
    weights = np.ones(y.size) if weights is None else weights
    units = np.arange(y.size) if rows.units is None else rows.units.codes
    halves = _halves(units, weights)
    if min(map(len, halves)) < _FEWEST_ROWS // 2:
        return None
    classes = None if is_numeric else np.unique(y)

    def fitted_to(part: IntArray) -> Any:
        params = {"sample_weight": weights[part]} if takes_weights else {}
        return clone(unfitted).fit(_safe_indexing(rows.X, part), y[part], **params)

    def errors(fitted: Any, part: IntArray) -> FloatArray:
        X = _safe_indexing(rows.X, part)
        if classes is None:
            return np.asarray(np.abs(numbers_of(fitted, X) - y[part]))
        if not hasattr(fitted, "predict_proba"):
            return np.asarray(fitted.predict(X) != y[part], np.float64)
        is_class = y[part][:, None] == classes
        return np.asarray(((chances_of(fitted, X, classes) - is_class) ** 2).sum(axis=1))

    with hidden(".*", Warning):  # those of fits to few rows
        try:
            return _compared(inner, halves, units, weights, fitted_to, errors)
        except Exception:  # a copy may need more rows, or what fit does not get here
            return None


def _compared(
    inner: Any,
    halves: tuple[IntArray, IntArray],
    units: IntArray,  # of all rows
    weights: FloatArray,  # of all rows
    fitted_to: Callable[[IntArray], Any],  # returns a copy
    errors: Callable[[Any, IntArray], FloatArray],  # of a fitted model on some rows
) -> _Errors | None:
    """Return mean errors if they show that the model has seen the rows, or None."""
    of_model, of_other, of_own = [], [], []
    for half, other in (halves, halves[::-1]):
        copy = fitted_to(half)
        of_model.append(errors(inner, other))
        of_other.append(errors(copy, other))
        of_own.append(errors(copy, half))
        mean_of_own = np.average(of_own[-1], weights=weights[half])
        lead = 2 * of_model[-1] - of_other[-1] - mean_of_own
        if weights[other] @ lead >= 0:  # most models that are new to the rows end here
            return None
    order = np.concatenate(halves[::-1])
    total = weights[order].sum()
    people = np.unique(units[order], return_inverse=True)[1]

    def mean(column: FloatArray) -> float:
        return float(weights[order] @ column / total)

    def margin(column: FloatArray) -> float:
        """Return by how many standard errors a mean is below 0."""
        sums = np.bincount(people, weights[order] * (column - mean(column)))
        error = float(np.sqrt(sums @ sums) / total)
        return -mean(column) / max(error, TINY)

    on_model, on_other, on_own = map(np.concatenate, (of_model, of_other, of_own[::-1]))
    means = _Errors(mean(on_model), mean(on_other), mean(on_own))
    is_nearer = margin(on_model - (on_other + on_own) / 2) > _NEARER
    # A copy that learns nothing from few rows errs on both halves: the model may just be better.
    gain, gain_by_seeing = means.other_half - means.model, means.other_half - means.own_half
    if not is_nearer or gain > 2 * gain_by_seeing:
        return None
    of_part = []
    for half, other in (halves, halves[::-1]):
        size = len(half) // _PART
        parts = half[:size], half[size : 2 * size]
        of_part.append(np.mean([errors(fitted_to(part), other) for part in parts], axis=0))
    on_part = np.concatenate(of_part)
    # The least error that more rows explain is other * (other / part) ** steps. It is compared as a
    # sum over rows that has the same mean and derivatives, so that its standard error is known.
    steps = _DOUBLINGS / np.log2(_PART)
    fall = min(means.other_half / mean(on_part), 1.0)
    least = fall**steps * ((steps + 1) * on_other - steps * fall * on_part)
    least += fall**steps * means.other_half - mean(least)
    return means if margin(on_model - least) > _LESS else None


def _halves(units: IntArray, weights: FloatArray) -> tuple[IntArray, IntArray]:
    """Return two halves of some rows that have a weight, with all rows of a person in one."""
    counted = np.flatnonzero(weights)
    place = np.random.RandomState(0).permutation(int(units.max()) + 1)[units[counted]]
    order = np.argsort(place, kind="stable")[:_MOST_ROWS]
    middle = np.searchsorted(place[order], place[order[order.size // 2]])
    return counted[order[:middle]], counted[order[middle:]]


def _cheap_copy(inner: Any) -> Any:
    """Return an unfitted copy whose fit is known, cheap and always the same; None if it is not."""
    if isinstance(inner, FrozenEstimator):
        inner = inner.estimator
    inner = getattr(inner, "best_estimator_", inner)  # what a search has found, without the search
    try:
        copy = clone(inner)
    except (TypeError, RuntimeError):  # it has no parameters, or others than it was made with
        return None
    for name, value in copy.get_params().items():
        if isinstance(value, FrozenEstimator):
            copy.set_params(**{name: clone(value.estimator)})
        elif name.split("__")[-1] == "random_state":
            copy.set_params(**{name: 0})
    parts = [copy, *copy.get_params().values()]
    models = [part for part in parts if hasattr(type(part), "fit") and hasattr(part, "predict")]
    is_known = all(type(part).fit.__module__.split(".")[0] in _PACKAGES for part in models)
    return copy if is_known and not any(isinstance(part, BaseSearchCV) for part in parts) else None
