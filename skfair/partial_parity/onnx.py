"""The converter of PartialParityClassifier to ONNX. ``wing.py`` names it."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from skfair.utils.onnx_kinds import labelled, linear_scores, refuse_groups


def labels_and_scores(model: BaseEstimator, inputs: list[Any], ops: Any) -> tuple[Any, ...]:
    """Return the ONNX nodes of labels and scores; raise for models that need groups."""
    refuse_groups(model, model.is_group_aware_)
    return labelled(model, linear_scores(model, ops.number(inputs[0]), ops), ops)
