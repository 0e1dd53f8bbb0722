r"""Sequential quadratic programming for strict limits on many groups: steps that see true rates.

:func:`skfair.enforcement.erm.strict.solve_strictly` calls :func:`by_rate_steps` in place of rounds,
if :func:`suits_rate_steps` is true of its problem. It returns the best solution within the true
bounds, or None. With many groups, solutions of smooth problems violate some true bound by a few
rows in every round, and a threshold that satisfies all bounds costs most of the accuracy. Here each
step d solves

.. math:: \min_d \; g'd + \tfrac12 d'Hd
   \quad \text{subject to} \quad l \le c + J d \le u, \quad |d_i| \le r

where g and H are derivatives of smooth errors, c are the constraints and J their derivatives. The
*stages* of :meth:`RateSteps.run` follow each other:

1. *smooth*: errors and rates are smooth, of rising steepness. These steps lead near a solution.
2. *repair*: c are the true rates of the point, and only J is smooth. The least step that satisfies
   the true bounds is taken, until a point satisfies them. If steps end a few rows beyond a bound,
   where no slope shows the way, random moves look for such a point.
3. *last*: as in repair, with fewer errors as the objective.

A step is taken if the errors plus a penalty of the violation fall. Otherwise it is corrected by
the rates that were seen at its end, and if that fails the size r of the box is halved. Steps have
no part along the weights, because it would change no decision.
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
from skfair.solvers.base import SolverResult
from skfair.solvers.erm.elastic_step import ElasticStep, elastic_step
from skfair.utils.endings import Status
from skfair.utils.history import History
from skfair.utils.rounding import ROUNDING

# The steps are used if there are at least MANY_CONSTRAINTS inequalities, at most MOST_PARAMETERS
# parameters, and at least ROWS_PER_CELL rows in every cell. A cell holds the rows over which a
# constraint averages, such as the positives of a group.
MANY_CONSTRAINTS, MOST_PARAMETERS, ROWS_PER_CELL = 50, 100, 200
ATTEMPTS = 4  # how often the stages are run, each time with tighter smooth bounds
# Steps aim inside the bounds by a number of *rows*: one row is what a row of the smallest cell adds
# to a rate. With true rates the number begins at SPARE, and grows up to MOST_ROWS after steps that
# were not taken.
MOST_ROWS, SPARE = 3.0, 0.3
LONGEST_MOVE = 0.01  # length of the first random move, for weights of length 1
MOST_STEPS = 60  # number of steps that are tried in one stage
LONGEST, SHORTEST = 0.2, 1e-3  # first and last size r of the box, for weights of length 1
PENALTY = 20.0  # largest penalty of a violation of 1, in units of errors
LITTLE = 1e-5  # a step must lower the errors plus penalty by more than this
FLAT = 0.01  # least curvature of the objective


class Stage(NamedTuple):
    """The errors and rates that steps see, and their objective."""

    steepness: float  # steepness of smooth errors and rates, for weights of length 1
    is_true: bool = False  # whether rates and errors are true ones; only slopes are then smooth
    repairs: bool = False  # whether only the violation counts, and steps end when there is none


STEEPEST = 30.0  # steepness of the smooth rates whose slopes also serve for true ones
SMOOTH = tuple(map(Stage, (*STEEPNESSES, STEEPEST)))
REPAIR = Stage(STEEPEST, is_true=True, repairs=True)
LAST = Stage(STEEPEST, is_true=True)


class Seen(NamedTuple):
    """A point: its constraints and errors, and how far it violates the bounds."""

    w: FloatArray  # parameters of the model, the intercept last; the others have length 1
    constraints: FloatArray
    errors: float  # share of wrong decisions, true or smooth
    violation: float  # largest distance beyond a bound; below 0 if all are satisfied

    def cost(self, stage: Stage, penalty: float, margin: float) -> float:
        """Return the errors, if they count in the stage, plus the penalty of the violation.

        Smooth rates must be inside the bounds by ``margin``. True rates may reach the bounds,
        although steps aim further inside.
        """
        beyond = self.violation + (0.0 if stage.is_true else margin)
        return (0.0 if stage.repairs else self.errors) + penalty * max(beyond, 0.0)


def suits_rate_steps(problem: ConstrainedERM) -> bool:
    """Whether scores are linear, constraints many, and cells large enough for these steps."""
    return problem.n_constraints >= MANY_CONSTRAINTS and has_large_cells(problem)


def has_large_cells(problem: ConstrainedERM) -> bool:
    """Whether scores are linear with few parameters, and cells large enough for these steps."""
    if not isinstance(problem, LinearConstrainedERM) or problem.model.is_wide:
        return False
    return problem.n_parameters <= MOST_PARAMETERS and smallest_cell(problem) >= ROWS_PER_CELL


def smallest_cell(problem: LinearConstrainedERM) -> int:
    """Return the number of rows in the smallest cell that has any."""
    counts = [
        np.bincount(constraint.cells[constraint.row_weights > 0])
        for constraint in problem.constraints
    ]
    return int(min(of_class[of_class > 0].min() for of_class in counts))


def by_rate_steps(
    limits: TrueLimits, theta: FloatArray, callback: Callback | None, *, is_near: bool = False
) -> StrictResult | None:
    """Return the best solution that the steps find from ``theta``.

    ``theta`` is the solution without constraints. If ``is_near``, it is a solution under slightly
    wider limits, and only the stages with true rates are run, because smooth rates would lead away
    from it. If no point satisfies the true bounds, the result is None, unless a callback has
    stopped the steps: then it is their last point.
    """
    problem, steps = limits.problem, RateSteps(limits, callback)
    start = problem.model_part(theta)
    end = steps.run_near(start) if is_near else steps.run(start)
    if steps.best is None and not steps.is_stopped:
        return None
    w = end if steps.best is None else steps.best.w
    smooth = _smooth(problem, LAST.steepness)
    at = smooth.centered(w)
    offsets, _ = limits.compare(smooth, at)
    solved = smooth.bounded(problem.lower - offsets, problem.upper - offsets)
    # The multipliers of the result are those of one more step, which is not made.
    model = _Model(solved, w, np.zeros(problem.n_constraints), repairs=False)
    lam = model.step(model.at.constraints, LONGEST, 0.0).multipliers
    status: Status = "stopped" if steps.is_stopped else "converged"
    solution = SolverResult(at, lam, steps.n_steps, status, steps.history.as_dict())
    return limits.measured(solved, solution)


class RateSteps:
    """Makes the steps, and keeps the best point within the true bounds."""

    def __init__(self, limits: TrueLimits, callback: Callback | None) -> None:
        self.limits, self.problem, self.callback = limits, limits.problem, callback
        # The point with the fewest true errors within the true bounds; None if none was seen
        self.best: Seen | None = None
        # Change of a rate by one row of the smallest cell
        self.row = 1 / smallest_cell(cast(LinearConstrainedERM, self.problem))
        # (n_constraints,): signed multipliers of the last step
        self.multipliers = np.zeros(self.problem.n_constraints)
        self.history, self.n_steps, self.is_stopped = History(), 0, False

    def run(self, w: FloatArray) -> FloatArray:
        """Go through all stages, and return the last point."""
        margin = 0.0
        for attempt in range(ATTEMPTS):
            for stage in SMOOTH[1:] if attempt else SMOOTH:
                w = self._at_stage(w, stage, margin)
            missed = self._repair(w)
            if self.best is not None or self.is_stopped:
                break
            # The next attempt aims further inside by the present violation, because true rates
            # differ from smooth ones by about as much.
            margin += max(missed / self.row, 1.0)
        return self._improved(w)

    def run_near(self, w: FloatArray) -> FloatArray:
        """Go through the stages with true rates only, and return the last point."""
        w = _of_length_1(w)
        self._repair(w)
        return self._improved(w)

    def _improved(self, w: FloatArray) -> FloatArray:
        """Return the end of the last stage, which starts at the best point, or ``w`` if none is."""
        return w if self.best is None else self._at_stage(self.best.w, LAST, SPARE)

    def _repair(self, w: FloatArray) -> float:
        """Look for a point within the true bounds; return the violation of the last one seen."""
        w = self._at_stage(w, REPAIR, SPARE)
        return self._see(w if self.best is not None else self._move_at_random(w)).violation

    def _move_at_random(self, w: FloatArray) -> FloatArray:
        """Make random moves towards the true bounds, until a point satisfies all of them."""
        rng = np.random.RandomState(0)
        return random_moves(
            self._see(w),
            lambda seen: self._missed(seen) if self.best is None else 0.0,
            lambda seen, length: self._see(seen.w + length * rng.standard_normal(w.size)),
            most=0 if self.is_stopped else MOST_MOVES,
            longest=LONGEST_MOVE,
        ).w

    def _missed(self, seen: Seen) -> float:
        """Return the sum of squared violations, in rows, of bounds that are SPARE rows tighter."""
        rows = _beyond(self.problem, seen.constraints) / self.row
        return float((np.maximum(rows + SPARE, 0.0) ** 2).sum())

    def _at_stage(self, w: FloatArray, stage: Stage, rows: float) -> FloatArray:
        """Make the steps of one stage, and return the last point.

        The steps aim inside the bounds by ``rows``, in units of a row of the smallest cell.
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
            enough = current.cost(stage, penalty, margin) - LITTLE  # a step must not cost more
            size = float(np.abs(step.d).max())
            trial = see(current.w + step.d[: current.w.size])
            if trial.cost(stage, penalty, margin) > enough:
                # The constraints at the end of the step differ from the linear model by
                # ``deviation``. The corrected step ends nearby, so the same deviation is expected
                # at its end.
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
        """Return a point with its true rates and errors, and keep it if it is the best."""
        problem, w = self.problem, _of_length_1(w)
        decisions = problem.decide(problem.model.forward(w)[0])
        seen = _seen(problem, w, self.limits.constraints(decisions.means), 1 - decisions.right)
        is_better = self.best is None or seen.errors < self.best.errors
        if seen.violation <= ROUNDING and is_better:
            self.best = seen
        return seen

    def _record(self, theta: FloatArray, current: Seen) -> None:
        """Add a step to the history, and ask the callback whether to stop."""
        self.n_steps += 1
        missed = max(current.violation, 0.0)
        self.history.record(iteration=self.n_steps, objective=current.errors, max_violation=missed)
        self.is_stopped = self.callback is not None and bool(self.callback(theta))


class _Model:
    """A quadratic model of smooth errors, and linear models of rates, around a point.

    ``lam`` (n_constraints,) are signed multipliers. If the stage repairs, the squared length of the
    step takes the place of the errors.
    """

    def __init__(
        self, problem: LinearConstrainedERM, w: FloatArray, lam: FloatArray, *, repairs: bool
    ) -> None:
        self.problem, self.at = problem, problem.evaluate(problem.centered(w))
        along = np.zeros(problem.n_parameters)
        along[: w.size - 1] = w[:-1]
        across = np.eye(along.size) - np.outer(along, along)  # removes the part along the weights
        self.jacobian = self.at.jacobian() @ across
        if repairs:
            self.gradient = np.zeros(along.size)
            self.hessian = np.diag(np.where(np.arange(along.size) < w.size, 1.0, FLAT))
            return
        self.gradient = across @ self.at.gradient()
        # Negative curvatures are replaced by their size, so that the model has a minimum.
        sizes, axes = np.linalg.eigh(across @ self.at.hessian(lam) @ across)
        self.hessian = (axes * np.maximum(np.abs(sizes), FLAT)) @ axes.T

    def step(self, constraints: FloatArray, radius: float, margin: float) -> ElasticStep:
        """Return the step of least model value after which constraints are within their bounds.

        ``constraints`` are their values before the step, and ``margin`` is how far inside the
        bounds it aims. The multipliers of the step (n_constraints,) are above 0 at upper bounds and
        below 0 at lower ones.
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
    """Return a function that gives a point with its smooth rates and errors."""

    def see(w: FloatArray) -> Seen:
        w = _of_length_1(w)
        at = problem.evaluate(problem.centered(w))
        return _seen(problem, w, at.constraints, at.objective)

    return see


def _seen(problem: ConstrainedERM, w: FloatArray, constraints: FloatArray, errors: float) -> Seen:
    """Return a point with the violation of its constraints."""
    return Seen(w, constraints, errors, float(_beyond(problem, constraints).max()))


def _beyond(problem: ConstrainedERM, constraints: FloatArray) -> FloatArray:
    """Return how far each constraint is beyond its nearest bound; below 0 within both."""
    return np.maximum(problem.lower - constraints, constraints - problem.upper)


def _of_length_1(w: FloatArray) -> FloatArray:
    """Return parameters that make the same decisions, with weights of length 1."""
    return w / (float(np.linalg.norm(w[:-1])) or 1.0)
