"""Group metrics of losses and mean scores, which constraints on losses and on scores limit.

A loss is a function of the score z and the target t of a row. Its mean over a group says how badly
the model serves that group. Targets of classifiers are -1 and 1, and z is a value of
``decision_function``, not a probability. The mean squared error is defined as in scikit-learn.

Equal losses are not equal selection rates.

``loss_parity_difference``, ``largest_group_loss``, ``excess_loss`` and ``mean_residual_difference``
read their rows by ``_losses_of``, which makes the loss of a row its value. ``_loss_means`` averages
these within groups and classes. ``mean_score_difference`` averages the scores.

Losses by name are written out here a second time on purpose: a model is never measured by the code
that trained it. Any other loss can be passed as a function, or as an object that can evaluate it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from skfair._typing import BoolArray, ClassLabel, ColumnLike, ColumnsLike, FloatArray, IntArray
from skfair.groups.cohort import Cohort, cohort_of
from skfair.groups.cohort_calls import takes_cohort
from skfair.groups.cohort_rows import score_rows, value_rows
from skfair.groups.compared_groups import Agg, Reference, ZeroDivision, aggregate
from skfair.groups.distinct_rows import WeightedRows
from skfair.groups.labels import check_positive, warn_of_ranges
from skfair.groups.measured_rows import Columns, MeasuredRows
from skfair.groups.weighted_rows import LazyRows
from skfair.metrics.docs import COMPARISONS, documented_gap_of_scores
from skfair.utils.docs import described, documenter
from skfair.utils.text import did_you_mean, listed
from skfair.utils.validation import check_scores


@runtime_checkable
class ExactLoss(Protocol):
    """An object with a method that computes the loss of each row."""

    def exact(self, scores: FloatArray, targets: FloatArray) -> FloatArray:
        """Return the loss of each row."""


LossName = Literal["log_loss", "hinge", "squared_hinge", "squared_error", "absolute_error"]
Loss = LossName | ExactLoss | Callable[[FloatArray, FloatArray], FloatArray]
Task = Literal["classification", "regression"]
RowSubset = Literal["all", "positive", "class"]
RowLoss = Callable[[FloatArray, FloatArray], FloatArray]  # a function of scores and targets


# By task and name: the loss of each row, given its score z and its target t.
_LOSSES: dict[str, dict[str, RowLoss]] = {
    "classification": {
        "log_loss": lambda z, t: np.logaddexp(0.0, -t * z),
        "hinge": lambda z, t: np.maximum(0.0, 1.0 - t * z),
        "squared_hinge": lambda z, t: np.maximum(0.0, 1.0 - t * z) ** 2,
        "squared_error": lambda z, t: (z - t) ** 2,
    },
    "regression": {
        "squared_error": lambda z, t: (z - t) ** 2,
        "absolute_error": lambda z, t: np.abs(z - t),
    },
}
# For each ``subset``, one mean is computed per entry: over the rows with this target, or over all
# rows if the entry is None.
_CLASSES: dict[str, tuple[int | None, ...]] = {"all": (None,), "positive": (1,), "class": (-1, 1)}


def _row_loss(loss: Loss, task: Task, subset: RowSubset) -> RowLoss:
    """Return a function (scores, targets) of the loss; raise unless the options go together."""
    if not isinstance(task, str) or task not in _LOSSES:
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
    is_named = isinstance(loss, str) and loss in _LOSSES[task]
    is_own = (callable(loss) or isinstance(loss, ExactLoss)) and not isinstance(loss, type)
    if not (is_named or is_own):
        other = [name for name, losses in _LOSSES.items() if loss in list(losses)]
        hint = f" {loss!r} is for task={other[0]!r}." if other else ""
        raise ValueError(
            f"loss must be one of {listed(_LOSSES[task])} for task={task!r}, a function "
            "loss(y_true, y_score) that returns the loss of each row, or an object with a method "
            f"exact(scores, targets) that does; got {loss!r}."
            f"{hint or did_you_mean(loss, _LOSSES[task])}"
        )
    if not isinstance(subset, str) or subset not in _CLASSES:
        raise ValueError(f"subset must be 'all', 'positive' or 'class', got {subset!r}.")
    if task == "regression" and subset != "all":
        raise ValueError(
            f"subset={subset!r} needs classes; use subset='all' with task='regression'."
        )
    return _LOSSES[task][loss] if isinstance(loss, str) else partial(_values_of, loss)


def _values_of(loss: ExactLoss | RowLoss, scores: FloatArray, targets: FloatArray) -> FloatArray:
    """Evaluate a loss that was passed as an object or a function, and check what it returns."""
    if not scores.size:  # a block may have no rows
        return scores
    function: Callable[..., Any] = loss.exact if isinstance(loss, ExactLoss) else loss
    rows = (scores, targets) if isinstance(loss, ExactLoss) else (targets, scores)
    try:
        values = function(*rows)
    except TypeError as error:
        message = f"loss={function!r} cannot be called with scores and targets: {error}"
        raise TypeError(message) from error
    if np.shape(values) != scores.shape:
        raise ValueError(
            f"loss must return one number for each of {scores.size} rows, got a result of shape "
            f"{np.shape(values)}. Leave the averaging to the metric."
        )
    return check_scores(values, "loss")


def _parameters() -> None:
    """Parameters of metrics of losses.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, or numbers for regression.
    y_score : array-like of shape (n_samples,)
        Values of a decision function, which are positive if the positive class is predicted. Do not
        pass probabilities, because they would be read as values of a decision function without an
        error. For regression, these are the predictions.
    loss : str, callable or object with the method ``exact``, default="log_loss"
        The loss of a row with the score z and the target t, which is -1 or 1 in classification.
        ``"log_loss"`` is log(1 + exp(-t z)), ``"hinge"`` is max(0, 1 - t z), ``"squared_hinge"`` is
        the square of the hinge loss, ``"squared_error"`` is (z - t)^2, and ``"absolute_error"`` is
        the absolute difference of z and t. The first four can be used for classification, and the
        last two for regression. A function is called as ``loss(y_true, y_score)``, with targets -1
        and 1 in classification, and an object as ``loss.exact(scores, targets)``. Both must return
        the loss of each row.
    task : {"classification", "regression"}, default="classification"
        Whether ``y_true`` holds classes or numbers.
    subset : {"all", "positive", "class"}, default="all"
        The rows over which mean losses are taken: all rows, the rows of the positive class, or the
        rows of each class separately. "positive" and "class" are for classification.
    """


_documented = documenter(COMPARISONS | described(_parameters))


@takes_cohort
@_documented
def loss_parity_difference(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    loss: Loss = "log_loss",
    subset: RowSubset = "all",
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    task: Task = "classification",
    reference: Reference = "pairwise",
    agg: Agg = "worst",
    sum_classes: bool | Literal["absolute"] = False,
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Compute the difference of mean losses between groups (0 is parity).

    The mean loss of a group shows how well the model fits this group. For two groups k and k', the
    difference is

    .. math:: |E[\ell(z, t) \mid k] - E[\ell(z, t) \mid k']|

    Parameters
    ----------
    sum_classes : bool or "absolute", default=False
        If False, each class is compared separately. If True, the mean losses of both classes are
        added before groups are compared. If "absolute", the absolute differences of both classes
        are added. True and "absolute" require ``subset="class"``.

    Returns
    -------
    difference : float
        The difference is at least 0, in units of the loss, and smaller is fairer. With a reference
        group it has a sign. With a single group there is nothing to compare, so it is undefined.

    See Also
    --------
    largest_group_loss : The mean loss of the group with the largest one.

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
    people = cohort_of(**locals())
    losses, targets = _losses_of(people, intersectional, loss, task, subset)
    cells = losses.groups.compared_by(reference)
    means = _loss_means(losses, targets, subset, cells, zero_division)
    if sum_classes not in (False, True, "absolute"):
        raise ValueError(f"sum_classes must be False, True or 'absolute', got {sum_classes!r}.")
    if sum_classes and subset != "class":
        raise ValueError(
            f"sum_classes={sum_classes!r} adds up classes: pass subset='class', not {subset!r}."
        )
    if sum_classes is True:
        means = means.sum(axis=0, keepdims=True)
    gaps = [losses.groups.differences(*of_class, reference=reference) for of_class in means]
    if sum_classes == "absolute":
        gaps = [np.abs(gaps).sum(axis=0)]
    return aggregate(np.concatenate(gaps), agg, zero_division)


@takes_cohort
@_documented
def largest_group_loss(
    y_true: ColumnLike | None,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    loss: Loss = "log_loss",
    subset: RowSubset = "all",
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    task: Task = "classification",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Compute the largest mean loss of a group.

    This is the quantity that a bounded group loss constraint limits.

    .. math:: \max_k E[\ell(z, t) \mid k]

    Returns
    -------
    loss : float
        The largest mean loss, at least 0 (smaller is better). With a single group, it is the mean
        loss of all rows.

    See Also
    --------
    loss_parity_difference : The difference between the mean losses of groups.

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
    people = cohort_of(**locals())
    losses, targets = _losses_of(people, intersectional, loss, task, subset)
    cells = losses.groups.present
    means = _loss_means(losses, targets, subset, cells, zero_division)
    return float(means[:, 0, cells].max())


@takes_cohort
@_documented
def excess_loss(
    y_true: ColumnLike,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    loss: Loss = "log_loss",
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    pos_label: ClassLabel = None,
    task: Task = "classification",
    agg: Agg = "worst",
    members_only: bool = False,
) -> float:
    r"""Compute by how much the mean loss of groups exceeds the mean loss of all rows.

    The excess is reported for the worst group or as the mean over the G groups:

    .. math:: \max_k \; E[\ell(z, t) \mid k] - E[\ell(z, t)]
        \quad \text{or} \quad \frac{1}{G} \sum_k E[\ell(z, t) \mid k] - E[\ell(z, t)]

    Parameters
    ----------
    agg : {"worst", "mean"}, default="worst"
        "worst" returns the largest excess of a group. "mean" returns the mean over the groups,
        which is equation (18) of plada and is negative if small groups have small losses.
    members_only : bool, default=False
        If True, each sensitive feature marks the members of one group (1 or True) among all rows (0
        or False), and only the groups of members count.

    Returns
    -------
    excess : float
        The excess in units of the loss (smaller is better). With a single group, there is nothing
        to compare, and an error is raised.

    See Also
    --------
    loss_parity_difference : Compares the mean losses of every pair of groups.

    Notes
    -----
    O(n) for each attribute.

    Examples
    --------
    >>> from skfair.metrics import excess_loss
    >>> y_true, y_score, sex = [1, 0, 1, 0, 0], [2, -2, 0.5, 0, -2], ["f", "f", "m", "m", "f"]
    >>> round(excess_loss(y_true, y_score, sensitive_features=sex, loss="hinge"), 3)
    0.45
    >>> round(excess_loss(y_true, y_score, sensitive_features=sex, loss="hinge", agg="mean"), 3)
    0.075
    """
    people = cohort_of(**locals())
    losses, targets = _losses_of(people, intersectional, loss, task, "all")
    [[of_cells, overall]] = _loss_means(losses, targets, "all", losses.groups.compared, np.nan)
    # A cell is a group within a stratum of control features. A group that is alone in its stratum
    # has no excess over the stratum, so only cells that occur in a pair are taken.
    cells = np.unique(np.concatenate(losses.groups.pairs))
    if members_only:
        members = losses.groups.groups.members()
        cells = cells[np.isin(losses.groups.group_of[cells], members)]
    return aggregate((of_cells - overall)[cells], agg, is_one_sided=True)


@takes_cohort
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
    r"""Compute the difference of mean scores between groups (0 is parity).

    For two groups k and k' and the score z of a random row, the difference is

    .. math:: |E[z \mid k] - E[z \mid k']|

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Scores of any kind, such as values of a decision function, probabilities or predictions of a
        regressor.
    agg : {"worst", "mean"}, default="worst"
        Whether to return the value of the worst comparison or the mean over all comparisons.

    Returns
    -------
    difference : float
        The difference in units of the score, at least 0 (smaller is fairer). It is signed if
        ``reference`` is a group. With a single group there is nothing to compare, and an error is
        raised.

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
    people = cohort_of(**locals())
    rows = score_rows(people, intersectional, summary=lambda lazy: lazy.means("y_score"))
    return aggregate(rows.groups.differences(*_means(rows), reference=reference), agg)


@takes_cohort
@_documented
def mean_residual_difference(
    y_true: ColumnLike,
    y_score: ColumnLike,
    *,
    sensitive_features: ColumnsLike,
    control_features: ColumnsLike | None = None,
    sample_weight: ColumnLike | None = None,
    intersectional: bool = True,
    reference: Reference = "pairwise",
    agg: Agg = "worst",
) -> float:
    r"""Compute the difference of mean residuals between groups in regression (0 is parity).

    The value shows by how much the predictions of one group are too high compared with another
    group:

    .. math:: |E[z - t \mid k] - E[z - t \mid k']|

    with the prediction z and the target t.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True numbers. For probabilities of a class, these are 1 for rows of the class and 0 for
        other rows.
    y_score : array-like of shape (n_samples,)
        Predictions of a regressor, or probabilities of a class.

    Returns
    -------
    difference : float
        The difference in units of the target, at least 0 (smaller is fairer). It is signed if
        ``reference`` is a group. With a single group there is nothing to compare, and an error is
        raised.

    See Also
    --------
    loss_parity_difference : Compares the size of errors, regardless of their direction.

    Notes
    -----
    O(n) for each attribute.

    Examples
    --------
    >>> from skfair.metrics import mean_residual_difference
    >>> y_true, y_pred, sex = [1, 2, 3, 5], [2, 3, 3, 4], ["f", "f", "m", "m"]
    >>> mean_residual_difference(y_true, y_pred, sensitive_features=sex)
    1.5
    """
    people = cohort_of(**locals())
    rows, _ = _losses_of(people, intersectional, _residual, "regression", "all")
    return aggregate(rows.groups.differences(*_means(rows), reference=reference), agg)


def _residual(targets: FloatArray, scores: FloatArray) -> FloatArray:
    """Return prediction minus target, as a loss of one's own: its mean is the mean residual."""
    return scores - targets


def _losses_of(
    people: Cohort,
    intersectional: bool,
    loss: Loss,
    task: Task,
    subset: RowSubset,
) -> tuple[MeasuredRows, FloatArray]:
    """Return rows whose values are losses, and the target of each row (1 or -1 of classifiers).

    For Dask collections, there is one row for each group and label that occur. It stands for all
    rows of this group and label, and its value is their mean loss.
    """
    row_loss, is_regression = _row_loss(loss, task, subset), task == "regression"

    def targets_of(own: Columns, n_rows: int) -> FloatArray:
        true = own.get("y_true")
        if is_regression:
            return check_scores(true, "y_true", n_rows)
        return np.where(check_positive(true, "y_true", people.pos_label, n_rows), 1.0, -1.0)

    def summary(lazy: LazyRows) -> WeightedRows:
        """Return the rows that stand for a Dask collection, with columns "loss" and "targets"."""
        kinds = lazy.kinds()
        targets = np.zeros(kinds.weights.size)
        if not is_regression:
            targets = targets_of(kinds.columns, targets.size)
        means = lazy.means("loss", partial(_loss_of_numbers, row_loss), targets)
        return means._replace(columns=means.columns | {"targets": targets})

    def values_of(own: Columns) -> FloatArray:
        name = "loss" if "loss" in own else "y_score"
        return check_scores(own[name], name)

    labels, numbers = ((), ("y_score", "y_true")) if is_regression else (("y_true",), ("y_score",))
    options: dict[str, Any] = {"labels": labels, "numbers": numbers, "summary": summary}
    rows = value_rows(people, values_of, ("y_true", "y_score"), intersectional, **options)
    rows = rows.with_weight_in_groups()
    if "loss" in rows.columns:  # they come from ``summary``, and its values are losses
        return rows, rows.columns["targets"]
    targets = targets_of(rows.columns, rows.values.size)
    if is_regression:
        warn_of_ranges(targets, rows.values)
    return replace(rows, values=row_loss(rows.values, targets)), targets


def _loss_of_numbers(
    row_loss: RowLoss, numbers: dict[str, FloatArray], targets: FloatArray
) -> FloatArray:
    """Return the loss of the rows of a Dask block.

    Regression finds its targets among the numbers of the block, and ignores ``targets``.
    """
    return row_loss(numbers["y_score"], numbers.get("y_true", targets))


def _loss_means(
    losses: MeasuredRows,
    targets: FloatArray,
    subset: RowSubset,
    of_cells: IntArray,
    zero_division: ZeroDivision,
) -> FloatArray:
    """Return mean losses, (n_classes, 2, n_cells): of each cell, and of its whole stratum.

    The classes are the entries of ``_CLASSES[subset]``. If one of the cells ``of_cells`` has no row
    of a class, an error is raised. If ``zero_division`` is NaN, the mean is NaN instead.
    """
    means = []
    for sign in _CLASSES[subset]:
        means.append(_means(losses, None if sign is None else targets == sign))
        losses.groups.check_class(means[-1][0], of_cells, sign == 1, zero_division)
    return np.stack(means)


def _means(rows: MeasuredRows, is_counted: BoolArray | None = None) -> FloatArray:
    """Return the mean value of each cell, and of its whole stratum: (2, n_cells).

    ``is_counted`` marks the rows that count (None: all). Without such rows the mean is NaN.
    """
    weights = np.ones(rows.values.size) if rows.weights is None else rows.weights
    if is_counted is not None:
        weights = weights * is_counted
    cells = rows.groups.cells
    sums = np.stack([cells.sums(weights * rows.values), cells.sums(weights)], axis=1)
    parts = np.stack([sums, rows.groups.peer_sums(sums)])
    with np.errstate(invalid="ignore"):
        return np.asarray(parts[..., 0] / parts[..., 1])
