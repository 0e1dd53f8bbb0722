"""Table 1 of the benchmark ``fairness_constrained_benchmark``: a network under each of its rules.

The third constraint limits the sum of the absolute differences of the mean losses in both classes.
"""

from statistics import mean
from typing import Any

import numpy as np

from benchmarks.harness import Table
from benchmarks.papers._network_pictures import worded
from benchmarks.papers._network_runs import (
    BOUND,
    LOSS_PARITY,
    Rule,
    Setting,
    Split,
    gap,
    named,
    own_network,
    run,
)
from skfair.constraints import LossParity
from skfair.constraints.base import TrainingRows
from skfair.constraints.bound import BoundConstraint
from skfair.solvers.base import SOLVERS


def both_classes(rows: TrainingRows, bound: float) -> list[BoundConstraint]:
    """Return the third constraint of the table."""
    return [LossParity(subset="class", sum_classes="absolute").prepare(rows, bound)]


ROWS: dict[str, Rule] = {
    "demographic parity": LOSS_PARITY,
    "equal opportunity": named(LossParity(subset="positive")),
    "equalized odds": both_classes,
}
# What each row limits, then errors, and the rates that its name speaks of.
COLUMNS = (*ROWS, "Ina", "Ind", "Sp")


def by_constraint(splits: dict[int, tuple[Split, Split]], quick: bool) -> dict[str, Any]:
    """Train by ALM without a constraint and with each; means over splits."""
    n_steps = 40 if quick else 1500
    settings = {"no rule": Setting(SOLVERS["sgd"](), n_steps)}
    settings |= {name: Setting(SOLVERS["alm"](), n_steps, rule) for name, rule in ROWS.items()}
    results: dict[str, Any] = {}
    for name, setting in settings.items():
        runs = [
            run(setting, *split, seed, n_steps, 2, own_network) for seed, split in splits.items()
        ]
        results[name] = {
            part: measured([(one[part], one["scores"][k]) for one in runs], of_part)
            for k, part in enumerate(("train", "test"))
            for of_part in [[split[k] for split in splits.values()]]
        }
    return results


def measured(runs: list[tuple[dict[str, float], Any]], rows: list[Split]) -> dict[str, float]:
    """Return the means over runs of the constraints, errors and rates."""
    found = [
        bounded(scores, one) | {key: metrics[key] for key in COLUMNS[len(ROWS) :]}
        for (metrics, scores), one in zip(runs, rows, strict=True)
    ]
    return {key: round(mean(one[key] for one in found), 5) for key in COLUMNS}


def bounded(scores: Any, rows: Split) -> dict[str, float]:
    """Return the numbers that the rows of the table limit."""
    is_positive = rows.y > 0
    losses = np.logaddexp(0, -np.where(is_positive, 1, -1) * scores)
    of_classes = [gap(losses, rows.is_white, is_positive == v) for v in (True, False)]
    return dict(
        zip(ROWS, (gap(losses, rows.is_white), of_classes[0], sum(of_classes)), strict=True)
    )


def table_1(results: dict[str, Any]) -> Table:
    """Show what each constraint does to itself, to the others, and to rates."""
    rows = [
        [worded(name), *(one[part][key] for key in COLUMNS for part in ("train", "test"))]
        for name, one in results.items()
    ]
    heads = [head for key in COLUMNS for head in (f"{key}, train", "/ test")]
    return Table(f"table 1: ALM under each constraint, limit {BOUND}", ["constraint", *heads], rows)
