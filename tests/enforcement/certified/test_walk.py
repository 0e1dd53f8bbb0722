"""Rates of parts of the rows, walks in a fixed order, and how many people it takes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from skfair import metrics
from skfair.enforcement.certified.walk import (
    Peers,
    RowRates,
    last_satisfied,
    likely_p_values,
    people_needed,
    walk,
)
from skfair.groups.row_units import read_units
from skfair.groups.two_rates import both_ways, melded, score
from tests.seeds import generator


def rates_of(groups, limit=0.1, weights=None, ratio=False, overall=False):
    """Selection rates of groups, written down by hand."""
    n, n_groups = groups.size, int(groups.max()) + 1
    weights = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    members = sparse.csr_array((groups == np.arange(n_groups)[:, None]).astype(float))
    nothing = sparse.csr_array(members.shape)
    peers = Peers(np.arange(n_groups), limit, ratio, overall)
    return row_rates_of((members, (nothing, members)), np.arange(n_groups), (peers,), weights)


def row_rates_of(sums, groups, compared, weights):
    """Rates of selected rows, whatever their true classes."""
    return RowRates(
        *sums, groups, np.ones(groups.size, int), compared, np.zeros(weights.size), weights
    )


def shares_of(rates, selected):
    return rates.shares_and_sizes(selected[:, None])[0][:, 0]


def decisions(groups, chances, seed=0):
    rng = generator(seed)
    return rng.random((groups.size, 1)) < np.array(chances)[groups][:, None]


def exactly(groups, shares):
    """Decisions that select these shares of the groups, up to a row."""
    selected = np.zeros((groups.size, 1), bool)
    for group, share in enumerate(shares):
        rows = np.flatnonzero(groups == group)
        selected[rows[: round(share * rows.size)]] = True
    return selected


GROUPS = generator(0).integers(0, 3, 3000)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["difference", "ratio", "overall"])
def test_p_values_and_bounds_are_those_of_the_public_test(kind, weighted):
    weights = generator(1).random(3000) + 0.5 if weighted else None
    selected = decisions(GROUPS, [0.3, 0.33, 0.28])
    limit = 0.3 if kind == "ratio" else 0.1
    rates = rates_of(GROUPS, limit, weights, kind == "ratio", kind == "overall")
    given = {
        "sensitive_features": GROUPS,
        "sample_weight": weights,
        "comparison": "ratio" if kind == "ratio" else "difference",
        "reference": "overall" if kind == "overall" else "pairwise",
        "method": "melded",
    }
    y_pred = selected[:, 0].astype(int)
    found = metrics.disparity_test("demographic_parity", None, y_pred, max_disparity=limit, **given)
    walked = walk(rates, selected, 0.95)
    assert walked.p_values[0] == pytest.approx(found.p_value, abs=1e-6)
    assert walked.disparities[0] == pytest.approx(found.statistic)
    bound = metrics.disparity_upper_bound("demographic_parity", None, y_pred, **given)
    assert walked.bounds[0] == pytest.approx(bound, abs=1e-5)


@pytest.mark.parametrize("at_once", [50_000, 100])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("are_pairs", [False, True])
def test_people_count_as_in_the_public_test(weighted, at_once, are_pairs, monkeypatch):
    """Also where rows are counted in blocks. With rows in several groups the bound is no smaller.

    The public test then uses the covariance of the groups, which certificates leave out.
    """
    monkeypatch.setattr("skfair.enforcement.certified.walk._ROWS_AT_ONCE", at_once)
    rng = generator(1)
    weights = rng.random(3000) + 0.5 if weighted else None
    person = rng.integers(0, 400, 3000) + (0 if are_pairs else 400 * GROUPS)
    chances = np.array([0.3, 0.33, 0.28])[GROUPS]
    selected = np.stack(
        [rng.random(1200)[person] < share * chances for share in (1.0, 0.8)], axis=1
    )
    rates = replace(rates_of(GROUPS, 0.1, weights), units=read_units(person, 3000))
    walked = walk(rates, selected, 0.95)
    how = {"sensitive_features": GROUPS, "sample_weight": weights, "units": person}
    for step in (0, 1):
        y_pred = selected[:, step].astype(int)
        bound = metrics.disparity_upper_bound(
            "demographic_parity", None, y_pred, method="melded", **how
        )
        if not are_pairs:
            assert walked.bounds[step] == pytest.approx(bound, abs=1e-5)
        assert walked.bounds[step] >= bound - 1e-5
    assert walked.bounds[0] > walk(rates_of(GROUPS, 0.1, weights), selected, 0.95).bounds[0] + 0.01


def test_people_and_not_their_rows_are_needed():
    once, selected = GROUPS[:300], exactly(GROUPS[:300], [0.3, 0.3, 0.3])[:, 0]
    people = people_needed(rates_of(once), selected, 0.95)
    visits = np.repeat(np.arange(300), 10)
    repeated = replace(rates_of(once[visits]), units=read_units(visits, 3000))
    assert people_needed(repeated, selected[visits], 0.95) == pytest.approx(people, abs=1)


@pytest.mark.parametrize("ratio", [False, True])
def test_bounds_are_where_the_p_value_of_some_pair_reaches_the_level(ratio):
    sizes = np.array([10, 40, 3000])
    n, rng = np.repeat(sizes[:, None], 40, axis=1), generator(3)
    k = rng.binomial(n, rng.choice([0.02, 0.3, 0.6, 0.98], size=n.shape))
    rows = np.concatenate([np.arange(size) for size in sizes])
    groups = np.repeat([0, 1, 2], sizes)
    bounds = walk(rates_of(groups, 0.3, ratio=ratio), rows[:, None] < k[groups], 0.95).bounds

    def p_values(limits):
        pairs = [(0, 1), (0, 2), (1, 2)]
        return np.max(
            [both_ways("melded", k[i], n[i], k[j], n[j], limits, ratio) for i, j in pairs], axis=0
        )

    inside = bounds < 1
    assert inside.sum() > 10
    assert (p_values(bounds + 1e-6)[inside] <= 0.05).all()
    assert (p_values(bounds - 1e-5)[inside] > 0.05).all()


@pytest.mark.parametrize("limit", [0.2, 0.3])
def test_distances_to_the_overall_rate_heed_what_groups_weigh(limit):
    weights = np.array([0.2, 1.8, 1.0])[GROUPS]
    selected = exactly(GROUPS, [0.2, 0.5, 0.4])
    walked = walk(rates_of(GROUPS, limit, weights, overall=True), selected, 0.95)
    given = {"sensitive_features": GROUPS, "sample_weight": weights, "reference": "overall"}
    measured = metrics.demographic_parity_difference(None, selected[:, 0].astype(int), **given)
    assert walked.disparities[0] == pytest.approx(measured)
    assert walked.bounds[0] > measured
    assert (walked.p_values[0] > 0.5) == (measured > limit)


def test_a_walk_ends_at_the_first_step_that_fails():
    steps = [[0.3, 0.3, 0.3], [0.3, 0.32, 0.3], [0.1, 0.5, 0.3], [0.3, 0.3, 0.3]]
    selected = np.concatenate([exactly(GROUPS, one) for one in steps], axis=1)
    walked = walk(rates_of(GROUPS), selected, 0.95)
    assert walked.step == 1
    assert walked.p_values[3] < 0.05  # it would pass, but comes too late
    assert walk(rates_of(GROUPS), selected[:, 2:], 0.95).step == -1


def two_attributes(first, second, limits=(0.1, 0.4)):
    """Selection rates of the groups of two attributes, in a compared set each."""
    one, other = rates_of(first, limits[0]), rates_of(second, limits[1])
    members = sparse.csr_array(sparse.vstack([one.members, other.members]))
    compared = one.compared[0], other.compared[0]._replace(rates=np.array([2, 3]))
    sums = members, (sparse.csr_array(members.shape), members)
    return row_rates_of(sums, np.arange(4), compared, one.weights)


def test_disparities_are_measured_ones_whatever_the_limits():
    """Two attributes with limits of .1 and .4: the first differs by .05, the second by .3."""
    first, second = GROUPS % 2, np.arange(GROUPS.size) % 2
    both = two_attributes(first, second)
    chance = 0.3 + 0.05 * first + 0.3 * second
    selected = generator(5).random(GROUPS.size) < chance
    measured = [abs(selected[g == 1].mean() - selected[g == 0].mean()) for g in (first, second)]
    assert walk(both, selected[:, None], 0.95).disparities[0] == pytest.approx(max(measured))


@pytest.mark.parametrize("n_groups", [2, 3, 5])
@pytest.mark.parametrize("n", [60, 3000])
def test_p_values_of_decisions_equalised_on_the_tested_rows_add_up(n_groups, n):
    """Those of all pairs, in both directions; with small groups by the melded test."""
    groups = np.arange(n) % n_groups
    selected = decisions(groups, [0.3] * n_groups)
    rates = replace(rates_of(groups, 0.2), is_equalised=True)
    hits = np.bincount(groups, selected[:, 0])
    rows = np.bincount(groups)
    test = melded if n // n_groups < 30 else score
    total = sum(
        float(test(hits[i], rows[i], hits[j], rows[j], 0.2, False)[0])
        for i in range(n_groups)
        for j in range(n_groups)
        if i != j
    )
    walked = walk(rates, selected, 0.95)
    assert walked.p_values[0] == pytest.approx(min(total, 1.0), abs=1e-5)
    largest = walk(replace(rates, is_equalised=False), selected, 0.95).p_values[0]
    assert walked.p_values[0] >= largest - 0.02  # the melded test is a little more careful


@pytest.mark.parametrize("is_equalised", [False, True])
@pytest.mark.parametrize("limits", [(0.1, 0.1), (0.05, 0.2)])
def test_bounds_are_within_common_limits_where_p_values_are_below_the_level(limits, is_equalised):
    first, second = GROUPS % 2, np.arange(GROUPS.size) % 2
    both = two_attributes(first, second, limits)
    both = replace(
        both,
        is_equalised=is_equalised,
        compared=tuple(
            peers._replace(constraint=name) for peers, name in zip(both.compared, "ab", strict=True)
        ),
    )
    for gap in (0.0, 0.02, 0.04, 0.06, 0.08):
        selected = decisions(first + second, [0.3, 0.3 + gap, 0.3 + 2 * gap])
        walked = walk(both, selected, 0.95)
        for name, limit in zip("ab", limits, strict=True):
            p_value, bound = walked.by_constraint[name][:, 0]
            assert (p_value <= 0.05) == (bound <= limit)
            assert walked.p_values[0] >= p_value
            assert walked.bounds[0] >= bound - 1e-5
        if len(set(limits)) == 1:
            assert (walked.p_values[0] <= 0.05) == (walked.bounds[0] <= limits[0])


@pytest.mark.parametrize("change", [0.0, 0.02, 0.04, 0.06])
def test_the_mean_keeps_limits_whose_p_values_add_up_to_twice_the_level(change):
    first, second = GROUPS % 2, np.arange(GROUPS.size) % 2
    both = replace(two_attributes(first, second, (0.1, 0.1)), is_equalised=True)
    selected = decisions(first + second, [0.3, 0.33, 0.36])
    # As if more of both groups with number 1 were selected.
    changes = change * np.array([0.0, 1.0, 0.0, 1.0])[:, None]
    share = shares_of(both, selected[:, 0]) + changes[:, 0]
    p_value = 0.0
    for start, groups in ((0, first), (2, second)):
        rows = np.bincount(groups)
        hits = share[start : start + 2] * rows
        for i, j in ((0, 1), (1, 0)):
            p_value += float(score(hits[i], rows[i], hits[j], rows[j], 0.1, False)[0])
    for level in (0.49 * p_value, 0.51 * p_value):
        if level < 0.5:
            found = last_satisfied(both, selected, changes, 1 - level)
            assert (found == 0) == (2 * level > p_value)


def test_likely_p_values_are_those_of_equal_rates():
    groups = np.repeat([0, 1], 500)
    equal = (np.arange(1000) % 500 < 150)[:, None]
    unequal = equal ^ ((np.arange(1000) % 500 < 200) & (np.arange(1000) % 500 >= 150))[:, None]
    unequal[:500] = (np.arange(500) < 100)[:, None]  # 100 and 200 of 500 instead of 150 twice
    rates = rates_of(groups)
    known = walk(rates, equal, 0.95).p_values
    assert likely_p_values(rates, equal) == pytest.approx(known)
    assert likely_p_values(rates, unequal) == pytest.approx(known)
    assert walk(rates, unequal, 0.95).p_values > 0.4


def test_counts_of_all_rows_are_not_above_one():
    """Equal weights that do not add up exactly."""
    rates = rates_of(np.arange(30_011) % 7)
    share, _ = rates.shares_and_sizes(np.ones((30_011, 2), dtype=bool))
    assert share.max() <= 1.0
    assert np.isfinite(walk(rates, np.ones((30_011, 2), dtype=bool), 0.95).bounds).all()


@pytest.mark.parametrize("is_equalised", [False, True])
@pytest.mark.parametrize("n_groups", [2, 4])
def test_as_many_people_as_are_said_to_be_needed_show_the_limit_of_equal_rates(
    n_groups, is_equalised
):
    few = np.tile(np.arange(n_groups), 100)

    def rates_with(n_people):
        rates = rates_of(np.arange(n_people) % n_groups)
        return replace(rates, is_equalised=is_equalised)

    rates = replace(rates_of(few), is_equalised=is_equalised)
    needed = people_needed(rates, exactly(few, [0.3] * n_groups)[:, 0], 0.95)
    assert 200 < needed < 4000
    for factor, is_shown in ((1.1, True), (0.9, False)):
        n = round(factor * needed)
        shown = walk(rates_with(n), exactly(np.arange(n) % n_groups, [0.3] * n_groups), 0.95)
        assert (shown.p_values[0] <= 0.05) == is_shown


def test_fewer_people_are_needed_if_small_groups_are_merged():
    """As many as for three groups of these sizes."""
    groups = np.repeat([0, 1, 2, 3], [500, 400, 60, 40])
    merged = np.minimum(groups, 2)
    needed = []
    for own, pair in ((groups, ()), (groups, (3, 2)), (merged, ())):
        rates = replace(rates_of(own), is_equalised=True)
        needed.append(people_needed(rates, exactly(own, [0.3] * 4)[:, 0], 0.95, pair))
    assert needed[1] == pytest.approx(needed[2], rel=0.02)
    assert needed[1] < 0.7 * needed[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_what_is_gained_is_counted_by_label(weighted):
    rng = generator(3)
    classes, decisions = rng.integers(0, 3, 200), rng.integers(0, 3, (200, 4))
    weights = rng.random(200) if weighted else np.full(200, 0.5)
    members = sparse.csr_array((rng.random((4, 200)) < 0.4).astype(float))
    labels = np.array([-1, 0, 1, 2])  # -1 is the class of the row: right decisions
    peers = Peers(np.arange(4), 0.1, False, False)
    sums = members, (sparse.csr_array(members.shape), members)
    rates = RowRates(*sums, np.arange(4), labels, (peers,), classes, weights)
    for k, label in enumerate(labels.tolist()):
        hits = decisions == (classes[:, None] if label < 0 else label)
        expected = members.toarray()[k] @ (weights[:, None] * hits)
        assert rates.gained(decisions, weights)[k] == pytest.approx(expected)
        assert rates.shares_and_sizes(decisions)[0][k] == pytest.approx(
            expected / (members @ weights)[k]
        )


def test_the_smallest_limit_is_shown_to_whom_little_confidence_is_enough():
    """Rates that are alike show every limit at a level of .7, and some rows none at .05."""
    alike, apart = np.repeat([0, 1, 2], 1000), np.repeat([0, 1], 3)
    assert walk(rates_of(alike), exactly(alike, [0.3] * 3), 0.3).bounds[0] < 1e-5
    assert walk(rates_of(apart), exactly(apart, [0.0, 1.0]), 0.95).bounds[0] == 1.0
