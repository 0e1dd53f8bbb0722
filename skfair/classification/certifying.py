"""Certificates of ConstrainedERMClassifier: offsets found on all rows, or a model of some rows.

Where scores are linear and the loss is logistic, the model without constraints is a logistic
regression, and its decisions are certified in the same way as by FairDecisionClassifier. Whatever
else is trained under its constraints is certified as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair._typing import MatrixLike
from skfair.classification.fair_decisions import FairDecisionClassifier
from skfair.constraints.base import Constraint, make_constraints
from skfair.estimators.certificate import NOT_LAZY, Certified, check_no_floors
from skfair.estimators.certified.judges import certified_decisions, rates_of
from skfair.estimators.erm.solve import NEWTON_FEATURES, choose_solver
from skfair.exceptions import GroupColumnWarning, RepeatedRowsWarning, SmallGroupWarning
from skfair.groups.named_columns import column_positions, take_columns
from skfair.groups.training_data import TrainingData
from skfair.models.choice import read_model
from skfair.utils.partitioned_rows import PartitionedRows
from skfair.utils.warn import unwanted

if TYPE_CHECKING:
    from skfair.classification.constrained_erm import ConstrainedERMClassifier

# Larger columns are standardised, and the penalty is then on those weights: Newton's method of
# scikit-learn breaks down at columns of 1e8, whose squares leave no digit for the intercept.
_LARGEST = 1e6
# With more columns than these L-BFGS is faster if they are on one scale: with 50 in two fifths of
# the time of Newton's method. With 33 of real data (Adult, Bank) both take the same.
_FEW = 40
_SHARED = (
    *(*Certified._CERTIFIED, "_limits", "changes_", "status_"),
    *("train_disparity_", "train_disparities_"),
)


def certified(
    estimator: ConstrainedERMClassifier,
    data: TrainingData,
    classes: NDArray[Any],  # two
    positive: Any,  # the positive one
    constraints: Sequence[Constraint],  # those that are active
    X: MatrixLike,
    metadata: Mapping[str, Any],  # groups, strata and weights, as the user passed them
) -> dict[str, Any]:
    """Return the fitted attributes of decisions that certifiably satisfy limits for unseen data.

    There are none if no constraint limits anything.
    """
    if isinstance(data.X, PartitionedRows):
        raise ValueError(NOT_LAZY)
    ordered = classes if classes.tolist()[1] == positive else classes[::-1]
    rates = rates_of(data, ordered, constraints, estimator.max_disparity)
    if rates is None:  # of several attributes, max_disparity may limit those of one group only
        return {}
    strata = _strata_of_model(estimator, X)
    has_offsets = (
        read_model(estimator.model).is_linear
        and isinstance(estimator.loss, str)
        and isinstance(estimator.solver, str)
        and (estimator.loss, estimator.solver, estimator.enforce) == ("log_loss", "auto", "strict")
        and estimator.class_weight is None
        and (strata is not None or not any(constraint.within_strata for constraint in constraints))
    )
    by = estimator._certificate().by
    check_no_floors(estimator.min_rate, estimator.selection_rate, has_offsets and by != "split")
    if by == "cross" and not has_offsets:
        raise ValueError(
            "by='cross' sets offsets on the probabilities of logistic regressions, so it needs "
            "linear scores, loss='log_loss', solver='auto', enforce='strict', no class_weight, and "
            "strata in columns that stay in the model. Use Certificate(by='split')."
        )
    if by == "split" or not has_offsets:
        return certified_decisions(estimator, data, positive, rates, X, metadata)
    groups = metadata["sensitive_features"]
    if estimator._sensitive.columns is not None:
        groups = take_columns(X, estimator._sensitive.columns)
    decisions = _offset_search(estimator, data, positive, groups, strata)
    return {"decisions_": decisions, **{name: vars(decisions)[name] for name in _SHARED}}


def _strata_of_model(estimator: ConstrainedERMClassifier, X: MatrixLike) -> list[int] | None:
    """Return where the control columns are among those of the model; None if they are not."""
    if estimator._sensitive.control_features is None:
        return None
    positions = column_positions(X, estimator._sensitive.control_features, "control_features")
    if estimator._model_positions is None:
        return positions
    used = estimator._model_positions.tolist()
    return [used.index(position) for position in positions] if set(positions) <= set(used) else None


def takes_parts(estimator: ConstrainedERMClassifier) -> bool:
    """Whether rows may come in parts: the condition of ``available_if`` for ``partial_fit``."""
    if estimator.certificate is not None:
        raise AttributeError(
            "certificate= is for fit, which sees all rows; partial_fit certifies nothing. Set "
            "certificate=None, and test with skfair.metrics.disparity_test on rows kept apart."
        )
    try:
        constraints = make_constraints(estimator.constraint, "classification")
        solver = choose_solver(estimator.solver)
    except (TypeError, ValueError):
        return True  # the method says what is wrong
    if any(constraint.within_strata for constraint in constraints):
        raise AttributeError(
            "A constraint within strata needs control_features in fit; partial_fit has none. Use "
            f"fit, or constraint={estimator.constraint!r} without ConditionalOn."
        )
    if not solver.can_advance:
        raise AttributeError(
            f"partial_fit needs a stochastic solver, got solver={estimator.solver!r}. Use 'auto' "
            "or 'alm'."
        )
    return True


def _suit_lbfgs(X: NDArray[Any]) -> bool:
    """Return whether columns are many, and vary about as much as each other and the intercept."""
    some = X[:: max(len(X) // 1000, 1)]
    spread, mean = some.std(axis=0), np.abs(some.mean(axis=0))
    return X.shape[1] > _FEW and bool(spread.min() > 0.3 and max(*spread, *mean) < 3.0)


def _offset_search(
    estimator: ConstrainedERMClassifier,
    data: TrainingData,
    positive: Any,
    groups: Any,
    strata: list[int] | None,
) -> FairDecisionClassifier:
    """Return decisions with offsets, of logistic regressions on folds."""
    weights = data.sample_weight
    n_rows = float(data.y.size if weights is None else weights.sum())
    alpha = 1 / n_rows if estimator.alpha is None else float(estimator.alpha)
    has_newton = not sparse.issparse(data.X) and data.X.shape[1] <= NEWTON_FEATURES
    has_newton = has_newton and not _suit_lbfgs(data.X)
    free: Any = LogisticRegression(
        C=1 / (alpha * n_rows) if alpha else np.inf,
        fit_intercept=estimator.fit_intercept,
        solver="newton-cholesky" if has_newton else "lbfgs",
        max_iter=1000,
    )
    if has_newton and np.abs(data.X).max(initial=0.0) > _LARGEST:
        free = make_pipeline(StandardScaler(), free)
    decisions = FairDecisionClassifier(
        free,
        estimator.constraint,
        estimator.max_disparity,
        selection_rate=estimator.selection_rate,
        group_aware=False,
        sensitive=replace(estimator._sensitive, columns=None, keep=False, control_features=strata),
        random_state=estimator.random_state,
        certificate=estimator.certificate,
        pos_label=positive,
    )
    units = None if data.units is None else data.units.codes
    with unwanted(SmallGroupWarning, RepeatedRowsWarning, GroupColumnWarning):  # have been given
        return decisions.fit(data.X, data.y, weights, sensitive_features=groups, units=units)
