"""How much slower each estimator becomes on a busy machine, beside its twin of scikit-learn.

As many processes as there are processors, two at least, do nothing but spin. Each estimator and its
twin are fitted in turn with the default number of threads, first on the idle machine and then
beside the spinning processes; a slowdown is the ratio of the two wall times. The machine has to be
idle otherwise.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture

from benchmarks._drawing import pairs_of_dots, small
from benchmarks.harness import THREAD_VARIABLES, Table, in_new_process
from benchmarks.threads import points
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.cluster import FairAssignment, FairKMeans, FairSpectralClustering, ParetoFairKMeans
from skfair.datasets import make_ranking_queries
from skfair.ranking import FairRanker
from skfair.regression import ConstrainedERMRegressor

N_SPINNING = max(2, os.cpu_count() or 2)
ROUNDS = 3
Fit = Callable[[], Any]


def clusterings(n: int) -> dict[str, tuple[Fit, Fit]]:
    X, groups = points(n, 10, np.float32)
    few, few_groups = points(n // 40, 10, np.float64)
    given, few_given = {"sensitive_features": groups}, {"sensitive_features": few_groups}
    kmeans = KMeans(20, n_init=1, random_state=0)
    mixture = GaussianMixture(5, random_state=0, max_iter=20, tol=0)
    some, some_given = X[: n // 8], {"sensitive_features": groups[: n // 8]}
    spectral = SpectralClustering(10, gamma=0.01, random_state=0)
    return {
        "FairKMeans / KMeans": (
            lambda: FairKMeans(20, random_state=0).fit(X, **given),
            lambda: kmeans.fit(X),
        ),
        "ParetoFairKMeans / KMeans": (
            lambda: ParetoFairKMeans(10, balances=5, n_init=1, random_state=0).fit(
                few, **few_given
            ),
            lambda: kmeans.fit(X),
        ),
        "FairAssignment(GaussianMixture) / GaussianMixture": (
            lambda: FairAssignment(mixture).fit(some, **some_given),
            lambda: mixture.fit(some),
        ),
        "FairSpectralClustering / SpectralClustering": (
            lambda: FairSpectralClustering(10, gamma=0.01, random_state=0).fit(few, **few_given),
            lambda: spectral.fit(few),
        ),
    }


def models(n: int) -> dict[str, tuple[Fit, Fit]]:
    rng = np.random.default_rng(7002)
    groups, X = rng.integers(3, size=n), rng.standard_normal((n, 30))
    X[:, 0] += groups / 3
    score = X[:, :5].sum(axis=1) + rng.logistic(size=n)
    y, given = (score > 0).astype(int), {"sensitive_features": groups}
    classes = np.digitize(score, (-2, 2))
    logistic = LogisticRegression()
    rows, relevance, query_id, sides = make_ranking_queries(100 * (n // 400), random_state=0)
    return {
        "ConstrainedERMClassifier / LogisticRegression": (
            lambda: ConstrainedERMClassifier().fit(X, y, **given),
            lambda: logistic.fit(X, y),
        ),
        "FairDecisionClassifier / LogisticRegression": (
            lambda: FairDecisionClassifier(logistic).fit(X, y, **given),
            lambda: logistic.fit(X, y),
        ),
        "FairDecisionClassifier, 3 classes / LogisticRegression": (
            lambda: FairDecisionClassifier(logistic, "equalized_odds", group_aware=False).fit(
                X, classes, **given
            ),
            lambda: logistic.fit(X, classes),
        ),
        "PartialParityClassifier / LogisticRegression": (
            lambda: PartialParityClassifier(group_aware=True).fit(X, y, **given),
            lambda: logistic.fit(X, y),
        ),
        "PartialParityCalibrator / LogisticRegression": (
            lambda: PartialParityCalibrator().fit(X, y, **given),
            lambda: logistic.fit(X, y),
        ),
        "FairRanker / LogisticRegression": (
            lambda: FairRanker(random_state=0).fit(
                rows, relevance, query_id, sensitive_features=sides
            ),
            lambda: logistic.fit(X, y),
        ),
        "ConstrainedERMRegressor / Ridge": (
            lambda: ConstrainedERMRegressor().fit(X, score, **given),
            lambda: Ridge().fit(X, score),
        ),
    }


@contextmanager
def spinning() -> Iterator[None]:
    """Let processes use up the processors meanwhile."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(N_SPINNING)]
    try:
        time.sleep(0.2)
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def rounds(pair: tuple[Fit, Fit], least: float) -> list[float]:
    """Return the median wall times of a fit and its twin, in turn; short ones are repeated."""
    times: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for fit, seconds in zip(pair, times, strict=True):
            n_fits, start = 0, time.perf_counter()
            while time.perf_counter() - start < least or not n_fits:
                fit()
                n_fits += 1
            seconds.append((time.perf_counter() - start) / n_fits)
    return [median(seconds) for seconds in times]


def run(quick: bool) -> dict[str, Any]:
    """Time all pairs, idle and busy, in a process with the default number of threads."""
    n, least = (4000, 0.0) if quick else (100_000, 0.15)
    found = {}
    for name, pair in {**clusterings(n), **models(n // 4)}.items():
        for fit in pair:
            fit()  # loads compiled code
        idle = rounds(pair, least)
        with spinning():
            busy = rounds(pair, least)
        found[name] = {"idle": idle, "busy": busy}
    return found


def main(*, quick: bool = False) -> dict[str, Any]:
    held = {name: os.environ.pop(name) for name in THREAD_VARIABLES if name in os.environ}
    try:
        found: dict[str, Any] = in_new_process(run, quick=quick)
    finally:
        os.environ.update(held)
    return found


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show the wall time of each fit on an idle and a busy machine, and the slowdowns."""
    lines = []
    for name, row in results.items():
        ours, twin = (busy / idle for busy, idle in zip(row["busy"], row["idle"], strict=True))
        shown = [f"{row['idle'][0]:.3f}", f"{ours:.2f}", f"{twin:.2f}", f"{ours / twin:.2f}"]
        lines.append([name, *shown])
    columns = ["estimator / twin", "idle, s", "slowdown", "of the twin", "ratio"]
    return {"slowdown": Table("slowdown beside spinning processes", columns, lines)}


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw both slowdowns of each estimator."""
    rows = {
        name.split(" / ")[0]: [b / i for b, i in zip(row["busy"], row["idle"], strict=True)]
        for name, row in results.items()
    }
    figure, (axes,) = small(height=0.5 + 0.27 * len(rows))
    pairs_of_dots(axes, rows, ["skfair", "scikit-learn"])
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("Times as long beside busy processes (smaller is better)")
    return {"picture": figure}
