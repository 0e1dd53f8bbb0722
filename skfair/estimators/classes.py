"""The two classes of a target, and whether a model gives their probabilities."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from skfair.losses import gives_probabilities
from skfair.utils.text import listed


def read_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return the two classes; anything else is an error."""
    check_classification_targets(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    classes = np.unique(y)
    if kind != "binary" or classes.size > 2:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}, with "
            f"{classes.size} classes: {listed(classes.tolist())}. A bound on the disparity of "
            "each class against the rest would not bound that of the predictions; compare "
            "y == label instead."
        )
    if classes.size < 2:
        raise ValueError(
            "This classifier needs samples of at least 2 classes in the data, but the data "
            f"contains only one class: {classes.tolist()[0]!r}."
        )
    return classes


class HasLoss(Protocol):
    """An estimator with the parameter ``loss``."""

    loss: object


def has_probabilities(estimator: HasLoss) -> bool:
    """Whether scores are log-odds: the condition of ``available_if`` for ``predict_proba``."""
    if not gives_probabilities(estimator.loss):
        raise AttributeError(
            f"predict_proba needs loss='log_loss'; the scores of loss={estimator.loss!r} are not "
            "log-odds."
        )
    return True
