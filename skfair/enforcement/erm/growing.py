"""Strict enforcement over very many rows: the first rounds on a few of them, the last on all.

A few rows say about where the solution at the first temperature lies. Corrected by what all rows
say there, they lead on to that of all, under bounds that are shifted by what is true of all rows.
Steeper rates are left out: of a few rows they fit the noise. Where the constraints cost much
accuracy, and errors fitted to the few promise to gain some, smooth errors of all rows follow. Where
the few rows say too little (the constraints do not bind there, or cannot be kept, or these solves
miss the limits) the whole path is walked on all rows, unless the path on the few ends with smooth
errors: then those of all rows begin there.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from skfair._typing import FloatArray
from skfair.enforcement.erm.judge import SLACK, Candidate, Judge, StrictResult
from skfair.enforcement.erm.path import Path, Shifting
from skfair.enforcement.rounds import MAX_ROUNDS, PATIENCE, Place, SolveOptions
from skfair.losses import sigmoid
from skfair.problems.erm.problem import RuledProblem
from skfair.problems.erm.summed import SummedERM
from skfair.solvers.base import Solver, SolverResult
from skfair.solvers.erm.by_sample import BySample

ROUGH_TOL = 2e-3  # of the first solve on all rows
# Where rates of all rows bend unlike those of the few, a solve costs more than the path.
MOST_STEPS = 20
CLOSE = 0.02  # true disparities this far from their limits, as a share of them, have reached them
# True rates change so many times as fast as smooth ones, at least and at most.
RATIOS = 0.7, 4.0
ROOM = 0.1  # share of a limit that a sample may miss: that is decided on all rows


class ManyRowsPath(Path):
    """A path on rows so many that their scores say how a shift of bounds moves true rates."""

    n_rough = 0  # solves whose threshold was not scanned

    @property
    def room(self) -> float:
        """By how much a limit may be missed where rounds end."""
        return ROOM * self.judge.least_limit

    def damping(self, problem: RuledProblem, theta: FloatArray) -> float:
        """Return the share of a newly seen difference to believe.

        Bounds that move by x move smooth values by x, and true ones by x times the ratio of their
        slopes.
        """
        return 1 / slope_ratio(self.judge.problem.scores(theta), problem.temperature)

    def counted(self, result: StrictResult) -> StrictResult:
        """Return a result that says how many problems were solved."""
        return result._replace(n_solves=len(self.candidates) + self.n_rough)

    def _tol_of_steps(self) -> float:
        return float(self.tol)


def slope_ratio(scores: FloatArray, temperature: float) -> float:
    """Return about how much faster true rates change than smooth ones, if scores shift."""
    near = np.partition(np.abs(scores), scores.size // 8)[scores.size // 8]
    smooth = sigmoid(temperature * scores)
    slope = temperature * float(np.mean(smooth * (1 - smooth)))
    return float(np.clip(1 / (16 * near * slope + 1e-300), *RATIOS))


class Closing(Shifting):
    """Rounds on all rows that begin close to the solution.

    First come rough ones, whose thresholds are not scanned: they only move the bounds.
    """

    path: ManyRowsPath

    def __init__(self, path: ManyRowsPath, problem: RuledProblem, offsets: FloatArray) -> None:
        super().__init__(path, problem, offsets)
        # True limits are aimed at from inside, or their last bit costs a shift of the threshold.
        self.margin = path.margin + 0.25 * CLOSE * path.judge.least_limit
        self.is_rough, self.is_sound = True, False
        self.share = 1.0  # of what true rates ask for

    def keep(self, problem: RuledProblem, result: SolverResult) -> bool:
        """Keep a solution, if it is not a rough one; return whether it was reached."""
        if not self.is_rough or result.status == "stopped":
            return super().keep(problem, result)
        self.path.n_rough += 1
        self.is_sound = result.status == "converged"
        return self.is_sound

    def move(self, problem: RuledProblem, result: SolverResult) -> bool:
        """Shift the bounds by what is seen; return whether that may still gain something."""
        judge = self.path.judge
        seen = judge.compare(problem, result.theta, result.multipliers)
        self.is_settled = abs(seen.violation) <= CLOSE * judge.least_limit
        if self.is_settled and self.is_rough:
            return False  # what is solved precisely keeps its bounds: true rates jump if they move
        missed = abs(seen.violation)
        if missed > 0.5 * self._before:  # bounds that were moved too far move less far back
            self.share *= 0.5
        self._before = missed
        damping = self.share * self.path.damping(problem, result.theta)
        self.offsets = self.offsets + damping * (seen.differences - self.offsets)
        if self.is_settled:
            last = self.path.candidates[-1]
            # A threshold that had to be shifted far to satisfy the limits costs accuracy.
            needs_no_shift = last.quality >= judge.quality(result.theta) - 0.1 * SLACK
            self.is_settled = last.solution.is_feasible and needs_no_shift
        return not self.is_settled


def close_on_all_rows(
    judge: Judge,  # of all rows
    closed: StrictResult,  # of the sample
    solver: Solver,
    params: SolveOptions,
) -> Candidate | None:
    """Go on from a solution of a sample; None if limits are then not kept, or not used."""
    problem = cast(SummedERM, judge.problem)
    path = ManyRowsPath(judge, solver, params)
    smooth = problem.bounded(temperature=closed.problem.temperature)
    start = Place(smooth.centered(closed.result.theta), closed.result.multipliers)
    # Where a bound presses, it stood at the smooth value.
    at, seen = smooth.evaluate(start.theta), judge.compare(smooth, *start).differences
    lam = closed.result.multipliers
    stood = np.where(lam > 0, problem.upper, problem.lower) - at.constraints
    offsets = seen + (1 - path.damping(smooth, start.theta)) * np.where(lam == 0, 0.0, stood - seen)
    rounds, curvature = Closing(path, smooth, offsets), smooth.curvature(at, lam)
    most = min(MOST_STEPS, params.get("max_iter", MOST_STEPS))
    short: SolveOptions = {**path.params, "max_iter": most}
    # Until true rates are close, a solution is off by its bounds, not by what is left of residuals.
    near: SolveOptions = {**short, "tol": max(path.tol, 0.25 * CLOSE * judge.least_limit)}
    # Bounds that move a little leave little residual: a step follows them.
    exact, follow = BySample(solver, curvature), BySample(solver, curvature, least_steps=1)
    place = rounds.run(exact, start, 1, {**short, "tol": max(path.tol, ROUGH_TOL)})
    for _ in range(PATIENCE):
        rounds.is_rough = True
        if rounds.is_sound and not rounds.is_settled:
            place = rounds.run(follow, place, MAX_ROUNDS, near)
        if not rounds.is_sound:
            break
        rounds.is_rough = False
        place = rounds.run(exact, place, 1, short)
        if rounds.is_settled or path.is_stopped:
            break
    if not path.candidates:
        return None
    best = path.candidates[-1]
    is_sound = rounds.is_settled and best.solution.result.status == "converged"
    if not path.is_stopped and (not is_sound or best.solution.is_constant):
        return None
    return best._replace(
        solution=path.counted(path.best().solution if path.is_stopped else best.solution)
    )
