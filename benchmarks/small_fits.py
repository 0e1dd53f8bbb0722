"""How long small fits and predictions take, in multiples of scikit-learn's nearest estimator.

CPU time on one thread; both are run in turn in one process, and what is shown is the median over
draws of the ratio of medians, with the smallest and the largest. Most time of a small fit does not
depend on its rows. The time of the first fit in a new process, with kernels stored or still to be
compiled, and of imports is that beyond scikit-learn's.
"""

import importlib
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.linear_model import LogisticRegression

from benchmarks._drawing import mark, rows_of_dots, small
from benchmarks.harness import Table, alternate, in_new_process

Run = Callable[[], Any]
DRAWS, ROUNDS = 6, 5


def points(n: int, seed: int) -> tuple[Any, Any]:
    """Return ten overlapping clusters in twenty columns, whose groups are not alike."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(10, size=n)
    X = rng.normal(0, 2.5, (10, 20))[labels] + rng.normal(size=(n, 20))
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


def predictions(seed: int) -> tuple[Run, Run]:
    """Return predictions of 100,000 rows for twenty centres."""
    from skfair.cluster import FairKMeans

    X, groups = points(100_000, seed)
    ours = FairKMeans(20, random_state=0).fit(X[:5000], sensitive_features=groups[:5000])
    theirs = KMeans(20, n_init=1, random_state=0).fit(X[:5000])
    return lambda: ours.predict(X), lambda: theirs.predict(X)


def weighted(seed: int) -> tuple[Run, Run]:
    """Return clusterings of 60 weighted rows."""
    from skfair.cluster import FairKMeans

    X, groups = points(60, seed)
    weights = np.random.default_rng(seed).uniform(0.5, 2, 60)
    return (
        lambda: FairKMeans(3, random_state=0).fit(
            X, sensitive_features=groups, sample_weight=weights
        ),
        lambda: KMeans(3, n_init=1, random_state=0).fit(X, sample_weight=weights),
    )


def blind_decisions(seed: int) -> tuple[Run, Run]:
    """Return decisions of a booster that do not see the group, and one fit of the booster."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    from skfair.classification import FairDecisionClassifier

    X, y, groups = labelled(50_000, seed)
    booster = HistGradientBoostingClassifier(random_state=0)
    blind = FairDecisionClassifier(booster, cv=3, random_state=0)
    return lambda: blind.fit(X, y, sensitive_features=groups), lambda: booster.fit(X, y)


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
        "FairKMeans, 60 weighted rows": weighted(seed),
        "FairKMeans.predict, 100,000 rows": predictions(seed),
    }
    if not quick:
        runs["FairDecisionClassifier, 50,000 rows, cv=3"] = blind_decisions(seed)
        large = _beside_logistic(partial, 40_000, seed)
        runs["PartialParityClassifier, 40,000 rows"] = large
    return runs


# Estimators with their first fits: the module and name of ours, what it is made with, and theirs.
FIRST = {
    "FairKMeans": ("cluster", (10,), KMeans, {"n_clusters": 10, "n_init": 1}),
    "FairSpectralClustering": ("cluster", (3,), SpectralClustering, {"n_clusters": 3}),
    "FairDecisionClassifier": ("classification", (), LogisticRegression, {}),
    "PartialParityClassifier": ("classification", (), LogisticRegression, {}),
    "ConstrainedERMClassifier": ("classification", (), LogisticRegression, {}),
}


def first_fit(*, name: str, ours: bool, cold: bool) -> float:
    """Return the CPU seconds of imports and a first fit, in a new process."""
    module, options, theirs, settings = FIRST[name]
    X, y, groups = labelled(1000, 0)
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        if cold:
            os.environ["NUMBA_CACHE_DIR"] = folder
        start = time.process_time()
        theirs(**settings).fit(X, y)
        if ours:
            estimator = getattr(importlib.import_module(f"skfair.{module}"), name)
            estimator(*options).fit(X, y, sensitive_features=groups)
        return time.process_time() - start


def first_import(*, name: str, ours: bool) -> float:
    """Return the CPU seconds that an import takes after scikit-learn's own."""
    start = time.process_time()
    if ours:
        module = importlib.import_module(f"skfair.{name}")
        getattr(module, module.__all__[0])  # names are imported when they are asked for
    return time.process_time() - start


def _seconds_beyond(first: Callable[..., float], **arguments: Any) -> float:
    def seconds(ours: bool) -> float:
        return float(in_new_process(first, ours=ours, **arguments))

    return median(seconds(True) - seconds(False) for _ in range(3))


def main(*, quick: bool = False) -> dict[str, Any]:
    ratios: dict[str, list[float]] = {}
    for seed in range(2 if quick else DRAWS):
        for name, (ours, theirs) in cases(seed, quick=quick).items():
            with warnings.catch_warnings():  # that limits are below the noise floor
                warnings.simplefilter("ignore", UserWarning)
                times = alternate({"ours": ours, "theirs": theirs}, ROUNDS)
            ratios.setdefault(name, []).append(times["ours"]["cpu"] / times["theirs"]["cpu"])
    imports = {
        f"import skfair.{name}": _seconds_beyond(first_import, name=name)
        for name in ("metrics", "classification")
    }
    stored = {name: _seconds_beyond(first_fit, name=name, cold=False) for name in FIRST}
    cold = {
        f"{name}, kernels to be compiled": _seconds_beyond(first_fit, name=name, cold=True)
        for name in (() if quick else FIRST)
    }
    return {"ratios": ratios, "first": {**imports, **stored, **cold}}


def canary() -> dict[str, float]:
    """Return a mean square of labels or coefficients, where they do not depend on rounding."""
    found, made_of = {}, cases(0, quick=True)
    for name in ("FairKMeans, 1,000 rows", "ConstrainedERMClassifier, 1,000 rows"):
        made = made_of[name][0]()
        values = getattr(made, "coef_", getattr(made, "labels_", made))
        found[name] = float(np.mean(np.square(values)))
    return found


def tables(results: Any) -> dict[str, Table]:
    """Return the ratios, and the seconds that a first fit takes beyond scikit-learn's."""
    rows = [
        [name, median(all_), f"{min(all_):.3g} to {max(all_):.3g}"]
        for name, all_ in results["ratios"].items()
    ]
    first = [[name, f"{seconds:.3g}"] for name, seconds in results["first"].items()]
    columns = ["fit or prediction", "median ratio", "smallest to largest ratio"]
    return {
        "ratios": Table("CPU time of skfair / of scikit-learn", columns, rows),
        "first": Table(
            "Seconds of the first fit beyond scikit-learn's", ["first call", "CPU seconds"], first
        ),
    }


def numbers(results: Any) -> dict[str, float]:
    """Return the smallest and largest medians of fits and of predictions."""
    medians = {name: median(ratios) for name, ratios in results["ratios"].items()}
    fits = [value for name, value in medians.items() if "predict" not in name]
    predictions = [value for name, value in medians.items() if "predict" in name]
    return {
        "least_fit": min(fits),
        "most_fit": max(fits),
        "least_predict": min(predictions),
        "most_predict": max(predictions),
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
