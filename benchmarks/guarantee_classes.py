"""Decisions between three classes whose limits are to hold for new people.

Samples are drawn with replacement from Adult, which stands for everybody, so the rates of everybody
are known. The classes are the hours that people work in a week: below 39, 39 to 41, and more; the
groups are women and men. A constraint limits the rates of each class against the rest.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks._drawing import mark, pairs_of_dots, small
from benchmarks.guarantee import Population
from benchmarks.harness import Table, data_folder, mean_lead, timed
from skfair.classification import FairDecisionClassifier

FIRST_SEED, REPETITIONS = 61_000_000, 150
WAYS: dict[str, float | None] = {"sample": None, "everybody": 0.95}
# Rows of a sample, constraint, limit, and whether decisions may use the group.
CELLS = (
    (2000, "demographic_parity", 0.1, True),
    (2000, "demographic_parity", 0.1, False),
    (5000, "equalized_odds", 0.15, False),
)


def hours() -> Population | None:
    """Return the people, or None without the folder of data."""
    folder = data_folder()
    if folder is None:
        return None
    table = pd.read_parquet(folder / "adult.parquet")
    numbers = table[["age", "education-num", "capital-gain"]].astype(float)
    names = ["marital-status", "occupation", "workclass"]
    dummies = pd.get_dummies(table[names].astype(str)).astype(float)
    dummies = dummies.loc[:, dummies.mean() > 0.01]
    X = StandardScaler().fit_transform(np.hstack([numbers, dummies]))
    y = np.digitize(table["hours-per-week"].astype(float), [39, 41])
    return Population(X, y, {"sex": table["sex"].astype(str).to_numpy()})


def largest_gap(rule: str, y: Any, predicted: Any, groups: Any) -> float:
    """Return the largest difference of rates of a class against the rest, by plain counting."""
    found = []
    for label in np.unique(y):
        is_label = y == label
        cells = [is_label, ~is_label] if rule == "equalized_odds" else [np.ones(y.size, bool)]
        for cell in cells:
            rates = [
                np.mean(predicted[cell & (groups == name)] == label) for name in np.unique(groups)
            ]
            found.append(max(rates) - min(rates))
    return max(found)


def main(*, quick: bool = False) -> dict[str, Any]:
    everybody = hours()
    if everybody is None:
        return {}
    found, repetitions = [], 2 if quick else REPETITIONS
    for cell in CELLS[:1] if quick else CELLS:
        samples = [list(_fits(everybody, cell, seed)) for seed in range(repetitions)]
        for way, fits in zip(WAYS, zip(*samples, strict=True), strict=True):
            failed, solved, accuracy, gap, cpu = np.mean(fits, axis=0)
            found.append(
                {
                    **{"cell": list(cell), "way": way, "repetitions": repetitions},
                    **{"failed": failed, "solved": solved, "accuracy": accuracy},
                    **{"gap": gap, "cpu": cpu},
                }
            )
        print(f"   {cell} done", flush=True)
    return {"fits": found}


def canary() -> list[Any]:
    """Return the results of a small cell."""
    everybody = hours()
    fits = _fits(everybody, CELLS[0], 0) if everybody else ()
    return [found for *found, _ in fits]  # the last is a time


def _fits(
    everybody: Population, cell: tuple[int, str, float, bool], seed: int
) -> Iterator[tuple[float, ...]]:
    """Yield for each way whether it failed, whether it had a solution, and what this is worth.

    Without a solution, the most frequent class is what is left.
    """
    n, rule, limit, is_aware = cell
    X, y, groups = everybody.X, everybody.y, everybody.groups["sex"]
    rows = np.random.default_rng(FIRST_SEED + seed).integers(0, y.size, n)
    given = {"sensitive_features": groups} if is_aware else {}
    for confidence in WAYS.values():
        model = FairDecisionClassifier(
            LogisticRegression(max_iter=300),
            rule,
            limit,
            certificate=confidence,
            group_aware=is_aware,
            random_state=seed,
        )
        cpu, _ = timed(lambda: model.fit(X[rows], y[rows], sensitive_features=groups[rows]))  # noqa: B023
        if model.status_ == "no_solution":
            yield 0.0, 0.0, np.bincount(y).max() / y.size, 0.0, cpu
            continue
        predicted = model.predict(X, **given)
        gap = largest_gap(rule, y, predicted, groups)
        yield float(gap > limit), 1.0, float(np.mean(predicted == y)), gap, cpu


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show both models side by side."""
    lines = []
    for row in results["fits"]:
        n, rule, limit, is_aware = row["cell"]
        used = "group-aware" if is_aware else "group-blind"
        about = f"{rule.replace('_', ' ')}, {limit:g}, {n}, {used}"
        cell = [about, "no" if row["way"] == "sample" else "yes"]
        figures = [f"{row['failed']:.1%}", f"{row['solved']:.0%}", f"{row['accuracy']:.3f}"]
        lines.append([*cell, *figures, f"{row['gap']:.3f}", f"{row['cpu']:.2f}"])
    columns = ["constraint, limit, rows, group", "certificate", "limit violated"]
    columns += ["with a solution", "accuracy", "disparity", "CPU seconds"]
    return {"classes": Table("Three classes, in the population", columns, lines)}


def numbers(results: dict[str, Any]) -> dict[str, Any]:
    """Return how often certified decisions exceed the limit, and their lead in accuracy."""
    ways = {name: [row for row in results["fits"] if row["way"] == name] for name in WAYS}
    pairs = zip(*ways.values(), strict=True)
    return {
        "most": max(row["failed"] for row in ways["everybody"]),
        "lead": mean_lead([own["accuracy"] - plain["accuracy"] for plain, own in pairs]),
    }


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw how often the population exceeds the limit, without a certificate and with one."""
    rows: dict[str, list[float]] = {}
    for row in results["fits"]:
        n, rule, limit, is_aware = row["cell"]
        used = "aware" if is_aware else "blind"
        about = f"{rule.replace('_', ' ')} {limit:g}, {n} rows, {used}"
        rows.setdefault(about, []).append(100 * row["failed"])
    figure, (axes,) = small(height=0.9 + 0.3 * len(rows))
    pairs_of_dots(axes, rows, ["limit for the sample", "certified"])
    mark(axes, 5, "5%")
    axes.set_xlabel("Samples in which the limit is exceeded in the population, %", loc="right")
    axes.set_xlim(0, 75)
    return {"picture": figure}
