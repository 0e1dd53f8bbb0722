"""From validated data to a solution: the problem is built, a solver is chosen and run.

Functions over plain values: what is learned is a :class:`Task`, how is :class:`ModelOptions`.
Nothing here knows an estimator, and only here problems and solvers of constrained estimators are
made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from skfair._typing import Callback, FloatArray, Rows
from skfair.blocks.kinds import Training
from skfair.blocks.training_data import TrainingData
from skfair.constraints.base import Constraint, TrainingRows, make_constraints
from skfair.constraints.bound import BoundConstraint
from skfair.enforcement.judge import StrictResult
from skfair.enforcement.strict import solve_strictly
from skfair.estimators.limits import (
    budget,
    floor_rule,
    floors,
    prepare_rule,
    rates_before,
    unique_names,
)
from skfair.groups.encoding import GroupEncoding
from skfair.groups.limits import Limit
from skfair.losses import Loss
from skfair.models import LinearScore, MLPScore
from skfair.models.choice import ChosenModel
from skfair.models.plug_in import PlugInScore
from skfair.problems.erm.in_blocks import PartitionedERM
from skfair.problems.erm.in_memory import ConstrainedERM, LinearConstrainedERM
from skfair.problems.erm.problem import RuledProblem
from skfair.solvers.base import SOLVERS, Solver, check_needs
from skfair.utils.warn import warn_user

# Up to so many columns Newton steps make a matrix of n_features x n_features, if need be.
NEWTON_FEATURES = 1000

Problem = RuledProblem
# What users may pass: names, objects, several constraints.
RuleChoice = str | Constraint | Sequence[str | Constraint]
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

    def of_rule(self, rule: BoundConstraint) -> float:
        """Return the unit of the disparity of a constraint."""
        return abs(self.spread) if rule.moment.unit == "score" else self.of_loss

    def inside(self, scores: FloatArray) -> FloatArray:
        """Return the scores that belong to predictions."""
        return (scores - self.middle) / self.spread


class Task(NamedTuple):
    """What scores are fitted to, by row in memory or by kind of rows in blocks."""

    targets: FloatArray  # -1 and 1, or standardised numbers
    loss: Loss  # what is minimised
    loss_weights: FloatArray | None  # weights in the mean loss
    # Names of the negative and the positive class; None for regression
    class_names: tuple[Any, Any] | None = None
    scale: TargetScale = TargetScale()  # what the targets were before

    @property
    def total_weight(self) -> float:
        """Sum of the weights in the mean loss; the number of rows if there are none."""
        weights = self.loss_weights
        return float(self.targets.size if weights is None else weights.sum())


class Limits(NamedTuple):
    """Limits besides those on disparities: a floor of the rates of groups, and a budget."""

    min_rate: float | FloatArray | str | None = None  # one, one for each group, or "as before"
    selection_rate: float | tuple[float, float] | None = None


class ModelOptions(NamedTuple):
    """How scores are made of columns: the model, its intercept, weight of the penalty."""

    model: ChosenModel
    fit_intercept: bool
    alpha: float | None


def limiting_rules(constraint: RuleChoice, task: str, groups: GroupEncoding) -> list[Constraint]:
    """Return the constraints that limit something: with a single group these are the caps."""
    rules = make_constraints(constraint, task)
    if groups.is_vacuous:
        return [rule for rule in rules if rule.compared().is_cap]
    return rules


def active_rules(constraint: RuleChoice, task: str, data: TrainingData) -> list[Constraint]:
    """Return the constraints that limit something, and warn of those that do not."""
    groups = data.groups
    rules = limiting_rules(constraint, task, groups)
    if groups.levels.attributes and len(rules) < len(make_constraints(constraint, task)):
        warn_user(
            f"sensitive_features has a single group, {groups.names[0]!r}, so no constraint that "
            "compares groups is active."
        )
    if not rules:
        return []
    if data.strata is not None and not any(rule.within_strata for rule in rules):
        warn_user(
            "control_features were given, but no constraint uses their levels, so they change "
            "nothing. Write skfair.constraints.ConditionalOn(constraint) instead of the constraint."
        )
    return rules


def build_problem(
    data: TrainingData,  # the rows
    task: Task,  # targets, loss and weights
    rules: Sequence[Constraint],  # the constraints that hold
    max_disparity: Limit,  # of constraints without a limit of their own, in the units of the user
    limits: Limits,  # floor and budget
    options: ModelOptions,  # the model
    *,
    # Weight of the rows of a stream before these, which count in the default of ``alpha``
    earlier: float = 0.0,
) -> Problem:
    """Build the problem of rows in memory or in blocks."""
    rows = _rows_of(data, task)
    bound = [prepared for rule in rules for prepared in prepare_rule(rule, rows, max_disparity)]
    bound = unique_names([*bound, *_other_limits(rules, rows, limits)])
    if data.blocks is not None and len(bound) > len(rules):
        raise ValueError(
            "A limit for each attribute, min_rate and selection_rate are not for Dask collections. "
            "Pass one limit, or rows in memory."
        )
    bound = [rule.scaled(1 / task.scale.of_rule(rule)) for rule in bound]
    alpha = penalty_of(task, options.alpha, earlier)
    return data.build(
        lambda rows: _in_memory(rows, task, bound, options, alpha),
        lambda blocks: _in_blocks(blocks, task, rules, bound, options, alpha),
    )


def penalty_of(task: Task, alpha: float | None, earlier: float = 0.0) -> float:
    """Return the weight of the penalty of standardised targets."""
    if alpha is None:  # of weights inside: the unit of y changes no prediction
        return 1 / (task.total_weight + earlier)
    return float(alpha) * task.scale.of_penalty


def _rows_of(data: TrainingData, task: Task) -> TrainingRows:
    return TrainingRows(
        data.groups, task.targets, data.sample_weight, task.loss, task.class_names, data.strata
    )


def with_floor(
    limits: Limits,
    data: TrainingData,
    task: Task,
    rules: Sequence[Constraint],
    options: ModelOptions,
    solution: Callable[[Problem], FloatArray],
) -> Limits:
    """Return limits whose floor is a number, or one for each group: rates of a free model.

    ``solution`` solves a problem without constraints.
    """
    if limits.min_rate != "as before":
        return limits
    if data.blocks is not None:  # floors are refused there, whatever they are
        return limits._replace(min_rate=0.0)
    free = build_problem(data, task, [], np.inf, Limits(), options)
    scores, _ = free.model.forward(free.model_part(solution(free)))
    rates = rates_before(floor_rule(rules), _rows_of(data, task), scores > 0)
    return limits._replace(min_rate=rates)


def _other_limits(
    rules: Sequence[Constraint], rows: TrainingRows, limits: Limits
) -> list[BoundConstraint]:
    """Return floor and budget as constraints."""
    limited = []
    if limits.min_rate is not None:
        assert not isinstance(limits.min_rate, str)
        limited += floors(floor_rule(rules), rows, limits.min_rate)
    if limits.selection_rate is not None:
        limited += budget(rows, limits.selection_rate)
    return limited


def _in_memory(
    rows: Rows, task: Task, bound: list[BoundConstraint], options: ModelOptions, alpha: float
) -> Problem:
    weights, has_intercept = task.loss_weights, options.fit_intercept
    layers, function = options.model
    if not options.model.is_linear:
        scores = (
            MLPScore(rows, layers, fit_intercept=has_intercept, sample_weight=weights)
            if function is None
            else PlugInScore(function, rows)
        )
        return ConstrainedERM(
            scores, task.loss, task.targets, bound, sample_weight=weights, alpha=alpha
        )
    model = LinearScore(rows, fit_intercept=has_intercept, sample_weight=weights)
    return LinearConstrainedERM(
        model, task.loss, task.targets, bound, sample_weight=weights, alpha=alpha
    )


def _in_blocks(
    blocks: Training,
    task: Task,
    rules: Sequence[Constraint],
    bound: list[BoundConstraint],
    options: ModelOptions,
    alpha: float,
) -> Problem:
    if not options.model.is_linear:
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
        rules,
        bound,
        task.loss,
        task.class_names,
        fit_intercept=options.fit_intercept,
        alpha=alpha,
    )


def default_solver(problem: Problem) -> str:
    """Return the name of the solver that suits a problem best."""
    if "hessian" not in problem.offers:
        return "alm"
    is_fast = "products" in problem.offers or problem.model.n_parameters <= NEWTON_FEATURES
    return "al_newton" if is_fast else "al_lbfgs"


def choose_solver(solver: SolverChoice, default: str) -> Solver:
    """Return the solver of that name, the default one for "auto", or the given one."""
    if not isinstance(solver, str):
        return solver
    return SOLVERS[default if solver == "auto" else solver]()


def solve(
    problem: Problem,
    solver: Solver,
    start: FloatArray,
    *,
    is_strict: bool,
    is_classifier: bool,
    refine: bool,
    tol: float,
    max_iter: int | None,
    rng: np.random.RandomState,
    callback: Callback,
) -> StrictResult:
    """Run a solver: on the path of strict enforcement, or once."""
    check_needs(solver, problem)
    if is_strict:
        of_solver = {} if max_iter is None else {"max_iter": max_iter}
        return solve_strictly(
            problem,
            solver,
            start,
            min_gap=problem.model.rounding,
            is_classifier=is_classifier,
            refine=refine and "hessian" in problem.offers,
            tol=tol,
            random_state=rng,
            callback=callback,
            **of_solver,
        )
    result = solver.solve(
        problem,
        problem.centered(start),
        tol=tol,
        max_iter=max_iter,
        random_state=rng,
        callback=callback,
    )
    return StrictResult(problem, result)
