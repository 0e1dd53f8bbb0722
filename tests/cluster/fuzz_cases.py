"""Clusterings: hard fits and arguments."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture

from skfair import Sensitive
from skfair.cluster import FairAssignment, FairKMeans, ParetoFairKMeans
from tests import naive
from tests.fuzz.hard_fits import EXACT, Count, Fit, Pair, ones_or_weights, weighted
from tests.fuzz.hard_rows import OFTEN_TIED, Rows, draw_rows, pick
from tests.fuzz.parameters import BOOLEAN, MODELS, PEOPLE
from tests.registries import CLUSTERING_SOLVERS


def draw_limit(rng: np.random.Generator, rows: Rows, intersectional: bool) -> dict[str, Any]:
    """Draw a limit on the composition of clusters; most groups are too small for many clusters."""
    if rng.random() < 0.1:
        return {"min_balance": 0.0}
    if rng.random() < 0.3:
        return {"min_balance": None, "share_bounds": pick(rng, [0.5, 0.8, 0.95, 1.0])}
    wanted = pick(rng, [0.0, 0.5, 0.8, 0.8, 0.95, 1.0])
    if rng.random() < 0.3:
        attained = min(balances(np.zeros(rows.n, int), rows, intersectional, 1))
        return {"min_balance": wanted * attained * (1 - 1e-9), "relative_balance": False}
    return {"min_balance": wanted}


def balances(labels: Any, rows: Rows, intersectional: bool, n_clusters: int) -> np.ndarray:
    """The balance of each cluster, of its worst attribute."""
    columns, weights = rows.columns(intersectional), ones_or_weights(rows)
    return naive.cluster_balances(labels, columns, weights, range(n_clusters))


def tables(labels: Any, rows: Rows, intersectional: bool, n_clusters: int) -> list[np.ndarray]:
    """The weight of each group in each cluster, for each attribute."""
    weights = ones_or_weights(rows)
    return [
        np.array(
            [
                [weights[(labels == k) & (groups == g)].sum() for g in sorted(set(groups))]
                for k in range(n_clusters)
            ]
        )
        for groups in rows.columns(intersectional)
    ]


def rows_missed(model: Any, labels: Any, rows: Rows, n_clusters: int) -> float:
    """What limits are missed by beyond a row: at most 0 if each is missed by less than one."""
    weights = ones_or_weights(rows)
    heaviest, worst = float(weights.max()), -np.inf
    for table in tables(labels, rows, model._sensitive.intersectional, n_clusters):
        sums = table.sum(axis=0)
        if model.share_bounds is not None:
            shares, f = sums / sums.sum(), model.share_bounds
            sizes = table.sum(axis=1, keepdims=True)
            low = f * shares * sizes - table
            high = table - np.minimum(1.0, shares / f) * sizes
            worst = max(worst, low.max(), high.max())
        elif model.min_balance and sums.size > 1:
            unit = sums.min() / sums.max() if model.relative_balance else 1.0
            worst = max(
                worst, (model.min_balance * unit * table.max(axis=1) - table.min(axis=1)).max()
            )
            if table.min() == 0:
                worst = max(worst, 2 * heaviest)
    return (worst - heaviest * (1 - 1e-7)) / heaviest


def cluster_count(model: Any, rows: Rows, n_clusters: int) -> Count:
    counted = balances(model.labels_, rows, model._sensitive.intersectional, n_clusters)
    pairs = [Pair("balance_", model.balance_, float(counted.min()))]
    return Count(pairs, rows_missed(model, model.labels_, rows, n_clusters))


def clustering(estimator: Any, rows: Rows, n_clusters: int) -> Fit:
    count = partial(cluster_count, rows=rows, n_clusters=n_clusters)
    return Fit(estimator, rows, count, given=weighted(rows))


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


def fair_assignment(rng: np.random.Generator) -> Fit:
    rows, intersectional = draw_rows(rng), bool(rng.integers(2))
    n_clusters = min(pick(rng, [1, 2, 2, 3, 4]), rows.n)
    kinds = [KMeans(n_clusters, n_init=1), MiniBatchKMeans(n_clusters, n_init=1)]
    if rows.weights is None:
        kinds.append(GaussianMixture(n_clusters))
    inner = pick(rng, kinds)
    estimator = FairAssignment(
        inner,
        **draw_limit(rng, rows, intersectional),
        sensitive=Sensitive(intersectional=intersectional),
        random_state=0,
    )
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


FITS = {
    "FairKMeans": fair_kmeans,
    "ParetoFairKMeans": pareto_kmeans,
    "FairAssignment": fair_assignment,
}
SETTINGS = {
    "FairKMeans": {"n_clusters": 2, "n_init": 1, "max_iter": 4},
    "ParetoFairKMeans": {"n_clusters": 2, "balances": 3, "n_init": 1, "max_iter": 4},
}
OWNERS = {FairKMeans: CLUSTERING_SOLVERS}
ARGUMENTS = {
    "share_bounds": ([None, 0.2], [0.0, -0.1, 2, *PEOPLE]),
    "size_bounds": (
        [None, (0.1, 0.9), (2, 10**6)],
        [(0.9, 0.1), (0, 1), (0.5, 0.5), 0.5, (1, 2, 3), ("a", "b"), (None, 1.0), ([1, 1], 1.0)],
    ),
    "min_balance": ([0.8, None, 0.0], [1.0, 1.5]),
    "assign.before": ([None, "fit"], ["yesterday", [[1.0]]]),
    "init": (["k-means++", "random"], [np.zeros((2, 3)), np.full((2, 3), np.nan), np.ones((2, 9))]),
    "ParetoFairKMeans.balances": (
        [3],
        [[0.1, 0.9], [2.0], [], [float("nan")], [0.5, 0.5], [[0.1]], 1],
    ),
    "ClusterCompositionDisplay.from_estimator.estimator": (fitted_clusters, MODELS),
    "members_only": BOOLEAN,
}
