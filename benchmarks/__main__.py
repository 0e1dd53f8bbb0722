"""Run one benchmark by name, or all of them: ``python -m benchmarks [NAME] [--quick]``."""

import argparse
import pkgutil
from importlib import import_module

import benchmarks
from benchmarks.harness import check_threads, write

NAMES = [
    module.name
    for module in pkgutil.iter_modules(benchmarks.__path__)
    if module.name not in ("harness", "__main__") and not module.name.startswith("_")
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("name", nargs="?", choices=NAMES, help="default: all")
    parser.add_argument("--quick", action="store_true", help="smaller data, fewer rounds")
    arguments = parser.parse_args()
    check_threads()
    for name in [arguments.name] if arguments.name else NAMES:
        print(f"== {name}")
        results = import_module(f"benchmarks.{name}").main(quick=arguments.quick)
        print(f"   written to {write(name, results)}")


if __name__ == "__main__":
    main()
