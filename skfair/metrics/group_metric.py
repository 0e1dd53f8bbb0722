"""Groups compared by any metric of scikit-learn, or by one of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from sklearn.utils import check_consistent_length

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray, MatrixLike
from skfair.blocks.partitions import is_lazy
from skfair.groups.compared_groups import (
    Agg,
    ComparedGroups,
    Reference,
    ZeroDivision,
    aggregate,
    check_agg,
    checked_rows,
    differences,
    is_group,
    ratios,
)
from skfair.groups.spread_rows import spread_rows
from skfair.metrics.docs import documented_gap
from skfair.metrics.own_metrics import OwnRows, takes_scores, value_of, with_positive

GroupStatistic = Literal["difference", "ratio", "smallest", "largest"]


class GroupMetric:
    """A metric that compares groups by another metric; made by :func:`make_group_metric`.

    Parameters
    ----------
    metric : callable
        Called as ``metric(y_true, y_pred)`` for the rows of each group.
    compare : {"difference", "ratio", "smallest", "largest"}
        How the values of the groups become one number.

    Examples
    --------
    >>> from sklearn.metrics import roc_auc_score
    >>> from skfair.metrics import make_group_metric
    >>> make_group_metric(roc_auc_score, compare="smallest")
    make_group_metric(roc_auc_score, compare='smallest')
    """

    def __init__(self, metric: Callable[..., float], compare: GroupStatistic) -> None:
        self.metric = metric
        self.compare = compare
        # The name of the second parameter tells scorers what to predict.
        own = signature(type(self).__call__)
        parameters = list(own.parameters.values())[1:]
        if takes_scores(metric):
            parameters[1] = Parameter("y_score", Parameter.POSITIONAL_OR_KEYWORD)
        self.__signature__ = own.replace(parameters=parameters)

    @property
    def __name__(self) -> str:
        """Name of the metric and of the comparison."""
        return f"{getattr(self.metric, '__name__', 'metric')}_{self.compare}"

    def __repr__(self) -> str:
        name = getattr(self.metric, "__name__", repr(self.metric))
        return f"make_group_metric({name}, compare={self.compare!r})"

    @documented_gap
    def __call__(
        self,
        y_true: ColumnLike,
        y_pred: MatrixLike | ColumnLike,
        *,
        sensitive_features: ColumnsLike,
        control_features: ColumnsLike | None = None,
        sample_weight: ColumnLike | None = None,
        intersectional: bool = True,
        reference: Reference = "pairwise",
        agg: Agg = "worst",
        pos_label: ClassLabel = None,
        zero_division: ZeroDivision = "raise",
    ) -> float:
        """Compare the groups.

        Parameters
        ----------
        y_pred : array-like of shape (n_samples,) or (n_samples, n_classes)
            Predicted labels or numbers, or scores, whatever the metric takes; its name is
            ``y_score`` then.

        Returns
        -------
        value : float
            The largest difference or the smallest ratio of two groups, the smallest or the largest
            value of a group.
        """
        if is_lazy(y_true, y_pred, sensitive_features, control_features, sample_weight):
            raise TypeError(f"{self!r} reads single rows. compute() the Dask collections.")
        check_agg(agg)
        (y_true, y_pred), options = spread_rows(
            [y_true, y_pred], (sensitive_features, control_features, sample_weight, intersectional)
        )
        true, predicted = np.asarray(y_true), np.asarray(y_pred)
        check_consistent_length(true, predicted)
        groups, weights = checked_rows(
            *options,
            n_samples=true.shape[0],
            like=y_true if hasattr(y_true, "index") else y_pred,
            predictions=y_pred,
        )
        rows = OwnRows(true, predicted, None, weights)
        metric = with_positive(self.metric, pos_label, y_true)
        values, overall = _values(metric, rows, groups, reference)
        is_alone = self.compare in ("smallest", "largest")
        name = groups.undefined(
            values, groups.present if is_alone else groups.compared_by(reference), zero_division
        )
        if name is not None:
            raise ValueError(
                f"{self!r} is not defined for group {name!r}. Merge small groups or add data, or "
                "pass zero_division=numpy.nan to get NaN."
            )
        if is_alone:
            present = values[groups.present]
            return float(present.min() if self.compare == "smallest" else present.max())
        values_of_group, other = groups.sides(values, overall, reference)
        if self.compare == "difference":
            return aggregate(differences(values_of_group, other, reference), agg)
        quotients = np.where(
            values_of_group == other, 1.0, ratios(values_of_group, other, reference)
        )
        return aggregate(quotients, agg, empty=1.0, worst_is_smallest=True)


def _values(
    metric: Callable[..., float], rows: OwnRows, groups: ComparedGroups, reference: Reference
) -> tuple[FloatArray, FloatArray]:
    """Return the metric of each cell, and of all rows that it is compared with."""
    of_cells = groups.rows_of_cells()
    numbers = [value_of(metric, rows, rows.y_pred, cell) for cell in of_cells]
    if not all(isinstance(number, float) for number in numbers):
        raise TypeError(
            f"Groups are compared by one number of each; {getattr(metric, '__name__', metric)} "
            "returns more. List it by group with group_report(metrics=), or return a number."
        )
    values = np.array(numbers)
    overall = np.full(values.size, np.nan)
    if not is_group(reference) and reference == "overall":
        for start, stop in pairwise(groups.blocks.tolist()):
            every = np.unique(np.concatenate(of_cells[start:stop]))
            overall[start:stop] = value_of(metric, rows, rows.y_pred, every)
    return values, overall


def make_group_metric(
    metric: Callable[..., float], *, compare: GroupStatistic = "difference"
) -> GroupMetric:
    """Make a metric that compares groups by any metric of scikit-learn, or by one of your own.

    Parameters
    ----------
    metric : callable
        Called as ``metric(y_true, y_pred)`` for the rows of each group, with ``sample_weight`` if
        there are weights. One whose second parameter is called ``y_score`` or ``y_proba``, such as
        ``roc_auc_score``, is computed from scores. Fix other arguments by ``functools.partial``.
    compare : {"difference", "ratio", "smallest", "largest"}, default="difference"
        The largest difference between two groups, the smallest ratio of two groups, or the value of
        the group with the smallest or the largest one.

    Returns
    -------
    group_metric : GroupMetric
        Call it as ``group_metric(y_true, y_pred, sensitive_features=...)``, or pass it to
        :func:`make_fairness_scorer`.

    See Also
    --------
    group_report : The values of the groups beside each other, with intervals.

    Examples
    --------
    >>> from sklearn.metrics import recall_score
    >>> from skfair.metrics import make_group_metric
    >>> y_true, y_pred = [1, 1, 1, 0, 1, 1, 0, 0], [1, 1, 1, 0, 1, 0, 1, 0]
    >>> sex = ["f", "f", "f", "f", "m", "m", "m", "m"]
    >>> recall_difference = make_group_metric(recall_score)
    >>> recall_difference(y_true, y_pred, sensitive_features=sex)
    0.5
    >>> make_group_metric(recall_score, compare="smallest")(y_true, y_pred, sensitive_features=sex)
    0.5
    """
    if not callable(metric):
        raise TypeError(f"metric must be a function metric(y_true, y_pred), got {metric!r}.")
    if compare not in get_args(GroupStatistic):
        raise ValueError(
            f"compare must be one of {', '.join(map(repr, get_args(GroupStatistic)))}, "
            f"got {compare!r}."
        )
    return GroupMetric(metric, compare)
