"""Clusterings of other libraries, for the benchmark ``peers``.

A predictor gives labels. The disparity is 1 minus the relative balance: the part of the sample's
balance that the smallest balance of a cluster lacks.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering

from benchmarks._peer_tasks import SEEDS, Peer, Predictor, Task, run
from benchmarks.fair_spectral import adult_kernel
from benchmarks.variational import fair_clustering_sample
from skfair.cluster import FairKMeans, FairSpectralClustering
from skfair.datasets import load_local
from skfair.metrics import balance_score, kmeans_cost, normalized_cut

MOST = 0.2  # of disparity, against references: the "80 percent rule"


class Points(NamedTuple):
    """Rows to cluster, their groups, and the cost of plain k-means on them."""

    X: Any
    groups: Any
    unit: float = 1.0


def measure_clusters(part: Points, rule: str, predictor: Predictor) -> tuple[float, float]:
    found = predictor(part)
    balance = balance_score(found, sensitive_features=part.groups, relative=True)
    return kmeans_cost(part.X, found, mean=True) / part.unit, float(1 - balance)


def our_clusters(part: Points, rule: str, disparity: float) -> Predictor:
    model = FairKMeans(5, min_balance=max(1 - disparity, 0.0), random_state=0)
    model.fit(part.X, sensitive_features=part.groups)

    def predict(other: Points) -> Any:
        if other is part:
            return model.labels_
        return model.predict(other.X, sensitive_features=other.groups)

    return predict


def unfair_clusters(rule: str) -> Any:
    def fit(part: Points) -> Predictor:
        model = KMeans(5, n_init=10, random_state=0).fit(part.X)
        return lambda other: model.predict(other.X)

    return fit


def by_means(part: Points, found: Any) -> Predictor:
    """Return the labels of the training rows, and for others the nearest mean of a cluster."""
    found = np.asarray(found).ravel()
    means = np.array([part.X[found == k].mean(axis=0) for k in np.unique(found)])

    def predict(other: Points) -> Any:
        distances = ((other.X[:, None, :] - means) ** 2).sum(axis=2)
        return found if other is part else distances.argmin(axis=1)

    return predict


def holisticai(method: str, **options: Any) -> Any:
    def make(rule: str) -> Any:
        from holisticai.bias import mitigation

        kind = getattr(mitigation, method)

        def fit(part: Points) -> Predictor:
            masks = part.groups == 0, part.groups == 1
            if method == "MCMF":
                start = KMeans(5, n_init=10, random_state=0).fit(part.X)
                centers = start.cluster_centers_
                changed = kind(**options).fit_transform(part.X, start.labels_, *masks, centers)
                return by_means(part, changed["y_pred"])
            model = kind(n_clusters=5, seed=0, **options).fit(part.X, *masks)
            return by_means(part, model.labels_)

        return fit

    return make


K_MEANS = Task(our_clusters, measure_clusters, MOST, is_scored_on_training=True)
K_MEANS_PEERS = (
    Peer("scikit-learn", "KMeans", "sklearn", unfair_clusters, is_reference=True),
    *(
        Peer("holisticai", what, "holisticai.bias.mitigation", holisticai(method, **options))
        for what, method, options in (
            (
                "VariationalFairClustering",
                "VariationalFairClustering",
                {"lmbda": 100.0, "normalize_input": False},
            ),
            ("FairletClustering, scalable", "FairletClustering", {"decomposition": "Scalable"}),
            ("FairletClustering, vanilla", "FairletClustering", {"decomposition": "Vanilla"}),
            ("FairKMedianClustering", "FairKMedianClustering", {}),
            ("MCMF on KMeans", "MCMF", {"metric": "L2"}),
        )
    ),
)


def k_means(quick: bool) -> dict[str, list[dict[str, Any]]]:
    """Compare clusterings of two groups: rows of Adult, half to learn from, half new."""
    n = 500 if quick else 1000
    X, groups = fair_clustering_sample("adult", 2 * n)
    draws = []
    for seed in SEEDS[: 1 if quick else None]:
        order = np.random.default_rng(seed).permutation(2 * n)
        train, test = (Points(X[rows], groups[rows]) for rows in (order[:n], order[n:]))
        draws.append((train._replace(unit=plain_cost(train.X)), test))
    rows = [
        {"data": f"Adult, {n} rows"} | row
        for peer in K_MEANS_PEERS
        for row in run(K_MEANS, peer, "", draws, quick)
    ]
    print("   clusters: done", flush=True)
    return {"clusters": rows}


def plain_cost(X: Any) -> float:
    """Return the mean cost of k-means that was fitted on these very rows."""
    return float(KMeans(5, n_init=10, random_state=0).fit(X).inertia_ / len(X))


class Graph(NamedTuple):
    """Weights between rows and their groups; there are no other rows."""

    X: Any
    groups: Any
    n_clusters: int


def measure_cut(graph: Graph, rule: str, predictor: Predictor) -> tuple[float, float]:
    found = predictor(graph)
    balance = balance_score(found, sensitive_features=graph.groups, relative=True)
    return float(normalized_cut(graph.X, found)), float(1 - balance)


def our_cut(graph: Graph, rule: str, disparity: float) -> Predictor:
    model = FairSpectralClustering(
        graph.n_clusters,
        affinity="precomputed",
        min_balance=max(1 - disparity, 0.0),
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no groups: no constraint on the embedding
        model.fit(graph.X, sensitive_features=graph.groups if disparity < 1 else None)
    return lambda _: model.labels_


def unfair_cut(rule: str) -> Any:
    def fit(graph: Graph) -> Predictor:
        model = SpectralClustering(graph.n_clusters, affinity="precomputed", random_state=0)
        model.fit(graph.X)
        return lambda _: model.labels_

    return fit


def spectral(quick: bool) -> dict[str, list[dict[str, Any]]]:
    """Compare with spectral clustering that knows no groups: a kernel and a graph."""
    n = 500 if quick else 2000
    weights, groups = adult_kernel(n, SEEDS[0])
    names, counts = np.unique(groups, return_counts=True)
    groups[np.isin(groups, names[counts < n // 20])] = names[counts.argmin()]  # one for all of them
    graphs = {f"Adult, rbf, {n} rows": Graph(weights, groups, 5)}
    if not quick:
        network = load_local("lastfm")
        graphs["LastFM"] = Graph(network.adjacency, network.sensitive_features, 10)
    peer = Peer("scikit-learn", "SpectralClustering", "sklearn", unfair_cut, is_reference=True)
    task = Task(our_cut, measure_cut, MOST)
    rows = [
        {"data": name} | row
        for name, graph in graphs.items()
        for row in run(task, peer, "", [(graph, None)], quick)
    ]
    print("   spectral: done", flush=True)
    return {"spectral": rows}
