"""Each wing can be deleted: everything else is imported, and its tests are collected."""

import os
import re
import shutil
import sys
from pathlib import Path
from subprocess import run

import pytest

import skfair
from skfair.utils.wings import wings

ROOT = Path(skfair.__file__).parents[1]
COPIED = (
    *("skfair", "tests", "examples", "doc"),
    *("conftest.py", "setup.cfg", "pyproject.toml", "README.md"),
)
WINGS = [wing.__package__ for wing in wings()]
EVERYTHING_ELSE = """
import warnings
from tests.public import package_modules, public_objects

warnings.simplefilter("ignore")
print(len(package_modules()), len([*public_objects()]))
"""


def built_on(wing):
    """The wings that import it: algorithms of papers go with the family that they are for.

    A file ``display.py`` is not counted, because its family works without it, and neither is an
    ``__init__.py``, which names what wings add only for type checkers.
    """
    imports = re.compile(rf"^\s*(from|import) {re.escape(wing)}\b", re.MULTILINE)
    return [
        other
        for other in WINGS
        if not other.startswith(wing)
        and any(
            imports.search(file.read_text())
            for file in folder_of(other).rglob("*.py")
            if file.name not in ("display.py", "__init__.py")
        )
    ]


def names_of(wing):
    return sys.modules[f"{wing}.wing"].NAMES


def folder_of(wing, root=ROOT):
    return root.joinpath(*wing.split("."))


@pytest.fixture(
    params=[
        pytest.param(wing, marks=pytest.mark.slow if wing.startswith("skfair.papers.") else ())
        for wing in WINGS
    ]
)
def without(request, tmp_path):
    """A copy of the repository without a wing and without its tests."""
    for name in COPIED:
        place, copy = ROOT / name, tmp_path / name
        if place.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "_build", "auto_examples", "generated")
            shutil.copytree(place, copy, ignore=ignored)
        else:
            shutil.copy(place, copy)
    # Benchmarks compare all families, and those of the checkout are not meant.
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__init__.py").touch()
    gone = [request.param, *built_on(request.param)]
    for wing in gone:
        shutil.rmtree(folder_of(wing, tmp_path))
        tests = folder_of(wing.replace("skfair", "tests", 1), tmp_path)
        shutil.rmtree(tests, ignore_errors=True)
    if request.param == "skfair.inspection":  # displays of families stand on what it has
        for file in [
            *tmp_path.glob("skfair/**/display.py"),
            *tmp_path.glob("tests/**/test_display.py"),
        ]:
            file.unlink()
    # Papers are compared with each other: a test that names an algorithm is one of its tests, and
    # so is one that is made with such a test.
    names = {name for wing in gone for public in names_of(wing).values() for name in public}
    names |= {wing.rpartition(".")[2] for wing in gone}
    while names:
        named = re.compile(rf"\b({'|'.join(names)})\b")
        files = (tmp_path / "tests" / "papers").rglob("*.py")
        found = [file for file in files if named.search(file.read_text())]
        for file in found:
            file.unlink()
        names = {file.stem for file in found}
    return request.param, tmp_path


def said(folder, *command):
    """Run Python in a folder that holds the package."""
    own = {**os.environ, "PYTHONPATH": str(folder)}
    done = run([sys.executable, *command], cwd=folder, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_everything_else_is_imported_and_a_name_of_the_wing_gets_a_sentence(without):
    wing, folder = without
    modules, names = map(int, said(folder, "-c", EVERYTHING_ELSE).split())
    assert modules > 300
    assert names > 100
    offered = [
        f"{public} import {name}"
        for public, names in names_of(wing).items()
        for name in names
        if not public.startswith(wing)
    ]
    call = "try:\n    from {}\nexcept ImportError as error:\n    print(error)\n"
    answers = said(folder, "-c", "".join(map(call.format, offered)))
    assert answers.count("of a part of skfair that is not installed.\n") == len(offered)


@pytest.mark.slow
def test_every_other_test_is_collected_and_first_steps_pass(without):
    _, folder = without
    quiet = ("-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert " tests collected" in said(folder, *quiet, "--collect-only", "tests")
    assert " passed" in said(folder, *quiet, "tests/test_first_steps.py")
