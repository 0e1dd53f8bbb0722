"""Certificates of refitted models, by their decisions or their means.

A judge reads the rows that had no part in the fit, asks a model for its predictions there, and
returns a judgement: a p-value of the limit, and the smallest limit that can be shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import indexable

from skfair._typing import IntArray, Seed
from skfair.constraints.base import Constraint
from skfair.enforcement.certified.walk import RowRates, row_rates, walk
from skfair.estimators.certificate import Certified
from skfair.estimators.certified.refits import (
    MOST_ROWS_IN_FOLDS,
    HeldOut,
    Judgement,
    certified_refit,
    deployed,
    in_folds,
    in_parts,
    linear_refits,
    refits,
)
from skfair.estimators.decisions.bind import LabelledRows, class_constraints
from skfair.estimators.erm.bind import bind
from skfair.estimators.erm.report import ConstrainedERMBase, changes, disparities, own_scores
from skfair.estimators.erm.task import Task
from skfair.estimators.limits import is_nearly_constant, warn_of_changes
from skfair.estimators.wrapped_scores import as_rows
from skfair.groups.attributes import take_rows
from skfair.groups.cohort import Cohort
from skfair.groups.limits import Limit
from skfair.groups.training_data import TrainingData
from skfair.metrics.evidence import evidence_of_scores
from skfair.utils.rounding import SUM_ROUNDING


def rates_of(
    data: TrainingData, classes: NDArray[Any], constraints: Sequence[Constraint], limit: Limit
) -> RowRates | None:
    """Return what rows add to the rates that constraints limit, None for none.

    The positive class is the last one of the two.
    """
    codes = (data.y == classes[1]).astype(np.int64)
    weights = data.groups.rate_weight(data.sample_weight)
    rows = LabelledRows(data.groups, codes, classes, weights, data.strata)
    bound = class_constraints(constraints, rows, limit)
    rates = row_rates(bound, codes, rows.weights, data.units) if bound else None
    return rates if rates is not None and rates.compared else None


def split_and_fits(
    estimator: Certified, X: Any, data: TrainingData, kinds: IntArray, metadata: Any, seed: Seed
) -> tuple[HeldOut, Iterator[list[Any]]]:
    """Return the rows, split for fit and test, and models fitted under rising limits."""
    rows, y = indexable(as_rows(X), data.y)
    fitted, judging = in_parts(kinds, seed, estimator._certificate().share, data.units)
    held_out = HeldOut(rows, y, [(fitted, data.groups.known(judging))], data.units)
    return held_out, refits(estimator, held_out, metadata)


def certified_decisions(
    estimator: Certified,
    data: TrainingData,
    positive: Any,  # the positive class
    rates: RowRates,
    X: Any,
    metadata: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the fitted attributes of a classifier whose decisions certifiably satisfy limits."""
    certificate = estimator._certificate()
    rates, codes = rates.against(certificate.shift), (data.y == positive).astype(np.int64)
    kinds = data.groups.cells(codes, 2).codes
    held_out, path = split_and_fits(estimator, X, data, kinds, metadata, estimator.random_state)
    own, actual = rates.part(held_out.judging), codes[held_out.judging]

    def judge(models: list[Any]) -> Judgement:
        selected = (held_out.predictions(models) == positive).astype(np.int64)
        walked = walk(own, selected[:, None], certificate.confidence)
        weights = own.weights / own.weights.sum()
        shares = [
            np.array([1 - weights @ labels, weights @ labels]) for labels in (selected, actual)
        ]
        return Judgement(
            float(walked.p_values[0]),
            float(walked.disparities[0]),
            float(walked.bounds[0]),
            float(weights @ (selected == actual)),
            float(shares[0][1]),
            bool(is_nearly_constant(*shares)),
            walked.reported(0),
        )

    limits = {peers.constraint: float(rates.after_shift(peers.limit)) for peers in rates.compared}
    attributes = certified_refit(estimator, held_out, path, judge, limits)
    if attributes["status_"] == "certified" and attributes["changes_"]:  # none of a surrogate
        warn_of_changes(attributes["changes_"], codes, rates.weights)
    return attributes


def certified_means(
    estimator: ConstrainedERMBase,
    data: TrainingData,
    task: Task,
    constraints: Sequence[Constraint],
    X: Any,
    metadata: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the fitted attributes of a regressor whose means certifiably satisfy limits.

    Linear models of folds are judged. With many rows, and for other models, one model of a part of
    the rows is judged.
    """
    certificate, seed = estimator._certificate(), estimator.random_state
    is_linear = task.settings.model.is_linear
    if certificate.by == "cross" and not is_linear:
        raise ValueError(
            "by='cross' returns the mean of linear models, so it needs model='linear'. Use "
            "Certificate(by='split')."
        )
    limits = _limits_of_means(estimator, constraints)
    if data.sample_weight is not None:
        raise ValueError("certificate= has no test of means of weighted rows. Pass no weights.")
    kinds, is_small = data.groups.cells().codes, data.y.size <= MOST_ROWS_IN_FOLDS
    by = "cross" if certificate.by == "auto" and is_small else certificate.by
    if by != "cross" or not is_linear:
        held_out, path = split_and_fits(estimator, X, data, kinds, metadata, seed)
        return _judged_means(estimator, data, constraints, limits, held_out, path)
    problem = bind(data, task, constraints)
    held_out = HeldOut(data.X, data.y, in_folds(data, seed), data.units)
    folds = [
        linear_refits(task.settings, data, problem, task.scale.spread, rows)
        for rows, _ in held_out.splits
    ]
    path = map(list, zip(*folds, strict=True))
    shown = _judged_means(estimator, data, constraints, limits, held_out, path)
    scores = own_scores(shown, data, task.scale)
    shown["changes_"] = changes(data, task, problem, scores)
    return shown | disparities(problem, problem.decide(scores), task.scale)


def _judged_means(
    estimator: Certified,
    data: TrainingData,
    constraints: Sequence[Constraint],
    limits: Sequence[float],
    held_out: HeldOut,
    path: Iterator[list[Any]],
) -> dict[str, Any]:
    """Return the fitted attributes of the last model whose means the held-out rows certify."""
    certificate = estimator._certificate()
    judging, strata, units = held_out.judging, None, held_out.judging_units
    together = None if units is None else units.codes
    names = np.array(data.groups.names, dtype=object)[data.groups.codes.T[judging]]
    if data.strata is not None:
        strata = np.array(data.strata.names, dtype=object)[data.strata.codes[judging]]
    nothing = np.zeros(judging.size)
    who = [(names, strata if each.within_strata else None, None, False) for each in constraints]
    rows = [Cohort.of_scores(nothing, None, *own, each_row=True, units=together) for own in who]
    y = np.asarray(take_rows(data.y, judging), np.float64)
    variation = float(np.sum((y - y.mean()) ** 2)) or 1.0
    words = ["MeanScoreParity" + " within strata" * each.within_strata for each in constraints]

    def judge(models: list[Any]) -> Judgement:
        predicted = held_out.predictions(models)
        spread, shift, verdicts = float(np.ptp(predicted)), certificate.shift, []
        for limit, own in zip(limits, rows, strict=True):
            evidence = evidence_of_scores("mean_score_difference", own.with_scores(predicted))
            # A mean m becomes (1 - shift) m + shift q, for some q in the range of the predictions.
            now = (limit - shift * spread) / (1 - shift)
            p_value = evidence.p_value(now) if now >= 0 else 1.0
            bound = evidence.smallest_shown(certificate.confidence, spread)
            verdicts.append((p_value, evidence.largest, shift * spread + (1 - shift) * bound))
        p_values, measured, bounds = zip(*verdicts, strict=True)
        of_all = predicted if len(models) == 1 else deployed(models).predict(held_out.X)
        return Judgement(
            max(p_values),
            max(measured),
            max(bounds),
            1 - float(np.sum((y - predicted) ** 2)) / variation,
            np.nan,
            bool(np.ptp(of_all) <= SUM_ROUNDING * np.abs(of_all).max()),
            {
                "p_values_": dict(zip(words, p_values, strict=True)),
                "certified_disparities_": dict(zip(words, bounds, strict=True)),
            },
        )

    asked = dict(zip(words, limits, strict=True))
    return certified_refit(estimator, held_out, path, judge, asked, quality="r2")


def _limits_of_means(estimator: Certified, constraints: Sequence[Constraint]) -> list[float]:
    """Return the limit of each constraint; raise if it has no test."""
    limits = []
    for constraint in constraints:
        if constraint.metric != "mean_score_difference" or constraint.compared().against_overall:
            raise ValueError(
                f"certificate= has no test of {constraint!r} for regressors: use "
                "'mean_score_parity', which compares the groups with each other."
            )
        own = constraint.own_limit
        limits.append(one_limit(estimator.max_disparity if own is None else own))
    return limits


def one_limit(limit: Any) -> float:
    """Return a limit; raise if there is one for each attribute."""
    if isinstance(limit, Mapping):
        raise ValueError(
            "certificate= needs one max_disparity for all attributes here, got "
            f"{limit!r}. Use the smallest one."
        )
    return float(limit)
