"""``python -m tests.fuzz --cases 20000 --seed 0``: run cases, print a summary, exit 1 on faults."""

import argparse
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from tests.fuzz.workers import CHUNK, Record, Worker, run_chunk  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument(
        "--replay", metavar="NAME:SEED:SIZE:CASE", help="run one case, show its traceback"
    )
    options = parser.parse_args()
    if options.replay:
        return replay(options.replay)
    start = time.perf_counter()
    records = run(options.cases, options.seed, options.only)
    print(summary(records, time.perf_counter() - start))
    return int(any(record.verdict.is_fault for record in records))


def plan(n_cases: int, seed: int, only: str) -> Iterator[tuple[str, int, int]]:
    """Divide the cases among the public names, in chunks of (name, seed, number of cases).

    A function with few arguments has fewer different cases than its part. The estimators, last in
    the list, make up for that: chunks of theirs follow without end.
    """
    from tests.fuzz import attack, cases

    every = cases.shares() | attack.shares()
    wanted = {name: share for name, share in every.items() if only in name}
    for name, share in wanted.items():
        left = -(-share * n_cases // sum(wanted.values()))
        for number in range(-(-left // CHUNK)):
            yield name, 1000 * seed + number, min(CHUNK, left - number * CHUNK)
    largest = [name for name, share in wanted.items() if share == max(wanted.values())]
    for number in range(100, 1000):
        for name in largest:
            yield name, 1000 * seed + number, CHUNK


def run(n_cases: int, seed: int, only: str = "", progress=sys.stderr) -> list[Record]:
    """Run all chunks in a worker process; Ctrl-C ends the run early."""
    worker = Worker()
    records: list[Record] = []
    told = time.perf_counter()
    try:
        for name, chunk_seed, size in plan(n_cases, seed, only):
            if len(records) >= n_cases:
                break
            records += worker.records(name, chunk_seed, size)
            if progress is not None and time.perf_counter() - told > 10:
                told = time.perf_counter()
                faults = sum(record.verdict.is_fault for record in records)
                print(f"{len(records)} cases, {faults} faults; {name}", file=progress, flush=True)
    except KeyboardInterrupt:
        print("interrupted", file=progress)
    worker.stop()
    return records


def summary(records: list[Record], seconds: float) -> str:
    """Counts, faults grouped by the line that they come from, and the slowest cases."""
    kinds = Counter(record.verdict.kind for record in records)
    lines = [f"{len(records)} cases in {seconds:.0f} s: {kinds.pop('accepted', 0)} accepted, "]
    lines[0] += f"{kinds.pop('rejected', 0)} rejected, {kinds.total()} faults"
    groups = defaultdict(list)
    for record in records:
        if record.verdict.is_fault:
            verdict = record.verdict
            error = verdict.message.partition(":")[0]
            where = verdict.place or record.name
            groups[verdict.kind, where, error].append(record)
    for (kind, place, _), found in sorted(groups.items(), key=lambda item: -len(item[1])):
        first = min(found, key=lambda record: len(record.title))
        names = sorted({record.name.rpartition(".")[2] for record in found})
        lines += [
            "",
            f"{len(found)} x {kind} at {place}: {', '.join(names[:6])}",
            f"    {first.title}",
            f"    {first.verdict.message[:300]}",
            f"    --replay {first.replay}",
        ]
    slowest = sorted(records, key=lambda record: -record.verdict.seconds)[:5]
    lines += ["", "slowest:"]
    lines += [f"    {one.verdict.seconds:6.2f} s  {one.title[:150]}" for one in slowest]
    return "\n".join(lines)


def replay(which: str) -> int:
    """Run one case in this process and show where it fails."""
    import traceback

    from tests.fuzz.verdict import prepare_process

    name, seed, size, number = which.rsplit(":", 3)
    prepare_process()

    def tell(_, case, verdict):
        if verdict is not None:
            print(verdict.kind, verdict.message, sep=": ")
            return
        print(case.title)
        for array in case.arrays:
            print(f"--- {type(array).__name__}\n{array!r}")
        inner = case.run

        def run():
            try:
                return inner()
            except Exception:
                traceback.print_exc()
                raise

        case.run = run

    run_chunk(name, int(seed), int(size), tell, only=int(number))
    return 0


if __name__ == "__main__":
    sys.exit(main())
