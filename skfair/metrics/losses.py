"""Group metrics of losses and mean scores: what rules on losses and on scores bound.

A loss is a function of the score z and the target t of a row; its mean over a group says how badly
the model serves that group. Targets of classifiers are -1 and 1, and z is a value of
``decision_function``, not a probability. The squared error is *half* the squared difference: the
loss that the estimators of this package minimise and bound.

The named losses are written out here a second time on purpose: a model is never measured by the
code that trained it. Any other loss can be passed as a function, or as an object that can evaluate
it. Equal losses do not mean equal selection rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from skfair._typing import BoolArray, ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray
from skfair.blocks.partitions import is_lazy
from skfair.blocks.weighted_rows import LazyRows, accepts_dask
from skfair.metrics.compared_groups import (
    Agg,
    ComparedGroups,
    Reference,
    ZeroDivision,
    aggregate,
    compared_groups,
)
from skfair.metrics.docs import AGG_OF_COMPARISONS, PARAGRAPHS, documented_gap_of_scores
from skfair.metrics.scores import ScoredRows, scored_rows
from skfair.utils.docs import documenter
from skfair.utils.text import listed
from skfair.utils.validation import check_positive, check_scores


@runtime_checkable
class ExactLoss(Protocol):
    """What can say how badly it finds each row."""

    def exact(self, scores: FloatArray, targets: FloatArray) -> FloatArray:
        """Return the loss of each row."""


LossName = Literal["log_loss", "hinge", "squared_hinge", "squared_error", "absolute_error"]
Loss = LossName | ExactLoss | Callable[[FloatArray, FloatArray], FloatArray]
Task = Literal["classification", "regression"]
Given = Literal["all", "positive", "class"]
_RowLoss = Callable[[FloatArray, FloatArray], FloatArray]  # of scores and targets


def _half_squared_error(z: FloatArray, t: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (z - t) ** 2)


# By task and name: the loss of each row, given its score z and its target t.
_LOSSES: dict[str, dict[str, _RowLoss]] = {
    "classification": {
        "log_loss": lambda z, t: np.logaddexp(0.0, -t * z),
        "hinge": lambda z, t: np.maximum(0.0, 1.0 - t * z),
        "squared_hinge": lambda z, t: np.maximum(0.0, 1.0 - t * z) ** 2,
        "squared_error": _half_squared_error,
    },
    "regression": {
        "squared_error": _half_squared_error,
        "absolute_error": lambda z, t: np.abs(z - t),
    },
}

# The signs of the targets that are averaged, each by itself; None is every row.
_CLASSES: dict[str, tuple[int | None, ...]] = {"all": (None,), "positive": (1,), "class": (-1, 1)}

_documented = documenter(
    PARAGRAPHS
    | {
        "agg": AGG_OF_COMPARISONS,
        "y_true": """y_true : array-like of shape (n_samples,)
    True labels; numbers for regression.""",
        "y_score": """y_score : array-like of shape (n_samples,)
    Values of a decision function (positive where the positive class is predicted), not
    probabilities; predictions for regression.""",
        "loss": """\
loss : str, callable or object with the method ``exact``, default="log_loss"
    With t the target, -1 or 1 for classification: ``"log_loss"`` is log(1 + exp(-t z)),
    ``"hinge"`` max(0, 1 - t z), ``"squared_hinge"`` its square, ``"squared_error"``
    (z - t)^2 / 2, ``"absolute_error"`` the distance of z and t. The first four are for
    classification, the last two for regression. A function is called with targets (-1 and 1 for
    classification) and scores, ``loss(y_true, y_score)``, an object as ``loss.exact(scores,
    targets)``; both return the loss of each row.""",
        "task": """task : {"classification", "regression"}, default="classification"
    Whether ``y_true`` holds classes or numbers.""",
        "given": """given : {"all", "positive", "class"}, default="all"
    Which rows the mean losses are taken over: all, those of the positive class, or each class by
    itself. The last two are for classification.""",
    }
)


@_documented
def loss_parity_difference(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    loss: Loss = "log_loss",
    task: Task = "classification",
    given: Given = "all",
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = 1,
    reference: Reference = "pairwise",
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Difference of mean losses between groups; 0 is parity.

    .. math:: |E[\ell(z, t) \mid k] - E[\ell(z, t) \mid k']|

    Returns
    -------
    difference : float
        At least 0, in units of the loss; smaller is fairer. With a single group there is nothing
        to compare and the value is 0.

    See Also
    --------
    largest_group_loss : How badly the worst served group fares.

    Notes
    -----
    O(n) for each attribute and class.

    Examples
    --------
    >>> from skfair.metrics import loss_parity_difference
    >>> y_true, y_score, sex = [1, 0, 1, 0], [2, -2, 0.5, 0], ["f", "f", "m", "m"]
    >>> loss_parity_difference(y_true, y_score, sensitive_features=sex, loss="hinge")
    0.75
    """
    rows = (sensitive_features, control_features, sample_weight, intersectional)
    losses = _losses_of(y_true, y_score, rows, _Asked(loss, task, given, pos_label))
    means = _loss_means(losses, given, losses.groups.compared, zero_division)
    return _difference(means, losses.groups, reference, agg)


@_documented
def largest_group_loss(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    loss: Loss = "log_loss",
    task: Task = "classification",
    given: Given = "all",
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = 1,
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Mean loss of the group that is served worst; what bounded group loss bounds.

    .. math:: \max_k E[\ell(z, t) \mid k]

    Returns
    -------
    loss : float
        At least 0, smaller is better. With a single group it is the mean loss.

    See Also
    --------
    loss_parity_difference : How far the groups' mean losses are apart.

    Notes
    -----
    O(n) for each attribute and class.

    Examples
    --------
    >>> from skfair.metrics import largest_group_loss
    >>> y_true, y_score, sex = [1, 0, 1, 0], [2, -2, 0.5, 0], ["f", "f", "m", "m"]
    >>> largest_group_loss(y_true, y_score, sensitive_features=sex, loss="hinge")
    0.75
    """
    rows = (sensitive_features, control_features, sample_weight, intersectional)
    losses = _losses_of(y_true, y_score, rows, _Asked(loss, task, given, pos_label))
    cells = losses.groups.present
    means = _loss_means(losses, given, cells, zero_division)
    return float(np.max([of_cells[cells] for of_cells, _ in means]))


@accepts_dask(mean_of="y_score")
@documented_gap_of_scores
def mean_score_difference(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    reference: Reference = "pairwise",
    agg: Agg = "worst",
) -> float:
    r"""Difference of mean scores between groups; 0 is parity.

    .. math:: |E[z \mid k] - E[z \mid k']|

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Scores of any kind: values of a decision function, probabilities, predictions of a
        regressor.
    agg : {"worst", "mean"}, default="worst"
        Report the worst comparison or the mean of all of them.

    Returns
    -------
    difference : float
        At least 0, in units of the score; smaller is fairer. With a single group there is nothing
        to compare and the value is 0.

    See Also
    --------
    wasserstein_gap : Compares whole distributions of scores, not only their means.

    Notes
    -----
    O(n) for each attribute.

    Examples
    --------
    >>> from skfair.metrics import mean_score_difference
    >>> mean_score_difference(None, [1, 2, 3, 5], sensitive_features=["f", "f", "m", "m"])
    2.5
    """
    rows = scored_rows(y_score, sensitive_features, control_features, sample_weight, intersectional)
    return _difference([_means(rows.scores, rows)], rows.groups, reference, agg)


class _Means(NamedTuple):
    """Weighted means of a value of the rows."""

    of_cells: FloatArray  # (n_cells,); NaN for a cell without rows
    overall: FloatArray  # (n_cells,): of all rows of the block of a cell


class _Losses(NamedTuple):
    """Loss and target of each row."""

    values: FloatArray
    targets: FloatArray
    groups: ComparedGroups
    weights: FloatArray | None


class _Asked(NamedTuple):
    """The options of a metric of losses."""

    loss: Loss
    task: Task
    given: Given
    pos_label: Any

    def row_loss(self) -> _RowLoss:
        """Return the loss of scores and targets; raise unless the options go together."""
        task, given = self.task, self.given
        if not isinstance(task, str) or task not in _LOSSES:
            raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
        row_loss = _find_loss(self.loss, task)
        if not isinstance(given, str) or given not in _CLASSES:
            raise ValueError(f"given must be 'all', 'positive' or 'class', got {given!r}.")
        if task == "regression" and given != "all":
            raise ValueError(
                f"given={given!r} needs classes; use given='all' with task='regression'."
            )
        return row_loss

    def signs(self, y_true: ColumnLike | None, n_rows: int) -> FloatArray:
        """Return the targets of a classifier: 1 for the positive class, else -1."""
        return np.where(check_positive(y_true, "y_true", self.pos_label, n_rows), 1.0, -1.0)


def _find_loss(loss: Loss, task: Task) -> _RowLoss:
    """Return a loss as a function of scores and targets, whichever way it was named."""
    if isinstance(loss, str) and loss in _LOSSES[task]:
        return _LOSSES[task][loss]
    if isinstance(loss, ExactLoss) and not isinstance(loss, type):
        return partial(_values_of, loss.exact)
    if callable(loss) and not isinstance(loss, type):
        return partial(_values_of, loss, is_of_targets_first=True)
    other = [name for name, losses in _LOSSES.items() if loss in list(losses)]
    hint = f" {loss!r} is for task={other[0]!r}." if other else ""
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
    values = loss(targets, scores) if is_of_targets_first else loss(scores, targets)
    if np.shape(values) != scores.shape:
        raise ValueError(
            f"loss must return one number for each of {scores.size} rows, got a result of shape "
            f"{np.shape(values)}. Leave the averaging to the metric."
        )
    return check_scores(values, "loss")


def _losses_of(
    y_true: ColumnLike | None, y_score: ColumnLike, rows: tuple[Any, Any, Any, bool], asked: _Asked
) -> _Losses:
    """Check the rows and compute the loss of each."""
    if is_lazy(y_true, y_score, *rows):
        return _lazy_losses(y_true, y_score, rows, asked)
    scored = scored_rows(y_score, *rows, like=y_true)
    row_loss = asked.row_loss()
    if asked.task == "regression":
        targets = check_scores(y_true, "y_true", scored.scores.size)
    else:
        targets = asked.signs(y_true, scored.scores.size)
    return _Losses(row_loss(scored.scores, targets), targets, scored.groups, scored.weights)


def _lazy_losses(
    y_true: ColumnLike | None, y_score: ColumnLike, rows: tuple[Any, Any, Any, bool], asked: _Asked
) -> _Losses:
    """Return the mean losses of the rows of the same groups and class of Dask collections."""
    row_loss = asked.row_loss()
    is_regression = asked.task == "regression"
    sensitive_features, control_features, sample_weight, intersectional = rows
    lazy = LazyRows(
        {} if is_regression else {"y_true": y_true},
        {"y_score": y_score} | ({"y_true": y_true} if is_regression else {}),
        sensitive_features=sensitive_features,
        control_features=control_features,
        sample_weight=sample_weight,
        intersectional=intersectional,
    )
    kinds = lazy.kinds()
    targets = np.zeros(kinds.weights.size)
    if not is_regression:
        targets = asked.signs(kinds.columns.get("y_true"), targets.size)
    means = lazy.means("loss", partial(_loss_of_numbers, row_loss), targets)
    groups = compared_groups(
        means.groups,
        means.control_features,
        n_samples=targets.size,
        sample_weight=means.weights,
    )
    if groups.strata is None:
        groups.cells.check_nonempty(sample_weight=means.weights)
    return _Losses(means.columns["loss"], targets, groups, means.weights)


def _loss_of_numbers(
    row_loss: _RowLoss, numbers: dict[str, FloatArray], targets: FloatArray
) -> FloatArray:
    """Compute the loss of the rows of a block; the targets of regression are numbers of it."""
    return row_loss(numbers["y_score"], numbers.get("y_true", targets))


def _loss_means(
    losses: _Losses, given: Given, of_cells: IntArray, zero_division: ZeroDivision
) -> list[_Means]:
    """Average the loss over each cell, for each class that counts."""
    means = []
    for sign in _CLASSES[given]:
        mean = _means(losses.values, losses, None if sign is None else losses.targets == sign)
        losses.groups.check_class(mean.of_cells, of_cells, sign == 1, zero_division)
        means.append(mean)
    return means


def _means(
    values: FloatArray, rows: _Losses | ScoredRows, is_counted: BoolArray | None = None
) -> _Means:
    """Average ``values`` over the rows that count, for each cell and its block."""
    weights = np.ones(values.size) if rows.weights is None else rows.weights
    if is_counted is not None:
        weights = weights * is_counted
    sums, totals = rows.groups.cells.sums(weights * values), rows.groups.cells.sums(weights)
    with np.errstate(invalid="ignore"):
        overall = rows.groups.block_sums(sums) / rows.groups.block_sums(totals)
        return _Means(sums / totals, overall)


def _difference(
    means: Sequence[_Means], groups: ComparedGroups, reference: Reference, agg: Agg
) -> float:
    """Compare the cells of each block with each other, or with all rows of the block."""
    sides = [groups.sides(*mean, reference) for mean in means]
    return aggregate(np.concatenate([np.abs(one - other) for one, other in sides]), agg)
