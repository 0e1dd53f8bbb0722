"""Some cases of the attack on every estimator, and planted faults that it must see."""

import itertools
import os
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator

from tests.fuzz import attack
from tests.fuzz.hard_fits import Count, Fit, Pair, fits
from tests.fuzz.hard_rows import draw_rows
from tests.fuzz.verdict import Breach, judge
from tests.seeds import generator, global_seed

# So many take a few seconds of a processor; models within intervals take longest.
N_CASES = dict.fromkeys(fits(), 4) | {"FairDecisionClassifier": 3, "PartialParityClassifier": 2}
if wanted := os.environ.get("SKFAIR_FUZZ"):  # by make fuzz
    N_CASES = dict.fromkeys(fits(), int(wanted))
SEED = int(os.environ.get("SKFAIR_SEED", global_seed()))


@pytest.mark.slow
@pytest.mark.parametrize("name", fits())
def test_nothing_is_lost_and_nothing_is_silent(name):
    found, n_accepted = [], 0
    for number in range(N_CASES[name]):
        case = attack.attack_case(name, SEED, number)
        verdict = judge(case)
        n_accepted += verdict.kind == "accepted"
        if verdict.is_fault:
            found.append(f"case {number}, {verdict.kind}: {verdict.message}\n    {case.title}")
    assert not found, "\n".join(found)
    fewest = binom.ppf(1e-7, N_CASES[name], 0.5)
    assert n_accepted >= fewest, "most cases are refused: the attack says little"


COUNTER = itertools.count()


class Faulty(BaseEstimator):
    """Predicts the larger half of rows, in a wrong way if it is told to."""

    def __init__(self, fault="", sensitive=None):
        self.fault, self.sensitive = fault, sensitive

    def fit(self, X, y, sensitive_features=None):
        if self.fault == "a failed fit changes the estimator":
            self.n_features_ = object()
        if isinstance(self.sensitive, float):
            raise ValueError("sensitive must name columns")
        is_moved = hasattr(X, "index") and any(
            hasattr(one, "index") and not one.index.equals(X.index)
            for one in (y, sensitive_features)
        )
        if is_moved and self.fault != "takes another order of rows":
            raise ValueError("another order of rows")
        self.middle_ = np.median(np.asarray(X))
        if self.fault == "equal fits differ":
            self.middle_ += next(COUNTER)
        if self.fault == "the clock changes a fit":
            self.middle_ += time.time() > time.clock_gettime(time.CLOCK_REALTIME) + 60
        if self.fault == "fits in threads differ":
            self.middle_ += threading.current_thread() is threading.main_thread()
        if self.fault == "the process is changed":
            np.random.rand()  # noqa: NPY002
        return self

    def predict(self, X):
        middle = np.median(X) if self.fault == "row by row: other predictions" else self.middle_
        return X[:, 0] > middle


FAULTS = [
    "silent breach",
    "reported is not counted",
    "row by row: other predictions",
    "equal fits differ",
    "the clock changes a fit",
    "takes another order of rows",
    "a failed fit changes the estimator",
    "fits in threads differ",
    "the process is changed",
]


@pytest.mark.parametrize("fault", [*FAULTS, ""])
def test_planted_faults_are_seen(fault, monkeypatch):
    rng = generator(0)
    rows = replace(draw_rows(rng, [40], has_weights=False), X=rng.normal(size=(40, 2)))
    pair = Pair("train_disparity_", 0.1, 0.2 if fault == "reported is not counted" else 0.1)
    count = Count([pair], float(fault == "silent breach"))
    fit = Fit(Faulty(fault), rows, lambda model: count, rows.y)
    monkeypatch.setattr(attack, "IN_THREADS", 1)
    if not fault:
        attack.attack(fit, rng)
        return
    with pytest.raises(Breach) as caught:
        attack.attack(fit, rng)
    assert fault in caught.value.kind.split(", ")
