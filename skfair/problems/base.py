"""The base of problems with two-sided bounds: violation, residuals, copies with other bounds.

A problem has constraints c with ``lower <= c(theta) <= upper``. What is the same for all problems
is computed here from their values: :mod:`skfair.solvers.base` calls
:meth:`TwoSidedProblem.violation` and :meth:`~TwoSidedProblem.kkt_residual` to stop and to report,
and strict enforcement calls :meth:`~TwoSidedProblem.bounded` to solve the same problem with moved
bounds. A subclass adds ``evaluate``, see :class:`skfair.problems.protocol.Problem`.
"""

from __future__ import annotations

import copy
from typing import ClassVar, Self

import numpy as np

from skfair._typing import FloatArray
from skfair.problems.protocol import Evaluation, Offer


class TwoSidedProblem:
    """Base of problems with constraints between bounds."""

    # (n_constraints,): bounds; an infinite one limits nothing
    lower: FloatArray
    upper: FloatArray
    n_parameters: int
    n_constraints: int
    # Methods that solvers may ask for in addition, see :data:`skfair.problems.protocol.Offer`
    offers: ClassVar[frozenset[Offer]] = frozenset()

    def bounded(self, lower: FloatArray | None = None, upper: FloatArray | None = None) -> Self:
        """Return a shallow copy with other bounds. If a bound is None, it stays as it is.

        The copy shares the data and the last evaluation.
        """
        view = copy.copy(self)
        view.lower = self.lower if lower is None else lower
        view.upper = self.upper if upper is None else upper
        return view

    def violation(self, at: Evaluation) -> float:
        """Return the largest distance of a constraint beyond its bound; 0 if all are satisfied.

        It is NaN if a constraint is NaN.
        """
        beyond = np.maximum(self.lower - at.constraints, at.constraints - self.upper)
        return float(beyond.max(initial=0.0))

    def kkt_residual(self, at: Evaluation, multipliers: FloatArray) -> dict[str, float]:
        """Return how far a point is from the first-order conditions.

        ``stationarity`` is the largest entry of the gradient of the Lagrangian (in standardised
        coordinates for linear models), and ``feasibility`` is the largest violation.
        ``complementarity`` is the largest product of a multiplier and the distance of its
        constraint from its bound: the upper bound if the multiplier is positive, the lower one if
        it is negative. A multiplier on an infinite bound is wrong whatever its size, so it counts
        with the distance 1.
        """
        to_bound = np.where(
            multipliers > 0, self.upper - at.constraints, at.constraints - self.lower
        )
        distance = np.where(np.isfinite(to_bound), to_bound, 1.0)
        slack = np.where(multipliers == 0, 0.0, distance)
        return {
            "stationarity": float(np.abs(at.gradient(multipliers)).max()),
            "feasibility": self.violation(at),
            "complementarity": float(np.abs(multipliers * slack).max(initial=0.0)),
        }
