"""Losses of rows by name, written out here a second time on purpose.

A model is never measured by the code that trained it. Any other loss can be passed as a function,
or as an object that can evaluate it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from skfair._typing import ClassLabel, ColumnLike, FloatArray
from skfair.utils.text import did_you_mean, listed
from skfair.utils.validation import check_positive, check_scores


@runtime_checkable
class ExactLoss(Protocol):
    """What can say how badly it finds each row."""

    def exact(self, scores: FloatArray, targets: FloatArray) -> FloatArray:
        """Return the loss of each row."""


LossName = Literal["log_loss", "hinge", "squared_hinge", "squared_error", "absolute_error"]
Loss = LossName | ExactLoss | Callable[[FloatArray, FloatArray], FloatArray]
Task = Literal["classification", "regression"]
RowSubset = Literal["all", "positive", "class"]
RowLoss = Callable[[FloatArray, FloatArray], FloatArray]  # of scores and targets


def _squared_error(z: FloatArray, t: FloatArray) -> FloatArray:
    return np.asarray((z - t) ** 2)


# By task and name: the loss of each row, given its score z and its target t.
_LOSSES: dict[str, dict[str, RowLoss]] = {
    "classification": {
        "log_loss": lambda z, t: np.logaddexp(0.0, -t * z),
        "hinge": lambda z, t: np.maximum(0.0, 1.0 - t * z),
        "squared_hinge": lambda z, t: np.maximum(0.0, 1.0 - t * z) ** 2,
        "squared_error": _squared_error,
    },
    "regression": {
        "squared_error": _squared_error,
        "absolute_error": lambda z, t: np.abs(z - t),
    },
}
# The signs of the targets that are averaged, each by itself; None is every row.
CLASSES: dict[str, tuple[int | None, ...]] = {"all": (None,), "positive": (1,), "class": (-1, 1)}


class LossRequest(NamedTuple):
    """The options of a metric of losses."""

    loss: Loss
    task: Task
    subset: RowSubset
    pos_label: ClassLabel

    def row_loss(self) -> RowLoss:
        """Return the loss of scores and targets; raise unless the options go together."""
        task, subset = self.task, self.subset
        if not isinstance(task, str) or task not in _LOSSES:
            raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
        row_loss = _find_loss(self.loss, task)
        if not isinstance(subset, str) or subset not in CLASSES:
            raise ValueError(f"subset must be 'all', 'positive' or 'class', got {subset!r}.")
        if task == "regression" and subset != "all":
            raise ValueError(
                f"subset={subset!r} needs classes; use subset='all' with task='regression'."
            )
        return row_loss

    def signs(self, y_true: ColumnLike | None, n_rows: int) -> FloatArray:
        """Return the targets of a classifier: 1 for the positive class, else -1."""
        return np.where(check_positive(y_true, "y_true", self.pos_label, n_rows), 1.0, -1.0)


def _find_loss(loss: Loss, task: Task) -> RowLoss:
    """Return a loss as a function of scores and targets, whichever way it was named."""
    if isinstance(loss, str) and loss in _LOSSES[task]:
        return _LOSSES[task][loss]
    if isinstance(loss, ExactLoss) and not isinstance(loss, type):
        return partial(_values_of, loss.exact)
    if callable(loss) and not isinstance(loss, type):
        return partial(_values_of, loss, is_of_targets_first=True)
    other = [name for name, losses in _LOSSES.items() if loss in list(losses)]
    hint = f" {loss!r} is for task={other[0]!r}." if other else did_you_mean(loss, _LOSSES[task])
    raise ValueError(
        f"loss must be one of {listed(_LOSSES[task])} for task={task!r}, a function loss(y_true, "
        "y_score) that returns the loss of each row, or an object with a method exact(scores, "
        f"targets) that does; got {loss!r}.{hint}"
    )


def _values_of(
    loss: Callable[[FloatArray, FloatArray], FloatArray],
    scores: FloatArray,
    targets: FloatArray,
    *,
    is_of_targets_first: bool = False,
) -> FloatArray:
    """Evaluate a loss that was passed as a function, and check what it returns."""
    if not scores.size:  # a block may have no rows
        return scores
    arguments = (targets, scores) if is_of_targets_first else (scores, targets)
    try:
        values = loss(*arguments)
    except TypeError as error:
        raise TypeError(
            f"loss={loss!r} cannot be called with scores and targets: {error}"
        ) from error
    if np.shape(values) != scores.shape:
        raise ValueError(
            f"loss must return one number for each of {scores.size} rows, got a result of shape "
            f"{np.shape(values)}. Leave the averaging to the metric."
        )
    return check_scores(values, "loss")
