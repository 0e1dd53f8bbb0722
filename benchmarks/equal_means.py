"""Regressors with equal mean predictions: training against post-processing, at the same disparity.

Half of the rows are fitted, and the other half are predicted. Each way is fitted under limits from
0 to the difference without limits, which gives a curve of R2 over the difference of mean
predictions, both on the other half. R2 is read from the curve at a fifth of the difference without
limits, so that all ways are compared at the same disparity on new rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.preprocessing import StandardScaler

from benchmarks.guarantee_means import Population, crime, hours
from benchmarks.harness import data_folder
from skfair.metrics import mean_score_difference
from skfair.regression import ConstrainedERMRegressor, FairDecisionRegressor

REPETITIONS, ROWS = 4, 4000
# Limits as shares of the difference without limits, and the share at which R2 is read.
SHARES, READ_AT = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0), 0.2


def made(kind: str, seed: int) -> Population:
    """Make rows whose groups differ in one column, in four of five, or in one beside the target."""
    rng = np.random.default_rng(seed)
    group = rng.random(ROWS) < 0.4
    X, noise = rng.normal(size=(ROWS, 5)), 0.7 * rng.normal(size=ROWS)
    X[:, 0] += group * {"proxy": 0.5}.get(kind, 1.0)
    if kind == "all":
        X[:, 1:4] += 0.5 * group[:, None]
    if kind == "proxy":
        X[:, 4] += 2 * group
    y = {
        "one": X[:, 0] + X[:, 1] + noise,
        "all": X[:, :4].sum(axis=1) + noise,
        "proxy": X[:, 0] + X[:, 1] + 0.5 * group + noise,
        "skewed": np.exp(0.5 * X[:, 0] + 0.3 * X[:, 1] + 0.4 * noise),
        "curved": X[:, 0] + X[:, 1] ** 2 + noise,
    }[kind]
    return Population(X, (y - y.mean()) / y.std(), group)


def crime_without_race(table: pd.DataFrame) -> Population:
    """Crimes of communities. The groups are made of a column about race, and these are left out."""
    groups = crime(table.copy()).groups
    y = table.pop("ViolentCrimesPerPop").astype(float)
    X = table.select_dtypes("number").astype(float)
    X = X.loc[:, [name for name in X if "race" not in name.lower()]]
    X = X.loc[:, (X.std() > 0) & X.notna().all()]
    return Population(
        StandardScaler().fit_transform(X), np.asarray((y - y.mean()) / y.std()), groups
    )


def real(name: str, make: Callable[[pd.DataFrame], Population], seed: int) -> Population:
    """Return at most 8,000 rows of a real table."""
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError(name)
    found = make(pd.read_parquet(folder / f"{name}.parquet"))
    rows = np.random.default_rng(seed).permutation(found.y.size)[:8000]
    return Population(*(one[rows] for one in found))


LINEAR = LinearRegression()
TREES = HistGradientBoostingRegressor(max_iter=60, random_state=0)
# Name, rows, and the regressor inside FairDecisionRegressor.
CELLS: tuple[tuple[str, Callable[[int], Population], Any], ...] = (
    ("one column differs", partial(made, "one"), LINEAR),
    ("four columns differ", partial(made, "all"), LINEAR),
    ("a column tells the group", partial(made, "proxy"), LINEAR),
    ("skewed targets", partial(made, "skewed"), LINEAR),
    ("crime", partial(real, "communities_crime", crime_without_race), LINEAR),
    ("hours", partial(real, "adult", hours), LINEAR),
    ("one column differs, trees", partial(made, "one"), TREES),
    ("curved, trees", partial(made, "curved"), TREES),
    ("crime, trees", partial(real, "communities_crime", crime_without_race), TREES),
    ("hours, trees", partial(real, "adult", hours), TREES),
)


def main(*, quick: bool = False) -> list[dict[str, Any]]:
    """Measure R2 at the same disparity in each cell."""
    found = []
    for name, make, inner in CELLS[:2] if quick else CELLS:
        try:
            read = [
                list(_read(make(seed), inner, seed)) for seed in range(1 if quick else REPETITIONS)
            ]
        except FileNotFoundError as error:
            print(f"   skipped: {error}")
            continue
        free, trained, blind, aware = np.mean(read, axis=0).tolist()
        found.append({"name": name, "free": free, "trained": trained})
        found[-1] |= {"blind": blind, "aware": aware}
        print("   ", found[-1], flush=True)
    return found


def canary() -> list[float]:
    """Return the results of a small cell."""
    _, make, inner = CELLS[0]
    read = [list(_read(make(seed), inner, seed)) for seed in range(REPETITIONS)]
    return np.mean(read, axis=0).tolist()


def _read(people: Population, inner: Any, seed: int) -> Iterator[float]:
    """Yield R2 without limits, trained, and post-processed without and with the group."""
    order = np.random.default_rng(100 + seed).permutation(people.y.size)
    X, y, groups = (one[order[::2]] for one in people)
    new, truth, of_new = (one[order[1::2]] for one in people)

    def gap(predicted: Any, groups: Any) -> float:
        return mean_score_difference(None, predicted, sensitive_features=groups)

    plain = inner.fit(X, y)
    yield float(r2_score(truth, plain.predict(new)))
    largest, wanted = gap(plain.predict(X), groups), READ_AT * gap(plain.predict(new), of_new)
    blind, aware = (
        FairDecisionRegressor(inner, "mean_score_parity", group_aware=is_aware)
        for is_aware in (False, True)
    )
    for model in (ConstrainedERMRegressor(), blind, aware):
        points = []
        for share in SHARES:
            model.set_params(max_disparity=share * largest)
            model.fit(X, y, sensitive_features=groups)
            given = {"sensitive_features": of_new} if getattr(model, "group_aware", False) else {}
            predicted = model.predict(new, **given)
            points.append((gap(predicted, of_new), r2_score(truth, predicted)))
        gaps, scores = np.array(sorted(points)).T
        yield float(np.interp(wanted, gaps, scores))


def numbers(results: list[dict[str, Any]]) -> dict[str, float]:
    """Return each R2, such as ``crime_trees_blind``."""
    slugs = {row["name"]: re.sub(r"\W+", "_", row["name"]) for row in results}
    ways = ("free", "trained", "blind", "aware")
    return {f"{slugs[row['name']]}_{way}": row[way] for row in results for way in ways}
