"""CPU time and memory of each estimator against the size of its problem.

One size is varied at a time, on synthetic data, while the others stay as they are. Each fit runs in
a forked process: it finds compiled code loaded and the data in place, and what its memory grows by
is the fit's own. Exponents are slopes of logarithms over the upper points, where constants weigh
least. They describe the range that was measured: iterations and landmarks have limits of their own.
"""

import ctypes
import time
from collections.abc import Callable
from multiprocessing import get_context
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import make_blobs

from benchmarks.harness import Table, in_new_process, memory, timed
from skfair import Sensitive
from skfair.classification import (
    ConstrainedERMClassifier,
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.cluster import FairKMeans, FairSpectralClustering, ParetoFairKMeans
from skfair.cluster.affinities import Landmark
from skfair.constraints.partial import IntervalConstraint
from skfair.regression import ConstrainedERMRegressor

SEEDS = (3501, 3502)
N_UPPER = 3  # points that the exponents are fitted to
LEAST_MEMORY = 4e6  # bytes; below it pages and pools are what is seen
ENOUGH = 0.3  # seconds: shorter fits are repeated

Sizes = dict[str, int]


class Study(NamedTuple):
    """An estimator, the sizes that stay, and the values of the one that varies."""

    make: Callable[[Sizes], Any]
    fixed: Sizes
    varied: dict[str, tuple[int, ...]]
    has_labels: bool = True


def erm(size: Sizes) -> Any:
    # Attributes are limited one by one: two constraints each.
    rules = RULES[: size["rules"]]
    crossed = Sensitive(intersectional=size["attributes"] == 1)
    return ConstrainedERMClassifier(rules, sensitive=crossed)


def regressor(size: Sizes) -> Any:
    return ConstrainedERMRegressor()


def repair(size: Sizes) -> Any:
    return PartialParityClassifier(group_aware=True, solver="repair")


def alm(size: Sizes) -> Any:
    constraint = IntervalConstraint(n_percentiles=size["percentiles"])
    return PartialParityClassifier(
        constraint=constraint, group_aware=False, solver="al_lbfgs", enforce="surrogate"
    )


def calibrator(size: Sizes) -> Any:
    return PartialParityCalibrator()


def k_means(size: Sizes) -> Any:
    return FairKMeans(size["clusters"], random_state=0)


def pareto(size: Sizes) -> Any:
    return ParetoFairKMeans(size["clusters"], balances=size["balances"], random_state=0)


def dense_spectral(size: Sizes) -> Any:
    return FairSpectralClustering(size["clusters"], solver="lanczos", random_state=0)


def landmark_spectral(size: Sizes) -> Any:
    return FairSpectralClustering(
        size["clusters"], affinity=Landmark(size["landmarks"]), random_state=0
    )


RULES = ["demographic_parity", "equal_opportunity", "false_positive_parity", "accuracy_parity"]
CLUSTERED = {"n": 20_000, "d": 10, "groups": 3, "clusters": 8}
LABELLED = {"n": 20_000, "d": 20, "groups": 3}
D, GROUPS, CLUSTERS = (8, 16, 32, 64, 128), (2, 4, 8, 16), (4, 8, 16, 32)
STUDIES = {
    "FairKMeans": Study(
        k_means,
        CLUSTERED,
        {
            "n": (8000, 32_000, 128_000, 512_000),
            "d": D,
            "groups": GROUPS,
            "clusters": CLUSTERS,
        },
        has_labels=False,
    ),
    "ParetoFairKMeans": Study(
        pareto,
        CLUSTERED | {"n": 5000, "balances": 10},
        {
            "n": (2500, 10_000, 40_000, 80_000),
            "d": D,
            "groups": GROUPS,
            "clusters": CLUSTERS,
            "balances": (5, 10, 20, 40),
        },
        has_labels=False,
    ),
    "FairSpectralClustering, rbf": Study(
        dense_spectral,
        CLUSTERED | {"n": 2000},
        {
            "n": (1000, 2000, 4000, 8000),
            "d": D,
            "groups": GROUPS,
            "clusters": CLUSTERS,
        },
        has_labels=False,
    ),
    "FairSpectralClustering, landmark": Study(
        landmark_spectral,
        CLUSTERED | {"n": 10_000, "landmarks": 200},
        {
            "n": (10_000, 40_000, 80_000, 160_000),
            "d": D,
            "groups": GROUPS,
            "clusters": CLUSTERS,
            "landmarks": (50, 100, 200, 400, 800),
        },
        has_labels=False,
    ),
    "ConstrainedERMClassifier": Study(
        erm,
        LABELLED | {"attributes": 1, "rules": 1},
        {
            "n": (8000, 32_000, 128_000, 512_000),
            "d": D,
            "groups": (*GROUPS, 32),
            "attributes": (2, 4, 8, 16),
            "rules": (1, 2, 3, 4),
        },
    ),
    "ConstrainedERMRegressor": Study(
        regressor,
        LABELLED,
        {"n": (8000, 32_000, 128_000, 512_000), "d": D, "groups": (*GROUPS, 32)},
    ),
    "PartialParityClassifier, repair": Study(
        repair,
        LABELLED,
        {"n": (8000, 32_000, 128_000, 512_000), "d": D, "groups": (*GROUPS, 32)},
    ),
    "PartialParityClassifier, alm": Study(
        alm,
        LABELLED | {"n": 10_000, "percentiles": 10},
        {
            "n": (5000, 20_000, 80_000, 160_000),
            "d": D,
            "groups": GROUPS,
            "percentiles": (5, 10, 20, 40),
        },
    ),
    "PartialParityCalibrator": Study(
        calibrator,
        LABELLED,
        {"n": (8000, 32_000, 128_000, 512_000), "groups": (*GROUPS, 32)},
    ),
}


def sample(size: Sizes, has_labels: bool, seed: int) -> tuple[Any, Any, dict[str, Any]]:
    """Return rows, labels (or None) and groups, which the first column tells something about."""
    rng = np.random.default_rng(seed)
    n, d, n_groups = size["n"], size["d"], size["groups"]
    if not has_labels:
        X, blob = make_blobs(n, d, centers=size["clusters"], cluster_std=2, random_state=seed)
        follow = rng.random(n) < 0.5
        groups = np.where(follow, blob % n_groups, rng.integers(n_groups, size=n))
        return X, None, {"sensitive_features": groups}
    X = rng.normal(size=(n, d))
    shape = (n, size["attributes"]) if size.get("attributes", 1) > 1 else n
    groups = rng.integers(n_groups, size=shape)
    X[:, 0] += (groups if groups.ndim == 1 else groups.mean(axis=1)) / n_groups
    y = X[:, : max(d // 2, 1)].sum(axis=1) / np.sqrt(d) + rng.logistic(size=n) > 0.5
    return X, y.astype(np.int64), {"sensitive_features": groups}


def in_fork(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a copy of this process; the peak of its memory starts from the present."""
    fork = get_context("fork")
    receiver, sender = fork.Pipe(duplex=False)
    child = fork.Process(target=lambda: sender.send(function(*arguments)))
    child.start()
    sender.close()
    result = receiver.recv()
    child.join()
    return result


def fit_point(model: Any, X: Any, y: Any, given: Any, n_fits: int) -> tuple[float, float]:
    """Return CPU seconds of a fit, and bytes that the process grew by at most.

    Pages of libraries are not counted: a forked process maps them anew.
    """
    before, files = memory("VmRSS:"), memory("RssFile:")
    seconds = [timed(lambda: model.fit(X, y, **given))[0]]
    grown = memory() - before - (memory("RssFile:") - files)
    while sum(seconds) < ENOUGH and len(seconds) < n_fits:
        seconds.append(timed(lambda: model.fit(X, y, **given))[0])
    return median(seconds), max(grown, 0)


def measure(names: list[str], quick: bool) -> dict[str, Any]:
    """Fit all points of some estimators; run in a process of its own."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc
    curves: dict[str, Any] = {}
    for name in names:
        study = smaller(STUDIES[name]) if quick else STUDIES[name]
        X, y, given = sample(study.fixed, study.has_labels, seed=0)
        study.make(study.fixed).fit(X, y, **given)  # loads compiled code
        curves[name] = {"fixed": study.fixed, "varied": {}}
        for factor, values in study.varied.items():
            points = []
            for value in values:
                size, runs = study.fixed | {factor: value}, []
                for seed in SEEDS[: 1 if quick else None]:
                    X, y, given = sample(size, study.has_labels, seed)
                    if trim:
                        trim(0)  # else the fit finds pages that others left behind
                    fit = study.make(size), X, y, given, 1 if quick else 5
                    runs.append(in_fork(fit_point, *fit))
                seconds, grown = np.mean(runs, axis=0).tolist()
                points.append([value, round(seconds, 5), int(grown)])
            curves[name]["varied"][factor] = points
    return curves


def smaller(study: Study) -> Study:
    """Return a study of two sizes, with few rows and two points each."""
    last = list(study.varied)[-1]
    varied = {"n": (500, 1000), last: study.varied[last][:2]}
    return study._replace(fixed=study.fixed | {"n": 500}, varied=varied)


def main(*, quick: bool = False) -> dict[str, Any]:
    curves: dict[str, Any] = {}
    names = list(STUDIES)
    for part in [names] if quick else [[name] for name in names]:
        start = time.perf_counter()
        curves |= in_new_process(measure, names=part, quick=quick)
        seconds = time.perf_counter() - start
        print(f"   {'; '.join(part)}: {seconds:.0f} s", flush=True)
    return curves


def canary() -> dict[str, float]:
    """Return a mean of what estimators predict after a fit of 500 rows.

    The points of the clusterings have no clusters, so some labels depend on rounding.
    """
    found = {}
    studies = {name: one for name, one in STUDIES.items() if one.has_labels or one.make is k_means}
    for name, study in studies.items():
        X, y, given = sample(smaller(study).fixed, study.has_labels, SEEDS[0])
        model = study.make(smaller(study).fixed).fit(X, y, **given)
        known = given if getattr(model, "is_group_aware_", False) else {}
        output = model.predict(X, **known) if study.has_labels else model.labels_
        found[name] = float(np.mean(output))
    return found


def exponent(points: list[list[float]], column: int) -> float | None:
    """Return the slope of the logarithms over the upper points, None if there is too little."""
    upper = np.array(points[-N_UPPER:])
    if column == 2 and upper[-1, 2] < LEAST_MEMORY:
        return None
    logs = np.log(np.maximum(upper, 1e-6))
    return float(np.polyfit(logs[:, 0], logs[:, column], 1)[0])


def tables(results: dict[str, Any]) -> dict[str, Table]:
    rows = []
    for name, study in results.items():
        for factor, points in study["varied"].items():
            others = study["fixed"].items()
            rows.append(
                [
                    name,
                    worded(factor),
                    f"{points[0][0]:.0f} to {points[-1][0]:.0f}",
                    ", ".join(f"{worded(key)} {value}" for key, value in others if key != factor),
                    f"{exponent(points, 1):.2f}",
                    f"{slope:.2f}" if (slope := exponent(points, 2)) is not None else "-",
                    points[-1][1],
                    f"{points[-1][2] / 1e6:.0f}",
                ]
            )
    columns = [
        "estimator",
        "size that varies",
        "range",
        "other sizes",
        "exponent of time",
        "/ of memory",
        "CPU seconds at the largest size",
        "MB at the largest size",
    ]
    return {"exponents": Table("Time and memory against size", columns, rows)}


def numbers(results: dict[str, Any]) -> dict[str, float]:
    """Return exponents of the rows: of spectral clustering, and the largest of all others."""
    slopes = {
        name: [exponent(study["varied"]["n"], column) or 0.0 for column in (1, 2)]
        for name, study in results.items()
    }
    found = {}
    for kind in ("rbf", "landmark"):
        time_, memory = slopes.pop(f"FairSpectralClustering, {kind}")
        found |= {f"{kind}_time": time_, f"{kind}_memory": memory}
    times, memories = zip(*slopes.values(), strict=True)
    return {**found, "time": max(times), "memory": max(memories)}


def claims(results: dict[str, Any]) -> dict[str, bool]:
    """Return what sentences of the page say beside the numbers, and whether the record says so."""
    found = numbers(results)
    others, spectral = (
        max(found[name] for name in names)
        for names in (("time", "memory"), ("rbf_time", "landmark_time"))
    )
    # Slopes of so few sizes are certain to about a tenth.
    return {"for all estimators but ``FairSpectralClustering``": others < 1.1 < spectral}


def pictures(results: dict[str, Any]) -> dict[str, Any]:
    return {slug(name): picture(name, study["varied"]) for name, study in results.items()}


def worded(factor: str) -> str:
    """Return the name of a size, in which a record says "rules"."""
    return "constraints" if factor == "rules" else factor


def slug(name: str) -> str:
    """Return the name of an estimator as the name of a file."""
    return name.lower().replace(", ", "-")


def picture(name: str, curves: dict[str, Any]) -> Any:
    """Draw time (top) and memory (bottom) against each size, with the fitted slopes."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    figure = Figure(figsize=(2.6 * len(curves), 4.6), layout="constrained")
    axes = figure.subplots(2, len(curves), sharey="row", squeeze=False)
    for (factor, points), pair in zip(curves.items(), axes.T, strict=True):
        values = np.array(points)
        for column, unit, axis in ((1, 1, pair[0]), (2, 1e6, pair[1])):
            shown = np.maximum(values[:, column] / unit, 1e-3 if column == 1 else 0.1)
            axis.loglog(values[:, 0], shown, "o", color=f"C{column - 1}")
            slope = exponent(points, column)
            if slope is not None:
                upper = slice(-N_UPPER, None)
                x = values[upper, 0]
                middle = np.exp(np.log(shown[upper]).mean() - slope * np.log(x).mean())
                label = f"exponent {slope:.2f}"
                axis.loglog(x, middle * x**slope, "-", color="0.4", label=label)
                axis.legend(frameon=False, fontsize=8, loc="upper left")
            axis.set_xticks(values[:, 0], [f"{x:g}" for x in values[:, 0]], fontsize=8)
            axis.minorticks_off()
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 3), numticks=9))
            axis.yaxis.set_major_formatter("{x:g}")
        pair[1].set_xlabel(worded(factor))
    axes[0, 0].set_ylabel("CPU seconds")
    axes[1, 0].set_ylabel("memory beyond the data, MB")
    figure.suptitle(name)
    return figure
