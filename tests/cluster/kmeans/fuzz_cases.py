"""k-means: hard fits and arguments."""

from typing import Any

import numpy as np

from skfair import Sensitive
from skfair.cluster import FairKMeans, ParetoFairKMeans
from skfair.cluster.kmeans.solver import CLUSTERING_SOLVERS
from tests.cluster.fuzz_cases import balances, clustering, draw_limit
from tests.fuzz.hard_fits import EXACT, Count, Fit, Pair, weighted
from tests.fuzz.hard_rows import OFTEN_TIED, draw_rows, pick
from tests.fuzz.parameters import MODELS

BALANCED = [name for name in CLUSTERING_SOLVERS if CLUSTERING_SOLVERS[name].keeps_balance]


def fair_kmeans(rng: np.random.Generator) -> Fit:
    rows, intersectional = draw_rows(rng, ties=OFTEN_TIED), bool(rng.integers(2))
    few = rows.n if rows.n < 15 else 5
    n_clusters = min(pick(rng, [1, 2, 2, 3, 4, few, few]), rows.n)
    estimator = FairKMeans(
        n_clusters,
        **draw_limit(rng, rows, intersectional),
        init=pick(rng, ["k-means++", "random"]),
        n_init=pick(rng, ["auto", 1, 2]),
        sensitive=Sensitive(intersectional=intersectional),
        random_state=0,
    )
    is_simple = rows.weights is None and len(rows.columns(intersectional)) == 1
    if is_simple and estimator.share_bounds is None and rng.random() < 0.6:
        estimator.set_params(solver=pick(rng, BALANCED))
    return clustering(estimator, rows, n_clusters)


def pareto_kmeans(rng: np.random.Generator) -> Fit:
    rows, intersectional = draw_rows(rng), bool(rng.integers(2))
    n_clusters = min(pick(rng, [2, 2, 3]), rows.n)
    estimator = ParetoFairKMeans(
        n_clusters,
        balances=pick(rng, [3, 5]),
        n_init=1,
        max_iter=30,
        sensitive=Sensitive(intersectional=intersectional),
        random_state=0,
    )

    def count(model: Any) -> Count:
        pairs, missed = [], -np.inf
        whole = balances(np.zeros(rows.n, int), rows, intersectional, 1)
        pairs.append(Pair("data_balance_", model.data_balance_, float(whole.min())))
        for i, labels in enumerate(model.labels_):
            own = balances(labels, rows, intersectional, n_clusters)
            pairs.append(Pair(f"balances_[{i}]", model.balances_[i], float(own.min())))
            asked = float(model.relative_balances_[i])
            reached = model.select(min_balance=asked).balance_ / model.data_balance_
            if len(rows.columns(intersectional)) == 1:
                missed = max(missed, asked - reached - EXACT)
        return Count(pairs, missed)

    return Fit(estimator, rows, count, given=weighted(rows))


def fitted_clusters(sample):
    return FairKMeans(1, min_balance=0.0, n_init=1, max_iter=2).fit(
        np.clip(sample.X, -9, 9), sensitive_features=sample.groups
    )


FITS = {"FairKMeans": fair_kmeans, "ParetoFairKMeans": pareto_kmeans}
SETTINGS = {
    "FairKMeans": {"n_clusters": 2, "n_init": 1, "max_iter": 4},
    "ParetoFairKMeans": {"n_clusters": 2, "balances": 3, "n_init": 1, "max_iter": 4},
}
OWNERS = {FairKMeans: CLUSTERING_SOLVERS}
ARGUMENTS = {
    "assign.before": ([None, "fit"], ["yesterday", [[1.0]]]),
    "init": (["k-means++", "random"], [np.zeros((2, 3)), np.full((2, 3), np.nan), np.ones((2, 9))]),
    "ParetoFairKMeans.balances": (
        [3],
        [[0.1, 0.9], [2.0], [], [float("nan")], [0.5, 0.5], [[0.1]], 1],
    ),
    "ClusterCompositionDisplay.from_estimator.estimator": (fitted_clusters, MODELS),
}
