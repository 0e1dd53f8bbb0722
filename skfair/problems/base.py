"""The base of problems with two-sided bounds: violation, residuals, copies with other bounds."""

from __future__ import annotations

import copy
from typing import ClassVar, Self

import numpy as np

from skfair._typing import FloatArray
from skfair.problems.protocol import Evaluation, Offer


class TwoSidedProblem:
    """Base of problems with constraints between bounds."""

    # (n_constraints,): bounds, which may be infinite
    lower: FloatArray
    upper: FloatArray
    # Sizes
    n_parameters: int
    n_constraints: int
    offers: ClassVar[frozenset[Offer]] = frozenset()

    def bounded(self, lower: FloatArray | None = None, upper: FloatArray | None = None) -> Self:
        """Return a view with other bounds: it shares the data and the last evaluation."""
        view = copy.copy(self)
        view.lower = self.lower if lower is None else lower
        view.upper = self.upper if upper is None else upper
        return view

    def violation(self, at: Evaluation) -> float:
        """Return by how much the worst constraint is missed: nan where one is no number."""
        beyond = np.maximum(self.lower - at.constraints, at.constraints - self.upper)
        return float(beyond.max(initial=0.0))

    def kkt_residual(self, at: Evaluation, multipliers: FloatArray) -> dict[str, float]:
        """Return how far a point is from the first-order conditions.

        ``stationarity`` is the largest entry of the gradient of the Lagrangian (in standardised
        coordinates for linear models), ``feasibility`` the largest violation, ``complementarity``
        the largest multiplier times the distance from its bound.
        """
        room = np.where(multipliers > 0, self.upper - at.constraints, at.constraints - self.lower)
        slack = np.where(multipliers == 0, 0.0, np.where(np.isfinite(room), room, 1.0))
        return {
            "stationarity": float(np.abs(at.gradient(multipliers)).max()),
            "feasibility": self.violation(at),
            "complementarity": float(np.abs(multipliers * slack).max(initial=0.0)),
        }
