"""Partial parity as a wing: its public names, its fits for ``python -m skfair warm``, its ONNX.

:mod:`skfair.utils.wings` finds this file, and explains when each part is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

_METRICS = (
    "partial_statistical_parity_gap",
    "partial_demographic_parity_gap",
    "partial_group_auc_gap",
    "partial_equal_opportunity_gap",
    "partial_equalized_odds_gap",
    "partial_ccdf_gap",
    "suggest_interval",
)
NAMES = {
    "skfair.classification": {
        "PairLoss": "pair_losses",
        "PartialParityCalibrator": "calibrator",
        "PartialParityClassifier": "classifier",
    },
    "skfair.metrics": dict.fromkeys(_METRICS, "metrics"),
    "skfair.constraints.partial": {
        "GroupAUC": "group_auc",
        "IntervalConstraint": "interval_constraint",
        "RankedMoment": "ranked_moment",
        "StatisticalParity": "statistical_parity",
        "Surrogate": "surrogates",
        "Values": "ranked_moment",
        "read_constraint": "interval_constraint",
    },
}


def warm(rows: Any, groups: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield (model, X, y, groups) for fits that together compile all kernels of this wing.

    The caller must fit each model before it asks for the next one, because the lines after the last
    ``yield`` predict with the calibrator.
    """
    import numpy as np

    from skfair.partial_parity.calibrator import PartialParityCalibrator
    from skfair.partial_parity.classifier import PartialParityClassifier
    from skfair.partial_parity.interval_constraint import IntervalConstraint
    from skfair.partial_parity.surrogates import Surrogate

    noise = np.random.RandomState(1).normal(size=len(rows))
    y = (rows[:, 0] + np.linspace(0.5, -0.5, len(rows)) + noise > 0).astype(np.int64)
    interval = partial(PartialParityClassifier, max_disparity=0.01, max_iter=3)
    for constraint, is_aware in product(("group_auc", "statistical_parity"), (False, True)):
        yield interval(constraint=constraint, group_aware=is_aware), rows, y, groups
    yield interval(constraint=IntervalConstraint(surrogate="sigmoid")), rows, y, groups
    calibrator = PartialParityCalibrator(cv=2, interval=(0, 1))
    yield calibrator, rows, y, groups
    calibrator.predict(rows, sensitive_features=groups)
    Surrogate("ramp", 0.5)(rows[:, 0])  # compiles the kernel of steps; its values are not needed


def onnx() -> dict[type, Any]:
    """Return the estimators that can be converted to ONNX, with their converters."""
    from skfair.partial_parity.classifier import PartialParityClassifier
    from skfair.partial_parity.onnx import labels_and_scores
    from skfair.utils.onnx_kinds import Kind

    return {PartialParityClassifier: Kind(labels_and_scores, ("label", "scores"))}
