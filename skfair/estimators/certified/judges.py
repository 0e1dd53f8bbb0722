"""Who judges models that are certified as a whole: by decisions, by means, or within intervals.

A judge reads the rows that had no part in the fit, asks a model for its predictions there, and
returns a verdict: a p-value of the limit, and the smallest limit that can be shown.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score

from skfair._typing import FloatArray, IntArray
from skfair.constraints.base import Constraint
from skfair.constraints.partial import read_constraint
from skfair.enforcement.certified.walk import RowRates, row_rates, walk
from skfair.enforcement.partial.promise import Promise, upper_bound
from skfair.estimators.certified.folds import Folds
from skfair.estimators.certified.split import (
    Halves,
    JudgedRows,
    Verdict,
    fit_under_rising_limits,
)
from skfair.estimators.classes import Predicts
from skfair.estimators.decisions.steps import LabelledRows, class_rules
from skfair.estimators.limits import is_nearly_constant
from skfair.estimators.partial.prediction import PartialPrediction
from skfair.groups.compared_groups import checked_rows
from skfair.groups.encoding import GroupEncoding
from skfair.groups.named_columns import take_columns
from skfair.groups.training_data import TrainingData
from skfair.metrics.disparity_tests import disparity_test, disparity_upper_bound
from skfair.metrics.evidence import SCORE_METRICS, evidence_of_scores
from skfair.problems.erm.in_memory import LinearConstrainedERM
from skfair.utils.rounding import SUM_ROUNDING
from skfair.utils.validation import check_weights

# Levels that are tried for a p-value.
_LEVELS = np.geomspace(1e-8, 0.98, 1000).tolist()


NOT_LAZY = (
    "confidence= is for rows in memory: Dask collections are not divided into parts. Fit without "
    "it, and test with skfair.metrics.disparity_test, which reads them."
)


def in_memory(data: TrainingData) -> None:
    """Raise if rows lie elsewhere."""
    if data.blocks is not None:
        raise ValueError(NOT_LAZY)


# --- decisions ---------------------------------------------------------------------------------


class Decides(Predicts, Protocol):
    """A fitted classifier."""

    pos_label_: Any


class DecisionJudge:
    """Judges decisions by the rates of groups."""

    def __init__(self, rates: RowRates, halves: Halves, confidence: float) -> None:
        self.rates, self.confidence = rates.part(halves.judging), confidence
        self.X, self.y = halves.part(halves.X), halves.part(halves.y)

    def __call__(self, model: Decides) -> Verdict:
        """Return the verdict on a model."""
        predicted = model.predict(self.X)
        selected = predicted == model.pos_label_
        shares = [
            np.average(is_so, weights=self.rates.weights)
            for is_so in (selected, self.y == model.pos_label_)
        ]
        both = np.array([[1 - share, share] for share in shares])
        weights, steps = self.rates.weights, selected[:, None]
        walked = walk(self.rates, steps, self.confidence)
        return Verdict(
            float(walked.p_values[0]),
            float(walked.disparities[0]),
            float(walked.bounds[0]),
            float(accuracy_score(self.y, predicted, sample_weight=weights)),
            float(shares[0]),
            bool(is_nearly_constant(*both)),
            walked.reported(0),
        )


def certified_decisions(
    estimator: Any,
    data: TrainingData,
    rules: Sequence[Constraint],
    classes: NDArray[Any],  # two, the positive one last
    X: Any,
    metadata: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the fitted attributes of a classifier whose decisions can be shown to keep limits."""
    certificate, codes = estimator._certificate, (data.y == classes[1]).astype(np.int64)
    rows = LabelledRows(data.groups, codes, classes, data.sample_weight, data.strata)
    bound = [rule.bound for rule in class_rules(rules, rows, estimator.max_disparity)]
    rates = row_rates(bound, rows.weights).against(certificate.shift)
    kinds = data.groups.cells(codes, 2).codes
    halves = Halves.of(X, data.y, metadata, kinds, estimator.random_state, certificate.share)
    limits = {"max_disparity": estimator.max_disparity, "constraint": estimator.constraint}
    return fit_under_rising_limits(
        estimator,
        halves,
        DecisionJudge(rates, halves, certificate.confidence),
        limits,
        float(rates.after_shift(min(block.limit for block in rates.blocks))),
        certificate.confidence,
    )


# --- means -------------------------------------------------------------------------------------


class MeanLimit(NamedTuple):
    """A limit on the difference of mean predictions, and whether it holds within strata."""

    value: float
    within_strata: bool

    @property
    def name(self) -> str:
        """What it limits, as ``train_disparities_`` calls it."""
        return "MeanScoreParity" + " within strata" * self.within_strata


class MeanJudge:
    """Judges predictions by the means of groups."""

    def __init__(
        self,
        limits: Sequence[MeanLimit],
        rows: JudgedRows,
        # "sensitive_features", "intersectional" and "sample_weight" of the test, for all rows
        options: Mapping[str, Any],
        strata: Any,  # control features of all rows, or None
        confidence: float,
        # Share of each group that may be replaced by others, with predictions in the same range
        shift: float,
    ) -> None:
        self.confidence, self.shift = confidence, shift
        self.limits, self.rows = limits, rows
        self.y = np.asarray(rows.part(rows.y), np.float64)
        own, is_crossed = rows.part(options["sensitive_features"]), options["intersectional"]
        strata = rows.part(strata)
        self.groups = [
            checked_rows(
                own,
                strata if limit.within_strata else None,
                None,
                is_crossed,
                n_samples=self.y.size,
                like=own,
            )[0]
            for limit in limits
        ]

    def __call__(self, fitted: Any) -> Verdict:
        """Return the verdict on what was fitted."""
        predicted = self.rows.predict(fitted)
        spread, shift = float(np.ptp(predicted)), self.shift
        verdicts = []
        for limit, groups in zip(self.limits, self.groups, strict=True):
            sample = None, predicted, (groups, None, None, True), None
            evidence = evidence_of_scores("mean_score_difference", sample)
            # A mean m becomes (1 - shift) m + shift q, for some q in the range of the predictions.
            now = (limit.value - shift * spread) / (1 - shift)
            p_value = evidence.p_value(now) if now >= 0 else 1.0
            bound = evidence.smallest_shown(self.confidence, spread)
            bound = shift * spread + (1 - shift) * bound
            verdicts.append((p_value, evidence.largest, bound))
        p_value, disparity, bound = (max(values) for values in zip(*verdicts, strict=True))
        deployed = self.rows.deployed(fitted)
        is_constant = bool(np.ptp(deployed) <= SUM_ROUNDING * np.abs(deployed).max())
        names = [limit.name for limit in self.limits]
        own_p, _, own_bounds = zip(*verdicts, strict=True)
        by_rule = {
            "p_values_": dict(zip(names, own_p, strict=True)),
            "certified_disparities_": dict(zip(names, own_bounds, strict=True)),
        }
        quality = _explained(self.y, predicted)
        return Verdict(p_value, disparity, bound, quality, np.nan, is_constant, by_rule)


def _explained(y: FloatArray, predicted: FloatArray) -> float:
    """Return the coefficient of determination, without the checks of scikit-learn."""
    missed, spread = float(((y - predicted) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
    if spread == 0:
        return float(missed == 0)
    return 1 - missed / spread


def certified_means(
    estimator: Any,
    data: TrainingData,
    rules: Sequence[Constraint],
    X: Any,
    metadata: Mapping[str, Any],
    # The problem of all rows and the unit of its targets, if linear models of folds are to be
    # judged: else that is one of a part of the rows
    whole: tuple[LinearConstrainedERM, float] | None,
) -> dict[str, Any]:
    """Return the fitted attributes of a regressor whose means can be shown to keep limits."""
    limits = []
    for rule in rules:
        own = rule.own_limit
        value = estimator.max_disparity if own is None else own
        compared = rule.compared()
        if rule.metric != "mean_score_difference" or compared.against_overall:
            raise ValueError(
                f"confidence= has no test of {rule!r} for regressors: use 'mean_score_parity', "
                "which compares the groups with each other."
            )
        limits.append(MeanLimit(_one_limit(value), rule.within_strata))
    if data.sample_weight is not None:
        raise ValueError("confidence= has no test of means of weighted rows. Pass no weights.")
    sensitive, strata = metadata["sensitive_features"], metadata["control_features"]
    if estimator._sensitive.columns is not None:
        sensitive = take_columns(X, estimator._sensitive.columns)
    if estimator._sensitive.within is not None:
        strata = take_columns(X, estimator._sensitive.within, "within")
    certificate, seed = estimator._certificate, estimator.random_state
    judging: JudgedRows
    if whole is not None:
        judging = Folds.of(data, *whole, seed)
    else:
        kinds = data.groups.cells().codes
        judging = Halves.of(X, data.y, metadata, kinds, seed, certificate.share)
    options = {"sensitive_features": sensitive, "intersectional": estimator._sensitive.crossed}
    return fit_under_rising_limits(
        estimator,
        judging,
        MeanJudge(limits, judging, options, strata, certificate.confidence, certificate.shift),
        {
            "max_disparity": estimator.max_disparity,
            "constraint": estimator.constraint,
        },
        min(limit.value for limit in limits),
        certificate.confidence,
        quality="r2",
    )


# --- scores within intervals -------------------------------------------------------------------


class IntervalJudge:
    """Judges scores by a constraint within an interval of ranks.

    Statistical parity has a test at each threshold, constraints on decisions have one (in each
    class that counts); the bound on other constraints is that of Dvoretzky, Kiefer and Wolfowitz,
    and its p-value the smallest level at which it is within the limit. After a shift the ranks
    within a group (and class) have moved by that share at most.
    """

    def __init__(
        self,
        estimator: Any,  # its parameters say what is limited
        halves: Halves,
        sensitive_features: Any,  # groups of all rows, if the columns of X do not hold them
    ) -> None:
        certificate = estimator._certificate
        self.limit, self.confidence = float(estimator._limit), certificate.confidence
        self.shift = certificate.shift
        self.X, self.y = halves.part(halves.X), halves.part(halves.y)
        self.groups = halves.part(sensitive_features)
        self.weights = halves.part(halves.metadata.get("sample_weight"))
        is_plain = self.weights is None and estimator.scale == "conditional"
        within = read_constraint(estimator.constraint)
        decides = within.ranked.limits_decisions
        self.classes = within.classes
        self.metric = "partial_demographic_parity_gap" if decides else str(within.metric)
        self.has_test = is_plain and self.metric in SCORE_METRICS
        self.interval = estimator.interval

    def __call__(self, model: PartialPrediction) -> Verdict:
        """Return the verdict on a model."""
        own_groups = {"sensitive_features": self.groups} if model.is_group_aware_ else {}
        scores = model.decision_function(self.X, **own_groups)
        weights = check_weights(self.weights, scores.size)
        is_right = (scores > 0) == (self.y == model.classes_[1])
        targets = np.where(self.y == model.classes_[1], 1.0, -1.0)
        groups = model._read_part_groups(self.X, self.groups)
        promise = model._promise_on(groups, targets, weights)
        cost = self._cost(promise)
        if self.shift and cost >= self.limit:
            raise ValueError(
                f"shift={self.shift:g} lets a disparity within the interval grow by {cost:.3g}, so "
                f"max_disparity={self.limit:g} cannot be shown. Pass a smaller shift or a larger "
                "limit."
            )
        ends = (
            self._by_test(promise, scores, cost)
            if self.has_test
            else self._by_bound(promise, scores)
        )
        return Verdict(
            *ends,
            float(np.average(is_right, weights=weights)),
            float(np.average(scores > 0, weights=weights)),
            bool(np.ptp(scores) == 0),
        )

    def _cost(self, promise: Promise) -> float:
        """Return what a shift may add: ranks move by it, shares by it over the length."""
        ends = {pairs.tobytes() for pairs in promise.intervals.bounds}
        lengths = promise.intervals.lengths
        by_group = np.sort(self.shift / (np.ones_like(lengths) if promise.is_ccdf else lengths))
        # At one threshold, and of the same interval, the ranks move apart by the shift at most.
        return float(by_group[-1] if self.has_test and len(ends) == 1 else by_group[-2:].sum())

    def _by_test(
        self, promise: Promise, scores: FloatArray, cost: float
    ) -> tuple[float, float, float]:
        """Return the largest p-value, disparity and bound of the classes that count."""
        positive, verdicts = promise.targets > 0, []
        for rows in [positive == c for c in self.classes] or [np.ones(scores.size, bool)]:
            codes = np.ascontiguousarray(promise.groups.codes[:, rows])
            counts = np.bincount(codes.ravel(), minlength=promise.groups.n_groups)
            if counts.min() < 2:  # so few show nothing
                return 1.0, promise.measure(scores), 1.0
            options: dict[str, Any] = {
                "sensitive_features": GroupEncoding(codes, promise.groups.levels, counts),
                "interval": self.interval,
                "confidence": self.confidence,
            }
            asked = (self.metric, None, scores[rows])
            test = disparity_test(*asked, max_disparity=self.limit - cost, **options)
            bound = min(1.0, disparity_upper_bound(*asked, **options) + cost)
            verdicts.append((test.p_value, test.statistic, bound))
        p_value, disparity, bound = np.max(verdicts, axis=0).tolist()
        return p_value, disparity, bound

    def _by_bound(self, promise: Promise, scores: FloatArray) -> tuple[float, float, float]:
        def bound(level: float) -> float:
            return upper_bound(promise, scores, 1 - level, self.shift)

        lowest = bisect_left(_LEVELS, True, key=lambda level: bound(level) <= self.limit)
        upper = bound(1 - self.confidence)
        return [*_LEVELS, 1.0][lowest], promise.measure(scores), upper


def certified_interval(
    estimator: Any, data: TrainingData, X: Any, metadata: Mapping[str, Any], seed: Any
) -> dict[str, Any]:
    """Return the fitted attributes of a model whose scores can be shown to satisfy a limit."""
    within = read_constraint(estimator.constraint)
    if not within.metric or within.ranks_whole_groups:
        raise ValueError(
            f"confidence= has no test of constraint={estimator.constraint!r}. Use a constraint on "
            "scores or decisions within an interval, such as 'statistical_parity', with "
            "rank_within='class'."
        )
    limit, certificate = _one_limit(estimator._limit), estimator._certificate
    positive: IntArray = (data.y == np.unique(data.y)[-1]).astype(np.int64)
    kinds = data.groups.cells(positive, 2).codes
    halves = Halves.of(X, data.y, metadata, kinds, seed, certificate.share)
    return fit_under_rising_limits(
        estimator,
        halves,
        IntervalJudge(estimator, halves, metadata["sensitive_features"]),
        {"max_disparity": estimator.max_disparity, "constraint": estimator.constraint},
        limit,
        certificate.confidence,
    )


def _one_limit(limit: Any) -> float:
    """Return a limit; raise if there is one for each attribute."""
    if isinstance(limit, Mapping):
        raise ValueError(
            "confidence= needs one max_disparity for all attributes here, got "
            f"{limit!r}. Use the smallest one."
        )
    return float(limit)
