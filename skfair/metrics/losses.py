"""Group metrics of losses and mean scores: what rules on losses and on scores bound.

A loss is a function of the score z and the target t of a row; its mean over a group says how badly
the model serves that group. Targets of classifiers are -1 and 1, and z is a value of
``decision_function``, not a probability. The squared error is *half* the squared difference: the
loss that the estimators of this package minimise and bound.

The losses are written out here a second time on purpose: a model is never measured by the code
that trained it. Equal losses do not mean equal selection rates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair._typing import FloatArray
from skfair.blocks.partitions import is_lazy
from skfair.blocks.weighted_rows import LazyRows, accepts_dask
from skfair.groups.encoding import GroupEncoding
from skfair.metrics.docs import fill_doc
from skfair.metrics.labels import Reference, ZeroDivision
from skfair.metrics.pairs import Agg, aggregate, group_pairs
from skfair.metrics.scores import ScoredRows, raise_empty_class, scored_rows
from skfair.utils.text import listed
from skfair.utils.validation import check_positive, check_scores, is_strict

Loss = Literal["log_loss", "hinge", "squared_hinge", "squared_error", "absolute_error"]
Task = Literal["classification", "regression"]
Given = Literal["all", "positive", "class"]


def _half_squared_error(z: FloatArray, t: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (z - t) ** 2)


# By task and name: the loss of each row, given its score z and its target t.
_LOSSES: dict[str, dict[str, Callable[[FloatArray, FloatArray], FloatArray]]] = {
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


@fill_doc
def loss_parity_difference(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    loss: Loss = "log_loss",
    task: Task = "classification",
    given: Given = "all",
    sample_weight: Any = None,
    intersectional: bool = True,
    pos_label: Any = 1,
    reference: Reference = "pairwise",
    agg: Agg = "worst",
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Difference of mean losses between groups; 0 is parity.

    .. math:: |E[\ell(z, t) \mid k] - E[\ell(z, t) \mid k']|

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; numbers for regression.
    y_score : array-like of shape (n_samples,)
        Values of a decision function (positive where the positive class is predicted), not
        probabilities; predictions for regression.
    %(groups)s
    loss : str, default="log_loss"
        With t the target, -1 or 1 for classification: ``"log_loss"`` is log(1 + exp(-t z)),
        ``"hinge"`` max(0, 1 - t z), ``"squared_hinge"`` its square, ``"squared_error"``
        (z - t)^2 / 2, ``"absolute_error"`` the distance of z and t. The first four are for
        classification, the last two for regression.
    task : {"classification", "regression"}, default="classification"
        Whether ``y_true`` holds classes or numbers.
    given : {"all", "positive", "class"}, default="all"
        Compare the mean losses over all rows, over those of the positive class, or over each class
        by itself. The last two are for classification.
    %(options)s
    %(pos_label)s
    reference : {"pairwise", "overall"}, default="pairwise"
        Compare every pair of groups, or each group with all rows (of the class).
    agg : {"worst", "mean"}, default="worst"
        Report the worst comparison or the mean of all of them.
    %(zero_division)s

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
    rows = (y_true, y_score, sensitive_features, sample_weight, intersectional)
    losses = _losses_of(rows, loss, task, given, pos_label)
    return _difference(_loss_means(losses, given, zero_division), losses.groups, reference, agg)


@fill_doc
def largest_group_loss(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    loss: Loss = "log_loss",
    task: Task = "classification",
    given: Given = "all",
    sample_weight: Any = None,
    intersectional: bool = True,
    pos_label: Any = 1,
    zero_division: ZeroDivision = "raise",
) -> float:
    r"""Mean loss of the group that is served worst; what bounded group loss bounds.

    .. math:: \max_k E[\ell(z, t) \mid k]

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels; numbers for regression.
    y_score : array-like of shape (n_samples,)
        Values of a decision function (positive where the positive class is predicted), not
        probabilities; predictions for regression.
    %(groups)s
    loss : str, default="log_loss"
        With t the target, -1 or 1 for classification: ``"log_loss"`` is log(1 + exp(-t z)),
        ``"hinge"`` max(0, 1 - t z), ``"squared_hinge"`` its square, ``"squared_error"``
        (z - t)^2 / 2, ``"absolute_error"`` the distance of z and t. The first four are for
        classification, the last two for regression.
    task : {"classification", "regression"}, default="classification"
        Whether ``y_true`` holds classes or numbers.
    given : {"all", "positive", "class"}, default="all"
        Take the mean losses over all rows, over those of the positive class, or over each class by
        itself. The last two are for classification.
    %(options)s
    %(pos_label)s
    %(zero_division)s

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
    rows = (y_true, y_score, sensitive_features, sample_weight, intersectional)
    losses = _losses_of(rows, loss, task, given, pos_label)
    means = _loss_means(losses, given, zero_division)
    return float(np.max([of_groups for of_groups, _ in means]))


@accepts_dask(mean_of="y_score")
@fill_doc
def mean_score_difference(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    intersectional: bool = True,
    reference: Reference = "pairwise",
    agg: Agg = "worst",
) -> float:
    r"""Difference of mean scores between groups; 0 is parity.

    .. math:: |E[z \mid k] - E[z \mid k']|

    Parameters
    ----------
    %(y_true_unused)s
    y_score : array-like of shape (n_samples,)
        Scores of any kind: values of a decision function, probabilities, predictions of a
        regressor.
    %(groups)s
    %(options)s
    reference : {"pairwise", "overall"}, default="pairwise"
        Compare every pair of groups, or each group with all rows.
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
    rows = scored_rows(y_score, sensitive_features, sample_weight, intersectional)
    return _difference([_means(rows.scores, rows)], rows.groups, reference, agg)


class _Means(NamedTuple):
    """Weighted means of a value of the rows."""

    of_groups: FloatArray  # (n_groups,); NaN for a group without rows
    overall: float


class _Losses(NamedTuple):
    """Loss and target of each row."""

    values: FloatArray
    targets: FloatArray
    groups: GroupEncoding
    weights: FloatArray | None


def _losses_of(
    rows: tuple[Any, Any, Any, Any, bool], loss: str, task: str, given: str, pos_label: Any
) -> _Losses:
    """Check the rows and compute the loss of each."""
    y_true, y_score, sensitive_features, sample_weight, intersectional = rows
    if is_lazy(y_true, y_score, sensitive_features, sample_weight):
        _check_options(loss, task, given)
        return _lazy_losses(rows, loss, task, pos_label)
    scored = scored_rows(y_score, sensitive_features, sample_weight, intersectional, like=y_true)
    _check_options(loss, task, given)
    if task == "regression":
        targets = check_scores(y_true, "y_true", scored.scores.size)
    else:
        targets = _signs(y_true, pos_label, scored.scores.size)
    values = _LOSSES[task][loss](scored.scores, targets)
    return _Losses(values, targets, scored.groups, scored.weights)


def _lazy_losses(
    rows: tuple[Any, Any, Any, Any, bool], loss: str, task: str, pos_label: Any
) -> _Losses:
    """Return the mean losses of the rows of the same groups and class of Dask collections."""
    y_true, y_score, sensitive_features, sample_weight, intersectional = rows
    given = {"y_score": y_score, "y_true": y_true}
    numbers = ("y_score", "y_true") if task == "regression" else ("y_score",)
    lazy = LazyRows(
        {name: one for name, one in given.items() if name not in numbers},
        {name: given[name] for name in numbers},
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        intersectional=intersectional,
    )
    kinds = lazy.kinds()
    kinds.groups.check_nonempty(sample_weight=kinds.weights)
    targets = np.zeros(kinds.weights.size)
    if task == "classification":
        targets = _signs(kinds.columns.get("y_true"), pos_label, targets.size)
    means = lazy.means("loss", partial(_loss_of_numbers, task, loss), targets)
    return _Losses(means.columns["loss"], targets, means.groups, means.weights)


def _loss_of_numbers(
    task: str, loss: str, numbers: dict[str, FloatArray], targets: FloatArray
) -> FloatArray:
    """Compute the loss of the rows of a block; the targets of regression are numbers of it."""
    return _LOSSES[task][loss](numbers["y_score"], numbers.get("y_true", targets))


def _signs(y_true: Any, pos_label: Any, n_rows: int) -> FloatArray:
    return np.where(check_positive(y_true, "y_true", pos_label, n_rows), 1.0, -1.0)


def _loss_means(losses: _Losses, given: str, zero_division: ZeroDivision) -> list[_Means]:
    """Average the loss over each group, for each class that counts."""
    means = []
    for sign in _CLASSES[given]:
        mean = _means(losses.values, losses, None if sign is None else losses.targets == sign)
        empty = np.flatnonzero(np.isnan(mean.of_groups))
        if is_strict(zero_division) and empty.size:
            raise_empty_class(losses.groups.names[empty[0]], sign == 1)
        means.append(mean)
    return means


def _check_options(loss: str, task: str, given: str) -> None:
    """Raise unless the options exist and go together."""
    if not isinstance(task, str) or task not in _LOSSES:
        raise ValueError(f"task must be 'classification' or 'regression', got {task!r}.")
    if not isinstance(loss, str) or loss not in _LOSSES[task]:
        other = [name for name, losses in _LOSSES.items() if loss in list(losses)]
        hint = f" {loss!r} is for task={other[0]!r}." if other else ""
        raise ValueError(
            f"loss must be one of {listed(_LOSSES[task])} for task={task!r}, got {loss!r}.{hint}"
        )
    if not isinstance(given, str) or given not in _CLASSES:
        raise ValueError(f"given must be 'all', 'positive' or 'class', got {given!r}.")
    if task == "regression" and given != "all":
        raise ValueError(f"given={given!r} needs classes; use given='all' with task='regression'.")


def _means(
    values: FloatArray,
    rows: _Losses | ScoredRows,
    is_counted: NDArray[np.bool_] | None = None,
) -> _Means:
    """Average ``values`` over the rows that count, for each group and overall."""
    weights = np.ones(values.size) if rows.weights is None else rows.weights
    if is_counted is not None:
        weights = weights * is_counted
    sums, totals = rows.groups.sums(weights * values), rows.groups.sums(weights)
    first = slice(rows.groups.offsets[1])  # the groups of one attribute hold every row once
    with np.errstate(invalid="ignore"):
        return _Means(sums / totals, float(sums[first].sum() / totals[first].sum()))


def _difference(
    means: Sequence[_Means], groups: GroupEncoding, reference: Reference, agg: Agg
) -> float:
    """Compare the groups of each attribute with each other, or with all rows."""
    if reference not in ("pairwise", "overall"):
        raise ValueError(f"reference must be 'pairwise' or 'overall', got {reference!r}.")
    if reference == "overall":
        gaps = [np.abs(of_groups - overall) for of_groups, overall in means]
    else:
        first, second = group_pairs(groups)
        gaps = [np.abs(of_groups[first] - of_groups[second]) for of_groups, _ in means]
    return aggregate(np.concatenate(gaps), agg, empty=0.0)
