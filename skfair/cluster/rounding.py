"""From an embedding to labels: k-means, pivots, and where the rounding to fair labels starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd
from sklearn.utils import gen_batches

from skfair._typing import FloatArray, IntArray, Rows
from skfair.cluster.limits import attribute_balances, count_balances, data_balances
from skfair.cluster.starts import best_runs
from skfair.groups.encoding import GroupEncoding
from skfair.problems.clustering.cost_table import CostProblem
from skfair.problems.clustering.counts import Rules
from skfair.problems.clustering.points import RepresentationProblem
from skfair.problems.cut.group_cut import GroupCut
from skfair.problems.cut.weights import NewRows, Weights
from skfair.solvers.clustering.assignment import STEPS, assign
from skfair.solvers.clustering.fair_cut import Cut, is_costly, linearised_cut, round_to_rules
from skfair.solvers.eigen.base import EigenResult
from skfair.utils.pieces import NUMBERS

# Runs of k-means on the embeddings of further starts.
_FURTHER_RUNS = 3


@dataclass(frozen=True)
class Rounding:
    """How the rows of an embedding become labels; the fields are parameters of the estimator."""

    n_clusters: int
    assign_labels: str
    n_init: int

    def cut(
        self,
        problem: GroupCut,
        embedding: NDArray[Any],
        result: EigenResult,
        groups: GroupEncoding,
        rules: Rules,
        rng: np.random.RandomState,
    ) -> Cut:
        """Turn an embedding into labels within the limits, with what else the solver found."""
        spare = result.spare
        largest = float(np.abs(embedding).max())
        points = unit_rows(embedding)
        if self.assign_labels == "cluster_qr":
            labels = labels_by_pivots(points, self.n_clusters)
        elif result.labels is not None and embedding.shape[1] == self.n_clusters:
            labels = result.labels
        else:
            labels = labels_by_kmeans(points, self.n_clusters, self.n_init, rng)
        stays = result.labels is not None and not rules.matrix.size
        if self.assign_labels != "fair" or stays:
            return Cut(problem.weights, labels, self.n_clusters)
        others = []
        if spare is not None and not is_costly(problem.weights):
            # More vectors than clusters see splits that the limits favour but the cut does not.
            wide = np.concatenate([embedding, spare * problem.scale[:, None]], axis=1)
            k = embedding.shape[1]
            widths = {min(width, wide.shape[1]) for width in (k + 1, 2 * k)} - {k}
            others = [
                unit_rows(wide[:, :width].astype(embedding.dtype)) for width in sorted(widths)
            ]
        if not is_costly(problem.weights):
            # Rows between clusters are short, and of length 1 they blur clusters that are small.
            others.append(embedding / embedding.dtype.type(largest or 1.0))
        if problem.basis.shape[1] and not is_costly(problem.weights):
            # The constraint hides clusters that follow the groups, which loose limits allow.
            vectors = np.concatenate([result.vectors] + [spare] * (spare is not None), axis=1)
            free = problem.unconstrained(vectors, embedding.shape[1]) * problem.scale[:, None]
            others.append((free / (np.abs(free).max() or 1.0)).astype(embedding.dtype))
        starts = rounding_starts(points, labels, others, groups, rules, self.n_clusters, rng)
        costs = CostProblem(groups, rules, self.n_clusters)
        return round_to_rules(problem.weights, costs, starts, rng).cut


def label_attributes(cut: Cut, groups: GroupEncoding) -> dict[str, Any]:
    """Return what an estimator says of its labels."""
    counts = groups.cross_counts(cut.labels, cut.volume.size).T
    balances = count_balances(counts, groups)
    of_data = data_balances(groups, groups.sums())
    return {
        "labels_": cut.labels.astype(np.int32),
        "ncut_": cut.value,
        "group_counts_": counts,
        "cluster_balances_": balances,
        "balance_": float(balances.min()),
        "average_balance_": float(balances.mean()),
        "relative_balance_": float((attribute_balances(counts, groups) / of_data).min()),
    }


def unit_rows(points: NDArray[Any]) -> NDArray[Any]:
    """Scale each row to length 1; zero rows stay zero."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.ascontiguousarray(points / np.where(lengths > 0, lengths, 1))


def labels_by_kmeans(
    points: NDArray[Any], n_clusters: int, n_init: int, rng: np.random.RandomState
) -> IntArray:
    """Return the labels of the best of several runs of k-means.

    With fewer distinct points than clusters some stay empty, as the balances will say.
    """
    even = np.ones(len(points))
    (model,) = best_runs([points], even, n_clusters, "k-means++", n_init, rng, max_iter=300)
    return np.asarray(model.labels_, dtype=np.int64)


def labels_by_pivots(points: NDArray[Any], n_clusters: int) -> IntArray:
    """Read the clusters off the embedding by a QR decomposition with pivoting (cluster_qr).

    The pivots are rows that stand for a cluster each; the rotation that makes them axes turns every
    row towards the axis of its cluster.
    """
    pivots = qr(points.T, pivoting=True, mode="r")[1]
    left, _, right = svd(points[pivots[:n_clusters], :].T)
    k = min(left.shape[0], right.shape[0])
    rotated = points @ left[:, :k] @ right[:k]
    return np.asarray(np.abs(rotated).argmax(axis=1))


def rounding_starts(
    points: NDArray[Any],
    labels: IntArray,
    others: Sequence[NDArray[Any]],
    groups: GroupEncoding,
    rules: Rules,
    n_clusters: int,
    rng: np.random.RandomState,
) -> list[IntArray]:
    """Return labels from which the rounding starts.

    The labels of k-means; the cheapest assignment under the constraints to the means of these
    clusters, which is often better where clusters are regions in space; and the same from other
    embeddings.
    """
    starts = [labels, _assigned(points, labels, groups, rules, n_clusters)]
    for other in others:
        by_kmeans = labels_by_kmeans(other, n_clusters, _FURTHER_RUNS, rng)
        starts.append(_assigned(other, by_kmeans, groups, rules, n_clusters))
    return starts


def _assigned(
    points: NDArray[Any],
    labels: IntArray,
    groups: GroupEncoding,
    rules: Rules,
    n_clusters: int,
) -> IntArray:
    """Assign points to the means of clusters under the constraints."""
    problem = RepresentationProblem(points, groups, rules, n_clusters)
    means = problem.means(labels)[0]
    placement = assign(problem, means, max_iter=STEPS, search_counts=False)
    return np.asarray(placement.labels)


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
