"""The true limits of a problem: the disparities that a solution reaches, and how solutions compare.

Solvers see smooth rates, while limits are on the true rates of predictions. ``strict.py`` makes a
:class:`TrueLimits` of its problem by :func:`true_limits`, and the rounds of ``path.py`` ask it for
the verdict on each solution (:meth:`TrueLimits.measured`), and for the differences of true and
smooth values (:meth:`TrueLimits.compare`). There are three cases, by what the limits are on:

- :class:`OnMeans`: no limit is on rates, only on mean losses or scores. The better solution has the
  lower objective.
- :class:`OnRatesAndMeans`: some limits are on rates of decisions. The better solution is the more
  accurate one. The threshold stays, because the other limits depend on the scores.
- :class:`OnRates`: all limits are on rates, so that only decisions count. Each solution is taken at
  its best threshold, and the better one is the more accurate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.erm.thresholds import best_threshold
from skfair.enforcement.rounds import DAMPING
from skfair.enforcement.strict_evaluation import StrictEvaluation, Threshold, Verdict, excesses
from skfair.problems.erm.problem import ConstrainedERM, Decisions
from skfair.solvers.base import SolverResult

# Smooth errors must gain more training accuracy than this to replace a solution with the loss,
# because they also fit noise.
SLACK = 0.004
USED = 0.85  # a limit counts as reached if the disparity is at least this share of it
# With limits on rates and means, violated bounds move further inside after each round: by the share
# INSIDE of the violation, but at least by ABOUT_A_ROW, times the number of rounds before that had a
# violation. Without this, 27 of 160 fits of rates and losses missed their limits. With it, one did.
INSIDE, ABOUT_A_ROW = 0.5, 1e-3


@dataclass(frozen=True)
class StrictResult:
    """A solution of a smooth problem, and the verdict on it."""

    # The smooth problem that was solved, with its loss, bounds and temperature
    problem: ConstrainedERM
    result: SolverResult  # the solution of the smooth problem
    verdict: Verdict  # the merit is accuracy; if no rates are limited, minus the objective
    shift: float = 0.0  # number that is added to the scores
    scale: float = 1.0  # number that the shifted scores are multiplied by
    is_constant: bool = False  # whether the best threshold gives all rows the same prediction
    n_solves: int = 1  # number of smooth problems that were solved
    level: int = 0  # level of the path: 0 with the loss, more with smooth errors
    # Parameters of the model without constraints, on the rows of the walk; None if the walk ended
    # there
    free: FloatArray | None = None

    @property
    def is_sound(self) -> bool:
        """Whether limits are satisfied, and not by the same prediction for all rows."""
        return self.verdict.is_feasible and not self.is_constant

    @property
    def is_stopped(self) -> bool:
        """Whether a callback stopped the solver."""
        return self.result.status == "stopped"


class TrueLimits:
    """Base of the three cases: the true values of constraints, and their bounds."""

    has_threshold: ClassVar[bool] = False  # whether solutions are taken at their best threshold
    slack: ClassVar[float] = SLACK  # merit that a later level of the path has to gain
    # Bounds are moved by this share of a newly seen difference of true and smooth values
    damping: ClassVar[float] = DAMPING

    def __init__(self, problem: ConstrainedERM) -> None:
        self.problem = problem  # the problem whose bounds limit the true values
        self.free = problem.relaxed()  # the same problem without constraints
        self._last: tuple[FloatArray, Decisions] | None = None  # a point and its decisions

    @property
    def has_local_optima(self) -> bool:
        """Whether solutions under the limits often are local optima with an avoidable loss."""
        return False

    def measured(self, problem: ConstrainedERM, result: SolverResult) -> StrictResult:
        """Return a solution of a smooth problem with the verdict of the true limits on it."""
        cut = self._cut(result.theta)
        return StrictResult(problem, result, cut.verdict, cut.shift, is_constant=cut.is_constant)

    def merit(self, theta: FloatArray) -> float:
        """Return the number by which solutions are compared, here the accuracy at threshold 0."""
        return self._decisions(theta).right

    def best_constant(self) -> float:
        """Return the best merit of the same decision for all rows, if solutions have a threshold.

        It is -inf if no such decision satisfies the limits, if nothing is limited, or if the
        threshold of solutions stays.
        """
        return -np.inf

    def further_inside(self, missed: FloatArray, n_missed: int) -> FloatArray:
        """Return how much further inside the bounds the next round aims, (n_constraints,).

        ``missed`` (n_constraints,) is how far true values are beyond their bounds. ``n_missed`` is
        the number of rounds so far in which some true value was.
        """
        raise NotImplementedError

    def _cut(self, theta: FloatArray) -> Threshold:
        """Return the threshold of a solution and the verdict there; here the threshold is 0."""
        means = self.problem.decide(self.problem.scores(theta)).means
        over = excesses(self.problem.constraints, means)
        verdict = Verdict(self.merit(theta), float(over.max(initial=0.0)))
        return Threshold(0.0, verdict, is_constant=False)

    def _decisions(self, theta: FloatArray) -> Decisions:
        """Return the decisions at threshold 0; the last ones are cached."""
        if self._last is None or not np.array_equal(self._last[0], theta):
            self._last = theta.copy(), self.problem.decide(self.problem.scores(theta))
        return self._last[1]

    def compare(self, problem: ConstrainedERM, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return true minus smooth values, and how far true values are beyond the true bounds.

        Both have the shape (n_constraints,). The second is negative within the bounds.
        """
        true = self.constraints(self._decisions(theta).means)
        beyond = np.maximum(self.problem.lower - true, true - self.problem.upper)
        return true - problem.evaluate(theta).constraints, beyond

    def constraints(self, means: Sequence[FloatArray]) -> FloatArray:
        """Return the constraints at true cell means, if each centre is in the middle of its rates.

        A centre is a free parameter from which rates are measured.
        """
        values = [
            bound.row_values(of_cells)
            for bound, of_cells in zip(self.problem.constraints, means, strict=True)
        ]
        rows = self.problem.constraint_rows
        return rows.from_middles(rows.joined(values))

    def is_used(self, theta: FloatArray) -> bool:
        """Whether a true limit is nearly reached."""
        return any(
            bound.disparity_of_means(means) >= USED * bound.max_disparity
            for bound, means in zip(
                self.problem.constraints, self._decisions(theta).means, strict=True
            )
        )

    def margin(self, tol: float) -> FloatArray:
        """Return how far inside the bounds a solve of this tolerance aims, (n_constraints,).

        It is 0 for rates, whose true values differ from smooth ones by more than a tolerance.
        """
        is_exact = [np.full(r.upper.size, not r.moment.is_rate) for r in self.problem.constraints]
        wanted = 2 * tol * np.concatenate([np.empty(0), *is_exact])
        # At most a quarter of the width, because a limit of 0 leaves no room inside its bounds.
        return np.minimum(wanted, 0.25 * (self.problem.upper - self.problem.lower))


class OnMeans(TrueLimits):
    """Limits on mean losses or scores."""

    slack = 0.0
    damping = 1.0  # true values are smooth here, so they differ from smooth ones by a tolerance

    @property
    def has_local_optima(self) -> bool:
        """Whether differences of losses are limited, which are not convex."""
        bounds = self.problem.constraints
        return any(b.moment.unit == "loss" and not b.comparison.is_cap for b in bounds)

    def merit(self, theta: FloatArray) -> float:
        return -self.free.evaluate(self.problem.model_part(theta)).objective

    def further_inside(self, missed: FloatArray, n_missed: int) -> FloatArray:
        return missed


class OnRatesAndMeans(TrueLimits):
    """Limits on rates of decisions, and on mean losses or scores."""

    def further_inside(self, missed: FloatArray, n_missed: int) -> FloatArray:
        some = np.maximum(INSIDE * missed, ABOUT_A_ROW)
        return np.where(missed > 0, (n_missed - 1) * some, 0.0)


class OnRates(TrueLimits):
    """Limits on rates of decisions, and on nothing else."""

    has_threshold = True

    @cached_property
    def threshold(self) -> Callable[[FloatArray, float], Threshold]:
        """Function that finds the best threshold, given scores and the smallest gap for one."""
        problem, weights = self.problem, self.problem.everything.loss_weights
        strict = StrictEvaluation.of_scores(problem.constraints, problem.targets, weights)
        return partial(best_threshold, strict)

    def best_constant(self) -> float:
        best = -np.inf
        for score in (1.0, -1.0) if self.problem.constraints else ():
            decisions = self.problem.decide(np.full(self.problem.targets.size, score))
            over = excesses(self.problem.constraints, decisions.means)
            if Verdict(excess=float(over.max())).is_feasible:
                best = max(best, decisions.right)
        return best

    def _cut(self, theta: FloatArray) -> Threshold:
        return self.threshold(self.problem.scores(theta), self.problem.model.rounding(theta))

    def further_inside(self, missed: FloatArray, n_missed: int) -> FloatArray:
        return np.zeros_like(missed)  # the threshold brings solutions inside


def true_limits(problem: ConstrainedERM, *, is_classifier: bool) -> TrueLimits:
    """Return the true limits of a problem, by what its constraints are on.

    A classifier without constraints counts as one with limits on rates only.
    """
    is_rate = [bound.moment.is_rate for bound in problem.constraints]
    if is_classifier and all(is_rate):
        return OnRates(problem)
    return OnRatesAndMeans(problem) if any(is_rate) else OnMeans(problem)
