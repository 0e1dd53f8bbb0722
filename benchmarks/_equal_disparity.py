"""Methods compared at equal disparity on test rows, by curves of accuracy against disparity.

A run holds what each way gives on each split, by "way | constraint | limit". At a given disparity a
way has the accuracy of its curve there, so that one that keeps its limit less well on new rows
gains nothing by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Lead

Point = tuple[float, float, float]  # accuracy, disparity, CPU seconds
Run = dict[str, list[Point]]
Cell = tuple[str, str, float]  # data, constraint, disparity


def curve(run: Run, way: str, rule: str) -> tuple[Any, Any]:
    """Return mean disparities, rising, and the best mean accuracy up to each."""
    means = np.array(
        [
            np.mean(values, axis=0)
            for key, values in run.items()
            if key.startswith(f"{way} | {rule} |")
        ]
    ).reshape(-1, 3)
    order = np.argsort(means[:, 1])
    return means[order, 1], np.maximum.accumulate(means[order, 0])


def accuracy_at(run: Run, way: str, rule: str, disparity: float) -> float:
    """Return the accuracy of a way at a disparity, between its neighbours on the curve."""
    gaps, accuracies = curve(run, way, rule)
    if not gaps.size or gaps[0] > disparity + 0.002:
        return float("nan")
    return float(np.interp(disparity, gaps, accuracies))


def ahead_on(run: Run, own: str, way: str, rule: str, disparity: float, splits: list[int]) -> float:
    """Return by how much one way is ahead of another at a disparity, on some of the splits."""
    part = {
        key: [values[k] for k in splits]
        for key, values in run.items()
        if key.startswith((f"{own} | {rule} |", f"{way} | {rule} |"))
    }
    return accuracy_at(part, own, rule, disparity) - accuracy_at(part, way, rule, disparity)


def lead(runs: dict[str, Run], own: str, way: str, some: list[Cell]) -> Lead:
    """Return by how much one way is ahead of another, the mean of the cells that both reach.

    Its standard error is that of leaving out one split of one data set at a time.
    """
    splits = {name: list(range(_n_splits(runs[name], way))) for name in {c[0] for c in some}}
    every = [ahead_on(runs[c[0]], own, way, *c[1:], splits[c[0]]) for c in some]
    variance = 0.0
    for name, own_splits in splits.items():
        means = []
        for k in own_splits if len(own_splits) > 1 else []:
            rest = [other for other in own_splits if other != k]
            leads = [
                ahead_on(runs[name], own, way, *c[1:], rest) if c[0] == name else full
                for c, full in zip(some, every, strict=True)
            ]
            means.append(_mean(leads))
        variance += (len(own_splits) - 1) * np.var(means) if means else np.nan
    return Lead(_mean(every), float(np.sqrt(variance)))


def in_points(one: Lead) -> str:
    """Return a lead with its error as a cell of a table; a dash is an error that is not known."""
    return f"{100 * one.mean:+.2f} ({100 * one.error:.2f})".replace("nan", "-")


def _mean(values: list[float]) -> float:
    found = [value for value in values if np.isfinite(value)]
    return float(np.mean(found)) if found else float("nan")


def _n_splits(run: Run, way: str) -> int:
    return min(len(values) for key, values in run.items() if key.startswith(f"{way} |"))
