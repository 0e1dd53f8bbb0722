"""A check whether something became slow: ``python -m benchmarks.check``, or ``make bench-check``.

Each job is measured against the nearest one of scikit-learn in the same run, on generated data, and
first fits in new processes without stored kernels. The ratios (seconds of first fits) are compared
with those of the record, ``records/check.json``: more than a fifth above it, and beyond the spread
of its runs, is a failure (exit code 1). A job that looks slower is measured again before it is
believed. Ratios belong to a machine: on another one, or after a change that is meant, write a
record of its own by ``python -m benchmarks.check --keep``. Goals are shown, and do not fail.

The records of all benchmarks are read as well: one that does not name how it was measured is a
failure. ``--records`` does only that.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks._records import faults
from benchmarks._speed_jobs import FAMILIES, Job, first_fits
from benchmarks.harness import RECORDS, Table, check_threads, read, timed, write

ALLOWED = 1.2
SHORTEST = 0.02  # seconds: a shorter yardstick is run again until it took as long
Ratios = list[float]  # sorted


def ratios(job: Job) -> Ratios:
    """Return how many times longer a job takes than its yardstick, in each of some rounds."""
    found = []
    for _ in range(job.rounds + 1):
        ours, total, runs = timed(job.ours)[0], 0.0, 0
        while total < SHORTEST:
            total, runs = total + timed(job.yardstick)[0], runs + 1
        found.append(ours * runs / total)
    return sorted(found[1:])  # the first one compiles


def jobs(names: Sequence[str]) -> Iterator[tuple[str, Callable[[], Ratios], float | None]]:
    """Yield the name of each job of some families, what measures it, and its goal."""
    for family in FAMILIES:
        if family.__name__ in names:
            for job in family():
                yield job.name, lambda job=job: ratios(job), job.goal
    if "first_fits" in names:
        for name, seconds, goal in first_fits():
            yield name, lambda seconds=seconds: sorted(seconds), goal


def is_slower(now: Ratios, before: Ratios) -> bool:
    """Whether the median is a fifth above the one before, and no run as fast as its slowest."""
    return median(now) > ALLOWED * median(before) and min(now) > max(before)


def measured(kept: Mapping[str, Ratios], names: Sequence[str]) -> dict[str, Any]:
    """Return ratios and goals; a job that looks slower is measured up to twice more.

    Other work on the machine makes a ratio larger or smaller by chance; a slower program makes it
    larger every time.
    """
    found = {}
    for name, measure, goal in jobs(names):
        now = measure()
        for _ in range(2):
            if name in kept and is_slower(now, kept[name]):
                now = min(now, measure(), key=median)
        found[name] = {"ratios": now, "goal": goal}
        print(f"   {name}: {median(now):.3g}", flush=True)
    return found


def table(found: Mapping[str, Any], kept: Mapping[str, Ratios]) -> Table:
    rows = [
        (name, median(row["ratios"]), median(kept[name]) if name in kept else "new", row["goal"])
        for name, row in found.items()
    ]
    return Table("CPU against a yardstick", ["job", "now", "record", "goal"], rows)


def wrong_records() -> list[str]:
    """Return what the records lack; the one of this module holds times only, and no canary."""
    recorded = sorted({path.stem for path in RECORDS.glob("*.json")} - {"check"})
    return [f"{name}: {text}" for name in recorded for text in faults(read(name))]


def main() -> None:
    """Measure, compare, and stop with code 1 if anything is slower or a record is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    families = [*(family.__name__ for family in FAMILIES), "first_fits"]
    parser.add_argument("--keep", action="store_true", help="write a new record")
    parser.add_argument("--records", action="store_true", help="only look at the records")
    parser.add_argument("--only", nargs="+", choices=families, default=families)
    arguments = parser.parse_args()
    wrong = wrong_records()
    print("".join(f"   RECORD {text}\n" for text in wrong), end="")
    if arguments.records:
        sys.exit(1 if wrong else 0)
    check_threads()
    kept = {} if arguments.keep else {n: r["ratios"] for n, r in read("check")["results"].items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # jobs whose limits bind warn of what that does to people
        found = measured(kept, arguments.only)
    print(table(found, kept))
    goals = [median(row["ratios"]) <= row["goal"] for row in found.values() if row["goal"]]
    print(f"   {sum(goals)} of {len(goals)} goals are reached")
    if arguments.keep:
        write("check", found, RECORDS)
    missing = sorted(set(kept) - set(found)) if arguments.only == families else []
    if missing:
        print(f"   no longer measured: {', '.join(missing)}")
    slower = [n for n, row in found.items() if n in kept and is_slower(row["ratios"], kept[n])]
    for name in slower:
        now, before = median(found[name]["ratios"]), median(kept[name])
        print(f"   SLOWER: {name}: {now:.3g}, was {before:.3g}")
    sys.exit(1 if slower or wrong else 0)


if __name__ == "__main__":
    main()
