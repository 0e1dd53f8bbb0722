"""Certificates of ConstrainedERMClassifier, by offsets of decisions or by refits of the model.

``fit`` calls :func:`certified` if ``certificate=`` is set. There are two ways. With the default
``by="auto"``, the first one is used if it is possible, and otherwise the second one:

- "cross": a FairDecisionClassifier around a logistic regression, which is the model without
  constraints, finds offsets of its decisions on all rows and certifies them
  (:func:`_with_offsets`). It then predicts for this estimator. This needs linear scores, the log
  loss, ``solver="auto"``, ``enforce="strict"``, no class weights, and columns with strata, if a
  constraint holds within strata, that the model uses.
- "split": the estimator is trained under its constraints on one part of the rows, and certified as
  a whole on the other part (:func:`_certified_as_a_whole`). Any model can be certified in this way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skfair._typing import IntArray, MatrixLike
from skfair.classification.fair_decisions import FairDecisionClassifier
from skfair.constraints.base import Constraint
from skfair.enforcement.certified.walk import RowRates, row_rates, walk
from skfair.estimators.certificate import NOT_LAZY, Certified, check_no_floors
from skfair.estimators.certified.refits import Judgement, certified_refit, split_and_fits
from skfair.estimators.decisions.bind import LabelledRows, class_constraints
from skfair.estimators.erm.report import ConstrainedERMBase
from skfair.estimators.erm.settings import Settings
from skfair.estimators.erm.solve import NEWTON_FEATURES
from skfair.estimators.limits import is_nearly_constant, warn_of_changes
from skfair.exceptions import GroupColumnWarning, RepeatedRowsWarning, SmallGroupWarning
from skfair.groups.limits import Limit
from skfair.groups.named_columns import column_positions, take_columns
from skfair.groups.sensitive import Sensitive
from skfair.groups.training_data import TrainingData
from skfair.utils.partitioned_rows import PartitionedRows
from skfair.utils.warn import unwanted

# If a column has larger numbers than this and Newton's method is used, all columns are
# standardised, and the penalty is on the weights of standardised columns. scikit-learn's Newton
# method fails for columns of size 1e8, because their squares leave no digit for the intercept.
_LARGEST = 1e6
# With more columns than this, L-BFGS is faster if they have the same scale. With 50 columns it
# takes two fifths of the time of Newton's method. With 33 columns of real data (Adult, Bank) both
# take the same time.
_FEW = 40


def certified(
    estimator: ConstrainedERMBase,
    settings: Settings,
    data: TrainingData,
    classes: NDArray[Any],  # two
    positive: Any,  # the positive one
    constraints: Sequence[Constraint],  # the active constraints
    X: MatrixLike,
    metadata: Mapping[str, Any],  # groups, strata and weights, as the user passed them
) -> dict[str, Any]:
    """Return the fitted attributes of decisions that certifiably satisfy limits for unseen data.

    If no constraint limits anything, the dict is empty, and ``fit`` continues without a
    certificate.
    """
    if isinstance(data.X, PartitionedRows):
        raise ValueError(NOT_LAZY)
    ordered = classes if classes.tolist()[1] == positive else classes[::-1]
    rates = _limited_rates(data, ordered, constraints, settings.limit)
    if rates is None:  # for example if max_disparity only limits attributes with a single group
        return {}
    by, strata = estimator._certificate().by, _strata_of_model(estimator, X)
    needs_strata = any(constraint.within_strata for constraint in constraints)
    can_cross = settings.is_logistic_regression and (strata is not None or not needs_strata)
    crosses = can_cross and by != "split"
    check_no_floors(settings.min_rate, settings.selection_rate, crosses)
    if by == "cross" and not crosses:
        raise ValueError(
            "by='cross' sets offsets on the probabilities of logistic regressions, so it needs "
            "linear scores, loss='log_loss', solver='auto', enforce='strict', no class_weight, and "
            "strata in columns that stay in the model. Use Certificate(by='split')."
        )
    if not crosses:
        return _certified_as_a_whole(estimator, data, positive, rates, X, metadata)
    sensitive, groups = estimator._sensitive, metadata["sensitive_features"]
    if sensitive.columns is not None:
        groups = take_columns(X, sensitive.columns)
    sensitive = replace(sensitive, columns=None, keep=False, control_features=strata)
    decisions = _with_offsets(settings, data, positive, groups, sensitive)
    return {"decisions_": decisions, **decisions._promised()}


def _limited_rates(
    data: TrainingData, classes: NDArray[Any], constraints: Sequence[Constraint], limit: Limit
) -> RowRates | None:
    """Return the rates that constraints limit, as sums over rows; None if nothing is limited.

    ``classes`` has the positive class last.
    """
    codes = (data.y == classes[1]).astype(np.int64)
    weights = data.groups.rate_weight(data.sample_weight)
    rows = LabelledRows(data.groups, codes, classes, weights, data.strata)
    bound = class_constraints(constraints, rows, limit)
    rates = row_rates(bound, codes, rows.weights, data.units) if bound else None
    return rates if rates is not None and rates.compared else None


def _strata_of_model(estimator: ConstrainedERMBase, X: MatrixLike) -> list[int] | None:
    """Return the positions of the control columns among the columns of the model.

    None if there are no control columns in X, or if the model does not use all of them.
    """
    if estimator._sensitive.control_features is None:
        return None
    positions = column_positions(X, estimator._sensitive.control_features, "control_features")
    if estimator._model_positions is None:
        return positions
    used = estimator._model_positions.tolist()
    return [used.index(position) for position in positions] if set(positions) <= set(used) else None


def _with_offsets(
    settings: Settings, data: TrainingData, positive: Any, groups: Any, sensitive: Sensitive
) -> FairDecisionClassifier:
    """Return fitted decisions with certified offsets, of logistic regressions on folds."""
    decisions = FairDecisionClassifier(
        _logistic_regression(settings, data),
        settings.constraint,
        settings.max_disparity,
        selection_rate=settings.selection_rate,
        group_aware=False,
        sensitive=sensitive,
        random_state=settings.random_state,
        certificate=settings.certificate,
        pos_label=positive,
    )
    units = None if data.units is None else data.units.codes
    # These warnings were given when the outer estimator read the rows.
    with unwanted(SmallGroupWarning, RepeatedRowsWarning, GroupColumnWarning):
        return decisions.fit(
            data.X, data.y, data.sample_weight, sensitive_features=groups, units=units
        )


def _logistic_regression(settings: Settings, data: TrainingData) -> Any:
    """Return the model without limits, with the solver that is fastest for these columns."""
    weights = data.sample_weight
    n_rows = float(data.y.size if weights is None else weights.sum())
    alpha = 1 / n_rows if settings.alpha is None else float(settings.alpha)
    has_newton = not sparse.issparse(data.X) and data.X.shape[1] <= NEWTON_FEATURES
    has_newton = has_newton and not _suit_lbfgs(data.X)
    free = LogisticRegression(
        C=1 / (alpha * n_rows) if alpha else np.inf,
        fit_intercept=settings.fit_intercept,
        solver="newton-cholesky" if has_newton else "lbfgs",
        max_iter=1000,
    )
    if has_newton and np.abs(data.X).max(initial=0.0) > _LARGEST:
        return make_pipeline(StandardScaler(), free)
    return free


def _suit_lbfgs(X: NDArray[Any]) -> bool:
    """Return whether there are many columns, which all have a scale of about 1."""
    some = X[:: max(len(X) // 1000, 1)]
    spread, mean = some.std(axis=0), np.abs(some.mean(axis=0))
    return X.shape[1] > _FEW and bool(spread.min() > 0.3 and max(*spread, *mean) < 3.0)


def _certified_as_a_whole(
    estimator: Certified,
    data: TrainingData,
    positive: Any,  # the positive class
    rates: RowRates,
    X: Any,
    metadata: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the fitted attributes of the last refitted model whose decisions are certified.

    :mod:`skfair.estimators.certified.refits` says which models are tested, and which one is
    returned if none is certified.
    """
    certificate = estimator._certificate()
    rates, codes = rates.against(certificate.shift), (data.y == positive).astype(np.int64)
    kinds = data.groups.cells(codes, 2).codes
    held_out, path = split_and_fits(estimator, X, data, kinds, metadata, estimator.random_state)
    own, actual = rates.part(held_out.judging), codes[held_out.judging]

    def judge(models: list[Any]) -> Judgement:
        selected = (held_out.predictions(models) == positive).astype(np.int64)
        return _judged(own, selected, actual, certificate.confidence)

    limits = {peers.constraint: float(rates.after_shift(peers.limit)) for peers in rates.compared}
    attributes = certified_refit(estimator, held_out, path, judge, limits)
    # With enforce="surrogate" there are no changes to report.
    if attributes["status_"] == "certified" and attributes["changes_"]:
        warn_of_changes(attributes["changes_"], codes, rates.weights)
    return attributes


def _judged(rates: RowRates, selected: IntArray, actual: IntArray, confidence: float) -> Judgement:
    """Return the evidence about a model, from the decisions and true classes of rows that judge."""
    walked = walk(rates, selected[:, None], confidence)
    weights = rates.weights / rates.weights.sum()
    shares = [np.array([1 - weights @ labels, weights @ labels]) for labels in (selected, actual)]
    return Judgement(
        p_value=float(walked.p_values[0]),
        disparity=float(walked.disparities[0]),
        bound=float(walked.bounds[0]),
        quality=float(weights @ (selected == actual)),
        selection_rate=float(shares[0][1]),
        is_constant=bool(is_nearly_constant(*shares)),
        by_constraint=walked.reported(0),
    )
