"""``python -m skfair warm``: compile the kernels now, not in the first fit.

numba compiles a kernel when it is first called and stores it in ``NUMBA_CACHE_DIR``. So
:func:`run_warm` makes a list of small fits (``TASKS``) and calls metrics. Together they call every
kernel with all types of arguments that occur. A *task* is a function of X and groups that yields
fits. Wings add tasks.
"""

from __future__ import annotations

import logging
import os
import sys
import time  # noqa: TID251 - seconds are only shown
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from skfair import metrics
from skfair._typing import FloatArray, IntArray
from skfair.classification import (
    ConstrainedERMClassifier,
    FairDecisionClassifier,
)
from skfair.utils.files import is_safe
from skfair.utils.wings import functions_of_wings

Groups = NDArray[Any]
Fits = Iterator[tuple[Any, Any, Groups | None, Groups]]  # (model, X, y, groups), to be fitted
Task = Callable[[FloatArray, Groups], Fits]

_N_ROWS = 120
_MANY_ROWS = 1 << 17  # enough rows to run the code that counts scores in bins


def run_warm() -> int:
    """Compile the kernels on all cores, and print the number of kernels that Python calls."""
    start = time.perf_counter()
    n_jobs = min(effective_n_jobs(-1), len(TASKS))
    # New folders get 0755 and new files 0644, so that others may use compiled code, not change it.
    mask = os.umask(0o022)
    try:
        if os.environ.get("NUMBA_CACHE_DIR"):
            _make_safe(Path(os.environ["NUMBA_CACHE_DIR"]))
        compiled = Parallel(n_jobs)(delayed(compiled_by)(task) for task in TASKS)
    finally:
        os.umask(mask)
    kernels = entry_kernels()
    missing = kernels.difference(*compiled)
    seconds = time.perf_counter() - start
    n = len(kernels - missing)
    sys.stdout.write(f"{n} kernels are compiled and stored, in {seconds:.0f} s.\n")
    if missing:
        sys.stdout.write(f"Compiled when first used: {', '.join(sorted(missing))}.\n")
    return 0


def _make_safe(folder: Path) -> None:
    """Make a folder for compiled code, and withdraw the right of others to write to it.

    Raise if another user owns the folder, or a folder for kernels in it.
    """
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
    """Run the fits of a task in this process; return the names of the kernels that are stored."""
    logging.getLogger("skfair.kernels").disabled = True  # no messages that kernels are compiled
    rows = np.random.RandomState(0).normal(size=(_N_ROWS, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny fits of few steps give many warnings
        warnings.filterwarnings("default", "Compiled code")
        for model, X, y, groups in task(rows, np.repeat(["a", "b"], _N_ROWS // 2)):
            with suppress(ValueError, TypeError):  # some solvers refuse some kinds of problems
                model.fit(X, y, sensitive_features=groups)
    return {
        name
        for name, kernel in chain.from_iterable(module.items() for module in _kernels())
        if getattr(getattr(kernel._cache, "_cache_file", None), "is_used", False)
    }


def entry_kernels() -> set[str]:
    """Return the names of the kernels that Python calls.

    Other kernels are only called by kernels of their own file, and are compiled with these.
    """
    names: set[str] = set()
    for kernels in _kernels():
        called = {name for kernel in kernels.values() for name in kernel.py_func.__code__.co_names}
        names |= {name for name in kernels if name.split(".")[1] not in called}
    return names


def _kernels() -> Iterator[dict[str, Any]]:
    """Yield for each file of kernels, also in wings, its kernels by "file.name"."""
    root = Path(__file__).parent
    for file in sorted(root.rglob("_kernels/*.py")):
        module = ".".join(("skfair", *file.relative_to(root).with_suffix("").parts))
        kernels = vars(import_module(module)).items()
        yield {f"{file.stem}.{name}": k for name, k in kernels if hasattr(k, "py_func")}


def _classes(rows: FloatArray) -> IntArray:
    """Return two classes, of which the positive one is more frequent in the first group."""
    noise = np.random.RandomState(1).normal(size=_N_ROWS)
    return (rows[:, 0] + np.linspace(0.5, -0.5, _N_ROWS) + noise > 0).astype(np.int64)


def _classify(rows: FloatArray, groups: Groups) -> Fits:
    """Fit linear models and a network, on dense and on sparse rows of both precisions."""
    y, classifier = _classes(rows), partial(ConstrainedERMClassifier, max_iter=3, random_state=0)
    many_groups = np.arange(_N_ROWS) % 40
    for solver in ("al_lbfgs", "al_newton", "alm"):
        for X in (rows, sparse.csr_array(rows), sparse.csr_array(rows.astype(np.float32))):
            yield classifier(solver=solver), X, y, groups
    yield classifier("equal_opportunity"), rows.astype(np.float32), y, groups
    yield classifier(model=(4,)), sparse.csr_array(rows), y, groups
    for X in (rows, sparse.csr_array(rows)):
        yield classifier(), X, y, many_groups


def _decide(rows: FloatArray, groups: Groups) -> Fits:
    """Adjust decisions for two classes and for three."""
    two, decider = _classes(rows), partial(FairDecisionClassifier, LogisticRegression(), cv=2)
    yield decider(), rows, two, groups
    yield decider(group_aware=True), rows, two + (rows[:, 1] > 0), groups
    # With these classes the limit is below the noise and loses much accuracy, so that further
    # kernels of the search are called.
    sure = np.digitize(rows[:, 0], [-0.5, 0.5])
    yield decider("equalized_odds", 0.001, group_aware=True), rows, sure, np.arange(_N_ROWS) % 2
    yield decider(certificate=0.95).set_params(cv=3), rows, two, groups


def _measure(rows: FloatArray, groups: Groups) -> Fits:
    """Call the metrics that sort scores, and metrics of very many rows."""
    y, scores = _classes(rows), rows[:, 0]
    metrics.fairness_report(y, None, y_score=scores, sensitive_features=groups, n_bootstrap=1)
    for gap in (metrics.partial_statistical_parity_gap, metrics.partial_ccdf_gap):
        gap(y, scores, sensitive_features=groups, interval=(0.1, 0.6))
    draw = np.random.RandomState(2)
    chosen = draw.randint(_N_ROWS, size=_MANY_ROWS)
    many = rows[chosen] + draw.normal(size=(_MANY_ROWS, 3))
    for constraint in ("demographic_parity", "equalized_odds"):
        model = ConstrainedERMClassifier(constraint, 0.01, max_iter=30)
        yield model, many, y[chosen], groups[chosen]
    y, codes = np.resize(y[chosen], 8 * _MANY_ROWS), np.resize(chosen % 2, 8 * _MANY_ROWS)
    metrics.demographic_parity_difference(y, y, sensitive_features=codes)


# Long tasks come first, so that all cores end at about the same time.
TASKS: tuple[Task, ...] = (*functions_of_wings("warm"), _measure, _classify, _decide)
