"""Refinement where constraints cost much accuracy: smooth errors in place of the loss.

There few decisions can be right, and the loss is dominated by those that are wrong. Errors that are
smooth enough have few local optima, and lead near a good one of the steeper ones. The scores are
scaled afterwards so that the loss is least, which changes no decision. The scores of networks are
scaled in the same way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from skfair._typing import FloatArray
from skfair.enforcement.erm.path import Path
from skfair.enforcement.erm.true_limits import StrictResult
from skfair.enforcement.rounds import MAX_ROUNDS
from skfair.losses import SmoothErrors
from skfair.models.linear import LinearScore
from skfair.problems.erm.problem import ConstrainedERM

STEEPNESSES = (3.0, 10.0)  # of smooth errors and rates, for scores of size 1
SIZES = (1e-3, 1e3)  # of scores, within which they may be scaled afterwards
SLIGHT = 0.02  # slope along the scale, as a share of the loss, below which scores stay


def refine(path: Path, result: StrictResult) -> StrictResult:
    """Go on from a solution of linear scores with smooth errors in place of the loss."""
    problem = path.limits.problem
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
    return path.best()


def scaled(problem: ConstrainedERM, result: StrictResult) -> StrictResult:
    """Return the solution with scores scaled to the least loss, which changes no decision.

    Tight limits leave few decisions that can be right, and a chosen threshold makes many rows wrong
    by far. Without it the log loss of 1,000 rows in 8 groups was up to 3.9 times what a multiple of
    the scores has (12 fits of equalized odds and predictive parity, median 1.2). Where the loss
    itself was fitted, scores with little to gain stay as they are.
    """
    model, theta, penalty = problem.model, shifted(problem, result), 0.0
    scores = problem.scores(result.result.theta).astype(np.float64) + result.shift
    weights, size = problem.everything.loss_weights, float(np.abs(scores).mean())

    def along(scale: float) -> tuple[float, float]:
        at = problem.loss.parts(scale * scores, problem.targets)
        loss, slope = float(weights @ at.value), float(weights @ (at.slope * scores))
        return loss + scale**2 * penalty, slope + 2 * scale * penalty

    # No multiple of the parameters of a network scales its scores: its penalty is left out.
    if isinstance(model, LinearScore):
        size, penalty = _spread(theta), problem.alpha * model.penalty_parts(theta)[0]
        size = size if model.fit_intercept else 0.0
    if not size > 0:
        return result
    loss, slope = along(1.0)
    # The loss is convex: smaller scores gain no more than this slope, and larger ones hardly do.
    if result.problem.loss is problem.loss and abs(slope) < SLIGHT * loss:
        return result
    low, high = np.array(SIZES) / size
    ends = [scale for scale, sign in ((low, 1), (high, -1)) if sign * along(scale)[1] >= 0]
    options = {"xtol": 1e-12 * low, "rtol": 1e-13}
    scale = ends[0] if ends else brentq(lambda scale: along(scale)[1], low, high, **options)
    return replace(result, scale=float(scale))


def shifted(problem: ConstrainedERM, result: StrictResult) -> FloatArray:
    """Return the parameters of linear scores with the chosen threshold in the intercept."""
    theta = problem.model_part(result.result.theta).copy()
    theta[-1] += result.shift
    return theta


def _spread(theta: FloatArray) -> float:
    """Return about how far linear scores spread: their columns are standardised."""
    return float(np.linalg.norm(theta[:-1]))
