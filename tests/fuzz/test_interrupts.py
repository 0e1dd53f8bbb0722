"""Ctrl+C: a few moments of every fit, and a process of its own that it ends."""

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import skfair
from tests.fuzz.interrupts import run
from tests.public import discover_estimators

KERNELS = Path(skfair.__file__).parent / "_kernels"
FILES = sorted(set(KERNELS.glob("*.py")) - {KERNELS / "declaring.py"})

N_MOMENTS = int(os.environ.get("SKFAIR_FUZZ", "2"))  # make fuzz has more

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(discover_estimators()))
def test_an_interrupt_leaves_everything_as_it_was(name):
    found = run(name, N_MOMENTS, seed=0)
    assert [one.fault for one in found if one.fault] == []


def test_an_interrupt_ends_a_process_as_python_ends_and_loses_no_output():
    # The first fit loads kernels: numba does that within callbacks that swallow an interrupt.
    code = (
        "import signal, warnings, numpy as np; warnings.simplefilter('ignore')\n"
        "from skfair.cluster import FairKMeans\n"
        # What a shell starts in the background ignores Ctrl+C, and so do its own processes.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "rng = np.random.default_rng(0); X = rng.normal(size=(5000, 5))\n"
        "sex, weight = rng.integers(0, 2, 5000), rng.random(5000)\n"
        "def fit(): FairKMeans(4, n_init=3).fit(X, sensitive_features=sex, sample_weight=weight)\n"
        "fit(); print('before', flush=True)\n"
        "try:\n"
        "    while True: fit()\n"
        "finally: print('after')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "before\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert out == "after\n"
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize(
    "file",
    FILES,
    ids=lambda file: file.stem,
)
def test_kernels_return_nothing_that_python_code_makes(file):
    """An interrupt while a class of Python is called from compiled code ends the process."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    classes = {one.name for one in tree.body if isinstance(one, ast.ClassDef)}
    functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    calls = [
        one for function in functions for one in ast.walk(function) if isinstance(one, ast.Call)
    ]
    made = {one.func.id for one in calls if isinstance(one.func, ast.Name)}
    assert not classes & made
