"""The problem that k-means solves, made of rows in memory, sparse rows or Dask collections.

``FairKMeans`` (in ``fit``, ``partial_fit`` and ``assign``) and ``ParetoFairKMeans`` call
:func:`clustering_problem` after they have read the rows and the limits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from skfair._typing import FloatArray, MatrixLike
from skfair.cluster.assignment.by_prices import LARGE
from skfair.cluster.assignment.counts import Constraints
from skfair.cluster.assignment.points import RepresentationProblem, Units
from skfair.cluster.kmeans.points_in_partitions import PointsInPartitions
from skfair.cluster.kmeans.sparse_points import SparsePoints
from skfair.groups.training_data import TrainingData
from skfair.read import ROW_CHECKS
from skfair.utils.dask_collections import is_lazy
from skfair.utils.partitioned_rows import PartitionedRows


def row_checks(X: MatrixLike) -> dict[str, Any]:
    """Return the options of ``read_rows``: sparse rows are accepted in memory only."""
    return {**ROW_CHECKS, "accept_sparse": False} if is_lazy(X) else ROW_CHECKS


def clustering_problem(
    data: TrainingData,
    constraints: Constraints,
    n_clusters: int,
    held: FloatArray | None = None,  # (n_clusters, n_groups): weight that clusters hold already
    units: Units | None = None,  # units of the fit, for new rows; if None, they are read from X
) -> RepresentationProblem:
    """Return the problem for rows that were read.

    Rows of a Dask collection stay in their partitions if they are many. Then ``held`` and ``units``
    are not used, because ``partial_fit`` and ``assign`` take rows in memory only.
    """
    X, of_rows = data.X, (data.groups, constraints, n_clusters, data.sample_weight)
    if isinstance(X, PartitionedRows):
        # Small data are fetched: a fit visits the rows often, and would fetch samples of LARGE rows
        # in any case.
        if len(X) > LARGE and not X.is_small:
            return PointsInPartitions(X, *of_rows)
        X = X.taken(np.arange(len(X)))
    kind = SparsePoints if sparse.issparse(X) else RepresentationProblem
    return kind(X, *of_rows, held, units)
