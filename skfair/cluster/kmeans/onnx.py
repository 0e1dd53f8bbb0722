"""The converter of k-means to ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skfair.utils.onnx_kinds import refuse_groups


def nearest_centers(model: BaseEstimator, inputs: list[Any], ops: Any) -> tuple[Any, ...]:
    """Return the nearest centres, as ``predict`` of rows whose groups are not known."""
    hint = "Fit it without sensitive=, and pass sensitive_features= to fit"
    refuse_groups(model, model._sensitive.columns is not None, hint)
    centers = np.float64(model.cluster_centers_)
    # Rows and centres are moved to where the centres are: squares of large numbers lose digits.
    middle = centers.mean(axis=0)
    rows, centers = ops("Sub", ops.number(inputs[0]), middle), centers - middle
    squared = ops.sums(ops("Mul", rows, rows), middle.size)
    inner = ops("MatMul", rows, -2.0 * centers.T)
    distances = ops("Add", ops("Add", inner, (centers**2).sum(axis=1)), squared)
    labels = ops("ArgMin", distances, axis=1, keepdims=0)
    return labels, ops("Sqrt", ops("Max", distances, np.zeros(1)))
