"""The report of a fitted constrained estimator: attributes and warnings.

Each function takes what was found and returns fitted attributes by name; the estimator stores them.
"""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from skfair._typing import FloatArray
from skfair.enforcement.erm.path import StrictResult
from skfair.estimators.erm.bind import Problem, TargetScale
from skfair.estimators.limits import warn_if_one_answer
from skfair.models.base import ScoreModel
from skfair.models.choice import ChosenModel
from skfair.problems.erm.in_memory import LinearConstrainedERM
from skfair.problems.erm.problem import Decisions
from skfair.utils.threads import over_blocks
from skfair.utils.warn import warn_user

Attributes = dict[str, object]
MODEL_ATTRIBUTES = (
    *("coef_", "intercept_", "coefs_", "intercepts_"),
    *("model_", "parameters_", "score_scale_", "score_shift_", "decisions_"),
)
# What a solved problem leaves behind besides its model.
SOLUTION_ATTRIBUTES = (
    *("constraint_names_", "multipliers_", "objective_", "kkt_residual_", "history_"),
    *("n_iter_", "n_solves_", "temperature_", "disparity_by_group_", "_last_model"),
)


def model_attributes(
    chosen: ChosenModel, model: ScoreModel, theta: FloatArray, scale: float, shift: float
) -> Attributes:
    """Return the attributes of the scores of a model, times ``scale`` plus ``shift``."""
    if chosen.function is not None:  # the user's own
        return {
            "_last_model": (theta.size, (theta.copy(), None)),
            "model_": chosen.function,
            "parameters_": theta.copy(),
            "score_scale_": float(scale),
            "score_shift_": float(shift),
        }
    coefs, intercepts = raw = model.raw(theta)
    attributes: Attributes = {"_last_model": (model.n_parameters, raw)}
    if not chosen.layers:
        intercept = np.array([scale * intercepts + shift])
        return attributes | {"coef_": (scale * coefs)[None, :], "intercept_": intercept}
    coefs = [*coefs[:-1], scale * coefs[-1]]
    intercepts = [*intercepts[:-1], scale * intercepts[-1] + shift]
    attributes["coefs_"] = [layer.astype(model.X.dtype) for layer in coefs]
    attributes["intercepts_"] = [layer.astype(model.X.dtype) for layer in intercepts]
    return attributes


def solution(problem: Problem, outcome: StrictResult, scale: TargetScale, tol: float) -> Attributes:
    """Return what the solver found, in the units of the user."""
    result = outcome.result
    solved = outcome.problem
    at = solved.evaluate(result.theta)
    residual = max(solved.kkt_residual(at, result.multipliers).values())
    if solved.loss is not problem.loss:
        at = problem.evaluate(outcome.scale * result.theta)
    units = [
        np.full(constraint.upper.size, scale.of_loss / scale.of_constraint(constraint))
        for constraint in problem.constraints
    ]
    # Solves on the way ask for more than ``tol``, and rounding may keep them from it.
    is_solved = result.status == "max_iter" and residual <= tol
    return {
        "kkt_residual_": residual,
        "objective_": scale.of_loss * at.objective,
        "multipliers_": result.multipliers * np.concatenate([np.empty(0), *units]),
        "constraint_names_": np.array(
            [name for constraint in problem.constraints for name in constraint.row_names],
            dtype=object,
        ),
        "n_iter_": int(result.n_iter),
        "n_solves_": outcome.n_solves,
        "temperature_": solved.temperature,
        "history_": result.history,
        "status_": "converged" if is_solved else result.status,
    }


def scores_of_same_sign(problem: Problem, solution: StrictResult) -> FloatArray | None:
    """Return scores known of the solution if the same rows are positive in predictions, else None.

    Predictions compute scores anew, and rounding moves them a little; here none is so close to 0.
    """
    theta = solution.result.theta
    is_of_signs = (
        all(constraint.moment.is_rate for constraint in problem.constraints) and solution.scale > 0
    )
    known = solution.problem.known_scores(theta) if is_of_signs else None
    if known is None or not isinstance(problem, LinearConstrainedERM):
        return None
    moved = problem.model.rounding(problem.model_part(theta)) + 1e-14 * abs(solution.shift)
    scores = np.empty_like(known)

    def are_far(start: int, stop: int) -> bool:
        own = np.add(known[start:stop], solution.shift, out=scores[start:stop])
        return bool(np.all(np.abs(own) > 4 * moved))

    is_same = scores.size == problem.n_rows and all(over_blocks(are_far, scores.size))
    return scores if is_same else None


def disparities(problem: Problem, decisions: Decisions, scale: TargetScale) -> Attributes:
    """Return the strict disparities that scores amount to, those of fairness constraints."""
    of_constraints = [
        (constraint, scale.of_constraint(constraint), means)
        for constraint, means in zip(problem.constraints, decisions.means, strict=True)
        if constraint.is_fairness
    ]
    by_constraint = {
        constraint.name: unit * constraint.disparity_of_means(means)
        for constraint, unit, means in of_constraints
    }
    return {
        "train_disparity_": max(by_constraint.values(), default=0.0),
        "train_disparities_": by_constraint,
        "disparity_by_group_": {
            (name if len(of_constraints) == 1 else f"{constraint.name}: {name}"): float(value)
            for constraint, unit, means in of_constraints
            for name, value in zip(
                constraint.rate_names, unit * constraint.differences_of_means(means), strict=True
            )
        },
    }


def warn_if_missed(problem: Problem, decisions: Decisions, scale: TargetScale) -> bool:
    """Warn if a limit is missed on the training data, and return whether one is."""
    missed = [
        (constraint.disparity_of_means(means), constraint.max_disparity, constraint)
        for constraint, means in zip(problem.constraints, decisions.means, strict=True)
    ]
    if not missed:
        return False
    value, limit, constraint = max(
        missed, key=lambda of_constraint: of_constraint[0] - of_constraint[1]
    )
    # Predictions far from 0 are rounded; what is compared has units of 1, whatever those of y.
    if value - limit <= 1e-9 * max(1.0, limit, 1e-6 * abs(scale.middle) / scale.spread):
        return False
    value, limit = (scale.of_constraint(constraint) * number for number in (value, limit))
    what = f"whose {constraint.name} disparity on the training data is at most {limit:g}"
    reached = f"the smallest reached is {value:.4g}"
    if not constraint.is_fairness:  # its "disparity" may be 1 minus what the user limits
        what, reached = f"that keeps the {constraint.name}", f"it is missed by {value - limit:.4g}"
    warn_user(
        f"No model was found {what}; {reached}. Raise max_disparity, merge small groups or give "
        "the model more features.",
        ConvergenceWarning,
    )
    return True


def warn_if_nearly_constant(problem: Problem, decisions: Decisions, max_disparity: float) -> None:
    """Warn if one class is predicted for far fewer rows than have it."""
    predicted, actual = decisions.positive, problem.positive_share
    if 0 < actual < 1:  # else a class without weight
        warn_if_one_answer(
            np.array([1 - predicted, predicted]), np.array([1 - actual, actual]), max_disparity
        )


def warn_not_converged(
    problem: Problem, solution: StrictResult, residual: float, tol: float
) -> None:
    """Warn that a solver has stopped before it had a solution."""
    violation = problem.violation(problem.evaluate(solution.result.theta))
    missed = f"; the constraints are missed by {violation:.2g}" if violation else ""
    warn_user(
        f"The solver stopped after {solution.result.n_iter} iterations with a KKT residual of "
        f"{residual:.2g} (tol={tol:g}){missed}. Raise max_iter or tol, or choose another solver.",
        ConvergenceWarning,
    )
