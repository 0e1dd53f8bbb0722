"""The report step of the constrained estimators: fitted attributes, their scores, and warnings.

:class:`ConstrainedERMBase` holds the parameters that the classifier and the regressor share. Their
``fit`` calls :func:`of_fit`, ``partial_fit`` calls :func:`of_part`, and callbacks :func:`state`.
Each returns attributes by name, and :func:`store` is the one place where an estimator gets them.
``predict`` and ``decision_function`` read the scores of rows by :func:`raw_scores`.

The other functions make parts of the attributes: :func:`model_attributes` for the model,
:func:`solution` for the result of the solver, :func:`disparities` and :func:`changes` for the
decisions. Certificates of regressors call some of these functions, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from skfair._typing import FloatArray, IntArray, Rows
from skfair.base import SensitiveFeaturesMixin
from skfair.enforcement.erm.true_limits import StrictResult
from skfair.estimators.certificate import Certified
from skfair.estimators.erm.settings import LossChoice, Settings, SolverChoice
from skfair.estimators.erm.solve import Stream, choose_solver, solve_freely
from skfair.estimators.erm.task import TargetScale, Task
from skfair.estimators.explained import (
    R2,
    SQUARES,
    changes_of_numbers,
    larger_errors,
    warn_if_less_explained,
)
from skfair.estimators.limits import (
    below_one_person,
    disparity_attributes,
    said_if_rate_missed,
    warn_of_changes,
)
from skfair.groups.limits import Change, change_of
from skfair.groups.training_data import TrainingData
from skfair.losses import AbsoluteError, Loss, SquaredError
from skfair.models.choice import LINEAR_OR_LAYERS, SCORE_FUNCTION, ModelChoice, read_model
from skfair.models.mlp import mlp_scores
from skfair.models.plug_in import plugged_scores
from skfair.models.units import product
from skfair.problems.erm.problem import ConstrainedERM, Decisions
from skfair.utils.endings import ENDINGS
from skfair.utils.keywords import OF_TRAINING
from skfair.utils.older import CallbackSupportMixin
from skfair.utils.warn import warn_user

Attributes = dict[str, Any]
# Attributes that only some kinds of models have. Each fit deletes them first, so that none remains
# from an earlier model of another kind.
MODEL_ATTRIBUTES = (
    *("coef_", "intercept_", "coefs_", "intercepts_"),
    *("model_", "parameters_", "score_scale_", "score_shift_", "decisions_"),
)
# Attributes of a solved problem, except for its model. ``partial_fit`` does not delete them.
SOLUTION_ATTRIBUTES = (
    *("constraint_names_", "multipliers_", "objective_", "kkt_residual_", "history_", "_stream"),
    *("n_iter_", "n_solves_", "temperature_", "disparity_by_group_", "_last_model", "_kept_by"),
)


class ConstrainedERMBase(Certified, SensitiveFeaturesMixin, CallbackSupportMixin, BaseEstimator):
    """Parameters and tags of estimators that fit a score model under fairness constraints."""

    __metadata_request__fit = {"control_features": True}

    _parameter_constraints: dict[str, Any] = {
        "constraint": "no_validation",  # make_constraints checks it, with better messages
        "max_disparity": [Interval(Real, 0, None, closed="left"), dict, None],
        "loss": [str, Loss],
        "alpha": [Interval(Real, 0, None, closed="left"), None],
        "model": [*LINEAR_OR_LAYERS, SCORE_FUNCTION],
        "fit_intercept": ["boolean"],
        "solver": [str, HasMethods("solve")],
        "enforce": [StrOptions({"strict", "surrogate"})],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        **Certified._certificate_constraints,
        **SensitiveFeaturesMixin._group_constraints,
    }

    _elsewhere = OF_TRAINING
    _reads_probabilities = True
    _endings = ("converged", "max_iter", "stopped", "infeasible", "certified", "no_solution")
    _learns_without_group = True
    _takes_caps = True
    alpha: float | None
    fit_intercept: bool
    loss: LossChoice
    max_iter: int | None
    model: ModelChoice
    solver: SolverChoice
    tol: float
    coef_: FloatArray

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _settings(self) -> Settings:
        """Return the parameters, read from ``vars``.

        ``get_params`` would lack some of them in a subclass whose ``__init__`` has fewer
        parameters.
        """
        own = {k: v for k, v in vars(self).items() if k in Settings.__dataclass_fields__}
        own |= {"model": read_model(self.model), "is_classifier": is_classifier(self)}
        return Settings(**own)

    @property
    def _used_weights(self) -> FloatArray:
        """Weights of the columns that the model uses, without the zeros for ``sensitive``."""
        return np.ravel(self.coef_[0][self._model_positions])  # all if there are no positions


Fitted = TypeVar("Fitted", bound=ConstrainedERMBase)


def of_all_columns(estimator: ConstrainedERMBase, attributes: Attributes) -> Attributes:
    """Return attributes whose ``coef_`` has a weight for each column of X, 0 for sensitive columns.

    The model has weights for the other columns only. Refitted models of certificates were fitted to
    all columns of X, so their ``coef_`` has these zeros already.
    """
    used, positions = attributes.get("coef_"), estimator._model_positions
    if used is None or positions is None or used.shape[1] != positions.size:
        return attributes
    coef = np.zeros((1, estimator.n_features_in_))
    coef[:, positions] = used
    return {**attributes, "coef_": coef}


def store(estimator: Fitted, attributes: Attributes, *, is_part: bool = False) -> Fitted:
    """Store the attributes of a fit, delete those of an earlier one; return the estimator.

    After a part of a stream, ``SOLUTION_ATTRIBUTES`` of the last fit stay.
    """
    estimator._forget(*MODEL_ATTRIBUTES, *(() if is_part else SOLUTION_ATTRIBUTES))
    estimator._store(of_all_columns(estimator, attributes))
    return estimator


def raw_scores(
    attributes: Mapping[str, Any],  # attributes of a fitted model
    rows: Rows,
    positions: IntArray | None = None,  # places in ``coef_`` of the columns that the model uses
) -> FloatArray:
    """Return the scores of validated rows, (n_rows,)."""
    if "coef_" in attributes:
        weights = np.ravel(attributes["coef_"][0][positions])  # all if there are no positions
        return product(rows, weights) + float(attributes["intercept_"][0])
    if "parameters_" in attributes:
        scores = plugged_scores(attributes["model_"], attributes["parameters_"], rows)
        return np.asarray(attributes["score_scale_"] * scores + attributes["score_shift_"])
    scores = mlp_scores(attributes["coefs_"], attributes["intercepts_"], rows)
    return np.asarray(scores, dtype=np.float64)


def own_scores(attributes: Attributes, data: TrainingData, scale: TargetScale) -> FloatArray:
    """Return the scores of the training rows in units of the problem.

    They are computed in the same way as predictions, so that reports hold for these to the last
    bit.
    """
    return scale.inside(raw_scores(attributes, data.X))


def of_fit(
    data: TrainingData, task: Task, problem: ConstrainedERM, solved: StrictResult
) -> Attributes:
    """Return all attributes of a fit; warn if a limit is violated or the solver stopped early."""
    result, settings = solved.result, task.settings
    is_strict = settings.enforce != "surrogate"
    attributes = model_attributes(problem, task, result.theta, solved.shift, solved.scale)
    scores = own_scores(attributes, data, task.scale)
    decisions = problem.decide(scores)
    attributes |= solution(problem, solved, task.scale, settings.tol)
    attributes |= disparities(problem, decisions, task.scale)
    changed: dict[str, Change] = {}
    if is_strict and not solved.is_stopped:
        changed = changes(data, task, problem, scores, solved)
    attributes["changes_"] = changed
    if is_strict and warn_if_missed(problem, decisions, task.scale):
        attributes["status_"] = "infeasible"
        return attributes
    # A stochastic solver always makes all of its steps, so its status "max_iter" is no failure.
    is_usual = choose_solver(settings.solver, problem).is_stochastic
    if attributes["status_"] == "max_iter" and not is_usual:
        warn_not_converged(problem, solved, attributes["kkt_residual_"], settings)
    elif R2 in changed:
        attributes["_kept_by"] = warn_of_errors(changed, data, problem, task)
    if "selection rate" in changed and all(c.is_fairness for c in problem.constraints):
        is_capped = any(c.comparison.is_cap for c in problem.constraints)
        positive, weights = task.targets > 0, data.groups.rate_weight(data.sample_weight)
        step = below_one_person(problem.constraints)
        warn_of_changes(changed, positive, weights, is_capped=is_capped, one_person=step)
    return attributes


def changes(
    data: TrainingData,
    task: Task,
    problem: ConstrainedERM,
    scores: Any,  # scores of the fitted model
    solved: StrictResult | None = None,  # the solution with these scores; None if it is certified
) -> dict[str, Change]:
    """Return the attribute ``changes_``: how the constraints change decisions or predictions.

    If nothing limits the model, it is not compared with another one.
    """
    free, before, is_classifier = problem.relaxed(), scores, task.settings.is_classifier
    if solved is None or solved.n_solves > 1 or solved.shift:
        start = None if solved is None else solved.free
        before = free.scores(solve_freely(free, task.settings, start))
    ends, rows = [before, scores], (data.groups, data.sample_weight)
    if is_classifier:
        changed = change_of(*rows, [of > 0 for of in ends], data.first_rows)
        return {"selection rate": changed}
    scale, loss = task.scale, task.loss
    targets, *ends = (scale.middle + scale.spread * of for of in (task.targets, *ends))
    errors = [scale.of_loss * loss.exact(of, task.targets) for of in (before, scores)]
    named = {SquaredError: SQUARES, AbsoluteError: "mean absolute error"}
    error = named.get(type(loss), "mean loss")
    return changes_of_numbers(*rows, targets, ends, data.first_rows, error=error, errors=errors)


def warn_of_errors(
    changed: Mapping[str, Change], data: TrainingData, problem: ConstrainedERM, task: Task
) -> str:
    """Warn if a regressor explains much less within the limits; return whose errors are larger.

    That is a part of ``summary_``, and empty unless a limit is on differences of errors.
    """
    bounds, larger, others = problem.constraints, None, []
    if any(bound.moment.unit == "loss" and not bound.comparison.is_cap for bound in bounds):
        larger = larger_errors(changed)
    # Group-aware predictions need the group of each row, not its probability.
    if [bound.name for bound in bounds] == ["MeanScoreParity"] and data.groups.people is None:
        bound = bounds[0]
        limit = task.scale.of_constraint(bound) * bound.max_disparity
        others = [
            "let predictions use the group, which usually costs less: FairDecisionRegressor("
            f"constraint='mean_score_parity', max_disparity={limit:.6g}, group_aware=True)"
        ]
    warn_if_less_explained(changed, larger, others=others)
    return "" if larger is None else str(larger)


def of_part(data: TrainingData, task: Task, problem: ConstrainedERM, stream: Stream) -> Attributes:
    """Return the model after a part of a stream, and its disparities on that part."""
    training = stream.training
    attributes = model_attributes(problem, task, training.solution)
    decisions = problem.decide(own_scores(attributes, data, task.scale))
    attributes |= disparities(problem, decisions, task.scale)
    attributes |= {"n_iter_": training.n_steps, "multipliers_": training.solution_multipliers}
    return attributes | {"_stream": stream, "changes_": {}}


def state(
    estimator: ConstrainedERMBase,
    own: Attributes,
    problem: ConstrainedERM,
    task: Task,
    theta: FloatArray,
) -> Attributes:
    """Return the attributes that an estimator needs to predict inside a callback.

    ``own`` are attributes that do not depend on ``theta``, such as the classes.
    """
    return of_all_columns(estimator, own | model_attributes(problem, task, theta))


def model_attributes(
    problem: ConstrainedERM, task: Task, theta: FloatArray, shift: float = 0.0, scale: float = 1.0
) -> Attributes:
    """Return the attributes that prediction needs, in units of y.

    The scores of the fitted model are ``scale * (scores + shift)``, with the scores of ``theta`` in
    units of the problem. Strict enforcement sets ``shift`` and ``scale``.
    """
    model, theta, scale = problem.model, problem.model_part(theta), task.scale.spread * scale
    shift = task.scale.middle + scale * shift
    chosen = task.settings.model
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


def solution(
    problem: ConstrainedERM, outcome: StrictResult, scale: TargetScale, tol: float
) -> Attributes:
    """Return the attributes about the result of the solver, in the units of the user.

    ``problem`` has the limits of the user. ``outcome.problem`` was solved last, perhaps with
    tighter bounds or a steeper loss.
    """
    result, solved = outcome.result, outcome.problem
    at = solved.evaluate(result.theta)
    residual = max(solved.kkt_residual(at, result.multipliers).values())
    if solved.loss is not problem.loss:
        at = problem.evaluate(outcome.scale * result.theta)
    units = [
        np.full(constraint.upper.size, scale.of_loss / scale.of_constraint(constraint))
        for constraint in problem.constraints
    ]
    names = [name for constraint in problem.constraints for name in constraint.row_names]
    # Strict enforcement may ask the solver for more precision than ``tol``, and rounding may make
    # this impossible. A solution that is precise to ``tol`` still counts as converged.
    is_solved = result.status == "max_iter" and residual <= tol
    return {
        "kkt_residual_": residual,
        "objective_": scale.of_loss * at.objective,
        "multipliers_": result.multipliers * np.concatenate([np.empty(0), *units]),
        "constraint_names_": np.array(names, dtype=object),
        "n_iter_": int(result.n_iter),
        "n_solves_": outcome.n_solves,
        "temperature_": solved.temperature,
        "history_": result.history,
        "status_": "converged" if is_solved else result.status,
    }


def disparities(problem: ConstrainedERM, decisions: Decisions, scale: TargetScale) -> Attributes:
    """Return the attributes about disparities of decisions, without those of floors and budgets."""
    every = zip(problem.constraints, decisions.means, strict=True)
    fair = [(constraint, means) for constraint, means in every if constraint.is_fairness]
    constraints = [constraint for constraint, _ in fair]
    reached = [constraint.disparity_of_means(means) for constraint, means in fair]
    units = [scale.of_constraint(constraint) for constraint in constraints]
    return disparity_attributes(constraints, reached, units) | {
        "disparity_by_group_": {
            (name if len(fair) == 1 else f"{constraint.name}: {name}"): float(value)
            for (constraint, means), unit in zip(fair, units, strict=True)
            for name, value in zip(
                constraint.rate_names, unit * constraint.differences_of_means(means), strict=True
            )
        },
    }


def warn_if_missed(problem: ConstrainedERM, decisions: Decisions, scale: TargetScale) -> bool:
    """Return whether a limit is violated on the training data, and warn if so."""
    missed = [
        (constraint.disparity_of_means(means), constraint.max_disparity, constraint)
        for constraint, means in zip(problem.constraints, decisions.means, strict=True)
    ]
    if not missed:
        return False
    value, limit, constraint = max(missed, key=lambda reached: reached[0] - reached[1])
    # A violation by rounding does not count. Inside, predictions have size 1, but they were
    # computed in units of y, where numbers far from 0 (a large middle) are rounded more.
    if value - limit <= 1e-9 * max(1.0, limit, 1e-6 * abs(scale.middle) / scale.spread):
        return False
    value, limit = (scale.of_constraint(constraint) * number for number in (value, limit))
    what = f"whose {constraint.name} disparity on the training data is at most {limit:g}"
    reached = f"the smallest reached is {value:.4g}"
    if not constraint.is_fairness:  # the "disparity" may be 1 minus the rate that the user limits
        what, reached = f"that keeps the {constraint.name}", f"it is missed by {value - limit:.4g}"
    warn_user(
        f"No model was found {what}; {reached}."
        f"{said_if_rate_missed(problem.constraints, [own for own, _, _ in missed])}"
        " Raise max_disparity, merge small groups or give the model more features.",
        ConvergenceWarning,
    )
    return True


def warn_not_converged(
    problem: ConstrainedERM, solved: StrictResult, residual: float, settings: Settings
) -> None:
    """Warn that a solver stopped before it converged: at ``max_iter``, or without progress."""
    n_iter, most = solved.result.n_iter, settings.max_iter
    most = choose_solver(settings.solver, problem).default_max_iter if most is None else most
    remedy = "Raise max_iter or tol" if n_iter >= most else "Raise max_disparity or tol"
    missed = "Its decisions were then made to satisfy the limits as far as possible"
    if settings.enforce == "surrogate":
        violation = problem.violation(problem.evaluate(solved.result.theta))
        missed = f"The constraints are missed by {violation:.2g}"
    warn_user(
        f"{ENDINGS['max_iter']} After {n_iter} iterations the KKT residual is {residual:.2g} "
        f"(tol={settings.tol:g}), so the model may be far from the best one. "
        f"{missed}. {remedy}, or choose another solver.",
        ConvergenceWarning,
    )
