"""The base of all benchmarks: fixed threads, CPU time, alternating competitors, medians, records.

Competitors run in turn within one process, so that a busy machine slows all of them by the same
factor. Quoted figures are ratios of medians. The first round is thrown away: it compiles and fills
caches.

A benchmark is a module with ``main(*, quick)``, which measures and returns plain data. One that
has several parts takes ``only``, the name of a part, and hands it to ``measure_parts``. A module
may offer ``tables(results)`` and ``pictures(results)``, which show such data, also long after they
were measured: the site is built from the records that are kept in ``records``. The numbers of
``numbers(results)`` are those that sentences of its page quote, as ``{name}`` or with a format, as
``{name:.1f}``. On other pages the name of the record stands before it, ``{record.name:.1f}``.

A function ``canary()`` measures one small cell, which shows later whether the record still holds
(``benchmarks/canaries.py``).
"""

import csv
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks._records import compared, is_changed, script_of
from skfair import exceptions

HERE = Path(__file__).parent
DOTS = 100  # an inch of a picture
OUTPUT, RECORDS = HERE / "output", HERE / "records"
PARTS = ("numpy", "scipy", "scikit-learn", "numba")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


def check_threads() -> None:
    """Stop unless numerical libraries are held to one thread; it must be set before they load."""
    wrong = [name for name in THREAD_VARIABLES if os.environ.get(name) != "1"]
    if wrong:
        raise SystemExit(f"Set {'=1 '.join(wrong)}=1 before starting (make bench does).")


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return CPU seconds and the result."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


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


def kept(piece: str, measure: Callable[[], Any], *, quick: bool = False) -> Any:
    """Return a piece of results from its file in output/pieces, or measure and write it.

    A run that was cut off goes on where it was, but not with pieces of other code.
    """
    if quick:
        return measure()
    path = OUTPUT / "pieces" / code_now() / f"{piece}.json"
    if not path.exists():
        found = measure()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(found))
    return json.loads(path.read_text())


@cache
def code_now() -> str:
    """Return a few letters that change with any code of skfair, or of what benchmarks share."""
    files = [*(HERE.parent / "skfair").rglob("*.py"), *HERE.rglob("_*.py")]
    texts = (path.read_bytes() for path in sorted(files))
    return hashlib.sha256(b"".join(texts)).hexdigest()[:12]


def data_folder() -> Path | None:
    """Return the folder of real data sets, or None with a line that says so."""
    folder = os.environ.get("SKFAIR_DATA")
    if folder and (Path(folder) / "datasets.json").exists():
        return Path(folder)
    print("  skipped: SKFAIR_DATA names no folder with datasets.json")
    return None


def measure_parts(
    parts: Mapping[str, Callable[[], Any]], only: str | None = None
) -> dict[str, Any]:
    """Return what the parts of a benchmark found: all of them, or the one that is asked for.

    A part whose data set is missing says so and is left out, and the others go on.
    """
    if only is not None and only not in parts:
        raise SystemExit(f"There is no part {only!r} to measure. Choose from: {', '.join(parts)}.")
    found = {}
    for name, measure in parts.items():
        if only in (None, name):
            print(f"   {name}", flush=True)
            try:
                found[name] = measure()
            except FileNotFoundError as error:
                print(f"   skipped: {error}", flush=True)
    return {name: results for name, results in found.items() if not is_empty(results)}


def is_empty(results: Any) -> bool:
    """Whether nothing was measured: all parts were skipped, or left out."""
    if isinstance(results, Mapping):
        return "skipped" in results or all(map(is_empty, results.values()))
    if isinstance(results, list | tuple):
        return all(map(is_empty, results))
    return results is None


def lacks(*modules: str) -> bool:
    """Whether a module is not installed; say so."""
    absent = [name for name in modules if find_spec(name) is None]
    if absent:
        print(f"     skipped: {', '.join(absent)} not installed")
    return bool(absent)


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out warnings that a benchmark provokes: limits of iterations, small groups, rates."""
    # The traps also ask an older version of skfair, which lacks one of its own warnings.
    own = "SmallGroupWarning", "SelectionRateWarning", "ExplainedVarianceWarning"
    known = [getattr(exceptions, name) for name in own if hasattr(exceptions, name)]
    with warnings.catch_warnings():
        for provoked in (ConvergenceWarning, *known):
            warnings.simplefilter("ignore", provoked)
        yield


def in_new_process(
    function: Callable[..., Any], *, folder: Path | str = HERE.parent, **arguments: Any
) -> Any:
    """Call a function of a benchmark in a process of its own, with arguments that JSON can carry.

    Needed where memory is measured: a process never forgets its peak. The code may be that of
    another folder.
    """
    command = [sys.executable, "-m", "benchmarks.harness"]
    command += [function.__module__, function.__name__, json.dumps(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=folder)
    return json.loads(done.stdout)


def memory(field: str = "VmHWM:") -> int:
    """Return the bytes of this process: at its peak (VmHWM) or at present (VmRSS).

    Not ``ru_maxrss``: a child starts with the one of its parent.
    """
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index(field) + 1]) * 1024


class Table(NamedTuple):
    """What a benchmark shows: numbers or words under headings, at most seven columns.

    A column whose heading begins with "/ " is written into the cell of the one before it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def cells(self) -> list[list[str]]:
        """Return headings and rows as text; numbers have three digits, large ones no fraction."""
        starts = [i for i, name in enumerate(self.columns) if not name.startswith("/ ")]
        spans = list(zip(starts, [*starts[1:], len(self.columns)], strict=True))
        text = [
            [in_short(cell) if isinstance(cell, float) else str(cell) for cell in row]
            for row in ([name.removeprefix("/ ") for name in self.columns], *self.rows)
        ]
        joined = [[row[first:last] for first, last in spans] for row in text]
        return [
            [part[0] if set(part) <= {"-", ""} else " / ".join(part) for part in row]
            for row in joined
        ]

    def write_csv(self, path: Path) -> None:
        """Write headings and rows."""
        with path.open("w", newline="") as file:
            csv.writer(file).writerows(self.cells())

    def __str__(self) -> str:
        lines = self.cells()
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            "     " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines
        ]
        return "\n".join([f"   {self.title}", *(line.rstrip() for line in text)])


class Lead(NamedTuple):
    """By how much one method is ahead of another, as a share: sentences show it with its error."""

    mean: float
    error: float

    def __format__(self, spec: str) -> str:
        spec = spec or "+.2f"
        return (
            f"{100 * self.mean:{spec}} points (standard error {100 * self.error:{spec.strip('+')}})"
        )


def mean_lead(leads: Sequence[float]) -> Lead:
    """Return the mean of the leads in several cases, and its standard error over the cases."""
    return Lead(float(np.mean(leads)), float(np.std(leads, ddof=1) / np.sqrt(len(leads))))


def filled(text: str, page: str = "") -> str:
    """Return the text of a page with the numbers of records, and the versions of libraries.

    ``{monitor.persons:.0%}`` is a number of the record ``monitor``. On the page of a record,
    ``{least:.1f}`` is one of its own. A number that a record does not have is a ``KeyError``.
    """
    read_before: dict[str, dict[str, Any]] = {}

    def number(found: re.Match[str]) -> str:
        record, name, form = found[1] or page, found[2], found[3] or ""
        if record not in read_before:
            is_there = (RECORDS / f"{record}.json").exists()
            read_before[record] = quotable(record) if is_there else {}
        known = read_before[record]
        if found[1] and known and name not in known:
            raise KeyError(f"{found[0]}: numbers() of {script_of(record)} offers no {name!r}.")
        return format(known[name], form) if name in known else found[0]

    return re.sub(r"\{(?:(\w+)\.)?([\w-]+)(?::([^{}]*))?\}", number, text)


def quotable(name: str) -> dict[str, Any]:
    """Return what pages may quote of a record: its numbers, versions, and when it was measured."""
    record, module = read(name), module_of(name)
    offered = module.numbers(record["results"]) if hasattr(module, "numbers") else {}
    measured = f"measured on {record['date']}{', before its results changed' * is_changed(record)}"
    return {**record["versions"], "measured": measured, **offered}


def in_short(number: float) -> str:
    """Return a number with three digits, or without a fraction if it is large."""
    return f"{number:.0f}" if 1000 <= abs(number) < 1e6 else f"{number:.3g}"


def show(name: str, results: Any, folder: Path, *, say: Callable[[str], None] = print) -> None:
    """Print the tables of a benchmark, and write them (.csv) and its pictures (.png).

    Without results, as where there are no data, there is nothing to show.
    """
    if not results:
        return
    module = module_of(name)
    folder.mkdir(parents=True, exist_ok=True)
    for slug, table in (module.tables(results) if hasattr(module, "tables") else {}).items():
        say(str(table))
        table.write_csv(folder / f"{name}-{slug}.csv")
    if hasattr(module, "pictures") and not lacks("matplotlib"):
        from matplotlib import rc_context

        with rc_context(rc_params()):
            for slug, figure in module.pictures(results).items():
                # Cutting off what is empty draws a picture twice; with a layout nothing is.
                box = "tight" if figure.get_layout_engine() is None else None
                figure.savefig(folder / f"{name}-{slug}.png", dpi=DOTS, bbox_inches=box)


def rc_params() -> dict[str, Any]:
    """Return the settings of matplotlib for every picture: the displays' colours, no frames."""
    from cycler import cycler

    from skfair.inspection._style import PALETTE

    frameless = {"axes.spines.top": False, "axes.spines.right": False}
    return {"axes.prop_cycle": cycler(color=PALETTE), **frameless}


def module_of(name: str) -> Any:
    """Return the module of a benchmark."""
    return import_module(script_of(name))


def names() -> list[str]:
    """Return the names of all benchmarks."""
    files = [*HERE.glob("*.py"), *(HERE / "papers").glob("*.py")]
    parts = {"harness", "check", "canaries"}
    return sorted(path.stem for path in files if path.stem[0] != "_" and path.stem not in parts)


def processor() -> str:
    """Return the name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    named = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def installed(peer: str) -> str:
    """Return the version of a library that is compared."""
    try:
        return version(peer)
    except PackageNotFoundError:
        return "not installed"


def write(name: str, results: Any, folder: Path = OUTPUT, *, seconds: float | None = None) -> Path:
    """Write results as JSON with the machine, the commit, and the seconds of the whole run."""
    folder.mkdir(exist_ok=True)
    asked = ["git", "log", "-1", "--format=%h", "--", "skfair"]  # the commit of what is measured
    try:
        commit = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    record = {
        "benchmark": name,
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {part: installed(part) for part in (*PARTS, *compared(name))},
        "date": f"{date.today()}",
        "commit": commit,
        "command": "make bench-check KEEP=1"
        if name == "check"
        else f"make bench NAME={name} KEEP=1",
        "canary": None,  # canaries.store adds it
        **({} if seconds is None else {"seconds": round(seconds)}),
        "results": results,
    }
    path = folder / f"{name}.json"
    path.write_text(in_lines(record))
    return path


def in_lines(record: Mapping[str, Any]) -> str:
    """Return a record as JSON, each field on its line: a new canary changes one line."""
    fields = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in record.items())
    return "{\n" + ",\n".join(fields) + "\n}\n"


def read(name: str, folder: Path = RECORDS) -> Any:
    """Return a record that was written before."""
    return json.loads((folder / f"{name}.json").read_text())


if __name__ == "__main__":  # a piece in its own process: MODULE FUNCTION ARGUMENTS
    piece = getattr(import_module(sys.argv[1]), sys.argv[2])
    with quiet():
        print(json.dumps(piece(**json.loads(sys.argv[3]))))
