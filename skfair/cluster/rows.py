"""The problem of a clustering, made of rows in memory or in blocks."""

from __future__ import annotations

from skfair.blocks.training_data import TrainingData
from skfair.problems.clustering.counts import Rules
from skfair.problems.clustering.in_blocks import PartitionedProblem
from skfair.problems.clustering.points import RepresentationProblem


def clustering_problem(data: TrainingData, rules: Rules, n_clusters: int) -> RepresentationProblem:
    """Return the problem for rows that were read, wherever they are."""
    return data.build(
        lambda X: RepresentationProblem(X, data.groups, rules, n_clusters, data.sample_weight),
        lambda blocks: PartitionedProblem(blocks, rules, n_clusters),
    )


def check_enough(data: TrainingData, n_clusters: int) -> None:
    """Raise if there are fewer rows than clusters."""
    if data.n_samples < n_clusters:
        raise ValueError(f"n_samples={data.n_samples} should be >= n_clusters={n_clusters}.")
