"""From validated data to a solution: the problem is built, a solver is chosen and run.

Functions over plain values: what is learned is a :class:`Task`, how is :class:`ModelOptions`.
Nothing here knows an estimator, and only here problems and solvers of constrained estimators are
made.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    Limit,
    budget,
    floor_rule,
    floors,
    prepare_rule,
    unique_names,
)
from skfair.losses import Loss
from skfair.models import LinearScore, MLPScore
from skfair.problems.erm.in_blocks import PartitionedERM
from skfair.problems.erm.in_memory import ConstrainedERM, LinearConstrainedERM
from skfair.problems.erm.problem import RuledProblem
from skfair.solvers.base import SOLVERS, Solver, check_needs
from skfair.utils.warn import warn_user

# Newton steps need a matrix of n_features x n_features.
NEWTON_FEATURES = 1000

Problem = RuledProblem


class TargetScale(NamedTuple):
    """What standardised targets were before: units of limits, losses and predictions.

    Attributes
    ----------
    middle, spread : float
        Inside, a target is (y - middle) / spread.
    degree : int
        Power of the spread that is the unit of the loss.
    """

    middle: float = 0.0
    spread: float = 1.0
    degree: int = 0

    @property
    def of_loss(self) -> float:
        """Unit of the loss."""
        return self.spread**self.degree

    @property
    def of_penalty(self) -> float:
        """What the penalty is multiplied by, so that it is that of weights in units of y."""
        return self.spread ** (2 - self.degree) if self.degree else 1.0

    def of_rule(self, rule: BoundConstraint) -> float:
        """Return the unit of the disparity of a rule."""
        return self.spread if rule.moment.unit == "score" else self.of_loss

    def inside(self, scores: FloatArray) -> FloatArray:
        """Return the scores that belong to predictions."""
        return (scores - self.middle) / self.spread


class Task(NamedTuple):
    """What scores are fitted to, by row in memory or by kind of rows in blocks.

    Attributes
    ----------
    targets : ndarray
        -1 and 1, or standardised numbers.
    loss : Loss
        What is minimised.
    loss_weights : ndarray or None
        Weights in the mean loss.
    class_names : tuple or None
        Names of the negative and the positive class; None for regression.
    scale : TargetScale
        What the targets were before.
    """

    targets: FloatArray
    loss: Loss
    loss_weights: FloatArray | None
    class_names: tuple[Any, Any] | None = None
    scale: TargetScale = TargetScale()


class Limits(NamedTuple):
    """Limits besides those on disparities: a floor of the rates of groups, and a budget."""

    min_rate: float | None = None
    selection_rate: float | tuple[float, float] | None = None


class ModelOptions(NamedTuple):
    """How scores are made of columns: hidden layers, intercept, weight of the penalty."""

    layers: tuple[int, ...]
    fit_intercept: bool
    alpha: float | None


def active_rules(
    constraint: str | Constraint | Sequence[str | Constraint], task: str, data: TrainingData
) -> list[Constraint]:
    """Return the rules that limit something: with a single group there are none."""
    rules, groups = make_constraints(constraint, task), data.groups
    if groups.n_groups == groups.n_attributes:
        if groups.levels.attributes:
            warn_user(
                f"sensitive_features has a single group, {groups.names[0]!r}, so no fairness rule "
                "is active."
            )
        return []
    if data.strata is not None and not any(rule.within_strata for rule in rules):
        warn_user(
            "control_features were given, but no rule holds within their levels, so they change "
            "nothing. Write skfair.constraints.ConditionalOn(rule) instead of the rule."
        )
    return rules


def build_problem(
    data: TrainingData,
    task: Task,
    rules: Sequence[Constraint],
    max_disparity: Limit,
    limits: Limits,
    options: ModelOptions,
    *,
    n_earlier: int = 0,
) -> Problem:
    """Build the problem of rows in memory or in blocks.

    Parameters
    ----------
    data : TrainingData
        The rows.
    task : Task
        Targets, loss and weights.
    rules : sequence of Constraint
        The rules that hold.
    max_disparity : float or mapping
        The limit of rules without one of their own, in the units of the user.
    limits : Limits
        Floor and budget.
    options : ModelOptions
        The model.
    n_earlier : int, default=0
        Rows of a stream before these, which count in the default of ``alpha``.

    Returns
    -------
    problem : RuledProblem
        What solvers may ask.
    """
    rows = TrainingRows(
        data.groups, task.targets, data.sample_weight, task.loss, task.class_names, data.strata
    )
    bound = [one for rule in rules for one in prepare_rule(rule, rows, max_disparity)]
    bound = unique_names([*bound, *_other_limits(rules, rows, limits)])
    if data.blocks is not None and len(bound) > len(rules):
        raise ValueError(
            "A limit for each attribute, min_rate and selection_rate are not for Dask collections. "
            "Pass one limit, or rows in memory."
        )
    bound = [rule.scaled(1 / task.scale.of_rule(rule)) for rule in bound]
    weights = task.loss_weights
    n_rows = (task.targets.size if weights is None else float(weights.sum())) + n_earlier
    alpha = 1 / n_rows if options.alpha is None else float(options.alpha)
    alpha *= task.scale.of_penalty
    return data.build(
        lambda rows: _in_memory(rows, task, bound, options, alpha),
        lambda blocks: _in_blocks(blocks, task, rules, bound, options, alpha),
    )


def _other_limits(
    rules: Sequence[Constraint], rows: TrainingRows, limits: Limits
) -> list[BoundConstraint]:
    """Return floor and budget as rules."""
    found = []
    if limits.min_rate is not None:
        found += floors(floor_rule(rules), rows, limits.min_rate)
    if limits.selection_rate is not None:
        found += budget(rows, limits.selection_rate)
    return found


def _in_memory(
    rows: Rows, task: Task, bound: list[BoundConstraint], options: ModelOptions, alpha: float
) -> Problem:
    weights, has_intercept = task.loss_weights, options.fit_intercept
    if options.layers:
        network = MLPScore(rows, options.layers, fit_intercept=has_intercept, sample_weight=weights)
        return ConstrainedERM(
            network, task.loss, task.targets, bound, sample_weight=weights, alpha=alpha
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
    if options.layers:
        raise ValueError(
            "hidden_layer_sizes is not for Dask collections: networks are trained on batches. "
            "Use partial_fit on parts of the rows, or a linear model."
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
    return "al_newton" if problem.model.n_parameters <= NEWTON_FEATURES else "al_lbfgs"


def choose_solver(solver: str | Solver, default: str) -> Solver:
    """Return the solver of that name, the default one for "auto", or the given one."""
    if not isinstance(solver, str):
        return solver
    return SOLVERS[default if solver == "auto" else solver]()


def solve(
    problem: Problem,
    solver: Solver,
    start: FloatArray,
    *,
    temperatures: Sequence[float] | None,
    is_classifier: bool,
    refine: bool,
    tol: float,
    max_iter: int | None,
    rng: np.random.RandomState,
    callback: Callback,
) -> StrictResult:
    """Run a solver: on the path of strict enforcement, or once if there are no temperatures."""
    check_needs(solver, problem)
    params: dict[str, Any] = {"tol": tol, "random_state": rng, "callback": callback}
    if max_iter is not None:
        params["max_iter"] = max_iter
    if temperatures is not None:
        return solve_strictly(
            problem,
            solver,
            start,
            temperatures=temperatures,
            min_gap=problem.model.rounding,
            is_classifier=is_classifier,
            refine=refine and "hessian" in problem.offers,
            **params,
        )
    return StrictResult(problem, solver.solve(problem, start, None, **params))
