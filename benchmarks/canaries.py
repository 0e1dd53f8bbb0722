"""Do the benchmarks still give the results of their records? ``python -m benchmarks.canaries``.

A *canary* is one small cell of a benchmark, a few seconds of CPU time. Its results stand in the
record. This command runs the canaries of all benchmarks, or of those that are named, and says of
each one

- "reproduced": all results are the same, up to the rounding of other processors (``RELATIVE``),
- "differs": the first numbers that are not, from what to what, which is a failure (exit code 1),
- "runs": the benchmark has no record with a canary yet,
- "skipped": data or a library are missing.

CPU time is shown if it is more than ``SLOWER`` times longer or shorter, and never fails. With
``--keep`` the date, or what differs, is written into the record, from which its page takes it.

The canary of a module is its function ``canary()``, which takes no arguments, needs no peer and
returns plain data, or else ``main(quick=True)``. What stands under a name in ``TIMES`` is a time
and not compared.
"""

import argparse
import io
import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from datetime import date
from functools import partial
from math import isclose, isnan
from typing import Any, NamedTuple

from benchmarks.harness import (
    RECORDS,
    check_threads,
    data_folder,
    in_lines,
    is_empty,
    module_of,
    names,
    quiet,
    timed,
)
from benchmarks.harness import read as read_record

# Sums are rounded differently by the kernels of other processors: with OPENBLAS_CORETYPE=Prescott
# the largest relative difference of a result was 1.7e-7, in networks. A tenth of RELATIVE would
# fail there; ten times as much would hide a change of one in 100,000.
RELATIVE, ABSOLUTE = 1e-6, 1e-9
SLOWER = 1.5  # CPU seconds of the same canary on a shared machine differ by less
TIMES = {"cpu", "wall", "first", "seconds", "memory"}
N_SHOWN = 3  # numbers that differ


class Found(NamedTuple):
    """What running a canary found."""

    name: str
    results: Any = None
    seconds: float = 0.0
    skipped: str = ""
    differs: Sequence[str] = ()  # sentences

    def text(self, before: Mapping[str, Any] | None) -> str:
        """Return a line for people, also on the time that the canary took before."""
        if self.skipped:
            return f"{self.name}: skipped, {self.skipped}"
        if self.differs:
            known = ", as its page says" if before and "differs" in before else ""
            return "\n      ".join([f"{self.name}: differs{known}", *self.differs])
        verdict = "reproduced" if before else "runs"
        return f"{self.name}: {verdict}{self._pace(before)}, {self.seconds:.1f} s"

    def _pace(self, before: Mapping[str, Any] | None) -> str:
        was = before["seconds"] if before else self.seconds
        if max(was, self.seconds) < 1 or was / SLOWER <= self.seconds <= SLOWER * was:
            return ""
        return f", {'slower' if self.seconds > was else 'faster'} (was {was:.1f} s)"


def run(name: str) -> Found:
    """Run the canary of a benchmark; an error is something that differs."""
    module = module_of(name)
    canary = getattr(module, "canary", None) or partial(module.main, quick=True)
    try:
        with quiet(), warnings.catch_warnings(), redirect_stdout(io.StringIO()) as said:
            warnings.simplefilter("ignore")  # some benchmarks provoke every warning there is
            seconds, results = timed(lambda: json.loads(json.dumps(canary())))
    except FileNotFoundError as error:
        folder = "" if data_folder() else "SKFAIR_DATA names no folder of data sets: "
        return Found(name, skipped=f"{folder}{error}")
    except ImportError as error:
        if (error.name or "skfair").partition(".")[0] in ("skfair", "benchmarks"):
            return Found(name, differs=[f"it stops: {error!r}"])
        return Found(name, skipped=f"{error.name} is not installed")
    except Exception as error:  # whatever stops it
        return Found(name, differs=[f"it stops: {error!r}"])
    if is_empty(results):
        reasons = [line.strip() for line in said.getvalue().splitlines() if "skipped" in line]
        return Found(name, skipped=(reasons or ["nothing was measured"])[-1])
    return Found(name, results, seconds)


def leaves(results: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each number or word of results, without times, and where it stands."""
    if isinstance(results, Mapping | list):
        pairs = results.items() if isinstance(results, Mapping) else enumerate(results)
        for key, value in pairs:
            if key not in TIMES:
                yield from leaves(value, f"{path}, {key}" if path else f"{key}")
    else:
        yield path, results


def is_same(was: Any, now: Any) -> bool:
    """Whether two results are equal; numbers, up to rounding."""
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in (was, now)):
        return bool(was == now)
    both_nan = isnan(was) and isnan(now)
    return both_nan or isclose(was, now, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def differences(was: Any, now: Any) -> list[str]:
    """Return a sentence for each of the first results that differ, and how many there are."""
    before, after = dict(leaves(was)), dict(leaves(now))
    found = [
        f"{path}: from {_shown(before, path)} to {_shown(after, path)}"
        for path in dict.fromkeys([*before, *after])
        if path not in before or path not in after or not is_same(before[path], after[path])
    ]
    if len(found) > N_SHOWN:
        found[N_SHOWN:] = [f"and {len(found) - N_SHOWN} more of {len(before)} results"]
    return found


def _shown(results: Mapping[str, Any], path: str) -> str:
    value = results.get(path, "nothing")
    return f"{value:.6g}" if isinstance(value, float) else f"{value}"


def checked(name: str, before: Mapping[str, Any] | None) -> Found:
    """Run a canary and compare it with what its record holds."""
    found = run(name)
    if before is None or found.skipped or found.differs:
        return found
    return found._replace(differs=differences(before["results"], found.results))


def updated(before: Mapping[str, Any] | None, found: Found) -> Mapping[str, Any] | None:
    """Return what a record holds after its canary was run."""
    today = f"{date.today()}"
    if found.skipped or (before is None and found.differs):
        return before
    if before is None:
        return {"date": today, "seconds": round(found.seconds, 1), "results": found.results}
    rest = {key: value for key, value in before.items() if key not in ("differs", "checked")}
    if found.differs:
        return {**rest, "checked": today, "differs": [*found.differs]}
    return {**rest, "reproduced": today}


def has_record(name: str) -> bool:
    return (RECORDS / f"{name}.json").exists()


def store(name: str, found: Found) -> None:
    """Write into a record what its canary found."""
    record = read_record(name)
    record["canary"] = updated(record["canary"], found)
    (RECORDS / f"{name}.json").write_text(in_lines(record))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.canaries", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--keep", action="store_true", help="write what is found into the records")
    arguments = parser.parse_args()
    if unknown := sorted({*arguments.names} - {*names()}):
        parser.error(f"There is no benchmark {', '.join(unknown)}.")
    check_threads()
    n_differ = 0
    for name in arguments.names or names():
        before = read_record(name).get("canary") if has_record(name) else None
        found = checked(name, before)
        n_differ += bool(found.differs)
        print(f"   {found.text(before)}", flush=True)
        if arguments.keep and has_record(name):
            store(name, found)
    sys.exit(1 if n_differ else 0)


if __name__ == "__main__":
    main()
