"""The bind step of the constrained estimators: constraints on rows, and their problem.

``fit`` of ConstrainedERMClassifier and ConstrainedERMRegressor calls :func:`active_constraints`,
then makes the :class:`~skfair.estimators.erm.task.Task`, and calls :func:`bind`. The classifier
also calls :func:`row_checks` before it reads the rows, and does the rest within
:func:`finite_rows`. FairDecisionClassifier calls :func:`active_constraints`, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import _num_samples

from skfair._typing import BoolArray, MatrixLike
from skfair.constraints.base import (
    Constraint,
    TrainingRows,
    limit_for,
    make_constraints,
)
from skfair.constraints.bound import BoundConstraint
from skfair.estimators.erm.settings import ConstraintChoice, Settings
from skfair.estimators.erm.solve import solve_freely
from skfair.estimators.erm.task import Task, penalty_of
from skfair.estimators.limits import (
    budget,
    floors,
    prepare_constraint,
    tightest,
    unique_names,
)
from skfair.groups.limits import Limit
from skfair.groups.training_data import TrainingData
from skfair.models import MLPScore
from skfair.models.base import ScoreModel
from skfair.models.partitioned import linear_score
from skfair.models.plug_in import PlugInScore
from skfair.models.units import MANY_ROWS
from skfair.problems.erm.problem import ConstrainedERM, LinearConstrainedERM
from skfair.read import ROW_CHECKS
from skfair.utils.partitioned_rows import PartitionedRows
from skfair.utils.validation import ask_of_unit
from skfair.utils.warn import warn_user


def row_checks(X: MatrixLike, settings: Settings) -> dict[str, Any]:
    """Return the parameters of scikit-learn's checks of the rows of a classifier.

    For very many rows, numbers are not checked for NaN and infinity, which saves a pass over them.
    Linear scores need sums over the columns anyway. If these are not finite, :func:`finite_rows`
    raises the error of the check.
    """
    has_numbers = isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind == "f"
    is_summed = settings.model.is_linear and settings.certificate is None
    is_summed = is_summed and has_numbers and _num_samples(X) >= MANY_ROWS
    return {**ROW_CHECKS, "ensure_all_finite": not is_summed}


@contextmanager
def finite_rows(data: TrainingData, estimator_name: str) -> Iterator[None]:
    """Raise scikit-learn's error about NaN if an error is due to numbers that were not checked."""
    try:
        yield
    except ValueError:
        if isinstance(data.X, np.ndarray):
            assert_all_finite(data.X, estimator_name=estimator_name, input_name="X")
        raise


def active_constraints(
    constraint: ConstraintChoice, task: str, data: TrainingData, limit: Limit | None
) -> list[Constraint]:
    """Return the constraints of ``constraint=`` that limit something; warn about the others.

    With a single group only caps limit something: they bound a rate or loss itself and compare no
    groups. If constraints differ in their limits alone, only the tightest one is returned.
    """
    constraints = make_constraints(constraint, task)
    limit = limit_for(constraint, limit)
    if len(constraints) > 1:
        constraints = tightest(constraints, limit)
    asked = constraints
    if data.groups.is_vacuous:
        constraints = [constraint for constraint in asked if constraint.compared().is_cap]
    if len(constraints) < len(asked):
        data.groups.warn_single()
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
    # Weight of the earlier rows of a stream, which count in the default of ``alpha``
    earlier: float = 0.0,
) -> ConstrainedERM:
    """Return the problem of constrained empirical risk minimisation, in the units of the task."""
    settings = task.settings
    weights = data.groups.rate_weight(data.sample_weight)
    rows = TrainingRows(
        data.groups, task.targets, weights, task.loss, task.class_names, data.strata
    )
    bound = [
        prepared
        for constraint in constraints
        for prepared in prepare_constraint(constraint, rows, settings.limit)
    ]
    selected = np.zeros(0, bool)  # only "as before" needs it
    if "as before" in (settings.min_rate, settings.selection_rate):
        selected = decisions_of_free_model(data, task)
    if settings.min_rate is not None:
        bound += floors(constraints, rows, settings.min_rate, selected)
    if settings.selection_rate is not None:
        heaviest = 1 / rows.targets.size if weights is None else weights.max() / weights.sum()
        bound += budget(rows, settings.selection_rate, selected, float(heaviest))
    if len(bound) > 1:
        bound = unique_names(bound)
    if task.class_names is None:  # limits of regression are in units of y, or of its loss
        unit_of = task.scale.of_constraint
        asked = [own for own in bound if own.comparison.suffix != "_ratio"]
        if asked and not earlier:
            loosest = max(asked, key=lambda own: own.max_disparity / unit_of(own))
            ask_of_unit(loosest.max_disparity, unit_of(loosest))
        bound = [constraint.scaled(1 / unit_of(constraint)) for constraint in bound]
    return _problem(data, task, bound, penalty_of(task, earlier))


def decisions_of_free_model(data: TrainingData, task: Task) -> BoolArray:
    """Return which rows a model without constraints selects."""
    free = _problem(data, task, [], penalty_of(task))
    scores, _ = free.model.forward(free.model_part(solve_freely(free, task.settings)))
    return np.asarray(scores > 0)


def _problem(
    data: TrainingData,
    task: Task,
    bound: list[BoundConstraint],
    alpha: float,
) -> ConstrainedERM:
    """Return the problem for the score model that the settings choose."""
    targets, loss, weights = task.targets, task.loss, task.loss_weights
    chosen, has_intercept = task.settings.model, task.settings.fit_intercept
    if not chosen.is_linear and isinstance(data.X, PartitionedRows):
        raise ValueError(
            "Dask collections need model='linear': other models are trained on batches. Use "
            "partial_fit on parts of the rows, or linear scores."
        )
    kind: type[ConstrainedERM] = ConstrainedERM
    scores: ScoreModel
    if chosen.function is not None:
        scores = PlugInScore(chosen.function, data.X)
    elif chosen.layers:
        scores = MLPScore(data.X, chosen.layers, fit_intercept=has_intercept, sample_weight=weights)
    else:
        scores = linear_score(data.X, fit_intercept=has_intercept, sample_weight=weights)
        kind = LinearConstrainedERM
    return kind(scores, loss, targets, bound, sample_weight=weights, alpha=alpha)
