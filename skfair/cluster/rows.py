"""The rows of a clustering, in memory or in blocks, as what the estimators need of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skfair.base import FitData
from skfair.blocks.kinds import Training
from skfair.groups.encoding import GroupEncoding
from skfair.problems.clustering.counts import Rules
from skfair.problems.clustering.in_blocks import PartitionedProblem
from skfair.problems.clustering.points import RepresentationProblem


class Rows(NamedTuple):
    """Rows that were read and checked."""

    groups: GroupEncoding  # groups of the rows, or of the kinds of rows in blocks
    sums: NDArray[np.float64]  # (n_groups,): weight of each group
    largest_weight: float  # largest weight of a row
    n_samples: int  # number of rows
    has_weights: bool  # whether rows weigh more or less than 1
    # Makes the problem for rules and a number of clusters
    problem: Callable[[Rules, int], RepresentationProblem]

    def check_enough(self, n_clusters: int) -> None:
        """Raise if there are fewer rows than clusters."""
        if self.n_samples < n_clusters:
            raise ValueError(f"n_samples={self.n_samples} should be >= n_clusters={n_clusters}.")


def rows_in_memory(data: FitData) -> Rows:
    """Describe rows in memory."""
    weights = data.sample_weight
    return Rows(
        data.groups,
        data.groups.sums(weights),
        1.0 if weights is None else float(weights.max()),
        data.X.shape[0],
        weights is not None and bool(np.any(weights != 1)),
        lambda rules, k: RepresentationProblem(data.X, data.groups, rules, k, weights),
    )


def rows_in_blocks(training: Training) -> Rows:
    """Describe rows that live elsewhere."""
    return Rows(
        training.groups,
        training.groups.sums(training.weights),
        training.person,
        training.n_samples,
        training.person != 1 or training.weights.sum() != training.n_samples,
        lambda rules, k: PartitionedProblem(training, rules, k),
    )
