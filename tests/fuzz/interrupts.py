"""Ctrl+C at random moments of every fit.

The interrupt has to reach Python soon, and leave the estimator, the threads and the limits of the
libraries as they were. A kernel or a library that runs for long holds it up.
"""

import gc
import signal
import threading
import time
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import is_clusterer
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_info

from tests.public import discover_estimators

# An interrupt that takes longer than this is felt.
SOON = 0.3
# Rows: enough that a fit takes tenths of a second, so that passes over them have several blocks.
N_ROWS = 20_000
FEWER_ROWS = {
    **dict.fromkeys(["FairSpectralClustering", "PartialParityClassifier"], 1500),
    **dict.fromkeys(["ParetoFairKMeans", "FairRanker"], 4000),
}
SETTINGS = {
    "FairDecisionClassifier": {"estimator": GaussianNB(), "group_aware": False},
    "PartialParityClassifier": {"max_disparity": 0.2},
    "FairKMeans": {"n_clusters": 5},
    "ParetoFairKMeans": {"n_clusters": 4},
    "FairSpectralClustering": {"n_clusters": 4},
}


class Interrupted(NamedTuple):
    """What an interrupt did."""

    latency: float | None  # seconds until Python heard of it; None if the fit was over
    is_whole: bool  # whether the estimator is as before
    n_threads: int  # threads that are left over
    has_limits: bool  # whether the libraries have their threads back

    @property
    def fault(self) -> str:
        """What is wrong, if anything is."""
        if self.latency is not None and self.latency > SOON:
            return f"took {self.latency:.2f} s"
        if not self.is_whole:
            return "the estimator has changed"
        if self.n_threads > 0:
            return f"{self.n_threads} threads are left"
        return "" if self.has_limits else "libraries have another number of threads"


def prepared(name: str, rng: np.random.Generator) -> tuple[object, tuple, dict]:
    """Return an estimator and what its fit is given."""
    estimator = discover_estimators()[name](**SETTINGS.get(name, {}))
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    n = FEWER_ROWS.get(name, N_ROWS)
    X, sex = rng.normal(size=(n, 6)), rng.integers(0, 3, n).astype(str)
    y = (X[:, 0] + (sex == "0") + rng.normal(size=n) > 0).astype(int)
    given = {"sensitive_features": sex}
    if name == "FairRanker":
        given["query_id"] = np.repeat(np.arange(n // 20), 20)
    return estimator, (X,) if is_clusterer(estimator) else (X, y), given


def library_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info()]


def interrupted(estimator, rows: tuple, given: dict, after: float) -> Interrupted:
    """Fit, and interrupt that ``after`` so many seconds."""
    # Python runs callbacks of a collection where an exception cannot go on, and would lose it.
    gc.disable()
    before, threads, limits = vars(estimator).copy(), threading.active_count(), library_threads()
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    latency, start = None, time.perf_counter()
    try:
        signal.setitimer(signal.ITIMER_REAL, after)
        estimator.fit(*rows, **given)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        latency = time.perf_counter() - start - after
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        gc.enable()
    now = vars(estimator)
    is_whole = latency is None or (
        now.keys() == before.keys() and all(now[name] is before[name] for name in before)
    )
    deadline = time.monotonic() + 2
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    left = threading.active_count() - threads
    return Interrupted(latency, is_whole, left, library_threads() == limits)


def run(name: str, n_moments: int, seed: int) -> list[Interrupted]:
    """Interrupt fits of an estimator at random moments."""
    rng = np.random.default_rng([seed, n_moments])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator, rows, given = prepared(name, rng)
        estimator.fit(*rows, **given)
        start = time.perf_counter()
        estimator.fit(*rows, **given)
        usual = time.perf_counter() - start
        moments = rng.uniform(0.001, 0.9 * usual, n_moments)
        return [interrupted(estimator, rows, given, moment) for moment in moments]
