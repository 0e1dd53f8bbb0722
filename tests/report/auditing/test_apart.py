"""Small and unknown groups are listed, and no gap, verdict or condition depends on them."""

import html
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skfair.__main__ import main
from skfair.report import Audit, audit
from tests.report.schema import breaches
from tests.seeds import generator

NAMES = {"a": "xy", "b": "klm", "c": "uvwz"}


@pytest.fixture(scope="module")
def people():
    """Women 35 %, men 43 %; three people of a group of their own, all selected, and 40 unknown."""
    sex = np.repeat(["f", "m", "d", "unknown"], [1100, 1350, 3, 40])
    sizes = {"f": (385, 1100), "m": (580, 1350), "d": (3, 3), "unknown": (14, 40)}
    chosen = np.concatenate([np.arange(n) < k for k, n in sizes.values()]).astype(int)
    return pd.DataFrame({"sex": sex, "chosen": chosen, "age": np.arange(sex.size) % 3})


def audited(people, groups=("sex",), **options):
    options = {"n_simulations": 100, "suppress_below": 1, "unknown": "unknown", **options}
    return audit(None, people["chosen"], sensitive_features=people[list(groups)], **options)


def test_gaps_are_those_of_the_rows_that_are_left(people):
    found = audited(people)
    left = people[people["sex"].isin(["f", "m"])]
    expected = audit(None, left["chosen"], sensitive_features=left[["sex"]], n_simulations=100)
    for name in ("view", "metric", "value", "first_group", "second_group", "is_beyond_chance"):
        pd.testing.assert_series_equal(found.gaps[name], expected.gaps[name])
    assert found.value("demographic_parity_difference") == pytest.approx(580 / 1350 - 0.35)
    rates = found.rates[found.rates["measure"] == "selection_rate"].set_index("group")
    assert rates["apart"].to_dict() == {
        "all": "", "d": "small", "f": "", "m": "", "unknown": "unknown"
    }  # fmt: skip
    assert rates.loc["d", ["n", "value"]].tolist() == [3, 1.0]


def test_the_summary_speaks_of_those_who_are_compared(people):
    found = audited(people)
    said = "Not compared: d (sex, 3 rows, too few), unknown (sex, 40 rows, not known)."
    assert said in repr(found).splitlines()
    assert "(small, not compared)" in found.to_html()
    assert breaches(json.loads(found.to_json()), Audit.schema()) == []
    assert Audit.from_dict(found.to_dict()).to_html() == found.to_html()


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_groups_may_be_unknown(people, missing):
    sex = people["sex"].replace({"unknown": missing}).astype(object)
    found = audited(people.assign(sex=sex), unknown=[missing, "?"])
    expected = audited(people.replace({"sex": {"unknown": "missing"}}), unknown="missing")
    pd.testing.assert_frame_equal(found.rates, expected.rates)
    pd.testing.assert_frame_equal(found.gaps, expected.gaps)
    with pytest.raises(ValueError, match="40 missing values"):
        audited(people.assign(sex=sex), unknown="?")


def test_crossed_groups_are_unknown_if_one_attribute_is(people):
    rates = audited(people, ("sex", "age"), min_group_size=1).rates
    rates = rates[rates["view"] == "sex x age"]
    assert rates["group"].str.contains("unknown").equals(rates["apart"] == "unknown")
    assert (rates["apart"] == "unknown").any()


def test_within_strata_too(people):
    within = audited(people, control_features=people[["age"]]).gaps
    assert within["is_conditional"].any()
    assert set(within["first_group"].str[:1]) | set(within["second_group"].str[:1]) <= {"f", "m"}


def test_with_one_group_left_nothing_is_compared(people):
    few = people[people["sex"] != "m"]
    found = audited(few)
    assert "sex: groups are not compared, because fewer than two" in repr(found)
    assert found.to_html()
    assert found.to_markdown()
    with pytest.raises(ValueError, match="fewer than two are left"):
        found.value("demographic_parity_difference")


def test_a_condition_of_a_pipeline_names_the_few_and_does_not_hear_of_the_unknown(
    people, tmp_path, capsys
):
    path = tmp_path / "rows.csv"
    people.replace({"sex": {"unknown": None}}).to_csv(path, index=False)
    command = [
        "audit", str(path), "--prediction", "chosen", "--sensitive", "sex", "--missing", "unknown",
        "--fail-if", "demographic_parity_difference > 0.15",
    ]  # fmt: skip
    assert main(command) == 3
    assert "Not compared: d (sex: too few people), so" in capsys.readouterr().err
    assert main([*command, "--allow-undefined"]) == 0
    command += ["--suppress-below", "1"]
    assert main([*command, "--min-group-size", "1"]) == 3
    capsys.readouterr()
    for option in (["--unknown", "m"], ["--min-group-size", "1200"]):
        for more in ([], ["--inconclusive", "pass"], ["--allow-undefined"]):  # no silent pass
            assert main([*command, *option, *more]) == 3
            assert "Check rows that have two groups or more" in capsys.readouterr().err


def test_three_people_do_not_hide_what_large_groups_show(people):
    """Their rates are furthest apart, by chance; the difference of women and men is none."""
    groups = people.replace({"sex": {"unknown": "u"}})
    found = audited(groups, min_group_size=1, unknown=None, n_simulations=500)
    names = [f"demographic_parity_{kind}" for kind in ("difference", "ratio")]
    difference, ratio = found.gaps[found.gaps["metric"].isin(names)].itertuples()
    assert (difference.second_group, difference.clear_second) == ("d", "m")
    for gap in (difference, ratio):  # one verdict of both
        assert gap.is_beyond_chance
        assert gap.p_value == difference.p_value <= 0.01
    said = "sex (4 groups): selection rate 35% (f) against 43% (m): a gap of 8 points"
    assert said in repr(found)


def test_few_audits_of_equal_groups_find_anything():
    """P-values of pairs, metrics and attributes each by itself found something in every second."""
    n_found, names = 0, ("demographic_parity", "equal_opportunity", "accuracy_parity")
    metrics = [f"{name}_difference" for name in names]
    for seed in range(20):
        rng = generator(seed)
        groups = {name: rng.choice(list(levels), 120) for name, levels in NAMES.items()}
        y, p = rng.integers(0, 2, (2, 120))
        options = {"n_simulations": 59, "depth": 1, "metrics": metrics, "random_state": seed}
        found = audit(y, p, sensitive_features=groups, **options)
        is_beyond = found.gaps["is_beyond_chance"]
        assert is_beyond.equals(found.gaps["p_value"] <= 0.05 + 1e-12)
        assert is_beyond.any() == (", statistically significant" in repr(found))
        n_found += is_beyond.any() or found.n_beyond_chance > 0
    assert n_found <= stats.binom.isf(1e-7, 20, 0.05)


def test_the_least_p_value_of_simulations_is_a_bound(people):
    """0.0099 was the p-value of all clear differences, 0.005 with twice as many simulations."""
    for n_simulations, least in ((100, "0.01"), (150, "0.0067")):
        found = audited(people, n_simulations=n_simulations)
        again = Audit.from_dict(json.loads(found.to_json()))
        for text in (repr(again), again.to_html(), again.to_markdown().replace("\\", "")):
            assert f"statistically significant (p at most {least})" in html.unescape(text)


def test_the_largest_difference_beyond_chance_is_in_the_summary():
    """Precisions are no headline, but here they alone differ."""
    sex, chosen = np.repeat(["f", "m"], 2000), np.tile(np.arange(2000) % 2, 2)
    place = np.tile(np.arange(2000) // 2, 2) / 1000
    y = (place < np.where(chosen, np.where(sex == "f", 0.9, 0.6), 0.2)).astype(int)
    found = audit(y, chosen, sensitive_features={"sex": sex}, n_simulations=100)
    beyond = found.gaps[found.gaps["is_beyond_chance"] & ~found.gaps["is_ratio"]]
    assert beyond.loc[beyond["value"].idxmax(), "metric"] == "predictive_parity_difference"
    assert "Largest significant difference: sex: precision" in repr(found)


def test_rates_and_their_complements_have_one_verdict():
    rng = generator(0)
    sex, y = np.repeat(["f", "m"], 150), rng.integers(0, 2, 300)
    names = ["false_negative_parity_difference", "equal_opportunity_difference"]
    for _ in range(10):
        p = (rng.random(300) < np.where(sex == "f", 0.42, 0.57)).astype(int)
        gaps = audit(y, p, sensitive_features=sex, metrics=names, n_simulations=50).gaps
        assert gaps["is_beyond_chance"].nunique() == 1
        assert np.ptp(gaps["noise_upper"]) < 1e-12
