"""The problem of a clustering, made of rows in memory or in blocks."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from skfair._typing import MatrixLike
from skfair.blocks.partitions import is_lazy
from skfair.groups.training_data import TrainingData
from skfair.problems.clustering.counts import Rules
from skfair.problems.clustering.in_blocks import PartitionedProblem
from skfair.problems.clustering.points import RepresentationProblem
from skfair.problems.clustering.sparse_points import SparsePoints
from skfair.read import ROW_CHECKS


def row_checks(X: MatrixLike) -> dict[str, Any]:
    """Return what the rows of a fit must be: sparse ones are read in memory only."""
    return {**ROW_CHECKS, "accept_sparse": False} if is_lazy(X) else ROW_CHECKS


def problem_type(X: MatrixLike) -> type[RepresentationProblem]:
    """Return the type of problem for rows in memory, dense or sparse."""
    return SparsePoints if sparse.issparse(X) else RepresentationProblem


def clustering_problem(data: TrainingData, rules: Rules, n_clusters: int) -> RepresentationProblem:
    """Return the problem for rows that were read, wherever they are."""
    if data.blocks is not None:
        return PartitionedProblem(data.blocks, rules, n_clusters)
    return problem_type(data.X)(data.X, data.groups, rules, n_clusters, data.sample_weight)


def check_enough(n_samples: int, n_clusters: int) -> None:
    """Raise if there are fewer rows than clusters."""
    if n_samples < n_clusters:
        raise ValueError(f"{n_samples=} should be >= {n_clusters=}.")
