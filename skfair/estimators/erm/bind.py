"""The bind step of the constrained estimators: targets, constraints and their problem.

A :class:`Task` says which targets are learned. :func:`bind` makes its problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _num_samples

from skfair._typing import BoolArray, FloatArray, MatrixLike
from skfair.constraints.base import (
    DEFAULT_LIMIT,
    Constraint,
    TrainingRows,
    make_constraints,
    refuse_second_limit,
)
from skfair.constraints.bound import BoundConstraint
from skfair.estimators.erm.solve import Settings, solve_freely
from skfair.estimators.limits import (
    budget,
    floors,
    prepare_constraint,
    tightest,
    unique_names,
)
from skfair.groups.limits import Limit
from skfair.groups.training_data import TrainingData
from skfair.losses import Loss, make_loss
from skfair.models import MLPScore
from skfair.models.base import ScoreModel
from skfair.models.choice import ChosenModel, ModelChoice, read_model
from skfair.models.partitioned import linear_score
from skfair.models.plug_in import PlugInScore
from skfair.models.units import MANY_ROWS
from skfair.problems.erm.problem import ConstrainedERM, LinearConstrainedERM
from skfair.read import ROW_CHECKS
from skfair.utils.partitioned_rows import PartitionedRows
from skfair.utils.validation import check_numbers
from skfair.utils.warn import warn_user

# What users may pass: names, objects, several constraints.
ConstraintChoice = str | Constraint | Sequence[str | Constraint]
LossChoice = str | Loss


@dataclass(frozen=True)
class TargetScale:
    """Origin and scale of the targets: units of limits, losses and predictions."""

    # Inside, a target is (y - middle) / spread; -1 if the first one of two classes is positive
    middle: float = 0.0
    spread: float = 1.0
    degree: int = 0  # power of the spread that is the unit of the loss

    @property
    def of_loss(self) -> float:
        return self.spread**self.degree

    @property
    def of_penalty(self) -> float:
        """The factor on the penalty that makes it the penalty on weights in units of y."""
        return self.spread ** (2 - self.degree) if self.degree else 1.0

    def of_constraint(self, constraint: BoundConstraint) -> float:
        return abs(self.spread) if constraint.moment.unit == "score" else self.of_loss

    def inside(self, scores: FloatArray) -> FloatArray:
        return (scores - self.middle) / self.spread


@dataclass(frozen=True, eq=False)
class Task:
    """The learning task: the target of each row, loss and model."""

    targets: FloatArray  # -1 and 1, or standardised numbers
    loss: Loss  # what is minimised
    loss_weights: FloatArray | None  # weights in the mean loss
    # Names of the negative and the positive class; None for regression
    class_names: tuple[Any, Any] | None
    scale: TargetScale  # what the targets were before
    model: ChosenModel  # how scores are made of columns
    fit_intercept: bool
    alpha: float | None  # weight of the penalty

    @property
    def total_weight(self) -> float:
        """Sum of the weights in the mean loss; the number of rows if there are none."""
        weights = self.loss_weights
        return float(self.targets.size if weights is None else weights.sum())


def regression_task(
    y: FloatArray,
    weights: FloatArray | None,
    loss: LossChoice,
    model: ModelChoice,
    fit_intercept: bool,
    alpha: float | None,
) -> Task:
    """Return what a regressor learns: targets are standardised, as far as the loss allows it."""
    loss, y = make_loss(loss, "regression"), check_numbers(y, "y")
    middle = float(np.average(y, weights=weights)) if fit_intercept else 0.0
    middle = middle if _is_of_residuals(loss, y, middle) else 0.0
    size = float(np.abs(y - middle).max()) or 1.0  # squares of huge targets would overflow
    spread = size * float(np.sqrt(np.average(((y - middle) / size) ** 2, weights=weights)))
    spread = spread if spread > 0 and loss.degree else 1.0
    if not 1e-150 < spread < 1e150:
        raise ValueError(
            f"y has a spread of {spread:.3g}, whose square is no floating-point number. Divide "
            "y by a power of ten."
        )
    scale = TargetScale(middle, spread, loss.degree)
    inside = scale.inside(y)
    return Task(inside, loss, weights, None, scale, read_model(model), fit_intercept, alpha)


def _is_of_residuals(loss: Loss, y: FloatArray, middle: float) -> bool:
    """Whether a loss stays what it is if scores and targets move by the same number.

    Poisson's loss changes. Scores are tried that are other targets.
    """
    targets = np.quantile(y, np.linspace(0.0, 1.0, 5))
    scores = np.roll(targets, 2)
    with np.errstate(all="ignore"):
        unmoved, moved = (loss.parts(scores - by, targets - by).value for by in (0.0, middle))
        size = np.abs(unmoved).max(initial=0.0)
        return bool(np.allclose(unmoved, moved, rtol=1e-3, atol=1e-6 * size))


def row_checks(X: MatrixLike, model: ModelChoice, confidence: object) -> dict[str, Any]:
    """Return the parameters of scikit-learn's checks of the rows of a classifier.

    Whether very many numbers are all finite is left to the sums over the columns, which linear
    scores need anyway: the rows are read once less.
    """
    has_numbers = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"
    is_summed = read_model(model).is_linear and confidence is None
    is_summed = is_summed and has_numbers and _num_samples(X) >= MANY_ROWS
    return {**ROW_CHECKS, "ensure_all_finite": not is_summed}


@contextmanager
def finite_rows(data: TrainingData, estimator_name: str) -> Iterator[None]:
    """Raise scikit-learn's error if numbers that :func:`row_checks` left out caused another one."""
    try:
        yield
    except ValueError:
        if isinstance(data.X, np.ndarray):
            assert_all_finite(data.X, estimator_name=estimator_name, input_name="X")
        raise


def active_constraints(
    constraint: ConstraintChoice, task: str, data: TrainingData, limit: Limit
) -> list[Constraint]:
    """Return the constraints that limit something, and warn of those that do not.

    With a single group these are the caps. The tightest of equal constraints remains.
    """
    groups = data.groups
    constraints = make_constraints(constraint, task)
    if limit != DEFAULT_LIMIT:
        refuse_second_limit(constraint, limit)
    if len(constraints) > 1:
        constraints = tightest(constraints, limit)
    asked = constraints
    if groups.is_vacuous:
        constraints = [constraint for constraint in asked if constraint.compared().is_cap]
    if len(constraints) < len(asked):
        groups.warn_single("no constraint that compares groups is active.")
    uses_strata = any(constraint.within_strata for constraint in constraints)
    if constraints and data.strata is not None and not uses_strata:
        warn_user(
            "control_features were given, but no constraint uses their levels, so they change "
            "nothing. Write skfair.constraints.ConditionalOn(constraint) instead of the constraint."
        )
    return constraints


def bind(
    data: TrainingData,
    task: Task,
    constraints: Sequence[Constraint],
    max_disparity: Limit,  # of constraints without a limit of their own, in the units of the user
    min_rate: Any = None,
    selection_rate: Any = None,
    *,
    how: Settings | None = None,  # of the model without constraints, for "as before"
    # Weight of the rows of a stream before these, which count in the default of ``alpha``
    earlier: float = 0.0,
) -> ConstrainedERM:
    """Return the problem of constrained empirical risk minimisation."""
    weights = data.groups.rate_weight(data.sample_weight)
    rows = TrainingRows(
        data.groups, task.targets, weights, task.loss, task.class_names, data.strata
    )
    bound = [
        prepared
        for constraint in constraints
        for prepared in prepare_constraint(constraint, rows, max_disparity)
    ]
    selected = np.zeros(0, bool)
    if how is not None and "as before" in (min_rate, selection_rate):
        selected = decisions_of_free_model(data, task, how)
    if min_rate is not None:
        bound += floors(constraints, rows, min_rate, selected)
    if selection_rate is not None:
        heaviest = 1 / rows.targets.size if weights is None else weights.max() / weights.sum()
        bound += budget(rows, selection_rate, selected, float(heaviest))
    if len(bound) > 1:
        bound = unique_names(bound)
    if task.class_names is None:  # limits are in units of y, or of its loss
        unit_of = task.scale.of_constraint
        bound = [constraint.scaled(1 / unit_of(constraint)) for constraint in bound]
    return _problem(data, task, bound, penalty_of(task, earlier))


def penalty_of(task: Task, earlier: float = 0.0) -> float:
    """Return the weight of the penalty of standardised targets."""
    if task.alpha is None:  # of weights inside: the unit of y changes no prediction
        return 1 / (task.total_weight + earlier)
    return float(task.alpha) * task.scale.of_penalty


def decisions_of_free_model(data: TrainingData, task: Task, how: Settings) -> BoolArray:
    """Return which rows a model without constraints selects."""
    free = bind(data, task, [], np.inf)
    scores, _ = free.model.forward(free.model_part(solve_freely(free, how)))
    return np.asarray(scores > 0)


def _problem(
    data: TrainingData,
    task: Task,
    bound: list[BoundConstraint],
    alpha: float,
) -> ConstrainedERM:
    targets, loss, weights = task.targets, task.loss, task.loss_weights
    has_intercept, (layers, function) = task.fit_intercept, task.model
    if not task.model.is_linear and isinstance(data.X, PartitionedRows):
        raise ValueError(
            "Dask collections need model='linear': other models are trained on batches. Use "
            "partial_fit on parts of the rows, or linear scores."
        )
    kind: type[ConstrainedERM] = ConstrainedERM
    scores: ScoreModel
    if function is not None:
        scores = PlugInScore(function, data.X)
    elif layers:
        scores = MLPScore(data.X, layers, fit_intercept=has_intercept, sample_weight=weights)
    else:
        scores = linear_score(data.X, fit_intercept=has_intercept, sample_weight=weights)
        kind = LinearConstrainedERM
    return kind(scores, loss, targets, bound, sample_weight=weights, alpha=alpha)
