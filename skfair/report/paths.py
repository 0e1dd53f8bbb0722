"""Rates of groups under each model of a path, for a slider."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray
from skfair.report.options import read_options
from skfair.report.reading import RawRows, TaskName, find_task, survey_rows
from skfair.report.small_groups import Shown
from skfair.report.table import read_table
from skfair.report.views import rates_table

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
    suppress_below: float,
) -> pd.DataFrame:
    """Return the rates of each group under each limit; changes are against the first model."""
    tables, options = [], read_options(random_state=0, suppress_below=suppress_below)
    for limit, predicted in zip(np.asarray(limits).tolist(), predictions, strict=True):
        raw = RawRows(y, predicted, None, predictions[0], sample_weight)
        read_task = find_task(survey_rows(raw.labels(), task), task, pos_label)
        shown = Shown(read_table(raw, read_task, sensitive_features), options)
        table = rates_table(shown.sample, shown.views, options.confidence)
        table = shown.without_hidden(table)
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
