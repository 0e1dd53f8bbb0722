"""The true limits of a problem: what a solution reaches, and how solutions are compared.

Solvers see smooth rates, and predictions have true ones. What the limits are on decides how a
solution is read, what makes one better than another, and what is learned if it violates a limit:

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

SLACK = 0.004  # training accuracy that errors have to gain, as they fit noise as well
USED = 0.85  # share of a limit from which on it counts as reached
# How far inside to aim where rates are limited, too, times the misses before: a share of what was
# missed, as their differences make up for the rest, and about a row at least. Without it 27 of 160
# fits of rates and losses missed their limits, now one.
INSIDE, ABOUT_A_ROW = 0.5, 1e-3


@dataclass(frozen=True)
class StrictResult:
    """A solution of a smooth problem, and the verdict on it."""

    # The smooth problem that was solved, with its loss, bounds and temperature
    problem: ConstrainedERM
    result: SolverResult  # its solution
    verdict: Verdict  # its merit: accuracy, or minus the objective without constraints on rates
    shift: float = 0.0  # what is added to its scores
    scale: float = 1.0  # what its scores are then multiplied by
    is_constant: bool = False  # whether limits take the same prediction for everybody
    n_solves: int = 1  # number of smooth problems that were solved
    level: int = 0  # how far along the path, from smooth to steep

    @property
    def is_sound(self) -> bool:
        """Whether limits are satisfied without the same prediction for everybody."""
        return self.verdict.is_feasible and not self.is_constant

    @property
    def is_stopped(self) -> bool:
        """Whether a callback stopped the solver."""
        return self.result.status == "stopped"


class TrueLimits:
    """What the three cases share: the true values of constraints, and their bounds."""

    has_threshold: ClassVar[bool] = False  # whether solutions are taken at their best threshold
    slack: ClassVar[float] = SLACK  # merit that a later level of the path has to gain
    # Share of a newly seen difference of true and smooth values that bounds are moved by
    damping: ClassVar[float] = DAMPING

    def __init__(self, problem: ConstrainedERM) -> None:
        self.problem = problem  # its bounds are those that the true values must keep
        self.free = problem.relaxed()  # the same problem without constraints
        self._last: tuple[FloatArray, Decisions] | None = None  # a point and its decisions

    def measured(self, problem: ConstrainedERM, result: SolverResult) -> StrictResult:
        """Return a solution of a smooth problem with the verdict of the true limits on it."""
        cut = self._cut(result.theta)
        return StrictResult(problem, result, cut.verdict, cut.shift, is_constant=cut.is_constant)

    def merit(self, theta: FloatArray) -> float:
        """Return what solutions are compared by, at the threshold 0: the accuracy."""
        return self._decisions(theta).right

    def further_inside(self, missed: FloatArray, n_missed: int) -> FloatArray:
        """Return how much further inside of the bounds the next round aims.

        ``missed`` (n_constraints,) is by how much true bounds are missed, in the ``n_missed``-th
        round that misses one.
        """
        raise NotImplementedError

    def _cut(self, theta: FloatArray) -> Threshold:
        """Return the threshold that a solution is taken at, and the verdict: here it is 0."""
        means = self.problem.decide(self.problem.scores(theta)).means
        over = excesses(self.problem.constraints, means)
        verdict = Verdict(self.merit(theta), float(over.max(initial=0.0)))
        return Threshold(0.0, verdict, is_constant=False)

    def _decisions(self, theta: FloatArray) -> Decisions:
        """Return the decisions at the threshold 0; those of the last point are kept."""
        if self._last is None or not np.array_equal(self._last[0], theta):
            self._last = theta.copy(), self.problem.decide(self.problem.scores(theta))
        return self._last[1]

    def compare(self, problem: ConstrainedERM, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return true minus smooth values, and how far true ones are beyond the true bounds.

        Every centre is in the middle of its rates.
        """
        true = self.constraints(self._decisions(theta).means)
        beyond = np.maximum(self.problem.lower - true, true - self.problem.upper)
        return true - problem.evaluate(theta).constraints, beyond

    def constraints(self, means: Sequence[FloatArray]) -> FloatArray:
        """Return the constraints at true cell means, every centre in the middle of its rates."""
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
        """Return how far inside of the bounds solves of this tolerance aim: 0 for rates."""
        is_exact = [np.full(r.upper.size, not r.moment.is_rate) for r in self.problem.constraints]
        wanted = 2 * tol * np.concatenate([np.empty(0), *is_exact])
        # Not past the middle: of a limit of 0 both bounds are 0, and no point would be inside.
        return np.minimum(wanted, 0.25 * (self.problem.upper - self.problem.lower))


class OnMeans(TrueLimits):
    """Limits on mean losses or scores."""

    slack = 0.0
    damping = 1.0  # means of losses and scores are smooth themselves: only a tolerance is between

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
        """Search of the best threshold, given scores and how far apart rounding may bring two."""
        problem, weights = self.problem, self.problem.everything.loss_weights
        strict = StrictEvaluation.of_scores(problem.constraints, problem.targets, weights)
        return partial(best_threshold, strict)

    def _cut(self, theta: FloatArray) -> Threshold:
        return self.threshold(self.problem.scores(theta), self.problem.model.rounding(theta))

    def further_inside(self, missed: FloatArray, n_missed: int) -> FloatArray:
        return np.zeros_like(missed)  # the threshold brings solutions inside


def true_limits(problem: ConstrainedERM, *, is_classifier: bool) -> TrueLimits:
    """Return the true limits of a problem, by what its constraints are on.

    A classifier without constraints has nothing but decisions either.
    """
    is_rate = [bound.moment.is_rate for bound in problem.constraints]
    if is_classifier and all(is_rate):
        return OnRates(problem)
    return OnRatesAndMeans(problem) if any(is_rate) else OnMeans(problem)
