r"""Sequential quadratic programming for strict limits on many groups: steps that see true rates.

Where groups are many, bounds press so much that solutions of smooth problems miss some of the true
ones by a few rows, again and again. A threshold that keeps all of them is far away, and costs most
of the accuracy. Here smooth errors of rising steepness lead near a solution, by steps

.. math:: \min_d \; g'd + \tfrac12 d'Hd
   \quad \text{subject to} \quad l \le c + J d \le u, \quad |d_i| \le r

The last steps take for c the true rates of the point, so that only their slopes are smooth: first
the least step that keeps the true bounds, then steps that make fewer errors within them. A step is
taken if errors plus a penalty of the violation fall. Otherwise it is corrected by rates that were
seen where it led, and then the box is halved. Directions along the weights are left out: they
change no decision. Where steps end a few rows beyond a bound, which no slope shows, random moves
look for a point within.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from skfair._typing import Callback, FloatArray
from skfair.enforcement.erm.refine import STEEPNESSES
from skfair.enforcement.erm.true_limits import StrictResult, TrueLimits
from skfair.enforcement.rounds import MOST_MOVES, random_moves
from skfair.losses import SmoothErrors
from skfair.problems.erm.problem import ConstrainedERM, LinearConstrainedERM
from skfair.solvers.base import SolverResult, Status
from skfair.solvers.erm.elastic_step import ElasticStep, elastic_step
from skfair.utils.history import History
from skfair.utils.rounding import ROUNDING

# Used when n_constraints >= 50, n_parameters <= 100 and every cell has >= 200 rows.
MANY_CONSTRAINTS, MOST_PARAMETERS, ROWS_PER_CELL = 50, 100, 200
ATTEMPTS = 4  # retries with true rates, each starting from tighter smooth bounds
MOST_ROWS = 3.0  # that steps of true rates aim inside
# Steps and random moves at the true bounds aim inside by this part of a row of the smallest cell.
SPARE = 0.3
LONGEST_MOVE = 0.01  # at random
MOST_STEPS = 60  # tried at one steepness
LONGEST, SHORTEST = 0.2, 1e-3  # steps, for weights of length 1
PENALTY = 20.0  # the most that a violation of 1 costs, in errors
LITTLE = 1e-5  # errors that are no progress
FLAT = 0.01  # least curvature of the objective


class Stage(NamedTuple):
    """One steepness."""

    steepness: float  # for scores whose weights have length 1
    is_true: bool = False  # whether rates and errors are true ones
    repairs: bool = False  # whether only the violation counts, as long as there is one


STEEPEST = 30.0  # smooth rates, whose slopes also serve for true ones
SMOOTH = tuple(map(Stage, (*STEEPNESSES, STEEPEST)))
REPAIR = Stage(STEEPEST, is_true=True, repairs=True)
LAST = Stage(STEEPEST, is_true=True)


class Seen(NamedTuple):
    """A point: its constraints and errors, and how far it violates the bounds."""

    w: FloatArray  # parameters of the model; the weights have length 1
    constraints: FloatArray
    errors: float
    violation: float

    def cost(self, stage: Stage, penalty: float, margin: float) -> float:
        """Return the errors, if they count, plus the penalty of the violation."""
        # Steps of true rates may use all of the bounds, wherever they aim.
        beyond = self.violation + (0.0 if stage.is_true else margin)
        return (0.0 if stage.repairs else self.errors) + penalty * max(beyond, 0.0)


def suits_rate_steps(problem: ConstrainedERM) -> bool:
    """Whether linear scores have enough rates, of enough rows each, for these steps to pay."""
    if not isinstance(problem, LinearConstrainedERM) or problem.model.is_wide:
        return False
    if problem.n_constraints < MANY_CONSTRAINTS or problem.n_parameters > MOST_PARAMETERS:
        return False
    return smallest_cell(problem) >= ROWS_PER_CELL


def smallest_cell(problem: LinearConstrainedERM) -> int:
    """Return the number of rows in the smallest cell that has any."""
    counts = [
        np.bincount(constraint.cells[constraint.row_weights > 0])
        for constraint in problem.constraints
    ]
    return int(min(of_class[of_class > 0].min() for of_class in counts))


def by_rate_steps(
    limits: TrueLimits, theta: FloatArray, callback: Callback | None
) -> StrictResult | None:
    """Return where steps from a free solution end; None if no step satisfies the true bounds.

    If a callback stops the steps, the point that they have reached is returned.
    """
    problem, steps = limits.problem, RateSteps(limits, callback)
    end = steps.run(problem.model_part(theta))
    if steps.best is None and not steps.is_stopped:
        return None
    w = end if steps.best is None else steps.best.w
    smooth = _smooth(problem, LAST.steepness)
    at = smooth.centered(w)
    offsets, _ = limits.compare(smooth, at)
    solved = smooth.bounded(problem.lower - offsets, problem.upper - offsets)
    model = _Model(solved, w, np.zeros(problem.n_constraints), repairs=False)
    lam = model.step(model.at.constraints, LONGEST, 0.0).multipliers
    status: Status = "stopped" if steps.is_stopped else "converged"
    solution = SolverResult(at, lam, steps.n_steps, status, steps.history.as_dict())
    return limits.measured(solved, solution)


class RateSteps:
    """Makes the steps; keeps the best point within the true bounds."""

    def __init__(self, limits: TrueLimits, callback: Callback | None) -> None:
        self.limits, self.problem, self.callback = limits, limits.problem, callback
        self.best: Seen | None = None  # the point of fewest true errors that keeps the true bounds
        # The weight of a row of the smallest cell
        self.row = 1 / smallest_cell(cast(LinearConstrainedERM, self.problem))
        # (n_constraints,): signed multipliers of the last steps
        self.multipliers = np.zeros(self.problem.n_constraints)
        self.history, self.n_steps, self.is_stopped = History(), 0, False

    def run(self, w: FloatArray) -> FloatArray:
        """Go through all stages; return where they end."""
        margin = 0.0
        for attempt in range(ATTEMPTS):
            for stage in SMOOTH[1:] if attempt else SMOOTH:
                w = self._at_stage(w, stage, margin)
            missed = self._repair(w)
            if self.best is not None or self.is_stopped:
                break
            # Noise of the rates is about what is missed now: room for it is made.
            margin += max(missed / self.row, 1.0)
        if self.best is not None:
            w = self._at_stage(self.best.w, LAST, SPARE)
        return w

    def _repair(self, w: FloatArray) -> float:
        """Look for a point within the true bounds nearby; return the violation at the last one."""
        w = self._at_stage(w, REPAIR, SPARE)
        return self._see(w if self.best is not None else self._move_at_random(w)).violation

    def _move_at_random(self, w: FloatArray) -> FloatArray:
        """Make random moves that bring rates nearer to the true bounds, until all are kept."""
        rng = np.random.RandomState(0)
        return random_moves(
            self._see(w),
            lambda seen: self._missed(seen) if self.best is None else 0.0,
            lambda seen, length: self._see(seen.w + length * rng.standard_normal(w.size)),
            most=0 if self.is_stopped else MOST_MOVES,
            longest=LONGEST_MOVE,
        ).w

    def _missed(self, seen: Seen) -> float:
        """Return the sum of squares of missed rows."""
        rows = _beyond(self.problem, seen.constraints) / self.row
        return float((np.maximum(rows + SPARE, 0.0) ** 2).sum())

    def _at_stage(self, w: FloatArray, stage: Stage, rows: float) -> FloatArray:
        """Make steps at one steepness; return where they end.

        They aim inside of the bounds by ``rows`` of the smallest cell.
        """
        problem = _smooth(self.problem, stage.steepness)
        see = self._see if stage.is_true else _smooth_view(problem)
        current, radius, margin = see(w), LONGEST, rows * self.row
        penalty = PENALTY if stage.repairs else 1.0
        model = _Model(problem, current.w, self.multipliers, repairs=stage.repairs)
        for _ in range(MOST_STEPS):
            is_repaired = stage.repairs and self.best is not None
            if radius <= SHORTEST or self.is_stopped or is_repaired:
                break
            step = model.step(current.constraints, radius, margin)
            self.multipliers = lam = step.multipliers
            penalty = max(penalty, min(PENALTY, 1.2 * float(np.abs(lam).sum())))
            enough = current.cost(stage, penalty, margin) - LITTLE
            size = float(np.abs(step.d).max())
            trial = see(current.w + step.d[: current.w.size])
            if trial.cost(stage, penalty, margin) > enough:
                # What surprises there does so nearby too.
                deviation = trial.constraints - current.constraints - model.jacobian @ step.d
                step = model.step(current.constraints + deviation, radius, margin)
                trial = see(current.w + step.d[: current.w.size])
            if trial.cost(stage, penalty, margin) <= enough:
                radius = min(2 * radius, LONGEST) if size > 0.9 * radius else radius
                current, model = trial, _Model(problem, trial.w, lam, repairs=stage.repairs)
                self._record(model.at.theta, current)
            else:
                radius = 0.5 * min(radius, size)
                if stage.is_true and current.violation > 0:
                    margin = min(1.3 * margin + 0.1 * self.row, MOST_ROWS * self.row)
        return current.w

    def _see(self, w: FloatArray) -> Seen:
        """Look at decisions; remember the point if it is the best."""
        problem, w = self.problem, _of_length_1(w)
        decisions = problem.decide(problem.model.forward(w)[0])
        seen = _seen(problem, w, self.limits.constraints(decisions.means), 1 - decisions.right)
        is_better = self.best is None or seen.errors < self.best.errors
        if seen.violation <= ROUNDING and is_better:
            self.best = seen
        return seen

    def _record(self, theta: FloatArray, current: Seen) -> None:
        """Write a step down and ask the callback."""
        self.n_steps += 1
        missed = max(current.violation, 0.0)
        self.history.record(iteration=self.n_steps, objective=current.errors, max_violation=missed)
        self.is_stopped = self.callback is not None and bool(self.callback(theta))


class _Model:
    """A quadratic model of smooth errors, and linear ones of rates, around a point."""

    def __init__(
        self, problem: LinearConstrainedERM, w: FloatArray, lam: FloatArray, *, repairs: bool
    ) -> None:
        self.problem, self.at = problem, problem.evaluate(problem.centered(w))
        along = np.zeros(problem.n_parameters)
        along[: w.size - 1] = w[:-1]
        across = np.eye(along.size) - np.outer(along, along)
        self.jacobian = self.at.jacobian() @ across
        if repairs:  # the least step
            self.gradient = np.zeros(along.size)
            self.hessian = np.diag(np.where(np.arange(along.size) < w.size, 1.0, FLAT))
            return
        self.gradient = across @ self.at.gradient()
        sizes, axes = np.linalg.eigh(across @ self.at.hessian(lam) @ across)
        self.hessian = (axes * np.maximum(np.abs(sizes), FLAT)) @ axes.T

    def step(self, constraints: FloatArray, radius: float, margin: float) -> ElasticStep:
        """Return the best step of the model that brings constraints within their bounds.

        Its multipliers, (n_constraints,), are above 0 at upper bounds and below 0 at lower ones.
        """
        J, problem = self.jacobian, self.problem
        least = problem.lower - constraints + margin, constraints - problem.upper + margin
        solution = elastic_step(
            self.hessian, self.gradient, np.vstack([J, -J]), np.concatenate(least), radius
        )
        below, above = np.split(solution.multipliers, 2)
        return solution._replace(multipliers=above - below)


def _smooth(problem: ConstrainedERM, steepness: float) -> LinearConstrainedERM:
    """Return the problem with smooth errors and rates for scores whose weights have length 1."""
    smooth = problem.with_loss(SmoothErrors(steepness, 1.0)).bounded(temperature=steepness)
    return cast(LinearConstrainedERM, smooth)


def _smooth_view(problem: LinearConstrainedERM) -> Callable[[FloatArray], Seen]:
    """Return what tells the smooth values at a point."""

    def see(w: FloatArray) -> Seen:
        w = _of_length_1(w)
        at = problem.evaluate(problem.centered(w))
        return _seen(problem, w, at.constraints, at.objective)

    return see


def _seen(problem: ConstrainedERM, w: FloatArray, constraints: FloatArray, errors: float) -> Seen:
    return Seen(w, constraints, errors, float(_beyond(problem, constraints).max()))


def _beyond(problem: ConstrainedERM, constraints: FloatArray) -> FloatArray:
    """Return how far each constraint is beyond its nearest bound; below 0 within both."""
    return np.maximum(problem.lower - constraints, constraints - problem.upper)


def _of_length_1(w: FloatArray) -> FloatArray:
    """Return parameters that make the same decisions, with weights of length 1."""
    return w / (float(np.linalg.norm(w[:-1])) or 1.0)
