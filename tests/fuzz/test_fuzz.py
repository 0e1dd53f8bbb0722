"""A few hundred cases of the fuzzer, and planted faults that it must see."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sklearn

import skfair
from skfair.groups.encoding import encode_groups
from tests.fuzz import verdict
from tests.fuzz.__main__ import run, summary
from tests.fuzz.cases import Case, uncovered
from tests.fuzz.verdict import Hang, judge
from tests.fuzz.workers import Worker, crash


def test_every_public_name_and_argument_has_a_strategy():
    """A new one without values in ``tests/fuzz/parameters.py`` fails here."""
    assert uncovered() == []


@pytest.mark.slow
def test_sixty_cases():
    records = run(60, seed=0, only="skfair.", progress=None)
    assert len(records) >= 60
    assert not any(record.verdict.is_fault for record in records), summary(records, 0.0)


def raising(error):
    def run():
        raise error

    return run


ROWS = np.zeros(3)
PLANTED = {
    "an accident": (raising(IndexError("list index out of range")), "undocumented exception"),
    "a subclass": (raising(np.linalg.LinAlgError("Singular matrix")), "undocumented exception"),
    "numpy's words": (lambda: np.zeros(3) + np.zeros(2), "message names nothing"),
    "a tuple index": (raising(ValueError("low > high")), "message names nothing"),
    "not a number": (lambda: float("nan"), "returns NaN"),
    "writes": (lambda: ROWS.fill(1.0), "changes its input"),
    "no fault": (lambda: 0.5, "accepted"),
    "our words": (lambda: encode_groups(None), "rejected"),
    "sees its argument": (raising(ValueError("slack must be a number")), "rejected"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_faults_are_judged(name):
    action, expected = PLANTED[name]
    assert judge(Case(name, {"slack", "sensitive_features"}, [ROWS], action)).kind == expected


def test_a_slow_case_is_stopped(monkeypatch):
    monkeypatch.setattr(verdict, "SECONDS", 0.05)

    def forever():
        while True:
            try:
                sum(range(100))
            except Exception:
                raise AssertionError("a handler of Exception must not see the timer") from None

    assert judge(Case("forever", set(), [], forever)).kind == "longer than 0.05 s"
    assert not issubclass(Hang, Exception)


def test_a_crash_is_seen():
    worker = Worker(crash)
    harmless, fatal = worker.records("skfair.nothing", 5, 3)
    assert not harmless.verdict.is_fault
    assert fatal.verdict.kind == "crash"
    assert fatal.title == "fatal"
    assert fatal.replay == "skfair.nothing:5:3:1"
    worker.stop()


CALL = """
import warnings
import skfair, sklearn
from skfair.cluster import FairKMeans
from tests.fuzz.cases import Case
from tests.fuzz.verdict import judge

assert "checkout" in skfair.__file__ and "checkout" in sklearn.__file__
theirs = judge(Case("theirs", set(), [], lambda: FairKMeans(2).fit([["a"], ["b"]])))
ours = judge(Case("ours", set(), [], lambda: skfair.metrics.group_report(None, None)))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    FairKMeans(2).fit([[0.0], [1.0], [2.0]])
print(theirs.kind, theirs.place.split(":")[0], ours.kind, caught[0].filename)
"""
# A fork for each script: other libraries, which take most of the time, are loaded before.
CALL_FROM_EACH = """
import os, runpy, sys
import hypothesis.strategies, joblib, numba, pandas, scipy.optimize, scipy.stats

for script in sys.argv[1:]:
    child = os.fork()
    if not child:
        folder = os.path.dirname(script)
        sys.path[:0] = [folder, os.path.join(folder, ".venv", "site-packages")]
        runpy.run_path(script)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, script
"""


def checkout_at(folder, place):
    """Copy what the call needs to a place, and return the script that makes it."""
    real = folder / ("checkout/real" if place == "linked" else place)
    packages = real / ".venv" / "site-packages"
    packages.mkdir(parents=True)
    ours, tests = Path(skfair.__file__).parent, Path(__file__).parents[1]
    # What is compiled comes along: compiling it again for each place takes most of the time.
    leave_out = shutil.ignore_patterns("*.tmp.*")
    shutil.copytree(ours, real / "skfair", ignore=leave_out)
    shutil.copytree(tests / "fuzz", real / "tests" / "fuzz", ignore=leave_out)
    shutil.copy(tests / "house.py", real / "tests")
    (packages / "sklearn").symlink_to(Path(sklearn.__file__).parent, target_is_directory=True)
    checkout = folder / place
    if place == "linked":
        checkout = folder / "checkout" / "link"
        checkout.symlink_to(real, target_is_directory=True)
    script = checkout / "skfair_script.py"  # its path begins like that of the package
    script.write_text(CALL)
    return str(script)


def test_the_place_of_the_checkout_says_nothing(tmp_path):
    """Named as git names it, with a space, with both names twice, behind a link."""
    places = ["checkout/skfair", "checkout/my project", "checkout/skfair/sklearn/skfair", "linked"]
    scripts = [checkout_at(tmp_path / str(k), place) for k, place in enumerate(places)]
    command = [sys.executable, "-c", CALL_FROM_EACH, *scripts]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    said = result.stdout.splitlines()
    assert said == [f"rejected skfair/base.py rejected {script}" for script in scripts]
