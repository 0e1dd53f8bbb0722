"""The rows that k-means clusters: in memory, sparse, or in the partitions of Dask collections."""

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
    """Return what the rows of a fit must be: sparse ones are read in memory only."""
    return {**ROW_CHECKS, "accept_sparse": False} if is_lazy(X) else ROW_CHECKS


def clustering_problem(
    data: TrainingData,
    constraints: Constraints,
    n_clusters: int,
    held: FloatArray | None = None,  # (n_clusters, n_groups): weight that the clusters hold
    units: Units | None = None,
) -> RepresentationProblem:
    """Return the problem for rows that were read; those of small partitions come here."""
    X, of_rows = data.X, (data.groups, constraints, n_clusters, data.sample_weight)
    if isinstance(X, PartitionedRows):
        # Few rows, too, are visited often, and samples of more rows come here in any case.
        if len(X) > LARGE and not X.is_small:
            return PointsInPartitions(X, *of_rows)
        X = X.taken(np.arange(len(X)))
    kind = SparsePoints if sparse.issparse(X) else RepresentationProblem
    return kind(X, *of_rows, held, units)
