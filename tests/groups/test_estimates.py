"""One estimate of a disparity: interval, test and bound agree, and hold in the population."""

import numpy as np
import pytest
from scipy import stats

from skfair import metrics
from skfair.groups.compared_rates import Pairs
from skfair.groups.estimates import Estimate
from skfair.groups.measured_rows import MeasuredRows
from skfair.groups.rates import CellMeans
from skfair.groups.two_rates import melded
from skfair.metrics import (
    demographic_parity_difference,
    disparity_test,
    disparity_upper_bound,
    fairness_report,
    group_report,
)
from tests.seeds import generator

audit = pytest.importorskip("skfair.report").audit

NAME = "demographic_parity_difference"


def people(kind, rng):
    """Return labels, decisions and options of a small sample: plain, weighted, of units, ..."""
    n, k = int(rng.choice([40, 90, 300])), int(rng.integers(2, 5))
    groups = np.array(list("abcd"))[np.append(np.arange(k), rng.integers(0, k, n - k))]
    y, rate = rng.integers(0, 2, n), rng.choice([0.05, 0.3, 0.8])
    decided = (rng.random(n) < np.clip(rate + 0.2 * (groups == "a"), 0, 1)).astype(int)
    options = {}
    if kind == "weights":
        options["sample_weight"] = rng.random(n) + 0.2
    if kind == "units":
        options["units"] = [
            f"{g}{i}" for g, i in zip(groups, rng.integers(0, n // 3, n), strict=True)
        ]
    if kind == "shared units":
        groups = np.tile(["a", "b"], n // 2)
        decided = np.repeat(decided[::2], 2) ^ (rng.random(n) < 0.1)
        options["units"] = np.repeat(np.arange(n // 2), 2)
    if kind == "strata":
        options["control_features"] = rng.choice(["x", "z"], n)
    return y, decided.astype(int), groups, options


def estimate(y, decided, groups, kind, rates, reference="pairwise", **options):
    who = groups, options.get("control_features"), options.get("sample_weight"), True
    rows = MeasuredRows.of_labels(y, decided, *who, counted="classes", units=options.get("units"))
    return Estimate.of(rows.table(), kind, rates, reference)


@pytest.mark.parametrize("kind", ["difference", "ratio"])
@pytest.mark.parametrize("sample", ["plain", "weights", "units", "shared units", "strata"])
@pytest.mark.parametrize("seed", range(3))
def test_interval_test_and_bound_never_contradict_each_other(sample, kind, seed):
    rng = generator(seed)
    y, decided, groups, options = people(sample, rng)
    references = ["pairwise", "a"] if kind == "ratio" else ["pairwise", "overall", "a"]
    for reference in references:
        gap = estimate(y, decided, groups, kind, ("selection_rate",), reference, **options)
        if not np.isfinite(gap.value):  # nobody was selected in two groups
            continue
        metric = getattr(metrics, f"demographic_parity_{kind}")
        who = {name: own for name, own in options.items() if name != "units"}
        value = metric(None, decided, sensitive_features=groups, reference=reference, **who)
        assert gap.value == pytest.approx(value, abs=1e-12)
        low, high = gap.interval(0.9)
        assert low - 1e-9 <= gap.value <= high + 1e-9
        if gap.value >= 0:
            assert gap.upper_bound(0.95) == pytest.approx(
                1 - low if kind == "ratio" else high, abs=1e-6
            )
        near = np.array([low, high])
        for limit in np.concatenate([rng.random(4), near - 1e-4, near + 1e-4]):
            if not 0 < limit < 1 or gap.value < 0:
                continue
            beyond, within = limit < low - 1e-6, limit > high + 1e-6
            if kind == "ratio":
                beyond, within = within, beyond
            assert beyond == (gap.p_value(limit, "above") <= 0.05)
            assert within == (gap.p_value(limit, "below") <= 0.05)


def test_the_end_of_a_pair_is_where_its_test_says_so():
    rng = generator(1)
    n1, n0 = rng.integers(5, 400, (2, 30)).astype(float)
    k1, k0 = rng.binomial(n1.astype(int), 0.3) * 1.0, rng.binomial(n0.astype(int), 0.4) * 1.0
    of = np.array(["r"] * 30), np.array(["a"] * 30), np.array(["b"] * 30)
    pairs = Pairs(*of, k1, n1, k0, n0, np.ones(30), np.zeros(30), np.zeros(30))
    low, high = pairs.ends("melded", False, 0.025)
    for i in range(30):
        mine = k1[i], n1[i], k0[i], n0[i]
        if high[i] < 1 - 1e-6:
            assert melded(*mine, high[i], False) == pytest.approx(0.025, abs=1e-6)
        if low[i] > -1 + 1e-6:
            assert melded(*mine[2:], *mine[:2], -low[i], False) == pytest.approx(0.025, abs=1e-6)


@pytest.mark.parametrize("is_ratio", [False, True])
@pytest.mark.parametrize(
    ("sizes", "rates"),
    [((60, 60), (0.3, 0.4)), ((60, 60), (0.05, 0.15)), ((20, 90), (0.3, 0.4)), ((50, 50), (0, 1))],
)
def test_over_all_tables_of_two_groups_either_error_is_rare(sizes, rates, is_ratio):
    """The exact probabilities: at most 2.5% each."""
    k0, k1 = (counts.ravel() for counts in np.indices((sizes[0] + 1, sizes[1] + 1)))
    chances = stats.binom.pmf(k0, sizes[0], rates[0]) * stats.binom.pmf(k1, sizes[1], rates[1])
    n, zero = k0.size, np.zeros(k0.size)
    of = [np.array(["r"] * n)] * 3
    ends = k1.astype(float), zero + sizes[1], k0.astype(float), zero + sizes[0]
    pairs = Pairs(*of, *ends, zero + 1, zero, zero)
    limit = 1 - rates[0] / rates[1] if is_ratio else rates[1] - rates[0]
    too_low = pairs.at_least("melded", is_ratio, min(limit, 1 - 1e-12)) <= 0.025
    too_high = pairs.reversed().at_least("melded", is_ratio, -limit) <= 0.025
    assert chances[too_low].sum() <= 0.025
    assert chances[too_high].sum() <= 0.025


@pytest.mark.parametrize("rates", [(0.3,) * 6, (0.05,) * 6, (0.3,) * 5 + (0.4,), (0.3, 0.35, 0.4)])
def test_the_interval_of_the_largest_difference_covers_it(rates):
    """It does in about 95% of samples, or more."""
    rng, groups, covered = generator(5), np.repeat(np.arange(len(rates)), 150), []
    true = max(rates) - min(rates)
    for _ in range(100):
        decided = (rng.random(groups.size) < np.asarray(rates)[groups]).astype(int)
        low, high = estimate(decided, decided, groups, "difference", ("selection_rate",)).interval()
        covered.append(low - 1e-12 <= true <= high)
    assert sum(covered) >= stats.binom.isf(1 - 1e-7, 100, 0.95)


@pytest.mark.parametrize("kind", ["difference", "ratio"])
def test_the_extreme_end_is_that_of_all_pairs(kind):
    rng, groups = generator(2), np.repeat(np.arange(7), 40)
    decided = (rng.random(280) < 0.2 + 0.05 * groups).astype(int)
    y = rng.integers(0, 2, 280)
    gap = estimate(y, decided, groups, kind, ("true_positive_rate", "false_positive_rate"))
    table = gap.frame()
    worst = np.maximum(table["high"], -table["low"]).max()
    nearest = np.maximum(table["low_simultaneous"], -table["high_simultaneous"]).max()
    low, high = gap.interval()
    if kind == "ratio":
        low, high = 1 - high, 1 - low
    assert high == pytest.approx(min(worst, 1.0), abs=1e-6)
    assert low == pytest.approx(max(nearest, 0.0), abs=1e-6)


def test_reports_audits_and_tests_say_the_same_of_a_difference():
    rng = generator(3)
    for k in (2, 4):
        sex = np.array(list("fmnx"))[rng.integers(0, k, 600)]
        decided = (rng.random(600) < 0.3 + 0.1 * (sex == "m")).astype(int)
        who = {"sensitive_features": sex}
        row = fairness_report(None, decided, **who, random_state=0).loc[NAME]
        found = audit(None, decided, **who, n_simulations=99, reference="f", metrics=[NAME])
        gap = found.gaps[found.gaps["metric"] == NAME].iloc[0]
        ends = row[["value_low", "value_high"]].to_numpy(float)
        assert ends == pytest.approx(gap[["value_low", "value_high"]].to_numpy(float), abs=1e-12)
        bound = disparity_upper_bound(NAME, None, decided, **who, confidence=0.975)
        assert bound == pytest.approx(row["value_high"], abs=1e-6)
        how = {"max_disparity": bound + 1e-4, "confidence": 0.975}
        assert disparity_test(NAME, None, decided, **who, **how).is_within
        signed = found.signed[found.signed["measure"] == "selection_rate"].set_index("group")
        report = group_report(None, decided, **who, reference="f")
        for group in signed.index:
            for end in ("low", "high"):
                mine = report.loc[group, f"selection_rate_difference_{end}"]
                assert mine == pytest.approx(signed.loc[group, f"difference_{end}"], abs=1e-12)
        assert demographic_parity_difference(None, decided, **who) == pytest.approx(row["value"])


def test_nothing_is_known_of_the_largest_difference_if_a_rate_is_undefined():
    share = CellMeans(np.array([[[5.0, 0.0, 9.0], [2.0, 0.0, 3.0], [2.0, 0.0, 3.0]]] * 2), True)
    groups = MeasuredRows.of_labels([0, 1, 1], [0, 1, 1], np.array(["a", "b", "c"])).table().groups
    whole = Estimate((share,), ("rate",), groups, "difference")
    known = Estimate((share,), ("rate",), groups, "difference", only_known=True)
    assert whole.upper_bound() == 1
    assert known.upper_bound() < 1
    assert known.pairs.share.size == 1
