"""Tables of rules of law: the numbers against counting, and the words that come with them."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from skfair.metrics import selection_tests
from skfair.report import Audit, audit
from tests.report.commands.test_commands import reported
from tests.report.results.test_verdicts import rows_of
from tests.report.schema import breaches
from tests.seeds import generator, seed_of

GUIDELINES = {"White": (480, 800), "Native": (9, 20), "Hispanic": (96, 200), "Black": (153, 300)}


def table_of(counts, preset="ugesp", **options):
    groups, chosen = rows_of(counts)
    options = {"n_simulations": 20, "min_group_size": 5, **options}
    return audit(None, chosen, sensitive_features={"race": groups}, preset=preset, **options)


def test_a_table_of_the_guidelines():
    """Rates of 60, 45, 48 and 51 %; the group of 45 % has less than 2 % of all people."""
    found = table_of(GUIDELINES, reference="Black")
    table = found.impact.set_index("group")
    assert table["status"].to_dict() == {
        "White": "reference", "Native": "small", "Hispanic": "compared", "Black": "compared"
    }  # fmt: skip
    assert table["impact_ratio"].round(2).dropna().to_dict() == {
        "White": 1.0, "Hispanic": 0.8, "Black": 0.85
    }  # fmt: skip
    assert not table["is_below_four_fifths"].any()
    assert table["selected"].to_dict() == {one: k for one, (k, _) in GUIDELINES.items()}
    tests = selection_tests([153], [300], [480], [800]).loc[0]
    for name in ("z", "p_value", "fisher_p", "fisher_mid_p", "odds_ratio", "shortfall"):
        assert table.loc["Black", name] == tests[name]
    said = "(3 groups): selection rate 48% (Hispanic) against 60% (White)"
    assert said in repr(table_of(GUIDELINES))
    # The stated reference has a column of its own.
    assert table.loc["Hispanic", "ratio_to_reference"] == pytest.approx(0.48 / 0.51)
    assert table.loc["Hispanic", "compared_with"] == "White"


def test_a_group_below_four_fifths_is_flagged_with_what_it_lacks():
    """80 of 200 against 60 %: 16 more would be four fifths, 40 more as many."""
    found = table_of({"White": (480, 800), "Black": (80, 200)})
    (row,) = found.impact[found.impact["group"] == "Black"].itertuples()
    assert row.is_below_four_fifths
    assert not row.is_fragile
    assert (row.shortfall, row.shortfall_four_fifths) == (40, 16)
    assert "impact ratio 0.67, below four fifths." in repr(found)
    page = found.to_html()
    assert re.search(r'<td class="beyond">below</td>', page)
    few = table_of({"White": (6, 10), "Black": (7, 15)})
    assert "below (one person turns it)" in few.to_html()


@pytest.mark.parametrize("preset", ["ll144", "ugesp", "ecoa", "uk"])
def test_each_table_says_its_rule_its_source_and_what_it_is_not(preset):
    found = table_of(GUIDELINES, preset, reference="Hispanic")
    for text in (found.to_html(), found.to_markdown(), found.to_json()):
        for words in ("impact ratio", "Source: ", "no legal advice"):
            assert words in text
        assert re.search(r"\b(19|20)\d\d\b", found.rule)
    plain = json.loads(found.to_json())
    assert breaches(plain, Audit.schema()) == []
    again = Audit.from_dict(plain)
    assert again.to_json() == found.to_json()
    assert again.to_html() == found.to_html()


@pytest.mark.parametrize("preset", ["ugesp", "ll144", None])
@pytest.mark.parametrize("least", [None, 30])
def test_the_head_says_the_rule_by_which_groups_are_few(preset, least):
    counts = {"White": (480, 800), "unknown": (9, 40)}
    found = table_of(counts, preset=preset, min_group_size=least, unknown=["unknown"])
    parts = ["30 rows"] if least or not preset else []
    parts += ["2% of the people"] if preset else []
    for text in (found.to_html(), found.to_markdown()):
        assert f"below {' or '.join(parts)} not compared" in text
        assert "unknown (unknown)" not in text


def test_local_law_144_has_no_threshold_and_a_median():
    """The rate of a score is the share above the median of all scores."""
    rng = generator(0)
    score, sex = rng.normal(size=401), rng.choice(["f", "m"], 401)
    found = audit(
        None, y_score=score, sensitive_features={"sex": sex}, preset="ll144", n_simulations=20
    )
    shares = pd.Series(score > np.median(score)).groupby(sex).mean()
    table = found.impact.set_index("group")
    assert table["rate"].to_dict() == shares.to_dict()
    assert set(table["measure"]) == {"scoring_rate"}
    assert table["impact_ratio"].min() == pytest.approx(shares.min() / shares.max())
    assert f"above the median, {np.median(score):.4g}" in found.rule
    assert "four fifths" not in repr(found) + found.to_markdown()


def test_unknown_people_are_counted_and_left_out():
    """Even if everybody of unknown group was selected; also where attributes are crossed."""
    counts = {"f": (30, 100), "m": (40, 100), "unknown": (40, 40)}
    sex, chosen = rows_of(counts)
    age = np.where(np.arange(sex.size) % 2, "old", "young")
    found = audit(
        None, chosen, sensitive_features={"sex": sex, "age": age}, preset="ll144",
        unknown="unknown", n_simulations=20,
    )  # fmt: skip
    table = found.impact[found.impact["view"] == "sex"].set_index("group")
    assert table["status"].to_dict() == {"f": "compared", "m": "reference", "unknown": "unknown"}
    assert table["impact_ratio"].to_dict() == pytest.approx(
        {"f": 0.75, "m": 1.0, "unknown": np.nan}, nan_ok=True
    )
    crossed = found.impact[found.impact["view"] == "sex x age"]
    assert crossed["group"].str.contains("unknown").equals(crossed["status"] == "unknown")
    assert crossed["status"].value_counts().to_dict() == {
        "compared": 3, "unknown": 2, "reference": 1
    }  # fmt: skip


def test_lending_compares_with_the_control_group():
    counts = {"White": (300, 500), "Black": (100, 250), "Asian": (160, 200)}
    race, chosen = rows_of(counts)
    rng = generator(0)
    score = rng.normal(size=race.size) + (race == "White")
    found = audit(
        None, chosen, y_score=score, sensitive_features=race, preset="ecoa", reference="White",
        n_simulations=20,
    )  # fmt: skip
    table = found.impact.set_index("group")
    assert table["impact_ratio"].to_dict() == pytest.approx(
        {"Asian": 0.8 / 0.6, "Black": 0.4 / 0.6, "White": 1.0}
    )
    assert table.loc["Black", "odds_ratio"] == pytest.approx((100 / 150) / (300 / 200))
    smd = (score[race == "Black"].mean() - score[race == "White"].mean()) / score.std(ddof=1)
    assert table.loc["Black", "standardized_difference"] == pytest.approx(smd)
    prices = audit(
        None, score, sensitive_features=race, task="numbers", preset="ecoa", reference="White",
        n_simulations=20,
    )  # fmt: skip
    same = prices.impact.set_index("group")["standardized_difference"]
    assert same.to_dict() == pytest.approx(table["standardized_difference"].to_dict())


def test_strata_may_say_the_opposite_of_the_whole():
    """Fewer women are selected in all, and more in each job."""
    sex, chosen = rows_of({"f": (80, 100), "m": (350, 500)})
    hard_sex, hard_chosen = rows_of({"f": (100, 500), "m": (10, 100)})
    job = np.repeat(["easy", "hard"], 600)
    found = audit(
        None, np.append(chosen, hard_chosen), control_features={"job": job}, preset="ugesp",
        sensitive_features={"sex": np.append(sex, hard_sex)}, n_simulations=20,
    )  # fmt: skip
    women = found.impact.set_index("group").loc["f"]
    assert women["is_below_four_fifths"]
    assert women["strata_odds_ratio"] > 1.5
    assert "Cochran-Mantel-Haenszel" in found.to_html()


@pytest.mark.parametrize("column", ["chosen", "score"])
def test_from_a_shell(tmp_path, capsys, column):
    race, chosen = rows_of(GUIDELINES)
    rng = generator(0)
    frame = pd.DataFrame({"race": race, "chosen": chosen, "score": rng.random(race.size)})
    frame.loc[::50, "race"] = None
    path = tmp_path / "rows.csv"
    frame.sample(frac=1, random_state=seed_of(0)).to_csv(path, index=False)
    asked = ["--prediction" if column == "chosen" else "--score", column, "--sensitive", "race"]
    asked += ["--missing", "unknown", "--preset", "ll144", "--reference", "race=Black"]
    found = Audit.from_dict(reported(path, *asked, "--block-rows", "100", usual=False))
    given = {"y_pred": chosen} if column == "chosen" else {"y_score": frame["score"]}
    expected = audit(
        None, **given, sensitive_features={"race": frame["race"].fillna("unknown")},
        preset="ll144", reference="Black", unknown="unknown",
    )  # fmt: skip
    pd.testing.assert_frame_equal(found.impact, expected.impact, check_dtype=False)
    assert found.rule == expected.rule
    assert "unknown (race, 27 rows, not known)" in capsys.readouterr().out
