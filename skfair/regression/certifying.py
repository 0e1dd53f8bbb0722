"""Certificates of ConstrainedERMRegressor: limits on differences of mean predictions.

``fit`` calls :func:`certified_means` if ``certificate=`` is set. There are two ways, ``by=``:

- "cross": linear models are fitted on folds, each is tested on its own fold, and their mean is
  returned (:mod:`skfair.estimators.certified.linear_folds`).
- "split": the estimator is refitted on one part of the rows and tested on the other
  (:func:`skfair.estimators.certified.refits.split_and_fits`).

In both ways models are fitted under rising limits, and :func:`_certified` judges them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skfair.constraints.base import Constraint
from skfair.estimators.certificate import Certificate, Certified
from skfair.estimators.certified.linear_folds import linear_refits, mean_model
from skfair.estimators.certified.refits import (
    HeldOut,
    Judgement,
    certified_refit,
    in_folds,
    one_limit,
    split_and_fits,
)
from skfair.estimators.erm.bind import bind
from skfair.estimators.erm.report import changes, disparities, own_scores
from skfair.estimators.erm.task import Task
from skfair.estimators.explained import warn_if_less_explained
from skfair.groups.attributes import take_rows
from skfair.groups.cohort import cohort_of
from skfair.groups.cohort_rows import score_rows
from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.training_data import TrainingData
from skfair.metrics.evidence import evidence_of_scores
from skfair.utils.rounding import SUM_ROUNDING

# With more rows than this, by="auto" means "split", which then loses little accuracy and takes a
# tenth of the time.
MOST_ROWS_IN_FOLDS = 50_000


def certified_means(
    estimator: Certified,
    data: TrainingData,
    task: Task,
    constraints: Sequence[Constraint],
    X: Any,
    metadata: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the fitted attributes of a regressor whose mean predictions satisfy certified limits.

    ``X`` and ``metadata`` are the arguments of ``fit`` as they were passed. Refits get them.
    """
    by, is_linear = estimator._certificate().by, task.settings.model.is_linear
    if by == "cross" and not is_linear:
        raise ValueError(
            "by='cross' returns the mean of linear models, so it needs model='linear'. Use "
            "Certificate(by='split')."
        )
    limits = _tested_limits(constraints, task.settings.limit)
    if data.sample_weight is not None:
        raise ValueError("certificate= has no test of means of weighted rows. Pass no weights.")
    if by == "auto":
        by = "cross" if is_linear and data.y.size <= MOST_ROWS_IN_FOLDS else "split"
    seed = task.settings.random_state
    if by == "split":
        kinds = data.groups.cells().codes
        held_out, path = split_and_fits(estimator, X, data, kinds, metadata, seed)
        return _warned(_certified(estimator, data, constraints, limits, held_out, path))
    problem = bind(data, task, constraints)
    held_out = HeldOut(data.X, data.y, in_folds(data, seed), data.units)
    folds = [
        linear_refits(task.settings, data, problem, task.scale.spread, rows)
        for rows, _ in held_out.splits
    ]
    path = map(list, zip(*folds, strict=True))
    shown = _certified(estimator, data, constraints, limits, held_out, path)
    # The mean of the models was not fitted itself, so its disparities are measured here.
    scores = own_scores(shown, data, task.scale)
    shown["changes_"] = changes(data, task, problem, scores)
    return _warned(shown | disparities(problem, problem.decide(scores), task.scale))


def _warned(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the fitted attributes; warn if a certified model explains much less than without."""
    if attributes["status_"] == "certified":
        others = ["lower the confidence", "fit to more rows"]
        warn_if_less_explained(attributes["changes_"], others=others)
    return attributes


def _tested_limits(constraints: Sequence[Constraint], max_disparity: Any) -> list[float]:
    """Return the limit of each constraint; raise for a constraint that cannot be certified."""
    limits = []
    for constraint in constraints:
        if constraint.metric != "mean_score_difference" or constraint.compared().against_overall:
            raise ValueError(
                f"certificate= has no test of {constraint!r} for regressors: use "
                "'mean_score_parity', which compares the groups with each other."
            )
        own = constraint.own_limit
        limits.append(one_limit(max_disparity if own is None else own))
    return limits


def _certified(
    estimator: Certified,
    data: TrainingData,
    constraints: Sequence[Constraint],
    limits: Sequence[float],
    held_out: HeldOut,
    path: Iterator[list[Any]],  # steps of rising limits, with a model for each split
) -> dict[str, Any]:
    """Return the fitted attributes of the last model whose means the held-out rows certify."""
    certificate, of_constraints = (
        estimator._certificate(),
        _judging_rows(data, constraints, held_out),
    )
    # Models of folds close the gaps on the other folds. What they leave in their own folds cancels
    # over the folds, so the gaps were closed on the rows that test them, and p-values add up. (With
    # the largest one, 6% of 600 certificates of four and six groups were wrong where equal means
    # are just testable.) The error probability is divided among several constraints.
    adds, n_tests = len(held_out.splits) > 1, len(constraints)
    if adds:
        certificate = replace(certificate, confidence=1 - (1 - certificate.confidence) / n_tests)
    y = np.asarray(take_rows(data.y, held_out.judging), np.float64)
    variation = float(np.sum((y - y.mean()) ** 2)) or 1.0  # the denominator of R2
    names = ["MeanScoreParity" + " within strata" * each.within_strata for each in constraints]

    def judge(models: list[Any]) -> Judgement:
        predicted = held_out.predictions(models)
        of_limits = [
            _judged(rows.with_scores(predicted), limit, float(np.ptp(predicted)), certificate, adds)
            for rows, limit in zip(of_constraints, limits, strict=True)
        ]
        p_values, measured, bounds = zip(*of_limits, strict=True)
        of_all = predicted if len(models) == 1 else mean_model(models).predict(held_out.X)
        return Judgement(
            p_value=min(n_tests * max(p_values), 1.0) if adds else max(p_values),
            disparity=max(measured),
            bound=max(bounds),
            quality=1 - float(np.sum((y - predicted) ** 2)) / variation,
            selection_rate=np.nan,
            is_constant=bool(np.ptp(of_all) <= SUM_ROUNDING * np.abs(of_all).max()),
            by_constraint={
                "p_values_": dict(zip(names, p_values, strict=True)),
                "certified_disparities_": dict(zip(names, bounds, strict=True)),
            },
        )

    asked = dict(zip(names, limits, strict=True))
    return certified_refit(
        estimator, held_out, path, judge, asked, quality="r2", deployed=mean_model
    )


def _judging_rows(
    data: TrainingData, constraints: Sequence[Constraint], held_out: HeldOut
) -> list[MeasuredRows]:
    """Return the rows that judge, in the groups and strata of each constraint.

    Their predictions are zeros, which the judge replaces by those of a model.
    """
    judging, strata, units = held_out.judging, None, held_out.judging_units
    together = None if units is None else units.codes
    groups = np.array(data.groups.names, dtype=object)[data.groups.codes.T[judging]]
    if data.strata is not None:
        strata = np.array(data.strata.names, dtype=object)[data.strata.codes[judging]]
    nothing = np.zeros(judging.size)
    judged = []
    for each in constraints:
        people = cohort_of(
            y_score=nothing,
            sensitive_features=groups,
            control_features=strata if each.within_strata else None,
        )
        judged.append(score_rows(people, intersectional=False, each_row=True, units=together))
    return judged


def _judged(
    rows: MeasuredRows,  # the rows that judge, with their predictions
    limit: float,
    spread: float,  # range of the predictions
    certificate: Certificate,
    adds: bool,  # whether the p-values of all pairs of groups add up
) -> tuple[float, float, float]:
    """Return the p-value of a limit, the disparity, and the smallest limit that is certified."""
    shift, evidence = certificate.shift, evidence_of_scores("mean_score_difference", rows)
    # If a share ``shift`` of a group changes, its mean m becomes (1 - shift) m + shift q, with some
    # q in the range of the predictions.
    now = (limit - shift * spread) / (1 - shift)
    test = evidence.total_p_value if adds else evidence.p_value
    p_value = test(now) if now >= 0 else 1.0
    bound = evidence.smallest_shown(certificate.confidence, spread, adds=adds)
    return p_value, evidence.largest, shift * spread + (1 - shift) * bound
