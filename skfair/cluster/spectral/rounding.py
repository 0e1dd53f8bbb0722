"""From an embedding to labels, and from a fit to the labels of new rows.

``FairSpectralClustering.fit`` calls :func:`rounded`, which returns the labels of
:func:`labels_by_kmeans` or :func:`labels_by_pivots` with ``assign_labels="kmeans"`` or
"cluster_qr". With "fair" it makes several starts, which ``fair_cut.py`` rounds to labels within the
limits. :func:`label_attributes` makes the fitted attributes of the estimator from the labels.

``fit`` then calls :func:`remember` to keep what ``predict`` needs: a :class:`CutPrediction`. A new
row joins the cluster of least cost: the rise of the normalised cut of the fit, plus the price that
the row's groups pay in this cluster (``by_prices.py`` defines prices).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, svd
from sklearn.utils import gen_batches

from skfair._typing import FloatArray, IntArray, Rows
from skfair.cluster.assignment.by_prices import assign
from skfair.cluster.assignment.cost_table import CostProblem
from skfair.cluster.assignment.counts import Constraints
from skfair.cluster.assignment.points import RepresentationProblem
from skfair.cluster.plain_kmeans import best_runs
from skfair.cluster.results import count_attributes, warn_of_missed
from skfair.cluster.spectral.eigen.base import EigenResult
from skfair.cluster.spectral.fair_cut import (
    STEPS,
    Cut,
    is_costly,
    linearised_cut,
    round_to_constraints,
)
from skfair.cluster.spectral.group_cut import GroupCut
from skfair.cluster.spectral.weights import NewRows, Weights
from skfair.groups.encoding import GroupEncoding
from skfair.utils.pieces import NUMBERS

# Runs of k-means on each further embedding. The first one has ``n_init``.
_FURTHER_RUNS = 3


@dataclass(frozen=True)
class Rounding:
    """Parameters of an estimator that say how an embedding becomes labels."""

    n_clusters: int
    assign_labels: Literal["fair", "kmeans", "cluster_qr"]
    n_init: int


def rounded(
    problem: GroupCut,
    embedding: NDArray[Any],
    result: EigenResult,
    groups: GroupEncoding,
    constraints: Constraints,
    how: Rounding,
    rng: np.random.RandomState,
) -> Cut:
    """Turn an embedding into labels, and return their cut.

    Solvers that find labels themselves (FFSC, UFSC) pass them in ``result``. They are kept if there
    are no limits. Otherwise fair labels start from the labels found, then from the cheapest
    assignment under the constraints to the means of these clusters. This is often the better start
    if clusters are regions in space. Unless the graph is large, such assignments in other
    embeddings are further starts.
    """
    n_clusters, points = how.n_clusters, unit_rows(embedding)
    if how.assign_labels == "cluster_qr":
        labels = labels_by_pivots(points, n_clusters)
    elif result.labels is not None and embedding.shape[1] == n_clusters:
        labels = result.labels
    else:
        labels = labels_by_kmeans(points, n_clusters, how.n_init, rng)
    stays = result.labels is not None and not constraints.matrix.size
    if how.assign_labels != "fair" or stays:
        return Cut(problem.weights, labels, n_clusters)

    def assigned(points: NDArray[Any], labels: IntArray) -> IntArray:
        """Assign points to the means of clusters under the constraints."""
        own = RepresentationProblem(points, groups, constraints, n_clusters)
        placed = assign(own, own.means(labels)[0], max_iter=STEPS, search_counts=False)
        return np.asarray(placed.labels)

    starts = [labels, assigned(points, labels)]
    if not is_costly(problem.weights):
        for other in _other_embeddings(problem, embedding, result):
            starts.append(assigned(other, labels_by_kmeans(other, n_clusters, _FURTHER_RUNS, rng)))
    costs = CostProblem(groups, constraints, n_clusters)
    return round_to_constraints(problem.weights, costs, starts, rng)


def _other_embeddings(
    problem: GroupCut, embedding: NDArray[Any], result: EigenResult
) -> Iterator[NDArray[Any]]:
    """Yield other points for the rows, which may show clusters that the embedding hides.

    The embedding may have too few vectors, its rows have length 1, and the constraint removed
    directions.
    """
    k, spare, dtype = embedding.shape[1], result.spare, embedding.dtype
    if spare is not None:
        # With more vectors than clusters, points show splits that suit the limits better than the
        # splits of the smallest cut.
        wide = np.concatenate([embedding, spare * problem.scale[:, None]], axis=1)
        for width in sorted({min(width, wide.shape[1]) for width in (k + 1, 2 * k)} - {k}):
            yield unit_rows(wide[:, :width].astype(dtype))
    # Rows between clusters are short. Scaled to length 1, they would hide small clusters.
    yield embedding / dtype.type(float(np.abs(embedding).max()) or 1.0)
    if problem.basis.shape[1]:
        # The constraint hides clusters that follow the groups, which loose limits allow.
        vectors = np.concatenate([result.vectors] + [spare] * (spare is not None), axis=1)
        free = problem.unconstrained(vectors, k) * problem.scale[:, None]
        yield (free / (np.abs(free).max() or 1.0)).astype(dtype)


def label_attributes(cut: Cut, groups: GroupEncoding, constraints: Constraints) -> dict[str, Any]:
    """Return the fitted attributes about the labels; warn if they miss the limits."""
    counts = groups.cross_counts(cut.labels, cut.volume.size).T
    counted = count_attributes(counts, groups, constraints)
    missed = constraints.violation_beyond(counts, 1.0)
    if missed > 0:
        counted["status_"] = "infeasible"
        reached = f"; the balance reached is {counted['balance_']:.4g}"
        warn_of_missed("The limits on the labels", missed, reached)
    return {
        "labels_": cut.labels.astype(np.int32),
        "ncut_": cut.value,
        **counted,
        "average_balance_": float(counted["cluster_balances_"].mean()),
    }


def unit_rows(points: NDArray[Any]) -> NDArray[Any]:
    """Scale each row to length 1; zero rows stay zero."""
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return np.ascontiguousarray(points / np.where(lengths > 0, lengths, 1))


def labels_by_kmeans(
    points: NDArray[Any], n_clusters: int, n_init: int, rng: np.random.RandomState
) -> IntArray:
    """Return the labels of the best of ``n_init`` runs of k-means.

    If there are fewer distinct points than clusters, some clusters stay empty. There is no warning
    here, because their balance of 0 is reported.
    """
    even = np.ones(len(points))
    (model,) = best_runs([points], even, n_clusters, "k-means++", n_init, rng, max_iter=300)
    return np.asarray(model.labels_, dtype=np.int64)


def labels_by_pivots(points: NDArray[Any], n_clusters: int) -> IntArray:
    """Return labels by a QR decomposition with pivoting, "cluster_qr" of scikit-learn.

    The pivots are ``n_clusters`` rows whose directions differ as much as possible, one for each
    cluster. A rotation turns them as close to the axes as possible. It also turns every other row
    towards the axis of its cluster, so its largest coordinate gives the label.
    """
    pivots = qr(points.T, pivoting=True, mode="r")[1]
    left, _, right = svd(points[pivots[:n_clusters], :].T)
    k = min(left.shape[0], right.shape[0])
    rotated = points @ left[:, :k] @ right[:k]
    return np.asarray(np.abs(rotated).argmax(axis=1))


class CutPrediction(NamedTuple):
    """The numbers of a fit that the assignment of new rows needs."""

    # ``new_rows(X) @ members`` are the weights between the rows of X and each cluster of the fit
    new_rows: NewRows
    members: NDArray[np.floating]
    terms: tuple[FloatArray, FloatArray]  # ``Cut.terms``: weights inside each cluster, its volume
    prices: FloatArray  # (n_clusters, n_groups)
    size_prices: FloatArray  # (n_clusters, 1): prices for rows whose group is not known

    def labels(self, X: Rows, codes: IntArray | None) -> NDArray[np.int32]:
        """Return the cluster of each row, the one of the lowest linearised cut plus prices.

        ``codes`` (n_attributes, n) are the groups, whose prices are added. If None, the price for
        the size of the cluster is added.
        """
        costs = self.costs(X)
        if codes is None:
            costs += self.size_prices.T
        for attribute in () if codes is None else codes:
            costs += self.prices.T[attribute]
        return np.asarray(costs.argmin(axis=1), np.int32)

    def costs(self, X: Rows) -> FloatArray:
        """Return the linearised cut of each row in each cluster, (n_samples, n_clusters)."""
        costs = np.empty((X.shape[0], self.members.shape[1]))
        for part in gen_batches(X.shape[0], max(1, NUMBERS // self.members.shape[0])):
            links = np.asarray(self.new_rows(X[part]) @ self.members, dtype=np.float64)
            costs[part] = linearised_cut(links, links.sum(axis=1), *self.terms)
        return costs


def remember(
    new_rows: NewRows, weights: Weights, cut: Cut, groups: GroupEncoding, constraints: Constraints
) -> CutPrediction:
    """Return the numbers that the assignment of new rows needs.

    The prices come from an assignment under the constraints at the costs of the final cut.
    """
    n_clusters = cut.volume.size
    members = np.eye(n_clusters, dtype=weights.dtype)[cut.labels]
    prices, size_prices = np.zeros((n_clusters, groups.n_groups)), np.zeros((n_clusters, 1))
    if constraints.matrix.size:
        problem = CostProblem(groups, constraints, n_clusters)
        placement = assign(problem, cut.linearised(), search_counts=False)
        prices = problem.group_prices(placement.multipliers)
        size_prices = problem.size_prices(placement.multipliers)
    return CutPrediction(new_rows, weights.gather(members), cut.terms, prices, size_prices)
