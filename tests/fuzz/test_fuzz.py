"""Odd calls of everything public, drawn by hypothesis, and planted faults that it must see."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from skfair.datasets import _openml
from skfair.groups.encoding import encode_groups
from tests.fuzz import verdict
from tests.fuzz.cases import Case, draw_case, public_objects, uncovered
from tests.fuzz.verdict import Hang, judge

# ``make fuzz`` has more. The first case of a name is a plain call of it.
N_CASES = int(os.environ.get("SKFAIR_FUZZ", "2"))


@pytest.fixture
def _shut_off(monkeypatch, tmp_path):
    """No network, no folder of data, and a folder for what a ``data_home`` of "nowhere" makes."""

    def refuse(*args, **kwargs):
        raise ConnectionError("there is no network for odd calls")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr(_openml, "fetch_openml", refuse)  # its retries wait for seconds
    monkeypatch.delenv("SKFAIR_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


def test_every_public_name_and_argument_has_a_strategy():
    """A new one without values in ``tests/fuzz/parameters.py`` fails here."""
    assert uncovered() == []


@pytest.mark.slow
@pytest.mark.usefixtures("_shut_off")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", public_objects())
@settings(
    max_examples=N_CASES,
    derandomize="SKFAIR_FUZZ" not in os.environ,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_a_call_works_or_its_error_says_what_is_wrong(name, data):
    case = draw_case(data.draw, name)
    found = judge(case)
    assert not found.is_fault, f"{found.kind} at {found.place}: {found.message}\n{case.title}"


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
