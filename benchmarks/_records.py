"""The code and the libraries that a record was measured with, and whether they have changed since.

A record keeps a fingerprint of the files of skfair that its script reaches by imports, and of the
modules that call rivals and make data, without comments and docstrings.
``python -m benchmarks.check`` fails where one of them has changed since, or where a library that
the script compares has no version. A record that is kept although it is older has
``"code": null``: its page says so.
"""

import ast
import hashlib
from collections.abc import Iterator
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
FIELDS = ("benchmark", "machine", "python", "versions", "date", "commit", "command", "code")
TABLES = {"__init__", "_all"}  # of names: only the imports of a name that is asked for are followed
SHOWING = {"harness", "_drawing"}  # what is measured does not depend on them
Import = tuple[str, str]  # a module, and a name in it or ""


def script_of(name: str) -> str:
    """Return the module of a benchmark; those of the papers lie in a folder of their own."""
    is_paper = (ROOT / "benchmarks" / "papers" / f"{name}.py").exists()
    return f"benchmarks.{'papers.' if is_paper else ''}{name}"


def file_of(module: str) -> Path | None:
    """Return the file of a module of this checkout."""
    path = ROOT.joinpath(*module.split("."))
    found = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()]
    return found[0] if found else None


@cache
def imports(path: Path) -> tuple[Import, ...]:
    """Return what a file imports, also within functions."""
    found: list[Import] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.module or "", alias.name) for alias in node.names]
    return tuple(found)


@cache
def defines(path: Path, name: str) -> bool:
    """Whether a file defines a name; a table may import it from anywhere."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {ast.unparse(target) for target in node.targets}
    return path.stem in TABLES or name in names


def followed(module: str, name: str) -> Iterator[Path | Import]:
    """Yield the file that an import leads to, and the imports in it that run."""
    path = file_of(f"{module}.{name}") or file_of(module)
    if path is None or path.stem in SHOWING:
        return
    if path.stem not in TABLES:
        yield path
        yield from imports(path)
    elif name and path == file_of(module):
        for home, held in imports(path):
            if name != "*" and (held == name or (held == "*" and defines(file_of(home), name))):
                yield home, name
    else:
        yield from imports(path)


@cache
def reached(name: str) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the files that a benchmark measures or measures with, and the libraries compared."""
    todo: list[Import] = [(script_of(name), "")]
    done, files, peers = set(todo), set(), set()
    while todo:
        module, held = todo.pop()
        for found in followed(module, held):
            if isinstance(found, Path):
                files.add(found)
                if "benchmarks" in found.relative_to(ROOT).parts:
                    peers |= {PEERS.get(home.partition(".")[0]) for home, _ in imports(found)}
            elif found not in done:
                done.add(found)
                todo.append(found)
    # Also how rivals are called, and the data: without a rival's ``tol=`` the figures are others.
    beside = (file for file in files if file.match("benchmarks/_*.py"))
    own = (file for file in files if file.is_relative_to(ROOT / "skfair"))
    return tuple(sorted({*own, *beside})), tuple(sorted(peers - {None}))


@cache
def code_of(path: Path) -> str:
    """Return the lines of a file without blank lines, comments and docstrings."""
    text = path.read_text()
    lines = dict(enumerate(text.splitlines(), start=1))
    for node in ast.walk(ast.parse(text)):
        has_text = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if has_text and ast.get_docstring(node, clean=False) is not None:
            for number in range(node.body[0].lineno, node.body[0].end_lineno + 1):
                lines.pop(number)
    return "\n".join(line for line in lines.values() if line.strip() and line.strip()[0] != "#")


def fingerprint(name: str) -> str:
    """Return a few letters that change when code that a benchmark runs changes."""
    found = hashlib.sha256()
    for path in reached(name)[0]:
        found.update(f"{path.relative_to(ROOT)}\n{code_of(path)}\n".encode())
    return found.hexdigest()[:12]


def nameless(record: dict[str, Any]) -> list[str]:
    """Return the libraries that a record compares without a version."""
    return [peer for peer in reached(record["benchmark"])[1] if peer not in record["versions"]]


def is_old(record: dict[str, Any]) -> bool:
    """Whether code that a record measures has changed since."""
    return record["code"] != fingerprint(record["benchmark"])


def faults(record: dict[str, Any]) -> list[str]:
    """Say what a record lacks; one that says itself that it is old lacks fields only."""
    found = [f"does not name its {field}" for field in FIELDS if field not in record]
    if found or record["code"] is None:
        return found
    if is_old(record):
        found.append(
            "code that it measures has changed since: renew it (make bench NAME=... KEEP=1), or "
            'write "code": null into it, and its page says that it is old'
        )
    return found + [f"does not name the version of {peer}" for peer in nameless(record)]


def origin(record: dict[str, Any]) -> str:
    """Return a sentence on where the figures of a page are from, and whether they are old."""
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    took = f" in {record['seconds'] / 60:.0f} minutes" if "seconds" in record else ""
    text = (
        f"*Measured on {record['machine']}, with Python {record['python']}, {versions}, on "
        f"{record['date']} at commit* ``{record['commit']}`` *by* ``{record['command']}``{took}."
    )
    if is_old(record):
        text += " *The code that it measures has changed since.*"
    if nameless(record):
        text += f" *Versions that were not written down: {', '.join(nameless(record))}.*"
    return text
