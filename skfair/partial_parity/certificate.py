"""Certificates of PartialParityClassifier and PartialParityCalibrator.

Both call :func:`certified_interval` in ``fit`` if ``certificate=`` is set. It splits the rows, and
:mod:`skfair.estimators.certified.refits` fits models under rising limits. The judge in this file
scores the rows that were not part of the fit, and returns the p-value of the limit and the smallest
limit that can be certified.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from skfair._typing import FloatArray
from skfair.estimators.certificate import Certificate, Certified
from skfair.estimators.certified.refits import Judgement, certified_refit, one_limit, split_and_fits
from skfair.groups.attributes import take_rows
from skfair.groups.encoding import GroupEncoding
from skfair.groups.training_data import TrainingData
from skfair.metrics.disparity_tests import disparity_test, disparity_upper_bound
from skfair.metrics.evidence import SCORE_METRICS
from skfair.partial_parity.interval_constraint import read_constraint
from skfair.partial_parity.prediction import PartialPrediction, promise_on
from skfair.partial_parity.promise import Promise, limit_of, upper_bound
from skfair.read import read_part_groups
from skfair.utils.validation import check_weights

# If a limit has a confidence bound but no test, the p-value is the smallest of these error
# probabilities at which the bound is within the limit, or 1 if there is none.
_LEVELS = np.geomspace(1e-8, 0.98, 1000).tolist()


def certified_interval(
    estimator: Certified, data: TrainingData, X: Any, metadata: Mapping[str, Any], seed: Any
) -> dict[str, Any]:
    """Return the fitted attributes of a model whose scores certifiably satisfy a limit.

    ``metadata`` are the arguments of ``fit`` with one value per row, as they were passed.
    """
    within = read_constraint(estimator.constraint)
    if not within.metric or within.ranks_whole_groups:
        raise ValueError(
            f"certificate= has no test of constraint={estimator.constraint!r}. Use a constraint on "
            "scores or decisions within an interval, such as 'statistical_parity', with "
            "rank_within='class'."
        )
    limit = one_limit(limit_of(estimator.constraint, estimator.max_disparity))
    certificate = estimator._certificate()
    codes = (data.y == np.unique(data.y)[-1]).astype(np.int64)
    kinds = data.groups.cells(codes, 2).codes
    held_out, path = split_and_fits(estimator, X, data, kinds, metadata, seed)
    columns = held_out.X, held_out.y, metadata["sensitive_features"], metadata["sample_weight"]
    own: list[Any] = [v if v is None else take_rows(v, held_out.judging) for v in columns]
    rows, y, own_groups, own_weights = own

    def judge(models: list[PartialPrediction]) -> Judgement:
        (model,) = models
        scores = model.decision_function(
            rows, **({"sensitive_features": own_groups} if model.is_group_aware_ else {})
        )
        weights, is_positive = check_weights(own_weights, scores.size), y == model.classes_[1]
        groups = read_part_groups(model, rows, own_groups)
        promise = promise_on(model, groups, np.where(is_positive, 1.0, -1.0), weights)
        promise = replace(promise, units=held_out.judging_units)
        judged = _judged_scores(promise, scores, limit, certificate)
        return Judgement(
            *judged,
            float(np.average((scores > 0) == is_positive, weights=weights)),
            float(np.average(scores > 0, weights=weights)),
            bool(np.ptp(scores) == 0),
            {
                "p_values_": {promise.name: judged[0]},
                "certified_disparities_": {promise.name: judged[2]},
            },
        )

    return certified_refit(estimator, held_out, path, judge, {"": limit})


def _judged_scores(
    promise: Promise, scores: FloatArray, limit: float, certificate: Certificate
) -> tuple[float, float, float]:
    """Return the p-value of a limit, the disparity of scores, and the smallest certifiable limit.

    For rows without weights :mod:`skfair.metrics` has tests of statistical parity (at each
    threshold) and of constraints on decisions (in each class on which the constraint depends).
    Otherwise the bound of Dvoretzky, Kiefer and Wolfowitz is used, with a p-value from ``_LEVELS``.
    If a share ``shift`` of a group (and class) changes, ranks change by at most this share.
    """
    within, shift, confidence = promise.constraint, certificate.shift, certificate.confidence
    decides = within.ranked.limits_decisions
    metric = "partial_demographic_parity_gap" if decides else str(within.metric)
    has_test = promise.weights is None and not promise.is_ccdf and metric in SCORE_METRICS
    # A shift changes ranks by at most its own size, and shares of an interval by its size divided
    # by the length. At one threshold of the same interval, the distance of two ranks grows by at
    # most the shift.
    ends = {pairs.tobytes() for pairs in promise.intervals.bounds}
    lengths = promise.intervals.lengths
    by_group = np.sort(shift / (np.ones_like(lengths) if promise.is_ccdf else lengths))
    cost = float(by_group[-1] if has_test and len(ends) == 1 else by_group[-2:].sum())
    if shift and cost >= limit:
        raise ValueError(
            f"shift={shift:g} lets a disparity within the interval grow by {cost:.3g}, so "
            f"max_disparity={limit:g} cannot be shown. Pass a smaller shift or a larger limit."
        )
    if not has_test:

        def bound(level: float) -> float:
            return upper_bound(promise, scores, 1 - level, shift)

        lowest = bisect_left(_LEVELS, True, key=lambda level: bound(level) <= limit)
        return [*_LEVELS, 1.0][lowest], promise.measure(scores), bound(1 - confidence)
    positive, verdicts = promise.targets > 0, []
    for rows in [positive == c for c in within.classes] or [np.ones(scores.size, bool)]:
        groups = GroupEncoding.of(promise.groups.codes[:, rows], promise.groups.levels)
        units, members = promise.units, groups.codes
        if units is not None:
            units = units.taken(rows)
            members = np.unique(members * units.n_units + units.codes) // units.n_units
        n_members = np.bincount(members.ravel(), minlength=groups.n_groups)
        if n_members.min() < 2:  # a single person gives no evidence about a group
            return 1.0, promise.measure(scores), 1.0
        options: dict[str, Any] = {
            "sensitive_features": groups,
            "interval": promise.interval,
            "confidence": confidence,
            "units": None if units is None else units.codes,
        }
        of_class = scores[rows]
        test = disparity_test(metric, None, of_class, max_disparity=limit - cost, **options)
        highest = min(1.0, disparity_upper_bound(metric, None, of_class, **options) + cost)
        verdicts.append((test.p_value, test.statistic, highest))
    p_value, disparity, highest = np.max(verdicts, axis=0).tolist()
    return p_value, disparity, highest
