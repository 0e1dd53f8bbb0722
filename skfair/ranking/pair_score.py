"""Scores of pairs of rows: the difference of the two scores of a model.

A ranker is trained on pairs (better row, worse row), and a positive difference is the right order.
:func:`skfair.ranking.task.make_task` builds its problem on a :class:`PairScore`, so losses and
constraints see pairs as their rows. The model inside scores every document only once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.models.base import ScoreModel
from skfair.models.units import Units


class PairScore(ScoreModel):
    """Differences of the scores of two rows, for fixed pairs of rows.

    Parameters
    ----------
    model : ScoreModel
        Gives the scores of single rows. An intercept would cancel and is best left out.
    first, second : ndarray of shape (n_pairs,)
        Row numbers of both rows of each pair.

    Examples
    --------
    >>> import numpy as np
    >>> from skfair.models import LinearScore
    >>> from skfair.ranking.pair_score import PairScore
    >>> model = LinearScore(np.array([[1.0], [2.0], [4.0]]), fit_intercept=False)
    >>> pairs = PairScore(model, np.array([2, 1]), np.array([0, 0]))
    >>> scores, tape = pairs.forward(model.scale)  # scores of rows are their only column
    >>> scores
    array([3., 1.])
    >>> (pairs.pullback(tape, np.ones(2)) * model.scale).round(9)
    array([4.])
    """

    def __init__(self, model: ScoreModel, first: IntArray, second: IntArray) -> None:
        self.model, self.first, self.second = model, first, second
        self.X, self.units = model.X, model.units
        self.n_samples = first.size
        self.n_parameters = model.n_parameters

    def use_units(self, units: Units) -> None:
        """Standardise columns by the units of another model, so that parameters mean the same."""
        self.model.use_units(units)
        self.units = units

    def start(self, rng: np.random.RandomState) -> FloatArray:
        """Return the parameters from which the model starts."""
        return self.model.start(rng)

    def raw(self, theta: FloatArray) -> tuple[Any, Any]:
        """Return weights and intercepts for columns that are not standardised."""
        return self.model.raw(theta)

    def standardised(self, weights: Any, intercepts: Any) -> FloatArray:
        """Return the parameters of given weights and intercepts: the inverse of :meth:`raw`."""
        return self.model.standardised(weights, intercepts)

    def forward(self, theta: FloatArray, rows: IntArray | None = None) -> tuple[FloatArray, Any]:
        """Return the differences of all or some pairs, and a tape for ``pullback``."""
        chosen: IntArray | None = None
        first, second = self.first, self.second
        if rows is not None:
            first, second = first[rows], second[rows]
            chosen, places = np.unique(np.concatenate([first, second]), return_inverse=True)
            first, second = places[: rows.size], places[rows.size :]
        scores, inner = self.model.forward(theta, chosen)
        return scores[first] - scores[second], (first, second, scores.size, inner)

    def pullback(self, tape: Any, slopes: FloatArray) -> FloatArray:
        """Return the gradient of a function whose derivatives by the differences are ``slopes``."""
        first, second, n_rows, inner = tape
        better, worse = (
            np.bincount(rows, slopes, n_rows).astype(np.float64) for rows in (first, second)
        )
        return self.model.pullback(inner, better - worse)

    def penalty_parts(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return half the squared norm of the weights (not of intercepts), and its gradient."""
        return self.model.penalty_parts(theta)

    def rounding(self, theta: FloatArray) -> float:
        """Return the largest deviation by rounding between two computations of a difference."""
        return 2 * self.model.rounding(theta)
