"""Limits are decided by intervals: how often wrongly, with how many rows, and what is said."""

import json
import operator
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skfair import metrics
from skfair.__main__ import main
from skfair.exceptions import LooseLimitWarning
from skfair.metrics.labels import LABEL_METRICS
from skfair.report import Audit, audit
from skfair.report.results.checks import check_conditions, read_condition
from tests.seeds import generator

NAME = "demographic_parity_difference"
# Sums of two differences of rates.
TOTALS_OF_TWO = {(f"{name}_gap", "120%") for name in ("separation", "sufficiency")}


def audited(sizes, counts, **options):
    group = np.repeat(np.arange(len(sizes)), sizes)
    chosen = np.concatenate([np.arange(n) < k for n, k in zip(sizes, counts, strict=True)])
    options = {"sensitive_features": {"g": group}, "n_simulations": 200, "depth": 1, **options}
    return audit(None, chosen.astype(int), **options)


@pytest.mark.parametrize("rates", [(0.3, 0.4), (0.3, 0.35, 0.4)])
def test_whole_audits_are_as_rarely_wrong(rates):
    """About 2.5% of 100 samples are wrong on each side."""
    outcomes, sizes = [], [300] * len(rates)
    for seed in range(100):
        rng = generator(seed)
        found = audited(
            sizes, rng.binomial(sizes, rates), metrics=[NAME], n_simulations=100, random_state=seed
        )
        outcomes.append(found.check(f"{NAME} > 0.1").outcome)
    most = stats.binom.isf(1e-7, 100, 0.025)
    assert max(outcomes.count("fail"), outcomes.count("pass")) <= most


@pytest.mark.parametrize("condition", [f"{NAME} > 0.1", "demographic_parity_ratio < 0.75"])
@pytest.mark.parametrize("counts", [(60, 85), (60, 72)])
def test_so_many_rows_decide_it(condition, counts):
    sizes = np.array([200, 200])
    check = audited(sizes, counts).check(condition)
    assert check.outcome == "inconclusive"
    assert check.n_rows == 400 < check.n_rows_needed
    assert f"about {check.n_rows_needed:,} rows" in check.sentence
    for factor, is_decided in ((1.15, True), (0.8, False)):
        times = factor * check.n_rows_needed / 400
        more = audited((times * sizes).astype(int), (times * np.array(counts)).astype(int))
        assert (more.check(condition).outcome != "inconclusive") == is_decided
    decided = "fail" if counts == (60, 85) else "pass"
    assert audited(100 * sizes, 100 * np.array(counts)).check(condition).outcome == decided


def test_the_side_of_the_limit():
    found = audited([2000, 2000], [600, 1000])
    assert found.check(f"{NAME} > 0.1").outcome == "fail"
    assert found.check(f"{NAME} > 0.3").outcome == "pass"
    assert found.check("demographic_parity_ratio < 0.8").outcome == "fail"
    assert found.check("g: demographic_parity_ratio <= 0,5").outcome == "pass"
    # Of no difference at all nothing is below: equal groups do not fail a limit of 0.
    assert audited([50, 50], [20, 20]).check(f"{NAME} > 0").outcome == "inconclusive"
    at_limit = audited([200, 200], [60, 80]).check(f"{NAME} > 0.1")
    assert (at_limit.outcome, at_limit.n_rows_needed) == ("inconclusive", None)
    assert "no number of rows decides it" in at_limit.sentence
    check = found.check(f" g: {NAME} > 0.1 ")
    assert check.value == found.value(NAME) == pytest.approx(0.2)
    assert check.low < check.value < check.high
    assert check.annotation().startswith(f"::error title=skfair audit::g: {NAME} > 0.1: fail (g: ")
    assert "\n" not in check.annotation()
    assert found.check(f"{NAME} > 0.9").annotation().startswith("::notice ")


def test_of_several_views_the_worst_decides_and_a_fail_accounts_for_their_number():
    row = {"metric": NAME, "is_ratio": False, "value": 0.15, "value_low": 0.101}
    row |= {"value_high": 0.199, "view": "a", "left_out": "", "too_few": ""}
    asked = read_condition(f"{NAME} > 0.1")
    alone = check_conditions([(asked, pd.DataFrame([row]))], ["a", "b"], 100, 0.95)
    assert alone.outcome == "fail"
    other = {**row, "view": "b", "value": 0.02, "value_low": 0.0, "value_high": 0.05}
    both = check_conditions([(asked, pd.DataFrame([other, row]))], ["a", "b"], 100, 0.95)
    assert (both.outcome, both.view) == ("inconclusive", "a")
    assert both.n_rows_needed > 100
    kept = check_conditions([(asked, pd.DataFrame([other, other]))], ["a", "b"], 100, 0.95)
    assert kept.outcome == "pass"


def test_conditions():
    asked = read_condition("sex x age: equal_opportunity_difference[a > b] >= 0.05")
    assert (asked.view, asked.metric) == ("sex x age", "equal_opportunity_difference[a > b]")
    assert asked.holds(0.05, asked.limit)
    assert not asked.holds(0.04, asked.limit)
    assert read_condition("demographic_parity_ratio<0.8").view is None
    assert read_condition(f"{NAME} > 0,1").limit == 0.1


@pytest.mark.parametrize("metric", [*LABEL_METRICS, "equal_opportunity_difference[a > b]"])
@pytest.mark.parametrize("sign", ["<", "<=", ">", ">="])
def test_a_condition_that_fails_fair_models_is_refused_with_the_one_that_is_meant(metric, sign):
    text = f"sex: {metric} {sign} 0.8"
    if metric.endswith("ratio") == (sign[0] == "<"):
        assert read_condition(text).limit == 0.8
        return
    with pytest.raises(ValueError, match="what must not hold") as caught:
        read_condition(text)
    meant = read_condition(str(caught.value).split("Write '")[1].split("': a condition")[0])
    assert meant[1:3] == ("sex", metric)
    holds = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[sign]
    for value in (0.7, 0.8, 0.9):
        assert meant.holds(value, meant.limit) != holds(value, 0.8)


@pytest.mark.parametrize("metric", LABEL_METRICS)
@pytest.mark.parametrize("limit", ["5", "2.5", "120%"])
def test_a_limit_that_no_value_can_exceed_is_refused(metric, limit):
    text = f"{metric} {'<' if metric.endswith('ratio') else '>'} {limit}"
    if metric == "treatment_equality_difference" or (metric, limit) in TOTALS_OF_TWO:
        assert read_condition(text).limit > 1
        return
    is_ratio = metric.endswith("ratio")
    remedy = "ratios divide the smaller.*Write" if is_ratio else r"Pass a share, 0\.05 for 5%"
    with pytest.raises(ValueError, match=f"limits nothing: .*{remedy}"):
        read_condition(text)


@pytest.mark.parametrize(
    ("metric", "is_undefined"),
    [
        ("equal_opportunity_difference", lambda y, p: y == 1),
        ("false_positive_parity_difference", lambda y, p: y == 0),
        ("equalized_odds_difference", lambda y, p: y == 1),
        ("predictive_parity_difference", lambda y, p: p == 1),
        ("false_positive_parity_ratio", lambda y, p: y == 0),
    ],
)
@pytest.mark.parametrize("names", [("a", "b", "c"), ("a", "c")])
def test_a_group_of_which_nothing_is_known_does_not_pass(metric, is_undefined, names):
    """The metric raises for such a group, so its gate must not pass."""
    rng = generator(0)
    y, p = rng.integers(0, 2, (2, 900))
    group = rng.choice(names, 900)
    lost = is_undefined(y, p) & (group == "c")
    rows = {"sensitive_features": {"g": group[~lost]}, "n_simulations": 5, "metrics": [metric]}
    with pytest.raises(ValueError, match="'c'.*undefined"):
        getattr(metrics, metric)(y[~lost], p[~lost], sensitive_features=group[~lost])
    found = audit(y[~lost], p[~lost], **rows)
    condition = f"{metric} {'< 0.1' if metric.endswith('ratio') else '> 0.9'}"
    check = found.check(condition)
    named = "c (g: too few people count in the rate, or it is hidden with such a group)"
    assert (check.outcome, check.undefined) == ("inconclusive", named)
    assert check.n_rows_needed is None
    assert f"Not compared: {named}, so it is not known" in check.annotation()
    again = Audit.from_dict(json.loads(found.to_json()))
    assert again.check(condition).sentence == check.sentence
    allowed = found.check(condition, allow_undefined=True)
    has_pair = "b" in names or metric == "equalized_odds_difference"
    assert allowed.outcome == ("pass" if has_pair else "inconclusive")
    assert f"Not compared: {named}." in allowed.sentence or not has_pair
    defined = audit(y, p, **rows | {"sensitive_features": {"g": group}}).check(condition)
    assert (defined.outcome, defined.undefined) == ("pass", "")


@pytest.mark.parametrize("n_few", [3, 20])
def test_a_group_with_too_few_people_is_named_and_leaves_a_check_open(n_few):
    """All of few people are selected: of them nothing is shown, and nothing is said to be kept."""
    group = np.array([*"ab"] * 2000 + ["few"] * n_few)
    chosen = np.append(np.arange(4000) % 4 < 2, np.ones(n_few, bool))
    options = {"n_simulations": 20, "depth": 1}
    found = audit(None, chosen, sensitive_features={"g": group}, **options)
    check = found.check(f"{NAME} > 0.2")
    assert (check.outcome, check.undefined) == ("inconclusive", "few (g: too few people)")
    assert "few (g: too few people), so it is not known whether" in check.sentence
    allowed = found.check(f"{NAME} > 0.2", allow_undefined=True)
    assert allowed.outcome == "pass"
    assert "few (g: too few people)" in allowed.sentence
    chosen[group == "b"] = True  # an excess is seen without them
    found = audit(None, chosen, sensitive_features={"g": group}, **options)
    assert found.check(f"{NAME} > 0.2").outcome == "fail"


@pytest.mark.parametrize(
    ("n_few", "undefined"),
    [
        (0, "all groups (race: no two of them have people to compare)"),
        (8, "b (race: too few people)"),
        (20, "b (race: too few people)"),
    ],
)
def test_an_attribute_without_two_groups_to_compare_leaves_a_check_open(n_few, undefined):
    chosen, race = np.tile([0, 1], 400), np.array(["a"] * (800 - n_few) + ["b"] * n_few)
    groups = {"sex": np.repeat(["f", "m"], 400), "race": race}
    found = audit(None, chosen, sensitive_features=groups, n_simulations=20, depth=1)
    assert found.check(f"sex: {NAME} > 0.3").outcome == "pass"
    for condition in (f"{NAME} > 0.3", f"race: {NAME} > 0.3"):
        check = found.check(condition)
        assert check.outcome == "inconclusive"
        assert check.undefined == undefined


@pytest.mark.parametrize("has_other", [False, True])
@pytest.mark.parametrize(
    "metric", [NAME, "demographic_parity_ratio", "equalized_odds_difference", "separation_gap"]
)
def test_one_group_is_no_comparison(metric, has_other, tmp_path, capsys):
    """Its disparity is undefined and not 0, with outcomes or another attribute, in every gate."""
    rng = generator(0)
    columns = {"sex": ["m"] * 300, "p": rng.integers(0, 2, 300), "y": rng.integers(0, 2, 300)}
    columns |= {"age": rng.choice(["old", "young"], 300)} if has_other else {}
    rows = pd.DataFrame(columns)
    found = audit(
        rows["y"], rows["p"], sensitive_features=rows.drop(columns=["y", "p"]), metrics=[metric],
        n_simulations=20, depth=1, suppress_below=1,
    )  # fmt: skip
    assert "sex" not in set(found.gaps["view"])
    condition = f"sex: {metric} {'< 0.8' if metric.endswith('_ratio') else '> 0.3'}"
    rows.to_csv(tmp_path / "men.csv", index=False)
    command = ["audit", str(tmp_path / "men.csv"), "--target", "y", "--prediction", "p"]
    command += ["--sensitive", "sex,age" if has_other else "sex", "--fail-if", condition]
    for allowed in (False, True):
        check = found.check(condition, allow_undefined=allowed)
        assert check.outcome == "inconclusive"
        assert np.isnan(check.value)
        assert check.sentence.endswith("Check rows that have two groups or more.")
        for options in ([], ["--inconclusive", "pass"]):
            more = [*options, *["--allow-undefined"] * allowed]
            assert main([*command, "--depth", "1", *more]) == 3
            assert check.sentence in capsys.readouterr().err


def test_a_check_is_true_if_it_passes():
    found = audited([3000, 3000], [900, 1200])
    truths = {"pass": True, "inconclusive": False, "fail": False}
    for limit, outcome in ((0.3, "pass"), (0.1, "inconclusive"), (0.01, "fail")):
        check = found.check(f"{NAME} > {limit}")
        assert check.outcome == outcome
        assert bool(check) is truths[outcome]
    assert not audited([3000, 3000], [0, 0]).check(f"{NAME} > 0.3")  # undefined


def test_a_percentage_for_a_ratio_is_asked_about():
    found, name = audited([300, 300], [90, 100]), "demographic_parity_ratio"
    for condition in (f"{name} < 0.8%", f"g: {name} < 0.8%"):
        with pytest.raises(ValueError, match="smallest ratio of 0.008") as error:
            found.check(condition)
        remedy = str(error.value).split("'")[-2]
        assert remedy == condition.replace("%", "")
        assert found.check(remedy).limit == 0.8
    assert found.check(f"{name} < 80%").limit == 0.8
    assert found.check(f"{name} < 0.008").outcome == "pass"  # it is clear what is meant


def test_intersections_with_too_few_people_count_where_they_are_named():
    place = np.arange(4000)
    sex, age = np.where(place < 60, place < 40, place % 2), np.where(place < 60, "old", "young")
    groups = {"sex": sex, "age": age}  # 20 old people of the one sex
    found = audit(None, place // 2 % 2, sensitive_features=groups, n_simulations=20, depth=1)
    assert found.check(f"{NAME} > 0.6").outcome == "pass"
    named = found.check(f"sex x age: {NAME} > 0.6")
    assert named.outcome == "inconclusive"
    assert "intersection" in named.undefined


def test_the_interval_that_is_said_is_the_one_that_decided():
    """With several attributes a violation is decided by a wider interval than that of each."""
    rng = generator(0)
    people = {f"a{i}": rng.choice(["x", "y"], 400) for i in range(4)}
    chosen = (rng.random(400) < 0.3 + 0.2 * (people["a0"] == "y")).astype(int)
    found = audit(None, chosen, sensitive_features=people)
    for metric, sign in ((NAME, ">"), ("demographic_parity_ratio", "<")):
        for limit in np.linspace(0.02, 0.98, 25):
            check = found.check(f"{metric} {sign} {limit}")
            is_beyond = [end > limit if sign == ">" else end < limit for end in check[3:5]]
            assert check.low <= check.value <= check.high
            assert (check.outcome == "fail") == all(is_beyond)
            assert (check.outcome == "pass") == (not any(is_beyond))


@pytest.mark.parametrize("metric", sorted(LABEL_METRICS))
def test_a_condition_on_a_difference_that_is_rather_a_ratio_is_warned_of(metric):
    is_difference = metric.endswith("_difference") and LABEL_METRICS[metric].most == 1
    text = f"sex: {metric} {'<' if metric.endswith('_ratio') else '>'} 0.8"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_condition(text)
    assert [one.category for one in caught] == [LooseLimitWarning] * is_difference
    for one in caught:
        assert f"'{metric.replace('_difference', '_ratio')} < 0.8'" in str(one.message)


@pytest.mark.parametrize("written", ["> 1.25", ">= 1.25", "<= 1.25", "< 2"])
def test_the_remedy_for_a_ratio_above_1_can_be_written(written):
    """Two remedies led from one to the other, and none could be written."""
    groups = np.resize(["f", "m"], 200)
    found = audit(None, (np.arange(200) % 3 > 0) * 1, sensitive_features=groups)
    with pytest.raises(ValueError, match="they are at most 1. Write") as error:
        found.check(f"demographic_parity_ratio {written}")
    remedy = str(error.value).partition("Write '")[2].partition("'")[0]
    limit = float(written.split()[1])
    assert remedy == f"demographic_parity_ratio < {1 / limit:.6g}"
    assert found.check(remedy).outcome in ("pass", "fail", "inconclusive")
