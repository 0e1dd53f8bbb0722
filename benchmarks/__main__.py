"""Run one benchmark by name, or all of them.

``python -m benchmarks [NAME] [--only PART] [--quick] [--keep]`` prints the tables of a benchmark.
Its record (.json), tables (.csv) and pictures (.png) are written to benchmarks/output. The command
ends with code 1 if a benchmark could measure nothing, such as one whose data sets are missing.
"""

import argparse
import os
import time
from inspect import signature
from typing import Any

from benchmarks import canaries
from benchmarks.harness import (
    OUTPUT,
    RECORDS,
    check_threads,
    is_empty,
    module_of,
    names,
    quiet,
    show,
    write,
)


def run(name: str, *, keep: bool = False, **options: Any) -> bool:
    """Run a benchmark, and show and write its results; return whether there are any."""
    print(f"== {name}", flush=True)
    start, results = time.perf_counter(), None
    try:
        with quiet():
            results = module_of(name).main(**options)
    except FileNotFoundError as error:
        print(f"   stopped: {error}")
    seconds = time.perf_counter() - start
    if is_empty(results):
        print("   Nothing was measured, so nothing is written.", flush=True)
        return False
    show(name, results, OUTPUT)
    path = write(name, results, RECORDS if keep else OUTPUT, seconds=seconds)
    if keep:
        canaries.store(name, canaries.run(name))
    folder, record = os.path.relpath(OUTPUT), os.path.relpath(path)
    if options["quick"]:
        print("   A quick run uses less data: these are not the numbers of the page.")
    print(f"   {seconds:.0f} s, tables and pictures are in {folder}, the record is {record}")
    return True


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", nargs="?", choices=names(), help="default: all")
    parser.add_argument(
        "--only", metavar="PART", help="one part of a paper's benchmark, such as 'table 1'"
    )
    parser.add_argument("--quick", action="store_true", help="smaller data, fewer rounds")
    parser.add_argument(
        "--keep", action="store_true", help="write to records/, which the site is built from"
    )
    arguments = parser.parse_args()
    options = {"quick": arguments.quick}
    if arguments.only is not None:
        name = arguments.name
        if name is None or "only" not in signature(module_of(name).main).parameters:
            parser.error(f"--only needs the name of a benchmark that has parts, got {name!r}")
        if arguments.keep:
            parser.error("--keep needs all parts of a benchmark, because pages show all of them")
        options["only"] = arguments.only
    check_threads()
    chosen = [arguments.name] if arguments.name else names()
    empty = [name for name in chosen if not run(name, keep=arguments.keep, **options)]
    if empty:
        raise SystemExit(
            f"{', '.join(empty)} measured nothing. The lines above say what is missing. For data "
            "sets see doc/how_to/datasets.rst, and copy benchmarks/datasets.json, which describes "
            "them, into the folder SKFAIR_DATA."
        )


if __name__ == "__main__":
    main()
