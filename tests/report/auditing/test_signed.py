"""Differences from the reference group: the sign, the size, and how certain they are."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from skfair import metrics
from skfair.groups.two_rates import melded
from skfair.report import Audit, audit
from tests.report.commands.test_commands import reported
from tests.report.results.test_verdicts import rows_of
from tests.report.schema import breaches
from tests.seeds import generator


@pytest.fixture(scope="module")
def people():
    """Of f, m and x 30, 60 and 90% are selected."""
    rng = generator(0)
    sex = np.repeat(["f", "m", "x"], [450, 405, 45])
    frame = pd.DataFrame({"sex": sex, "age": rng.choice(["old", "young"], 900)})
    frame["y"] = (rng.random(900) < 0.5).astype(int)
    place = frame.groupby("sex").cumcount() % 10
    frame["p"] = (place < frame["sex"].map({"f": 3, "m": 6, "x": 9})).astype(int)
    return frame


def audited(people, reference, groups=("sex",), **options):
    groups = people[list(groups)]
    options = {"n_simulations": 20, "reference": reference, "suppress_below": 1, **options}
    return audit(people["y"], people["p"], sensitive_features=groups, **options)


def test_differences_are_those_of_plain_rates(people):
    found = audited(people, "m").signed
    rates = people.groupby("sex")["p"].mean()
    own = found[found["measure"] == "selection_rate"].set_index("group")
    assert own["difference"].to_dict() == pytest.approx((rates - rates["m"]).drop("m").to_dict())
    assert own.loc["f", "difference"] < 0 < own.loc["x", "difference"]
    assert (own["difference_low"] < own["difference"]).all()
    assert (own["difference"] < own["difference_high"]).all()
    hits = people[people["y"] == 1].groupby("sex")["p"].mean()
    own = found[found["measure"] == "true_positive_rate"].set_index("group")
    assert own.loc["f", "difference"] == pytest.approx(hits["f"] - hits["m"])
    other = audited(people, "f").signed
    other = other[other["measure"] == "selection_rate"].set_index("group")
    assert other.loc["m", "difference"] == pytest.approx(rates["m"] - rates["f"])


def test_the_verdict_is_on_the_group_furthest_from_the_reference(people):
    for first, other in (("f", "x"), ("x", "f")):
        said = rf"sex \(3 groups\): selection rate .* \({first}\) against .* \({other}\): a gap"
        lead = {"lead": "demographic_parity_difference", "n_simulations": 200}
        assert re.search(said, repr(audited(people, other, **lead)))


@pytest.mark.parametrize("n_groups", [2, 3])
def test_a_difference_from_the_reference_has_the_p_value_of_the_pair(people, n_groups):
    few = people if n_groups == 3 else people[people["sex"] != "x"]
    found = audited(few, "m", n_simulations=100)
    gap = found.gaps[found.gaps["metric"] == "accuracy_parity_difference"].iloc[0]
    own = found.signed[found.signed["measure"] == "accuracy"]
    assert (own["p_value"] >= gap["p_value"]).all()
    if n_groups == 2:
        assert own["p_value"].item() == gap["p_value"]
    assert found.signed.loc[found.signed["measure"] == "base_rate", "p_value"].isna().all()


def test_the_interval_ends_where_the_test_of_the_two_rates_does():
    """Close to Newcombe's, whose first example differs by 0.2, from 0.0524 to 0.3339."""
    a, b = (56, 70), (48, 80)
    groups, chosen = rows_of({"a": a, "b": b})
    row = audit(None, chosen, sensitive_features=groups, reference="b").signed.iloc[0]
    low, high = row["difference_low"], row["difference_high"]
    assert melded(*a, *b, high, False) == pytest.approx(0.025, abs=1e-6)
    assert melded(*b, *a, -low, False) == pytest.approx(0.025, abs=1e-6)
    assert [low, high] == pytest.approx([0.0524, 0.3339], abs=0.02)


def test_crossed_groups_need_a_reference_for_each_attribute(people):
    groups = ("sex", "age")
    assert set(audited(people, "m", groups).signed["view"]) == {"sex"}
    reference = {"sex": "m", "age": "old"}
    found = audited(people, reference, groups, min_group_size=1).signed
    assert set(found["view"]) == {"sex", "age", "sex x age"}
    crossed = found[found["view"] == "sex x age"]
    assert set(crossed["reference"]) == {"sex=m, age=old"}
    assert crossed["group"].nunique() == 5
    # Small groups are not compared with it.
    assert "x" not in set(audited(people, "m", min_group_size=100).signed["group"])
    assert audited(people, "x", min_group_size=100).signed.empty


def test_everywhere_an_audit_is_shown(people, tmp_path):
    found = audited(people, "m", before=1 - people["p"])
    assert not found.signed["measure"].str.startswith("before:").any()
    plain = json.loads(found.to_json())
    assert breaches(plain, Audit.schema()) == []
    assert Audit.from_dict(plain).to_html() == found.to_html()
    assert "<summary>Against m</summary>" in found.to_html()
    assert "| Selection rate | f |" in found.to_markdown()
    people.to_csv(tmp_path / "rows.csv", index=False)
    asked = ["--target", "y", "--prediction", "p", "--sensitive", "sex", "--reference", "m"]
    asked += ["--suppress-below", "1"]
    again = Audit.from_dict(reported(tmp_path / "rows.csv", *asked, usual=False))
    here = audited(people, "m", n_simulations=500)
    pd.testing.assert_frame_equal(again.signed, here.signed)


def test_numbers(people):
    y = generator(0).normal(size=900)
    found = audit(
        y, 0.1 * y + (people["sex"] == "m"), sensitive_features=people["sex"], reference="m",
        n_simulations=20,
    )  # fmt: skip
    own = found.signed[found.signed["measure"] == "mean_prediction"].set_index("group")
    means = pd.Series(0.1 * y).groupby(people["sex"]).mean()
    assert own.loc["f", "difference"] == pytest.approx(means["f"] - means["m"] - 1)


def test_gaps_and_checks_are_about_the_reference_group():
    """Their values are those of the metrics with the same reference, up to the sign."""
    groups, place = np.repeat(["a", "b", "c"], 200), np.arange(600) % 20
    y, chosen = place % 2, (place < np.repeat([6, 12, 9], 200)).astype(int)
    found = audit(y, chosen, sensitive_features=groups, reference="c", n_simulations=20)
    for name in ("demographic_parity_ratio", "equalized_odds_difference"):
        value = getattr(metrics, name)(y, chosen, sensitive_features=groups, reference="c")
        row = found.gaps.set_index("metric").loc[name]
        assert row["value"] == pytest.approx(abs(value))
        assert row["value_low"] <= row["value"] <= row["value_high"]
        assert "c" in (row["first_group"], row["second_group"])
        assert "c" in (row["clear_first"], row["clear_second"])
        condition = f"{name} < 0.5" if name.endswith("ratio") else f"{name} > 0.5"
        assert found.check(condition).value == row["value"]
    pairwise = audit(y, chosen, sensitive_features=groups, n_simulations=20)
    assert pairwise.value("demographic_parity_ratio") < found.value("demographic_parity_ratio")
