"""Estimators of other libraries for the same tasks, on the same rows.

Each table sets peers against our estimator at equal disparity on the training rows; how, is told in
``_peer_tasks``. Disparities of all are measured by ``skfair.metrics``. A peer that cannot be
imported, or that fails, is left out with the reason.
"""

from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks._drawing import rows_of_dots, small
from benchmarks._peer_clusters import k_means, spectral
from benchmarks._peer_labels import LABEL_PEERS, LABELS, dense_split, labels, networks
from benchmarks._peer_tasks import FIGURES, SEEDS, run
from benchmarks._verdicts import Tally, tally_of_signs
from benchmarks.harness import Lead, Table, alternate, data_folder, mean_lead
from skfair import metrics

TITLES = {
    "labels": ("linear classifiers, groups not used to predict", "accuracy"),
    "aware": ("group-aware decisions; skfair: PartialParityClassifier", "accuracy"),
    "networks": ("networks, limit of 0.05 on mean probabilities", "accuracy"),
    "clusters": ("five clusters; skfair: FairKMeans", "cost above k-means, %"),
    "spectral": ("spectral clustering; skfair: FairSpectralClustering", "normalised cut"),
}
EQUAL = "the same disparity"
LIMITS = {EQUAL: "the same training disparity", "no rule": "no constraint"}
METRICS = (
    "demographic_parity_difference",
    "demographic_parity_ratio",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "equalized_odds_ratio",
)


def measures(quick: bool) -> dict[str, list[dict[str, Any]]]:
    """Compare metrics of the same name on random labels of five groups."""
    try:
        theirs = import_module("fairlearn.metrics")
    except Exception as error:  # as in _peer_tasks
        return {"metrics": [{"peer": "fairlearn", "skipped": f"cannot be imported: {error}"}]}
    n, rng = 20_000 if quick else 500_000, np.random.default_rng(SEEDS[0])
    groups = rng.integers(5, size=n)
    y = rng.integers(2, size=n)
    predicted = (rng.random(n) < 0.3 + 0.05 * groups + 0.2 * y).astype(int)
    rows = []
    for name in METRICS:
        calls = {
            kind: partial(getattr(library, name), y, predicted, sensitive_features=groups)
            for kind, library in (("theirs", theirs), ("ours", metrics))
        }
        times = alternate(calls, 1 if quick else 5)
        off = abs(calls["theirs"]() - calls["ours"]())
        ratio = times["theirs"]["cpu"] / times["ours"]["cpu"]
        rows.append({"peer": "fairlearn", "data": f"{n} rows", "what": name, "off": float(off)})
        rows[-1]["ratio"] = ratio
    print("   metrics: done", flush=True)
    return {"metrics": rows}


def main(*, quick: bool = False) -> dict[str, Any]:
    results: dict[str, Any] = measures(quick)
    if data_folder() is None:
        return results | {name: [{"skipped": "no data"}] for name in TITLES}
    for task in (labels, networks, k_means, spectral):
        results |= task(quick)
    return results


def canary() -> list[dict[str, Any]]:
    """Return a row of labels: skfair beside scikit-learn."""
    draws = [dense_split("compas", seed) for seed in SEEDS]
    rows = run(LABELS, LABEL_PEERS[0], "demographic_parity", draws, quick=True)
    return [{key: value for key, value in row.items() if key != "ratio"} for row in rows]


def tables(results: dict[str, Any]) -> dict[str, Table]:
    shown = {}
    for slug, (title, score) in TITLES.items():
        columns = ["library", "/ method", "data", "limit of skfair"]
        for figure in (score, "training disparity", "test disparity"):
            columns += [f"{figure}: method", "/ skfair"]
        rows = [cells(in_percent(row) if slug == "clusters" else row) for row in results[slug]]
        shown[slug] = Table(title, [*columns, "CPU time, method / skfair"], rows)
    columns = ["library", "metric", "data", "largest difference", "CPU time, library / skfair"]
    rows = []
    for row in results["metrics"]:
        last = [row["skipped"], ""] if "skipped" in row else [row["off"]]
        last += [row["ratio"]] if "ratio" in row else []
        rows.append([row["peer"], row.get("what", ""), row.get("data", ""), *last])
    return shown | {"metrics": Table("metrics of the same names", columns, rows)}


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw classifiers at equal training disparity: accuracy, disparity of test rows, seconds."""
    figure, axes = small(3, height=1.9, width=8.5)
    found: dict[str, list[dict[str, Any]]] = {}
    for row in [*results["labels"], *results["aware"]]:
        if row.get("ours") == EQUAL:
            found.setdefault(f"{row['peer']}: {row['what']}", []).append(row)

    def ahead(key: str) -> dict[str, list[float]]:
        return {
            name: [100 * (row[key][1] - row[key][0]) for row in rows]
            for name, rows in found.items()
        }

    rows_of_dots(axes[0], ahead("score"))
    rows_of_dots(axes[1], ahead("test"))
    rows_of_dots(axes[2], {name: [row["ratio"] for row in rows] for name, rows in found.items()})
    axes[2].set_xscale("log")
    labels = [
        "Accuracy: skfair minus\nthe other, points",
        "Test disparity: skfair\nminus the other",
    ]
    for panel, label in zip(axes, [*labels, "CPU seconds: the other\nover skfair"], strict=True):
        panel.set_xlabel(label)
        panel.axvline(float(panel is axes[2]), color="0.35", lw=0.9)
    for panel in axes[1:]:
        panel.set_yticklabels([])
    return {"picture": figure}


def numbers(results: dict[str, Any]) -> dict[str, Any]:
    """Return differences at equal training disparity, means over the cases, and CPU seconds."""
    both = [
        row for kind in ("labels", "aware") for row in results[kind] if row.get("ours") == EQUAL
    ]
    linear = [row for row in both if row["what"] != "ThresholdOptimizer"]
    thresholds = [row for row in both if row not in linear]
    reduced = [row for row in both if row["what"] == "ExponentiatedGradient"]

    def difference(rows: list[dict[str, Any]], key: str) -> Lead:
        return mean_lead([row[key][1] - row[key][0] for row in rows])

    def cases(rows: list[dict[str, Any]], key: str, sign: int = 1) -> Tally:
        return tally_of_signs([sign * (row[key][1] - row[key][0]) for row in rows], unit="cases")

    return {
        "accuracy_cases": cases(linear, "score"),
        "aware_cases": cases(thresholds, "score"),
        "test_cases": cases(both, "test", -1),  # ahead: a smaller disparity
        "accuracy": difference(linear, "score"),
        "aware": difference(thresholds, "score"),
        "reduction_test": difference(reduced, "test"),
        "cpu": float(np.median([row["ratio"] for row in both])),
    }


def in_percent(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of clusterings with costs above that of k-means, in place of ratios."""
    return row | {"score": [100 * (ratio - 1) for ratio in row.get("score") or []]}


def cells(row: dict[str, Any]) -> list[Any]:
    """Return a row of a table; what was skipped has its reason in place of figures."""
    start = [row.get("peer", ""), row.get("what", ""), row.get("data", "")]
    if "skipped" in row:
        return [*start, row["skipped"], *[""] * 7]
    shown = []
    for key in FIGURES:
        shown += row[key] or ["", ""]
    limit = LIMITS.get(row["ours"], row["ours"])
    return [*start, limit, *shown, float(row["ratio"])]
