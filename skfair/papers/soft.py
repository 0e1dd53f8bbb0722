"""Clusterings by centres and by an offset that a member of a group pays for each cluster."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

from numpy.typing import NDArray

from skfair._typing import FloatArray, IntArray
from skfair.problems.clustering.points import RepresentationProblem
from skfair.solvers.base import Status
from skfair.solvers.clustering.base import Clustering, ClusteringSolver, RunSettings, of_labels


class SoftClustering(NamedTuple):
    """A clustering of soft assignments, in the units of the problem."""

    labels: IntArray  # (n_samples,): the cluster of each row
    centers: FloatArray  # (n_clusters, n_features): the centres; not the means of the labels
    # (n_clusters, n_groups): what a member of a group pays for a cluster besides the squared
    # distance; new rows of known group belong to the cluster where the sum is least
    offsets: FloatArray
    n_iter: int  # number of iterations
    status: Status  # why the method ended
    history: dict[str, NDArray[Any]]  # one row per iteration
    assignment: FloatArray | None = None  # (n_samples, n_clusters), if it is kept


class SoftSolver(ClusteringSolver):
    """Base of the solvers with soft assignments: a subclass finds these, and has an objective."""

    def run(
        self, problem: RepresentationProblem, start: FloatArray, settings: RunSettings
    ) -> Clustering:
        soft = self._soft_clustering(problem, start, settings)
        clustering = of_labels(
            problem,
            soft.labels,
            n_iter=soft.n_iter,
            status=soft.status,
            history=soft.history,
            prices=soft.offsets,
        )
        return clustering._replace(objective=self._objective(problem, clustering))

    @abstractmethod
    def _soft_clustering(
        self, problem: RepresentationProblem, centers: FloatArray, settings: RunSettings
    ) -> SoftClustering:
        """Return what is found from scaled starting centres; constraints are not used."""

    @abstractmethod
    def _objective(self, problem: RepresentationProblem, clustering: Clustering) -> float:
        """Return the value by which the best of several runs is chosen."""
