"""Minimisation under fairness rules, apart from where the rows are: bounds, centres, conditions.

The rules turn cell means into constraint rows ``c = B m - centre`` (see
:mod:`skfair.constraints.base`), and solvers ask how far these are from their bounds. Problems whose
rows are here and those whose rows are elsewhere share what is below.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, IntArray
from skfair.constraints.bound import BoundConstraint
from skfair.losses import Loss
from skfair.models.base import ScoreModel


class Decisions(NamedTuple):
    """What scores amount to when nothing is smoothed.

    Attributes
    ----------
    means : list of ndarray
        For each rule, the mean of its strict moment in every cell.
    right : float
        Weighted share of the rows whose score has the sign of the target.
    positive : float
        Weighted share of the rows with a positive score.
    """

    means: list[FloatArray]
    right: float
    positive: float


class RuledProblem(ABC):
    """A loss, rules with bounds, and a model: what solvers may ask, whatever holds the rows.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_constraints,)
        Bounds; whoever enforces strict rates moves them between solves.
    temperature : float
        Steepness of the smooth rates.
    n_parameters, n_constraints, n_centers : int
        Sizes.
    """

    model: ScoreModel
    loss: Loss
    alpha: float
    rules: list[BoundConstraint]

    def _set_rules(self, rules: Sequence[BoundConstraint]) -> None:
        self.rules = list(rules)
        self.temperature = 1.0
        centers: list[IntArray] = [np.empty(0, np.int64)]
        n_centers = 0
        for rule in self.rules:
            centers.append(np.where(rule.centers < 0, -1, rule.centers + n_centers))
            n_centers += rule.n_centers
        self._centers = np.concatenate(centers)
        self.n_centers = n_centers
        self._starts = np.cumsum([0, *(rule.upper.size for rule in self.rules)])
        self.n_constraints = int(self._starts[-1])
        self.n_parameters = self.model.n_parameters + n_centers
        self.lower = np.concatenate([np.empty(0), *(rule.lower for rule in self.rules)])
        self.upper = np.concatenate([np.empty(0), *(rule.upper for rule in self.rules)])
        self._matrices = [_handy(rule.matrix) for rule in self.rules]

    @abstractmethod
    def relaxed(self) -> RuledProblem:
        """Return the problem without its rules."""

    @abstractmethod
    def with_loss(self, loss: Loss) -> Self:
        """Return the problem with another loss; bounds and temperature are its own."""

    @abstractmethod
    def evaluate(self, theta: FloatArray) -> Any:
        """Return objective, constraints, and what gradients are made of."""

    @abstractmethod
    def gradient(
        self, at: Any, multipliers: FloatArray | None = None, *, objective: float = 1.0
    ) -> FloatArray:
        """Return objective * grad F + sum of multipliers * grad c."""

    @abstractmethod
    def scores(self, theta: FloatArray) -> Any:
        """Return the scores of all rows, or what they can be made of where the rows are."""

    @abstractmethod
    def decide(self, scores: Any) -> Decisions:
        """Read scores strictly: what is reported, and what ``max_disparity`` bounds."""

    @property
    @abstractmethod
    def positive_share(self) -> float:
        """Weighted share of the rows with a positive target."""

    def start(self, rng: np.random.RandomState) -> FloatArray:
        """Return parameters to start from."""
        return self.centered(self.model.start(rng))

    def centered(self, theta: FloatArray) -> FloatArray:
        """Return model parameters with every centre in the middle of the rates around it."""
        theta = np.concatenate([self.model_part(theta), np.zeros(self.n_centers)])
        if self.n_centers:
            theta[self.model.n_parameters :] = self._middles(self.evaluate(theta).constraints)
        return theta

    def from_centers(self, values: FloatArray) -> FloatArray:
        """Measure values of the constraint rows from the middle of the rates of each centre."""
        if not self.n_centers:
            return values
        middles = self._middles(values)
        return values - np.where(self._centers >= 0, middles[self._centers], 0.0)

    def _middles(self, values: FloatArray) -> FloatArray:
        """Return the middle of the values that belong to each centre."""
        has = self._centers >= 0
        highest = np.full(self.n_centers, -np.inf)
        lowest = np.full(self.n_centers, np.inf)
        np.maximum.at(highest, self._centers[has], values[has])
        np.minimum.at(lowest, self._centers[has], values[has])
        return 0.5 * (highest + lowest)

    def model_part(self, theta: FloatArray) -> FloatArray:
        """Return the parameters of the model, without centres."""
        return theta[: self.model.n_parameters]

    def violation(self, at: Any) -> float:
        """Return by how much the worst constraint is missed."""
        if not self.n_constraints:
            return 0.0
        beyond = np.maximum(self.lower - at.constraints, at.constraints - self.upper)
        return max(0.0, float(beyond.max()))

    def kkt_residual(self, at: Any, multipliers: FloatArray) -> dict[str, float]:
        """Return how far a point is from the first-order conditions.

        ``stationarity`` is the largest entry of the gradient of the Lagrangian (in standardised
        coordinates for linear models), ``feasibility`` the largest violation, ``complementarity``
        the largest multiplier times the distance from its bound.
        """
        gradient = self.gradient(at, multipliers)
        room = np.where(multipliers > 0, self.upper - at.constraints, at.constraints - self.lower)
        slack = np.where(multipliers == 0, 0.0, np.where(np.isfinite(room), room, 1.0))
        return {
            "stationarity": float(np.abs(gradient).max()),
            "feasibility": self.violation(at),
            "complementarity": float(np.abs(multipliers * slack).max(initial=0.0)),
        }

    def _center_values(self, theta: FloatArray) -> Any:
        if not self.n_centers:
            return 0.0
        values = theta[self.model.n_parameters :]
        return np.where(self._centers >= 0, values[self._centers], 0.0)

    def _pull(self, k: int, multipliers: FloatArray) -> FloatArray:
        """Return what the multipliers of rule k weigh in each of its cells."""
        own = multipliers[self._starts[k] : self._starts[k + 1]]
        return np.asarray(self._matrices[k].T @ own)

    def _center_gradient(self, multipliers: FloatArray | None) -> FloatArray:
        """Return the derivative of the constraints, times multipliers, by the centres."""
        if multipliers is None or not self.n_centers:
            return np.zeros(self.n_centers)
        has = self._centers >= 0
        return np.asarray(-1.0 * np.bincount(self._centers[has], multipliers[has], self.n_centers))


def _handy(matrix: sparse.csr_array) -> Any:
    """Return a small matrix, or one that is far from sparse, as an array.

    Setting up a sparse product costs tens of microseconds, and an entry several times a dense one.
    """
    size = float(np.prod(matrix.shape))
    is_dense = size <= 1e4 or (matrix.nnz > 0.2 * size and size <= 1e7)
    return matrix.toarray() if is_dense else matrix
