"""``python -m skfair warm``: compile all kernels now, not in the first fit.

numba compiles a kernel when it is first called and stores it in ``NUMBA_CACHE_DIR``. So every
kernel is called here as fits call it: by small fits of every solver and by the metrics.
"""

from __future__ import annotations

import pkgutil
import sys
import time
import warnings
from collections.abc import Iterator
from importlib import import_module

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skfair import metrics
from skfair.classification import (
    ConstrainedERMClassifier,
    PartialParityCalibrator,
    PartialParityClassifier,
)
from skfair.cluster import FairKMeans, FairSpectralClustering, ParetoFairKMeans
from skfair.datasets import make_fair_sbm, make_group_scores
from skfair.regression import ConstrainedERMRegressor
from skfair.solvers import CLUSTERING_SOLVERS, DC_SOLVERS, SOLVERS


def run_warm() -> int:
    """Compile, and say how many kernels; return 1 if some were not reached."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in (_classify, _partial, _cluster, _cut, _measure):
            sys.stdout.write(f"{step.__name__.strip('_')} ...\n")
            step()
    compiled, missing = kernels()
    sys.stdout.write(
        f"{compiled} of {compiled + len(missing)} kernels are compiled, in "
        f"{time.perf_counter() - start:.0f} s.\n"
    )
    if missing:
        sys.stdout.write(f"Compiled when first used: {', '.join(missing)}.\n")
    return 0


def kernels() -> tuple[int, list[str]]:
    """Return how many kernels have been compiled, and the names of those that have not."""
    compiled, missing = 0, []
    for module in _kernel_modules():
        for name, one in vars(module).items():
            if hasattr(one, "signatures") and one.__module__ == module.__name__:
                if one.signatures:
                    compiled += 1
                else:
                    missing.append(f"{module.__name__.rsplit('.', 1)[1]}.{name}")
    return compiled, missing


def _kernel_modules() -> Iterator[object]:
    package = import_module("skfair._kernels")
    for module in pkgutil.iter_modules(package.__path__, "skfair._kernels."):
        yield import_module(module.name)
