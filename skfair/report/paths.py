"""Rates of groups under each model of a path, or in each clustering of a front: for a slider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray
from skfair.report.options import read_options
from skfair.report.reading import RawRows, TaskName, find_task, survey_rows
from skfair.report.table import read_table
from skfair.report.views import rates_table, views_of

# What a slider shows, if the task has it.
SHOWN = (
    *("selection_rate", "true_positive_rate", "accuracy", "moved_up", "moved_down"),
    *("share_predicted", "changed", "mean_prediction", "mean_residual", "mean_absolute_error"),
)


def steps_of(
    limits: FloatArray,
    y: ColumnLike | None,
    predictions: list[Any],
    sensitive_features: ColumnsLike,
    sample_weight: ColumnLike | None,
    task: TaskName,
    pos_label: ClassLabel,
) -> pd.DataFrame:
    """Return the rates of each group under each limit; changes are against the first model."""
    tables, options = [], read_options(random_state=0)
    for limit, predicted in zip(np.asarray(limits).tolist(), predictions, strict=True):
        raw = RawRows(y, predicted, None, predictions[0], sample_weight)
        read_task = find_task(survey_rows(raw.labels(), task), task, pos_label)
        sample = read_table(raw, read_task, sensitive_features)
        table = rates_table(sample, views_of(sample, options), options.confidence)
        plain = table["measure"].str.partition("[")[0]
        kept = table[plain.isin(SHOWN)]
        tables.append(kept[["view", "group", "measure", "value"]].assign(limit=limit))
    return pd.concat(tables, ignore_index=True)


def with_limits(steps: pd.DataFrame, path: Any) -> pd.DataFrame:
    """Add in words what each step limits, if its models have a limit for each attribute."""
    sentence_of_step = {}
    for step, model in zip(np.asarray(path.max_disparities).tolist(), path.estimators, strict=True):
        asked = getattr(model, "max_disparity", None)
        if not isinstance(asked, Mapping):
            return steps
        words = [f"{name} {limit:.3g}" for name, limit in asked.items() if limit is not None]
        sentence_of_step[step] = ", ".join(words)
    return steps.assign(limits=steps["limit"].map(sentence_of_step))


def named_clusters(front: Any) -> list[Any]:
    """Return the cluster of each row by name, so that as few rows as can be change it.

    Each clustering numbers its clusters anew; they are matched with those of the cheapest one.
    """
    first = front.labels_[0]
    n_clusters = int(np.max(front.labels_)) + 1
    digits = len(str(n_clusters - 1))
    names = np.array([f"cluster {k:0{digits}}" for k in range(n_clusters)])
    named = []
    for labels in front.labels_:
        shared = np.zeros((n_clusters, n_clusters))
        np.add.at(shared, (labels, first), 1)
        named.append(names[linear_sum_assignment(shared, maximize=True)[1]][labels])
    return named


def steps_of_front(
    front: Any, sensitive_features: ColumnsLike, sample_weight: ColumnLike | None
) -> pd.DataFrame:
    """Return the shares of each group in each cluster, and the cost as a multiple of the lowest.

    Clusterings whose balances agree to two digits are one step, the cheapest of them.
    """
    _, kept = np.unique(np.round(front.relative_balances_, 2), return_index=True)
    balances, labels = front.relative_balances_[kept], named_clusters(front)
    labels = [labels[k] for k in kept]
    steps = steps_of(balances, None, labels, sensitive_features, sample_weight, "classes", 1)
    costs = pd.DataFrame({"view": "", "group": "all", "measure": "relative_cost"}, index=balances)
    costs = costs.assign(value=front.costs_[kept] / front.costs_[0], limit=balances)
    return pd.concat([costs, steps], ignore_index=True).sort_values("limit", kind="stable")
