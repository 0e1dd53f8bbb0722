"""Classes of classifiers, in the order in which ``fit`` and ``predict`` need them.

1. :func:`read_classes` (two) or :func:`encode_classes` (several) check y and return its classes,
   and :func:`check_known` checks parts of a stream.
2. :func:`positive_class` says which one is positive. It warns if this is a guess on which the
   result depends.
   Estimators with ``pos_label=`` inherit from :class:`PositiveClass`.
3. :func:`has_probabilities` and :func:`accuracy_in_blocks` are called by ``predict_proba`` and
   ``score``.

Targets and weights of constrained classifiers are made in :mod:`skfair.estimators.erm.task`.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from skfair._typing import ClassLabel, ColumnLike, FloatArray, MatrixLike
from skfair.constraints.base import Constraint
from skfair.exceptions import PositiveClassWarning
from skfair.groups.labels import CLEAR_LABELS
from skfair.losses import gives_probabilities
from skfair.utils.dask_collections import align, without_rows
from skfair.utils.text import listed
from skfair.utils.validation import check_weights
from skfair.utils.warn import warn_user


def read_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return the two classes, sorted; raise for any other number of them."""
    if y.dtype.kind in "biu" and y.size:  # integers need no sort, which saves time
        low, high = y.min(), y.max()
        if low < high and np.all((y == low) | (y == high)):
            return np.array([low, high])
    classes, _ = encode_classes(y)
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind != "binary" or classes.size > 2:
        raise ValueError(
            f"Only binary classification is supported. The type of the target is {kind}, with "
            f"{classes.size} classes: {listed(classes.tolist())}. FairDecisionClassifier limits "
            "the disparity of each of several classes. Here, pass one class against the rest: "
            "y == label."
        )
    return classes


def encode_classes(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the sorted classes and the number of the class of each row; raise for one class."""
    examples = {isinstance(label, str): label for label in y} if y.dtype == object else {}
    if len(examples) > 1:  # text and other labels, such as "1" and 0, cannot be sorted
        text, other = examples[True], examples[False]
        raise ValueError(
            f"y has labels that are text and others that are not, such as {text!r} and {other!r} "
            f"({type(other).__name__}). Make all of them the same, for example y.astype(str)."
        )
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    if classes.size < 2:
        raise ValueError(
            "This classifier needs samples of at least 2 classes in the data, but the data "
            f"contains only one class: {classes.tolist()[0]!r}. Add rows of another class, and "
            "check whether rows were left out when y was made."
        )
    return classes, codes


def check_known(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise if a part of a stream has a label that is not among the classes."""
    unknown = np.setdiff1d(y, classes)
    if unknown.size:
        raise ValueError(
            f"y has the labels {listed(unknown.tolist())}, which are not among the classes "
            f"{listed(classes.tolist())}. Pass classes= in the first call."
        )


class PositiveClass:
    """A classifier with limits that depend on which one of two classes is the positive one.

    Parameters
    ----------
    pos_label : int, float, bool or str, default=None
        The class that counts as positive in the limits. If None, it is the last class in sorted
        order. A warning is raised if the result depends on this choice, unless the labels are 0/1,
        -1/1 or booleans.

    Attributes
    ----------
    pos_label_ : int, float, bool or str
        The class that counts as positive in the limits. It is None if there are more than two
        classes and ``pos_label`` is None.
    """

    pos_label: ClassLabel
    pos_label_: Any
    classes_: NDArray[Any]
    _pos_label_constraints: ClassVar[dict[str, Any]] = {"pos_label": [Real, str, "boolean", None]}

    @property
    def _sign(self) -> float:
        """1, or -1 if negative values of ``decision_function`` predict the positive class."""
        labels = self.classes_.tolist()
        return -1.0 if len(labels) == 2 and self.pos_label_ == labels[0] else 1.0

    @property
    def _ordered_classes(self) -> NDArray[Any]:
        """The classes. If there are two, the positive one is the last."""
        return self.classes_ if self._sign > 0 else self.classes_[::-1]

    def _decide(self, scores: FloatArray) -> NDArray[Any]:
        """Return the labels of two classes, given the values of ``decision_function``."""
        return np.asarray(self._ordered_classes[(self._sign * scores > 0).astype(np.intp)])


def positive_class(
    pos_label: ClassLabel,
    classes: NDArray[Any],  # two
    constraints: Sequence[Constraint],
    min_rate: Any,
    selection_rate: Any,
    others: Sequence[str] = (),  # names of further parameters that need a positive class
) -> Any:
    """Return the positive one of two classes; warn if it is a guess on which limits depend."""
    labels = classes.tolist()
    if pos_label is not None:
        return read_positive(pos_label, labels)
    if set(labels) not in CLEAR_LABELS:
        limits = {"min_rate": min_rate, "selection_rate": selection_rate}
        # The choice does not matter for a dict, which names the class of each value. It does not
        # matter for selection_rate="as before" either, because the rates of both classes are kept.
        if isinstance(selection_rate, str):
            limits.pop("selection_rate")
        names = [n for n, v in limits.items() if v is not None and not isinstance(v, dict)]
        dependent = [constraint for constraint in constraints if constraint.depends_on_pos_label]
        warn_of_choice(classes, [*dependent, *names, *others], "pos_label={!r}")
    return labels[-1]


def read_positive(pos_label: ClassLabel, labels: list[Any]) -> Any:
    """Return the positive class that was passed; raise if there is no such class."""
    if pos_label not in labels:
        raise ValueError(
            f"pos_label={pos_label!r} is not a class of y, which has {listed(labels)}. Pass one of "
            "them, or None for the last one."
        )
    return labels[labels.index(pos_label)]


def warn_of_choice(classes: NDArray[Any], reasons: Sequence[object], choice: str) -> None:
    """Warn if something depends on which class is positive and labels do not say which it is.

    ``reasons`` lists what depends on it, and without any there is no warning. ``choice`` is the
    argument with which the user can choose, with ``{!r}`` in the place of the class.
    """
    labels = classes.tolist()
    if not reasons or set(labels) in CLEAR_LABELS:
        return
    verb = "depends" if len(reasons) == 1 else "depend"
    warn_user(
        f"{' and '.join(map(str, reasons))} {verb} on which class is the positive one, and y has "
        f"the classes {listed(labels)}: {labels[-1]!r} is taken, the last one in order. Pass "
        f"{choice.format(labels[-1])} to keep it, or {choice.format(labels[0])}.",
        PositiveClassWarning,
    )


def has_probabilities(estimator: Any) -> bool:
    """Return True if scores are log-odds, else raise AttributeError with the reason.

    It is the condition of ``available_if`` for ``predict_proba``.
    """
    if not hasattr(estimator, "loss"):  # post-processing: the estimator inside has the scores
        if not hasattr(estimator._inner(), "predict_proba"):
            raise AttributeError(f"{type(estimator._inner()).__name__} has no predict_proba.")
    elif not gives_probabilities(estimator.loss):
        raise AttributeError(
            f"predict_proba needs loss='log_loss'; the scores of loss={estimator.loss!r} are not "
            "log-odds."
        )
    return True


def accuracy_in_blocks(
    model: BaseEstimator,
    X: MatrixLike,
    y: ColumnLike,
    sample_weight: ColumnLike | None,
    **groups: Any,
) -> float:
    """Return the accuracy on Dask collections. Each block only returns two numbers.

    ``groups`` are further columns that ``predict`` needs.
    """
    rows = align(X=X, y=y, sample_weight=sample_weight, **groups)
    right, total = rows.total(_right_and_all, without_rows(model), tuple(groups))
    if not total:
        raise ValueError("sample_weight is zero for every row.")
    return float(right / total)


def _right_and_all(
    block: dict[str, Any], model: BaseEstimator, names: Sequence[str]
) -> tuple[float, float]:
    """Return the weight of the correct predictions in a block, and the weight of all rows."""
    n_rows = len(block["y"])
    if not n_rows:
        return 0.0, 0.0
    weights = check_weights(block.get("sample_weight"), n_rows, are_all=False)
    weights = np.ones(n_rows) if weights is None else weights
    predicted = model.predict(block["X"], **{name: block[name] for name in names})
    return float(weights @ (predicted == np.asarray(block["y"]))), float(weights.sum())
