"""``python -m skfair warm``: compile the kernels now, not in the first fit.

numba compiles a kernel when it is first called and stores it in ``NUMBA_CACHE_DIR``. So kernels are
called here as fits call them: by small fits of every solver and rule, and by the metrics.
"""

from __future__ import annotations

import pkgutil
import sys
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
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
from skfair.constraints.partial.base import PARTIAL_RULES
from skfair.regression import ConstrainedERMRegressor
from skfair.solvers import CLUSTERING_SOLVERS, DC_SOLVERS, SOLVERS, Swap

_N_ROWS = 120


def run_warm() -> int:
    """Compile the kernels, and say how many there are."""
    start = time.perf_counter()
    rows = np.random.RandomState(0).normal(size=(_N_ROWS, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny fits of few steps
        for step in (_classify, _decide, _partial, _cluster, _cut, _measure):
            step(rows, np.repeat(["a", "b"], _N_ROWS // 2))
    compiled, missing = entry_kernels()
    seconds = time.perf_counter() - start
    sys.stdout.write(f"{compiled} kernels are compiled and stored, in {seconds:.0f} s.\n")
    if missing:
        sys.stdout.write(f"Compiled when first used: {', '.join(missing)}.\n")
    return 0


def entry_kernels() -> tuple[int, list[str]]:
    """Return how many kernels that Python calls are compiled, and the names of those that are not.

    Kernels that only other kernels call are compiled with these.
    """
    compiled, missing = 0, []
    for module in _kernel_modules():
        kernels = {name: one for name, one in vars(module).items() if hasattr(one, "py_func")}
        called = {name for one in kernels.values() for name in one.py_func.__code__.co_names}
        for name, one in kernels.items():
            if one.signatures:
                compiled += 1
            elif name not in called:
                missing.append(f"{module.__name__.rsplit('.', 1)[1]}.{name}")
    return compiled, missing


def _kernel_modules() -> Iterator[ModuleType]:
    package = import_module("skfair._kernels")
    for module in pkgutil.iter_modules(package.__path__, "skfair._kernels."):
        yield import_module(module.name)


def _classes(rows: FloatArray) -> IntArray:
    noise = np.random.RandomState(1).normal(size=_N_ROWS)
    return (rows[:, 0] + np.linspace(0.5, -0.5, _N_ROWS) + noise > 0).astype(np.int64)


def _classify(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Fit linear models and a network by every solver, on dense and on sparse rows."""
    y, given = _classes(rows), {"sensitive_features": groups}
    for solver in SOLVERS:
        model = ConstrainedERMClassifier(solver=solver, max_iter=3, random_state=0)
        model.fit(rows, y, **given)
    for constraint in ("equalized_odds", "predictive_parity"):
        ConstrainedERMClassifier(constraint, max_iter=3).fit(rows, y, **given)
    for solver in ("al_newton", "al_lbfgs", "alm"):
        model = ConstrainedERMClassifier(solver=solver, max_iter=3, random_state=0)
        for dtype in (np.float64, np.float32):
            model.fit(sparse.csr_array(rows.astype(dtype)), y, **given)
    ConstrainedERMClassifier("equal_opportunity", max_iter=3).fit(
        rows.astype(np.float32), y, **given
    )
    network = ConstrainedERMClassifier(hidden_layer_sizes=(4,), max_iter=3, random_state=0)
    for X in (rows, sparse.csr_array(rows)):
        network.fit(X, y, **given)
    ConstrainedERMRegressor(max_iter=3).fit(rows, rows[:, 0], **given)


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


def _partial(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Fit under rules on percentile intervals."""
    y, given = _classes(rows), {"sensitive_features": groups}
    for constraint in PARTIAL_RULES:
        for aware in (False, True):
            model = PartialParityClassifier(
                constraint=constraint, max_disparity=0.01, group_aware=aware, max_iter=3
            )
            _fit_if_it_can(model, rows, y, groups)
    for solver in DC_SOLVERS:
        PartialParityClassifier(solver=solver, max_iter=3).fit(rows, y, **given)
    PartialParityCalibrator(cv=2).fit(rows, y, **given)


def _cluster(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Cluster by every solver, with and without a bound on the balance."""
    given: dict[str, Any] = {"sensitive_features": groups}
    usual: dict[str, Any] = {"n_init": 1, "max_iter": 3, "random_state": 0}
    for solver in CLUSTERING_SOLVERS:
        for balance in (0.5, None):
            model = FairKMeans(3, solver=solver, min_balance=balance, **usual)
            _fit_if_it_can(model, rows, None, groups)
    FairKMeans(3, min_balance=0.5, **usual).fit(rows, **given).assign(rows, **given)
    for solver in ("prices", Swap(max_points=2)):
        ParetoFairKMeans(3, solver=solver, balances=3, **usual).fit(rows, **given)


def _cut(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Cut graphs of every kind."""
    for options in (
        {"affinity": "landmark", "n_landmarks": 20},
        {"solver": "ffsc"},
        {"solver": "ufsc"},
    ):
        model = FairSpectralClustering(2, n_init=1, random_state=0, **options)
        _fit_if_it_can(model, rows, None, groups)
    links = np.exp(-((rows[:, :1] - rows[:, 0]) ** 2))
    _fit_if_it_can(FairSpectralClustering(2, affinity="precomputed"), links, None, groups)
    for affinity in ("rbf", "nearest_neighbors"):
        for dtype in ("float64", "float32"):
            for solver in ("auto", "lanczos", "dc_admm"):
                model = FairSpectralClustering(
                    2, affinity=affinity, solver=solver, dtype=dtype, n_init=1, random_state=0
                )
                _fit_if_it_can(model, rows, None, groups)


def _measure(rows: FloatArray, groups: NDArray[Any]) -> None:
    """Call the metrics that sort scores."""
    y, scores = _classes(rows), rows[:, 0]
    for metric in (
        metrics.statistical_parity_gap,
        metrics.wasserstein_gap,
        metrics.group_auc_gap,
        metrics.inter_group_pairwise_gap,
        metrics.intra_group_pairwise_gap,
    ):
        metric(y, scores, sensitive_features=groups)
    for partial in (metrics.partial_statistical_parity_gap, metrics.partial_ccdf_gap):
        partial(y, scores, sensitive_features=groups, interval=(0.1, 0.6))


def _fit_if_it_can(
    estimator: Estimator, rows: FloatArray, y: NDArray[Any] | None, groups: NDArray[Any]
) -> None:
    """Fit, unless the solver says that it does not do this kind of problem."""
    try:
        estimator.fit(rows, y, sensitive_features=groups)
    except (ValueError, TypeError):
        return
