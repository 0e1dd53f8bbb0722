"""Where constraints cost much accuracy: from the loss to smooth errors, and back to scores.

There few decisions can be right, and the loss is dominated by those that are wrong. Errors that are
smooth enough have few local optima, and lead near a good one of the steeper ones. The scores are
scaled afterwards so that the loss is least, which changes no decision; so are those of networks.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from skfair._typing import FloatArray
from skfair.enforcement.erm.judge import Judge, StrictResult
from skfair.enforcement.erm.path import Path
from skfair.enforcement.rounds import MAX_ROUNDS
from skfair.losses import SmoothErrors
from skfair.problems.erm.in_memory import ConstrainedERM
from skfair.problems.erm.problem import RuledProblem

STEEPNESSES = (3.0, 10.0)  # of smooth errors and rates, for scores of size 1
SIZES = (1e-3, 1e3)  # of scores, within which they may be scaled afterwards
LESS = 0.98  # share of the loss down to which a multiple must bring it, where no errors were fitted


def refine(path: Path, result: StrictResult) -> StrictResult:
    """Go on from a solution of linear scores with smooth errors in place of the loss."""
    problem = path.judge.problem
    start = result.result._replace(theta=shifted(problem, result))
    for steepness in STEEPNESSES:
        unit = _spread(problem.model_part(start.theta))
        if path.is_stopped or not unit > 0:
            break
        aimed = problem.with_loss(SmoothErrors(steepness, unit))
        aimed = aimed.bounded(temperature=steepness / unit)
        path.level += 1
        start = start._replace(theta=aimed.centered(start.theta))
        start = path.rounds(aimed, start, MAX_ROUNDS if steepness == STEEPNESSES[-1] else 1)
    best = path.best()
    if best.problem.loss is path.judge.problem.loss:
        return best
    return best._replace(scale=fitted_scale(path, best))


def fitted_scale(path: Path, result: StrictResult) -> float:
    """Return the multiple of the scores of a solution that has the least loss."""
    free, theta = path.judge.free, shifted(path.judge.problem, result)

    def slope(scale: float) -> float:  # rises: the loss is convex
        return float(theta @ free.evaluate(scale * theta).gradient())

    if isinstance(free, ConstrainedERM):  # rows in memory need their scores once
        scores, weights = free.scores(theta), free.everything.loss_weights
        penalty = float(theta @ free.evaluate(theta).penalty_gradient)

        def slope(scale: float) -> float:
            of_rows = free.loss.parts(scale * scores, free.targets).slope
            return float(weights @ (of_rows * scores)) + scale * penalty

    return _flattest(slope, *(np.array(SIZES) / _spread(theta)))


def scaled_if_steep(path: Path, result: StrictResult) -> StrictResult:
    """Scale linear scores that steep smooth rates have made much larger than the loss asks for.

    No decision changes, so accuracy says nothing of it. Without it the log loss of 1,000 rows in 8
    groups was up to 3.9 times what a multiple of the scores has (12 fits of equalized odds and
    predictive parity, median 1.2).
    """
    free, theta = path.judge.free, shifted(path.judge.problem, result)
    at = free.evaluate(theta)
    # The loss is convex: smaller scores gain no more than this slope, and larger ones hardly do.
    is_steep = abs(theta @ at.gradient()) >= (1 - LESS) * at.objective and _spread(theta) > 0
    return result._replace(scale=fitted_scale(path, result)) if is_steep else result


def scaled_scores(judge: Judge, result: StrictResult) -> StrictResult:
    """Scale the scores of models that are not linear to the least loss.

    Their parameters have no multiple that scales the scores, so the penalty is left out. Tight
    limits leave few decisions that can be right, and a chosen threshold makes many rows wrong by
    far: the loss at the threshold can be larger than that of chances of 1/2.
    """
    problem = judge.problem
    if not isinstance(problem, ConstrainedERM):
        return result
    scores = problem.scores(result.result.theta).astype(np.float64) + result.shift
    weights, size = problem.everything.loss_weights, float(np.abs(scores).mean())
    if not size > 0:
        return result

    def parts(scale: float) -> tuple[float, float]:
        at = problem.loss.parts(scale * scores, problem.targets)
        return float(weights @ at.value), float(weights @ (at.slope * scores))

    def slope(scale: float) -> float:  # rises: the loss is convex
        return parts(scale)[1]

    low, high = np.array(SIZES) / size
    scale = _flattest(slope, low, high)
    return result._replace(scale=scale) if parts(scale)[0] < LESS * parts(1.0)[0] else result


def _flattest(slope: Callable[[float], float], low: float, high: float) -> float:
    """Return where a rising slope is 0, most often near 1, or the end that is nearest to that."""
    start = float(np.clip(1.0, low, high))
    end, factor = (high, 4.0) if slope(start) < 0 else (low, 0.25)
    other = start
    while other != end and (slope(other) < 0) == (factor > 1):
        start, other = other, float(np.clip(other * factor, low, high))
    if (slope(other) < 0) == (factor > 1):
        return other
    near, far = sorted((start, other))
    return float(brentq(slope, near, far, xtol=1e-12 * low, rtol=1e-12))


def shifted(problem: RuledProblem, result: StrictResult) -> FloatArray:
    """Return the parameters of linear scores with the chosen threshold in the intercept."""
    theta = problem.model_part(result.result.theta).copy()
    theta[-1] += result.shift
    return theta


def _spread(theta: FloatArray) -> float:
    """Return about how far linear scores spread: their columns are standardised."""
    return float(np.linalg.norm(theta[:-1]))
