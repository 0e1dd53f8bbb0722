"""Spectral clustering, for the tests that go over all families (:mod:`tests.families`)."""

from functools import partial

import numpy as np

from skfair.cluster import FairSpectralClustering
from skfair.cluster.affinities import Precomputed
from skfair.cluster.spectral.eigen.base import EIGEN_SOLVERS
from skfair.datasets import make_fair_sbm
from skfair.solvers import DenseEigh, Lanczos
from tests.seeds import seed_of

GRAPH, _, BLOCKS = make_fair_sbm(240, n_clusters=4, n_groups=2, random_state=seed_of(0))
GRAPH = np.asarray(GRAPH.todense())
PLACES = np.arange(240)
ISLANDS = np.where(np.minimum.outer(PLACES, PLACES) < 4, 0.0, GRAPH)
BY_BLOCK = {"sensitive_features": BLOCKS}


class Bent(DenseEigh):
    """A solver that misses the group constraint a little."""

    def steps(self, problem, n_vectors, rng):
        for step in super().steps(problem, n_vectors, rng):
            found = step.pairs()
            bent = found._replace(vectors=found.vectors + 2e-3 * problem.basis[:, :1])
            yield step._replace(pairs=lambda bent=bent: bent)


def graph_clusters(**options):
    return FairSpectralClustering(3, affinity="precomputed", random_state=0, **options)


ASSIGNING = {"FairSpectralClustering": FairSpectralClustering(3, affinity="rbf", n_init=1)}
OF_ONE_GROUP = {"graph": (FairSpectralClustering(3, random_state=0), {})}
CLUSTERERS = {"FairSpectralClustering": FairSpectralClustering}
CONTRACTS = {
    "FairSpectralClustering": (partial(FairSpectralClustering, 3), "labels_", "min_balance")
}
REGISTRIES = {"EIGEN_SOLVERS": EIGEN_SOLVERS}
SOLVER_TESTS = {"FairSpectralClustering": "test_embeddings_are_what_they_are_said_to_be"}
MISSPELT = [
    (FairSpectralClustering, "solver", "lanczo", "lanczos"),
    (FairSpectralClustering, "affinity", "nearest_neighbors_graph", "nearest_neighbors"),
]
SUMMARIES = [(FairSpectralClustering(2), {"balance": None, "relative balance": 0.8})]
THREADS = {"spectral": (FairSpectralClustering(3, random_state=0), 1100)}
ROWS = {"X": GRAPH, **BY_BLOCK}
ENDINGS = {
    FairSpectralClustering: {
        "converged": (graph_clusters(), ROWS),
        "stopped": (graph_clusters(solver=Lanczos()), ROWS),
        "max_iter": (graph_clusters(solver=Lanczos(max_iter=1, tol=1e-9)), ROWS),
        "infeasible": (
            FairSpectralClustering(
                3,
                affinity=Precomputed(dtype="float64"),
                solver=Bent(),
                assign_labels="kmeans",
                random_state=0,
            ),
            ROWS,
        ),
    }
}
WARNINGS = [
    ("FairSpectralClustering was fitted without", lambda: graph_clusters().fit(GRAPH)),
    ("rows have no edges", lambda: graph_clusters().fit(ISLANDS, **BY_BLOCK)),
    (
        "made 1 iterations",
        lambda: graph_clusters(solver=Lanczos(max_iter=1, tol=1e-9)).fit(GRAPH, **BY_BLOCK),
    ),
]
FIRST_FITS = {"FairSpectralClustering(3, random_state=0).fit(X, sensitive_features=g)": (15, 7)}
