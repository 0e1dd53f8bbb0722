"""Moments: functions of the score of a row, of which constraints limit the averages over cells.

A cell holds the rows of a group, or of a class within a group. ``Constraint.moment`` returns a
moment. Problems that solvers see average its smooth value and its derivatives
(:meth:`Moment.parts`). Reports and strict enforcement average its exact value
(:meth:`Moment.strict`). There are three moments: :class:`Rate` counts predictions,
:class:`MeanLoss` averages losses, and :class:`MeanScore` averages scores. :func:`check_moment`
checks a moment that a user has written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.losses import Loss, sigmoid_parts

# The slope of a user's moment is compared with differences over twice this step. It may be off by
# this share, and at this many scores, because a moment may have kinks.
_STEP, _CLOSE, _AT_KINKS = 1e-5, 1e-3, 2


class Moment(ABC):
    """A function of the scores that is averaged over a cell."""

    # Whether the strict value of a row is 0 or 1 and depends only on the sign of its score. Only
    # such moments use the temperature, and only they are enforced by shifting all scores.
    is_rate = False
    unit: Literal["rate", "loss", "score"] = "rate"  # the unit of the moment and of its limit

    @abstractmethod
    def parts(
        self, scores: FloatArray, temperature: float, rows: IntArray | slice | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value, slope and curvature of the smooth moment, as functions of the score.

        ``scores`` are those of ``rows`` only, or of all rows if it is None. The slope and curvature
        are new arrays that the caller may change. Moments that are no rates ignore
        ``temperature``.
        """

    @abstractmethod
    def strict(self, scores: FloatArray) -> FloatArray:
        """Return the reported value of each row: a decision (0 or 1), an exact loss, a score."""

    def on_rows(self, rows: IntArray | slice) -> Moment:
        """Return the moment of some rows, which is the same object if it holds nothing by row."""
        return self


def smooth_step(
    scores: FloatArray,
    # The temperature T, or -T for rows whose step falls
    factor: float | FloatArray,
    temperature: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return sigmoid(factor * score) and its first two derivatives by the score."""
    value, slope, curvature = sigmoid_parts(factor * scores)
    slope *= factor
    curvature *= temperature**2
    return value, slope, curvature


class Rate(Moment):
    """The share of rows that are predicted as ``signs`` says: phi = sigmoid(T s z).

    z is the score, T the temperature, and s the sign of the row: 1 if its positive prediction is
    counted, and -1 if its negative one is. If ``signs`` is None, it is 1 for all rows.
    """

    is_rate = True

    def __init__(self, signs: FloatArray | None = None) -> None:
        self.signs = signs

    def parts(
        self, scores: FloatArray, temperature: float, rows: IntArray | slice | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value, slope and curvature of the smooth moment; ``rows`` says which rows."""
        factor: float | FloatArray = temperature
        if self.signs is not None:
            factor = temperature * (self.signs if rows is None else self.signs[rows])
        return smooth_step(scores, factor, temperature)

    def strict(self, scores: FloatArray) -> FloatArray:
        """Return 1 where the prediction counts; a score of exactly 0 is a negative prediction."""
        predicted = scores > 0
        if self.signs is None:
            return predicted.astype(np.float64)
        return np.equal(predicted, self.signs > 0).astype(np.float64)

    def on_rows(self, rows: IntArray | slice) -> Rate:
        """Return the moment of some rows."""
        return self if self.signs is None else Rate(self.signs[rows])


class MeanLoss(Moment):
    """The loss that is minimised, in the units in which it is reported."""

    unit = "loss"

    def __init__(self, loss: Loss, targets: FloatArray) -> None:
        self.loss = loss
        self.targets = targets

    def parts(
        self, scores: FloatArray, temperature: float, rows: IntArray | slice | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value, slope and curvature of the smooth moment; ``rows`` says which rows."""
        parts = self.loss.parts(scores, self.targets if rows is None else self.targets[rows])
        if self.loss.reported != 1:  # reported is a multiple of what is minimised
            return tuple(self.loss.reported * part for part in parts)  # type: ignore[return-value]
        return parts.value, parts.slope, parts.curvature

    def strict(self, scores: FloatArray) -> FloatArray:
        """Return the loss of every row without smoothing."""
        return np.asarray(self.loss.exact(scores, self.targets))

    def on_rows(self, rows: IntArray | slice) -> MeanLoss:
        """Return the moment of some rows."""
        return MeanLoss(self.loss, self.targets[rows])


class MeanScore(Moment):
    """The score itself."""

    unit = "score"

    def parts(
        self, scores: FloatArray, temperature: float, rows: IntArray | slice | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value, slope and curvature of the smooth moment; ``rows`` says which rows."""
        return scores, np.ones_like(scores), np.zeros_like(scores)

    def strict(self, scores: FloatArray) -> FloatArray:
        """Return the scores."""
        return scores


def check_moment(moment: Moment, n_rows: int) -> None:
    """Raise if a user's moment does not return one number for each row, or a wrong slope.

    Constraints call this when they are bound to rows, as estimators check losses. Without it, a
    single number would be taken for the value of every row. No group would then differ from
    another, and there would be no error. With a wrong slope, solvers would find no solution.
    """
    if not isinstance(moment, Moment):
        raise TypeError(f"moment(rows) must return a Moment, got {type(moment).__name__}.")
    name, scores = type(moment).__name__, np.linspace(-1.0, 1.0, n_rows)
    parts = moment.parts(scores, 1.0)
    if not isinstance(parts, tuple) or len(parts) != 3:
        raise TypeError(
            f"{name}.parts must return a tuple of value, slope and curvature, got "
            f"{type(parts).__name__}."
        )
    answers = dict(zip(("value", "slope", "curvature"), parts, strict=True))
    for part, values in {**answers, "strict value": moment.strict(scores)}.items():
        array = np.asarray(values)
        if array.shape != scores.shape or array.dtype.kind not in "biuf":
            raise ValueError(
                f"{name} returns a {part} of shape {array.shape} and type {array.dtype} for "
                f"{n_rows} scores. Return one real number for each score."
            )
        if np.isnan(array).any():
            raise ValueError(f"{name} returns a {part} that is NaN. Return one real number.")
    # Differences of the value: a slope may be wrong at a few kinks of the moment, not elsewhere.
    ahead, behind = (np.asarray(moment.parts(scores + by, 1.0)[0]) for by in (_STEP, -_STEP))
    differences, slope = (ahead - behind) / (2 * _STEP), np.asarray(answers["slope"])
    is_far = np.abs(differences - slope) > _CLOSE * np.maximum(1.0, np.abs(differences))
    if is_far.sum() > _AT_KINKS:
        i = int(np.argmax(is_far))
        raise ValueError(
            f"{name}: the slope is {slope[i]:.6g} at the score {scores[i]:.3g}, but differences of "
            f"the value give {differences[i]:.6g}. It must be the derivative of the value with "
            "respect to the score."
        )
