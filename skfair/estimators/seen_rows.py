"""A check whether a model that was passed fitted has seen the rows of this fit.

The post-processing estimators call :func:`check_unseen` in ``fit``. It warns, or raises if limits
are to be certified. A fitted model is passed with ``cv="prefit"``, as a ``FrozenEstimator``, or
with a ``FrozenEstimator`` somewhere inside, for example in a pipeline or a calibrator.

Limits should be set on scores of rows that a model has not seen. Scores of its own training rows
show how well it remembers them. Limits that are set on these do not hold for new people, and
nothing can be certified. The check fits a copy of the model to each half of the rows, and measures
its errors on the other half and on its own half. A model that has not seen the rows errs about as
often as a copy does on the other half. A model that has seen them errs about as often as a copy
does on its own half.

A fitted model inside another estimator is compared with copies of itself, on the rows that the
outer estimator passes on to it. The errors of the outer estimator would say little: a calibrator
that is fitted to scores of seen rows, for example, errs much less than any copy of it.

A model that was fitted to many more rows may also err less than the copies. A bound on this effect
follows from the fall of the errors when copies are fitted to four times as many rows.

Copies of a linear model of many rows err nearly as much on their own half as on the other one. So
the check does not find that such a model has seen the rows. This does little harm, because limits
on its training rows hold for new people nearly as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import wraps
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, has_fit_parameter

from skfair._typing import FloatArray, IntArray, MatrixLike
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


class _Rows(NamedTuple):
    """Rows that a fitted model may have seen."""

    X: Any
    y: NDArray[Any]  # the targets of this model
    sample_weight: FloatArray | None
    units: IntArray  # the number of the person of each row

    def taken(self, rows: IntArray) -> _Rows:
        """Return some of the rows."""
        weights = None if self.sample_weight is None else self.sample_weight[rows]
        return _Rows(_safe_indexing(self.X, rows), self.y[rows], weights, self.units[rows])

    @property
    def weights(self) -> FloatArray:
        return np.ones(self.y.size) if self.sample_weight is None else self.sample_weight


def check_unseen(estimator: WrapsEstimator, data: TrainingData) -> None:
    """Warn if a fitted model inside has seen these rows before; raise if limits are certified.

    Nothing is checked if no model inside is passed fitted, if the rows are in partitions, or if no
    copy can be fitted cheaply.
    """
    inner, rows = estimator._inner(), data.passed or data
    if estimator._is_prefit:
        check_fitted(inner)
        inner = inner if isinstance(inner, FrozenEstimator) else FrozenEstimator(inner)
    if not isinstance(data.X, PartitionedRows):
        _check(estimator, inner, rows.X, np.asarray(rows.y), rows)


def check_unseen_groups(estimator: Any, data: TrainingData, target: IntArray) -> None:
    """Make the same check for ``group_estimator``, whose targets are groups, or pairs with classes.

    Nothing is checked if groups are probabilities.
    """
    if data.passed is None:
        known = data.groups.known(np.arange(target.size))
        X = _safe_indexing(data.X, known)
        place = " of group_estimator"
        _check(estimator, estimator.group_estimator, X, target[known], data, known, place)


def _check(
    estimator: Any,  # the outer estimator
    inner: Any,  # the estimator inside, frozen if it is passed fitted
    X: MatrixLike,
    y: NDArray[Any],
    data: TrainingData | PassedRows,  # weights and units of all rows
    which: IntArray | slice = slice(None),  # which of them are the rows X
    place: str = "",  # follows the name of a fitted model
) -> None:
    """Warn, or raise with a certificate, if a fitted model in ``inner`` has seen the rows."""
    is_certified = getattr(estimator, "certificate", None) is not None
    if not is_certified and is_unwanted(SeenRowsWarning):  # an outer fit makes the check
        return
    weights = None if data.sample_weight is None else data.sample_weight[which]
    units = np.arange(y.size) if data.units is None else data.units.codes[which]
    for model, rows in _fitted_models(inner, _Rows(X, y, weights, units)):
        if (means := _errors_if_seen(model, rows)) is not None:
            break
    else:
        return
    outer = _thawed(inner)
    place = place or ("" if model is outer else f" inside {type(outer).__name__}")
    seen = (
        f"The fitted {type(model).__name__}{place} seems to have been fitted to these rows before: "
        f"its mean error on them is {means.model:.2g}, like that of copies on the rows that they "
        f"are fitted to ({means.own_half:.2g}), and not like that on other rows "
        f"({means.other_half:.2g})."
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


class _Listening(FrozenEstimator):
    """A fitted model that keeps the rows it is asked about, and the targets that it is passed.

    Copies of the estimator around it keep this very object, as they do with a FrozenEstimator.
    """

    def __init__(self, estimator: Any) -> None:
        super().__init__(estimator)
        self.heard: dict[str, Any] = {}

    def fit(self, X: Any, y: Any = None, *args: Any, **kwargs: Any) -> _Listening:
        self.heard["y"] = y
        return self

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name not in ("predict", "predict_proba", "decision_function", "transform"):
            return found

        @wraps(found)
        def listened(X: Any, *args: Any, **kwargs: Any) -> Any:
            self.heard["X"] = X
            return found(X, *args, **kwargs)

        return listened


def _fitted_models(
    outer: Any, rows: _Rows, *, is_fitted: bool = False
) -> Iterator[tuple[Any, _Rows]]:
    """Yield the fitted models in an estimator, each with the rows and the targets that reach it.

    At most ``_MOST_ROWS`` rows are used. A copy of the estimator has listening models in place of
    the fitted ones. The copy is fitted to the rows, unless the estimator ``is_fitted`` itself, and
    asked about them. Models inside the yielded ones follow.
    """
    listening = {id(part): _Listening(part) for part in _parts(outer)}
    if not listening:
        return
    rows = rows.taken(np.sort(np.concatenate(_halves(rows.units, rows.weights))))
    found = []
    try:
        with hidden(".*", Warning), parallel_config("sequential"):  # all in this process
            copy = deepcopy(outer if is_fitted else _with_fixed_seeds(clone(outer)), {**listening})
            if not is_fitted:
                copy.fit(rows.X, rows.y)
            getattr(copy, "predict_proba" if hasattr(copy, "predict_proba") else "predict")(rows.X)
        for part in listening.values():
            model, X = _thawed(part.estimator), part.heard.get("X")
            if hasattr(model, "predict") and X is not None and _num_samples(X) == rows.y.size:
                y = _targets_of(model, rows.y, part.heard.get("y"))
                found.append((model, rows._replace(X=X, y=y)))
    except Exception:  # a fit may need arguments that are missing here
        return
    for model, own in found:
        yield model, own
        yield from _fitted_models(model, own, is_fitted=True)


def _parts(outer: Any, *, is_prefit: bool = False) -> Iterator[Any]:
    """Yield the models in an estimator, or in a container, that it does not fit again.

    They are frozen estimators, and what an estimator with ``cv="prefit"`` (``is_prefit``) has
    inside. Models inside them are not yielded.
    """
    if isinstance(outer, FrozenEstimator) or (is_prefit and hasattr(outer, "predict")):
        yield outer
    elif isinstance(outer, list | tuple | dict):
        for value in outer.values() if isinstance(outer, dict) else outer:
            yield from _parts(value, is_prefit=is_prefit)
    elif hasattr(outer, "get_params") and not isinstance(outer, type):
        params = outer.get_params(deep=False)
        cv = params.get("cv")
        for value in params.values():
            yield from _parts(value, is_prefit=isinstance(cv, str) and cv == "prefit")


def _targets_of(model: Any, y: NDArray[Any], passed: Any) -> NDArray[Any]:
    """Return ``y`` in the form in which the model predicts it.

    Estimators around a regressor may transform its targets. ``passed`` are the targets that its
    ``fit`` got from them, or None. Estimators around a classifier may number the classes.
    """
    levels, codes = np.unique(y, return_inverse=True)
    classes = getattr(model, "classes_", None)
    if classes is None:
        y = y if np.shape(passed) != y.shape else np.asarray(passed)
        return y if y.dtype.kind in "biuf" else codes
    if len(classes) == levels.size and not np.isin(levels, classes).all():
        return np.asarray(classes)[codes]
    return y


def _thawed(model: Any) -> Any:
    """Return the model in a frozen estimator, and any other model unchanged."""
    return model.estimator if isinstance(model, FrozenEstimator) else model


def _errors_if_seen(inner: Any, rows: _Rows) -> _Errors | None:
    """Prepare copies of a model and the halves of the rows for :func:`_compared`.

    Returns the mean errors if they show that the model has seen the rows. Returns None if they do
    not show it, or if no copy can be fitted. Errors of regressors are absolute differences. Errors
    of classifiers are squared errors of probabilities (Brier score), or wrong decisions.
    """
    unfitted = _cheap_copy(inner)
    if unfitted is None:
        return None
    y, weights, units = rows.y, rows.weights, rows.units
    takes_weights = rows.sample_weight is not None and has_fit_parameter(unfitted, "sample_weight")
    halves = _halves(units, weights)
    if min(map(len, halves)) < _FEWEST_ROWS // 2:
        return None
    classes = np.unique(y) if hasattr(inner, "classes_") else None

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
    inner = getattr(inner, "best_estimator_", inner)
    try:
        copy = clone(inner)
    except (TypeError, RuntimeError):  # no get_params, or an __init__ that changes parameters
        return None
    while frozen := {k: v for k, v in copy.get_params().items() if isinstance(v, FrozenEstimator)}:
        copy.set_params(**{name: clone(value.estimator) for name, value in frozen.items()})
    _with_fixed_seeds(copy)
    parts = [copy, *copy.get_params().values()]
    models = [part for part in parts if hasattr(type(part), "fit") and hasattr(part, "predict")]
    is_known = all(type(part).fit.__module__.split(".")[0] in _PACKAGES for part in models)
    return copy if is_known and not any(isinstance(part, BaseSearchCV) for part in parts) else None


def _with_fixed_seeds(copy: Any) -> Any:
    """Set each ``random_state`` of an unfitted copy to 0, and return it."""
    seeds = [name for name in copy.get_params() if name.split("__")[-1] == "random_state"]
    return copy.set_params(**dict.fromkeys(seeds, 0)) if seeds else copy
