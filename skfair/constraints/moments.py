"""The averages that constraints limit, over the rows of a cell, as functions of the score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.losses import Loss, sigmoid


class Moment(ABC):
    """A function of the scores that is averaged over a cell."""

    # Whether the strict value of a row is 0 or 1 and depends on the sign of its score only, so that
    # a temperature and a shift of all scores apply.
    is_rate = False
    unit: Literal["rate", "loss", "score"] = "rate"  # the unit of the moment, and of bounds on it

    @abstractmethod
    def parts(
        self, scores: FloatArray, temperature: float, rows: IntArray | slice | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value, slope and curvature of the smooth moment; ``rows`` says which rows.

        The last two are new arrays that the caller may change.
        """

    @abstractmethod
    def strict(self, scores: FloatArray) -> FloatArray:
        """Return the moment of all rows that is reported: a 0/1 decision, an exact loss."""

    def on_rows(self, rows: IntArray | slice) -> Moment:
        """Return the moment of some rows."""
        return self


def smooth_step(
    scores: FloatArray,
    factor: float | FloatArray,  # the temperature, or its negative where the step leads down
    temperature: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return value, slope and curvature of sigmoid(factor * z)."""
    value = sigmoid(factor * scores)
    slope = value * (1 - value)
    curvature = slope * (1 - 2 * value)
    slope *= factor
    curvature *= temperature**2
    return value, slope, curvature


class Rate(Moment):
    """The share of rows on the right side of the threshold: phi = sigmoid(T s z).

    ``signs`` is 1 where the rate counts positive predictions and -1 where it counts negative ones;
    None for positive everywhere.
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
        if self.loss.reported != 1:
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
    """Raise if a moment of one's own does not return one number for each row.

    One number for all of them would be taken for the same number of each row, and no group would
    differ from another.
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
