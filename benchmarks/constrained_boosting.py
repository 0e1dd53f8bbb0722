"""Why there is no booster with multipliers in its objective: LightGBM with them, against prices.

The gradients of a booster get those of a Lagrangian: rates are means of sigmoids, and a multiplier
rises while the rates of the training rows differ by more than the limit. ``FairDecisionClassifier``
with the same booster inside sets prices on rows that the boosters of the folds have not seen.
Neither uses the group in predictions.
"""

from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks._decision_peers import CELLS, measured
from benchmarks._decision_scores import SEEDS, Part, people, split
from benchmarks.harness import Table, data_folder, lacks, quiet, timed
from skfair.classification import FairDecisionClassifier

LIMITS = {"demographic_parity": (0.05, 0.02), "equal_opportunity": (0.05, 0.02)}
N_TREES, STEP = 100, 2.0
SETTINGS = {"learning_rate": 0.1, "num_leaves": 31, "verbose": -1, "num_threads": 1}


def with_multipliers(X: Any, y: Any, groups: Any, rule: str, limit: float, seed: int) -> Any:
    """Return a booster under a smooth limit on the largest difference of two groups' rates."""
    import lightgbm

    (label,) = CELLS[rule]
    inside = np.ones(y.size, bool) if label is None else y == label
    names = np.unique(groups)
    share = np.zeros(y.size)  # what a selected row adds to the difference of the two rates
    for g, sign in zip(names, (1.0, -1.0), strict=True):
        cell = inside & (groups == g)
        share[cell] = sign / cell.sum()
    price = 0.0

    def objective(scores: Any, data: Any) -> Any:
        nonlocal price
        chance = expit(scores)
        gap = float(share @ chance)
        price += STEP * np.sign(gap) * max(abs(gap) - limit, 0.0)
        price *= 0.98 if abs(gap) < limit else 1.0
        slope = chance * (1 - chance)
        gradient = chance - y + price * y.size * share * slope
        return gradient, np.maximum(slope, 1e-6)

    settings = {**SETTINGS, "objective": objective, "seed": seed}
    booster = lightgbm.train(settings, lightgbm.Dataset(X, y), N_TREES)
    return lambda rows: (booster.predict(rows) > 0).astype(float)


def prices(X: Any, y: Any, groups: Any, rule: str, limit: float, seed: int) -> Any:
    """Return the decisions of the same booster at prices, and those on the training rows."""
    from lightgbm import LGBMClassifier

    inner = LGBMClassifier(
        n_estimators=N_TREES, learning_rate=0.1, num_leaves=31, verbose=-1, n_jobs=1
    )
    model = FairDecisionClassifier(inner, rule, limit, cv=3, group_aware=False, random_state=seed)
    model.fit(X, y, sensitive_features=groups)
    return model.predict, model.train_predictions_


def main(*, quick: bool = False) -> dict[str, Any]:
    results: dict[str, list[dict[str, Any]]] = {}
    if lacks("lightgbm"):
        return {"fits": results}
    names = ("loans", "compas", "adult") if data_folder() is not None and not quick else ("loans",)
    with quiet():
        for name in names:
            X, y, groups = people(name)
            for seed in SEEDS[: 1 if quick else 3]:
                train, test, _ = split(name, seed, 1500 if quick else None)
                for rule, limits in LIMITS.items():
                    for limit in limits:
                        for row in compared(X, y, groups, train, test, rule, limit, seed):
                            results.setdefault(f"{name} | {rule} | {limit}", []).append(row)
            print(f"   {name} done", flush=True)
    return {"fits": results}


def compared(
    X: Any, y: Any, groups: Any, train: Any, test: Any, rule: str, limit: float, seed: int
) -> list[dict[str, Any]]:
    """Return figures of both ways on a split."""

    def part(rows: Any) -> Part:
        return Part(None, None, y[rows], groups[rows])

    given = X[train], y[train], groups[train], rule, limit, seed
    cpu, predict = timed(lambda: with_multipliers(*given))
    own_cpu, (own_predict, own_train) = timed(lambda: prices(*given))
    rows = []
    for way, seconds, on_train, on_test in (
        ("multipliers", cpu, predict(X[train]), predict(X[test])),
        ("prices", own_cpu, own_train.astype(float), own_predict(X[test]).astype(float)),
    ):
        accuracy, gap = measured(rule, on_test, part(test))
        kept = measured(rule, on_train, part(train))[1]
        row = {"way": way, "train": kept, "kept": kept <= limit + 1e-9, "cpu": seconds}
        rows.append({**row, "accuracy": accuracy, "disparity": gap})
    return rows


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show means over splits of both ways."""
    rows = []
    for case, fits in results["fits"].items():
        for way in ("multipliers", "prices"):
            own = [row for row in fits if row["way"] == way]
            means = [float(np.mean([row[k] for row in own])) for k in FIGURES]
            kept = f"{sum(row['kept'] for row in own)} of {len(own)}"
            rows.append([*case.split(" | "), way, kept, *(f"{value:.4f}" for value in means)])
    columns = ["data", "rule", "limit", "way", "kept on training rows", *FIGURES.values()]
    return {"boosting": Table("LightGBM under a limit, means over splits", columns, rows)}


FIGURES = {
    "train": "training disparity",
    "disparity": "test disparity",
    "accuracy": "test accuracy",
    "cpu": "CPU s",
}
