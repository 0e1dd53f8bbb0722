"""What every model of a fitted path does to each group, for a slider over the limits."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pandas as pd

from skfair._typing import ClassLabel, ColumnLike, ColumnsLike, FloatArray
from skfair.report.reading import Given, TaskName, find_task, range_of_scores, read_rows
from skfair.report.tally import tally_rows
from skfair.report.views import rates_table, views_of


class FittedPath(Protocol):
    """Models fitted under one limit each, such as a ``FairnessPath``."""

    @property
    def max_disparities(self) -> FloatArray:
        """The limits."""

    @property
    def estimators(self) -> list[Any]:
        """The models."""


# What a slider shows, if the task has it.
SHOWN = ("selection_rate", "true_positive_rate", "accuracy", "moved_up", "moved_down")
SHOWN_OF_NUMBERS = ("mean_prediction", "mean_residual", "mean_absolute_error")


def steps_of(
    limits: FloatArray,
    y: ColumnLike,
    predictions: list[Any],
    sensitive_features: ColumnsLike,
    sample_weight: ColumnLike | None,
    task: TaskName,
    pos_label: ClassLabel,
) -> pd.DataFrame:
    """Return the rates of each group under each limit; changes are against the first model."""
    tables = []
    for limit, predicted in zip(np.asarray(limits).tolist(), predictions, strict=True):
        given = Given(y, predicted, None, predictions[0], sample_weight)
        found = find_task(given, task, pos_label)
        rows = read_rows(given, found, None)
        tally = tally_rows(rows, found, sensitive_features, None, range_of_scores(rows.score))
        table = rates_table(tally, views_of(tally), 0.95)
        kept = table[table["measure"].isin([*SHOWN, *SHOWN_OF_NUMBERS])]
        tables.append(kept[["view", "group", "measure", "value"]].assign(limit=limit))
    return pd.concat(tables, ignore_index=True)
