from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skfair.metrics.clusters import (
    balance_score,
    cluster_balances,
    kl_fairness_error,
    share_deviation,
    share_ratio,
)
from tests import naive
from tests.seeds import generator

RELATIVE = partial(naive.cluster_balances, relative=True)
# A metric, its options, and what a naive twin makes of labels, attributes and weights.
METRICS = {
    "balances": (cluster_balances, {}, naive.cluster_balances),
    "balances_relative": (cluster_balances, {"relative": True}, RELATIVE),
    "balance_min": (balance_score, {}, lambda *a: naive.cluster_balances(*a).min()),
    "balance_mean": (balance_score, {"agg": "mean"}, naive.mean_balance),
    "balance_relative": (balance_score, {"relative": True}, lambda *a: RELATIVE(*a).min()),
    "balance_mean_relative": (
        balance_score,
        {"agg": "mean", "relative": True},
        partial(naive.mean_balance, relative=True),
    ),
    "deviation_max": (share_deviation, {}, lambda *a: naive.share_deviations(*a)[0]),
    "deviation_mean": (share_deviation, {"agg": "mean"}, lambda *a: naive.share_deviations(*a)[1]),
    "share_ratio": (share_ratio, {}, naive.share_ratio),
    "kl": (kl_fairness_error, {}, naive.kl_fairness_error),
}

each_metric = pytest.mark.parametrize(("metric", "options", "twin"), METRICS.values(), ids=METRICS)
by_seed = given(seed=st.integers(0, 2**32 - 1))
few = settings(deadline=None, max_examples=30)


def random_case(seed, n_attributes=1):
    """Draw a small sample; the groups depend on the cluster, some cells are empty."""
    rng = generator(seed)
    n = int(rng.integers(2, 30))
    labels = rng.integers(0, rng.integers(1, 5), n)
    groups = np.stack(
        [(rng.integers(0, rng.integers(1, 4), n) + labels) % 3 for _ in range(n_attributes)], axis=1
    )
    weight = rng.integers(0, 4, n).astype(float)
    weight[rng.integers(n)] += 1.0
    return labels, groups, weight, rng


@each_metric
@pytest.mark.parametrize("n_attributes", [1, 2])
@few
@by_seed
def test_equals_naive_twin(metric, options, twin, n_attributes, seed):
    labels, groups, weight, _ = random_case(seed, n_attributes)
    intersectional, columns = seed % 2 == 0, groups.T.tolist()
    if intersectional:
        columns = naive.intersect(columns)
    given = {"sensitive_features": groups, "intersectional": intersectional, **options}
    for weights in (None, weight):
        value = metric(labels, sample_weight=weights, **given)
        used = np.ones(len(labels)) if weights is None else weights
        assert_allclose(value, twin(labels, columns, used), atol=1e-12)


def test_closed_form():
    # Cluster a: 1 f, 3 m. Cluster b: 3 f, 1 m. Sample: 4 f, 4 m.
    labels, sex = list("aaaabbbb"), list("fmmmfffm")
    assert_array_equal(cluster_balances(labels, sensitive_features=sex), [1 / 3, 1 / 3])
    assert share_deviation(labels, sensitive_features=sex) == 0.25
    assert share_ratio(labels, sensitive_features=sex) == 0.5
    assert kl_fairness_error(labels, sensitive_features=sex) == pytest.approx(np.log(4 / 3))


def test_empty_clusters_have_balance_zero():
    labels, sex = [0, 0, 2, 2], ["f", "m", "f", "m"]
    balances = cluster_balances(labels, sensitive_features=sex, n_clusters=4)
    assert_array_equal(balances, [1, 0, 1, 0])
    assert_array_equal(cluster_balances(labels, sensitive_features=sex), [1, 1])
    assert balance_score(labels, sensitive_features=sex, n_clusters=4) == 0
    assert balance_score(labels, sensitive_features=sex, n_clusters=4, agg="mean") == 0.5
    weighted = cluster_balances(
        labels, sensitive_features=sex, sample_weight=[1, 1, 0, 0], n_clusters=3
    )
    assert_array_equal(weighted, [1, 0, 0])
    # With a single group all others are balanced; noise is a cluster.
    options = {"sensitive_features": ["f"] * 4}
    assert_array_equal(cluster_balances([0, 0, 1, 1], n_clusters=3, **options), [1, 1, 0])
    assert balance_score([0, 0, 1, 1], relative=True, **options) == 1
    assert_array_equal(cluster_balances([-1, -1, 0, 0], sensitive_features=list("fffm")), [0, 1])


def test_equal_shares_never_give_a_negative_error():
    rng = generator(0)
    weight = rng.random(6)
    for n_clusters in range(1, 12):
        labels = np.repeat(np.arange(n_clusters), 6)
        groups = np.tile(list("abcdef"), n_clusters)
        error = kl_fairness_error(
            labels, sensitive_features=groups, sample_weight=np.tile(weight, n_clusters)
        )
        assert 0 <= error < 1e-12


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, bool, "Int64", "category"])
def test_numbered_labels_of_any_kind(dtype):
    labels = pd.Series([1, 1, 1, 0, 0], dtype=dtype)
    balances = cluster_balances(labels, sensitive_features=["f", "m", "m", "f", "m"], n_clusters=3)
    assert_array_equal(balances, [1, 0.5, 0])
