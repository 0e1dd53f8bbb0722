"""Run one benchmark by name, or all of them: ``python -m benchmarks [NAME] [--quick] [--keep]``."""

import argparse
import time

from benchmarks.harness import (
    OUTPUT,
    RECORDS,
    check_threads,
    module_of,
    names,
    quiet,
    show,
    write,
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", nargs="?", choices=names(), help="default: all")
    parser.add_argument("--quick", action="store_true", help="smaller data, fewer rounds")
    parser.add_argument(
        "--keep", action="store_true", help="write to records/, which the site is built from"
    )
    arguments = parser.parse_args()
    check_threads()
    for name in [arguments.name] if arguments.name else names():
        print(f"== {name}", flush=True)
        start = time.perf_counter()
        with quiet():
            results = module_of(name).main(quick=arguments.quick)
        seconds = time.perf_counter() - start
        show(name, results, OUTPUT)
        folder = RECORDS if arguments.keep else OUTPUT
        path = write(name, results, folder, seconds=seconds)
        print(f"   {seconds:.0f} s, written to {path.parent.name}/{path.name}", flush=True)


if __name__ == "__main__":
    main()
