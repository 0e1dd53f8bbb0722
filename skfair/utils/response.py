"""Get predictions of a fitted estimator, and pass it the groups if it takes them.

scikit-learn's own scorers cannot route metadata to ``predict``. A group-aware model that needs the
groups at prediction would fail in them. Scorers, displays and audits, which call any model that a
user passes, therefore call it by :func:`get_response`. If scikit-learn's code must call the model,
:class:`GroupsInHand` wraps it. :func:`takes_groups` decides whether groups are passed.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

from skfair._typing import ClassLabel, ColumnsLike, MatrixLike

SCORE_METHODS = ("decision_function", "predict_proba")
_RESPONSES = ("predict", "predict_proba", "decision_function")


def response_method_of(estimator: object, wanted: str | Sequence[str]) -> str:
    """Return the first of the wanted methods that an estimator has; raise if it has none."""
    if not isinstance(wanted, Sequence):
        raise TypeError(f"response_method must be a name or a list of names, got {wanted!r}.")
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        if hasattr(estimator, name):
            return name
    raise AttributeError(
        f"{type(estimator).__name__} has none of the methods {', '.join(names)} that this score "
        "needs."
    )


def _reads_from_columns(estimator: object, param: str) -> bool:
    """Whether an estimator finds its groups, or strata, in columns of X.

    ``param`` is "sensitive_features" or "control_features".
    """
    sensitive = getattr(estimator, "sensitive", None)  # names of columns, or a Sensitive
    name, other = {"sensitive_features": ("columns", sensitive)}.get(
        param, ("control_features", None)
    )
    return getattr(sensitive, name, other) is not None


def takes_groups(estimator: object, method: str, param: str = "sensitive_features") -> bool:
    """Whether a prediction method of the estimator should get the groups, or the strata.

    ``param`` is the argument for them. The result follows from the signature of the method, or from
    the last step of a pipeline. With metadata routing on, other meta-estimators say what the
    estimators inside them request.
    """
    # ``predict`` of a fitted search takes X alone, so its best estimator is called directly.
    estimator = getattr(estimator, "best_estimator_", estimator)
    # A model that reads its groups from X must not get the groups by which it is measured.
    if _reads_from_columns(estimator, param):
        return False
    if param in inspect.signature(getattr(estimator, method)).parameters:
        return True
    if isinstance(estimator, Pipeline) and len(estimator.steps):
        last = estimator.steps[-1][1]
        return hasattr(last, method) and takes_groups(last, method, param)
    if not get_config()["enable_metadata_routing"]:
        return False
    try:
        routing = get_routing_for_object(estimator)
        return bool(routing.consumes(method, [param]))
    except (AttributeError, TypeError):  # the estimator has no routing information
        return False


def layers(estimator: object) -> list[Any]:
    """List an estimator and those inside it, from the outside to the inside.

    Only fitted searches (``best_estimator_``) and pipelines (last step) are opened.
    """
    estimators = [estimator]
    while True:
        inner = getattr(estimators[-1], "best_estimator_", None)
        if inner is None and isinstance(estimators[-1], Pipeline):
            inner = estimators[-1].steps[-1][1]
        if inner is None:
            return estimators
        estimators.append(inner)


def positive_class(estimator: object, pos_label: ClassLabel = None) -> Any:
    """Return ``pos_label`` if it is not None, else the positive class of a fitted classifier.

    The latter is its ``pos_label_`` or, if it has none, the second of its two classes. It is None
    if the classifier does not have two classes.
    """
    classes = np.asarray(getattr(estimator, "classes_", ())).tolist()
    if pos_label is not None or len(classes) != 2:
        return pos_label
    return getattr(layers(estimator)[-1], "pos_label_", classes[1])


def get_response(
    estimator: Any,  # a fitted estimator
    X: MatrixLike,  # the rows to predict
    response_method: str | Sequence[str],  # method to call, or several in order of preference
    *,
    sensitive_features: ColumnsLike | None = None,  # passed on if the method takes it
    control_features: ColumnsLike | None = None,  # the same
    pos_label: ClassLabel = None,  # the positive class of a classifier; None for its own
) -> Any:
    """Return predictions for X: what ``predict`` returns, or 1-d scores.

    Scores of classifiers are larger for the positive class. They are the column of this class, or
    the decision function, with its sign changed if the positive class is the first one. A
    classifier of more than two classes has no such scores and raises. Scores of other estimators
    are returned unchanged.
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    method = response_method_of(estimator, response_method)
    columns = {"sensitive_features": sensitive_features, "control_features": control_features}
    extra = {
        param: values
        for param, values in columns.items()
        if values is not None and takes_groups(estimator, method, param)
    }
    response = getattr(estimator, method)(X, **extra)
    if method == "predict" or not is_classifier(estimator):
        return response
    classes = np.asarray(estimator.classes_).tolist()
    if len(classes) != 2:
        # The number of the class for the example in the error.
        k = classes.index(pos_label) if pos_label in classes else 0
        raise ValueError(
            f"Scores of groups need a binary classifier; {type(estimator).__name__} has the "
            f"{len(classes)} classes {classes}. Compare one of them with the rest, by true labels "
            f"y == {classes[k]!r} and the scores predict_proba(X)[:, {k}]: displays take both in "
            "from_predictions, and metrics as they are."
        )
    pos_label = positive_class(estimator, pos_label)
    if not isinstance(pos_label, Hashable) or pos_label not in classes:
        raise ValueError(
            f"pos_label={pos_label!r} is not a class of {type(estimator).__name__}; its classes "
            f"are {classes}."
        )
    positive = classes.index(pos_label)
    response = np.asarray(response)
    if response.ndim == 2:
        return response[:, positive]
    return response if positive == 1 else -response


class GroupsInHand:
    """A fitted model with the groups of some rows, for code that calls ``predict(X)`` alone.

    Methods that take groups get them. They must be the groups of the rows of X.
    """

    def __init__(self, model: object, groups: Any) -> None:
        self._model, self._groups = model, groups

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._model, name)
        if name not in _RESPONSES or not takes_groups(self._model, name):
            return value

        @wraps(value)  # scorers read the name of the method
        def with_groups(X: MatrixLike, **_groups: Any) -> Any:
            return value(X, sensitive_features=self._groups)

        return with_groups
