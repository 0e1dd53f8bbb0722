"""How a record was measured, and whether the code of today still gives its results.

Each record keeps a *canary*: the results of one small cell of its benchmark, which
``python -m benchmarks.canaries`` runs again. What it finds stands in the record and on its page.
A change of code that changes no result, such as a new name, changes neither.
"""

import ast
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PEERS = {  # modules and their distributions
    "fairlearn": "fairlearn",
    "oxonfair": "oxonfair",
    "aequitas": "aequitas",
    "sklego": "scikit-lego",
    "aif360": "aif360",
    "humancompatible": "humancompatible-train",
    "holisticai": "holisticai",
    "fairgbm": "fairgbm",
    "lightgbm": "lightgbm",
    "xgboost": "xgboost",
    "torch": "torch",
    "dask": "dask",
    "error_parity": "error-parity",
    "equipy": "equipy",
    "fair_trees": "fair-trees",
}
FIELDS = ("benchmark", "machine", "python", "versions", "date", "commit", "command", "canary")


def script_of(name: str) -> str:
    """Return the module of a benchmark; those of the papers lie in a folder of their own."""
    is_paper = (ROOT / "benchmarks" / "papers" / f"{name}.py").exists()
    return f"benchmarks.{'papers.' if is_paper else ''}{name}"


@cache
def imports(path: Path) -> frozenset[str]:
    """Return the modules that a file imports, and the names in them, also within functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
            found.add(f"{node.module}")
    return frozenset(found)


def compared(name: str) -> tuple[str, ...]:
    """Return the libraries that a benchmark compares, which its own modules import."""
    todo, done, peers = [script_of(name)], set(), set()
    while todo:
        module = todo.pop()
        path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
        if module not in done and path.exists():
            todo += [held for held in imports(path) if held.startswith("benchmarks.")]
            peers |= {PEERS.get(held.partition(".")[0]) for held in imports(path)}
        done.add(module)
    return tuple(sorted(peers - {None}))


def nameless(record: dict[str, Any]) -> list[str]:
    """Return the libraries that a record compares without a version."""
    return [peer for peer in compared(record["benchmark"]) if peer not in record["versions"]]


def faults(record: dict[str, Any]) -> list[str]:
    """Say what a record lacks."""
    found = [f"does not name its {field}" for field in FIELDS if field not in record]
    return found or [f"does not name the version of {peer}" for peer in nameless(record)]


def is_changed(record: dict[str, Any]) -> bool:
    """Whether the canary of a record gave other results when it was last run."""
    return bool((record["canary"] or {}).get("differs"))


def standing(record: dict[str, Any]) -> str:
    """Return in a few words whether the code of today gives the results of a record."""
    canary = record["canary"] or {}
    if is_changed(record):
        return "results have changed since"
    if "reproduced" not in canary:
        return "not run again"
    if canary["date"] > record["date"]:
        return f"results unchanged since {canary['date']}"
    return f"reproduced on {canary['reproduced']}"


def origin(record: dict[str, Any]) -> str:
    """Return sentences on where the figures of a page are from, and whether they still hold."""
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    took = f" in {record['seconds'] / 60:.0f} minutes" if "seconds" in record else ""
    text = (
        f"*Measured on {record['machine']}, with Python {record['python']}, {versions}, on "
        f"{record['date']} at commit* ``{record['commit']}`` *by* ``{record['command']}``{took}."
    )
    text += f" {_canary_words(record)}"
    if nameless(record):
        text += f" *Versions that were not written down: {', '.join(nameless(record))}.*"
    return text


def _canary_words(record: dict[str, Any]) -> str:
    canary = record["canary"] or {}
    if is_changed(record):
        return (
            f"**The results have changed since:** *on {canary['checked']} a small part of it gave "
            f"other numbers than on {canary['date']}.*"
        )
    if "reproduced" not in canary:
        return "*No part of it was run again with later code.*"
    if canary["date"] > record["date"]:
        return (
            f"*A small part of it was first measured on {canary['date']}, with later code, and "
            f"reproduced on {canary['reproduced']}.*"
        )
    return f"*A small part of it was reproduced on {canary['reproduced']}.*"
