"""What is minimised, as one function of all scores: the mean loss, or a loss of pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.partial.surrogates import Part
from skfair.losses import Loss
from skfair.utils.registry import Registry

# Objectives of pairs of rows, by name; losses of single rows are in skfair.losses.
OBJECTIVES: Registry[type[PairObjective]] = Registry("objective", "skfair.problems.partial")


class Objective(ABC):
    """A function of all scores, difference of two convex ones (the second is mostly zero)."""

    targets: FloatArray  # (n_samples,): -1 and 1
    weights: FloatArray  # (n_samples,)
    is_smooth: ClassVar[bool] = False  # whether descent can end where its gradient is zero
    # Whether it looks at an interval of ranks, and is given it. What counts then follows the
    # ranking, so that the function has kinks, and descent may end at any of them.
    uses_interval: ClassVar[bool] = False
    is_mean: ClassVar[bool] = False  # whether it is a mean over rows: it then has :meth:`on_rows`

    def on_rows(self, rows: IntArray, factors: FloatArray) -> Objective:
        """Return the objective on some rows, each of which stands for ``factors`` rows."""
        raise NotImplementedError

    @abstractmethod
    def evaluate(
        self,
        scores: FloatArray,  # (n_samples,): the scores
        part: Part = "whole",  # the function or one of its convex parts
    ) -> tuple[float, FloatArray]:
        """Return the value and its slopes by the scores."""

    @abstractmethod
    def share_right(self, scores: FloatArray) -> float:
        """Return the share of what is compared that scores get right, by which models are chosen.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            The scores, with the decision threshold at 0.
        """


class MeanLoss(Objective):
    """The weighted mean of a convex loss."""

    is_smooth = is_mean = True

    def __init__(self, loss: Loss, targets: FloatArray, weights: FloatArray) -> None:
        self.loss, self.targets, self.weights = loss, targets, weights

    def on_rows(self, rows: IntArray, factors: FloatArray) -> MeanLoss:
        """Return the mean over some rows, each of which stands for ``factors`` rows."""
        return MeanLoss(self.loss, self.targets[rows], self.weights[rows] * factors)

    def evaluate(self, scores: FloatArray, part: Part = "whole") -> tuple[float, FloatArray]:
        """Return the value and its slopes by the scores."""
        if part == "minus":
            return 0.0, np.zeros(scores.size)
        value, slope, _ = self.loss.parts(scores, self.targets)
        return float(self.weights @ value), slope * self.weights

    def share_right(self, scores: FloatArray) -> float:
        """Return the accuracy."""
        return float(self.weights @ ((scores > 0) == (self.targets > 0)))


class PairObjective(Objective):
    """A mean loss over pairs of rows, which is made by its name."""

    @abstractmethod
    def __init__(
        self, targets: FloatArray, weights: FloatArray, interval: FloatArray | None = None
    ) -> None: ...
