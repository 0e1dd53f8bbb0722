"""Regressors whose limit on means is to hold for new people: folds against halves.

Samples are drawn with replacement from a table that stands for everybody, so the difference of mean
predictions among everybody is known. A model without a certificate keeps the limit on its sample
only; "split" fits on one half and judges on the other; "cross" fits on folds and judges by all.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler

from benchmarks._drawing import mark, pairs_of_dots, small
from benchmarks.harness import Table, data_folder, timed
from skfair import Certificate
from skfair.metrics import mean_score_difference
from skfair.regression import ConstrainedERMRegressor

FIRST_SEED, REPETITIONS = 50_000_000, 200
# How limits are to be kept, and what is passed for it.
WAYS: dict[str, dict[str, Any]] = {
    "sample": {},
    "split": {"certificate": Certificate(0.95, by="split")},
    "cross": {"certificate": Certificate(0.95, by="cross")},
}

SHOWN = {"sample": "no certificate", "split": "split", "cross": "cross"}


class Population(NamedTuple):
    """The people that samples are drawn from; targets have a standard deviation of 1."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray


def _population(X: pd.DataFrame, y: pd.Series, groups: Any) -> Population:
    X = X.loc[:, (X.std() > 0) & X.notna().all()]
    return Population(
        StandardScaler().fit_transform(X), np.asarray((y - y.mean()) / y.std()), groups
    )


def crime(table: pd.DataFrame) -> Population:
    """Crimes of American communities; groups: whether more than the median are black."""
    y = table.pop("ViolentCrimesPerPop").astype(float)
    groups = (table["racepctblack"] > table["racepctblack"].median()).to_numpy()
    return _population(table.select_dtypes("number").astype(float), y, groups)


def hours(table: pd.DataFrame) -> Population:
    """Hours that people in Adult work in a week, by sex."""
    y, sex = table.pop("hours-per-week").astype(float), table.pop("sex").astype(str).to_numpy()
    numbers = table.select_dtypes("number").astype(float)
    dummies = pd.get_dummies(table.select_dtypes(exclude="number").astype(str)).astype(float)
    dummies = dummies.loc[:, dummies.mean() > 0.01]
    return _population(pd.concat([numbers, dummies], axis=1), y, sex)


# Table, population, rows of a sample, and limits in standard deviations of the targets.
CELLS = (
    ("communities_crime", crime, 500, 0.5),
    ("communities_crime", crime, 1000, 0.3),
    ("adult", hours, 2000, 0.1),
    ("adult", hours, 20_000, 0.05),
)


def main(*, quick: bool = False) -> dict[str, Any]:
    folder = data_folder()
    if folder is None:
        return {}
    found = []
    for name, make, n, limit in CELLS[:1] if quick else CELLS:
        everybody = make(pd.read_parquet(folder / f"{name}.parquet"))
        repetitions = 2 if quick else REPETITIONS if n < 10_000 else REPETITIONS // 4
        samples = [list(_fits(everybody, n, limit, seed)) for seed in range(repetitions)]
        for way, fits in zip(WAYS, zip(*samples, strict=True), strict=True):
            failed, solved, quality, gap, cpu = np.mean(fits, axis=0)
            found.append(
                {
                    **{"table": name, "n": n, "limit": limit, "way": way},
                    **{"repetitions": repetitions, "failed": failed, "solved": solved},
                    **{"r2": quality, "gap": gap, "cpu": cpu},
                }
            )
        print(f"   {name} {n} done", flush=True)
    return {"fits": found}


def canary() -> list[Any]:
    """Return the results of a small cell."""
    folder = data_folder()
    if folder is None:
        return []
    name, make, n, limit = CELLS[0]
    everybody = make(pd.read_parquet(folder / f"{name}.parquet"))
    fits = (fit for seed in range(5) for fit in _fits(everybody, n, limit, seed))
    return [found for *found, _ in fits]  # the last is a time


def _fits(everybody: Population, n: int, limit: float, seed: int) -> Iterator[tuple[float, ...]]:
    """Yield for each way whether it failed, whether it had a solution, and what this is worth.

    Without a solution, the mean of the targets is what is left: it explains nothing.
    """
    rows = np.random.default_rng(FIRST_SEED + seed).integers(0, everybody.y.size, n)
    X, y, groups = (one[rows] for one in everybody)
    for options in WAYS.values():
        model = ConstrainedERMRegressor(max_disparity=limit, random_state=seed, **options)
        cpu, _ = timed(lambda: model.fit(X, y, sensitive_features=groups))  # noqa: B023
        if model.status_ == "no_solution":
            yield 0.0, 0.0, 0.0, 0.0, cpu
            continue
        predicted = model.predict(everybody.X)
        gap = mean_score_difference(None, predicted, sensitive_features=everybody.groups)
        yield float(gap > limit), 1.0, r2_score(everybody.y, predicted), gap, cpu


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show the methods side by side."""
    lines = [
        [
            f"{row['table'].split('_')[0]}, {row['n']}, {row['limit']:g}",
            *(SHOWN[row["way"]], f"{row['failed']:.1%}"),
            *(f"{row['solved']:.0%}", f"{row['r2']:.3f}", f"{row['gap']:.3f}", f"{row['cpu']:.2f}"),
        ]
        for row in results["fits"]
    ]
    columns = ["table, rows, limit", "method", "limit violated", "with a solution", "R2"]
    columns += ["disparity", "CPU seconds"]
    return {"means": Table("Limits on means, in the population", columns, lines)}


def numbers(results: dict[str, Any]) -> dict[str, float]:
    """Return how often certified regressors exceed the limit, and the shares of R2 they keep."""
    of = {
        way: [row for row in results["fits"] if row["way"] == way]
        for way in ("sample", "split", "cross")
    }
    kept = {
        way: [own["r2"] / plain["r2"] for own, plain in zip(of[way], of["sample"], strict=True)]
        for way in ("split", "cross")
    }
    return {
        "most": max(row["failed"] for way in kept for row in of[way]),
        **{f"{end.__name__}_{way}": end(kept[way]) for way in kept for end in (min, max)},
    }


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw how often each method exceeds the limit, and its fit."""
    figure, axes = small(2, height=2.2)
    labels = {"failed": "Samples over the limit, %", "r2": "R2 (higher is better)"}
    for panel, (key, label) in zip(axes, labels.items(), strict=True):
        rows: dict[str, list[float]] = {}
        for row in results["fits"]:
            about = f"{row['table'].split('_')[0]}, {row['n']} rows"
            rows.setdefault(about, []).append(100 * row[key] if key == "failed" else row[key])
        pairs_of_dots(panel, rows, ["sample", "split", "cross"] if key == "r2" else [])
        panel.set_xlabel(label)
        panel.set_xlim(left=0)
    axes[1].set_yticklabels([])
    mark(axes[0], 5, "5%")
    return {"picture": figure}
