"""A check whether a model that was passed fitted (``cv="prefit"``) has seen the rows of this fit.

The post-processing estimators call :func:`check_unseen` in ``fit``. It warns, or raises if limits
are to be certified.

Limits should be set on scores of rows that a model has not seen. Scores of its own training rows
show how well it remembers them. Limits that are set on these do not hold for new people, and
nothing can be certified. The check fits a copy of the model to each half of the rows, and measures
its errors on the other half and on its own half. A model that has not seen the rows errs about as
often as a copy does on the other half. A model that has seen them errs about as often as a copy
does on its own half.

A model that was fitted to many more rows may also err less than the copies. A bound on this effect
follows from the fall of the errors when copies are fitted to four times as many rows.

Copies of a linear model of many rows err nearly as much on their own half as on the other one. So
the check does not find that such a model has seen the rows. This does little harm, because limits
on its training rows hold for new people nearly as well.
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

# At most _MOST_ROWS rows are used, and copies are fitted to one half of these. With fewer than
# _FEWEST_ROWS nothing is checked. With half of _MOST_ROWS, one of 20 boosters of 400 rounds is not
# found on COMPAS any more. Twice as many rows take twice the time.
_MOST_ROWS, _FEWEST_ROWS = 4000, 200
# Copies are also fitted to one _PART-th of a half. The fall of their errors from there to the whole
# half is extrapolated for _DOUBLINGS further doublings of the rows, because the model may have been
# fitted to up to 32 times as many rows.
_PART, _DOUBLINGS = 4, 5
# Thresholds of two tests, in standard errors. A model only counts as having seen the rows if its
# error is (1) more than _NEARER below the midpoint of the copies' errors on their own half and on
# the other half, and (2) more than _LESS below the smallest error that a model fitted to more rows
# could have. By chance alone, a model with its error at the midpoint passes test 1 with probability
# 3e-5, and a model with that smallest error passes test 2 with probability 1%.
_NEARER, _LESS = 4.0, 2.33
# Only models of these packages are copied and fitted, because their ``fit`` does nothing else. The
# ``fit`` of other packages might take long, or call a service.
_PACKAGES = ("sklearn", "lightgbm", "xgboost", "catboost")


class _Errors(NamedTuple):
    """Mean errors: of the model, of copies on the other half, and of copies on their own half."""

    model: float
    other_half: float
    own_half: float


def check_unseen(estimator: WrapsEstimator, data: TrainingData) -> None:
    """Warn if the estimator inside was fitted to these rows before; raise if limits are certified.

    Nothing is checked if the estimator inside is not passed fitted, if the rows are in partitions,
    or if no copy can be fitted cheaply.
    """
    inner, is_certified = estimator._inner(), getattr(estimator, "certificate", None) is not None
    if not estimator._is_prefit or isinstance(data.X, PartitionedRows):
        return
    if not is_certified and is_unwanted(SeenRowsWarning):  # an outer fit makes the check
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
    """Prepare copies of a model and the halves of the rows for :func:`_compared`.

    Returns the mean errors if they show that the model has seen the rows. Returns None if they do
    not show it, or if no copy can be fitted. With ``is_numeric`` (regressors) errors are absolute
    differences. For classifiers they are squared errors of probabilities (Brier score), or wrong
    decisions.
    """
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

    with hidden(".*", Warning):  # fits to few rows may warn
        try:
            return _compared(inner, halves, units, weights, fitted_to, errors)
        except Exception:  # a copy may need more rows, or arguments of fit that are missing here
            return None


def _compared(
    inner: Any,
    halves: tuple[IntArray, IntArray],
    units: IntArray,  # the units of all rows
    weights: FloatArray,  # the weights of all rows
    fitted_to: Callable[[IntArray], Any],  # returns a copy
    errors: Callable[[Any, IntArray], FloatArray],  # returns the errors of a model on some rows
) -> _Errors | None:
    """Return mean errors if they show that the model has seen the rows, or None.

    A copy is fitted to each half. If the error of the model is below the middle of the copies'
    errors on the other half and on their own, the second question is whether the model was merely
    fitted to more rows.
    """
    of_model, of_other, of_own = [], [], []
    for half, other in (halves, halves[::-1]):
        copy = fitted_to(half)
        of_model.append(errors(inner, other))
        of_other.append(errors(copy, other))
        of_own.append(errors(copy, half))
        mean_of_own = np.average(of_own[-1], weights=weights[half])
        # This is twice the error of the model minus the middle of both errors of the copy. For most
        # models that have not seen the rows it is positive, so that one copy is enough.
        above_middle = 2 * of_model[-1] - of_other[-1] - mean_of_own
        if weights[other] @ above_middle >= 0:
            return None
    # The lists hold the rows of the second half first. ``of_own`` is reversed for the same order.
    order = np.concatenate(halves[::-1])
    total = weights[order].sum()
    people = np.unique(units[order], return_inverse=True)[1]

    def mean(column: FloatArray) -> float:
        return float(weights[order] @ column / total)

    def margin(column: FloatArray) -> float:
        """Return by how many standard errors a mean over people is below 0."""
        sums = np.bincount(people, weights[order] * (column - mean(column)))
        error = float(np.sqrt(sums @ sums) / total)
        return -mean(column) / max(error, TINY)

    on_model, on_other, on_own = map(np.concatenate, (of_model, of_other, of_own[::-1]))
    means = _Errors(mean(on_model), mean(on_other), mean(on_own))
    is_nearer = margin(on_model - (on_other + on_own) / 2) > _NEARER
    # A copy that learns little from few rows errs about equally on both halves. If the model is
    # better by more than twice their difference, this has another cause than having seen the rows.
    gain, gain_by_seeing = means.other_half - means.model, means.other_half - means.own_half
    if not is_nearer or gain > 2 * gain_by_seeing:
        return None
    of_part = []
    for half, other in (halves, halves[::-1]):
        size = len(half) // _PART
        parts = half[:size], half[size : 2 * size]
        of_part.append(np.mean([errors(fitted_to(part), other) for part in parts], axis=0))
    on_part = np.concatenate(of_part)
    # Let o and p be the mean errors on other rows of copies fitted to a half and to a part of it.
    # With _PART times the rows the error falls by the factor o / p. So the smallest error that more
    # rows explain is o (o / p)^steps. Its standard error needs it as a mean over rows, which the
    # terms linear in o and p give. Their derivatives are (steps + 1) fall^steps and
    # -steps fall^(steps + 1).
    steps = _DOUBLINGS / np.log2(_PART)
    fall = min(means.other_half / mean(on_part), 1.0)
    least = fall**steps * ((steps + 1) * on_other - steps * fall * on_part)
    least += fall**steps * means.other_half - mean(least)  # the mean differs if fall was cut to 1
    return means if margin(on_model - least) > _LESS else None


def _halves(units: IntArray, weights: FloatArray) -> tuple[IntArray, IntArray]:
    """Return two halves of at most ``_MOST_ROWS`` random rows, with each person in one of them.

    Rows of weight 0 are left out.
    """
    counted = np.flatnonzero(weights)
    place = np.random.RandomState(0).permutation(int(units.max()) + 1)[units[counted]]
    order = np.argsort(place, kind="stable")[:_MOST_ROWS]
    middle = np.searchsorted(place[order], place[order[order.size // 2]])
    return counted[order[:middle]], counted[order[middle:]]


def _cheap_copy(inner: Any) -> Any:
    """Return an unfitted copy with fixed seeds, or None if no cheap copy can be made.

    None can be made if the model, or a model inside it, is from none of the packages in
    :data:`_PACKAGES`, or if it cannot be cloned. The copy of a search is a copy of the model that
    it found, because a search fits many models. None is made if a search is further inside.
    """
    if isinstance(inner, FrozenEstimator):
        inner = inner.estimator
    inner = getattr(inner, "best_estimator_", inner)
    try:
        copy = clone(inner)
    except (TypeError, RuntimeError):  # no get_params, or an __init__ that changes parameters
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
