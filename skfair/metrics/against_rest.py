"""Metrics of several classes: each class against the rest, and the worst of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from inspect import signature
from typing import Any

import numpy as np

from skfair._typing import ColumnLike
from skfair.blocks.partitions import is_lazy
from skfair.groups.attributes import check_aligned
from skfair.utils.validation import check_labels

# Arguments with a value for each row, whose index must be that of the labels.
_OF_ROWS = ("sensitive_features", "control_features", "sample_weight")


def against_rest(metric: Callable[..., float], label: Any) -> Callable[..., float]:
    """Return a metric of one class against the rest, which is computed with ``pos_label=True``."""

    def of_class(y_true: ColumnLike, y_pred: ColumnLike, **options: Any) -> float:
        return metric(np.asarray(y_true) == label, np.asarray(y_pred) == label, **options)

    return of_class


class WorstClass:
    """A metric of labels, computed for each class against the rest: the value of the worst one."""

    def __init__(
        self,
        metric: Callable[..., float],  # takes y_true, y_pred and pos_label
        is_greater_better: bool,  # whether the worst value is the smallest one
    ) -> None:
        parameters = signature(metric).parameters
        if "pos_label" not in parameters or "y_pred" not in parameters:
            raise ValueError(
                "worst_class=True needs a metric of labels with a pos_label, such as "
                f"demographic_parity_difference; got {metric!r}."
            )
        if isinstance(metric, partial) and "pos_label" in metric.keywords:
            raise ValueError("worst_class=True tries every class. Do not bind pos_label.")
        update_wrapper(self, metric)
        self._metric, self._worst = metric, np.min if is_greater_better else np.max

    def __call__(self, y_true: ColumnLike, y_pred: ColumnLike, **options: Any) -> float:
        """Compute the metric of the worst class."""
        if is_lazy(y_true, y_pred):
            raise TypeError(
                "worst_class=True needs rows in memory, got a Dask collection. compute() it."
            )
        rows = {name: options.get(name) for name in _OF_ROWS}
        check_aligned(y_true=y_true, y_pred=y_pred, **rows)
        levels = check_labels(y_true, "y_true").levels + check_labels(y_pred, "y_pred").levels
        values = [
            against_rest(self._metric, label)(y_true, y_pred, pos_label=True, **options)
            for label in dict.fromkeys(levels)
        ]
        return float(self._worst(values))
