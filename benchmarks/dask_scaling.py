"""Fits on Dask collections: memory, speed, and what travels.

Rows are generated block by block on the workers of a local cluster (processes of one thread with a
limit on their memory). Each fit runs in a process of its own, which holds client and scheduler, so
that its peak memory is the client's. Times are wall times: workers are other processes.
"""

import time
from typing import Any

import numpy as np

from benchmarks.harness import Table, in_new_process, lacks, memory
from skfair.classification import ConstrainedERMClassifier
from skfair.cluster import FairKMeans

SEED = 3901
N_FEATURES, N_GROUPS = 20, 3
K, MAX_DISPARITY = 20, 0.02
LIMIT = "1.5GiB"
ESTIMATORS = ("FairKMeans", "ConstrainedERMClassifier")


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


def _outcome(estimator: str, model: Any) -> dict[str, Any]:
    if estimator == "FairKMeans":
        return {"objective": model.inertia_, "fairness": model.balance_, "status": model.status_}
    return {
        "objective": model.objective_,
        "fairness": model.train_disparity_,
        "status": model.status_,
    }


def main(*, quick: bool = False) -> dict[str, Any]:
    """Measure."""
    if lacks("dask", "distributed"):
        return {"skipped": "dask and distributed are not installed"}
    large, small = (10**5, 10**5) if quick else (10**7, 2 * 10**6)
    results: dict[str, Any] = {"rows": [large, small], "fits": {}}
    for name in ESTIMATORS[:1] if quick else ESTIMATORS:
        of = {"estimator": name}
        parts = {"block_rows": small // 10}
        fits = {"here": in_new_process(here, **of, n=small, **parts)}
        for n_workers in (2,) if quick else (1, 2):
            fits[f"workers {n_workers}"] = in_new_process(
                there, **of, n=small, n_workers=n_workers, **parts
            )
        fits["large"] = fits["workers 2"]
        if not quick:
            parts = {"block_rows": large // 40}
            fits["large"] = in_new_process(there, **of, n=large, n_workers=2, **parts)
        results["fits"][name] = fits
        print(f"   {name}: {fits['large']['seconds']:.1f} s for {large:.0e} rows", flush=True)
    return results


def canary() -> dict[str, Any]:
    """Return the results of a small cell."""
    n, block_rows = 2 * 10**6, 2 * 10**5
    fits = {f"{name}, here": here(name, n, block_rows) for name in ESTIMATORS}
    two = {"estimator": "FairKMeans", "n": n, "block_rows": block_rows, "n_workers": 2}
    fits["FairKMeans, two workers"] = in_new_process(there, **two)
    kept = ("objective", "fairness", "status")
    return {name: {key: found[key] for key in kept} for name, found in fits.items()}


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return the tables."""
    if "skipped" in results:
        return {}
    large, small = results["rows"]
    memory_rows, speed_rows = [], []
    for name, fits in results["fits"].items():
        one, few, inside = fits["large"], fits["workers 2"], fits["here"]
        per_row = 2**30 * (one["client_gib"] - few["client_gib"]) / max(large - small, 1)
        memory_rows.append(
            [
                name,
                one["seconds"],
                one["worker_gib"],
                one["client_gib"],
                per_row,
                per_row * 1e8 / 2**30,
                one["bytes"] / large,
            ]
        )
        speed_rows.append(
            [
                name,
                fits["workers 1"]["seconds"] / few["seconds"] if "workers 1" in fits else "-",
                few["seconds"] / inside["seconds"],
                abs(few["objective"] / inside["objective"] - 1),
                abs(few["fairness"] - inside["fairness"]),
            ]
        )
    return {
        "memory": Table(
            f"{large / 1e6:.0f} million rows, two workers of {LIMIT}, one thread each",
            [
                "estimator",
                "seconds",
                "GiB of the largest worker",
                "GiB of the fitting process",
                "bytes per row in the fitting process",
                "GiB for 100 million rows (calculated)",
                "bytes sent per row and step",
            ],
            memory_rows,
        ),
        "speed": Table(
            f"Ratios of wall times for {small / 1e6:.0f} million rows",
            [
                "estimator",
                "time with 1 worker / with 2",
                "time with 2 workers / in memory",
                "relative difference of the objectives",
                "difference of the balance or disparity",
            ],
            speed_rows,
        ),
    }


def numbers(results: dict[str, Any]) -> dict[str, Any]:
    """Return ratios of times by two workers and in memory, and the memory that fits need.

    ``difference`` is the largest relative difference between the objectives of these two fits.

    ``columns`` is the number of columns of 8 bytes from which X needs more than the fit.
    """
    ratios = [
        fit["workers 2"]["seconds"] / fit["here"]["seconds"] for fit in results["fits"].values()
    ]
    found = {"least": min(ratios), "most": max(ratios), "rows": results["rows"][0] / 1e6}
    difference = max(row[3] for row in tables(results)["speed"].rows)
    found["difference"] = f"{difference:.0e}" if difference else "0"
    names = {"": "ConstrainedERMClassifier", "clustering_": "FairKMeans"}
    for row in tables(results)["memory"].rows:
        (start,) = (start for start, name in names.items() if name == row[0])
        found |= {f"{start}gib": row[3], f"{start}bytes_a_row": row[4], f"{start}more_gib": row[5]}
    return found | {"columns": found["bytes_a_row"] / 8}


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Return the picture of the memory that the fitting process needs."""
    if "skipped" in results:
        return {}
    import matplotlib.pyplot as plt

    large, small = results["rows"]
    figure, axes = plt.subplots(figsize=(6, 4))
    rows = np.array([small, large, 10**8])
    for name, fits in results["fits"].items():
        few, many = fits["workers 2"]["client_gib"], fits["large"]["client_gib"]
        more = many + (many - few) / max(large - small, 1) * (rows[2] - large)
        (line,) = axes.loglog(rows[:2], [few, many], "o-", label=f"{name}, fitting process")
        axes.loglog(rows[1:], [many, more], "--", color=line.get_color())
    for n_features in (N_FEATURES, 100):
        axes.loglog(rows, 4 * n_features * rows / 2**30, ":", label=f"X, {n_features} columns")
    axes.set(xlabel="rows", ylabel="GiB (dashed: by calculation)")
    axes.legend(fontsize=8)
    plt.close(figure)
    return {"memory": figure}
