"""Audits of tables in an engine: the time and the memory of up to a billion decisions.

A DuckDB file has decisions of n people with seven attributes. Each audit runs in a process of its
own, with its page, and beside it the bare ``GROUP BY`` of the same columns, which is what the
engine needs in any case. Times are wall times, because the engine uses all processors. Others hold
all rows in memory: fairlearn's ``MetricFrame`` and AIF360's ``BinaryLabelDataset`` get the same
table as a DataFrame of small integers.
"""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Table, in_new_process, lacks, memory

SEED = 105
# An attribute and its number of levels. Groups differ a little in the share that is approved.
ATTRIBUTES = {"sex": 2, "race": 3, "age": 3, "disabled": 2, "citizen": 2, "region": 2}
AUDITS: dict[str, dict[str, Any]] = {
    "two attributes": {"sensitive_features": ["sex", "race"]},
    "five attributes, strata": {
        "sensitive_features": ["sex", "race", "age", "disabled", "citizen"],
        "control_features": ["region"],
    },
}


def write_rows(folder: Path, n: int) -> Path:
    """Write a DuckDB file with n decisions, unless it exists."""
    import duckdb

    path = folder / f"decisions-{n}.duckdb"
    if path.is_file():
        return path
    columns, place = [], 0
    for name, n_levels in ATTRIBUTES.items():
        levels = ", ".join(f"'{name} {i}'" for i in range(n_levels))
        columns.append(
            f"([{levels}])[(1 + (a >> {place}) % {n_levels})::int]::{name}_level as {name}"
        )
        place += 8
    parts = Path(f"{path}.part")
    parts.unlink(missing_ok=True)
    with duckdb.connect(str(parts)) as connection:
        connection.execute("set enable_progress_bar = false")
        for name, n_levels in ATTRIBUTES.items():
            levels = ", ".join(f"'{name} {i}'" for i in range(n_levels))
            connection.execute(f"create type {name}_level as enum ({levels})")
        connection.execute(
            f"""
            create table decisions as
            select *, (u < .3 + .3 * repaid + .01 * (sex = 'sex 0')::int)::utinyint as approved,
                least(greatest(.2 + .4 * repaid + .6 * v, 0), 1)::float as score
            from (
                select {", ".join(columns)}, (b % 1000 < 600)::utinyint as repaid,
                    ((b >> 12) % 1000000) / 1e6 as u, ((b >> 36) % 10000000) / 1e7 as v,
                    (i // 3)::int as person
                from (select i, hash(i // 3 + {SEED}) as a, hash(i * 7 + {SEED}) as b
                      from range({n}) t(i))
            )
            """
        )
    parts.rename(path)
    return path


def audited(path: str, which: str, more: dict[str, Any] | None = None) -> dict[str, float]:
    """Audit a table with its page; return the wall time and the memory of this process."""
    import duckdb

    from skfair import Cohort
    from skfair.report import audit

    with duckdb.connect(path, read_only=True) as connection:
        connection.execute("set enable_progress_bar = false")
        names = {"y_true": "repaid", "y_pred": "approved", **AUDITS[which], **(more or {})}
        few = connection.sql("select * from decisions limit 1000")
        audit(Cohort.from_table(few, **names))  # loads what is imported late
        start = time.perf_counter()
        people = Cohort.from_table(connection.table("decisions"), **names)
        read = time.perf_counter() - start
        page = audit(people).to_html()
        seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "read": read,
        "gib": memory() / 2**30,
        "kinds": float(len(people.sensitive_features)),  # type: ignore[arg-type]
        "page": float(len(page)),
    }


def grouped(path: str, which: str) -> dict[str, float]:
    """Only group the table; return the wall time."""
    import duckdb

    own = AUDITS[which]
    names = [*own["sensitive_features"], *own.get("control_features", []), "repaid", "approved"]
    with duckdb.connect(path, read_only=True) as connection:
        connection.execute("set enable_progress_bar = false")
        connection.sql("select count(*) from (select * from decisions limit 1000)").fetchall()
        start = time.perf_counter()
        by = ", ".join(names)
        connection.sql(f"select {by}, count(*) from decisions group by {by}").fetchall()
        return {"seconds": time.perf_counter() - start}


def held(path: str, peer: str) -> dict[str, float]:
    """Let a rival compare groups of all rows in memory."""
    import duckdb

    with duckdb.connect(path, read_only=True) as connection:
        start = time.perf_counter()
        frame = connection.sql(
            "select sex::text = 'sex 0' as sex, race, repaid, approved from decisions"
        ).df()
    frame["sex"] = frame["sex"].astype(np.int8)
    if peer == "fairlearn":
        from fairlearn.metrics import MetricFrame, selection_rate, true_positive_rate

        metrics = {"selection_rate": selection_rate, "true_positive_rate": true_positive_rate}
        columns = frame["repaid"], frame["approved"]
        groups = frame[["sex", "race"]]
        MetricFrame(
            metrics=metrics, y_true=columns[0], y_pred=columns[1], sensitive_features=groups
        ).difference()
    else:
        from aif360.datasets import BinaryLabelDataset
        from aif360.metrics import ClassificationMetric

        own = {"label_names": ["repaid"], "protected_attribute_names": ["sex"]}
        true = BinaryLabelDataset(df=frame[["sex", "repaid"]], **own)
        predicted = true.copy()
        predicted.labels = frame[["approved"]].to_numpy(float)
        metric = ClassificationMetric(true, predicted, [{"sex": 0}], [{"sex": 1}])
        metric.statistical_parity_difference()
    return {"seconds": time.perf_counter() - start, "gib": memory() / 2**30}


def main(*, quick: bool = False) -> dict[str, Any]:
    """Measure."""
    if lacks("duckdb"):
        return {"skipped": "duckdb is not installed"}
    sizes = [10**5] if quick else [10**6, 10**7, 10**8, 10**9]
    held_sizes = [10**5] if quick else [10**6, 10**7]
    own = os.environ.get("SKFAIR_WAREHOUSE")  # a folder that keeps the files
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(own or temporary)
        results: dict[str, Any] = {"sizes": sizes, "audits": {}, "others": {}, "peers": {}}
        for n in sizes:
            path = str(write_rows(folder, n))
            for which in AUDITS:
                bare = [in_new_process(grouped, path=path, which=which) for _ in range(3)]
                runs = [in_new_process(audited, path=path, which=which) for _ in range(3)]
                best = min(runs, key=lambda run: run["seconds"])
                best["bare"] = min(run["seconds"] for run in bare)
                results["audits"][f"{which} {n}"] = best
                print(f"   {which}, {n:.0e} rows: {best['seconds']:.2f} s", flush=True)
        n = sizes[-2] if len(sizes) > 1 else sizes[0]
        path, which = str(write_rows(folder, n)), "two attributes"
        for name, more in (
            ("scores", {"y_score": "score"}),
            ("units", {"units": "person"}),
            ("weights", {"sample_weight": "score"}),
        ):
            results["others"][name] = in_new_process(audited, path=path, which=which, more=more)
            results["others"][name]["n"] = float(n)
            print(f"   {name}: {results['others'][name]['seconds']:.2f} s", flush=True)
        if not lacks("pyspark"):
            results["others"]["Spark, two attributes"] = in_new_process(
                sparked, place=str(folder), n=n
            )
        for peer in ("fairlearn", "aif360"):
            for n in () if lacks(peer) else held_sizes:
                path = str(write_rows(folder, n))
                results["peers"][f"{peer} {n}"] = in_new_process(held, path=path, peer=peer)
    return results


def canary() -> dict[str, Any]:
    """Return the differences that an audit of a small table finds."""
    import duckdb

    from skfair import Cohort
    from skfair.report import audit

    names = {"y_true": "repaid", "y_pred": "approved", **AUDITS["two attributes"]}
    with tempfile.TemporaryDirectory() as folder:
        path = str(write_rows(Path(folder), 10**5))
        with duckdb.connect(path, read_only=True) as connection:
            connection.execute("set enable_progress_bar = false")
            gaps = audit(Cohort.from_table(connection.table("decisions"), **names)).gaps
    return {f"{row}": value for row, value in enumerate(gaps["value"])}


def sparked(place: str, n: int) -> dict[str, float]:
    """Audit parquet files of the same rows in Spark on this machine."""
    import duckdb
    from pyspark.sql import SparkSession

    from skfair import Cohort
    from skfair.report import audit

    files = Path(place) / f"decisions-{n}.parquet"
    if not files.exists():
        with duckdb.connect(str(write_rows(Path(place), n)), read_only=True) as connection:
            connection.execute(
                "copy (select sex::text as sex, race::text as race, repaid, approved "
                f"from decisions) to '{files}' (format parquet)"
            )
    settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    made = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        made = made.config(name, value)
    table = made.getOrCreate().read.format("parquet").load(str(files))
    names = {"y_true": "repaid", "y_pred": "approved", **AUDITS["two attributes"]}
    Cohort.from_table(table.limit(1000), **names)  # starts the workers
    start = time.perf_counter()
    audit(Cohort.from_table(table, **names)).to_html()
    return {"seconds": time.perf_counter() - start, "n": float(n)}


def tables(results: dict[str, Any]) -> dict[str, Table]:
    """Return the tables."""
    if "skipped" in results:
        return {}
    growth = []
    for which in AUDITS:
        for n in results["sizes"]:
            own = results["audits"][f"{which} {n}"]
            growth.append(
                [
                    which,
                    f"{n:,}",
                    f"{own['kinds']:.0f}",
                    own["seconds"],
                    own["bare"],
                    own["read"] / own["bare"],
                    own["gib"],
                ]
            )
    others = [
        [name, f"{own['n']:,.0f}", own["seconds"], own.get("gib", "-")]
        for name, own in results["others"].items()
    ]
    peers = [
        [name.rsplit(" ", 1)[0], f"{int(name.rsplit(' ', 1)[1]):,}", own["seconds"], own["gib"]]
        for name, own in results["peers"].items()
    ]
    return {
        "growth": Table(
            "Audits of tables in DuckDB, with the page",
            [
                "audit",
                "rows",
                "counts read from DuckDB",
                "seconds in all",
                "seconds of GROUP BY alone",
                "time to count / GROUP BY alone",
                "GiB",
            ],
            growth,
        ),
        "others": Table(
            "Other columns and engines", ["audit with", "rows", "seconds", "GiB"], others
        ),
        "peers": Table(
            "Libraries that hold all rows", ["library", "rows", "seconds", "GiB"], peers
        ),
    }


def numbers(results: dict[str, Any]) -> dict[str, float]:
    """Return the numbers that pages quote."""
    largest = results["sizes"][-1]
    two, five = (results["audits"][f"{which} {largest}"] for which in AUDITS)
    ratios = [own["read"] / own["bare"] for own in (two, five)]
    every = [own["read"] / own["bare"] for own in results["audits"].values()]
    return {
        "billions": largest / 1e9,
        "two": two["seconds"],
        "five": five["seconds"],
        "kinds": five["kinds"],
        "gib": max(two["gib"], five["gib"]),
        "ratio": max(ratios),
        "largest_ratio": max(every),
    }


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    """Return the picture of the growth of the time with the number of rows."""
    if "skipped" in results:
        return {}
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    sizes = results["sizes"]
    for which in AUDITS:
        own = [results["audits"][f"{which} {n}"] for n in sizes]
        (line,) = axes.loglog(sizes, [run["seconds"] for run in own], "o-", label=which)
        bare = [run["bare"] for run in own]
        axes.loglog(sizes, bare, ":", color=line.get_color(), label="GROUP BY alone")
    axes.set(xlabel="rows", ylabel="seconds")
    axes.legend(fontsize=8)
    plt.close(figure)
    return {"growth": figure}
