"""Parts of the converters to ONNX in :mod:`skfair.export` and in the files ``onnx.py`` of wings.

``ops`` is an ``Ops`` of ``skfair/utils/onnx_ops.py``: ``ops("Add", a, b)`` applies an operator of
ONNX to expressions and returns an expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from skfair.utils.onnx_ops import INTEGER


class Kind(NamedTuple):
    """How estimators of one class are converted."""

    # convert(model, inputs, ops): the expressions of the outputs
    convert: Callable[[Any, list[Any], Any], tuple[Any, ...]]
    outputs: tuple[str, ...]  # names of the outputs
    # Returns the models inside a fitted model, whose outputs are the inputs of ``convert``. If
    # there are none, the input is the matrix of the columns that the model uses
    models: Callable[[Any], list[Any]] = lambda model: []
    # Returns the groups and strata of new rows that a fitted model reads, ``GroupLevels`` by the
    # argument of ``predict``. Their numbers are further inputs of ``convert``
    levels: Callable[[Any], dict[str, Any]] = lambda model: {}


def refuse_groups(
    model: BaseEstimator,
    uses_groups: bool,
    hint: str = "Fit it with group_aware=False",
) -> None:
    """Raise if a model needs the groups of new rows; ``hint`` ends the error."""
    if uses_groups:
        raise ValueError(
            f"This {type(model).__name__} asks for the groups of new rows, for which only the "
            f"graphs of FairDecisionClassifier have inputs. {hint}."
        )


def linear_scores(model: BaseEstimator, rows: Any, ops: Any) -> Any:
    """Return the scores of a linear model or a network, one column."""
    if hasattr(model, "parameters_"):
        raise ValueError(
            f"{type(model).__name__}(model=...) has no ONNX converter: convert the model that was "
            "plugged in with its own library, and add the threshold of the fitted estimator."
        )
    if not hasattr(model, "coefs_"):
        coef = np.ravel(getattr(model, "_used_weights", model.coef_)).astype(np.float64)
        intercept = np.float64(np.ravel(getattr(model, "intercept_", 0.0)))
        return ops("Add", ops("MatMul", rows, coef[:, None]), intercept)
    for layer, (coef, intercept) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        rows = rows if layer == 0 else ops("Relu", rows)
        rows = ops("Add", ops("MatMul", rows, np.float64(coef)), np.float64(intercept))
    return rows


def one_number(model: BaseEstimator, inputs: list[Any], ops: Any) -> tuple[Any, ...]:
    """Convert a linear model or a network whose predictions are its scores."""
    return (linear_scores(model, ops.number(inputs[0]), ops),)


def labelled(model: BaseEstimator, scores: Any, ops: Any) -> tuple[Any, ...]:
    """Return the predicted classes of scores, and the scores.

    Positive scores predict the second class. ``_sign`` is -1 if the first class is the positive
    one. A score of 0 never predicts the positive class, so in this case it predicts the second one.
    """
    sign = getattr(model, "_sign", 1.0)
    compared = "Greater" if sign > 0 else "GreaterOrEqual"
    is_second = ops(compared, scores, np.zeros(1))
    number = ops("Reshape", ops("Cast", is_second, to=INTEGER), np.array([-1], dtype=np.int64))
    return ops("Gather", onnx_classes(model.classes_), number, axis=0), scores


def onnx_classes(classes: Any) -> Any:
    """Return classes in a type of ONNX: integers or strings."""
    classes = np.asarray(classes)
    return classes.astype(np.int64 if classes.dtype.kind in "iubf" else np.str_)
