"""Clusters of new rows: where the normalised cut of the fit rises least, at the groups' prices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from skfair._typing import FloatArray, IntArray, Rows
from skfair.groups.encoding import GroupEncoding
from skfair.problems.clustering.cost_table import CostProblem
from skfair.problems.clustering.counts import Rules
from skfair.problems.cut.weights import NewRows, Weights
from skfair.solvers.clustering.assignment import assign
from skfair.solvers.clustering.fair_cut import Cut, linearised_cut
from skfair.utils.pieces import NUMBERS


class CutPrediction(NamedTuple):
    """What the assignment of new rows needs of a fit."""

    new_rows: NewRows
    members: NDArray[np.floating]  # what rows of new_rows are multiplied with: links to clusters
    terms: tuple[FloatArray, FloatArray]  # of the linearised cut
    prices: FloatArray  # (n_clusters, n_groups)

    def labels(self, X: Rows, codes: IntArray | None) -> NDArray[np.int32]:
        """Return the cluster of each row; without group codes (n_attributes, n) at no price."""
        labels = np.empty(X.shape[0], np.int32)
        for part in gen_batches(X.shape[0], max(1, NUMBERS // self.members.shape[0])):
            links = np.asarray(self.new_rows(X[part]) @ self.members, dtype=np.float64)
            costs = linearised_cut(links, links.sum(axis=1), *self.terms)
            for attribute in () if codes is None else codes:
                costs += self.prices.T[attribute[part]]
            labels[part] = costs.argmin(axis=1)
        return labels


def remember(
    new_rows: NewRows, weights: Weights, cut: Cut, groups: GroupEncoding, rules: Rules
) -> CutPrediction:
    """Keep what the assignment of new rows needs."""
    n_clusters = cut.volume.size
    members = np.eye(n_clusters, dtype=weights.dtype)[cut.labels]
    prices = np.zeros((n_clusters, groups.n_groups))
    if rules.matrix.size:
        problem = CostProblem(groups, rules, n_clusters)
        placement = assign(problem, cut.linearised(), search_counts=False)
        prices = -(placement.multipliers @ problem.group_rules)
    return CutPrediction(new_rows, weights.gather(members), cut.terms, prices)
