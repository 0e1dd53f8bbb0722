"""k-means as a wing, read by ``skfair.utils.wings``.

``NAMES`` lists the names that each public package gets, with the module of this folder that defines
each name.
:func:`warm` is called by ``python -m skfair warm``, and :func:`onnx` by the conversion to ONNX.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

NAMES = {
    "skfair.cluster": {
        "FairKMeans": "fair_kmeans",
        "ParetoFairKMeans": "pareto_fair_kmeans",
    },
    "skfair.datasets": {"make_grouped_blobs": "generator"},
    "skfair.solvers": {"Prices": "prices"},
}
_USUAL: dict[str, Any] = {"n_init": 1, "max_iter": 3, "random_state": 0}
_MANY_ROWS = 1 << 17  # enough rows to run the code for large problems, too


def warm(rows: Any, groups: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield (model, X, y, groups) whose fits compile all kernels of k-means.

    ``few_points`` are three points, repeated. Their costs are near 0, for which the swap solver
    has a kernel of its own.
    """
    import numpy as np

    from skfair.cluster.kmeans.fair_kmeans import FairKMeans
    from skfair.cluster.kmeans.pareto_fair_kmeans import ParetoFairKMeans
    from skfair.cluster.kmeans.solver import CLUSTERING_SOLVERS

    n_rows = len(rows)
    model, few_points = FairKMeans(3, **_USUAL), np.repeat(rows[:3], n_rows // 3, axis=0)
    yield model, rows, None, groups
    for method in (model.assign, model.predict):
        method(rows, sensitive_features=groups)
    for name in CLUSTERING_SOLVERS:  # includes the solvers of papers, if these are installed
        for X, own in ((rows, groups), (few_points, np.tile(["a", "b"], n_rows // 2))):
            yield FairKMeans(3, solver=name, min_balance=0.5, **_USUAL), X, None, own
        solver = CLUSTERING_SOLVERS[name]()
        if "max_points" in solver.get_params():
            solver.set_params(max_points=2)  # so that the kernel that shortens a list is called
        yield ParetoFairKMeans(3, solver=solver, balances=3, **_USUAL), rows, None, groups
    draw = np.random.RandomState(2)
    chosen = draw.randint(n_rows, size=_MANY_ROWS)
    many = rows[chosen] + draw.normal(size=(_MANY_ROWS, 3))
    yield FairKMeans(3, min_balance=0.9, **_USUAL), many, None, groups[chosen]


def onnx() -> dict[type, Any]:
    """Return the estimators that can be converted to ONNX, with their converters."""
    from skfair.cluster.kmeans.fair_kmeans import FairKMeans
    from skfair.cluster.kmeans.onnx import nearest_centers
    from skfair.utils.onnx_kinds import Kind

    return {FairKMeans: Kind(nearest_centers, ("label", "distances"))}
