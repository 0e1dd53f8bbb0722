"""The judge of smooth solutions: true values of rates at the best threshold.

A :class:`Judge` knows the true bounds. It measures solutions, compares true with smooth values of
the constraints, and chooses among all that were measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.thresholds.scan import Threshold, ThresholdScan
from skfair.enforcement.thresholds.search import ThresholdSearch
from skfair.problems.erm.in_blocks import PartitionedERM
from skfair.problems.erm.in_memory import ConstrainedERM
from skfair.problems.erm.problem import Decisions, RuledProblem
from skfair.solvers.base import SolverResult
from skfair.utils.rounding import ROUNDING

SLACK = 0.004  # training accuracy that errors have to gain, as they fit noise as well
USED = 0.85  # share of a bound from which on it counts as reached


class StrictResult(NamedTuple):
    """A solution and what it is worth."""

    # The smooth problem that was solved, with its loss, bounds and temperature
    problem: RuledProblem
    result: SolverResult  # its solution
    shift: float = 0.0  # what is added to its scores
    scale: float = 1.0  # what its scores are then multiplied by
    is_feasible: bool = True  # whether the true bounds are kept
    is_constant: bool = False  # whether that takes the same prediction for everybody
    n_solves: int = 1  # number of smooth problems that were solved
    quality: float = 0.0  # accuracy, or minus the objective where no constraint is on rates
    excess: float = 0.0  # largest true disparity minus its bound
    level: int = 0  # how far along the path, from smooth to steep


class TrueValues(NamedTuple):
    """True and smooth values of the constraints at one point."""

    differences: FloatArray  # true minus smooth values
    violation: float  # of the true bounds
    is_used: bool  # whether the true bounds are nearly reached, or do not bind


class Judge:
    """Measures solutions by the true values of the constraints."""

    def __init__(
        self,
        problem: RuledProblem,  # its bounds are those that the true values must keep
        # ``min_gap(theta) -> float``: differences of scores that rounding may cause
        min_gap: Callable[[FloatArray], float],
        is_classifier: bool,  # whether solutions are compared by accuracy (else by the objective)
        slack: float = SLACK,  # accuracy that a later level has to gain
    ) -> None:
        self.problem, self.min_gap, self.is_classifier = problem, min_gap, is_classifier
        self.free = problem.relaxed()
        is_rate = [rule.moment.is_rate for rule in problem.rules]
        self.has_rates = any(is_rate)
        self._has_scan = is_classifier and all(is_rate)
        self.by_accuracy = is_classifier and self.has_rates
        self.slack = slack if self.by_accuracy else 0.0
        self._last: tuple[FloatArray, Decisions] | None = None  # a point and its decisions

    @cached_property
    def scan(self) -> Callable[[Any, float], Threshold] | None:
        """What finds the best threshold; None unless all constraints are on rates of decisions."""
        problem = self.problem
        if not self._has_scan:
            return None
        if isinstance(problem, PartitionedERM):
            return ThresholdSearch(problem)
        assert isinstance(problem, ConstrainedERM)
        return ThresholdScan(problem.rules, problem.targets, problem.everything.loss_weights)

    def measured(self, problem: RuledProblem, result: SolverResult, level: int) -> StrictResult:
        """Measure a solution by its true disparities, at its best threshold."""
        scores = problem.scores(result.theta)
        if self.scan is not None:
            cut = self.scan(scores, self.min_gap(result.theta))
            return StrictResult(
                problem,
                result,
                shift=cut.shift,
                is_feasible=cut.is_feasible,
                is_constant=cut.is_constant,
                quality=cut.accuracy,
                excess=cut.excess,
                level=level,
            )
        means = problem.decide(scores).means
        beyond = [
            rule.disparity_of_means(of_cells) - rule.max_disparity
            for rule, of_cells in zip(problem.rules, means, strict=True)
        ]
        excess, quality = max(beyond, default=0.0), self.quality(result.theta)
        is_kept = excess <= 0
        return StrictResult(
            problem, result, is_feasible=is_kept, quality=quality, excess=excess, level=level
        )

    def quality(self, theta: FloatArray) -> float:
        """Return the accuracy at the threshold 0, or minus the objective."""
        if self.by_accuracy:
            return self._decisions(theta).right
        return -self.free.evaluate(self.problem.model_part(theta)).objective

    def _decisions(self, theta: FloatArray) -> Decisions:
        """Return the decisions at the threshold 0; those of the last point are kept."""
        if self._last is None or not np.array_equal(self._last[0], theta):
            self._last = theta.copy(), self.problem.decide(self.problem.scores(theta))
        return self._last[1]

    def compare(
        self, problem: RuledProblem, theta: FloatArray, multipliers: FloatArray | None
    ) -> TrueValues:
        """Compare true with smooth values, every centre in the middle of its rates."""
        lower, upper = self.problem.lower, self.problem.upper
        means = self._decisions(theta).means
        true = self.constraints(means)
        beyond = np.maximum(lower - true, true - upper)
        is_reached = any(
            rule.disparity_of_means(of_cells) >= USED * rule.max_disparity
            for rule, of_cells in zip(self.problem.rules, means, strict=True)
        )
        return TrueValues(
            true - problem.evaluate(theta).constraints,
            float(beyond.max(initial=-np.inf)),
            is_reached or not np.any(multipliers),
        )

    def constraints(self, means: Sequence[FloatArray]) -> FloatArray:
        """Return the constraints at true cell means, every centre in the middle of its rates."""
        values = [
            r.row_values(of_cells) for r, of_cells in zip(self.problem.rules, means, strict=True)
        ]
        rows = self.problem.constraint_rows
        return rows.from_middles(rows.joined(values))

    def best(self, candidates: Sequence[StrictResult]) -> StrictResult:
        """Return the first step on the path whose best solution is about as good as any."""
        feasible = [c for c in candidates if c.is_feasible and not c.is_constant]
        feasible = feasible or [c for c in candidates if c.is_feasible]
        if not feasible:
            return min(candidates, key=lambda c: c.excess)
        best = max(c.quality for c in feasible)
        good = [c for c in feasible if c.quality >= best - self.slack - ROUNDING]
        lowest = min(c.level for c in good)
        coolest = [c for c in good if c.level == lowest]
        best = max(c.quality for c in coolest) - ROUNDING
        return next(c for c in coolest if c.quality >= best)
