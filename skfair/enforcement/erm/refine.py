"""Refinement if constraints cost much accuracy: smooth errors take the place of the loss.

``strict.py`` calls :func:`refined` with the best result of the rounds with the loss. If constraints
cost much accuracy, many decisions must be wrong. These dominate the loss, which is then a poor
substitute for the number of errors. So rounds follow in which *smooth errors* are minimised: first
with a low steepness, because such errors have few local optima, then with a higher one from there.

:func:`scaled`, which ``strict.py`` calls last, multiplies the scores by the factor that minimises
the loss. This changes no decision. It is also done for the scores of networks.
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

STEEPNESSES = (3.0, 10.0)  # steepness of smooth errors and rates in turn, for scores of size 1
SIZES = (1e-3, 1e3)  # smallest and largest size of scores after scaling
SLIGHT = 0.02  # scores stay if the loss changes by less than this share per unit of the scale


def refined(path: Path, result: StrictResult) -> StrictResult:
    """Return the best result after rounds with smooth errors, which start from a given result.

    Scores must be linear. The best result may be one of the earlier rounds with the loss.
    """
    problem = path.limits.problem
    start = result.result._replace(theta=shifted(problem, result))
    for steepness in STEEPNESSES:
        unit = _spread(problem.model_part(start.theta))  # the size of the scores
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

    Under tight limits the best threshold may put many rows far on the wrong side. Without scaling,
    the log loss of 1,000 rows in 8 groups was up to 3.9 times the loss of scaled scores (12 fits of
    equalized odds and predictive parity, median 1.2). If the loss itself was minimised and scaling
    would gain little, the scores stay as they are.
    """
    model, theta, penalty = problem.model, shifted(problem, result), 0.0
    scores = problem.scores(result.result.theta).astype(np.float64) + result.shift
    weights, size = problem.everything.loss_weights, float(np.abs(scores).mean())

    def along(scale: float) -> tuple[float, float]:
        """Return the loss of scaled scores, penalty included, and its slope in the scale."""
        at = problem.loss.parts(scale * scores, problem.targets)
        loss, slope = float(weights @ at.value), float(weights @ (at.slope * scores))
        return loss + scale**2 * penalty, slope + 2 * scale * penalty

    # The scores of a network are no multiple of its parameters, so its penalty is left out.
    if isinstance(model, LinearScore):
        size, penalty = _spread(theta), problem.alpha * model.penalty_parts(theta)[0]
        size = size if model.fit_intercept else 0.0
    if not size > 0:
        return result
    loss, slope = along(1.0)
    # The loss is convex, so smaller scores cannot lower it by more than this slope.
    if result.problem.loss is problem.loss and abs(slope) < SLIGHT * loss:
        return result
    low, high = np.array(SIZES) / size
    # If the loss still rises at the lower end, or falls at the upper one, that end is the best.
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
    """Return the length of the weights: about the spread of scores, if columns are standardised."""
    return float(np.linalg.norm(theta[:-1]))
