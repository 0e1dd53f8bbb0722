r"""Learning under constraints within percentile intervals, as a problem for solvers.

.. math:: \min_\theta \; F(\theta) = f(z) + \frac{\alpha}{2} |w|^2
   \quad \text{subject to} \quad l \le c(z, a) \le u

with scores z = h_w(X) of a model h with weights w, an objective f
(:class:`~skfair.partial_parity.objectives.BoundObjective`), and constraints c
(:class:`~skfair.partial_parity.ranked_moment.RankedMoment`) with auxiliary parameters a, such as
thresholds. Solvers see one vector theta = (w, a).

:func:`skfair.partial_parity.fitting.free_problem` makes the problem without constraints, and
:func:`skfair.partial_parity.strict_rounds.stated` adds them. Any solver of :mod:`skfair.solvers`
that needs only values and gradients can solve it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from skfair._typing import FloatArray, IntArray
from skfair.models.base import ScoreModel
from skfair.partial_parity.objectives import BoundObjective
from skfair.partial_parity.ranked_moment import RankedMoment, Values
from skfair.partial_parity.surrogates import Surrogate
from skfair.problems.base import TwoSidedProblem
from skfair.problems.protocol import Offer
from skfair.utils.history import count_passes


@dataclass(eq=False)
class PartialEvaluation:
    """The problem at a point theta: values, and the slopes from which gradients are computed."""

    problem: PartialParityProblem
    theta: FloatArray
    objective: float  # F, with the penalty
    constraints: FloatArray  # (n_constraints,): c
    scores: FloatArray
    tape: Any  # state of the forward pass, which the model needs for gradients
    objective_slopes: FloatArray  # (n_samples,): derivatives of f by the scores
    penalty_gradient: FloatArray  # (n_weights,): gradient of alpha / 2 |w|^2
    of_moments: list[Values]  # values of each moment, with the state that its slopes need

    def gradient(
        self, multipliers: FloatArray | None = None, *, objective: float = 1.0
    ) -> FloatArray:
        """Return objective * grad F + sum of multipliers * grad c, by one backward pass."""
        slopes, of_aux = objective * self.objective_slopes, np.zeros(self.problem.n_aux)
        if multipliers is not None:
            by_scores, of_aux = self.slopes(multipliers)
            slopes += by_scores
        gradient = self.problem.model.pullback(self.tape, slopes)
        return np.concatenate([gradient + objective * self.penalty_gradient, of_aux])

    def slopes(self, multipliers: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the slopes of the sum of multipliers * c by scores and auxiliary parameters."""
        problem, by_scores = self.problem, np.zeros(self.scores.size)
        of_aux, row, aux = np.zeros(problem.n_aux), 0, 0
        for moment, values in zip(problem.moments, self.of_moments, strict=True):
            mine = multipliers[row : row + moment.n_constraints]
            if mine.any():
                slopes, of_aux[aux : aux + moment.n_aux] = moment.pull(values, mine)
                by_scores += slopes
            row, aux = row + moment.n_constraints, aux + moment.n_aux
        return by_scores, of_aux

    def jacobian(self, which: IntArray | None = None) -> FloatArray:
        """Return the gradients of some constraints (all if None), by a backward pass for each."""
        units = np.eye(self.problem.n_constraints)[slice(None) if which is None else which]
        rows = np.array([self.gradient(unit, objective=0.0) for unit in units])
        return rows.reshape(len(units), self.problem.n_parameters)


class PartialParityProblem(TwoSidedProblem):
    """The problem of one fit. Methods that change it return a changed copy."""

    _rows: IntArray | None = None  # the rows that an evaluation uses; all if None

    def __init__(
        self,
        model: ScoreModel,  # turns parameters into scores
        objective: BoundObjective,  # what is minimised
        moments: Sequence[RankedMoment],  # what is limited
        tolerance: float,  # the disparity allowed, as a share of the intervals
        *,
        alpha: float = 0.0,  # weight of the penalty on the weights
        # Factor on ``tolerance`` for each moment, if attributes have their own limits; None for 1
        ratios: FloatArray | None = None,
    ) -> None:
        self._ratios = np.ones(len(moments)) if ratios is None else ratios
        self.model, self.moments = model, list(moments)
        self.objective, self.alpha = objective, alpha
        # The places in theta at which the auxiliary parameters of each moment start, and the end.
        self.aux_starts = np.cumsum([model.n_parameters, *(m.n_aux for m in moments)])
        self.n_parameters = int(self.aux_starts[-1])
        self.n_constraints = sum(moment.n_constraints for moment in self.moments)
        self._set_tolerance(tolerance)

    def _set_tolerance(self, tolerance: float) -> None:
        self.tolerance = tolerance
        bounds = [moment.bounds(own) for moment, own in self._tolerances()]
        self.lower = np.concatenate([np.empty(0), *(low for low, _ in bounds)])
        self.upper = np.concatenate([np.empty(0), *(high for _, high in bounds)])

    def _tolerances(self) -> Iterator[tuple[RankedMoment, float]]:
        """Return pairs of each moment and its tolerance."""
        return zip(self.moments, (self.tolerance * self._ratios).tolist(), strict=True)

    def limited(
        self,
        # The disparity allowed, as a share of the intervals; None for the same
        tolerance: float | None = None,
        surrogate: Surrogate | None = None,  # the smooth steps; None for the same
    ) -> Self:
        """Return the problem with another tolerance or other steps; the rows are shared."""
        other = copy(self)
        if surrogate is not None:
            other.moments = [moment.with_surrogate(surrogate) for moment in self.moments]
        if tolerance is not None:
            other._set_tolerance(tolerance)
        return other

    def with_objective(self, objective: BoundObjective) -> Self:
        """Return the problem with another objective; constraints and bounds are shared."""
        other = copy(self)
        other.objective = objective
        return other

    @property
    def offers(self) -> frozenset[Offer]:  # type: ignore[override]
        """The offer "on_rows" if all functions are means, which :meth:`on_rows` needs."""
        functions: list[BoundObjective | RankedMoment] = [self.objective, *self.moments]
        return frozenset(["on_rows"] * all(function.is_mean for function in functions))

    def on_rows(self, rows: IntArray, factors: FloatArray) -> Self:
        """Estimate the problem by some rows, each of which stands for ``factors`` rows.

        Parameters and bounds are the same. All functions must be means.
        """
        other = copy(self)
        other._rows = rows
        other.objective = self.objective.on_rows(rows, factors)
        other.moments = [moment.on_rows(rows, factors) for moment in self.moments]
        return other

    @property
    def n_aux(self) -> int:
        """Number of auxiliary parameters of all constraints."""
        return self.n_parameters - self.model.n_parameters

    def start(self, theta_model: FloatArray) -> FloatArray:
        """Return theta: the given weights, and auxiliary parameters that suit their scores."""
        scores, _ = self.model.forward(theta_model, self._rows)
        starts = [moment.start(scores, own) for moment, own in self._tolerances()]
        return np.concatenate([theta_model, *starts])

    def model_part(self, theta: FloatArray) -> FloatArray:
        """Return the weights w of theta."""
        return theta[: self.model.n_parameters]

    def evaluate(self, theta: FloatArray) -> PartialEvaluation:
        """Evaluate objective and constraints, by one pass through the model."""
        w = self.model_part(theta)
        count_passes(1.0 if self._rows is None else self._rows.size / self.model.n_samples)
        scores, tape = self.model.forward(w, self._rows)
        value, slopes = self.objective.evaluate(scores)
        penalty_gradient = np.zeros(w.size)
        if self.alpha:
            half_norm, penalty_gradient = self.model.penalty_parts(w)
            value += self.alpha * half_norm
        of_moments = self.evaluate_moments(scores, theta)
        return PartialEvaluation(
            problem=self,
            theta=theta,
            objective=value,
            constraints=joined(of_moments),
            scores=scores,
            tape=tape,
            objective_slopes=slopes,
            penalty_gradient=self.alpha * penalty_gradient,
            of_moments=of_moments,
        )

    def evaluate_moments(self, scores: FloatArray, theta: FloatArray) -> list[Values]:
        """Return the functions of each constraint."""
        return [
            moment.evaluate(scores, theta[self.aux_starts[k] : self.aux_starts[k + 1]])
            for k, moment in enumerate(self.moments)
        ]


def joined(of_moments: Sequence[Values]) -> FloatArray:
    """Return the values of all constraints, one after the other."""
    return np.concatenate([np.empty(0), *(moment.values for moment in of_moments)])
