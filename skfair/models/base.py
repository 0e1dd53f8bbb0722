"""The interface of score models: from parameters to scores, and back from slopes to gradients.

Losses and fairness constraints are functions of the scores. A *slope* is the derivative of such a
function by the score of a row. A *pull-back* turns the slopes of all rows into the gradient by the
parameters, in one pass over the rows, however many constraints there are. Problems
(:mod:`skfair.problems.erm.problem`) call :meth:`ScoreModel.forward`, then one of the pull-backs
with the *tape* that it returned. Estimators use :meth:`ScoreModel.raw` and
:meth:`ScoreModel.standardised` to get from parameters to ``coef_`` and back.

The models are in :mod:`skfair.models.linear`, :mod:`~skfair.models.partitioned`,
:mod:`~skfair.models.mlp` and :mod:`~skfair.models.plug_in`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.models.units import Units


class ScoreModel(ABC):
    """Scores of fixed rows, as a function of parameters that belong to standardised columns."""

    pulls_back_cells: ClassVar[bool] = False  # whether it has :meth:`pullback_cells`
    # Whether it has :meth:`gram` and :meth:`penalty_curvature`
    has_curvature: ClassVar[bool] = False

    X: Any  # the rows, with columns as they are; the model standardises them without a copy
    units: Units  # the means and scales by which columns are standardised
    n_samples: int  # number of rows
    n_parameters: int  # length of the parameter vector

    def use_units(self, units: Units) -> None:
        """Standardise columns by the units of another model, so that parameters mean the same."""
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
        """Return the scores of ``rows``, or of all if None, and the tape for :meth:`pullback`.

        Only the model that made a tape knows what is in it.
        """

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
        """Return one gradient per cell, (n_cells, n_parameters), in one pass over the rows.

        A cell is a set of rows, those with the same number in ``cells``.
        """
        raise NotImplementedError

    @property
    def is_wide(self) -> bool:
        """Whether Newton steps by products with X are less work than those by a Gram matrix."""
        return False

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return Z' diag(weights) Z for standardised rows Z; only linear models have this.

        It is the second derivative of a function of the scores whose second derivatives by the
        scores are ``weights``.
        """
        raise NotImplementedError

    def penalty_curvature(self) -> FloatArray:
        """Return the diagonal of the second derivative of the penalty, if it is a diagonal."""
        raise NotImplementedError

    def rounding(self, theta: FloatArray) -> float:
        """Return how far two computations of the same score may be apart.

        Thresholds keep this distance from scores.
        """
        return 1e4 * float(np.finfo(self.X.dtype).eps)
