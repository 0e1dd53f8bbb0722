"""The time that a second thread saves, and the share of each job that more threads cannot save.

Each job runs with one and with two threads in turn, and both results must be the same bits. The
*serial share* is the CPU time outside of passes over the rows that threads share, divided by all
CPU time: with so many threads as one likes, no job ends sooner than in this share of its time
(Amdahl). Passes that only read and write are limited by the memory, so that is measured too: the
speed of adding two long arrays. And two processors of a virtual machine may be threads of one, or
be lent to others: two processes that only count, one after the other and then at the same time, say
how much the machine gives at best.

Each job also runs with two threads while two other processes count. Its share of two processors is
then about the half, so it should take no more than two or three times as long as on one idle one.
Threads that wait for each other by spinning take up to a hundred times as long.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Process
from statistics import median
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.fair_kmeans import prepared
from benchmarks.harness import THREAD_VARIABLES, Table, data_folder, in_new_process
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.cluster import FairKMeans, FairSpectralClustering, ParetoFairKMeans
from skfair.metrics import equalized_odds_difference
from skfair.utils import threads

SEED = 7001
# Each job runs so often, with either number of threads, and short ones until they took so long:
# other programs of the machine make a single run three times as long now and then.
ROUNDS, SECONDS = 3, 3.0
YARDSTICKS = ("addition of two arrays", "two processes that count")  # not of skfair
Job = Callable[[], Any]


@contextmanager
def allowed(n_threads: int) -> Iterator[None]:
    """Let libraries and passes over the rows use so many threads."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(n_threads)))
    try:
        with threadpool_limits(n_threads):
            yield
    finally:
        os.environ.update({name: value for name, value in before.items() if value is not None})


def points(n: int, d: int, dtype: type) -> tuple[Any, Any]:
    """Return blobs, and three groups of which one is more frequent on one side."""
    X, _ = make_blobs(n, d, centers=20, cluster_std=3, random_state=SEED)
    rng = np.random.default_rng(SEED)
    groups = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    groups[(X[:, 0] > 0) & (rng.random(n) < 0.5)] = 0
    return X.astype(dtype), groups


def k_means(n: int) -> Job:
    X, groups = points(n, 10, np.float32)
    model = FairKMeans(20, random_state=0)
    return lambda: model.fit(X, sensitive_features=groups).labels_


def front(n: int) -> Job:
    X, groups = points(n, 10, np.float64)
    model = ParetoFairKMeans(10, balances=21, n_init=1, random_state=0)
    return lambda: model.fit(X, sensitive_features=groups).costs_


def adult_front(n: int) -> Job:
    X, groups = prepared("safairkm_adult", n)
    model = ParetoFairKMeans(10, random_state=0)
    return lambda: model.fit(X, sensitive_features=groups).costs_


def swap_front(n: int) -> Job:
    X, groups = points(n, 10, np.float64)
    model = ParetoFairKMeans(10, solver="swap", max_iter=40, random_state=0)
    return lambda: model.fit(X, sensitive_features=groups).costs_


def spectral(n: int) -> Job:
    X, groups = points(n, 10, np.float64)
    model = FairSpectralClustering(10, gamma=0.01, random_state=0)
    return lambda: model.fit(X, sensitive_features=groups).embedding_


def classifier(n: int, d: int = 50, dtype: type = np.float64) -> Job:
    rng = np.random.default_rng(SEED)
    groups, X = rng.integers(3, size=n), rng.standard_normal((n, d), dtype=dtype)
    X[:, 0] += groups / 3
    y = (X[:, :5].sum(axis=1) + rng.logistic(size=n) > 0).astype(int)
    model = ConstrainedERMClassifier(max_disparity=0.02)
    return lambda: model.fit(X, y, sensitive_features=groups).coef_


def large_classifier(n: int) -> Job:
    return classifier(n, 20, np.float32)


def scored(n: int) -> tuple[Any, Any, Any]:
    """Return rows, labels and four groups that differ in the mean of one column."""
    rng = np.random.default_rng(SEED)
    groups, X = rng.integers(4, size=n), rng.standard_normal((n, 10), dtype=np.float32)
    X[:, 0] += groups / 4
    return X, (X[:, :4].sum(axis=1) + rng.logistic(size=n) > 0).astype(int), groups


def decisions(n: int) -> Job:
    X, y, groups = scored(n)
    trees = HistGradientBoostingClassifier(max_iter=40, random_state=0)
    model = FairDecisionClassifier(trees, random_state=0)
    return lambda: model.fit(X, y, sensitive_features=groups).train_predictions_


def partial(n: int) -> Job:
    X, y, groups = scored(n)
    model = PartialParityClassifier(max_disparity=0.02)
    return lambda: model.fit(X, y, sensitive_features=groups).coef_


def calibrator(n: int) -> Job:
    X, y, groups = scored(n)
    base = FrozenEstimator(LogisticRegression().fit(X[:10_000], y[:10_000]))
    model = PartialParityCalibrator(base, max_disparity=0.02)
    return lambda: model.fit(X, y, sensitive_features=groups).decision_function(
        X[:1000], sensitive_features=groups[:1000]
    )


def predictions(n: int) -> Job:
    X, _, groups = scored(n)
    model = FairKMeans(10, random_state=0).fit(X[:50_000], sensitive_features=groups[:50_000])
    return lambda: model.predict(X, sensitive_features=groups)


def metric(n: int) -> Job:
    rng = np.random.default_rng(SEED)
    y, predicted, groups = rng.integers(2, size=(3, n))
    return lambda: equalized_odds_difference(y, predicted, sensitive_features=groups)


def addition(n: int) -> Job:
    """Add two arrays of n numbers into a third one."""
    first, second, out = np.ones((3, n))

    def add() -> float:
        threads.over_blocks(
            lambda i, j: np.add(first[i:j], second[i:j], out=out[i:j]), n, threads.BLOCK
        )
        return float(out[-1])

    return add


JOBS: dict[str, tuple[Callable[[int], Job], int]] = {
    "FairKMeans, K=20, d=10": (k_means, 1_000_000),
    "FairKMeans, ten million rows": (k_means, 10_000_000),
    "ConstrainedERMClassifier, d=50": (classifier, 500_000),
    "ConstrainedERMClassifier, ten million rows, d=20": (large_classifier, 10_000_000),
    "FairDecisionClassifier, boosted trees": (decisions, 50_000),
    "PartialParityClassifier, d=10": (partial, 1_000_000),
    "PartialParityCalibrator of a fitted model": (calibrator, 1_000_000),
    "FairKMeans.predict, K=10, d=10": (predictions, 1_000_000),
    "FairSpectralClustering, rbf": (spectral, 10_000),
    "ParetoFairKMeans, prices": (front, 40_000),
    "ParetoFairKMeans, Adult": (adult_front, 5000),
    "ParetoFairKMeans, swaps": (swap_front, 40_000),
    "equalized_odds_difference": (metric, 10_000_000),
    "addition of two arrays": (addition, 20_000_000),
}


def run(name: str, quick: bool) -> dict[str, Any]:
    """Time one job with one and two threads; in a process of its own."""
    make, n = JOBS[name]
    job = make(n // 50 if quick else n)
    job()  # loads compiled code
    shared = 0.0
    made_by_threads = threads._made_by_threads

    def timed(*given: Any) -> Any:
        nonlocal shared
        start = time.process_time()
        made = made_by_threads(*given)
        shared += time.process_time() - start
        return made

    threads._made_by_threads = timed
    walls: dict[int, list[float]] = {1: [], 2: []}
    cpu, results = 0.0, []
    until = time.perf_counter() + (0 if quick else SECONDS)
    while len(walls[1]) < (1 if quick else ROUNDS) or time.perf_counter() < until:
        for n_threads, times in walls.items():
            with allowed(n_threads):
                wall, start = time.perf_counter(), time.process_time()
                results.append(job())
                times.append(time.perf_counter() - wall)
                cpu += (time.process_time() - start) * (n_threads > 1)
    serial, busy = 1 - shared / cpu, []
    with allowed(2), two_busy_processes():
        for _ in range(1 if quick else ROUNDS):
            wall = time.perf_counter()
            results.append(job())
            busy.append(time.perf_counter() - wall)
    return {
        "rows": n // 50 if quick else n,
        "one": median(walls[1]),
        "two": median(walls[2]),
        "busy": median(busy),
        "serial": serial,
        "is_same": all(np.array_equal(results[0], other) for other in results[1:]),
    }


def two_processes(quick: bool) -> dict[str, Any]:
    """Time two processes that only count: one after the other, and at the same time."""
    n = 1_000_000 if quick else 30_000_000
    walls = []
    for n_at_once in (1, 2):
        seconds = []
        for _ in range(1 if quick else 2 * ROUNDS + 1):
            start = time.perf_counter()
            for _ in range(2 // n_at_once):
                counters = [Process(target=count, args=(n,)) for _ in range(n_at_once)]
                for counter in counters:
                    counter.start()
                for counter in counters:
                    counter.join()
            seconds.append(time.perf_counter() - start)
        walls.append(median(seconds))
    one, two = walls
    return {"rows": n, "one": one, "two": two, "busy": None, "serial": 0.0, "is_same": True}


@contextmanager
def two_busy_processes() -> Iterator[None]:
    """Keep two processors at work with other things."""
    counters = [Process(target=count, args=(-1,), daemon=True) for _ in range(2)]
    for counter in counters:
        counter.start()
    try:
        yield
    finally:
        for counter in counters:
            counter.terminate()
            counter.join()


def count(n: int) -> None:
    """Keep one processor at work, without memory; for ever if n is negative."""
    while n:
        n -= 1


def main(*, quick: bool = False) -> dict[str, Any]:
    found = {}
    for name, (make, _) in JOBS.items():
        if make is adult_front and data_folder() is None:
            continue
        found[name] = in_new_process(run, name=name, quick=quick)
        print(f"   {name} done", flush=True)
    found["two processes that count"] = two_processes(quick)
    return found


def canary() -> dict[str, Any]:
    """Return a mean of what small jobs compute, and whether two threads compute the same."""
    found = {}
    for name in ("FairKMeans, K=20, d=10", "ConstrainedERMClassifier, d=50"):
        make, n = JOBS[name]
        job, results = make(n // 50), []
        for n_threads in (1, 2):
            with allowed(n_threads):
                results.append(job())
        same = bool(np.array_equal(*results))
        found[name] = {"mean square": float(np.mean(np.square(results[0]))), "same": same}
    return found


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Show wall time, its ratios, the serial share and what 16 threads could save by it."""
    lines = [
        [
            name,
            row["rows"],
            row["one"],
            row["two"],
            f"{row['one'] / row['two']:.2f}",
            "" if row["busy"] is None else f"{row['busy'] / row['one']:.1f}",
            f"{row['serial']:.0%}",
            f"{1 / (row['serial'] + (1 - row['serial']) / 16):.1f}",
            "yes" if row["is_same"] else "no",
        ]
        for name, row in results.items()
    ]
    columns = [
        "job",
        "rows",
        "seconds with 1 thread",
        "/ with 2 threads",
        "ratio",
        "time beside two busy processes / with 1 thread",
    ]
    columns += ["serial share", "/ largest ratio with 16 threads", "same result"]
    return {"speed": Table("Wall time with one and two threads", columns, lines)}


def numbers(results: dict[str, Any]) -> dict[str, float]:
    """Return the least, the median and the largest ratio of one thread to two, and of busy to one.

    The last is the longest time of a job beside busy processes, in units of one idle thread.
    What is measured of the machine alone is no job.
    """
    jobs = [row for name, row in results.items() if name not in YARDSTICKS]
    ratios = [row["one"] / row["two"] for row in jobs]
    busy = max(row["busy"] / row["one"] for row in jobs if row["busy"] is not None)
    return {"least": min(ratios), "median": median(ratios), "most": max(ratios), "busy": busy}


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Draw the ratios that were measured, and what the serial shares allow 16 threads."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 0.3 * len(results) + 1), layout="constrained")
    axis = figure.subplots()
    rows = range(len(results), 0, -1)
    measured = [row["one"] / row["two"] for row in results.values()]
    most = [1 / (row["serial"] + (1 - row["serial"]) / 16) for row in results.values()]
    axis.hlines(rows, measured, most, color="0.85", lw=2)
    axis.plot(measured, rows, "o", label="measured with two threads")
    axis.plot(most, rows, "s", mfc="none", label="most with 16 threads")
    axis.axvline(1, color="0.4", lw=1)
    axis.set_yticks(rows, results)
    axis.set(xlabel="times as fast as one thread", xlim=(0, 17))
    figure.legend(frameon=False, ncols=2, loc="outside upper center")
    return {"speed": figure}
