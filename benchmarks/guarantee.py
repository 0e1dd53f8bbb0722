"""How often limits are broken by new people, with and without ``confidence=``.

The population is a large real table; a sample is drawn from it with replacement, a classifier is
fitted on the sample, and its disparity is measured on the whole table. A *failure* is a disparity
above the limit of a fit that claims to keep it. Cells are populations, rules, sizes, and whether
decisions may use groups.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks.harness import data_folder
from skfair.classification import FairDecisionClassifier
from skfair.exceptions import SmallGroupWarning
from skfair.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)

# Seeds below 8,000,000 were looked at while the method was made, or measured earlier.
FIRST_SEED = 8_000_000
MODELS = {
    "linear": LogisticRegression(solver="newton-cholesky", C=0.5),
    "trees": HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=15, random_state=0),
}
METRICS = {
    "demographic_parity": demographic_parity_difference,
    "equal_opportunity": equal_opportunity_difference,
    "equalized_odds": equalized_odds_difference,
}


class Cell(NamedTuple):
    """One line of the table."""

    population: str
    groups: str
    rule: str
    limit: float
    n: int
    is_aware: bool
    confidence: float | None
    model: str = "linear"


class Population(NamedTuple):
    """The people that samples are drawn from."""

    X: np.ndarray
    y: np.ndarray
    groups: dict[str, np.ndarray]


def adult(half_positive: bool = False) -> Population:
    """Adult; with ``half_positive`` people with a high income are three times as many."""
    folder = data_folder()
    if folder is None:
        raise SystemExit
    table = pd.read_parquet(folder / "adult.parquet")
    y = (table["income"].astype(str).str[0] == ">").to_numpy().astype(int)
    numbers = table[
        ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    ].astype(float)
    numbers["capital-gain"] = np.log1p(numbers["capital-gain"])
    numbers["capital-loss"] = np.log1p(numbers["capital-loss"])
    numbers["age2"] = numbers["age"] ** 2
    names = ["marital-status", "relationship", "occupation", "workclass"]
    dummies = pd.get_dummies(table[names].astype(str))
    dummies = dummies.loc[:, dummies.mean() > 0.01]
    X = StandardScaler().fit_transform(np.hstack([numbers, dummies.astype(float)]))
    sex = table["sex"].astype(str).to_numpy()
    is_white = table["race"].astype(str).to_numpy() == "White"
    race = np.where(is_white, "White", "other")
    four = np.char.add(np.char.add(sex.astype(str), " "), race.astype(str))
    rows = np.repeat(np.arange(y.size), np.where((y == 1) & half_positive, 3, 1))
    return Population(X[rows], y[rows], {"sex": sex[rows], "four": four[rows]})


POPULATIONS = {"adult": lambda: adult(), "half positive": lambda: adult(half_positive=True)}


def run(cell: Cell, people: Population, seed: int) -> dict[str, Any]:
    """Fit once, and measure what the fit does to everybody."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, people.y.size, cell.n)
    groups = people.groups[cell.groups]
    model = FairDecisionClassifier(
        MODELS[cell.model],
        cell.rule,
        cell.limit,
        group_aware=cell.is_aware,
        confidence=cell.confidence,
        random_state=0,
    )
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", SmallGroupWarning)
        model.fit(people.X[rows], people.y[rows], sensitive_features=groups[rows])
    seconds = time.process_time() - start
    given = {"sensitive_features": groups} if cell.is_aware else {}
    predicted = model.predict(people.X, **given)
    gap = METRICS[cell.rule](people.y, predicted, sensitive_features=groups)
    claims = model.status_ in ("converged", "certified")
    return {
        "accuracy": float(np.mean(predicted == people.y)),
        "gap": gap,
        "failed": bool(claims and gap > cell.limit + 1e-12),
        "solved": bool(claims),
        "selected": float(np.mean(predicted)),
        "seconds": seconds,
    }


def summary(cell: Cell, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return failure rate, its standard error, and accuracies."""
    failed = float(np.mean([one["failed"] for one in runs]))
    solved = [one for one in runs if one["solved"]]
    return {
        **cell._asdict(),
        "repetitions": len(runs),
        "failures": failed,
        "standard_error": float(np.sqrt(failed * (1 - failed) / len(runs))),
        "solved": len(solved) / len(runs),
        "accuracy": float(np.mean([one["accuracy"] for one in runs])),
        "accuracy_solved": float(np.mean([one["accuracy"] for one in solved]))
        if solved
        else float("nan"),
        "selected": float(np.mean([one["selected"] for one in runs])),
        "seconds": float(np.median([one["seconds"] for one in runs])),
    }


def cells(*, quick: bool) -> list[Cell]:
    """Return the cells of the table."""
    found = []
    for population in POPULATIONS:
        for groups, rule, limit in (
            ("sex", "demographic_parity", 0.05),
            ("sex", "equal_opportunity", 0.1),
            ("sex", "equalized_odds", 0.1),
            ("four", "demographic_parity", 0.1),
        ):
            for n in (1000, 5000) if quick else (1000, 5000, 20_000):
                for aware in (False, True):
                    for confidence in (None, 0.95):
                        found.append(Cell(population, groups, rule, limit, n, aware, confidence))
        for aware in (False, True):
            trees = Cell(population, "sex", "demographic_parity", 0.05, 5000, aware, 0.95, "trees")
            found.append(trees)
    return found


def main(*, quick: bool = False, repetitions: int | None = None, only: str = "") -> list[dict]:
    """Measure all cells; ``only`` keeps those whose description contains it."""
    n_runs = repetitions or (20 if quick else 500)
    results, people = [], {}
    for cell in cells(quick=quick):
        name = " ".join(map(str, cell))
        if only and not all(part in name for part in only.split(",")):
            continue
        if cell.population not in people:
            people[cell.population] = POPULATIONS[cell.population]()
        runs = [run(cell, people[cell.population], FIRST_SEED + seed) for seed in range(n_runs)]
        results.append(summary(cell, runs))
        one = results[-1]
        print(
            f"{name:60s} fails {one['failures']:.3f} solved {one['solved']:.2f} accuracy "
            f"{one['accuracy']:.4f} ({one['accuracy_solved']:.4f}) selected {one['selected']:.3f} "
            f"{one['seconds']:.2f} s",
            flush=True,
        )
    return results


if __name__ == "__main__":
    given = [one for one in sys.argv[1:] if one != "--full"]
    main(
        quick="--full" not in sys.argv,
        repetitions=int(given[0]) if given else None,
        only=given[1] if len(given) > 1 else "",
    )
