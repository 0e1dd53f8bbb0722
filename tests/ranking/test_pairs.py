"""Pairs of documents: which there are, which are drawn, and the rule on their errors."""

import numpy as np
import pytest

from skfair.groups.encoding import encode_groups
from skfair.ranking.pairs import PairErrors, bind_pairs, draw_pairs
from tests.naive import ranking as naive


def sample(seed, n=60, n_queries=3, n_groups=2):
    rng = np.random.RandomState(seed)
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
    rng = np.random.RandomState(0)
    pairs = draw_pairs(grades, queries_of(query_id), encoding.cells().codes, max_pairs, rng)
    return grades, query_id, groups, encoding, pairs


@pytest.mark.parametrize("seed", range(3))
def test_without_a_limit_all_pairs_are_there_once(seed):
    grades, query_id, groups, _, pairs = drawn(seed, 10**6, n_groups=3)
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))
    assert len(found) == len(set(found))
    assert set(found) == all_pairs(grades, query_id)
    for kind in pairs.kinds:
        assert len(set(groups[kind.first])) == len(set(groups[kind.second])) == 1


def test_weights_make_queries_and_their_pairs_count_alike():
    for max_pairs in (5, 10**6):
        grades, query_id, _, _, pairs = drawn(1, max_pairs)
        of_query = np.bincount(query_id[pairs.first], pairs.weights)
        assert of_query == pytest.approx(np.full(3, 1 / 3))
    n_pairs = np.bincount([query_id[i] for i, _ in all_pairs(grades, query_id)])
    assert pairs.weights == pytest.approx(1 / 3 / n_pairs[query_id[pairs.first]])


def test_pairs_of_a_kind_are_drawn_evenly_and_without_replacement():
    grades, query_id, groups = np.arange(6.0), np.zeros(6, int), np.repeat("f", 6)
    counts = np.zeros((6, 6))
    for seed in range(2000):
        pairs = draw_pairs(
            grades,
            queries_of(query_id),
            encode_groups(groups).cells().codes,
            4,
            np.random.RandomState(seed),
        )
        assert len(set(zip(pairs.first, pairs.second, strict=True))) == 4
        counts[pairs.first, pairs.second] += 1
    chosen = counts[np.tril_indices(6, -1)] / 2000  # 15 pairs, 4 of them at a time
    assert counts.sum() == 8000
    assert chosen == pytest.approx(np.full(15, 4 / 15), abs=0.05)


def test_names_of_groups_do_not_matter():
    grades, query_id, groups = sample(4)
    found = []
    for names in (groups, np.where(groups == "f", "z", "a")):
        codes = encode_groups(names).cells().codes
        found.append(draw_pairs(grades, queries_of(query_id), codes, 7, np.random.RandomState(0)))
    assert np.array_equal(found[0].first, found[1].first)
    assert np.array_equal(found[0].second, found[1].second)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_rows_of_the_rule_are_differences_of_error_rates(n_groups):
    grades, query_id, groups, encoding, pairs = drawn(2, 10**6, n=90, n_groups=n_groups)
    names = ["q0", "q1", "q2"]
    rule, compared, _ = bind_pairs(pairs, names, encoding, encoding.cells(), 0.1)
    scores = np.random.RandomState(0).randint(0, 3, grades.size).astype(float)
    strict = rule.moment.strict(scores[pairs.first] - scores[pairs.second])
    values = rule.matrix @ rule.means(strict)
    assert values.size == len(compared) == 3 * n_groups * (n_groups - 1) // 2
    for value, (query, a, b) in zip(values, compared, strict=True):
        rows = naive.rows_of(query_id, query)
        in_a, in_b = ({i for i in rows if groups[i] == encoding.names[group]} for group in (a, b))
        expected = naive.pair_error_rate(grades, scores, rows, in_b, in_a)
        expected -= naive.pair_error_rate(grades, scores, rows, in_a, in_b)
        assert value == pytest.approx(expected)
    assert rule.rate_names[0] == f"query q0: {encoding.names[0]} better than {encoding.names[1]}"
    assert rule.upper == pytest.approx(0.1)
    assert rule.lower == pytest.approx(-0.1)


def test_overlapping_attributes_have_rows_of_their_own():
    grades, query_id, groups = sample(5, n=120)
    other = np.random.RandomState(1).choice(["old", "young"], 120)
    encoding = encode_groups(np.column_stack([groups, other]), intersectional=False)
    atoms = encoding.cells()
    pairs = draw_pairs(grades, queries_of(query_id), atoms.codes, 10**6, np.random.RandomState(0))
    rule, compared, _ = bind_pairs(pairs, [0, 1, 2], encoding, atoms, 0.1)
    scores = np.random.RandomState(2).normal(size=120)
    strict = rule.moment.strict(scores[pairs.first] - scores[pairs.second])
    values = np.abs(rule.matrix @ rule.means(strict))
    expected = [
        naive.pair_error_gaps(grades, scores, query_id, attribute) for attribute in (groups, other)
    ]
    assert len(compared) == 6
    assert sorted(values) == pytest.approx(sorted(expected[0] + expected[1]))


def test_queries_with_one_direction_only_are_not_compared():
    grades, query_id = np.array([1.0, 0, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 1, 1])
    groups = encode_groups(["f", "m", "f", "m", "m", "f"])
    atoms = groups.cells()
    pairs = draw_pairs(grades, queries_of(query_id), atoms.codes, 9, np.random.RandomState(0))
    rule, compared, _ = bind_pairs(pairs, ["a", "b"], groups, atoms, 0.1)
    assert [comparison.query for comparison in compared] == [1]
    assert rule.matrix.shape == (1, 2)


def test_no_pair_at_all():
    with pytest.raises(ValueError, match="No query has two documents of different grades"):
        draw_pairs(np.ones(4), queries_of(np.zeros(4, int)), np.zeros(4, int), 9, None)


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
