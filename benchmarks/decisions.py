"""Fair decisions: accuracy at equal disparity on new rows, against other ways, on the same scores.

Every way is run for several limits and splits. Methods are compared by curves: mean accuracy on
test rows by mean disparity on test rows. At a given disparity a way has the accuracy of its curve
there, so that one that keeps its limit less well on new rows gains nothing by it.
"""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from benchmarks._decision_peers import (
    calibrated,
    linear_programme,
    ours,
    oxonfair,
    reduction,
    reweighted,
    threshold_optimizer,
)
from benchmarks._decision_scores import SEEDS, measured, people, scored, split
from benchmarks._drawing import mark, rows_of_dots, small
from benchmarks._equal_disparity import Cell, Point, Run, accuracy_at, in_points, lead
from benchmarks._verdicts import Tally, tally
from benchmarks.harness import Lead, Table, data_folder, kept, lacks, quiet, timed
from skfair import Sensitive
from skfair.classification import FairDecisionClassifier
from skfair.metrics import demographic_parity_difference

LIMITS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15)
TARGETS = {
    "demographic_parity": (0.1, 0.05, 0.02),
    "equal_opportunity": (0.1, 0.05, 0.02),
    "equalized_odds": (0.1, 0.05, 0.03),
}
OURS = ("with the group", "without the group")
MIXED = "with the group (mixed thresholds)"  # differs under equalized odds only
AWARE = {
    "with the group": ours(True),
    MIXED: ours("mixed"),
    "ThresholdOptimizer (random)": threshold_optimizer,
    "OxonFair, group": oxonfair(True),
    "linear programme, group": linear_programme(True),
    "PartialParityCalibrator": calibrated,
}
BLIND = {
    "without the group": ours(False),
    "OxonFair, no group": oxonfair(False),
    "linear programme, no group": linear_programme(False),
}
NEEDS = {way: ("oxonfair",) for way in (*AWARE, *BLIND) if way.startswith("OxonFair")}
NEEDS["ThresholdOptimizer (random)"] = ("fairlearn",)
STRENGTHS = (0.5, 1.0, 1.5, 2.0)
# The smallest data set needs the most splits.
N_SPLITS = {"compas": 10, "loans": 4, "adult": 3, "bank": 3}
# ExponentiatedGradient fits tens of boosters for each limit: it runs on the first splits only.
N_REDUCED = {"loans": 1, "compas": 2}


def points(name: str, seed: int, *, quick: bool) -> dict[str, list[Point]]:
    """Return what each way gives on a split, by "way | constraint | limit"."""
    train, test = scored(name, seed, 3000 if quick else None)
    limits = (0.02, 0.1) if quick else LIMITS
    found: dict[str, list[Point]] = {}
    for way, fit in {**AWARE, **BLIND}.items():
        if lacks(*NEEDS.get(way, ())):
            continue
        for rule in ("equalized_odds",) if way == MIXED else TARGETS:
            is_exact = fit is threshold_optimizer and rule == "equalized_odds"
            for limit in (0.0,) if is_exact else limits:
                cpu, predict = timed(lambda f=fit, r=rule, v=limit: f(train, r, v))
                chance = np.asarray(predict(test), dtype=float)
                found[f"{way} | {rule} | {limit}"] = [(*measured(rule, chance, test), cpu)]
    refitted(found, name, seed, test, quick=quick)
    return found


def refitted(
    found: dict[str, list[Point]], name: str, seed: int, test: Any, *, quick: bool
) -> None:
    """Add the ways that fit the booster again, which take long."""
    X, y, groups = people(name)
    rows, new, _ = split(name, seed, 3000 if quick else None)
    for strength in STRENGTHS[:1] if quick else STRENGTHS:
        cpu, model = timed(lambda s=strength: reweighted(X[rows], y[rows], groups[rows], s, seed))
        chance = model.predict(X[new]).astype(float)
        for rule in TARGETS:
            found[f"weights | {rule} | {strength}"] = [(*measured(rule, chance, test), cpu)]


def reduced(name: str, seed: int, rule: str) -> dict[str, list[Point]]:
    """Return what ExponentiatedGradient gives on a split at the limits that are shown."""
    X, y, groups = people(name)
    rows, new, _ = split(name, seed)
    test = scored(name, seed)[1]
    found = {}
    for limit in TARGETS[rule]:
        cpu, predict = timed(
            lambda v=limit: reduction(X[rows], y[rows], groups[rows], rule, v, seed)
        )
        key = f"ExponentiatedGradient (random) | {rule} | {limit}"
        found[key] = [(*measured(rule, predict(X[new]), test), cpu)]
    return found


def bank_job(seed: int, aware: bool, *, quick: bool) -> dict[str, float]:
    """Limit two attributes of Adult at once, sex to .05 and age bands to .08; return figures."""
    X, y, sex = people("adult")
    age = np.digitize(X[:, 0], [30, 45])
    train, test, _ = split("adult", seed, 4000 if quick else None)
    both = pd.DataFrame({"sex": sex, "age": np.array(["young", "middle", "old"])[age]})
    limits = {"sex": 0.05, "age": 0.08}
    model = FairDecisionClassifier(
        HistGradientBoostingClassifier(random_state=seed),
        max_disparity=limits,
        sensitive=Sensitive(intersectional=False),
        group_aware=aware,
        random_state=0,
    )
    model.fit(X[train], y[train], sensitive_features=both.iloc[train])
    given = {"sensitive_features": both.iloc[test]} if aware else {}
    found = model.predict(X[test], **given)
    own = model.train_predictions_
    return {
        "accuracy": float(np.mean(found == y[test])),
        **{
            f"{part} {name}": float(
                demographic_parity_difference(y[rows], p, sensitive_features=both[name].iloc[rows])
            )
            for part, rows, p in (("train", train, own), ("test", test, found))
            for name in limits
        },
    }


def main(*, quick: bool = False) -> dict[str, Any]:
    names = ("loans",) if quick else ("loans", "compas", "adult", "bank")
    if data_folder() is None:
        names = ("loans",)
    runs: dict[str, Run] = {}
    with quiet():
        for name in names:
            own = runs.setdefault(name, {})
            for seed in SEEDS[: 1 if quick else N_SPLITS[name]]:
                pieces = {f"decisions-{name}-{seed}": partial(points, name, seed, quick=quick)}
                if seed in SEEDS[: N_REDUCED.get(name, 0)] and not quick and not lacks("fairlearn"):
                    pieces |= {
                        f"decisions-reduced-{name}-{seed}-{rule}": partial(
                            reduced, name, seed, rule
                        )
                        for rule in TARGETS
                    }
                for piece, measure in pieces.items():
                    for key, values in kept(piece, measure, quick=quick).items():
                        own.setdefault(key, []).extend(values)
                print(f"   {name} {seed} done", flush=True)
        jobs: dict[str, list[dict[str, float]]] = {}
        if data_folder() is not None:
            for name, aware in zip(OURS, (True, False), strict=True):
                for seed in SEEDS[: 1 if quick else 3]:
                    measure = partial(bank_job, seed, aware, quick=quick)
                    found = kept(f"decisions-job-{aware}-{seed}", measure, quick=quick)
                    jobs.setdefault(name, []).append(found)
    return {"runs": runs, "jobs": jobs}


def canary() -> dict[str, list[float]]:
    """Return the results of a small cell."""
    train, test = scored("loans", SEEDS[0], None)
    found = {}
    for way in (*OURS, MIXED):
        for rule in ("equalized_odds",) if way == MIXED else TARGETS:
            chance = {**AWARE, **BLIND}[way](train, rule, 0.05)(test)
            found[f"{way} | {rule} | 0.05"] = [*measured(rule, np.asarray(chance, float), test)]
    return found


def ways(run: Run) -> list[str]:
    """Return the names of the ways that were run, in order."""
    return list(dict.fromkeys(key.split(" | ")[0] for key in run))


def cells(results: dict[str, Any]) -> list[Cell]:
    """Return every data set, constraint and disparity."""
    return [
        (name, rule, target)
        for name in results["runs"]
        for rule, targets in TARGETS.items()
        for target in targets
    ]


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show the accuracies at equal disparity, how far behind the best, and CPU seconds."""
    every = list(dict.fromkeys(way for run in results["runs"].values() for way in ways(run)))
    aware = [way for way in every if way in AWARE]
    shown = {"accuracy": aware, "blind": [way for way in every if way not in AWARE]}
    title = "Accuracy on test rows at equal mean disparity on test rows, means over splits"
    return {
        **{
            slug: Table(
                title,
                ["data (splits), constraint", "test disparity", *map(_heading, own)],
                [
                    [_about(results, name, rule), target, *_row(run, own, rule, target)]
                    for name, rule, target in cells(results)
                    for run in [results["runs"][name]]
                ],
            )
            for slug, own in shown.items()
        },
        "summary": Table(
            "Leads of skfair, and CPU seconds per limit without the time for the scores",
            [
                "method",
                "cells",
                "mean lead of skfair, points (standard error)",
                "skfair ahead",
                "/ behind",
                "furthest behind, points (standard error)",
                "CPU seconds per limit (median)",
            ],
            _summary(results, every),
        ),
        "job": _jobs(results["jobs"]),
    }


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw a dot for each cell: by how much ours is more accurate at equal disparity."""
    rows = {}
    for way in dict.fromkeys(way for run in results["runs"].values() for way in ways(run)):
        own = OURS[0] if way in AWARE else OURS[1]
        if way not in OURS:
            leads = [
                100 * (accuracy_at(run, own, rule, target) - accuracy_at(run, way, rule, target))
                for name, rule, target in cells(results)
                if way in ways(run := results["runs"][name])
            ]
            rows[way] = [value for value in leads if np.isfinite(value)]
    figure, (axes,) = small(height=0.6 + 0.26 * len(rows))
    rows_of_dots(axes, rows)
    mark(axes, 0, "as accurate as skfair")
    axes.set_xlabel("Points by which skfair is more accurate at equal disparity", loc="right")
    return {"picture": figure}


def _jobs(jobs: dict[str, list[dict[str, float]]]) -> Table:
    keys = ["accuracy", "train sex", "train age", "test sex", "test age"]
    rows = [
        [name, *(f"{np.mean([row[key] for row in found]):.3f}" for key in keys)]
        for name, found in jobs.items()
    ]
    columns = ["decisions of skfair", "accuracy on test rows"]
    columns += [
        f"disparity by {attribute}, {part} rows"
        for part in ("training", "test")
        for attribute in ("sex", "age band")
    ]
    return Table("Adult, sex within 0.05 and age band within 0.08 at once", columns, rows)


def _heading(way: str) -> str:
    """Return a heading; mixed thresholds stand beside one threshold for each group."""
    if way == MIXED:
        return "/ mixed thresholds"
    return "skfair" if way in OURS else way.partition(",")[0]


def _about(results: dict[str, Any], name: str, rule: str) -> str:
    n_splits = len(next(iter(results["runs"][name].values())))
    return f"{name} ({n_splits}), {rule.replace('_', ' ')}"


def _row(run: Run, every: list[str], rule: str, target: float) -> list[Any]:
    found = [accuracy_at(run, way, rule, target) for way in every]
    return ["-" if np.isnan(value) else f"{value:.3f}" for value in found]


def _summary(results: dict[str, Any], every: list[str]) -> list[list[Any]]:
    """Compare each way with ours that knows as much: with the group, or without."""
    rows = []
    for way in every:
        some = _cells_of(results, way)
        own = OURS[0] if way in AWARE else OURS[1]
        leads = [lead(results["runs"], own, way, [cell]) for cell in some]
        leads = [one for one in leads if np.isfinite(one.mean)]
        cpu = [
            np.mean([values[k][2] for values in limits])
            for run in results["runs"].values()
            for rule in TARGETS
            for limits in [[v for key, v in run.items() if key.startswith(f"{way} | {rule} |")]]
            for k in range(len(limits[0]) if limits else 0)
        ]
        if leads:
            worst = min(leads)
            counted = tally(leads)
            shown = [in_points(lead(results["runs"], own, way, some)), *counted[:2]]
            shown.append(in_points(worst) if worst.mean < 0 else "-")
            name, shown = (f"skfair, {way}", ["-"] * 4) if way == own else (way, shown)
            name = "skfair, mixed thresholds" if way == MIXED else name
            rows.append([name, len(leads), *shown, np.median(cpu)])
    return rows


def _cells_of(results: dict[str, Any], way: str) -> list[Cell]:
    return [cell for cell in cells(results) if way in ways(results["runs"][cell[0]])]


def numbers(results: dict[str, Any]) -> dict[str, Any]:
    """Return the leads that the page and the front page quote, and in how many cells.

    A lead is the mean of the cells; a tally counts the cells beyond two standard errors.
    """
    aware, blind = OURS

    def against(own: str, way: str, **chosen: Any) -> tuple[Lead, Tally]:
        rules, data = chosen.get("rules", TARGETS), chosen.get("data", results["runs"])
        some = [c for c in _cells_of(results, way) if c[0] in data and c[1] in rules]
        leads = [lead(results["runs"], own, way, [cell]) for cell in some]
        counted = tally([one for one in leads if np.isfinite(one.mean)])
        return lead(results["runs"], own, way, some), counted

    threshold, relaxed = "ThresholdOptimizer (random)", ("demographic_parity", "equal_opportunity")
    hidden = "OxonFair, no group"
    compared = {
        "threshold": against(aware, threshold, rules=relaxed),
        "odds": against(aware, threshold, rules=("equalized_odds",)),
        "oxonfair": against(aware, "OxonFair, group"),
    }
    seconds = {row[0]: row[-1] for row in tables(results)["summary"].rows}
    return {
        **{name: found for name, (found, _) in compared.items()},
        **{f"{name}_cells": counted for name, (_, counted) in compared.items()},
        "blind_cells": against(blind, hidden)[1],
        "compas": against(blind, hidden, data=("compas",))[0],
        "elsewhere": against(blind, hidden, data={*results["runs"]} - {"compas"})[0],
        "mixed_odds": against(MIXED, threshold, rules=("equalized_odds",))[0],
        "mixed_gain": against(MIXED, aware, rules=("equalized_odds",))[0],
        "oxonfair_seconds": seconds[f"skfair, {aware}"] / seconds["OxonFair, group"],
        "oxonfair_seconds_blind": seconds[f"skfair, {blind}"] / seconds[hidden],
    }
