"""Fits on Dask collections: memory, speed, what travels, and what that means for larger clusters.

Rows are generated block by block on the workers of a local cluster (processes of one thread with a
limit on their memory). Each fit runs in a process of its own, which holds client and scheduler, so
that its peak memory is the client's. Times are wall times: workers are other processes.

The cost of a pass over n rows on w workers is modelled as

    n c / w  +  tasks t  +  levels h

with c seconds per row, t seconds of the scheduler per task and h seconds per level of the tree in
which results are added. c, t and h are measured here; the table for larger clusters follows.
"""

import time
from collections import defaultdict
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness import Table, in_new_process, lacks, memory
from skfair.classification import ConstrainedERMClassifier
from skfair.cluster import FairKMeans
from skfair.utils import partition_tasks, partitions
from skfair.utils.partitions import Partitions

SEED = 3901
N_FEATURES, N_GROUPS = 20, 3
ROW_BYTES = 4 * N_FEATURES + 1  # X, and the kind of the row
K, MAX_DISPARITY = 20, 0.02
LIMIT = "1.5GiB"
ESTIMATORS = ("FairKMeans", "ConstrainedERMClassifier")
CLUSTERS = ((10**9, 10), (10**9, 100), (10**11, 100), (10**11, 1000))


def make_block(number: int, n: int) -> tuple[Any, Any, Any]:
    """Draw n rows: X, y and groups."""
    rng = np.random.default_rng([SEED, number])
    X = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
    group = rng.integers(0, N_GROUPS, n, dtype=np.int8)
    X[:, 0] += np.float32(0.3) * group
    X[:, :4] += 3 * rng.integers(0, 2, (n, 4)).astype(np.float32)  # sixteen heaps
    noise = rng.logistic(size=n)
    return X, (X[:, 0] + X[:, 5] + noise > 2).astype(np.int8), group


def lazy_rows(n: int, block_rows: int) -> tuple[Any, Any, Any]:
    """Return n rows as Dask arrays; nothing is drawn yet."""
    import dask.array as da
    from dask import delayed

    sizes = [min(block_rows, n - start) for start in range(0, n, block_rows)]
    blocks = [delayed(make_block, pure=False)(k, size) for k, size in enumerate(sizes)]

    def column(position: int, dtype: Any, *rest: int) -> Any:
        parts = [
            da.from_delayed(block[position], (size, *rest), dtype=dtype)
            for block, size in zip(blocks, sizes, strict=True)
        ]
        return da.concatenate(parts)

    return column(0, np.float32, N_FEATURES), column(1, np.int8), column(2, np.int8)


def make(estimator: str) -> Any:
    """Return the estimator that is measured."""
    if estimator == "FairKMeans":
        return FairKMeans(K, random_state=0)
    return ConstrainedERMClassifier(max_disparity=MAX_DISPARITY)


def here(estimator: str, n: int, block_rows: int) -> dict[str, Any]:
    """Fit in the memory of this process."""
    blocks = [make_block(k, block_rows) for k in range(n // block_rows)]
    X, y, group = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    few = slice(0, 30_000)
    make(estimator).fit(X[few], y[few], sensitive_features=group[few])  # compiles
    start = time.perf_counter()
    model = make(estimator).fit(X, y, sensitive_features=group)
    return {"seconds": time.perf_counter() - start, **_outcome(estimator, model)}


def there(
    estimator: str, n: int, block_rows: int, n_workers: int, n_warm: int = 60_000
) -> dict[str, Any]:
    """Fit on the workers of a local cluster."""
    with _cluster(n_workers) as client:
        X, y, group = lazy_rows(n_warm, n_warm // (2 * n_workers))
        make(estimator).fit(X, y, sensitive_features=group)  # compiles, on every worker
        client.wait_for_workers(n_workers)
        X, y, group = (a.persist() if n <= 10**7 else a for a in lazy_rows(n, block_rows))
        if n <= 10**7:
            import distributed

            distributed.wait([X, y, group])
        passes = _timed_passes()
        start = time.perf_counter()
        model = make(estimator).fit(X, y, sensitive_features=group)
        seconds = time.perf_counter() - start
        workers = [peak / 2**30 for peak in client.run(memory).values()]
        # Of few columns, which come to this process, there are none.
        bytes_per_step = model.history_.get("bytes", np.zeros(1))
        return {
            "seconds": seconds,
            "client_gib": memory() / 2**30,
            "worker_gib": max(workers),
            "bytes": float(np.nanmax(bytes_per_step)),
            "passes": {name: [len(all_), median(all_), sum(all_)] for name, all_ in passes.items()},
            **_outcome(estimator, model),
        }


def _cluster(n_workers: int) -> Any:
    """Return the client of a new cluster, whose workers use the memory that they have.

    By default workers give freed memory back at once, and asking for it again page by page takes
    long; and they write blocks to disk from 70% of their limit on.
    """
    import dask
    import distributed

    dask.config.set(
        {
            "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 26,
            "distributed.worker.memory.spill": 0.78,
            "distributed.worker.memory.pause": 0.88,
        }
    )
    cluster = distributed.LocalCluster(
        n_workers=n_workers, threads_per_worker=1, memory_limit=LIMIT, dashboard_address=":0"
    )
    return distributed.Client(cluster)


def _timed_passes() -> dict[str, list[float]]:
    """Note from now on what passes over the blocks take, by the function that they run."""
    passes: dict[str, list[float]] = defaultdict(list)
    total = Partitions.total

    def timed_total(self: Partitions, function: Any, *shared: Any, **options: Any) -> Any:
        start = time.perf_counter()
        found = total(self, function, *shared, **options)
        passes[function.__name__.strip("_")].append(time.perf_counter() - start)
        return found

    Partitions.total = timed_total  # type: ignore[method-assign]
    return passes


def _outcome(estimator: str, model: Any) -> dict[str, Any]:
    if estimator == "FairKMeans":
        return {"objective": model.inertia_, "fairness": model.balance_, "status": model.status_}
    return {
        "objective": model.objective_,
        "fairness": model.train_disparity_,
        "status": model.status_,
    }


def tree(counts: list[int], n_numbers: int, n_steps: int) -> list[list[float]]:
    """Add up one array per task for several numbers of tasks: [tasks, levels, seconds]."""
    from dask import delayed, persist

    found = []
    with _cluster(2):
        for count in counts:
            blocks = persist(*[delayed(int, pure=False)(k) for k in range(count)])
            rows = Partitions(blocks)
            times = []
            for _ in range(n_steps):
                start = time.perf_counter()
                rows.total(_numbers, n_numbers)
                times.append(time.perf_counter() - start)
            found.append([count, float(levels(count)), median(times)])
    return found


def _numbers(block: int, n_numbers: int) -> Any:
    return np.full(n_numbers, float(block))


def tasks(n: float, n_workers: float) -> float:
    """Return the number of lists of blocks that workers of one thread hold."""
    held = n * ROW_BYTES / n_workers
    lists = max(1.0, min(np.ceil(held / partitions.LIST_BYTES), partitions.MOST_LISTS))
    return n_workers * float(lists)


def levels(n_tasks: float) -> int:
    """Return the number of levels at which results are added before they come to the client."""
    depth = 1
    while n_tasks > partition_tasks.FAN_IN:
        n_tasks, depth = np.ceil(n_tasks / partition_tasks.FAN_IN), depth + 1
    return depth


def main(*, quick: bool = False) -> dict[str, Any]:
    """Measure."""
    if lacks("dask", "distributed"):
        return {"skipped": "dask and distributed are not installed"}
    large, middle, small = (10**5, 10**5, 10**5) if quick else (2 * 10**7, 5 * 10**6, 10**6)
    results: dict[str, Any] = {"rows": [large, middle, small], "fits": {}, "bytes": {}}
    for name in ESTIMATORS[:1] if quick else ESTIMATORS:
        of = {"estimator": name}
        fits = {
            "here": in_new_process(here, **of, n=small, block_rows=small // 10),
            "small": in_new_process(there, **of, n=small, block_rows=small // 10, n_workers=2),
        }
        if quick:
            fits["large"] = fits["small"]
        else:
            fits["large"] = in_new_process(
                there, **of, n=large, block_rows=large // 40, n_workers=2
            )
            for n_workers in (1, 2):
                fits[f"workers {n_workers}"] = in_new_process(
                    there, **of, n=middle, block_rows=middle // 20, n_workers=n_workers
                )
        results["fits"][name] = fits
        print(f"   {name}: {fits['large']['seconds']:.1f} s for {large:.0e} rows", flush=True)
    counts = [8, 64] if quick else [8, 64, 250, 1000]
    results["tree"] = in_new_process(tree, counts=counts, n_numbers=500, n_steps=3 if quick else 9)
    return results


def costs(results: dict[str, Any]) -> dict[str, Any]:
    """Return what the model is made of: seconds per row and pass, per task, and per level."""
    times = np.array(results["tree"])
    known = times if len(times) < 3 else times[:-1]
    per_task, per_level = np.linalg.lstsq(known[:, :2], known[:, 2], rcond=None)[0]
    of_rows = {}
    for name, fits in results["fits"].items():
        passes = fits["large"]["passes"]
        n_passes = sum(count for count, _, _ in passes.values())
        seconds = sum(total for _, _, total in passes.values())
        per_row = 2 * seconds / n_passes / results["rows"][0]
        of_rows[name] = {"per_row": per_row, "passes": n_passes}
    return {"per_task": float(per_task), "per_level": float(per_level), "fits": of_rows}


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return the tables."""
    if "skipped" in results:
        return {}
    large, middle, small = results["rows"]
    fits = results["fits"]
    memory_rows, speed_rows, pass_rows, plan_rows = [], [], [], []
    model = costs(results)
    for name, found in fits.items():
        one = found["large"]
        memory_rows.append(
            [
                name,
                f"{large / 1e6:.0f} million",
                one["seconds"],
                one["worker_gib"],
                one["client_gib"],
                one["fairness"],
                one["bytes"] / 1e3,
                found["small"]["bytes"] / 1e3,
            ]
        )
        here, small_fit = found["here"]["seconds"], found["small"]
        speed_rows.append(
            [
                name,
                found["workers 1"]["seconds"] / found["workers 2"]["seconds"]
                if "workers 1" in found
                else "-",
                small_fit["seconds"] / here,
                abs(small_fit["objective"] / found["here"]["objective"] - 1),
                abs(small_fit["fairness"] - found["here"]["fairness"]),
            ]
        )
        for kind, (count, typical, _) in one["passes"].items():
            pass_rows.append([name, kind, count, typical, 2e9 * typical / large])
        cost = model["fits"][name]
        for n, n_workers in CLUSTERS:
            n_tasks = tasks(n, n_workers)
            parts = {
                "rows": n * cost["per_row"] / n_workers,
                "tasks": n_tasks * model["per_task"],
                "levels": levels(n_tasks) * model["per_level"],
            }
            plan_rows.append(
                [
                    name,
                    f"{n / 1e9:.0f} billion",
                    n_workers,
                    n * ROW_BYTES / n_workers / 2**30,
                    *parts.values(),
                    cost["passes"] * sum(parts.values()) / 60,
                ]
            )
    tree_rows = [
        [
            count,
            depth,
            1e3 * seconds,
            1e3 * (model["per_task"] * count + model["per_level"] * depth),
        ]
        for count, depth, seconds in results["tree"]
    ]
    return {
        "memory": Table(
            f"Two workers of {LIMIT}, one thread each",
            [
                "estimator",
                "rows",
                "seconds",
                "worker GiB",
                "client GiB",
                "balance / disparity",
                "kB per step",
                f"/ with {small / 1e6:.0f} million rows",
            ],
            memory_rows,
        ),
        "speed": Table(
            f"Ratios of wall times: workers at {middle:.0e} rows, memory at {small:.0e}",
            [
                "estimator",
                "1 worker / 2",
                "2 workers / memory",
                "objective off by",
                "balance / disparity off by",
            ],
            speed_rows,
        ),
        "passes": Table(
            f"Passes of the fits of {large:.0e} rows",
            ["estimator", "pass", "count", "seconds", "ns per row and worker"],
            pass_rows,
        ),
        "tree": Table(
            "Adding 500 numbers per task; the last row is predicted from the others",
            ["tasks", "levels", "ms measured", "ms modelled"],
            tree_rows,
        ),
        "plan": Table(
            f"Predicted seconds per pass, {N_FEATURES} columns",
            [
                "estimator",
                "rows",
                "workers",
                "GiB per worker",
                "seconds: rows",
                "/ tasks",
                "/ levels",
                "minutes in all",
            ],
            plan_rows,
        ),
    }


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Return the picture of what a pass takes on more and more workers."""
    if "skipped" in results:
        return {}
    import matplotlib.pyplot as plt

    model = costs(results)
    figure, axes = plt.subplots(figsize=(6, 4))
    n_workers = np.geomspace(2, 4000, 60)
    for name, cost in model["fits"].items():
        for n, style in ((10**9, "-"), (10**11, "--")):
            n_tasks = np.array([tasks(n, count) for count in n_workers])
            seconds = n * cost["per_row"] / n_workers + n_tasks * model["per_task"]
            seconds += np.array([levels(count) for count in n_tasks]) * model["per_level"]
            axes.loglog(n_workers, seconds, style, label=f"{name}, {n:.0e} rows")
    axes.set(xlabel="workers", ylabel="predicted seconds per pass")
    axes.legend(fontsize=8)
    plt.close(figure)
    return {"plan": figure}
