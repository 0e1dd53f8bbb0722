"""Whether fair decisions keep their limits on the training rows: hundreds of fits, counted by hand.

Eight data sets, four of two classes and two groups, two of several groups, two of three classes.
Every constraint is kept with and without the group at prediction; so are floors, budgets, and
limits for two attributes that overlap. Disparities are counted here, not by the code that enforced
them.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks._decision_scores import SEEDS, Part, people, scored, split, stored
from benchmarks._drawing import mark, rows_of_dots, small
from benchmarks.harness import Table, data_folder, kept, quiet, timed
from skfair import Sensitive
from skfair.classification import FairDecisionClassifier

NAMES = (
    "loans",
    "compas",
    "adult",
    "bank",
    "adult-race",
    "bank-marital",
    "compas-bands",
    "adult-hours",
)
# Small, as only the promise is measured.
N_ROWS, N_TREES = 4000, 25
# Constraint, limit, and further arguments, for two classes; with more, the first five.
CASES: tuple[tuple[str, float, dict[str, Any]], ...] = (
    ("demographic_parity", 0.05, {}),
    ("demographic_parity", 0.02, {}),
    ("equal_opportunity", 0.05, {}),
    ("equalized_odds", 0.1, {}),
    ("equalized_odds", 0.05, {}),
    ("demographic_parity", 0.1, {"min_rate": 0.05}),
    ("equal_opportunity", 0.1, {"min_rate": 0.3}),
    ("demographic_parity", 0.05, {"selection_rate": (0.1, 0.15)}),
)


def gap(rule: str, y: Any, selected: Any, groups: Any, label: int) -> float:
    """Return the largest difference of rates of one class against the rest, counted."""
    inside = {
        "demographic_parity": [np.ones(y.size, bool)],
        "equal_opportunity": [y == label],
        "equalized_odds": [y == label, y != label],
    }[rule]
    names = np.unique(groups)
    rates = [[selected[part & (groups == g)] for g in names] for part in inside]
    means = [[one.mean() for one in part if one.size] for part in rates]
    return max((max(part) - min(part) for part in means if part), default=0.0)


def excess(rule: str, limit: float, options: dict[str, Any], y: Any, found: Any, g: Any) -> float:
    """Return by how much the worst limit is exceeded."""
    classes = np.unique(y)
    labels = classes[1:] if classes.size == 2 else classes
    over = [gap(rule, y, found == k, g, k) - limit for k in labels]
    positive = found == classes[-1]
    if "min_rate" in options:
        counted = y == classes[-1] if rule == "equal_opportunity" else np.ones(y.size, bool)
        rates = [positive[counted & (g == one)].mean() for one in np.unique(g)]
        over.append(options["min_rate"] - min(rates))
    if "selection_rate" in options:
        low, high = options["selection_rate"]
        over += [low - positive.mean(), positive.mean() - high]
    return float(max(over))


def fits(train: Part) -> list[dict[str, Any]]:
    """Fit every case on scored rows, with the group and without."""
    classes, groups = stored(train)
    n_cases = len(CASES) if train.chances.shape[1] == 2 else 5
    rows = []
    for rule, limit, options in CASES[:n_cases]:
        for aware in (False, True, *(("mixed",) if rule == "equalized_odds" else ())):
            model = FairDecisionClassifier(
                classes, rule, limit, group_aware=aware, group_estimator=groups, **options
            )
            cpu, _ = timed(
                lambda m=model: m.fit(train.table(), train.y, sensitive_features=train.groups)
            )
            found = model.train_predictions_
            rows.append(
                {
                    "excess": excess(rule, limit, options, train.y, found, train.groups),
                    "says": model.status_,
                    "cpu": cpu,
                }
            )
    return rows


def overlapping(name: str, seed: int) -> list[dict[str, Any]]:
    """Fit a linear classifier with a limit for each of two attributes that overlap."""
    X, y, groups = people(name)
    train, _, _ = split(name, seed, N_ROWS)
    second = np.where(X[train, 0] > np.nanmedian(X[train, 0]), "high", "low")
    both = pd.DataFrame({"first": groups[train], "second": second})
    limits = {"first": 0.05, "second": 0.08}
    rows = []
    for aware in (False, True):
        inner = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=200))
        model = FairDecisionClassifier(
            inner,
            max_disparity=limits,
            sensitive=Sensitive(intersectional=False),
            group_aware=aware,
            cv=3,
        )
        cpu, _ = timed(lambda m=model, t=train: m.fit(X[t], y[t], sensitive_features=both))
        over = [
            gap("demographic_parity", y[train], model.train_predictions_ == k, both[column], k)
            - limit
            for column, limit in limits.items()
            for k in (np.unique(y)[1:] if len(np.unique(y)) == 2 else np.unique(y))
        ]
        rows.append({"excess": float(max(over)), "says": model.status_, "cpu": cpu})
    return rows


def piece(name: str, seed: int, *, quick: bool) -> dict[str, list[dict[str, Any]]]:
    """Return all fits of a data set and split."""
    train, _ = scored(name, seed, 1500 if quick else N_ROWS, N_TREES)
    return {"rules": fits(train), "overlapping": overlapping(name, seed)}


def main(*, quick: bool = False) -> dict[str, Any]:
    names = NAMES if data_folder() is not None else ("loans",)
    results: dict[str, Any] = {}
    with quiet():
        for seed in SEEDS[: 1 if quick else 4]:
            for name in names:
                measure = partial(piece, name, seed, quick=quick)
                found = kept(f"decision_promise-{name}-{seed}", measure, quick=quick)
                for kind, rows in found.items():
                    results.setdefault(name, {}).setdefault(kind, []).extend(rows)
            print(f"   split {seed} done", flush=True)
    return results


def canary() -> dict[str, list[dict[str, Any]]]:
    """Return which fits of a split break a limit, and what they say."""
    return {
        kind: [{"broken": row["excess"] > 1e-9, "says": row["says"]} for row in rows]
        for kind, rows in piece("loans", SEEDS[0], quick=False).items()
    }


KINDS = {"rules": "one attribute", "overlapping": "two attributes"}


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show how many fits satisfied all limits, as counted and as the fits say."""
    rows = []
    for name, kinds in results.items():
        for kind, found in kinds.items():
            kept = sum(row["excess"] <= 1e-9 for row in found)
            said = sum(row["says"] == "converged" for row in found)
            worst = max(row["excess"] for row in found)
            cpu = float(np.median([row["cpu"] for row in found]))
            rows.append([name, KINDS[kind], len(found), kept, said, f"{worst:.2g}", cpu])
    rows.append(["all", "", *(sum(row[k] for row in rows) for k in (2, 3, 4)), "", ""])
    columns = [
        "data",
        "limits on",
        "fits",
        "limits satisfied (counted)",
        "limits satisfied (by status_)",
        "largest disparity minus limit",
        "CPU seconds (median)",
    ]
    return {"promise": Table("Limits on the training rows", columns, rows)}


def numbers(results: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of fits and of satisfied limits, and a sentence on the violated ones."""
    fits = [row for kinds in results.values() for found in kinds.values() for row in found]
    violated = [row for row in fits if row["excess"] > 1e-9]
    n_said = sum(row["says"] != "converged" for row in violated)
    said = f"``status_`` reports {n_said} of the {len(violated)} violations."
    return {
        "fits": len(fits),
        "kept": len(fits) - len(violated),
        "said": said if violated else "So there was no violation that ``status_`` had to report.",
    }


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw a dot for each fit: its worst disparity minus the limit."""
    rows = {
        name: [100 * row["excess"] for found in kinds.values() for row in found]
        for name, kinds in results.items()
    }
    figure, (axes,) = small(height=0.6 + 0.26 * len(rows))
    rows_of_dots(axes, rows)
    mark(axes, 0, "limit")
    axes.set_xlabel("Largest disparity of a fit minus its limit, points, training rows")
    return {"picture": figure}
