"""``python -m skfair warm``: compile the kernels now, not in the first fit.

numba compiles a kernel when it is first called and stores it in ``NUMBA_CACHE_DIR``. So kernels are
called here as fits call them: by small fits of every solver and constraint, and by the metrics.
"""

from __future__ import annotations

import os
import pkgutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from skfair import metrics
from skfair._typing import Estimator, FloatArray, IntArray
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.cluster import FairKMeans, FairSpectralClustering, ParetoFairKMeans
from skfair.cluster.affinities import Landmark, NeighborGraph, Rbf
from skfair.constraints.partial import Surrogate
from skfair.constraints.partial.base import PARTIAL_RULES
from skfair.papers import Swap
from skfair.regression import ConstrainedERMRegressor
from skfair.solvers.base import DC_SOLVERS, SOLVERS
from skfair.solvers.clustering.base import CLUSTERING_SOLVERS
from skfair.utils.files import is_safe

Task = Callable[[FloatArray, NDArray[Any]], None]

_N_ROWS = 120
_USUAL: dict[str, Any] = {"n_init": 1, "max_iter": 3, "random_state": 0}
_MANY_ROWS = 1 << 17  # from here on scores are counted in bins, and rows summed in one pass


def run_warm() -> int:
    """Compile the kernels on all cores, and say how many of them Python calls."""
    start = time.perf_counter()
    n_jobs = min(effective_n_jobs(-1), len(TASKS))
    with _only_the_user_writes():
        folder = os.environ.get("NUMBA_CACHE_DIR")
        if folder:
            _make_safe(Path(folder))
        compiled = Parallel(n_jobs)(delayed(compiled_by)(task) for task in TASKS)
    kernels = entry_kernels()
    missing = kernels.difference(*compiled)
    seconds = time.perf_counter() - start
    n = len(kernels - missing)
    sys.stdout.write(f"{n} kernels are compiled and stored, in {seconds:.0f} s.\n")
    if missing:
        sys.stdout.write(f"Compiled when first used: {', '.join(sorted(missing))}.\n")
    return 0


@contextmanager
def _only_the_user_writes() -> Iterator[None]:
    """Give new folders 0755 and new files 0644: others may use compiled code, not change it."""
    mask = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(mask)


def _make_safe(folder: Path) -> None:
    """Make a folder for compiled code, or take one away from others that may write to it."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in (folder, *folder.glob("_kernels_*")):
        if not is_safe(place.stat()):
            place.chmod(0o755)
        if not is_safe(place.stat()):
            raise ValueError(
                f"{str(place)!r} belongs to another user (owner {place.stat().st_uid}), who could "
                "plant code in it. Name a folder of your own."
            )


def compiled_by(task: Task) -> set[str]:
    """Do a task in this process; return the names of the kernels that are stored then."""
    rows = np.random.RandomState(0).normal(size=(_N_ROWS, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny fits of few steps
        warnings.filterwarnings("default", "Compiled code")
        task(rows, np.repeat(["a", "b"], _N_ROWS // 2))
    kernels = chain.from_iterable(module.items() for module in _kernels())
    return {name for name, kernel in kernels if _is_stored(kernel)}


def _is_stored(kernel: Any) -> bool:
    return getattr(getattr(kernel._cache, "_cache_file", None), "is_used", False)


def entry_kernels() -> set[str]:
    """Return the names of the kernels that Python calls.

    Kernels that only other kernels call, those of their own file, are compiled with these.
    """
    names: set[str] = set()
    for kernels in _kernels():
        called = {name for kernel in kernels.values() for name in kernel.py_func.__code__.co_names}
        names |= {name for name in kernels if name.split(".")[1] not in called}
    return names


def _kernels() -> Iterator[dict[str, Any]]:
    """Yield the kernels of each file by name."""
    for module in _kernel_modules():
        file = module.__name__.rsplit(".", 1)[1]
        yield {
            f"{file}.{k}": kernel
            for k, kernel in vars(module).items()
            if hasattr(kernel, "py_func")
        }


def _kernel_modules() -> Iterator[ModuleType]:
    package = import_module("skfair._kernels")
    for module in pkgutil.iter_modules(package.__path__, "skfair._kernels."):
        yield import_module(module.name)


def _classes(rows: FloatArray) -> IntArray:
    noise = np.random.RandomState(1).normal(size=_N_ROWS)
    return (rows[:, 0] + np.linspace(0.5, -0.5, _N_ROWS) + noise > 0).astype(np.int64)


def _classify(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Fit linear models and a network by every solver, on dense and on sparse rows."""
    y, metadata = _classes(rows), {"sensitive_features": groups}
    for solver in SOLVERS:
        model = ConstrainedERMClassifier(solver=solver, max_iter=3, random_state=0)
        model.fit(rows, y, **metadata)
    for constraint in ("equalized_odds", "predictive_parity"):
        ConstrainedERMClassifier(constraint, max_iter=3).fit(rows, y, **metadata)
    for solver in ("al_newton", "al_lbfgs", "alm"):
        model = ConstrainedERMClassifier(solver=solver, max_iter=3, random_state=0)
        for dtype in (np.float64, np.float32):
            model.fit(sparse.csr_array(rows.astype(dtype)), y, **metadata)
    ConstrainedERMClassifier("equal_opportunity", max_iter=3).fit(
        rows.astype(np.float32), y, **metadata
    )
    network = ConstrainedERMClassifier(model=(4,), max_iter=3, random_state=0)
    for X in (rows, sparse.csr_array(rows)):
        network.fit(X, y, **metadata)
        many_groups = np.arange(_N_ROWS) % 40
        ConstrainedERMClassifier(max_iter=3).fit(X, y, sensitive_features=many_groups)
    ConstrainedERMRegressor(max_iter=3).fit(rows, rows[:, 0], **metadata)


def _decide(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Adjust decisions for two classes and for three, with and without the group."""
    two = _classes(rows)
    for y in (two, two + (rows[:, 1] > 0)):
        for aware in (True, False):
            for rule in ("demographic_parity", "equalized_odds"):
                model = FairDecisionClassifier(
                    LogisticRegression(), rule, 0.05, group_aware=aware, cv=2
                )
                _fit_if_it_can(model, rows, y, groups)
    tight = FairDecisionClassifier(
        LogisticRegression(), "equalized_odds", 0.001, group_aware=True, cv=2
    )
    # Sure classes: limits below what chance does to so few rows cost much of their accuracy.
    _fit_if_it_can(tight, rows, np.digitize(rows[:, 0], [-0.5, 0.5]), np.arange(_N_ROWS) % 2)
    certified = FairDecisionClassifier(LogisticRegression(), confidence=0.95, cv=3)
    certified.fit(rows, two, sensitive_features=groups)


def _partial(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Fit under constraints on percentile intervals."""
    y, metadata = _classes(rows), {"sensitive_features": groups}
    for constraint in PARTIAL_RULES:
        for aware in (False, True):
            model = PartialParityClassifier(
                constraint=constraint, max_disparity=0.01, group_aware=aware, max_iter=3
            )
            _fit_if_it_can(model, rows, y, groups)
    for solver in DC_SOLVERS:
        PartialParityClassifier(solver=solver, max_iter=3).fit(rows, y, **metadata)
    calibrator = PartialParityCalibrator(cv=2, interval=(0, 1)).fit(rows, y, **metadata)
    calibrator.predict(rows, **metadata)


def _cluster(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Cluster by every solver but swaps, with and without a bound on the balance."""
    metadata: dict[str, Any] = {"sensitive_features": groups}
    for solver in CLUSTERING_SOLVERS:
        if solver != "swap":
            _cluster_by(solver, rows, groups)
    model = FairKMeans(3, min_balance=0.5, **_USUAL).fit(rows, **metadata)
    model.assign(rows, **metadata)
    model.predict(rows, **metadata)
    ParetoFairKMeans(3, balances=3, **_USUAL).fit(rows, **metadata)


def _swap(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Cluster by swaps; rows that lie on few points have a cost near zero, which is summed anew."""
    _cluster_by("swap", rows, groups)
    few_points = np.repeat(rows[:3], _N_ROWS // 3, axis=0)
    _cluster_by("swap", few_points, np.tile(["a", "b"], _N_ROWS // 2))
    front = ParetoFairKMeans(3, solver=Swap(max_points=2), balances=3, **_USUAL)
    front.fit(rows, sensitive_features=groups)


def _cluster_by(solver: str, rows: FloatArray, groups: NDArray[Any]) -> None:
    for balance in (0.5, None):
        model = FairKMeans(3, solver=solver, min_balance=balance, **_USUAL)
        _fit_if_it_can(model, rows, None, groups)


def _cut(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Cut graphs of every kind."""
    kinds: tuple[dict[str, Any], ...] = (
        {"affinity": Landmark(20)},
        {"solver": "ffsc"},
        {"solver": "ufsc"},
    )
    for options in kinds:
        model = FairSpectralClustering(2, n_init=1, random_state=0, **options)
        _fit_if_it_can(model, rows, None, groups)
    links = np.exp(-((rows[:, :1] - rows[:, 0]) ** 2))
    _fit_if_it_can(FairSpectralClustering(2, affinity="precomputed"), links, None, groups)
    for affinity in (Rbf(), Rbf(dtype="float64"), NeighborGraph(), NeighborGraph(dtype="float64")):
        for solver in ("auto", "lanczos", "dc_admm"):
            model = FairSpectralClustering(
                2, affinity=affinity, solver=solver, n_init=1, random_state=0
            )
            _fit_if_it_can(model, rows, None, groups)


def _measure(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Call the metrics that sort scores, and a step of scores."""
    y, scores = _classes(rows), rows[:, 0]
    metrics.fairness_report(y, None, y_score=scores, sensitive_features=groups, n_bootstrap=1)
    for partial in (metrics.partial_statistical_parity_gap, metrics.partial_ccdf_gap):
        partial(y, scores, sensitive_features=groups, interval=(0.1, 0.6))
    Surrogate("ramp", 0.5)(scores)


def _many(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Fit and measure on so many rows that they are counted and summed in other ways."""
    draw = np.random.RandomState(2)
    chosen = draw.randint(_N_ROWS, size=_MANY_ROWS)
    many = rows[chosen] + draw.normal(size=(_MANY_ROWS, 3))
    y, metadata = _classes(rows)[chosen], {"sensitive_features": groups[chosen]}
    for constraint in ("demographic_parity", "equalized_odds"):
        ConstrainedERMClassifier(constraint, 0.01, max_iter=30).fit(many, y, **metadata)
    FairKMeans(3, min_balance=0.9, **_USUAL).fit(many, **metadata)
    y, codes = np.resize(y, 8 * _MANY_ROWS), np.resize(chosen % 2, 8 * _MANY_ROWS)
    metrics.demographic_parity_difference(y, y, sensitive_features=codes)


def _fit_if_it_can(
    estimator: Estimator, rows: FloatArray, y: NDArray[Any] | None, groups: NDArray[Any]
) -> None:
    """Fit, unless the solver says that it does not do this kind of problem."""
    try:
        estimator.fit(rows, y, sensitive_features=groups)
    except (ValueError, TypeError):
        return


# Long ones first, so that all cores end at about the same time.
TASKS: tuple[Task, ...] = (_swap, _cut, _cluster, _classify, _partial, _many, _decide, _measure)
