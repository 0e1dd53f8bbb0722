"""The converter of k-means to ONNX. ``wing.py`` names it, and ``skfair/export.py`` calls it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skfair.utils.onnx_kinds import refuse_groups


def nearest_centers(model: BaseEstimator, inputs: list[Any], ops: Any) -> tuple[Any, ...]:
    """Return the nodes for labels and distances, as ``predict`` and ``transform`` without groups.

    ``ops`` adds a node to the graph and returns its output.
    """
    hint = "Fit it without sensitive=, and pass sensitive_features= to fit"
    refuse_groups(model, model._sensitive.columns is not None, hint)
    centers = np.float64(model.cluster_centers_)
    # The middle of the centres becomes the origin, because squares of large numbers lose digits.
    middle = centers.mean(axis=0)
    rows, centers = ops("Sub", ops.number(inputs[0]), middle), centers - middle
    squared = ops.sums(ops("Mul", rows, rows), middle.size)
    inner = ops("MatMul", rows, -2.0 * centers.T)
    distances = ops("Add", ops("Add", inner, (centers**2).sum(axis=1)), squared)
    labels = ops("ArgMin", distances, axis=1, keepdims=0)
    return labels, ops("Sqrt", ops("Max", distances, np.zeros(1)))
