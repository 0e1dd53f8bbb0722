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
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from benchmarks._guarantee_rivals import BOUNDS, fit_on_half
from benchmarks.harness import RECORDS, data_folder, read, write
from skfair.classification import FairDecisionClassifier
from skfair.exceptions import SmallGroupWarning
from skfair.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)

# Seeds below were looked at while the method was made, or measured earlier.
FIRST_SEED = 20_000_000
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
    way: str = "folds"


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
    sample = people.X[rows], people.y[rows], groups[rows]

    def make(limit: float) -> FairDecisionClassifier:
        return FairDecisionClassifier(
            MODELS[cell.model],
            cell.rule,
            limit,
            group_aware=cell.is_aware,
            confidence=cell.confidence if cell.way == "folds" else None,
            random_state=0,
        )

    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", SmallGroupWarning)
        if cell.way == "folds":
            model = make(cell.limit).fit(*sample[:2], sensitive_features=sample[2])
            claims = model.status_ in ("converged", "certified")
        else:
            args = (cell.rule, cell.limit, sample, cell.is_aware, seed)
            model = fit_on_half(cell.way, make, *args)
            claims = model is not None
    seconds = time.process_time() - start
    if model is None:  # all are treated like the larger class
        model = DummyClassifier().fit(*sample[:2])
    is_asked = cell.is_aware and not isinstance(model, DummyClassifier)
    given = {"sensitive_features": groups} if is_asked else {}
    predicted = model.predict(people.X, **given)
    gap = METRICS[cell.rule](people.y, predicted, sensitive_features=groups)
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
            parity = (population, "sex", "demographic_parity", 0.05)
            found.append(Cell(*parity, 5000, aware, 0.95, "trees"))
        for n in (1000, 5000):
            for way in ("split", *BOUNDS):
                found.append(Cell(*parity, n, True, 0.95, way=way))
    return found


def main(
    *,
    quick: bool = False,
    repetitions: int | None = None,
    only: str = "",
    is_kept: bool = False,
) -> list[dict]:
    """Measure all cells, or ``only`` those whose description has these words."""
    n_runs = repetitions or (20 if quick else 500)
    results, people = [], {}
    for cell in cells(quick=quick):
        name = " ".join(map(str, cell))
        if not all(part in name.split() for part in only.split(",") if part):
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
        if is_kept:
            keep(results[-1:])
    return results


def cost(repetitions: int = 3) -> None:
    """Print the CPU of certified fits over that of cross-fitted ones without a promise, in turn."""
    people = adult()
    for model, n in (("linear", 5000), ("linear", 20_000), ("trees", 5000)):
        for rule, limit in (("demographic_parity", 0.05), ("equalized_odds", 0.1)):
            for aware in (True, False):
                cell = Cell("adult", "sex", rule, limit, n, aware, None, model)
                run(cell._replace(confidence=0.95, n=1000), people, 0)  # kernels, caches
                seconds = [
                    [run(cell._replace(confidence=one), people, seed)["seconds"] for seed in (1,)]
                    for _ in range(repetitions)
                    for one in (None, 0.95)
                ]
                plain, certified = np.median(seconds[::2]), np.median(seconds[1::2])
                name = f"{model} {n} {rule} {'with' if aware else 'without'} the group"
                print(f"{name:60s} {plain:.3f} {certified:.3f} {certified / plain:.2f}", flush=True)


def keep(results: list[dict[str, Any]]) -> None:
    """Write cells to the record; those measured before stay, unless they are measured again."""
    known = read("guarantee")["results"] if (RECORDS / "guarantee.json").exists() else []
    cells = {tuple(one.get(name) for name in Cell._fields): one for one in (*known, *results)}
    write("guarantee", list(cells.values()), RECORDS)


if __name__ == "__main__":  # [REPETITIONS [WORD,WORD]] [--full] [--keep]: cells with all words
    if "--cost" in sys.argv:
        sys.exit(cost())
    given = [one for one in sys.argv[1:] if not one.startswith("--")]
    main(
        quick="--full" not in sys.argv,
        repetitions=int(given[0]) if given else None,
        only=given[1] if len(given) > 1 else "",
        is_kept="--keep" in sys.argv,
    )
