"""Boosters trained with a limit, LightGBM and FairGBM, against FairDecisionClassifier.

The gradients of a Lagrangian are added to the gradients of a booster: rates are means of sigmoids,
and a multiplier rises while the rates of the training rows differ by more than the limit.
``FairDecisionClassifier`` with the same booster inside sets prices on rows that the boosters of the
folds have not seen. FairGBM does the same with LightGBM's own code, for constraints on errors only,
at three speeds of the multipliers. None of them uses the group in predictions.
"""

from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks._decision_scores import CELLS, SEEDS, Part, measured, people, split
from benchmarks._drawing import name_rows, small
from benchmarks._verdicts import tally_of_signs
from benchmarks.harness import Table, data_folder, lacks, mean_lead, quiet, timed
from skfair.classification import FairDecisionClassifier

LIMITS = {
    "demographic_parity": (0.05, 0.02),
    "equal_opportunity": (0.05, 0.02),
    "equalized_odds": (0.05,),
}
# FairGBM calls constraints by the errors that they compare.
ERRORS = {"equal_opportunity": "FNR", "equalized_odds": "FNR,FPR"}
SPEEDS = (0.01, 0.1, 1.0)
# Limits of prices beside these, to compare at the disparity on test rows that another way has.
CURVE = (0.01, 0.02, 0.05, 0.1, 0.15)
N_TREES, STEP = 100, 2.0
SETTINGS = {"learning_rate": 0.1, "num_leaves": 31, "verbose": -1, "num_threads": 1}


def with_multipliers(X: Any, y: Any, groups: Any, rule: str, limit: float, seed: int) -> Any:
    """Return a booster under a smooth limit on the largest difference of two groups' rates."""
    import lightgbm

    names = np.unique(groups)
    share = np.zeros(
        (len(CELLS[rule]), y.size)
    )  # what a selected row adds to a difference of rates
    for own, label in zip(share, CELLS[rule], strict=True):
        for g, sign in zip(names, (1.0, -1.0), strict=True):
            cell = (groups == g) & ((y == label) if label is not None else True)
            own[cell] = sign / cell.sum()
    price = np.zeros(len(share))

    def objective(scores: Any, data: Any) -> Any:
        nonlocal price
        chance = expit(scores)
        gap = share @ chance
        price += STEP * np.sign(gap) * np.maximum(np.abs(gap) - limit, 0.0)
        price *= np.where(np.abs(gap) < limit, 0.98, 1.0)
        slope = chance * (1 - chance)
        gradient = chance - y + y.size * (price @ share) * slope
        return gradient, np.maximum(slope, 1e-6)

    settings = {**SETTINGS, "objective": objective, "seed": seed}
    booster = lightgbm.train(settings, lightgbm.Dataset(X, y), N_TREES)
    return lambda rows: (booster.predict(rows) > 0).astype(float)


def fairgbm(speed: float) -> Any:
    """Return FairGBM, whose multipliers rise at a speed."""

    def fit(X: Any, y: Any, groups: Any, rule: str, limit: float, seed: int) -> Any:
        from fairgbm import Dataset, train

        codes = np.unique(groups, return_inverse=True)[1]
        settings = {
            **SETTINGS,
            "objective": "constrained_cross_entropy",
            "constraint_type": ERRORS[rule],
            "constraint_fnr_threshold": limit,
            "constraint_fpr_threshold": limit,
            "multiplier_learning_rate": speed,
            "seed": seed,
        }
        data = Dataset(X, label=y, constraint_group=codes)
        booster = train(settings, data, N_TREES, verbose_eval=False)
        return lambda rows: (booster.predict(rows) > 0.5).astype(float)

    return fit


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
                    for limit in sorted({*limits, *CURVE[: 0 if quick else None]}):
                        for row in compared(X, y, groups, train, test, rule, limit, seed):
                            results.setdefault(f"{name} | {rule} | {limit}", []).append(row)
            print(f"   {name} done", flush=True)
    return {"fits": results}


def canary() -> tuple[float, float]:
    """Return the results of a small cell."""
    rule, seed = "demographic_parity", SEEDS[0]
    X, y, groups = people("loans")
    train, test, _ = split("loans", seed)
    decide, _ = prices(X[train], y[train], groups[train], rule, 0.05, seed)
    return measured(rule, decide(X[test]).astype(float), Part(None, None, y[test], groups[test]))


def compared(
    X: Any, y: Any, groups: Any, train: Any, test: Any, rule: str, limit: float, seed: int
) -> list[dict[str, Any]]:
    """Return figures of both ways on a split."""

    def part(rows: Any) -> Part:
        return Part(None, None, y[rows], groups[rows])

    given = X[train], y[train], groups[train], rule, limit, seed
    found = {}
    cpu, (own_predict, own_train) = timed(lambda: prices(*given))
    found["prices"] = cpu, own_train.astype(float), own_predict(X[test]).astype(float)
    is_asked = limit in LIMITS[rule]
    ways = {"multipliers": with_multipliers} if is_asked else {}
    if is_asked and rule in ERRORS and not lacks("fairgbm"):
        ways |= {f"FairGBM, speed {speed}": fairgbm(speed) for speed in SPEEDS}
    for way, fit in ways.items():
        cpu, predict = timed(lambda f=fit: f(*given))
        found[way] = cpu, predict(X[train]), predict(X[test])
    rows = []
    for way, (seconds, on_train, on_test) in found.items():
        accuracy, gap = measured(rule, on_test, part(test))
        kept = measured(rule, on_train, part(train))[1]
        row = {"way": way, "train": kept, "kept": kept <= limit + 1e-9, "cpu": seconds}
        rows.append({**row, "accuracy": accuracy, "disparity": gap})
    return rows


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show means over splits of all methods, and how many fits satisfied the limit."""
    rows = []
    for case, fits in results["fits"].items():
        if float(case.split(" | ")[2]) not in LIMITS[case.split(" | ")[1]]:
            continue
        for way in dict.fromkeys(row["way"] for row in fits):
            own = [row for row in fits if row["way"] == way]
            means = [float(np.mean([row[k] for row in own])) for k in FIGURES]
            kept = f"{sum(row['kept'] for row in own)} of {len(own)}"
            about = case.replace("_", " ").replace(" | ", ", ")
            rows.append([about, worded(way), kept, *(f"{x:.3f}" for x in means[:-1]), means[-1]])
    columns = ["data, constraint, limit", "method", SATISFIED, *FIGURES.values()]
    return {
        "boosting": Table("Boosters under a limit, means over splits", columns, rows),
        "summary": _summary(results),
    }


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw how many fits satisfy the limit, and by how much it is exceeded on unseen rows."""
    rows = _summary(results).rows
    figure, axes = small(2, height=0.8 + 0.28 * len(rows))
    shown = {
        "Fits within the limit, training, %": [float(row[2].rstrip("%")) for row in rows],
        "Excess over the limit, unseen rows": [max(float(row[3]), 0.0) for row in rows],
    }
    for panel, (label, values) in zip(axes, shown.items(), strict=True):
        panel.barh(range(len(rows)), values, color=["C0", *["C1"] * (len(rows) - 1)], height=0.6)
        name_rows(panel, [row[0] for row in rows] if panel is axes[0] else [""] * len(rows))
        panel.set_xlabel(label)
        panel.set_xlim(left=0)
    return {"picture": figure}


def numbers(results: dict[str, Any]) -> dict[str, Any]:
    """Return how often boosters trained with a limit satisfy it, and how far they are behind."""
    trained = ["multipliers", *(f"FairGBM, speed {speed}" for speed in SPEEDS)]
    fits = [row for way in trained for _, _, rows in _asked(results, way) for row in rows]
    every = {way: _leads(results, way) for way in trained}
    leads = {way: mean_lead(own) for way, own in every.items()}
    gbm = [one for way in trained[1:] for one in every[way]]
    own = [row for _, _, rows in _asked(results, "prices") for row in rows]
    cpu = [float(np.median([row["cpu"] for row in some])) for some in (own, fits)]
    return {
        "satisfied": _mean(fits, "kept"),
        "own_satisfied": _mean(own, "kept"),
        "cpu": cpu[0] / cpu[1],
        "multipliers_cases": tally_of_signs(every["multipliers"], unit="cases"),
        "gbm_cases": tally_of_signs(gbm, unit="cases"),
        "multipliers": leads["multipliers"],
        "slow": leads["FairGBM, speed 0.01"],
        "medium": leads["FairGBM, speed 0.1"],
        "fast": leads["FairGBM, speed 1.0"],
    }


def worded(method: str) -> str:
    """Return the name of a method, which a record writes shorter."""
    return OURS if method == "prices" else method


def _summary(results: dict[str, Any]) -> Table:
    """Compare each way with prices at the same disparity on test rows."""
    every = [row["way"] for fits in results["fits"].values() for row in fits]
    rows = []
    for way in dict.fromkeys(every):
        own = _asked(results, way)
        fits = [row for _, _, rows in own for row in rows]
        drifts = [_mean(rows, "disparity") - limit for _, limit, rows in own]
        kept = f"{_mean(fits, 'kept'):.0%}"
        ahead = mean_lead(_leads(results, way))
        means = [
            f"{round(np.mean(drifts), 3) + 0:.3f}",
            "-" if way == "prices" else f"{100 * ahead.mean:+.2f} ({100 * ahead.error:.2f})",
        ]
        seconds = float(np.median([row["cpu"] for row in fits]))
        rows.append([worded(way), len(fits), kept, *means, seconds])
    columns = [
        "method",
        "fits",
        SATISFIED,
        "test disparity minus limit (mean)",
        f"accuracy of {OURS} minus that of the method, points (standard error)",
        "CPU seconds (median)",
    ]
    return Table("All cases", columns, rows)


def _asked(results: dict[str, Any], way: str) -> list[tuple[str, float, list[dict[str, Any]]]]:
    """Return data and constraint, limit, and the fits of a method, where its limit is compared."""
    found = []
    for case, fits in results["fits"].items():
        (name, rule, limit), mine = case.split(" | "), [row for row in fits if row["way"] == way]
        if mine and float(limit) in LIMITS[rule]:
            found.append((f"{name} | {rule}", float(limit), mine))
    return found


def _mean(rows: list[dict[str, Any]], key: str) -> float:
    return float(np.mean([row[key] for row in rows]))


def _leads(results: dict[str, Any], way: str) -> list[float]:
    """Return the accuracy of prices minus that of a method at its test disparity, by case."""
    return [
        _of_prices(results, about, _mean(rows, "disparity")) - _mean(rows, "accuracy")
        for about, _, rows in _asked(results, way)
    ]


def _of_prices(results: dict[str, Any], about: str, disparity: float) -> float:
    """Return the accuracy of prices at a disparity, between its neighbours."""
    points = [
        [np.mean([row[k] for row in fits if row["way"] == "prices"]) for k in FIGURES]
        for case, fits in results["fits"].items()
        if case.startswith(f"{about} | ")
    ]
    _, gaps, accuracies, _ = np.array(sorted(points, key=lambda point: point[1])).T
    return float(np.interp(disparity, gaps, np.maximum.accumulate(accuracies)))


OURS = "FairDecisionClassifier"
SATISFIED = "limit satisfied on training rows"
FIGURES = {
    "train": "training disparity",
    "disparity": "test disparity",
    "accuracy": "test accuracy",
    "cpu": "CPU seconds",
}
