"""Pairs of documents: which there are, which are drawn, and the constraint on their errors."""

import numpy as np
import pytest
from scipy.stats import binom

from skfair.groups.encoding import encode_groups
from skfair.ranking.pairs import PairErrors, draw_pairs
from tests.seeds import seed_of


def sample(seed, n=60, n_queries=3, n_groups=2):
    rng = np.random.RandomState(seed_of(seed))
    grades = rng.randint(0, 4, n).astype(float)
    query_id = rng.randint(0, n_queries, n)
    groups = np.array(list("fmx"))[rng.randint(0, n_groups, n)]
    return grades, query_id, groups


def queries_of(query_id):
    return [np.flatnonzero(query_id == query) for query in range(query_id.max() + 1)]


def all_pairs(grades, query_id):
    n = grades.size
    return {
        (i, j)
        for i in range(n)
        for j in range(n)
        if query_id[i] == query_id[j] and grades[i] > grades[j]
    }


def drawn(seed, max_pairs, **options):
    grades, query_id, groups = sample(seed, **options)
    encoding = encode_groups(groups)
    rng = np.random.RandomState(seed_of())
    pairs = draw_pairs(grades, queries_of(query_id), encoding.cells().codes, max_pairs, rng)
    return grades, query_id, groups, pairs


@pytest.mark.parametrize("seed", range(3))
def test_without_a_limit_all_pairs_are_there_once(seed):
    grades, query_id, groups, pairs = drawn(seed, 10**6, n_groups=3)
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == all_pairs(grades, query_id)
    for kind in pairs.kinds:
        assert len(set(groups[kind.first])) == len(set(groups[kind.second])) == 1


def test_weights_make_queries_and_their_pairs_count_alike():
    for max_pairs in (5, 10**6):
        grades, query_id, _, pairs = drawn(1, max_pairs)
        of_query = np.bincount(query_id[pairs.first], pairs.weights)
        assert of_query == pytest.approx(np.full(3, 1 / 3))
    n_pairs = np.bincount([query_id[i] for i, _ in all_pairs(grades, query_id)])
    assert pairs.weights == pytest.approx(1 / 3 / n_pairs[query_id[pairs.first]])


def test_pairs_of_a_kind_are_drawn_evenly_and_without_replacement():
    grades, queries, one_group = np.arange(6.0), [np.arange(6)], np.zeros(6, int)
    counts = np.zeros((6, 6), int)
    for draw in range(2000):
        rng = np.random.RandomState(seed_of(draw))
        pairs = draw_pairs(grades, queries, one_group, 4, rng)
        assert len(set(zip(pairs.first, pairs.second, strict=True))) == 4
        counts[pairs.first, pairs.second] += 1
    chosen = counts[np.tril_indices(6, -1)]
    assert chosen.sum() == counts.sum() == 8000
    often = 2000, 4 / 15  # 15 pairs, 4 of them at a time
    assert binom.ppf(1e-8, *often) <= chosen.min()
    assert chosen.max() <= binom.isf(1e-8, *often)


def test_smooth_errors_approach_the_errors():
    scores = np.array([-2.0, -0.5, 0.5, 2.0])
    moment = PairErrors()
    assert moment.strict(np.append(scores, 0)).tolist() == [1, 1, 0, 0, 0.5]
    assert moment.parts(scores, 50.0)[0] == pytest.approx(moment.strict(scores), abs=1e-6)
    h = 1e-6
    for temperature in (1.0, 3.0):
        _, slope, curvature = moment.parts(scores, temperature)
        up, down = moment.parts(scores + h, temperature), moment.parts(scores - h, temperature)
        assert slope == pytest.approx((up[0] - down[0]) / (2 * h), abs=1e-6)
        assert curvature == pytest.approx((up[1] - down[1]) / (2 * h), abs=1e-6)
