"""From validated data to a problem and its solver.

Functions over plain values: what is learned, and how, is a :class:`Task`. Nothing here knows an
estimator, and only here problems and solvers of constrained estimators are made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import FloatArray, Rows
from skfair.constraints.base import Constraint, TrainingRows, make_constraints
from skfair.constraints.bound import BoundConstraint
from skfair.estimators.limits import (
    budget,
    floor_constraint,
    floors,
    prepare_constraint,
    rates_before,
    tightest,
    unique_names,
)
from skfair.groups.kinds import Training
from skfair.groups.limits import Limit
from skfair.groups.training_data import TrainingData
from skfair.losses import Loss
from skfair.models import LinearScore, MLPScore
from skfair.models.base import ScoreModel
from skfair.models.choice import ChosenModel
from skfair.models.plug_in import PlugInScore
from skfair.problems.erm.in_blocks import PartitionedERM
from skfair.problems.erm.in_memory import ConstrainedERM, LinearConstrainedERM
from skfair.problems.erm.problem import ConstrainedProblem
from skfair.solvers.base import SOLVERS, Solver, check_needs
from skfair.utils.warn import warn_user

# Up to this many columns Newton steps make a matrix of n_features x n_features, if need be.
NEWTON_FEATURES = 1000

Problem = ConstrainedProblem
# What users may pass: names, objects, several constraints.
ConstraintChoice = str | Constraint | Sequence[str | Constraint]
LossChoice = str | Loss
SolverChoice = str | Solver


class TargetScale(NamedTuple):
    """What standardised targets were before: units of limits, losses and predictions."""

    # Inside, a target is (y - middle) / spread; -1 if the first one of two classes is positive
    middle: float = 0.0
    spread: float = 1.0
    degree: int = 0  # power of the spread that is the unit of the loss

    @property
    def of_loss(self) -> float:
        """Unit of the loss."""
        return self.spread**self.degree

    @property
    def of_penalty(self) -> float:
        """What the penalty is multiplied by, so that it is that of weights in units of y."""
        return self.spread ** (2 - self.degree) if self.degree else 1.0

    def of_constraint(self, constraint: BoundConstraint) -> float:
        """Return the unit of the disparity of a constraint."""
        return abs(self.spread) if constraint.moment.unit == "score" else self.of_loss

    def inside(self, scores: FloatArray) -> FloatArray:
        """Return the scores that belong to predictions."""
        return (scores - self.middle) / self.spread


class Task(NamedTuple):
    """What scores are fitted to, by row in memory or by kind of rows in blocks, and which ones."""

    targets: FloatArray  # -1 and 1, or standardised numbers
    loss: Loss  # what is minimised
    loss_weights: FloatArray | None  # weights in the mean loss
    # Names of the negative and the positive class; None for regression
    class_names: tuple[Any, Any] | None = None
    scale: TargetScale = TargetScale()  # what the targets were before
    model: ChosenModel = ChosenModel()  # how scores are made of columns
    fit_intercept: bool = True
    alpha: float | None = None  # weight of the penalty

    @property
    def total_weight(self) -> float:
        """Sum of the weights in the mean loss; the number of rows if there are none."""
        weights = self.loss_weights
        return float(self.targets.size if weights is None else weights.sum())


def active_constraints(
    constraint: ConstraintChoice, task: str, data: TrainingData, limit: Limit
) -> list[Constraint]:
    """Return the constraints that limit something, and warn of those that do not.

    With a single group these are the caps. Of equal constraints, the tightest remains.
    """
    groups = data.groups
    constraints = make_constraints(constraint, task)
    if len(constraints) > 1:
        constraints = tightest(constraints, limit)
    asked = constraints
    if groups.is_vacuous:
        constraints = [constraint for constraint in asked if constraint.compared().is_cap]
    if groups.levels.attributes and len(constraints) < len(asked):
        warn_user(
            f"sensitive_features has a single group, {groups.names[0]!r}, so no constraint that "
            "compares groups is active."
        )
    if (
        constraints
        and data.strata is not None
        and not any(constraint.within_strata for constraint in constraints)
    ):
        warn_user(
            "control_features were given, but no constraint uses their levels, so they change "
            "nothing. Write skfair.constraints.ConditionalOn(constraint) instead of the constraint."
        )
    return constraints


def build_problem(
    data: TrainingData,  # the rows
    task: Task,  # targets, loss and weights
    constraints: Sequence[Constraint],  # the constraints that hold
    max_disparity: Limit,  # of constraints without a limit of their own, in the units of the user
    *,
    min_rate: float | FloatArray | None = None,  # floor of the rates of groups, one or each its own
    selection_rate: float | tuple[float, float] | None = None,  # budget
    # Weight of the rows of a stream before these, which count in the default of ``alpha``
    earlier: float = 0.0,
) -> Problem:
    """Build the problem of rows in memory or in blocks."""
    rows = training_rows(data, task)
    bound = [
        prepared
        for constraint in constraints
        for prepared in prepare_constraint(constraint, rows, max_disparity)
    ]
    if min_rate is not None:
        bound += floors(floor_constraint(constraints), rows, min_rate)
    if selection_rate is not None:
        bound += budget(rows, selection_rate)
    if len(bound) > 1:
        bound = unique_names(bound)
    if data.blocks is not None and len(bound) > len(constraints):
        raise ValueError(
            "A limit for each attribute, min_rate and selection_rate are not for Dask collections. "
            "Pass one limit, or rows in memory."
        )
    if task.class_names is None:  # limits are in units of y, or of its loss
        bound = [
            constraint.scaled(1 / task.scale.of_constraint(constraint)) for constraint in bound
        ]
    alpha = penalty_of(task, earlier)
    if data.blocks is None:
        return _in_memory(data.X, task, bound, alpha)
    return _in_blocks(data.blocks, task, constraints, bound, alpha)


def penalty_of(task: Task, earlier: float = 0.0) -> float:
    """Return the weight of the penalty of standardised targets."""
    if task.alpha is None:  # of weights inside: the unit of y changes no prediction
        return 1 / (task.total_weight + earlier)
    return float(task.alpha) * task.scale.of_penalty


def training_rows(data: TrainingData, task: Task) -> TrainingRows:
    """Return what constraints may know of the rows."""
    return TrainingRows(
        data.groups, task.targets, data.sample_weight, task.loss, task.class_names, data.strata
    )


def rates_of_free_model(
    data: TrainingData,
    task: Task,
    constraints: Sequence[Constraint],
    solution: Callable[[Problem], FloatArray],  # solves a problem without constraints
) -> FloatArray | float:
    """Return the rates of groups by a model without constraints: the floor "as before"."""
    if data.blocks is not None:  # floors are refused there, whatever they are
        return 0.0
    free = build_problem(data, task, [], np.inf)
    scores, _ = free.model.forward(free.model_part(solution(free)))
    return rates_before(floor_constraint(constraints), training_rows(data, task), scores > 0)


def _in_memory(rows: Rows, task: Task, bound: list[BoundConstraint], alpha: float) -> Problem:
    weights, has_intercept = task.loss_weights, task.fit_intercept
    layers, function = task.model
    kind: type[ConstrainedERM] = ConstrainedERM
    scores: ScoreModel
    if function is not None:
        scores = PlugInScore(function, rows)
    elif layers:
        scores = MLPScore(rows, layers, fit_intercept=has_intercept, sample_weight=weights)
    else:
        scores = LinearScore(rows, fit_intercept=has_intercept, sample_weight=weights)
        kind = LinearConstrainedERM
    return kind(scores, task.loss, task.targets, bound, sample_weight=weights, alpha=alpha)


def _in_blocks(
    blocks: Training,
    task: Task,
    constraints: Sequence[Constraint],
    bound: list[BoundConstraint],
    alpha: float,
) -> Problem:
    if not task.model.is_linear:
        raise ValueError(
            "Dask collections need model='linear': other models are trained on batches. Use "
            "partial_fit on parts of the rows, or linear scores."
        )
    assert task.loss_weights is not None
    assert task.class_names is not None
    return PartitionedERM(
        blocks,
        task.targets,
        task.loss_weights,
        constraints,
        bound,
        task.loss,
        task.class_names,
        fit_intercept=task.fit_intercept,
        alpha=alpha,
    )


def choose_solver(solver: SolverChoice, problem: Problem | None = None) -> Solver:
    """Return the solver that suits a problem best, or the one that is asked for, if it can.

    Without a problem, as for a stream, "auto" is a solver that takes rows in parts.
    """
    if isinstance(solver, str) and solver == "auto":
        if problem is None or "hessian" not in problem.offers:
            return SOLVERS["alm"]()
        is_small = problem.model.n_parameters <= NEWTON_FEATURES
        return SOLVERS["al_newton" if is_small or "products" in problem.offers else "al_lbfgs"]()
    chosen = SOLVERS[solver]() if isinstance(solver, str) else solver
    if problem is not None:
        check_needs(chosen, problem)
    return chosen
