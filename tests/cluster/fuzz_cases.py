"""Clusterings: hard fits and arguments."""

from functools import partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture

from skfair import Sensitive
from skfair.cluster import FairAssignment
from tests import naive
from tests.fuzz.hard_fits import Count, Fit, Pair, ones_or_weights, weighted
from tests.fuzz.hard_rows import Rows, draw_rows, pick
from tests.fuzz.parameters import BOOLEAN, PEOPLE


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


FITS = {"FairAssignment": fair_assignment}
ARGUMENTS = {
    "share_bounds": ([None, 0.2], [0.0, -0.1, 2, *PEOPLE]),
    "size_bounds": (
        [None, (0.1, 0.9), (2, 10**6)],
        [(0.9, 0.1), (0, 1), (0.5, 0.5), 0.5, (1, 2, 3), ("a", "b"), (None, 1.0), ([1, 1], 1.0)],
    ),
    "min_balance": ([0.8, None, 0.0], [1.0, 1.5]),
    "members_only": BOOLEAN,
}
