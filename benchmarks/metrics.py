"""Group metrics of a million rows: CPU seconds, and the ratio to fairlearn's same metric."""

from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.harness import alternate, lacks
from skfair import metrics
from skfair.groups.encoding import encode_groups

OF_LABELS = ("demographic_parity_difference", "equalized_odds_difference")
INTERVAL: dict[str, Any] = {"interval": (0.05, 0.3)}
OF_SCORES = {
    "partial_statistical_parity_gap": INTERVAL,
    "partial_demographic_parity_gap": INTERVAL,
    "partial_group_auc_gap": INTERVAL,
    "partial_equal_opportunity_gap": INTERVAL,
    "wasserstein_gap": {},
    "intra_group_pairwise_gap": {},
}


def main(*, quick: bool = False) -> dict[str, Any]:
    n, rounds = (30_000, 3) if quick else (1_000_000, 5)
    rng = np.random.default_rng(12345)
    groups, y, p = rng.integers(0, 10, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    scores = rng.normal(size=n) + 0.05 * groups
    names = np.array([f"group number {i}" for i in range(10)])[groups]
    results: dict[str, Any] = {"n": n}

    print(f"   encoding {n} rows, 10 levels")
    kinds = {"integers": groups, "strings": names, "objects": names.astype(object)}
    for kind, values in kinds.items():
        cpu = alternate({"ours": lambda v=values: encode_groups(v)}, rounds)["ours"]["cpu"]
        results[f"encode {kind}"] = cpu
        print(f"     {kind:<28} {cpu:8.4f} s")

    print("   metrics of labels, against fairlearn")
    for name in () if lacks("fairlearn") else OF_LABELS:
        ours, theirs = getattr(metrics, name), getattr(import_module("fairlearn.metrics"), name)
        table = alternate(
            {
                "ours": lambda f=ours: f(y, p, sensitive_features=groups),
                "fairlearn": lambda f=theirs: f(y, p, sensitive_features=groups),
            },
            min(rounds, 3),
        )
        ratio = table["fairlearn"]["cpu"] / table["ours"]["cpu"]
        results[name] = {**{k: v["cpu"] for k, v in table.items()}, "ratio": ratio}
        print(
            f"     {name:<32} {table['ours']['cpu']:8.4f} s   fairlearn "
            f"{table['fairlearn']['cpu']:7.3f} s   {ratio:5.0f}x"
        )

    print("   metrics of scores")
    for name, options in OF_SCORES.items():
        metric = getattr(metrics, name)
        cpu = alternate(
            {"ours": lambda f=metric, o=options: f(y, scores, sensitive_features=groups, **o)},
            rounds,
        )["ours"]["cpu"]
        results[name] = cpu
        print(f"     {name:<32} {cpu:8.4f} s")
    return results


def canary() -> dict[str, float]:
    """Return the results of a small cell."""
    rng = np.random.default_rng(12345)
    groups, y, p = rng.integers(0, 10, 3000), rng.integers(0, 2, 3000), rng.integers(0, 2, 3000)
    scores = rng.normal(size=3000) + 0.05 * groups
    found = {name: getattr(metrics, name)(y, p, sensitive_features=groups) for name in OF_LABELS}
    for name, options in OF_SCORES.items():
        found[name] = getattr(metrics, name)(y, scores, sensitive_features=groups, **options)
    return {name: float(value) for name, value in found.items()}
