"""Folds, and scores and probabilities of estimators that are wrapped by post-processing ones.

FairDecisionClassifier, FairDecisionRegressor and PartialParityCalibrator use these functions:

- *Folds.* :func:`kept_folds` and :func:`known_folds` read ``cv=``, :func:`make_splits` returns the
  pairs (train, test) of row numbers.
- *Models.* :func:`with_probabilities`, :func:`check_fitted` and :func:`check_prefit` check or
  complete an estimator, :func:`fitted` fits a clone on some rows, and :func:`cross_fitted` fits
  one for each fold and reads it on the rows that it was not fitted on.
- *Values.* :func:`scores_of`, :func:`chances_of` and :func:`own_and_chances_of` read one model on
  rows, :func:`mean_chances` and :func:`mean_over` average over the models of folds.
- *New rows.* :func:`as_rows` and :func:`groups_of_new_rows` are for predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logit
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, assert_all_finite
from sklearn.utils.parallel import Parallel
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_array,
    check_is_fitted,
)

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray, MatrixLike
from skfair.base import SensitiveFeaturesMixin
from skfair.estimators.kept_models import fitted_once, read_once
from skfair.groups.encoding import GroupEncoding
from skfair.groups.foreign_tables import native_table
from skfair.groups.row_units import n_people
from skfair.groups.training_data import PassedRows, TrainingData
from skfair.read import read_groups
from skfair.utils.factorize import factorize
from skfair.utils.response import get_response
from skfair.utils.rounding import TINY
from skfair.utils.row_hash import deal_draws
from skfair.utils.text import plural
from skfair.utils.validation import one_dimensional
from skfair.utils.warn import unwanted

Split = tuple[IntArray, IntArray]  # numbers of the rows to fit on, and of the rows to score

# Numbers of folds for cv="auto". Certificates of fewer than FEW_ROWS rows have FOLDS_OF_FEW folds.
# They take more time, but models then see more of the rows, and the test counts more of them.
FOLDS, FOLDS_OF_FEW, FEW_ROWS = 5, 10, 3000
# Classifiers of scikit-learn whose ``predict`` is the class of the largest ``predict_proba``.
_LIKELIEST = (
    "HistGradientBoostingClassifier",
    "RandomForestClassifier",
    "ExtraTreesClassifier",
)
# The methods that are tried for each ``response_method``. The first one that exists is used.
RESPONSES = {
    "auto": ("decision_function", "predict_proba"),
    "decision_function": ("decision_function",),
    "predict_proba": ("predict_proba",),
}


def as_rows(X: MatrixLike) -> Any:
    """Return frames, sparse matrices, texts and dicts unchanged, anything else as an array."""
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "fiub":
        return X
    X = native_table(X)
    if hasattr(X, "columns") or sparse.issparse(X):
        return X
    if isinstance(X, list | tuple) or getattr(X, "ndim", None) == 1:
        rows: Any = getattr(X, "iloc", X)
        if any(isinstance(row, str | Mapping) for row in rows[:1]):  # rows for vectorizers
            return X
    with config_context(array_api_dispatch=False):  # tensors are converted, as in every fit
        return check_array(X, dtype=None, ensure_all_finite=False, allow_nd=True)


def scores_of(
    estimator: Any, X: MatrixLike, response_method: str, pos_label: ClassLabel
) -> FloatArray:
    """Return the scores of the class ``pos_label``; probabilities become log-odds."""
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
    silent: tuple[type[Warning], ...] = (),  # warnings of this package that are not given
) -> Any:
    """Return a clone of the estimator fitted on some rows (all if None)."""
    if rows is not None:
        whole, X, y = X, _safe_indexing(X, rows), _safe_indexing(y, rows)
        row_params = _check_method_params(whole, row_params, rows)
    with unwanted(*silent):
        return clone(estimator).fit(X, y, **row_params)


def kept_folds(cv: Any) -> Any:
    """Return ``cv``, with an iterator turned into a list, which can be read more than once."""
    return list(cv) if isinstance(cv, Iterator) else cv


def known_folds(
    cv: Any, X: MatrixLike, y: ColumnLike, sensitive: GroupEncoding, units: ColumnLike | None
) -> Any:
    """Return ``cv`` for :func:`make_splits`; splitters that read groups or units are run here.

    - A number is returned unchanged, because :func:`make_splits` keeps units whole. None and lists
      are returned unchanged, too.
    - A string ("auto" or "prefit") becomes the default number. Models around a fitted one, such as
      models of groups, still need folds.
    - With units, a splitter of scikit-learn gets them as its ``groups``, and must keep them whole.
    - A splitter of :mod:`skfair.model_selection` gets the sensitive groups of the fit, or reads its
      own columns of X, the rows as passed.
    """
    cv = FOLDS if isinstance(cv, str) else cv
    takes_groups = hasattr(cv, "split") and "sensitive_features" in signature(cv.split).parameters
    is_number = isinstance(cv, int | np.integer) and not isinstance(cv, bool)
    if units is not None and not is_number:
        if takes_groups or not hasattr(cv, "split") or isinstance(cv, type):
            raise ValueError(
                f"units= says which rows belong together, and cv={cv!r} does not ask for that. "
                "Pass a number of folds, or a splitter such as cv=GroupKFold(5)."
            )
        splits = list(cv.split(X, y, units))
        codes = factorize(one_dimensional(units, "units", _num_samples(X))).codes
        if any(np.isin(codes[train], codes[test]).any() for train, test in splits):
            raise ValueError(
                f"cv={cv!r} puts rows of the same units= into several folds. Pass a number of "
                "folds, or a splitter such as cv=GroupKFold(5)."
            )
        return splits
    if not takes_groups or isinstance(cv, type):  # make_splits raises for a class
        return cv
    reads_columns = getattr(cv, "sensitive", None) is not None
    if sensitive.people is not None and not reads_columns:
        raise ValueError(
            f"cv={cv!r} splits by group, but sensitive_features are probabilities. Pass a number "
            "of folds, or a splitter of scikit-learn."
        )
    names = None if reads_columns else np.transpose(sensitive.codes).astype(str)
    return list(cv.split(X, y, sensitive_features=names))


def refuse_folds_of_rows(cv: Any, units: ColumnLike | None, reason: str) -> None:
    """Raise if the user sets which rows are in which fold and this is not used.

    ``reason`` completes "not read here, because".
    """
    if units is not None:
        raise ValueError(
            f"units= is not read here, because {reason}. Leave it out, or where metadata routing "
            "passes it on, call set_fit_request(units=False)."
        )
    if isinstance(cv, Iterable):
        raise ValueError(
            f"cv= got row numbers, which are not read here, because {reason}. Pass a number of "
            "folds or a splitter."
        )


class CrossFits(NamedTuple):
    """Models of folds, their values for the rows that they were not fitted to, and what serves."""

    of_folds: list[Any]  # one for each fold; a single one if it was passed fitted
    values: FloatArray  # for each row the value of the model that was not fitted to it
    # The models of which new rows get the mean: those of the folds, or one of all rows
    serving: list[Any]

    @property
    def models(self) -> list[Any]:
        """The models of the folds, and then those that serve."""
        return self.of_folds + self.serving


def cross_fitted(
    fits: Iterable[Any],  # one for each fold, and perhaps one of all rows, as ``delayed`` calls
    X: MatrixLike,
    splits: Sequence[tuple[IntArray, IntArray]],
    read: Callable[[Any, MatrixLike], FloatArray],
    n_jobs: int | None,
) -> CrossFits:
    """Fit the models of the folds, and read each on the rows of its fold."""
    models, values = _held_out(fits, X, splits, read, n_jobs)
    of_folds = models[: len(splits)]
    return CrossFits(of_folds, values, models[len(splits) :] or of_folds)


@fitted_once
def _held_out(
    fits: Iterable[Any],
    X: MatrixLike,
    splits: Sequence[tuple[IntArray, IntArray]],
    read: Callable[[Any, MatrixLike], FloatArray],
    n_jobs: int | None,
) -> tuple[list[Any], FloatArray]:
    """Return all models, and for each row the value of its fold's model."""
    models = list(Parallel(n_jobs=n_jobs)(fits))
    parts = [
        read(model, _safe_indexing(X, test))
        for model, (_, test) in zip(models, splits, strict=False)
    ]
    values = np.zeros((_num_samples(X), *parts[0].shape[1:]))
    for part, (_, test) in zip(parts, splits, strict=True):
        values[test] = part
    return models, values


# Three models are needed, because two of them have to have seen a row.
FEWEST_DEALT = 3


def change_by_another_deal(
    models: Sequence[Any],  # one for each fold
    X: MatrixLike,
    splits: Sequence[tuple[IntArray, IntArray]],
    read: Callable[[Any, MatrixLike], FloatArray],
) -> FloatArray:
    """Return about how out-of-fold values might change if rows were dealt to folds anew.

    The value of a row would then come from a model of other rows. It would differ from the present
    one about as much as two models of other folds, which have both seen the row, differ from each
    other. With fewer than FEWEST_DEALT models that is not known, and the changes are 0.
    """
    tests, n = [test for _, test in splits], len(models)
    one = other = np.zeros(0)
    for k, model in enumerate(models):
        # The model is the next one for the rows of the fold before it, and the one after the next
        # for those of the fold before that. It is asked once, because few rows take little time.
        before, earlier = (
            tests[(k - step) % n] for step in ((1, 2) if n >= FEWEST_DEALT else (0, 0))
        )
        values = read(model, _safe_indexing(X, np.concatenate([before, earlier])))
        if not one.size:
            one, other = np.zeros((2, _num_samples(X), *values.shape[1:]))
        one[before], other[earlier] = values[: before.size], values[before.size :]
    return one - other


def groups_of_new_rows(
    estimator: SensitiveFeaturesMixin,  # fitted, with ``is_group_aware_``
    X: MatrixLike,
    sensitive_features: ColumnsLike | None,
) -> IntArray | None:
    """Return the groups of new rows (n_attributes, n_samples), None if they are not used.

    A group-aware estimator needs them, and raises if they are missing. It does so even if all
    groups have equal thresholds in this fit, because the next fit may differ. With a single group
    they may be missing. Groups that were not seen in ``fit`` get -1 if ``unseen`` is "overall", and
    otherwise raise.
    """
    if not estimator.is_group_aware_:
        return None
    may_be_unseen = getattr(estimator, "unseen", "error") == "overall"
    codes = read_groups(estimator, X, sensitive_features, allow_unseen=may_be_unseen)
    if codes is None and estimator._group_levels.n_groups > 1:
        raise ValueError(
            f"This {type(estimator).__name__} is group-aware: pass the groups of the rows, "
            "predict(X, sensitive_features=...), or name their columns of X in sensitive. "
            "scikit-learn's own scorers need these names; those of skfair.metrics pass the groups "
            "on. Inside a Pipeline, metadata routing must be enabled."
        )
    return codes


def with_probabilities(estimator: Any, n_fewest: int = 3) -> Any:
    """Return the estimator, or a calibrated one if it has scores but no probabilities.

    ``n_fewest`` is the number of rows of the smallest class in a fit, which limits the number of
    folds of the calibration.
    """
    if hasattr(estimator, "predict_proba"):
        return estimator
    if hasattr(estimator, "decision_function"):
        folds = StratifiedKFold(int(np.clip(n_fewest, 2, 3)), shuffle=True, random_state=0)
        return CalibratedClassifierCV(estimator, cv=folds)
    raise TypeError(
        f"The estimator {type(estimator).__name__} has neither predict_proba nor "
        "decision_function. Decisions need probabilities: use a classifier that estimates them."
    )


def check_fitted(estimator: Any) -> str:
    """Return the name of an estimator that is passed fitted; raise if it is not."""
    inside = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    name = type(inside).__name__
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
    """Return the classifier; raise if it is not fitted or has no probabilities."""
    name = check_fitted(estimator)
    if hasattr(estimator, "decision_function") and not hasattr(estimator, "predict_proba"):
        raise TypeError(
            f"The fitted {name} has no predict_proba. Calibrate it on rows that it has not seen, "
            "CalibratedClassifierCV(FrozenEstimator(estimator)).fit(X, y), and pass the result; or "
            "pass a number of folds as cv."
        )
    return with_probabilities(estimator)


def chances_of(model: BaseEstimator, X: MatrixLike, classes: NDArray[Any]) -> FloatArray:
    """Return the probabilities (n_samples, n_classes) of ``classes``, in their order.

    Each row adds up to 1. A class that was missing in the model's fold has the probability 0.
    """
    while type(model) is FrozenEstimator:  # its attributes are those of the one inside, but slower
        model = model.estimator
    predicted = np.asarray(model.predict_proba(X), dtype=np.float64)
    # A product is much faster than a sum over a short axis. It is finite only if all terms are.
    total = predicted @ np.ones(predicted.shape[1])
    # NaN is neither at least 0 nor below inf.
    if not (predicted.min(initial=0.0) >= 0 and total.max(initial=0.0) < np.inf):
        raise ValueError(
            f"{type(model).__name__}.predict_proba returned values that are no probabilities."
        )
    if np.array_equal(model.classes_, classes) and total.all():
        return np.asarray(predicted / total[:, None])
    place = _places(model, classes)
    chances = np.zeros((predicted.shape[0], classes.size))
    chances[:, place] = predicted / np.where(total > 0, total, 1.0)[:, None]
    chances[total == 0] = 1.0 / classes.size
    return chances


def _places(model: BaseEstimator, classes: NDArray[Any]) -> IntArray:
    """Return the number among ``classes`` of each class of a model; raise for other classes."""
    order = np.argsort(classes)
    place = np.searchsorted(classes, model.classes_, sorter=order)
    place = order[np.minimum(place, classes.size - 1)]
    if not np.array_equal(classes[place], model.classes_):
        raise ValueError(
            f"{type(model).__name__} was fitted for the classes {model.classes_.tolist()}, but y "
            f"has {classes.tolist()}. Pass y with the labels of the model, or fit the model again."
        )
    return np.asarray(place)


def own_and_chances_of(
    model: BaseEstimator,
    X: MatrixLike,
    classes: NDArray[Any],
    *,
    is_calibrated: bool,  # whether with_probabilities computes the probabilities from scores
) -> FloatArray:
    """Return the number of the class that a model predicts by itself, and the probabilities.

    The number is the first column. A model without probabilities of its own predicts by its scores,
    and not by the probabilities that the calibration makes of them. A model that is known to
    predict the most likely class is not asked twice, which takes a sixth of the time of a fit of
    boosted trees.
    """
    chances, place = chances_of(model, X, classes), _places(model, classes)
    if is_calibrated:
        inside = [calibrated.estimator for calibrated in model.calibrated_classifiers_]
        scores = mean_over(inside, lambda own: np.asarray(own.decision_function(X), np.float64))
        codes = place[(scores > 0).astype(np.int64) if scores.ndim == 1 else scores.argmax(axis=1)]
    elif _predicts_the_likeliest(model):  # the first class of the model wins a tie
        codes = place[chances[:, place].argmax(axis=1)]
    elif hasattr(model, "predict"):
        codes = place[np.searchsorted(model.classes_, model.predict(X))]
    else:
        codes = chances.argmax(axis=1)
    return np.column_stack([codes, chances])


def _predicts_the_likeliest(model: Any) -> bool:
    """Whether ``predict`` of a model, or of the last step of a pipeline, is a likeliest class."""
    last = type(model.steps[-1][1] if type(model) is Pipeline else model)
    return last.__name__ in _LIKELIEST and last.__module__.startswith("sklearn.ensemble.")


@read_once
def mean_chances(models: Sequence[Any], X: MatrixLike, classes: NDArray[Any]) -> FloatArray:
    """Return the mean of the probabilities of several models, (n_samples, n_classes)."""
    return mean_over(models, partial(chances_of, X=X, classes=classes))


def mean_over(models: Sequence[Any], read: Callable[[Any], FloatArray]) -> FloatArray:
    """Return the mean of ``read(model)`` over several models, adding up one at a time."""
    return reduce(np.add, map(read, models)) / len(models)


def make_splits(
    cv: Any,
    rows: TrainingData | PassedRows,
    kinds: IntArray,  # (n_samples,): a number for each row, such as its group and class
    *,
    key: int = 0,  # key of the hash; other keys give other folds
    is_numeric: bool = False,  # whether targets are numbers, not classes
) -> list[Split]:
    """Return the pairs (train, test) of a ``cv`` that :func:`known_folds` has read.

    If ``cv`` is a number, the rows are sorted by class and kind, and within a kind by a hash of the
    row. Then they are dealt to the folds in turn, like cards. So every class and kind is spread
    evenly, and the folds do not depend on the order of the table, or the order and units of its
    columns. This matters because folds cut out of a sorted table would make their models
    extrapolate, and because nobody should get another decision for such a reason. Targets that are
    numbers are sorted by size within a kind. Of the rows of one unit (person) a typical row is
    dealt, and the others get the same fold.

    Other values of ``cv`` are used unchanged, but every row must be in a test part, and in no
    training part of the same pair.
    """
    y, units = rows.y, rows.units
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        n = len(y)
        dealt = n if units is None else n_people(n, units)
        if not 2 <= cv <= dealt:
            got = f"n_samples={n}."
            if units is not None:
                got = (
                    f"{dealt} different values of units, which name the person of each row. "
                    "Sensitive attributes are passed as sensitive_features=."
                )
            raise ValueError(f"cv={cv} folds need at least 2 folds and one row in each, got {got}")
        draws, levels = deal_draws(rows.X, key), np.unique(y, return_inverse=True)[1]
        alike = np.zeros(n) if rows.sample_weight is None else rows.sample_weight

        def least(codes: IntArray) -> FloatArray:
            """Return for each row the smallest hash of its code, a sort key without names."""
            of_code = np.full(n, np.inf)
            np.minimum.at(of_code, codes, draws)
            return of_code[codes]

        if units is not None:
            typical = units.typical_rows(kinds, alike, levels, kinds, draws)
            kinds, levels = kinds[typical], levels[typical]
            alike, draws = alike[typical], draws[typical]
        # lexsort sorts by the last key first. Weights (``alike``) only order rows that are equal in
        # all other keys.
        by_kind = kinds, least(kinds)
        keys = (levels, *by_kind) if is_numeric else (*by_kind, levels, least(levels))
        fold = np.empty(dealt, np.int64)
        fold[np.lexsort((alike, draws, *keys))] = np.arange(dealt) % cv
        fold = fold if units is None else units.of_whole(fold, typical)
        return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(cv)]
    try:
        splits = list(check_cv(cv, y, classifier=True).split(rows.X, y))
    except TypeError as error:
        raise TypeError(
            "cv must be a number of folds, a splitter, or pairs of row numbers (train, test). "
            f"Got {cv!r}."
        ) from error
    numbers, is_scored = np.arange(len(y)), np.zeros(len(y), bool)
    splits = [(numbers[train], numbers[test]) for train, test in splits]  # parts may be masks
    for k, (train, test) in enumerate(splits):
        if n_seen := np.count_nonzero(np.isin(test, train)):
            raise ValueError(
                f"cv has rows in the training part and in the test part of the same fold: {n_seen} "
                f"of the {test.size} test rows of fold {k}. A model would score rows that it was "
                "fitted to. Pass pairs (train, test) without common rows, such as "
                "list(StratifiedKFold(5, shuffle=True).split(X, y)), or cv=5."
            )
        is_scored[test] = True
    if not is_scored.all():
        raise ValueError("cv leaves rows without a score: every row must be in one test part.")
    return splits


def fewest_to_fit(y: NDArray[Any], splits: Sequence[Split], needed: int = 1) -> int:
    """Return the smallest number of rows of a class in the fit of a fold; raise below ``needed``.

    A class that is missing in a fold is no error if the fold has at least two others.
    """
    classes, codes = np.unique(y, return_inverse=True)
    sizes = np.array([np.bincount(codes[train], minlength=classes.size) for train, _ in splits])
    # A class that is missing in a fold gets the probability 0 there, if others are left.
    has_others = np.count_nonzero(sizes, axis=1, keepdims=True) > 1
    for fold, k in np.argwhere((sizes < needed) & ~(has_others & (sizes == 0)))[:1]:
        raise ValueError(
            f"y has {plural(int(np.sum(codes == k)), 'row')} of class {classes[k]!s}; the model of "
            f"a fold would see {sizes[fold, k]} of them, but needs {needed}. Add or merge rows of "
            "this class, or pass a cv that spreads it, such as StratifiedKFold(5, shuffle=True)."
        )
    return int(sizes[sizes > 0].min())
