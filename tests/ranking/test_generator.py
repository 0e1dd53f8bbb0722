"""Ranking queries: shapes, grades and groups as asked for, and a bias that raises one group."""

import numpy as np
import pytest
from scipy.stats import norm

from skfair.datasets import make_ranking_queries
from skfair.metrics import pair_error_gap
from tests.seeds import seed_of


def test_default_has_the_shape_of_web_search():
    X, y, query_id, groups = make_ranking_queries(random_state=seed_of())
    assert X.shape == (20_000, 136)
    assert np.bincount(query_id).tolist() == [100] * 200
    assert (np.diff(query_id) >= 0).all()
    assert np.unique(groups, return_counts=True)[1].tolist() == [10_000, 10_000]
    assert np.bincount(y) / y.size == pytest.approx([0.5, 0.25, 0.125, 0.0625, 0.0625], abs=1e-3)


def test_the_group_is_the_quality_score_above_its_median():
    X, _, _, groups = make_ranking_queries(
        1000, n_documents=20, n_features=5, n_informative=2, random_state=seed_of()
    )
    assert X[groups == "high", -1].min() > X[groups == "low", -1].max()


def test_bias_is_a_dial_on_the_same_documents():
    options = {"n_samples": 20_000, "n_documents": 50, "n_features": 8, "n_informative": 4}
    fair, biased = (
        make_ranking_queries(**options, bias=bias, random_state=seed_of()) for bias in (0.0, 1.5)
    )
    assert np.array_equal(fair[0], biased[0])
    is_high = fair[3] == "high"
    gaps = [y[is_high].mean() - y[~is_high].mean() for _, y, _, _ in (fair, biased)]
    assert abs(gaps[0]) < 0.15
    assert gaps[1] > 0.5


def test_merit_alone_is_unfair_to_one_direction_only_under_bias():
    options = {"n_documents": 100, "n_features": 4, "n_informative": 1, "noise": 0.5}
    for bias, is_fair in ((0.0, True), (2.0, False)):
        sample = make_ranking_queries(2000, bias=bias, random_state=seed_of(), **options)
        X, y, query_id, groups = sample
        gap = pair_error_gap(y, X[:, 0], query_id=query_id, sensitive_features=groups)
        gap = min(gap, pair_error_gap(y, -X[:, 0], query_id=query_id, sensitive_features=groups))
        assert (gap < 0.1) == is_fair


def test_without_noise_the_grades_are_those_of_the_merit():
    given = {"n_features": 3, "n_informative": 1, "n_levels": 2, "random_state": seed_of()}
    y = make_ranking_queries(200, n_documents=40, noise=0, **given).target
    assert y.sum() == 100


def test_merit_and_luck_of_the_same_size_agree_three_times_in_four():
    given = {"n_informative": 20, "n_levels": 2, "bias": 0, "random_state": seed_of()}
    merit, with_luck = (
        make_ranking_queries(50_000, n_documents=100, n_features=21, noise=s, **given)[1]
        for s in (0, 1)
    )
    far = norm.isf(1e-8) * np.sqrt(0.19 / 50_000)
    assert (merit == with_luck).mean() == pytest.approx(0.75, abs=far)


def test_true_is_one_informative_column():
    given = {"n_documents": 20, "n_features": 5, "random_state": seed_of()}
    one, same = (make_ranking_queries(20, n_informative=k, **given) for k in (1, True))
    assert all(np.array_equal(a, b) for a, b in zip(one, same, strict=True))
