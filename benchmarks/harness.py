"""What every benchmark shares: fixed threads, CPU time, alternating competitors, medians, a record.

Competitors run in turn within one process, so that a busy machine slows all of them alike; figures
that are quoted are ratios of medians. The first round is thrown away: it compiles and fills caches.
"""

import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

OUTPUT = Path(__file__).parent / "output"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def check_threads() -> None:
    """Stop unless numerical libraries are held to one thread; it must be set before they load."""
    wrong = [name for name in THREAD_VARIABLES if os.environ.get(name) != "1"]
    if wrong:
        raise SystemExit(f"Set {'=1 '.join(wrong)}=1 before starting (make bench does).")


def alternate(
    competitors: Mapping[str, Callable[[], Any]], rounds: int = 5
) -> dict[str, dict[str, float]]:
    """Time competitors in turn and return their median CPU and wall seconds.

    The time of the first, discarded round is reported as ``first`` (it includes compilation).
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in competitors}
    for _ in range(rounds + 1):
        for name, run in competitors.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {
        name: {
            "cpu": median(cpu for cpu, _ in rows[1:]),
            "wall": median(wall for _, wall in rows[1:]),
            "first": rows[0][0],
        }
        for name, rows in times.items()
    }


def data_folder() -> Path | None:
    """Return the folder of real data sets, or None with a line that says so."""
    folder = os.environ.get("SKFAIR_DATA")
    if folder and (Path(folder) / "datasets.json").exists():
        return Path(folder)
    print("  skipped: SKFAIR_DATA names no folder with datasets.json")
    return None


def write(name: str, results: Any) -> Path:
    """Write results as JSON together with the machine and the commit they were measured on."""
    OUTPUT.mkdir(exist_ok=True)
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    record = {
        "benchmark": name,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "commit": commit,
        "results": results,
    }
    path = OUTPUT / f"{name}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path
