r"""Learning under rules within percentile intervals: what a solver may ask.

.. math:: \min_\theta \; F(\theta) = f(z) + \frac{\alpha}{2} |w|^2
   \quad \text{subject to} \quad l \le c(z, a) \le u

with scores z = h_w(X), theta = (w, a), a the auxiliary parameters of the rules, and f, c
differences of convex functions of the scores. For linear scores this is the DC program (27) of
partial_fairness_idca. The solvers of :mod:`skfair.solvers` that need values and gradients only work
on it as on any other problem; ``part`` hands out the convex parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.constraints.partial.base import BoundPartialRule, Values
from skfair.constraints.partial.surrogates import Part, Surrogate
from skfair.models.base import ScoreModel
from skfair.problems.base import TwoSidedProblem
from skfair.problems.partial.objectives import Objective
from skfair.problems.protocol import Evaluation, Offer


@dataclass(eq=False)
class PartialEvaluation:
    """The problem, or one of its convex parts, at a point."""

    theta: FloatArray
    objective: float
    constraints: FloatArray  # (n_constraints,)
    scores: FloatArray
    part: Part
    tape: Any
    objective_slopes: FloatArray  # (n_samples,)
    penalty_gradient: FloatArray
    of_rules: list[Values]
    problem: PartialParityProblem

    def gradient(
        self, multipliers: FloatArray | None = None, *, objective: float = 1.0
    ) -> FloatArray:
        """Return objective * grad F + sum of multipliers * grad c: one pull-back."""
        problem, slopes = self.problem, objective * self.objective_slopes
        p = problem.model.n_parameters
        of_aux = np.zeros(problem.n_parameters - p)
        if multipliers is not None:
            for k, rule in enumerate(problem.rules):
                mine = multipliers[problem.rows_of(k)]
                if mine.any():
                    by_scores, by_aux = rule.pull(self.of_rules[k], mine)
                    slopes = slopes + by_scores
                    problem.aux_of(of_aux, k, first=p)[:] = by_aux
        gradient = problem.model.pullback(self.tape, slopes) + objective * self.penalty_gradient
        return np.concatenate([gradient, of_aux])

    def jacobian(self, which: IntArray | None = None) -> FloatArray:
        """Return the gradients of some constraints (all if None): a pull-back for each."""
        units = np.eye(self.problem.n_constraints)[slice(None) if which is None else which]
        rows = [self.gradient(unit, objective=0.0) for unit in units]
        return np.array(rows).reshape(len(units), self.problem.n_parameters)


class PartialParityProblem(TwoSidedProblem):
    """The problem of one fit.

    Parameters
    ----------
    model : ScoreModel
        Turns parameters into scores.
    objective : Objective
        What is minimised.
    rules : sequence of BoundPartialRule
        What is limited.
    tolerance : float
        The disparity allowed, as a share of the intervals.
    alpha : float, default=0.0
        Weight of the penalty on the weights.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_constraints,)
        Bounds.
    """

    offers: ClassVar[frozenset[Offer]] = frozenset({"parts"})

    def __init__(
        self,
        model: ScoreModel,
        objective: Objective,
        rules: Sequence[BoundPartialRule],
        tolerance: float,
        *,
        alpha: float = 0.0,
    ) -> None:
        self.model, self.objective, self.rules, self.alpha = model, objective, list(rules), alpha
        self._aux = np.cumsum([model.n_parameters, *(rule.n_aux for rule in self.rules)])
        self._rows = np.cumsum([0, *(rule.n_constraints for rule in self.rules)])
        self.n_parameters = int(self._aux[-1])
        self.n_constraints = int(self._rows[-1])
        self.set_tolerance(tolerance)

    def set_tolerance(self, tolerance: float) -> None:
        """Change the disparity allowed."""
        self.tolerance = tolerance
        bounds = [rule.bounds(tolerance) for rule in self.rules]
        self.lower = np.concatenate([np.empty(0), *(low for low, _ in bounds)])
        self.upper = np.concatenate([np.empty(0), *(high for _, high in bounds)])

    def set_surrogate(self, surrogate: Surrogate) -> None:
        """Change the smooth steps."""
        for rule in self.rules:
            rule.surrogate = surrogate

    def start(self, theta_model: FloatArray) -> FloatArray:
        """Complete parameters of the model by auxiliary parameters that suit its scores."""
        scores, _ = self.model.forward(theta_model)
        return np.concatenate(
            [theta_model, *(rule.start(scores, self.tolerance) for rule in self.rules)]
        )

    def model_part(self, theta: FloatArray) -> FloatArray:
        """Return the parameters of the model."""
        return theta[: self.model.n_parameters]

    def evaluate(self, theta: FloatArray, part: Part = "whole") -> PartialEvaluation:
        """Evaluate objective and constraints: one pass through the model."""
        w = self.model_part(theta)
        scores, tape = self.model.forward(w)
        value, slopes = self.objective.evaluate(scores, part)
        penalty_gradient = np.zeros(w.size)
        if self.alpha and part != "minus":
            half_norm, penalty_gradient = self.model.penalty_parts(w)
            value += self.alpha * half_norm
        of_rules = [
            rule.evaluate(scores, self.aux_of(theta, k), part) for k, rule in enumerate(self.rules)
        ]
        return PartialEvaluation(
            theta=theta,
            objective=value,
            constraints=np.concatenate([np.empty(0), *(one.values for one in of_rules)]),
            scores=scores,
            part=part,
            tape=tape,
            objective_slopes=slopes,
            penalty_gradient=self.alpha * penalty_gradient,
            of_rules=of_rules,
            problem=self,
        )

    def kkt_residual(self, at: Evaluation, multipliers: FloatArray) -> dict[str, float]:
        """Return how far a point is from the conditions (28)-(30).

        ``stationarity`` is the norm of the gradient of the Lagrangian, ``feasibility`` the largest
        violation, ``complementarity`` the largest multiplier times the distance from its bound.
        """
        gradient = at.gradient(multipliers)
        room = np.where(multipliers > 0, self.upper - at.constraints, at.constraints - self.lower)
        slack = np.where(multipliers == 0, 0.0, np.where(np.isfinite(room), room, 1.0))
        return {
            "stationarity": float(np.linalg.norm(gradient)),
            "feasibility": self.violation(at),
            "complementarity": float(np.abs(multipliers * slack).max(initial=0.0)),
        }

    def aux_of(self, theta: FloatArray, k: int, first: int = 0) -> FloatArray:
        """Return the auxiliary parameters of one rule, of a vector that begins with ``first``."""
        return theta[self._aux[k] - first : self._aux[k + 1] - first]

    def rows_of(self, k: int) -> slice:
        """Return which constraints are those of one rule."""
        return slice(self._rows[k], self._rows[k + 1])
