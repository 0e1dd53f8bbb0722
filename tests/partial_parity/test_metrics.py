from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skfair.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
    get_scorer,
    group_auc_gap,
    noise_floor,
    partial_ccdf_gap,
    partial_demographic_parity_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
    statistical_parity_gap,
    suggest_interval,
)
from tests import naive
from tests.messages import messages, of_calls
from tests.metrics.test_scores import random_case
from tests.seeds import generator

few = settings(deadline=None, max_examples=25)
by_seed = given(seed=st.integers(0, 2**31))
METRICS = [
    partial_statistical_parity_gap,
    partial_ccdf_gap,
    partial_demographic_parity_gap,
    partial_group_auc_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
]
each_metric = pytest.mark.parametrize("metric", METRICS)


def random_interval(rng):
    """One interval or a union of two, sometimes ending on a quantile of round numbers."""
    ends = np.sort(rng.choice(np.arange(0, 21), 4, replace=False)) / 20
    if rng.random() < 0.5:
        ends = np.sort(rng.random(4))
    if rng.random() < 0.5:
        return [(ends[0], ends[1]), (ends[2], ends[3])]
    return [(ends[0], ends[3])]


def naive_value(metric, y, s, g, w, intervals, rank_within="group", tie_value=0.5):
    if metric is partial_statistical_parity_gap:
        return naive.partial_statistical_parity(s, g, w, intervals)
    if metric is partial_ccdf_gap:
        return naive.partial_ccdf_gap(s, g, w, intervals)
    gaps = []
    for a, b in naive.pairs(g):
        if metric is partial_demographic_parity_gap:
            values = [
                naive.interval_share(naive.ccdf(s, g, k, w, 0.25), intervals[k]) for k in (a, b)
            ]
            gaps.append(abs(values[0] - values[1]))
        elif metric is partial_group_auc_gap:
            mass = {k: naive.overlap_masses(s[g == k], w[g == k], intervals[k]) for k in (a, b)}
            for one, other in ((a, b), (b, a)):
                win = naive.win_rate(s[g == one], mass[one], s[g == other], mass[other], tie_value)
                gaps.append(abs(win - 0.5))
        else:
            for label in (1,) if metric is partial_equal_opportunity_gap else (0, 1):
                values = [
                    naive.partial_class_rate(
                        s[g == k], y[g == k], w[g == k], intervals[k], 0.25, label, rank_within
                    )
                    for k in (a, b)
                ]
                gaps.append(abs(values[0] - values[1]))
    return np.max(gaps)  # NaN if any is


def lacks_a_rank(s, g, w, intervals):
    """Whether some group has no threshold whose rank falls into its interval."""
    return any(
        not any(
            low <= naive.ccdf(s, g, k, w, t) < high
            for t in naive.thresholds(s)
            for low, high in intervals[k]
        )
        for k in set(g)
    )


def options_for(metric, rank_within="group"):
    options = {}
    if metric in METRICS[4:]:
        options |= {"rank_within": rank_within, "zero_division": np.nan}
    if metric in (METRICS[2], *METRICS[4:]):
        options["threshold"] = 0.25
    return options


@each_metric
@settings(deadline=None, max_examples=60)
@by_seed
def test_equals_naive_twin(metric, seed):
    y, s, g, w, rng = random_case(seed, n=30)
    interval = random_interval(rng)
    intervals = dict.fromkeys(set(g), interval)
    rank_within = ["group", "class"][seed // 2 % 2]
    options = options_for(metric, rank_within)
    for weights in (None, w):
        expected_weights = np.ones(y.size) if weights is None else weights
        if metric is partial_ccdf_gap and lacks_a_rank(s, g, expected_weights, intervals):
            with pytest.raises(ValueError, match="a rank inside the interval"):
                metric(y, s, sensitive_features=g, interval=interval, sample_weight=weights)
            continue
        with np.errstate(invalid="ignore"):
            expected = naive_value(metric, y, s, g, expected_weights, intervals, rank_within)
        value = metric(
            y, s, sensitive_features=g, interval=interval, sample_weight=weights, **options
        )
        assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


@each_metric
@few
@by_seed
def test_intervals_per_group(metric, seed):
    y, s, g, w, rng = random_case(seed, n=30)
    intervals = {k: random_interval(rng) for k in sorted(set(g))}
    assume(metric is not partial_ccdf_gap or not lacks_a_rank(s, g, w, intervals))
    with np.errstate(invalid="ignore"):
        expected = naive_value(metric, y, s, g, w, intervals)
    value = metric(
        y, s, sensitive_features=g, interval=intervals, sample_weight=w, **options_for(metric)
    )
    assert value == pytest.approx(expected, abs=1e-12, nan_ok=True)


def positional(s, g, low, high):
    """The paper's own discrete convention: rows ceil(low n) + 1 .. ceil(high n) of each group."""
    kept = {}
    for k in sorted(set(g)):
        ordered = np.sort(s[g == k])[::-1]
        n = ordered.size
        # Rounded first: 0.3 * 10 is 3.0000000000000004 for some pairs.
        kept[k] = ordered[int(np.ceil(round(low * n, 9))) : int(np.ceil(round(high * n, 9)))]
    return kept


@few
@by_seed
def test_equals_the_positional_convention_when_the_ends_fall_on_rows(seed):
    rng = generator(seed)
    g = np.repeat(list("abc"), 20)
    s = rng.normal(size=60) if seed % 2 else rng.integers(0, 6, 60).astype(float)
    low, high = np.sort(rng.choice(np.arange(21), 2, replace=False)) / 20
    kept = positional(s, g, low, high)
    worst = 0.0
    for a, b in naive.pairs(g):
        for t in naive.thresholds(s):
            worst = max(worst, abs(np.mean(kept[a] > t) - np.mean(kept[b] > t)))
    value = partial_statistical_parity_gap(None, s, sensitive_features=g, interval=(low, high))
    assert value == pytest.approx(worst, abs=1e-12)


@each_metric
@few
@by_seed
def test_the_whole_range_is_the_ordinary_metric(metric, seed):
    y, s, g, w, _ = random_case(seed)
    whole = {
        partial_statistical_parity_gap: statistical_parity_gap,
        partial_ccdf_gap: statistical_parity_gap,
        partial_group_auc_gap: group_auc_gap,
    }
    labels = (s > 0.25).astype(int)
    by_label = {
        partial_demographic_parity_gap: demographic_parity_difference,
        partial_equal_opportunity_gap: equal_opportunity_difference,
        partial_equalized_odds_gap: equalized_odds_difference,
    }
    shared = {"sensitive_features": g, "sample_weight": w}
    value = metric(y, s, interval=(0, 1), **shared, **options_for(metric))
    ordinary = (
        whole[metric](y, s, **shared) if metric in whole else by_label[metric](y, labels, **shared)
    )
    assert value == pytest.approx(ordinary, abs=1e-12)
    halves = metric(y, s, interval=[(0, 0.5), (0.5, 1)], **shared, **options_for(metric))
    assert halves == pytest.approx(value, abs=1e-12)


def test_unnormalised_gaps_are_shares_of_the_group():
    _, s, g, w, _ = random_case(7)
    for metric in (partial_statistical_parity_gap, partial_demographic_parity_gap):
        shared = {"sensitive_features": g, "sample_weight": w, "interval": [(0.1, 0.2), (0.5, 0.8)]}
        normalised = metric(None, s, **shared)
        assert metric(None, s, **shared, normalize=False) == pytest.approx(0.4 * normalised)


def test_ties_may_count_as_wins():
    y, s, g, w, _ = random_case(9)
    intervals = {k: [(0.2, 0.9)] for k in set(g)}
    value = partial_group_auc_gap(
        y, s, sensitive_features=g, sample_weight=w, interval=(0.2, 0.9), ties="geq"
    )
    expected = naive_value(partial_group_auc_gap, y, s, g, w, intervals, tie_value=1.0)
    assert value == pytest.approx(expected)


def test_overlapping_attributes_may_have_their_own_intervals():
    y, s, g, _, rng = random_case(4)
    frame = pd.DataFrame({"p": g, "q": rng.permutation(g)})
    gaps = [
        partial_statistical_parity_gap(y, s, sensitive_features=frame[c], interval=(0.1, 0.4))
        for c in frame
    ]
    shared = {"sensitive_features": frame, "intersectional": False}
    value = partial_statistical_parity_gap(y, s, interval=(0.1, 0.4), **shared)
    assert value == pytest.approx(max(gaps))
    keys = {(c, level): (0.1, 0.4) for c in frame for level in set(frame[c])}
    assert partial_statistical_parity_gap(y, s, interval=keys, **shared) == value
    names = {f"{c}={level}": (0.1, 0.4) for c in frame for level in set(frame[c])}
    assert partial_statistical_parity_gap(y, s, interval=names, **shared) == value


@pytest.mark.parametrize("metric", METRICS[4:])
def test_a_group_without_positives_inside_is_undefined(metric):
    y, s, g = [0, 0, 1, 1, 0, 0], [6, 5, 4, 6, 5, 4], list("aaabbb")
    options = {"sensitive_features": g, "interval": (0, 0.5)}
    assert np.isnan(metric(y, s, zero_division=np.nan, **options))


@pytest.mark.parametrize("metric", [partial_statistical_parity_gap, partial_ccdf_gap])
def test_scores_of_few_values_have_ranks(metric):
    given = {"sensitive_features": list("abab"), "interval": (0, 0.5)}
    for scores in ([0.2, 0.9, 0.9, 0.2], [3, 1, 2, 2], [1, 1, 1, 1]):
        assert 0 <= metric(None, scores, **given) <= 1


def test_noise_floor_matches_the_theory():
    """For two samples of one law the expected Kolmogorov-Smirnov distance is known."""
    rng = generator(0)
    s, g = rng.normal(size=800), np.repeat(["a", "b"], 400)
    floor = noise_floor(
        statistical_parity_gap, None, s, sensitive_features=g, n_permutations=300, random_state=1
    )
    # E sqrt(nm/(n+m)) D -> sqrt(pi/2) ln 2 = 0.8687 (Kolmogorov's law).
    expected = np.sqrt(np.pi / 2) * np.log(2) / np.sqrt(200)
    # The law is that of many rows; the mean of 300 values has an error of 0.001.
    assert floor.mean == pytest.approx(expected, abs=0.009)
    assert floor.mean < floor.upper == np.quantile(floor.values, 0.95)


@pytest.mark.parametrize("intersectional", [True, False])
def test_noise_floor_reads_every_table(intersectional):
    """Columns of groups are dealt out row by row, whatever holds them."""
    rng = generator(0)
    frame = pd.DataFrame(
        {"s": rng.random(90), "sex": rng.choice(["f", "m"], 90), "dept": rng.integers(0, 3, 90)},
        index=rng.permutation(90),
    )
    groups, scores = frame[["sex", "dept"]], frame["s"]
    options = {"n_permutations": 20, "random_state": 0, "intersectional": intersectional}
    floor = partial(noise_floor, statistical_parity_gap, None, **options)
    expected = floor(scores.to_numpy(), sensitive_features=groups.to_numpy()).values
    columns = {name: groups[name].to_numpy() for name in groups}
    for s, of in (
        (scores, groups),
        (scores, dict(groups)),
        (scores, columns),
        (list(scores), columns),
    ):
        assert np.array_equal(floor(s, sensitive_features=of).values, expected)
    assert np.unique(expected).size > 3


def test_suggest_interval_lists_the_worst_first():
    rng = generator(0)
    s, g = rng.normal(size=400), np.repeat(["a", "b"], 200)
    s[g == "b"] -= 0.3
    w = rng.uniform(0.5, 2, 400)
    table = suggest_interval(s, sensitive_features=g, sample_weight=w, threshold=0.5)
    rate = np.average(s > 0.5, weights=w)
    assert (table["low"] <= rate).all()
    assert (table["high"] >= rate).all()
    assert np.allclose(table["width"], table["high"] - table["low"])
    assert table["width"].min() >= 0.1 - 1e-9
    for row in table.sample(20, random_state=0).itertuples():
        gap = partial_statistical_parity_gap(
            None, s, sensitive_features=g, sample_weight=w, interval=(row.low, row.high)
        )
        assert row.gap == pytest.approx(gap)
    near = table["gap"] >= 0.95 * table["gap"].max()
    n_near = near.sum()
    assert near.iloc[:n_near].all()
    assert table["width"].iloc[:n_near].is_monotonic_decreasing
    assert table["gap"].iloc[n_near:].is_monotonic_decreasing
    assert np.unique(table[["low", "high"]], axis=0).shape[0] == len(table)


def parity(s=(1, 2), groups=("a", "b"), metric=partial_statistical_parity_gap, **options):
    metric(None, s, sensitive_features=groups, **options)


def interval(groups=("a", "b") * 2, **options):
    suggest_interval([1, 2, 3, 4], sensitive_features=groups, **options)


DECISIONS = "y_score has the two values .* look like decisions"
CCDF = {"metric": partial_ccdf_gap}
HALF = {"interval": (0, 0.5), "groups": list("abab")}
test_metrics_say_what_is_wrong = messages(
    *of_calls(
        parity,
        ("0 <= low < high <= 1", {"interval": (0.3, 0.3)}),
        ("0 <= low < high <= 1", {"interval": (0.5, 0.2)}),
        ("0 <= low < high <= 1", {"interval": (-0.1, 0.2)}),
        ("0 <= low < high <= 1", {"interval": (5, 30)}),
        ("0 <= low < high <= 1", {"interval": (0, np.nan)}),
        ("must be a pair", {"interval": 0.3}),
        ("must be a pair", {"interval": "top"}),
        ("must be a pair", {"interval": []}),
        ("must be a pair", {"interval": (0, 0.1, 0.2)}),
        ("parts overlap", {"interval": [(0, 0.5), (0.4, 1)]}),
        ("no entry for group 'b'", {"interval": {"a": (0, 1)}}),
        ("no group 'z'", {"interval": {"a": (0, 1), "z": (0, 1)}}),
        (DECISIONS, HALF | {"s": [0, 1, 1, 0]}),
        (DECISIONS, HALF | {"s": [False, True, True, False]}),
        (DECISIONS, HALF | CCDF | {"s": [-1, 1, 1, -1]}),
        (
            "gives group 'b', with 4 rows, a rank inside",
            CCDF | {"s": np.arange(9), "groups": [*"aaaaabbbb"], "interval": (0.05, 0.22)},
        ),
    ),
    *of_calls(
        interval,
        ("rate must be a number from 0 to 1", {"rate": 1.5}),
        ("step must be a number from 0.01 to 0.5", {"step": 0}),
        ("min_width must be a number from 0 to 1", {"min_width": 2}),
        ("only one group", {"groups": ["a"] * 4}),
    ),
    *of_calls(
        get_scorer,
        (r"Did you mean 'interval'\?", {"name": "neg_partial_ccdf_gap", "intervall": (0, 0.3)}),
        ("needs the argument interval=", {"name": "neg_partial_ccdf_gap"}),
        error=TypeError,
    ),
    *of_calls(
        partial_equal_opportunity_gap,
        (
            "rank_within must be 'group' or 'class'",
            {"y_true": [0, 1], "y_score": [1, 2], "sensitive_features": ["f", "m"]}
            | {"interval": (0, 0.5), "rank_within": "row"},
        ),
    ),
)


def test_probabilities_at_the_threshold_of_decision_functions_ask():
    rng = generator(0)
    y, given = rng.integers(0, 2, 600), {"sensitive_features": rng.choice(["f", "m"], 600)}
    score, given["interval"] = np.clip(0.3 + 0.4 * y + rng.normal(0, 0.2, 600), 0, 1), (0.1, 0.5)
    with pytest.warns(UserWarning, match=r"such as 0\.5"):
        partial_demographic_parity_gap(y, 0.01 + 0.9 * score, **given)
    partial_demographic_parity_gap(y, score - 0.5, **given)
