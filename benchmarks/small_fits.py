"""How long small fits and predictions take, in multiples of scikit-learn's nearest estimator.

CPU time on one thread; both are run in turn in one process, and what is shown is the median over
draws of the ratio of medians, with the smallest and the largest. Most time of a small fit does not
depend on its rows. The time of the first fit in a new process, with kernels compiled and stored,
is beside that of scikit-learn's.
"""

import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression

from benchmarks._drawing import mark, rows_of_dots, small
from benchmarks.harness import Table, alternate, in_new_process

Run = Callable[[], Any]
DRAWS, ROUNDS = 6, 5


def points(n: int, seed: int) -> tuple[Any, Any]:
    """Return ten overlapping clusters whose groups are not alike."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(10, size=n)
    X = rng.normal(0, 2.5, (10, 10))[labels] + rng.normal(size=(n, 10))
    return X, (rng.random(n) < 0.3 + 0.04 * labels).astype(int)


def labelled(n: int, seed: int) -> tuple[Any, Any, Any]:
    """Return rows whose class and group both depend on the first columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 10))
    groups = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    return X, (X[:, :3].sum(axis=1) + rng.normal(size=n) > 0).astype(int), groups


def clusterings(n: int, seed: int) -> dict[str, tuple[Run, Run]]:
    from skfair.cluster import FairKMeans

    X, groups = points(n, seed)
    ours = FairKMeans(10, random_state=0).fit(X, sensitive_features=groups)
    theirs = KMeans(10, n_init=1, random_state=0).fit(X)
    return {
        f"FairKMeans, {n:,} rows": (
            lambda: FairKMeans(10, random_state=0).fit(X, sensitive_features=groups),
            lambda: KMeans(10, n_init=1, random_state=0).fit(X),
        ),
        f"FairKMeans.predict, {n:,} rows": (lambda: ours.predict(X), lambda: theirs.predict(X)),
    }


def _beside_logistic(model: Any, n: int, seed: int) -> tuple[Run, Run]:
    X, y, groups = labelled(n, seed)
    return (
        lambda: model.fit(X, y, sensitive_features=groups),
        lambda: LogisticRegression().fit(X, y),
    )


def cases(seed: int, *, quick: bool) -> dict[str, tuple[Run, Run]]:
    """Return what is compared, by name: ours and theirs, on the rows of a seed."""
    from skfair.classification import ConstrainedERMClassifier, PartialParityClassifier

    erm, partial = ConstrainedERMClassifier(), PartialParityClassifier(random_state=0)
    runs = {
        **clusterings(1000, seed),
        **clusterings(10_000, seed),
        "ConstrainedERMClassifier, 1,000 rows": _beside_logistic(erm, 1000, seed),
        "PartialParityClassifier, 400 rows": _beside_logistic(partial, 400, seed),
    }
    if not quick:
        large = _beside_logistic(partial, 40_000, seed)
        runs["PartialParityClassifier, 40,000 rows"] = large
    return runs


def first_fit(*, ours: bool) -> float:
    """Return the CPU seconds of imports and a first fit, in a new process."""
    rows = labelled(1000, 0)
    start = time.process_time()
    LogisticRegression().fit(*rows[:2])
    if ours:
        from skfair.classification import ConstrainedERMClassifier

        ConstrainedERMClassifier().fit(*rows[:2], sensitive_features=rows[2])
    return time.process_time() - start


def first_clustering(*, ours: bool) -> float:
    """Return the CPU seconds of imports and a first clustering, in a new process."""
    X, groups = points(1000, 0)
    start = time.process_time()
    KMeans(10, n_init=1, random_state=0).fit(X)
    if ours:
        from skfair.cluster import FairKMeans

        FairKMeans(10, random_state=0).fit(X, sensitive_features=groups)
    return time.process_time() - start


def _seconds_beyond(first: Callable[..., float]) -> float:
    pairs = [
        (in_new_process(first, ours=True), in_new_process(first, ours=False)) for _ in range(3)
    ]
    return median(ours - theirs for ours, theirs in pairs)


def main(*, quick: bool = False) -> dict[str, Any]:
    ratios: dict[str, list[float]] = {}
    for seed in range(2 if quick else DRAWS):
        for name, (ours, theirs) in cases(seed, quick=quick).items():
            with warnings.catch_warnings():  # that limits are below the noise floor
                warnings.simplefilter("ignore", UserWarning)
                times = alternate({"ours": ours, "theirs": theirs}, ROUNDS)
            ratios.setdefault(name, []).append(times["ours"]["cpu"] / times["theirs"]["cpu"])
    return {
        "ratios": ratios,
        "first": {
            "ConstrainedERMClassifier": _seconds_beyond(first_fit),
            "FairKMeans": _seconds_beyond(first_clustering),
        },
    }


def tables(results: Any) -> dict[str, Table]:
    """Return the ratios, and the seconds that a first fit takes beyond scikit-learn's."""
    rows = [
        [name, f"{median(all_):.1f}", f"{min(all_):.1f} to {max(all_):.1f}"]
        for name, all_ in results["ratios"].items()
    ]
    first = [[name, f"{seconds:.2f}"] for name, seconds in results["first"].items()]
    columns = ["what", "median", "smallest to largest"]
    return {
        "ratios": Table("CPU time in multiples of scikit-learn's", columns, rows),
        "first": Table("Seconds of the first fit beyond scikit-learn's", ["estimator", "s"], first),
    }


def pictures(results: Any) -> dict[str, Any]:
    """Draw the ratio of each draw."""
    figure, (axes,) = small(height=2.4)
    axes.set_xscale("log")
    rows_of_dots(axes, results["ratios"])
    mark(axes, 1, "as long as scikit-learn")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("CPU time, multiples of scikit-learn's nearest estimator")
    return {"picture": figure}
