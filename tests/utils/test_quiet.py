"""Lines of HiGHS stay away from the screen; lines of others do not."""

import os
import subprocess
import sys

import pytest

from skfair.utils.quiet import without_highs_lines

# Mixed programmes with very large coefficients, which HiGHS repairs while it prints.
PROGRAMME = """
import os
from contextlib import nullcontext
import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from skfair.utils.quiet import without_highs_lines

rng = np.random.default_rng(2)
n, m = int(rng.integers(4, 14)), int(rng.integers(2, 8))
large = 10.0 ** rng.integers(4, 9)
on = np.hstack([np.eye(n), -large * np.eye(n)])
sums = np.hstack([rng.integers(0, 5, (m, n)) * rng.random(), np.zeros((m, n))])
with {guard}():
    os.write(1, b"a line of a log\\n")
    found = milp(
        np.append(rng.random(n), rng.random(n) * 10),
        integrality=np.append(np.zeros(n), np.ones(n)),
        bounds=Bounds(0, np.append(np.full(n, np.inf), np.ones(n))),
        constraints=[
            LinearConstraint(on, -np.inf, 0),
            LinearConstraint(sums, rng.random(m) * large / 1e3, np.inf),
        ],
    )
print("status", found.status)
"""


def said(guard):
    """Return what reaches standard output in a process of its own."""
    command = [sys.executable, "-c", PROGRAMME.format(guard=guard)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_highs_says_nothing():
    assert said("without_highs_lines").splitlines() == ["a line of a log", "status 0"]


def test_lines_of_others_are_passed_on_in_order(capfd):
    with without_highs_lines():
        os.write(1, b"first\nHighsMipSolverData::anything\nsecond\n")
    os.write(1, b"third\n")
    assert capfd.readouterr().out == "first\nsecond\nthird\n"


def test_an_error_inside_gives_the_screen_back(capfd):
    with pytest.raises(ValueError, match="inside"), without_highs_lines():
        raise ValueError("inside")
    os.write(1, b"shown\n")
    assert capfd.readouterr().out == "shown\n"


def test_without_a_place_for_files_nothing_is_lost(capfd, monkeypatch):
    monkeypatch.setattr("tempfile.TemporaryFile", _refuse)
    with without_highs_lines():
        os.write(1, b"shown\n")
    assert capfd.readouterr().out == "shown\n"


def _refuse():
    raise OSError("read-only")
