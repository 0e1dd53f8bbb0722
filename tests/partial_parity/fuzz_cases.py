"""Parity within percentile intervals: hard fits and arguments."""

from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from skfair import Sensitive, metrics
from skfair.classification import PartialParityCalibrator, PartialParityClassifier
from skfair.constraints.partial import IntervalConstraint, read_constraint
from skfair.partial_parity.strict_rounds import INTERVAL_SOLVERS
from tests import naive
from tests.fuzz.hard_fits import EXACT, Count, Fit, Pair, ones_or_weights, weighted
from tests.fuzz.hard_rows import Rows, draw_rows, pick
from tests.fuzz.parameters import BOOLEAN, options

PARTIAL = [
    *["statistical_parity", "statistical_parity", "demographic_parity", "group_auc"],
    *["equal_opportunity", "equalized_odds"],
]
INTERVALS = [(0.0, 0.5), (0.0, 1.0), (0.1, 0.6), [(0.0, 0.3), (0.5, 0.8)]]
MANY = [14, 24, 40, 40, 60, 90]


def partial_disparity(model: Any, scores: np.ndarray, rows: Rows, intersectional: bool) -> float:
    """The disparity within intervals, of the worst attribute; NaN where it is undefined."""
    columns = rows.columns(intersectional)
    weights = ones_or_weights(rows)
    if all(len(set(groups)) == 1 for groups in columns):
        return 0.0
    name = read_constraint(model.constraint).constraint
    if name == "statistical_parity" and model.scale == "conditional":
        # Only their order counts, and scores may be too close for a threshold between them.
        ranks, pairs = np.unique(scores, return_inverse=True)[1], np.atleast_2d(model.interval)
        there = weights > 0
        return max(
            naive.partial_statistical_parity(
                ranks[there], groups[there], weights[there], dict.fromkeys(groups, pairs.tolist())
            )
            for groups in columns
        )
    return measured(model, scores, rows, intersectional)


def measured(model: Any, scores: np.ndarray, rows: Rows, intersectional: bool) -> float:
    """The same by the metric that the page of the estimator names."""
    constraint, is_ccdf = read_constraint(model.constraint), model.scale == "ccdf"
    name = constraint.constraint
    given: dict[str, Any] = {
        "sensitive_features": rows.sensitive_features,
        "interval": model.interval,
        "sample_weight": rows.weights,
        "intersectional": intersectional,
    }
    if name == "statistical_parity":
        try:
            return metrics.partial_ccdf_gap(rows.y, scores, **given)
        except ValueError:  # ties: no threshold lies inside
            return float("nan")
    if name == "demographic_parity":
        given["normalize"] = not is_ccdf
    elif name != "group_auc":
        given["rank_within"] = constraint.rank_within
    pairs = np.atleast_2d(model.interval)
    unit = np.ptp(pairs, axis=1).sum() if is_ccdf and name.startswith("equal") else 1.0
    return float(unit * getattr(metrics, f"partial_{name}_gap")(rows.y, scores, **given))


def partial_count(model: Any, rows: Rows, intersectional: bool) -> Count:
    groups = {"sensitive_features": rows.sensitive_features} if model.is_group_aware_ else {}
    scores = model.decision_function(rows.X, **groups)
    counted = partial_disparity(model, scores, rows, intersectional)
    if np.isnan(counted):
        return Count([], model.train_disparity_ - model.effective_disparity_ - EXACT)
    pairs = [Pair("train_disparity_", model.train_disparity_, counted)]
    return Count(pairs, counted - model.effective_disparity_ - EXACT)


def draw_partial(rng: np.random.Generator) -> dict[str, Any]:
    constraint = pick(rng, PARTIAL)
    return {
        "interval": pick(rng, INTERVALS),
        "constraint": constraint,
        "max_disparity": pick(rng, [0.0, 0.1, 0.2, 0.4]),
        "scale": "conditional" if constraint == "group_auc" else pick(rng, ["conditional", "ccdf"]),
    }


def partial_classifier(rng: np.random.Generator) -> Fit:
    rows, intersectional = draw_rows(rng, MANY), bool(rng.integers(2))
    drawn, is_partition = draw_partial(rng), len(rows.columns(intersectional)) == 1
    ranks = ["class"] if drawn["scale"] == "ccdf" else ["class", "class", "group"]
    drawn["constraint"] = IntervalConstraint(drawn["constraint"], pick(rng, ranks))
    estimator = PartialParityClassifier(
        **drawn,
        group_aware=is_partition and bool(rng.integers(2)),
        sensitive=Sensitive(intersectional=intersectional),
        max_iter=30,
        random_state=0,
    )
    return Fit(
        estimator,
        rows,
        lambda model: partial_count(model, rows, intersectional),
        rows.y,
        weighted(rows),
    )


def partial_calibrator(rng: np.random.Generator) -> Fit:
    rows = draw_rows(rng, MANY)
    cv = pick(rng, [None, None, 2])
    estimator = PartialParityCalibrator(
        pick(rng, [None, GaussianNB(), DecisionTreeClassifier(max_depth=2, random_state=0)]),
        **draw_partial(rng),
        cv=cv,
    )

    def count(model: Any) -> Count:
        if cv is None:
            return partial_count(model, rows, intersectional=True)
        # The scores of the folds are not kept.
        return Count([], model.train_disparity_ - model.effective_disparity_ - EXACT)

    return Fit(estimator, rows, count, rows.y, weighted(rows))


FITS = {
    "PartialParityClassifier": partial_classifier,
    "PartialParityCalibrator": partial_calibrator,
}
SETTINGS = {
    "PartialParityClassifier": {"max_iter": 8, "max_disparity": 0.3},
    "PartialParityCalibrator": {"cv": 2, "max_disparity": 0.3},
}
OWNERS = {PartialParityClassifier: INTERVAL_SOLVERS}
ODD_INTERVALS = [
    *((0.3, 0.1), (0, 0), (0, 1), (-0.1, 0.5), (0.2, 0.2), (0.2, 0.2 + 1e-12), (0.1,)),
    *({"g0": (0, 0.3), "g1": (0.1, 0.5)}, {"zzz": (0, 0.3)}, {"g0": 0.3, "g1": None}, {}),
    *([(0.0, 0.2), (0.5, 0.7)], [(0.0, 0.3), (0.2, 0.7)], [[0.0, 0.2], [0.5]]),
    *((float("nan"), 0.5), ("a", "b")),
]
ARGUMENTS = {
    "interval": ([(0.0, 0.3), (0.2, 0.8)], ODD_INTERVALS),
    "normalize": BOOLEAN,
    "rank_within": options("group", "class"),
    "rate": ([None, 0.3], [-0.1, 1.2]),
    "step": ([0.05, 0.2], [1e-3, 3.0]),
    "min_width": ([0.1, 0.5], [1.0, 2.0]),
    "PartialParityClassifier.model": (["linear"], [(2,), "ab"]),
}
