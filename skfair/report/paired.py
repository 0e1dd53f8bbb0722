"""Models judged on the same resampled people, and changes with intervals that hold together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skfair._typing import BoolArray, FloatArray, IntArray
from skfair.groups.table import rates_of
from skfair.metrics.labels import LABEL_METRICS
from skfair.utils.rounding import ROUNDING


class People(NamedTuple):
    """Distinct rows of group, label and all decisions, and how many people each stands for."""

    group: IntArray
    true: BoolArray
    decided: BoolArray  # (n_distinct, n_models)
    n_people: IntArray


def count_people(true: Any, decided: list[Any], codes: IntArray) -> People:
    """Count the distinct rows."""
    columns = np.column_stack([codes, true, *decided]).astype(np.int64)
    distinct, n_people = np.unique(columns, axis=0, return_counts=True)
    is_decided = distinct[:, 2:].astype(bool)
    return People(distinct[:, 0], distinct[:, 1].astype(bool), is_decided, n_people)


def measured(people: People, metric: str, n_people: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return disparity and accuracy of each model for numbers of people of each kind.

    ``n_people`` has the shape (..., n_distinct), the results (..., n_models).
    """
    n_groups = int(people.group.max()) + 1
    disparities, accuracies = [], []
    for decided in people.decided.T:
        cell = people.group * 4 + people.true * 2 + decided
        owners = np.zeros((cell.size, 4 * n_groups))
        owners[np.arange(cell.size), cell] = 1
        counts = (n_people @ owners).reshape(*n_people.shape[:-1], n_groups, 2, 2)
        apart = []
        for name in LABEL_METRICS[metric].rates:
            rates = rates_of(counts, name)
            apart.append(np.nanmax(rates, axis=-1) - np.nanmin(rates, axis=-1))
        disparities.append(np.max(apart, axis=0))
        right = counts[..., 0, 0].sum(axis=-1) + counts[..., 1, 1].sum(axis=-1)
        accuracies.append(right / n_people.sum(axis=-1))
    return np.stack(disparities, axis=-1), np.stack(accuracies, axis=-1)


def resampled(
    people: People, metric: str, n_bootstrap: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    """Judge all models on the same resamples of the people of each group."""
    n_people = np.zeros((n_bootstrap, people.n_people.size))
    for group in np.unique(people.group):
        own = people.group == group
        total = int(people.n_people[own].sum())
        n_people[:, own] = rng.multinomial(total, people.n_people[own] / total, n_bootstrap)
    return measured(people, metric, n_people)


def changes_table(
    names: list[str],
    people: People,
    metric: str,
    draws: tuple[FloatArray, FloatArray],
    has_before: bool,
    confidence: float,
    max_loss: float,
) -> pd.DataFrame:
    """Return disparities and accuracies, and their changes with intervals that hold together."""
    disparity, accuracy = measured(people, metric, people.n_people.astype(np.float64))
    baseline = 0 if has_before else int(np.argmax(accuracy))
    table = pd.DataFrame({"candidate": names, "disparity": disparity, "accuracy": accuracy})
    for name, values, drawn in zip(
        ("disparity", "accuracy"), (disparity, accuracy), draws, strict=True
    ):
        change = values - values[baseline]
        errors = drawn - drawn[:, [baseline]] - change
        spread = np.sqrt((errors**2).mean(axis=0))
        scaled = np.abs(errors) / np.where(spread > 0, spread, 1.0)
        margin = np.quantile(scaled.max(axis=1), confidence) * spread
        table[f"{name}_change"] = change
        table[f"{name}_change_low"] = change - margin
        table[f"{name}_change_high"] = change + margin
    table["is_within_loss"] = table["accuracy_change"] >= -max_loss - ROUNDING
    is_kept = table["accuracy_change_low"] >= -max_loss - ROUNDING
    table["is_shown"] = is_kept & (table["disparity_change_high"] < 0)
    table["certified"] = np.nan
    table.attrs["baseline"] = baseline
    return table
