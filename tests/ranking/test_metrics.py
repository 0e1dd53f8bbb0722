"""Metrics of rankings: equal to loops over pairs and places, and their plain properties."""

import numpy as np
import pytest

from skfair.metrics import exposure_gap, ndcg, pair_error_gap, rank_gap
from tests.naive import ranking as naive
from tests.seeds import generator

GAPS = {
    pair_error_gap: naive.pair_error_gaps,
    exposure_gap: lambda y, s, q, g: naive.exposure_gaps(s, q, g),
    rank_gap: lambda y, s, q, g: naive.rank_gaps(s, q, g),
}
each = pytest.mark.parametrize("metric", GAPS, ids=lambda metric: metric.__name__)


def sample(seed, n=60, n_groups=2, n_scores=None):
    """Rows in mixed order, with queries of one group, of one grade and of one row."""
    rng = generator(seed)
    query_id = np.array(["q1", "q2", "q3", "one group", "one grade"])[rng.integers(0, 5, n)]
    query_id[0] = "alone"
    groups = np.array(list("fmx"))[rng.integers(0, n_groups, n)]
    groups[query_id == "one group"] = "f"
    y = rng.integers(0, 4, n)
    y[query_id == "one grade"] = 1
    scores = rng.normal(size=n) if n_scores is None else rng.integers(0, n_scores, n).astype(float)
    return y, scores, query_id, groups


@each
@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("n_scores", [None, 3])
@pytest.mark.parametrize(
    ("aggregate", "reduce"),
    [
        ("mean", np.mean),
        ("median", np.median),
        ("worst", max),
        (0.9, lambda v: np.quantile(v, 0.9)),
    ],
)
def test_gaps_equal_loops(metric, n_groups, n_scores, aggregate, reduce):
    for seed in range(3):
        y, scores, query_id, groups = sample(seed, n_groups=n_groups, n_scores=n_scores)
        expected = [v for v in GAPS[metric](y, scores, query_id, groups) if v is not None]
        found = metric(y, scores, query_id=query_id, sensitive_features=groups, agg=aggregate)
        assert found == pytest.approx(reduce(expected), abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 100])
def test_only_the_first_places_count(k):
    _, scores, query_id, groups = sample(0, n_scores=4)
    for metric, gaps in ((exposure_gap, naive.exposure_gaps), (rank_gap, naive.rank_gaps)):
        expected = np.mean([v for v in gaps(scores, query_id, groups, k) if v is not None])
        found = metric(None, scores, query_id=query_id, sensitive_features=groups, k=k)
        assert found == pytest.approx(expected, abs=1e-12)


def test_ndcg_is_the_mean_over_queries():
    y, scores, query_id, groups = sample(1)
    y[query_id == "q3"] = 0
    expected = naive.ndcg(y, scores, query_id)
    assert ndcg(y, scores, query_id=query_id, sensitive_features=groups) == pytest.approx(expected)
    assert ndcg(y, y.astype(float), query_id=query_id) == pytest.approx(1)


def test_several_attributes_are_pooled_or_crossed():
    y, scores, query_id, groups = sample(4)
    other = generator(1).choice(["old", "young"], y.size)
    both = np.column_stack([groups, other])
    options = {"query_id": query_id, "agg": "worst"}
    for metric in GAPS:
        single = [metric(y, scores, sensitive_features=g, **options) for g in (groups, other)]
        pooled = metric(y, scores, sensitive_features=both, intersectional=False, **options)
        assert pooled == pytest.approx(max(single), abs=1e-12)
        crossed = metric(y, scores, sensitive_features=both, **options)
        names = [f"{a} {b}" for a, b in both]
        assert crossed == pytest.approx(
            metric(y, scores, sensitive_features=names, **options), abs=1e-12
        )


def test_nothing_to_compare():
    y, scores, query_id = [1, 0], [0.1, 0.2], [0, 0]
    for groups in ("f", "f"), ("f", "m"):
        options = {"query_id": query_id, "sensitive_features": groups}
        assert np.isnan(pair_error_gap(y, scores, **options, zero_division=np.nan))
        with pytest.raises(ValueError, match="undefined in each of the 1 queries"):
            pair_error_gap(y, scores, **options)
    assert np.isnan(ndcg([0, 0], scores, query_id=query_id, zero_division=np.nan))


@pytest.mark.parametrize("metric", [pair_error_gap, exposure_gap, rank_gap])
def test_each_query_can_be_listed(metric):
    """The value of a query alone is its entry in the list of all."""
    rng = generator(9)
    query = rng.permutation(np.resize(["q1", "q2", "q3"], 60))
    groups, y, scores = (
        rng.permutation(np.resize(["f", "m"], 60)),
        np.arange(60) % 4,
        rng.random(60),
    )
    listed = metric(y, scores, query_id=query, sensitive_features=groups, agg=None)
    assert sorted(listed) == ["q1", "q2", "q3"]
    for name, gap in listed.items():
        own = query == name
        rows = {"query_id": query[own], "sensitive_features": groups[own]}
        assert gap == pytest.approx(metric(y[own], scores[own], **rows))
    worst = metric(y, scores, query_id=query, sensitive_features=groups, agg="worst")
    assert max(listed.values()) == pytest.approx(worst)
