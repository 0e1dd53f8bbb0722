"""The variational method: its whole front on the data of the fair k-means paper."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus

from benchmarks.harness import data_folder
from skfair.cluster import FairKMeans
from skfair.datasets import load_local
from skfair.metrics import balance_score, hypervolume, kmeans_cost
from skfair.papers import Variational

WEIGHTS = (0.001, 0.01, 0.03, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0)


def fair_clustering_sample(name: str, n_rows: int = 5000) -> tuple[Any, Any]:
    """Return rows and groups of safairkm_adult or safairkm_bank, prepared as in the paper's code.

    Columns standardised on all rows, rows divided by their length, then a subsample.
    """
    data = load_local(f"safairkm_{name}")
    X = data.data.to_numpy(np.float64)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    rows = np.random.RandomState(1).choice(len(X), n_rows, replace=False)
    codes = np.unique(data.sensitive_features.iloc[:, 0].astype(str), return_inverse=True)[1]
    return np.ascontiguousarray(X[rows]), codes[rows].astype(np.int64)


def figures_of(X: Any, codes: Any, labels: Any) -> dict[str, float]:
    """Return the mean squared distance to the clusters' means, and the smallest balance."""
    relative = balance_score(labels, sensitive_features=codes, relative=True)
    return {"cost": kmeans_cost(X, labels, mean=True), "relative balance": relative}


def variational_front(
    X: Any,
    codes: Any,
    n_clusters: int,
    *,
    weights: Sequence[float] = WEIGHTS,
    seed: int = 1,
) -> list[dict[str, Any]]:
    """Return weight, cost, relative balance, labels, CPU seconds and counts for each weight.

    All runs start from the same k-means++ centres, as in the script of the method's authors.
    """
    centers = kmeans_plusplus(X, n_clusters, random_state=seed)[0]
    points = []
    for weight in weights:
        start = time.process_time()
        model = FairKMeans(n_clusters, min_balance=None, solver=Variational(weight), init=centers)
        model.fit(X, sensitive_features=codes)
        points.append(
            {
                "weight": weight,
                "cpu": time.process_time() - start,
                **figures_of(X, codes, model.labels_),
                "n_iter": model.n_iter_,
                "n_updates": int(model.history_["n_updates"].sum()),
                "status": model.status_,
                "labels": model.labels_,
            }
        )
    return points


def main(*, quick: bool = False) -> dict[str, Any]:
    results: dict[str, Any] = {}
    if data_folder() is None:
        return results
    settings = [("adult", 10), ("bank", 10), ("adult", 5), ("bank", 5)]
    for name, n_clusters in settings[2:3] if quick else settings:
        X, codes = fair_clustering_sample(name)
        best = KMeans(n_clusters, n_init=10, random_state=0).fit(X).inertia_ / len(X)
        runs = []
        for seed in (1,) if quick else (1, 2, 3):
            points = variational_front(X, codes, n_clusters, seed=seed)
            costs, balances = (
                [point[key] for point in points] for key in ("cost", "relative balance")
            )
            for point in points:
                del point["labels"]
                point["price"] = point["cost"] / best - 1
            area = hypervolume(
                costs,
                balances,
                ref_cost=2 * best,
                ref_balance=0.0,
                ideal_cost=best,
                ideal_balance=1.0,
            )
            runs.append({"seed": seed, "hypervolume to twice the cost": area, "points": points})
        results[f"{name} K={n_clusters}"] = runs
        areas = ", ".join(f"{run['hypervolume to twice the cost']:.3f}" for run in runs)
        cpu = np.median([sum(point["cpu"] for point in run["points"]) for run in runs])
        print(f"   {name} K={n_clusters}: hypervolume {areas}; a front in {cpu:.2f} s CPU")
        for i, weight in enumerate(WEIGHTS):
            prices, balances, seconds = (
                np.median([run["points"][i][key] for run in runs])
                for key in ("price", "relative balance", "cpu")
            )
            print(
                f"     weight {weight:<6} {100 * prices:6.2f} % dearer, {balances:.3f} of the "
                f"data's balance, {seconds:.2f} s"
            )
    return results


def canary() -> list[dict[str, Any]]:
    """Return the results of a small cell."""
    points = variational_front(*fair_clustering_sample("adult", 2000), 5, weights=WEIGHTS[::4])
    return [{key: point[key] for key in ("cost", "relative balance")} for point in points]
