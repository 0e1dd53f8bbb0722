"""Score models: parameters to scores, and the way back for slopes.

Losses and fairness constraints live in score space; a model turns the slope of any function of the
scores into a gradient in the parameters, with one pull-back however many constraints there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.models.units import Units


class ScoreModel(ABC):
    """Scores of fixed rows as a function of the parameters."""

    pulls_back_cells: ClassVar[bool] = False  # whether it has :meth:`pullback_cells`
    # Whether it has :meth:`gram` and :meth:`penalty_curvature`
    has_curvature: ClassVar[bool] = False

    X: Any  # the rows
    units: Units  # columns are standardised by them, implicitly
    n_samples: int  # number of rows
    n_parameters: int  # length of the parameter vector

    def use_units(self, units: Units) -> None:
        """Standardise columns by those of another model: parameters then mean the same."""
        self.units = units

    @property
    def mean(self) -> FloatArray:
        """The number that is implicitly subtracted from each column."""
        return self.units.mean

    @property
    def scale(self) -> FloatArray:
        """The number by which each column is implicitly divided."""
        return self.units.scale

    @abstractmethod
    def start(self, rng: np.random.RandomState) -> FloatArray:
        """Return parameters to start from."""

    @abstractmethod
    def raw(self, theta: FloatArray) -> tuple[Any, Any]:
        """Return weights and intercepts for the columns as they are."""

    @abstractmethod
    def standardised(self, weights: Any, intercepts: Any) -> FloatArray:
        """Return the parameters of given weights and intercepts: the inverse of :meth:`raw`."""

    @abstractmethod
    def forward(self, theta: FloatArray, rows: IntArray | None = None) -> tuple[FloatArray, Any]:
        """Return the scores of all or some rows, and a tape that :meth:`pullback` needs."""

    @abstractmethod
    def pullback(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return the gradient of a function whose derivatives by the scores are ``slopes``."""

    def pullbacks(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return one gradient for each line of slopes."""
        return np.stack([self.pullback(tape, of_output) for of_output in slopes])

    @abstractmethod
    def penalty_parts(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return half the squared norm of the weights (not of intercepts), and its gradient."""

    def pullback_cells(self, cells: IntArray, slopes: FloatArray, n_cells: int) -> FloatArray:
        """Return one gradient per cell, (n_cells, n_parameters), in one pass over the rows."""
        raise NotImplementedError

    @property
    def is_wide(self) -> bool:
        """Whether solving with products is less work than a Gram matrix and its factors."""
        return False

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return the second derivative for curvatures by the scores: linear models have one."""
        raise NotImplementedError

    def penalty_curvature(self) -> FloatArray:
        """Return the diagonal second derivative of the penalty: linear models have one."""
        raise NotImplementedError

    def rounding(self, theta: FloatArray) -> float:
        """Return how far two computations of the same score may be apart."""
        return 1e4 * float(np.finfo(self.X.dtype).eps)
