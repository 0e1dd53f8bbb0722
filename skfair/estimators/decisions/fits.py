"""The models of FairDecisionClassifier on folds: of the classes, and of the groups if needed.

``FairDecisionClassifier.fit`` calls :func:`read_folds` and then :func:`fit_classes`. The search or
certificate that follows works on out-of-fold probabilities. It calls ``ClassFits.fit_groups`` only
if decisions must not use the groups and the limits bind, because models of the groups cost time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from skfair._typing import ColumnLike, FloatArray, IntArray, MatrixLike
from skfair.estimators.decisions.bind import DecisionProblem, LabelledRows
from skfair.estimators.group_probabilities import GroupFits, fit_groups
from skfair.estimators.wrapped_estimator import FitsOnFolds, values_unseen
from skfair.estimators.wrapped_scores import (
    FEW_ROWS,
    FEWEST_DEALT,
    FOLDS,
    FOLDS_OF_FEW,
    Split,
    chances_of,
    change_by_another_deal,
    check_prefit,
    fewest_to_fit,
    known_folds,
    make_splits,
    own_and_chances_of,
    with_probabilities,
)
from skfair.groups.row_units import n_people
from skfair.groups.training_data import PassedRows, TrainingData


@dataclass(frozen=True, eq=False)
class ClassFits:
    """Models of the classes, their out-of-fold answers for the training rows, and the folds."""

    models: list[Any]  # of which new rows get the mean: those of the folds, or a single one
    own: IntArray  # (n_samples,): number of the class that the model itself predicts, out-of-fold
    chances: FloatArray  # (n_samples, n_classes): out-of-fold probabilities
    splits: Callable[[], list[Split]]  # makes the folds of these rows; not called for fitted models
    # Fits models of the groups on the same folds, given probabilities of the classes
    fit_groups: Callable[[FloatArray], GroupFits]
    # Returns probabilities of the classes as another deal of the folds might give them; None if
    # there are too few folds to tell
    other_chances: Callable[[], FloatArray | None]


def read_folds(
    cv: Any,
    X: MatrixLike,  # X as it was passed
    data: TrainingData,
    units: ColumnLike | None,
    problem: DecisionProblem,
    key: int,  # key of the hash that deals rows to folds
) -> Any:
    """Return ``cv``, or its default, as a number of folds, a splitter, or a list of splits.

    For a certificate the result is a list, also if the model is fitted already. Raises if the folds
    cannot judge each other.
    """
    rows, certificate = problem.rows, problem.spec.certificate
    if not isinstance(cv, str):
        cv = known_folds(cv, X, (data.passed or data).y, rows.groups, units)
    elif certificate is not None and n_people(rows.codes.size, data.units) < FEW_ROWS:
        cv = int(np.clip(np.bincount(rows.codes).min(), FOLDS, FOLDS_OF_FEW))
    else:
        cv = FOLDS
    if not problem.is_certified:
        return cv
    kinds = rows.groups.cells(rows.codes, rows.classes.size).codes
    splits = make_splits(cv, data, kinds, key=key)
    if sum(test.size for _, test in splits) > rows.codes.size:
        raise ValueError(
            "With certificate= each row must be in one test part of cv, not in several."
        )
    if len(splits) < 3:
        raise ValueError(
            f"certificate= needs 3 folds or more, got cv={cv!r}: with two, models of half of "
            "the rows are tested, and their mean, which predicts, differs too much from them."
        )
    return splits


def fit_classes(
    estimator: FitsOnFolds,
    data: TrainingData,
    rows: LabelledRows,
    params: dict[str, Any],  # arguments of the fit inside, by row
    folds: Any,  # result of read_folds
    key: int,  # key of the hash that deals rows to folds
) -> ClassFits:
    """Fit the models of the classes on folds, or take the fitted one."""
    # If groups are given as probabilities, ``data`` has a copy of a row for each group. Models are
    # fitted to the rows as passed, and their predictions are repeated for the copies below.
    passed, inner = data.passed, estimator._inner()
    once: TrainingData | PassedRows = passed or data
    kinds = rows.groups.cells(rows.codes, rows.classes.size).codes
    kinds = kinds if passed is None else rows.codes[passed.first]
    splits = cache(partial(make_splits, folds, once, kinds, key=key))
    if estimator._is_prefit:
        inner = check_prefit(inner)
    else:
        needed = 1 if hasattr(inner, "predict_proba") else 2  # calibration has folds of its own
        inner = with_probabilities(inner, fewest_to_fit(once.y, splits(), needed))
    is_calibrated = not hasattr(estimator._inner(), "predict_proba")
    read = partial(own_and_chances_of, classes=rows.classes, is_calibrated=is_calibrated)
    found = values_unseen(estimator, inner, read, once.X, once.y, params, splits)
    models, answers = found.of_folds, found.values
    own, chances = answers[:, 0].astype(np.int64), np.ascontiguousarray(answers[:, 1:])
    spread = splits
    if passed is not None:
        own, chances = own[passed.owners], chances[passed.owners]
        spread = cache(lambda: passed.spread(splits()))

    def group_models(chances: FloatArray) -> GroupFits:
        return fit_groups(estimator, found.models, data, rows.codes, chances, spread())

    def other_chances() -> FloatArray | None:
        if len(models) == 1:  # passed fitted
            return chances
        if len(models) < FEWEST_DEALT:
            return None
        read_chances = partial(chances_of, classes=rows.classes)
        changes = change_by_another_deal(models, once.X, splits(), read_chances)
        return np.clip(chances + (changes if passed is None else changes[passed.owners]), 0.0, 1.0)

    return ClassFits(found.serving, own, chances, spread, group_models, other_chances)
