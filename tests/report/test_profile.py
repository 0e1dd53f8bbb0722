"""The bias profile: the numbers of the audit, a row for each group and measure, and no others."""

import json

import numpy as np
import pandas as pd
import pytest

from skfair import metrics
from skfair.__main__ import main
from skfair.report import Audit, audit
from tests.seeds import generator

KEYS = ["view", "group", "measure"]
NUMBERS = ["value", "value_low", "value_high", "difference", "difference_low", "difference_high"]


@pytest.fixture(scope="module")
def people():
    """Sex has few of "x", age three levels; women and the old are selected less often."""
    rng = generator(0)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], 1200)})
    ages = np.repeat(["young", "mid", "old"], [380, 420, 400])  # the largest is shown first
    frame["age"] = rng.permutation(ages)
    frame.loc[:4, "sex"], frame.loc[5:124, "sex"] = "x", "?"
    frame["y"] = (rng.random(1200) < 0.5).astype(int)
    chance = 0.6 - 0.3 * (frame["sex"] == "f") - 0.25 * (frame["age"] == "old")
    frame["p"] = (rng.random(1200) < chance).astype(int)
    return frame


def audited(people, groups=("sex", "age"), **options):
    options = {"n_simulations": 100, "unknown": "?", "before": 1 - people["p"], **options}
    return audit(people["y"], people["p"], sensitive_features=people[list(groups)], **options)


def row_of(table, view, group, measure):
    (row,) = table[(table[KEYS] == [view, group, measure]).all(axis=1)].itertuples()
    return row


def test_there_is_a_row_for_each_group_and_measure(people):
    found = audited(people)
    table = found.bias_profile()
    assert not table.duplicated(KEYS).any()
    shown = found.rates[found.rates["view"] != ""]
    shown = shown[~shown["measure"].str.startswith("before:")]
    hidden = found.hidden.merge(shown[["view", "measure"]].drop_duplicates(), on="view")
    assert len(table) == len(shown) + len(hidden)
    assert ("sex", "x") in {*zip(table["view"], table["group"], strict=True)}
    of_audit = table.merge(shown, on=KEYS)
    assert len(of_audit) == len(shown)
    for name in ("value", "value_low", "value_high"):
        np.testing.assert_array_equal(of_audit[f"{name}_x"], of_audit[f"{name}_y"])
    np.testing.assert_array_equal(of_audit["n_rows"], of_audit["n"])


@pytest.mark.parametrize("reference", [None, {"sex": "m", "age": "mid"}])
def test_the_values_are_those_of_the_metrics(people, reference):
    left = people[people["sex"] != "x"]  # whom the audit leaves out
    table = audited(people, reference=reference).bias_profile()
    known = left[left["sex"] != "?"]
    for measure, metric in [
        ("selection_rate", metrics.demographic_parity_difference),
        ("true_positive_rate", metrics.equal_opportunity_difference),
        ("accuracy", metrics.accuracy_parity_difference),
    ]:
        for view, rows in (("sex", known), ("age", left)):
            own = table[(table["view"] == view) & (table["measure"] == measure)]
            own = own[own["verdict"].ne("not compared") & ~own["is_suppressed"]]
            expected = metric(rows["y"], rows["p"], sensitive_features=rows[view])
            assert np.ptp(own["value"]) == pytest.approx(expected, abs=1e-12)
            if reference is None:
                assert np.ptp(own["difference"]) == pytest.approx(expected, abs=1e-12)
    rates = left.groupby("age")["p"].mean()
    against = left["p"].mean() if reference is None else rates["mid"]
    for group in ("young", "old"):
        row = row_of(table, "age", group, "selection_rate")
        assert row.reference == ("all" if reference is None else "mid")
        assert row.reference_value == pytest.approx(against, abs=1e-12)
        assert row.difference == pytest.approx(rates[group] - against, abs=1e-12)


@pytest.mark.parametrize("confidence", [0.95, 0.995])
def test_differences_from_a_named_group_are_those_of_the_audit(people, confidence):
    found = audited(people, reference={"sex": "m", "age": "mid"}, confidence=confidence)
    table = found.bias_profile()
    both = table.merge(found.signed, on=KEYS)
    assert len(both) == len(found.signed) > 0
    for name in ("reference", "difference", "difference_low", "difference_high", "p_value"):
        pd.testing.assert_series_equal(both[f"{name}_x"], both[f"{name}_y"], check_names=False)
    is_tested = both["p_value_x"].notna() & both["value_x"].notna()
    is_beyond = both["p_value_x"] <= 1 - confidence + 1e-12
    assert (both["verdict"][is_tested & is_beyond] == "significant").all()
    assert (both["verdict"][is_tested & ~is_beyond] == "not significant").all()
    said = {"significant", "not significant"} if confidence == 0.95 else {"not significant"}
    assert set(both["verdict"][is_tested]) - {"not tested"} == said
    assert (both["verdict"][both["measure"] == "base_rate"] == "not tested").all()
    own = row_of(table, "age", "mid", "selection_rate")
    assert own.verdict == "reference"
    assert np.isnan(own.difference)


def test_without_a_named_group_the_verdict_is_that_of_the_clearest_pair(people):
    found = audited(people)
    table = found.bias_profile()
    gaps = found.gaps[(found.gaps["model"] == "now") & ~found.gaps["is_conditional"]]
    for metric, measure in [
        ("demographic_parity_difference", "selection_rate"),
        ("equal_opportunity_difference", "true_positive_rate"),
        ("accuracy_parity_difference", "accuracy"),
    ]:
        for gap in gaps[gaps["metric"] == metric].itertuples():
            rows = table[(table["view"] == gap.view) & (table["measure"] == measure)]
            rows = rows[rows["difference"].notna()].set_index("group")["verdict"]
            pair = [gap.clear_first, gap.clear_second]
            said = "significant" if gap.is_beyond_chance else "not significant"
            assert (rows[pair] == said).all()
            others = "not tested" if gap.is_beyond_chance else "not significant"
            assert (rows.drop(pair) == others).all()
    assert row_of(table, "age", "old", "selection_rate").verdict == "significant"
    assert row_of(table, "age", "old", "base_rate").verdict == "not tested"
    assert {"not tested", "not significant"} <= set(table["verdict"])


def test_a_small_group_that_is_furthest_apart_is_not_judged_by_the_pair_of_large_ones():
    """Of a 30% are selected, of b 50%, and of the 32 people of c 53%, which is less certain."""
    sizes = {"a": (600, 2000), "b": (1000, 2000), "c": (17, 32)}
    chosen = np.concatenate([np.arange(n) < k for k, n in sizes.values()]).astype(int)
    groups = np.repeat([*sizes], [n for _, n in sizes.values()])
    found = audit(None, chosen, sensitive_features={"g": groups})
    gap = found.gaps.iloc[0]
    assert (gap["second_group"], gap["clear_second"]) == ("c", "b")
    verdicts = found.bias_profile().set_index("group")["verdict"].to_dict()
    assert verdicts == {"a": "significant", "b": "significant", "c": "not tested"}


def test_a_rate_that_no_other_group_has_is_not_judged():
    sex, y = np.repeat(["f", "m"], 100), np.r_[np.arange(100) % 2, np.zeros(100, int)]
    table = audit(y, np.arange(200) % 3 % 2, sensitive_features={"sex": sex}).bias_profile()
    verdicts = [row_of(table, "sex", group, "true_positive_rate").verdict for group in "fm"]
    assert verdicts == ["not tested", "undefined"]


def test_a_group_without_weight_is_undefined_and_not_suppressed(people):
    weight = (people["age"] != "old").to_numpy(float)
    table = audited(people, ["age"], sample_weight=weight).bias_profile()
    old = table[table["group"] == "old"]
    assert "true_positive_rate" in set(old["measure"])
    assert (old["verdict"] == "undefined").all()
    assert not old["is_suppressed"].any()


def test_what_the_audit_does_not_show_is_not_in_the_profile(people):
    table = audited(people).bias_profile()
    few = table[(table["view"] == "sex") & (table["group"] == "x")]
    assert few["is_suppressed"].all()
    assert (few["verdict"] == "not shown").all()
    assert few[[*NUMBERS, "n_rows", "n_persons", "p_value"]].isna().all(axis=None)
    unknown = table[(table["view"] == "sex") & (table["group"] == "?")]
    assert (unknown["verdict"] == "not compared").any()
    assert unknown["difference"].isna().all()
    assert not table["is_suppressed"][table["group"].isin(["f", "m"])].any()
    everything = audited(people, suppress_below=1).bias_profile()
    assert not everything["is_suppressed"].any()
    assert row_of(everything, "sex", "x", "selection_rate").n_rows == 5


def test_few_people_of_a_class_are_suppressed_and_none_is_undefined(people):
    """Of the old three are qualified: their rates by class are hidden. Without any they are not."""
    old = people.index[people["age"] == "old"]
    y = people["y"].copy()
    y[old] = 0
    for n_qualified in (0, 3):
        y[old[:n_qualified]] = 1
        table = audited(people.assign(y=y), ["age"]).bias_profile()
        row = row_of(table, "age", "old", "true_positive_rate")
        assert np.isnan(row.value)
        assert row.is_suppressed == (n_qualified == 3)
        assert row.verdict == ("not shown" if n_qualified else "undefined")
        accuracy = row_of(table, "age", "old", "accuracy")
        assert accuracy.is_suppressed == np.isnan(accuracy.value) == (n_qualified == 3)
        assert not row_of(table, "age", "old", "selection_rate").is_suppressed
        assert not row_of(table, "age", "mid", "true_positive_rate").is_suppressed


@pytest.mark.parametrize("seed", range(3))
def test_every_number_is_one_of_the_audit_or_a_difference_of_two(seed):
    """So nothing can be computed from the profile that cannot be computed from the audit."""
    rng = generator(seed)
    frame = pd.DataFrame({"a": rng.choice(list("uvw"), 300, p=[0.7, 0.28, 0.02])})
    frame["b"], y, p = rng.choice(list("xy"), 300), rng.integers(0, 2, 300), rng.integers(0, 2, 300)
    reference = [None, {"a": "u"}, {"a": "u", "b": "x"}][seed]
    found = audit(y, p, sensitive_features=frame, n_simulations=20, reference=reference)
    again = Audit.from_dict(json.loads(found.to_json()))  # its public record is enough
    table = again.bias_profile()
    pd.testing.assert_frame_equal(table, found.bias_profile())
    known = set(found.rates[["n", "value", "value_low", "value_high"]].to_numpy().ravel())
    if len(found.signed):
        known |= set(found.signed.select_dtypes("number").to_numpy().ravel())
    written = table[["n_rows", "n_persons", "value", "value_low", "value_high", "reference_value"]]
    written = [written, table[["difference_low", "difference_high", "p_value"]]]
    for numbers in written:
        numbers = numbers.to_numpy(float, na_value=np.nan).ravel()
        assert set(numbers[~np.isnan(numbers)]) <= known
    difference = (table["value"] - table["reference_value"])[table["difference"].notna()]
    pd.testing.assert_series_equal(table["difference"].dropna(), difference, check_names=False)


def test_persons_and_rows_are_counted(people):
    units = np.arange(len(people)) // 2
    sex = np.repeat(["f", "m"], 600)
    options = {"sensitive_features": {"sex": sex}, "n_simulations": 20}
    table = audit(people["y"], people["p"], units=units, **options).bias_profile()
    assert set(table["n_rows"]) == {600}
    assert set(table["n_persons"]) == {300}
    alone = audit(people["y"], people["p"], **options).bias_profile()
    pd.testing.assert_series_equal(alone["n_rows"], alone["n_persons"], check_names=False)


def test_csv_and_json_hold_the_same_table(people, tmp_path):
    found = audited(people, reference={"sex": "m"}, about={"model": "Score card 3"})
    names = tmp_path / "profile.csv", tmp_path / "profile.json"
    table = found.bias_profile(names[0])
    pd.testing.assert_frame_equal(found.bias_profile(names[1]), table)
    read = pd.read_csv(names[0], keep_default_na=False, na_values=[""])
    plain = json.loads(names[1].read_text(encoding="utf-8"))
    written = pd.DataFrame(plain["bias_profile"])
    for own in (read, written):
        assert list(own) == list(table)
        sizes = {"n_rows": float, "n_persons": float}  # NaN or NA, where none is shown
        expected = table.astype(sizes)
        pd.testing.assert_frame_equal(own.astype(sizes), expected, check_dtype=False, rtol=1e-14)
    assert isinstance(plain["bias_profile"][0]["n_rows"], int)
    assert plain["about"] == {"model": "Score card 3"}
    assert (plain["made_on"], plain["confidence"]) == (found.made_on, 0.95)
    assert "rates" not in plain


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_other_tasks(people, task):
    given = {
        "classes": (people["y"] + people["p"], (people["p"] + 1) * people["y"], "recall[1]"),
        "numbers": (people["y"] / 2, people["p"] / 3, "mean_residual"),
    }
    y, p, measure = given[task]
    found = audit(y, p, sensitive_features=people[["age"]], n_simulations=20, task=task)
    table = found.bias_profile()
    assert set(table["verdict"]) <= {"significant", "not significant", "not tested"}
    is_old = people["age"] == "old"
    own = (y - p)[is_old].mean() if task == "numbers" else (p == 1)[is_old & (y == 1)].mean()
    assert row_of(table, "age", "old", measure).value == pytest.approx(own, abs=1e-12)
    assert row_of(table, "age", "old", measure).verdict != "not tested"


def test_the_command_writes_it(people, tmp_path):
    path, out = tmp_path / "rows.csv", tmp_path / "profile.csv"
    people.to_csv(path, index=False)
    given = ["audit", str(path), "--target", "y", "--prediction", "p", "--sensitive", "sex,age"]
    assert main([*given, "--unknown", "?", "--profile", str(out)]) == 0
    found = audit(
        people["y"], people["p"], sensitive_features=people[["sex", "age"]], unknown="?"
    ).bias_profile()
    read = pd.read_csv(out)
    sizes = {"n_rows": float, "n_persons": float}
    pd.testing.assert_frame_equal(read, found.astype(sizes), check_dtype=False)
