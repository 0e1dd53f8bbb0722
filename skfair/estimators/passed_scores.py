"""The model behind decisions about scores that another system has computed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from skfair._typing import FloatArray
from skfair.groups.cohort import Cohort, kinds_of
from skfair.utils.factorize import in_order
from skfair.utils.text import listed
from skfair.utils.validation import check_labels, check_scores


class PassedScores(ClassifierMixin, BaseEstimator):
    """A classifier whose only feature is the probability of one of its two classes."""

    def __init__(self, classes: Any = (0, 1), positive: int = 1) -> None:
        self.classes = classes
        self.positive = positive  # the place of this class

    @property
    def classes_(self) -> NDArray[Any]:
        """The two classes."""
        return np.asarray(self.classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> Self:
        """Do nothing, since there is nothing to learn."""
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probabilities of both classes."""
        score = probabilities(np.asarray(X, dtype=np.float64).reshape(len(X), -1)[:, 0])
        both = [1 - score, score] if self.positive else [score, 1 - score]
        return np.column_stack(both)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the more probable class."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def probabilities(scores: Any) -> FloatArray:
    """Return scores as an array; raise unless they are probabilities."""
    checked = check_scores(scores, "y_score")
    if checked.min(initial=0.0) < 0 or checked.max(initial=0.0) > 1:
        raise ValueError(
            f"y_score must have probabilities of the positive class, from 0 to 1, got numbers from "
            f"{checked.min():.4g} to {checked.max():.4g}. Calibrate them first."
        )
    return checked


def rows_of_scores(people: Cohort) -> tuple[Any, Any, dict[str, Any]]:
    """Return the model of the scores of a cohort, and the arguments of its fit."""
    import pandas as pd

    if people.y_score is None or people.y_true is None:
        raise ValueError(
            "Thresholds are chosen for scores (y_score) and outcomes (y_true), and the cohort "
            "lacks one of them."
        )
    scores, kinds = probabilities(people.y_score), kinds_of(people)
    name = getattr(people.y_score, "name", None) if kinds is None else kinds.table.y_score
    levels = in_order(check_labels(people.y_true, "y_true").levels)
    if len(levels) != 2:
        raise ValueError(
            f"from_scores decides between two classes, and y_true has {listed(levels)}. Compare "
            "one class with the rest in the table: outcome == 'repaid'."
        )
    positive = levels.index(people.pos_label) if people.pos_label in levels else 1
    names = ("sample_weight", "sensitive_features", "control_features", "units")
    given = {own: getattr(people, own) for own in names}
    given = {own: column for own, column in given.items() if column is not None}
    index = getattr(people.y_true, "index", None)
    index = index if isinstance(index, pd.Index) else None
    X = pd.DataFrame({str(name or "y_score"): scores}, index=index)
    return FrozenEstimator(PassedScores(levels, positive)), X, {"y": people.y_true, **given}
